//! Resolution of an extension: the ClusterCatalogs of the cluster as input, and a fingerprint of all that
//! the result depends on.

use super::dependencies;
use crate::context::Context;
use mainstay_api::{AvailabilityMode, ClusterCatalog, ClusterExtension};
use mainstay_resolver::extension::{
    self, Consequence, ExtensionChoice, ExtensionFailure, ExtensionRequest, InputCatalog,
    InputCatalogContent, InstalledExtensionBundle, PackageContent, UpgradePolicy, read_package,
};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

/// The result of a resolution.
#[derive(Debug)]
pub(super) enum Resolution {
    /// This bundle.
    Chosen(Box<ExtensionChoice>),
    /// None, but the installed bundle meets the request and stays: its catalogs are gone.
    Kept,
    /// None.
    Failed(Box<ExtensionFailure>),
}

/// What catalogs say about a package.
#[derive(Debug)]
pub(super) struct CatalogInput {
    catalogs: Vec<PackageInCatalog>,
    /// Equal for equal input.
    pub(super) fingerprint: u64,
}

impl CatalogInput {
    /// Whether a catalog is served, but not by this process yet.
    pub(super) fn is_loading(&self) -> bool {
        let loading = |package: &PackageInCatalog| {
            is_available(&package.catalog) && matches!(package.content, PackageState::NotLoaded)
        };
        self.catalogs.iter().any(loading)
    }
}

/// A package in a catalog.
#[derive(Debug)]
struct PackageInCatalog {
    catalog: Arc<ClusterCatalog>,
    content: PackageState,
}

#[derive(Debug)]
enum PackageState {
    Read(Option<PackageContent>),
    NotServed,
    NotLoaded,
    Failed(String),
}

/// Reads a package in all catalogs.
pub(super) async fn read_catalogs(context: &Arc<Context>, package: &str) -> CatalogInput {
    let catalogs = context.catalogs.list(None);
    let (context, package) = (Arc::clone(context), package.to_owned());
    let read = move || {
        let mut fingerprint = DefaultHasher::new();
        let catalogs = catalogs
            .into_iter()
            .map(|(_, catalog)| read_catalog(&context, catalog, &package, &mut fingerprint))
            .collect();
        CatalogInput { catalogs, fingerprint: fingerprint.finish() }
    };
    let failed = || CatalogInput { catalogs: Vec::new(), fingerprint: 0 };
    // It ends unexpectedly only when the process does.
    tokio::task::spawn_blocking(read).await.unwrap_or_else(|_| failed())
}

fn read_catalog(
    context: &Context,
    catalog: Arc<ClusterCatalog>,
    package: &str,
    fingerprint: &mut DefaultHasher,
) -> PackageInCatalog {
    let metadata = &catalog.metadata;
    (&metadata.name, &metadata.labels, catalog.spec.priority).hash(fingerprint);
    is_available(&catalog).hash(fingerprint);
    let lines = is_served(&catalog).then(|| lines(context, &metadata.name, package));
    lines.hash(fingerprint);
    let content = match lines {
        None => PackageState::NotServed,
        Some(None) => PackageState::NotLoaded,
        Some(Some(Err(error))) => failed(package, &error),
        Some(Some(Ok(lines))) => match read_package(package, &lines) {
            Ok(content) => PackageState::Read(content),
            Err(error) => failed(package, &error.to_string()),
        },
    };
    PackageInCatalog { catalog, content }
}

fn failed(package: &str, why: &str) -> PackageState {
    PackageState::Failed(format!("error loading package \"{package}\": {why}"))
}

fn is_available(catalog: &ClusterCatalog) -> bool {
    catalog.spec.availability_mode != AvailabilityMode::Unavailable
}

fn is_served(catalog: &ClusterCatalog) -> bool {
    let conditions = &catalog.status.conditions;
    let serving = conditions.iter().find(|condition| condition.kind == "Serving");
    serving.is_some_and(|serving| serving.status == mainstay_api::ConditionStatus::True)
}

/// The documents of a package in a catalog that this process serves, one a line; none if it does not serve
/// the catalog yet.
///
/// # Errors
/// Why they cannot be read.
fn lines(context: &Context, catalog: &str, package: &str) -> Option<Result<Vec<u8>, String>> {
    let documents = context.contents.served(catalog)?.documents().transpose()?;
    let documents = match documents {
        Ok(documents) => documents,
        Err(error) => return Some(Err(error.to_string())),
    };
    let read = || {
        let mut lines = documents.lines(["olm.package", "", package])?;
        lines.extend_from_slice(&documents.lines(["", package, ""])?);
        Ok(lines)
    };
    Some(read().map_err(|error: mainstay_registry::ContentError| error.to_string()))
}

/// Resolves an extension.
pub(super) fn resolve(
    extension: &ClusterExtension,
    explicit_releases: bool,
    installed: Option<&InstalledExtensionBundle>,
    input: &CatalogInput,
) -> Resolution {
    let request = request(extension, explicit_releases);
    let catalogs: Vec<InputCatalog<'_>> = input.catalogs.iter().map(input_catalog).collect();
    match extension::resolve(&request, installed, &catalogs) {
        Ok(choice) => Resolution::Chosen(Box::new(choice)),
        Err(failure) => match extension::consequence(&request, installed, &catalogs, &failure) {
            Consequence::Keep => Resolution::Kept,
            Consequence::Retry(_) => Resolution::Failed(failure),
        },
    }
}

fn request(extension: &ClusterExtension, explicit_releases: bool) -> ExtensionRequest {
    let Some(filter) = &extension.spec.source.catalog else { return ExtensionRequest::default() };
    ExtensionRequest {
        package: filter.package_name.clone(),
        channels: filter.channels.clone(),
        version: filter.version.clone(),
        policy: match filter.upgrade_constraint_policy {
            mainstay_api::UpgradeConstraintPolicy::SelfCertified => UpgradePolicy::SelfCertified,
            _ => UpgradePolicy::CatalogProvided,
        },
        selector: filter.selector.clone(),
        explicit_releases,
        dependencies: dependencies::policy(extension),
    }
}

fn input_catalog(package: &PackageInCatalog) -> InputCatalog<'_> {
    let catalog = &package.catalog;
    InputCatalog {
        name: catalog.metadata.name.clone(),
        labels: catalog.metadata.labels.clone(),
        // The schema of the API limits it to 32 bits.
        priority: i32::try_from(catalog.spec.priority).unwrap_or_default(),
        available: is_available(catalog),
        content: match &package.content {
            PackageState::Read(content) => InputCatalogContent::Package(content.as_ref()),
            PackageState::NotServed => InputCatalogContent::NotServed,
            PackageState::NotLoaded => InputCatalogContent::NotLoaded,
            PackageState::Failed(why) => InputCatalogContent::Failed(why.clone()),
        },
    }
}
