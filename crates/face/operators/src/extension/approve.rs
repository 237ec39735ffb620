//! `mainstay extension approve`: shows the permissions that a bundle needs, and approves them with the rights of
//! the user.
//!
//! ```text
//! ClusterExtension, ClusterCatalogs ─► chosen bundle ─┐
//! ClusterExtension ─► installed bundle ───────────────┴─► needed ─┬─► difference ─► question
//! labelled ClusterRoles, Roles ─► approved ───────────────────────┘                     └─► roles
//! ```
//!
//! The API server decides whether the user may approve: it refuses a role with permissions that its writer does
//! not hold.

use super::bundle_source::{BundleSettings, BundleSource};
use super::input;
use super::owned::object_text;
use super::rbac::Issuer;
use super::{
    RequestTimeout, config, find_extension, rbac, report_warnings, say, state, write_failure,
};
use crate::why::resolve_extension;
use clap::Args;
use mainstay_api::resources::{CLUSTER_CATALOG, CLUSTER_EXTENSION};
use mainstay_cause::Cause;
use mainstay_command::cluster::{
    ClusterArguments, ClusterWriteError, ClusterWriter, ConnectionArguments, ObjectWrite,
};
use mainstay_command::exit::{CommandFailure, ExitStatus};
use mainstay_command::io::CommandIo;
use mainstay_command::text::format_output;
use mainstay_command::text::{Format, escape_controls, escape_controls_in_lines};
use mainstay_content::image::{StoreFolder, TrustArguments};
use mainstay_object::{Object, Resource, builtin};
use mainstay_permissions::{
    APPROVES_EXTENSION_LABEL, APPROVES_NAMESPACE_LABEL, GrantedRules, InstallerNames,
    PermissionDifference, RbacRole, ScopedRules, TooManyPermissions, approval_object,
    approval_roles, describe_rules, to_yaml, unapproved_rules,
};
use serde_json::{Map, Value, json};

/// The kinds of roles that approve permissions.
const KINDS: [&Resource; 2] = [&builtin::CLUSTER_ROLE, &builtin::ROLE];

/// Arguments of `approve`.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Name of the ClusterExtension; with --bundle and --namespace it need not exist.
    #[arg(value_name = "NAME")]
    name: String,
    /// Bundle folder or bundle image, instead of the bundle that the catalogs offer to the ClusterExtension.
    #[arg(long, value_name = "DIR|IMAGE")]
    bundle: Option<String>,
    /// Bundle folder or bundle image with the content of the installed bundle, if its own image cannot be pulled from
    /// here.
    #[arg(long, value_name = "DIR|IMAGE")]
    installed: Option<String>,
    /// Namespace of the ClusterExtension [default: that of its spec].
    #[arg(short, long, value_name = "NAME", requires = "bundle")]
    namespace: Option<String>,
    /// File with the configuration of the bundle; `-` reads standard input [default: that of the
    /// ClusterExtension].
    #[arg(long, value_name = "FILE")]
    config: Option<String>,
    /// What issues the certificates of webhooks: as `--extension-certificates` of the controller.
    #[arg(long, value_enum, value_name = "ISSUER", default_value_t = Issuer::CertManager)]
    certificates: Issuer,
    /// Approve without a question.
    #[arg(short, long)]
    yes: bool,
    /// Let the cluster check the approval, and store nothing.
    #[arg(long)]
    dry_run: bool,
    /// Output format; `json` and `yaml` print the roles of the approval.
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

pub(super) async fn run<C: ClusterWriter>(
    arguments: &Arguments,
    io: &mut CommandIo<'_>,
    connect: impl AsyncFnOnce(&ClusterArguments, RequestTimeout) -> Result<C, CommandFailure>,
) -> Result<(), CommandFailure> {
    let own_config = match &arguments.config {
        Some(file) => Some(config::read(file, &input::read_file(io, file)?)?),
        None => None,
    };
    let connection = &arguments.connection;
    let cluster = connect(&connection.cluster, RequestTimeout::Flag(connection.timeout())).await?;
    let extension = find(arguments, &cluster).await?;
    let namespace = arguments.namespace.as_deref();
    let namespace = namespace.or_else(|| extension.as_ref()?.str(&["spec", "namespace"]));
    let names = InstallerNames::new(&arguments.name, namespace.unwrap_or_default());
    let of_spec = || extension.as_ref().map(rbac::spec_config).unwrap_or_default();
    let config = own_config.unwrap_or_else(of_spec);
    let bundles = bundles(arguments, io, &cluster, extension.as_ref()).await?;
    let needed = needed_roles(arguments, io, &names, config, &bundles).await?;
    let approval = Approval::read(&cluster, &names, &needed.roles).await?;
    let difference = approval.difference(&needed).map_err(|error| {
        Cause::new("the permissions cannot be compared").because(Cause::new(error.to_string()))
    })?;
    print_preview(arguments, io, &names, &needed, &approval, &difference)?;
    if difference.is_empty() {
        say(io, arguments.output, "the permissions are approved already: nothing to do");
        return Ok(());
    }
    let needs_confirmation = !arguments.yes && !arguments.dry_run;
    if needs_confirmation && !confirm(io, &arguments.name)? {
        say(io, arguments.output, "the approval is cancelled: nothing is changed");
        return Ok(());
    }
    for write in approval.writes(&names, &needed.roles)? {
        carry_out(arguments, io, &cluster, &write).await?;
    }
    Ok(())
}

/// The ClusterExtension; none if it need not exist.
async fn find(
    arguments: &Arguments,
    cluster: &impl ClusterWriter,
) -> Result<Option<Object>, CommandFailure> {
    if arguments.namespace.is_some() {
        return Ok(cluster.get(&CLUSTER_EXTENSION, None, &arguments.name).await?);
    }
    match find_extension(cluster, &arguments.name).await {
        Ok(extension) => Ok(Some(extension)),
        // It does not exist.
        Err(mut failure) if failure.exit == ExitStatus::Usage => {
            let remedy = "to approve before the ClusterExtension exists, add --bundle DIR|IMAGE and --namespace NAME";
            failure.cause = failure.cause.remedy(remedy);
            Err(failure)
        }
        Err(failure) => Err(failure),
    }
}

/// The folders or images of the bundles whose permissions are needed.
struct Bundles {
    /// The bundle that is to be installed.
    chosen: String,
    /// The installed one, if it is another one: an upgrade removes its objects.
    installed: Option<String>,
    /// The name of the installed one.
    installed_name: Option<String>,
}

async fn bundles(
    arguments: &Arguments,
    io: &mut CommandIo<'_>,
    cluster: &impl ClusterWriter,
    extension: Option<&Object>,
) -> Result<Bundles, CommandFailure> {
    let installed = extension.and_then(state::installed_image);
    let chosen = match &arguments.bundle {
        Some(bundle) => bundle.clone(),
        None => offered_bundle(io, cluster, &arguments.name, extension, installed).await?,
    };
    let installed = installed.filter(|image| **image != *chosen);
    let installed = match (&arguments.installed, installed) {
        (Some(_), None) => return Err(no_other_bundle(&arguments.name)),
        (Some(copy), Some(_)) => Some(copy.clone()),
        (None, installed) => installed.map(str::to_owned),
    };
    let name = extension.and_then(|found| found.str(&["status", "install", "bundle", "name"]));
    Ok(Bundles { chosen, installed, installed_name: name.map(str::to_owned) })
}

/// Why `--installed` is refused where no installed bundle counts beside the chosen one.
fn no_other_bundle(name: &str) -> CommandFailure {
    let name = escape_controls(name);
    let cause = Cause::new("--installed cannot be used here")
        .because(Cause::new(format!("ClusterExtension {name} has no other bundle installed")))
        .remedy("leave it out");
    CommandFailure::usage(cause)
}

/// The image of the bundle that the catalogs offer to an extension; of the installed one if they offer none.
///
/// # Errors
/// There is neither.
async fn offered_bundle(
    io: &mut CommandIo<'_>,
    cluster: &impl ClusterWriter,
    name: &str,
    extension: Option<&Object>,
    installed: Option<&str>,
) -> Result<String, CommandFailure> {
    let mut cause = Cause::new(format!(
        "no bundle can be chosen for ClusterExtension {}",
        escape_controls(name)
    ));
    if let Some(extension) = extension {
        let catalogs = cluster.list(&CLUSTER_CATALOG, None, None).await?;
        let failure = match resolve_extension(cluster, extension, &catalogs).await.result {
            Ok(choice) => return Ok(choice.image.to_string()),
            Err(failure) => failure,
        };
        if let Some(image) = installed {
            let why = escape_controls(&failure.cause.to_string().replace('\n', " "));
            let _ = writeln!(
                io.stderr,
                "note: no other bundle can be chosen now, so this is about the installed one: {why}"
            );
            return Ok(image.to_owned());
        }
        cause = cause.because(failure.cause);
    }
    Err(cause.remedy("or name the bundle with --bundle DIR|IMAGE").into())
}

/// What an extension needs.
struct Needed {
    /// The name of the chosen bundle.
    bundle: String,
    /// The roles of an approval.
    roles: Vec<RbacRole>,
}

/// Derives the permissions that bundles need together.
async fn needed_roles(
    arguments: &Arguments,
    io: &mut CommandIo<'_>,
    names: &InstallerNames,
    config: Map<String, Value>,
    bundles: &Bundles,
) -> Result<Needed, CommandFailure> {
    let settings = BundleSettings {
        namespace: names.namespace.clone(),
        config,
        certificates: arguments.certificates.provider(),
    };
    // A registry of the cluster may be out of reach from here.
    let remedy = "or name a copy of the new bundle with --bundle DIR|IMAGE";
    let chosen = open(arguments, io, &bundles.chosen, remedy).await?;
    let mut objects = chosen.objects(&settings)?;
    // A folder may be a copy of the installed bundle.
    let is_installed = bundles.installed_name.as_deref() == Some(chosen.name());
    if let Some(installed) = bundles.installed.as_ref().filter(|_| !is_installed) {
        let remedy = "or name a copy of the installed bundle with --installed DIR|IMAGE";
        objects.extend(open(arguments, io, installed, remedy).await?.objects(&settings)?);
    }
    let manifest = chosen.manifest_of(&objects, &settings.namespace)?;
    let roles = approval_roles(&manifest, names);
    Ok(Needed { bundle: chosen.name().to_owned(), roles })
}

async fn open(
    arguments: &Arguments,
    io: &mut CommandIo<'_>,
    bundle: &str,
    remedy: &str,
) -> Result<BundleSource, CommandFailure> {
    let opened = BundleSource::open(io, bundle, &arguments.store, &arguments.trust);
    Box::pin(opened).await.map_err(|mut failure| {
        failure.cause = failure.cause.remedy(remedy);
        failure
    })
}

/// What is approved for an extension on a cluster.
struct Approval {
    /// All roles that approve something.
    roles: Vec<Object>,
    /// Their rules.
    granted: GrantedRules,
    /// The rules of the roles that this command writes.
    own: Vec<RbacRole>,
}

/// One change of the approval.
enum ApprovalWrite {
    Create(Object),
    Replace(Object),
    Delete(Object),
}

impl Approval {
    /// Reads what is approved, and checks that the place of each needed role is free or has an approval.
    ///
    /// # Errors
    /// A role of somebody else has such a place, or the cluster refuses to read roles.
    async fn read(
        cluster: &impl ClusterWriter,
        names: &InstallerNames,
        needed: &[RbacRole],
    ) -> Result<Self, CommandFailure> {
        let InstallerNames { extension, namespace, .. } = names;
        let labels = format!(
            "{APPROVES_EXTENSION_LABEL}={extension},{APPROVES_NAMESPACE_LABEL}={namespace}"
        );
        let mut roles = Vec::new();
        for kind in KINDS {
            roles.extend(cluster.list(kind, None, Some(&labels)).await?);
        }
        for RbacRole { namespace, name, .. } in needed {
            let place = (!namespace.is_empty()).then_some(namespace.as_str());
            let found = cluster.get(role_kind(namespace), place, name).await?;
            let found = found.filter(|found| !roles.iter().any(|role| is_same(role, found)));
            if let Some(found) = found {
                return Err(foreign_role(&found, &labels));
            }
        }
        let all: Vec<RbacRole> =
            roles.iter().map(|role| RbacRole::from_value(&role.to_value())).collect();
        let granted = GrantedRules::of_roles(&all);
        let own = all.into_iter().filter(|role| role.name == names.approval()).collect();
        Ok(Self { roles, granted, own })
    }

    /// What is needed beyond what is approved, and what this command approved that is not needed any more.
    fn difference(&self, needed: &Needed) -> Result<PermissionDifference, TooManyPermissions> {
        let wanted = GrantedRules::of_roles(&needed.roles);
        Ok(PermissionDifference {
            added: unapproved_rules(&self.granted, &needed.roles)?,
            removed: unapproved_rules(&wanted, &self.own)?,
        })
    }

    /// The writes after which the roles of this command are those that are needed.
    fn writes(
        &self,
        names: &InstallerNames,
        needed: &[RbacRole],
    ) -> Result<Vec<ApprovalWrite>, CommandFailure> {
        let mut writes = Vec::new();
        for role in needed {
            let wanted = Object::from_value(approval_object(role, names));
            let wanted = wanted.map_err(|error| Cause::new(error.to_string()))?;
            match self.roles.iter().find(|found| is_same(found, &wanted)) {
                None => writes.push(ApprovalWrite::Create(wanted)),
                Some(found) if RbacRole::from_value(&found.to_value()) == *role => {}
                Some(found) => {
                    let mut changed = found.clone();
                    changed.set(&["rules"], wanted.get(&["rules"]).cloned().unwrap_or_default());
                    changed.remove(&["aggregationRule"]);
                    writes.push(ApprovalWrite::Replace(changed));
                }
            }
        }
        let is_needed =
            |found: &Object| needed.iter().any(|role| role.namespace == found.namespace());
        let own = self.roles.iter().filter(|found| found.name() == names.approval());
        writes.extend(own.filter(|found| !is_needed(found)).cloned().map(ApprovalWrite::Delete));
        Ok(writes)
    }
}

/// The kind of a role; the namespace of a ClusterRole is empty.
fn role_kind(namespace: &str) -> &'static Resource {
    let [cluster_role, role] = KINDS;
    if namespace.is_empty() { cluster_role } else { role }
}

/// The failure that a role without the labels of an approval is in the place of one that is needed.
fn foreign_role(found: &Object, labels: &str) -> CommandFailure {
    let (kind, name) = (found.kind().to_lowercase(), found.name());
    let namespace = match found.namespace() {
        "" => String::new(),
        namespace => format!(" -n {namespace}"),
    };
    let labels = labels.replace(',', " ");
    let cause = Cause::new(format!("{} exists and is no approval", object_text(found)));
    CommandFailure::usage(cause.remedy(format!(
        "delete it, or make it one: kubectl label {kind} {name}{namespace} {labels}"
    )))
}

/// Whether two roles have the same kind, namespace and name.
fn is_same(one: &Object, other: &Object) -> bool {
    (one.kind(), one.namespace(), one.name()) == (other.kind(), other.namespace(), other.name())
}

/// Prints what is needed and how it differs from what is approved; in other formats the roles.
fn print_preview(
    arguments: &Arguments,
    io: &mut CommandIo<'_>,
    names: &InstallerNames,
    needed: &Needed,
    approval: &Approval,
    difference: &PermissionDifference,
) -> Result<(), CommandFailure> {
    let text = match arguments.output {
        Format::Text => preview_text(names, needed, approval, difference),
        format => {
            let objects: Vec<Value> =
                needed.roles.iter().map(|role| approval_object(role, names)).collect();
            let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
            match format {
                Format::Json => format_output(Format::Json, &list, String::new),
                _ => to_yaml(&objects),
            }
        }
    };
    // Nothing is approved before its preview is written.
    let written = io.stdout.write_all(text.as_bytes()).and_then(|()| io.stdout.flush());
    written.map_err(|error| {
        Cause::new("the preview cannot be written").because(Cause::new(error.to_string())).into()
    })
}

fn preview_text(
    names: &InstallerNames,
    needed: &Needed,
    approval: &Approval,
    difference: &PermissionDifference,
) -> String {
    let InstallerNames { extension, namespace, .. } = names;
    let bundle = &needed.bundle;
    let head = format!("{bundle} for ClusterExtension {extension} in namespace {namespace} needs:");
    let scopes = needed
        .roles
        .iter()
        .map(|role| ScopedRules { namespace: role.namespace.clone(), rules: role.rules.clone() });
    let all = describe_rules(&scopes.collect::<Vec<_>>());
    let compared = if approval.roles.is_empty() {
        "nothing is approved yet\n".to_owned()
    } else {
        format!("compared with what is approved, it {difference}")
    };
    escape_controls_in_lines(&format!("{}\n{all}{compared}", escape_controls(&head)))
}

/// Asks whether to approve.
///
/// # Errors
/// Nobody can answer.
fn confirm(io: &mut CommandIo<'_>, name: &str) -> Result<bool, CommandFailure> {
    if !io.interactive {
        let cause = Cause::new(format!("the approval for extension {name:?} is not confirmed"));
        return Err(CommandFailure::usage(cause.remedy("confirm it with --yes")));
    }
    Ok(input::confirm(io, &format!("approve these permissions for extension {name:?}?")))
}

/// Writes one role of the approval.
async fn carry_out(
    arguments: &Arguments,
    io: &mut CommandIo<'_>,
    cluster: &impl ClusterWriter,
    write: &ApprovalWrite,
) -> Result<(), CommandFailure> {
    let (request, done) = match write {
        ApprovalWrite::Create(object) => (ObjectWrite::Create(object), "created"),
        ApprovalWrite::Replace(object) => (ObjectWrite::Replace(object), "changed"),
        ApprovalWrite::Delete(object) => (ObjectWrite::Delete(object), "deleted"),
    };
    let object = request.object();
    let place = object_text(object);
    let kind = role_kind(object.namespace());
    match cluster.write(kind, request, arguments.dry_run).await {
        Ok(accepted) => drop(report_warnings(io, accepted)),
        // Somebody else deleted it meanwhile.
        Err(ClusterWriteError::NotFound(_)) if done == "deleted" => {}
        Err(error) => return Err(refusal(&place, object, error)),
    }
    let suffix = if arguments.dry_run { " (dry run)" } else { "" };
    say(io, arguments.output, &format!("{place} {done}{suffix}"));
    Ok(())
}

/// The failure of writing a role.
fn refusal(place: &str, object: &Object, error: ClusterWriteError) -> CommandFailure {
    let what = format!("the permissions cannot be approved: {place}");
    match &error {
        ClusterWriteError::Forbidden(cause)
            if cause.to_string().contains("attempting to grant") =>
        {
            let reason = "nobody can approve permissions that they do not hold";
            let cause = Cause::new(what).because(Cause::new(reason).because(error.into()));
            cause.remedy("have somebody approve them who holds them, such as an administrator of the cluster").into()
        }
        ClusterWriteError::Forbidden(_) => Cause::new(what)
            .because(error.into())
            .remedy("have an administrator of the cluster approve the permissions")
            .into(),
        ClusterWriteError::NotFound(_) if !object.namespace().is_empty() => {
            let namespace = object.namespace();
            Cause::new(what)
                .because(error.into())
                .remedy(format!("create the namespace: kubectl create namespace {namespace}"))
                .into()
        }
        ClusterWriteError::Conflict(_) | ClusterWriteError::AlreadyExists(_) => Cause::new(what)
            .because(error.into())
            .remedy("it changed meanwhile: repeat the command")
            .into(),
        _ => write_failure(what, error),
    }
}
