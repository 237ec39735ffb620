//! `mainstay extension rbac`: the roles that install a bundle, their difference to those of another
//! bundle, and roles for users.

use super::bundle_source::{BundleSettings, BundleSource};
use super::input;
use super::owned::owned_crds;
use super::{RequestTimeout, config, find_extension, state};
use crate::extension::settings::ExtensionApplierArgument;
use clap::{Args, ValueEnum};
use mainstay_api::names::olm_v1::WATCH_NAMESPACE_ANNOTATION;
use mainstay_bundle::render::{CertManager, CertificateProvider, IssuedCertificates, ServiceCa};
use mainstay_cause::Cause;
use mainstay_command::cluster::{ClusterArguments, ClusterHandle, ConnectionArguments};
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_command::text::format_output;
use mainstay_command::text::{Format, escape_controls, escape_controls_in_lines};
use mainstay_content::image::{StoreFolder, TrustArguments};
use mainstay_object::Object;
use mainstay_permissions::{
    ExtensionApplier, InstallerNames, InstallerObjects, RbacRule, RequiredPermissions, ScopedRules,
    difference, documented_installer_role, exact_installer, to_yaml, user_access_roles,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Arguments of `rbac`.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Name of the ClusterExtension; with --bundle it need not exist [default: the package of the bundle].
    #[arg(value_name = "NAME", required_unless_present = "bundle")]
    name: Option<String>,
    /// Bundle folder or bundle image, instead of the bundle that the cluster has installed.
    #[arg(long, value_name = "DIR|IMAGE", requires = "namespace")]
    bundle: Option<String>,
    /// Also grant what this bundle needs (repeatable): an update needs the permissions for the new bundle
    /// and for the installed one, whose objects it removes.
    #[arg(long, value_name = "DIR|IMAGE", conflicts_with_all = ["documented", "diff", "users"])]
    also: Vec<String>,
    /// Namespace of the extension [default: that of the ClusterExtension].
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Name of the ServiceAccount [default: that of the ClusterExtension, or NAME-installer].
    #[arg(short, long, value_name = "NAME")]
    service_account: Option<String>,
    /// Print the role in the form of the OpenShift documentation, which grants more and less than needed.
    #[arg(long, conflicts_with_all = ["diff", "users"])]
    documented: bool,
    /// Show what this bundle folder or bundle image needs more or less than the first bundle.
    #[arg(long, value_name = "DIR|IMAGE", conflicts_with = "users")]
    diff: Option<String>,
    /// Print the roles view, edit and admin for users of the kinds that the bundle provides.
    #[arg(long)]
    users: bool,
    /// Let the cluster's own roles view, edit and admin include these roles.
    #[arg(long, requires = "users")]
    aggregate: bool,
    /// File with the configuration of the bundle; `-` reads standard input [default: that of the
    /// ClusterExtension].
    #[arg(long, value_name = "FILE")]
    config: Option<String>,
    /// What issues the certificates of webhooks: as `--extension-certificates` of the controller.
    #[arg(long, value_enum, value_name = "ISSUER", default_value_t = Issuer::CertManager)]
    certificates: Issuer,
    /// What records the versions: as `--extension-applier` of the controller.
    #[arg(long, value_enum, value_name = "KIND", default_value_t = ExtensionApplierArgument::Releases)]
    applier: ExtensionApplierArgument,
    /// Output format: YAML documents (for a difference, text), or one JSON value.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    output: Format,
    #[command(flatten)]
    store: StoreFolder,
    #[command(flatten)]
    trust: TrustArguments,
    /// The cluster.
    #[command(flatten, next_help_heading = "Cluster")]
    connection: ConnectionArguments,
}

impl Arguments {
    /// What the account must be able to do, by the applier: ours watches the objects with it in any case.
    const fn applier(&self) -> ExtensionApplier {
        match self.applier {
            ExtensionApplierArgument::Releases => ExtensionApplier::Helm,
            ExtensionApplierArgument::ObjectSets => ExtensionApplier::WatchedObjectSets,
        }
    }
}

/// What issues the certificates of webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Issuer {
    /// cert-manager: an issuer and a certificate for each deployment with webhooks.
    CertManager,
    /// OpenShift's service CA: annotations.
    ServiceCa,
    /// The controller of Mainstay: a Secret for each deployment with webhooks.
    Own,
    /// Nothing: bundles with webhooks are refused.
    None,
}

impl Issuer {
    /// The provider for the renderer; none refuses webhooks.
    pub(super) fn provider(self) -> Option<&'static dyn CertificateProvider> {
        // The permissions do not depend on what is in the Secrets.
        static OWN: IssuedCertificates =
            IssuedCertificates { ca_bundle: String::new(), servers: BTreeMap::new() };
        match self {
            Self::CertManager => Some(&CertManager),
            Self::ServiceCa => Some(&ServiceCa),
            Self::Own => Some(&OWN),
            Self::None => None,
        }
    }
}

/// Whose permissions are derived.
struct InstalledExtension {
    names: InstallerNames,
    /// The ServiceAccount of the spec, if it names one.
    service_account: Option<String>,
    /// The bundle folder or image.
    bundle: String,
    /// The configuration of the spec.
    config: Map<String, Value>,
}

pub(super) async fn run<C: ClusterHandle>(
    arguments: &Arguments,
    io: &mut CommandIo<'_>,
    connect: impl AsyncFnOnce(&ClusterArguments, RequestTimeout) -> Result<C, CommandFailure>,
) -> Result<(), CommandFailure> {
    let own_config = match &arguments.config {
        Some(file) => Some(config::read(file, &input::read_file(io, file)?)?),
        None => None,
    };
    let (source, mut extension) = if let Some(bundle) = &arguments.bundle {
        let source = open(arguments, io, bundle).await?;
        let extension = without_cluster(arguments, bundle, &source);
        (source, extension)
    } else {
        let connection = &arguments.connection;
        let cluster =
            connect(&connection.cluster, RequestTimeout::Flag(connection.timeout())).await?;
        let name = arguments.name.as_deref().unwrap_or_default();
        let object = find_extension(&cluster, name).await?;
        if arguments.users {
            return print_cluster_users(arguments, io, &cluster, &object).await;
        }
        let extension = of_cluster(arguments, &object)?;
        let source = open(arguments, io, &extension.bundle).await.map_err(|mut failure| {
            // A registry of the cluster may be out of reach from here.
            let remedy =
                "or name a copy of the bundle with --bundle DIR|IMAGE and --namespace NAME";
            failure.cause = failure.cause.remedy(remedy);
            failure
        })?;
        (source, extension)
    };
    if let Some(config) = own_config {
        extension.config = config;
    }
    let settings = BundleSettings {
        namespace: extension.names.namespace.clone(),
        config: extension.config.clone(),
        certificates: arguments.certificates.provider(),
    };
    if let Some(other) = &arguments.diff {
        let other = open(arguments, io, other).await?;
        return print_difference(arguments, io, &extension, &settings, (&source, &other));
    }
    if arguments.users {
        let objects = source.objects(&settings)?;
        let roles = user_access_roles(&extension.names.extension, &objects, arguments.aggregate);
        return print_users(arguments, io, source.name(), &roles);
    }
    let mut installer = if arguments.documented {
        let content = source.documented()?;
        let role = documented_installer_role(content.as_bundle(), &extension.names);
        InstallerObjects::new(&extension.names, vec![role])
    } else {
        let mut objects = source.objects(&settings)?;
        for bundle in &arguments.also {
            objects.extend(open(arguments, io, bundle).await?.objects(&settings)?);
        }
        let manifest = source.manifest_of(&objects, &settings.namespace)?;
        exact_installer(&manifest, &extension.names, &arguments.applier())
    };
    let account = arguments.service_account.as_ref().or(extension.service_account.as_ref());
    if let Some(account) = account {
        rename_account(&mut installer, account);
    }
    print_objects(arguments, io, &installer.to_values());
    Ok(())
}

async fn open(
    arguments: &Arguments,
    io: &mut CommandIo<'_>,
    bundle: &str,
) -> Result<BundleSource, CommandFailure> {
    // A fetch is a large future.
    Box::pin(BundleSource::open(io, bundle, &arguments.store, &arguments.trust)).await
}

/// The extension that would install a bundle.
fn without_cluster(
    arguments: &Arguments,
    bundle: &str,
    source: &BundleSource,
) -> InstalledExtension {
    let name = arguments.name.as_deref().unwrap_or_else(|| source.package());
    let namespace = arguments.namespace.as_deref().unwrap_or_default();
    InstalledExtension {
        names: InstallerNames::new(name, namespace),
        service_account: None,
        bundle: bundle.to_owned(),
        config: Map::new(),
    }
}

/// An extension of the cluster, with its installed bundle.
fn of_cluster(
    arguments: &Arguments,
    extension: &Object,
) -> Result<InstalledExtension, CommandFailure> {
    let name = extension.name();
    let Some(image) = state::installed_image(extension) else {
        let cause = Cause::new(format!("ClusterExtension {name} has no installed bundle"));
        let cause = cause.because_all(state::obstacles(extension));
        return Err(CommandFailure::usage(cause.remedy(
            "name its bundle with --bundle DIR|IMAGE; `mainstay catalog list bundles clustercatalog/NAME PACKAGE` shows the images",
        )));
    };
    let namespace = arguments.namespace.as_deref();
    let namespace = namespace.or_else(|| extension.str(&["spec", "namespace"])).unwrap_or_default();
    Ok(InstalledExtension {
        names: InstallerNames::new(name, namespace),
        service_account: extension.str(&["spec", "serviceAccount", "name"]).map(str::to_owned),
        bundle: image.to_owned(),
        config: spec_config(extension),
    })
}

/// The configuration of the bundle in the spec of an extension; empty means none.
pub(super) fn spec_config(extension: &Object) -> Map<String, Value> {
    let inline = extension.get(&["spec", "config", "inline"]).and_then(Value::as_object);
    let mut config = inline.cloned().unwrap_or_default();
    let watched =
        extension.annotation(WATCH_NAMESPACE_ANNOTATION).filter(|watched| !watched.is_empty());
    if let (true, Some(watched)) = (config.is_empty(), watched) {
        config.insert("watchNamespace".to_owned(), watched.into());
    }
    config
}

/// Gives the ServiceAccount the name that the spec of the extension has.
fn rename_account(installer: &mut InstallerObjects, name: &str) {
    installer.service_account["metadata"]["name"] = name.into();
    for subject in installer.bindings.iter_mut().flat_map(|binding| &mut binding.subjects) {
        name.clone_into(&mut subject.name);
    }
}

/// Prints objects that can be applied.
fn print_objects(arguments: &Arguments, io: &mut CommandIo<'_>, objects: &[Value]) {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    let text = match arguments.output {
        Format::Json => format_output(Format::Json, &list, String::new),
        Format::Yaml | Format::Text => to_yaml(objects),
    };
    io.print(&text);
}

/// Prints roles for the users of an extension whose CustomResourceDefinitions are in the cluster.
async fn print_cluster_users(
    arguments: &Arguments,
    io: &mut CommandIo<'_>,
    cluster: &impl ClusterHandle,
    extension: &Object,
) -> Result<(), CommandFailure> {
    let crds = owned_crds(cluster, extension.name()).await?;
    let crds: Vec<Value> = crds.into_iter().map(Object::into_value).collect();
    let roles = user_access_roles(extension.name(), &crds, arguments.aggregate);
    let what = format!("ClusterExtension {}", extension.name());
    print_users(arguments, io, &what, &roles)
}

fn print_users(
    arguments: &Arguments,
    io: &mut CommandIo<'_>,
    provider: &str,
    roles: &[Value],
) -> Result<(), CommandFailure> {
    if roles.is_empty() {
        let provider = escape_controls(provider);
        let cause = Cause::new(format!("{provider} provides no CustomResourceDefinitions"));
        return Err(CommandFailure::usage(
            cause.remedy("wait until it is installed, or name another bundle with --bundle"),
        ));
    }
    print_objects(arguments, io, roles);
    Ok(())
}

/// Prints what the second bundle needs more or less than the first one.
fn print_difference(
    arguments: &Arguments,
    io: &mut CommandIo<'_>,
    extension: &InstalledExtension,
    settings: &BundleSettings,
    (old, new): (&BundleSource, &BundleSource),
) -> Result<(), CommandFailure> {
    let required = |source: &BundleSource| {
        let manifest = source.manifest_of(&source.objects(settings)?, &settings.namespace)?;
        let name = &extension.names.extension;
        Ok::<_, CommandFailure>(RequiredPermissions::new(&manifest, name, &arguments.applier()))
    };
    let difference = difference(&required(old)?, &required(new)?).map_err(|error| {
        Cause::new("the permissions cannot be compared").because(Cause::new(error.to_string()))
    })?;
    let value = json!({
        "from": old.name(),
        "to": new.name(),
        "added": scopes_value(&difference.added),
        "removed": scopes_value(&difference.removed),
    });
    let text = || {
        let head = format!("{} instead of {} ", new.name(), old.name());
        let text = format!("{}{difference}", escape_controls(&head));
        escape_controls_in_lines(&text)
    };
    io.print(&format_output(arguments.output, &value, text));
    Ok(())
}

fn scopes_value(scopes: &[ScopedRules]) -> Value {
    let scopes = scopes.iter().map(|scope| {
        let rules: Vec<Value> = scope.rules.iter().map(RbacRule::to_value).collect();
        json!({"namespace": scope.namespace, "rules": rules})
    });
    scopes.collect()
}
