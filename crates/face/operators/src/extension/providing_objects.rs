//! What a cluster provides to bundles with dependencies, and which extensions depend on another one.

use crate::why::resolve_extension;
use mainstay_api::resources::{CLUSTER_CATALOG, CLUSTER_EXTENSION};
use mainstay_cause::Cause;
use mainstay_command::cluster::{ClusterHandle, ClusterReadError};
use mainstay_command::exit::CommandFailure;
use mainstay_command::text::escape_controls_in_lines;
use mainstay_content::catalog::package_content;
use mainstay_explain::FetchedPackage;
use mainstay_object::{Object, builtin};
use mainstay_resolver::extension::{
    Dependency, DependencyPolicy, ExistingExtension, ExtensionFailureKind, ExtensionRequest,
    Provider, cluster_providers, owning_extension,
};
use serde_json::{Value, json};

/// The ClusterExtensions and CustomResourceDefinitions of a cluster.
#[derive(Debug, Default)]
pub(crate) struct ProvidingObjects {
    pub(crate) extensions: Vec<Object>,
    /// The CustomResourceDefinitions; none if the account may not list them.
    pub(crate) crds: Option<Vec<Object>>,
}

/// A ClusterExtension that depends on another one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Dependent {
    /// Its name.
    name: String,
    /// What it requires, as text.
    dependency: String,
}

impl ProvidingObjects {
    /// Reads them.
    ///
    /// # Errors
    /// The account may not list ClusterExtensions, or the cluster does not respond.
    pub(crate) async fn read(cluster: &impl ClusterHandle) -> Result<Self, CommandFailure> {
        let extensions = cluster.list(&CLUSTER_EXTENSION, None, None).await?;
        Self::with(cluster, extensions).await
    }

    /// These extensions, with the CustomResourceDefinitions.
    async fn with(
        cluster: &impl ClusterHandle,
        extensions: Vec<Object>,
    ) -> Result<Self, CommandFailure> {
        let crds = match cluster.list(&builtin::CUSTOM_RESOURCE_DEFINITION, None, None).await {
            Ok(crds) => Some(crds),
            Err(ClusterReadError::Forbidden(_)) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Self { extensions, crds })
    }

    /// What the cluster provides.
    pub(super) fn providers(&self) -> Vec<Provider> {
        cluster_providers(&self.extensions, self.crds.iter().flatten())
    }

    /// The extensions as a plan needs them: those that stay.
    pub(super) fn existing(&self) -> Vec<ExistingExtension> {
        let text = |extension: &Object, path: &[&str]| extension.str(path).map(str::to_owned);
        let existing = |extension: &Object| ExistingExtension {
            name: extension.name().to_owned(),
            package: text(extension, &["spec", "source", "catalog", "packageName"])
                .unwrap_or_default(),
            version: text(extension, &["status", "install", "bundle", "version"]),
        };
        let staying = self.extensions.iter().filter(|extension| !extension.is_terminating());
        staying.map(existing).collect()
    }
}

/// The ClusterExtensions that depend on another one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dependents {
    /// Those that do, by name.
    found: Vec<Dependent>,
    /// The names of those of which it is unknown: no catalog that can be read has their installed bundle.
    unknown: Vec<String>,
    /// Whether the account may not list the ClusterCatalogs, which say it.
    hides_catalogs: bool,
}

impl Dependents {
    /// Nothing depends on it.
    pub(crate) fn none() -> Self {
        Self::default()
    }

    /// The dependents as text, which warns of the removal; empty if there are none.
    pub(crate) fn text(&self) -> String {
        if self.hides_catalogs {
            return "note: this account may not list ClusterCatalogs, so it is unknown whether others need it\n".to_owned();
        }
        let mut text = String::new();
        for (at, Dependent { name, dependency }) in self.found.iter().enumerate() {
            if at == 0 {
                text.push_str("needed by others, which stay and report the missing dependency:\n");
            }
            let line = format!("  ClusterExtension {name}: {dependency}\n");
            text.push_str(&escape_controls_in_lines(&line));
        }
        if !self.unknown.is_empty() {
            let line = format!(
                "note: no catalog that can be read has the bundles of these ClusterExtensions, so it is unknown whether they need it: {}\n",
                self.unknown.join(", ")
            );
            text.push_str(&escape_controls_in_lines(&line));
        }
        text
    }

    /// Adds the dependents to the value of a preview: `neededBy`, null if they are unknown, and
    /// `perhapsNeededBy`.
    pub(crate) fn add_to(&self, preview: &mut Value) {
        let value = |Dependent { name, dependency }: &Dependent| json!({"kind": "ClusterExtension", "name": name, "dependency": dependency});
        let found: Value = self.found.iter().map(value).collect();
        preview["neededBy"] = if self.hides_catalogs { Value::Null } else { found };
        preview["perhapsNeededBy"] = json!(self.unknown);
    }
}

/// The extensions whose installed bundle depends on an extension, by name. Only extensions that accept
/// bundles with dependencies can. With `keeps_crds`, its CustomResourceDefinitions go on to provide APIs.
///
/// # Errors
/// The cluster does not respond.
pub(crate) async fn dependents(
    cluster: &impl ClusterHandle,
    name: &str,
    keeps_crds: bool,
) -> Result<Dependents, CommandFailure> {
    let extensions = match cluster.list(&CLUSTER_EXTENSION, None, None).await {
        Ok(extensions) => extensions,
        Err(ClusterReadError::Forbidden(_) | ClusterReadError::UnknownKind(_)) => {
            return Ok(Dependents::none());
        }
        Err(error) => return Err(error.into()),
    };
    let accepts = |extension: &&Object| {
        extension.name() != name
            && ExtensionRequest::of(extension).dependencies != DependencyPolicy::Refuse
    };
    if !extensions.iter().any(|extension| accepts(&extension)) {
        return Ok(Dependents::none());
    }
    let catalogs = match cluster.list(&CLUSTER_CATALOG, None, None).await {
        Ok(catalogs) => catalogs,
        Err(ClusterReadError::Forbidden(_)) => {
            return Ok(Dependents { hides_catalogs: true, ..Dependents::none() });
        }
        Err(error) => return Err(error.into()),
    };
    let providing = ProvidingObjects::with(cluster, extensions).await?;
    let now = providing.providers();
    let crds = providing.crds.iter().flatten();
    let crds = crds.filter(|crd| keeps_crds || owning_extension(crd) != Some(name));
    let others = providing.extensions.iter().filter(|extension| extension.name() != name);
    let afterwards = cluster_providers(others, crds);
    let mut dependents = Dependents::none();
    for extension in providing.extensions.iter().filter(accepts) {
        let Some(dependencies) = dependencies(cluster, extension, &catalogs).await else {
            dependents.unknown.push(extension.name().to_owned());
            continue;
        };
        for dependency in dependencies {
            if dependency.provider(&now).is_some() && dependency.provider(&afterwards).is_none() {
                dependents.found.push(Dependent {
                    name: extension.name().to_owned(),
                    dependency: dependency.to_string(),
                });
            }
        }
    }
    dependents.found.sort_by(|one, other| one.name.cmp(&other.name));
    dependents.unknown.sort();
    Ok(dependents)
}

/// The dependencies of the installed bundle of an extension, from the first catalog by name that has it; none if no
/// catalog that can be read has it.
async fn dependencies(
    cluster: &impl ClusterHandle,
    extension: &Object,
    catalogs: &[Object],
) -> Option<Vec<Dependency>> {
    let field = |path: &[&str]| extension.str(path).unwrap_or_default();
    let package = field(&["spec", "source", "catalog", "packageName"]);
    let installed = field(&["status", "install", "bundle", "name"]);
    if installed.is_empty() {
        return Some(Vec::new());
    }
    for catalog in catalogs {
        if let FetchedPackage::Read(Some(content)) =
            package_content(cluster, catalog, package).await
        {
            let mut bundles = content.bundles();
            if let Some(bundle) = bundles.find(|bundle| *bundle.name == *installed) {
                return Some(Dependency::all_of(bundle));
            }
        }
    }
    None
}

/// What the bundle that an extension would get requires and the cluster lacks, as a note with what to do.
/// Nothing if that cannot be found out: the conditions of the extension say it later.
pub(super) async fn missing_dependencies(
    cluster: &impl ClusterHandle,
    extension: &Object,
) -> Option<Cause> {
    if ExtensionRequest::of(extension).dependencies == DependencyPolicy::Ignore {
        return None;
    }
    let catalogs = cluster.list(&CLUSTER_CATALOG, None, None).await.ok()?;
    if catalogs.is_empty() {
        return None;
    }
    let name = extension.name();
    let mut resolution = resolve_extension(cluster, extension, &catalogs).await;
    match &resolution.result {
        Err(failure) => {
            return (failure.kind == ExtensionFailureKind::Dependency).then(|| {
                Cause::new(failure.message.clone()).remedy(format!(
                    "let the controller of Mainstay install it once they are satisfied: mainstay extension update {name} --dependencies Require"
                ))
            });
        }
        Ok(choice) if choice.dependencies.is_empty() => return None,
        Ok(_) => {}
    }
    let extensions = cluster.list(&CLUSTER_EXTENSION, None, None).await.ok()?;
    let crds = if resolution.concerns_apis() {
        cluster.list(&builtin::CUSTOM_RESOURCE_DEFINITION, None, None).await.ok()?
    } else {
        Vec::new()
    };
    resolution.check_dependencies(extension, &extensions, &crds);
    let unmet = resolution.dependencies.unmet()?;
    Some(
        Cause::new(unmet.to_string())
            .remedy(format!("see what to install: mainstay why clusterextension/{name}")),
    )
}
