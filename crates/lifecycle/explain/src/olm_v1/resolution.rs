//! Extension resolutions: which ClusterCatalogs were considered for a ClusterExtension, what each filter left,
//! and what was chosen.

use mainstay_cause::Cause;
use mainstay_object::Object;
use mainstay_resolver::extension::{
    BundleCounts, CatalogCounts, CatalogEvaluation, CatalogResult, Dependency, DependencyPolicy,
    ExtensionChoice, ExtensionFailure, ExtensionFailureKind, ExtensionRequest, InputCatalog,
    InputCatalogContent, InstalledExtensionBundle, PackageContent, UnmetDependencies,
    UpgradePolicy, cluster_providers, resolve,
};
use std::collections::BTreeSet;

/// The resolution of a ClusterExtension with the catalogs as they are now.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtensionResolution {
    /// The request of the ClusterExtension.
    pub request: ExtensionRequest,
    /// The installed bundle.
    pub installed: Option<InstalledExtensionBundle>,
    /// The chosen bundle, or why none is chosen.
    pub result: Result<ExtensionChoice, Box<ExtensionFailure>>,
    /// The catalogs that the cluster serves, and that the caller could not read: name and reason.
    pub unread: Vec<(String, Cause)>,
    /// What the cluster has of the dependencies of the chosen bundle.
    pub dependencies: DependencyCheck,
}

/// Whether a cluster satisfies the dependencies of a bundle.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum DependencyCheck {
    /// It is unknown: they are not required, no bundle is chosen, or the cluster is not known well enough.
    #[default]
    NotChecked,
    /// It satisfies all of them.
    Satisfied,
    /// It lacks some of them.
    Unmet(UnmetDependencies),
}

impl DependencyCheck {
    /// The dependencies that the cluster lacks, if it is known that it lacks some.
    pub const fn unmet(&self) -> Option<&UnmetDependencies> {
        match self {
            Self::Unmet(unmet) => Some(unmet),
            Self::NotChecked | Self::Satisfied => None,
        }
    }
}

/// What the caller knows about a package in a ClusterCatalog.
#[derive(Clone, Debug)]
pub enum FetchedPackage {
    /// The content of the package; none if the catalog does not have the package.
    Read(Option<PackageContent>),
    /// The documents of the package cannot be decoded: the controller cannot use them either.
    Invalid(String),
    /// The cluster does not serve the catalog.
    NotServed,
    /// The cluster serves the catalog, but the caller could not read it.
    Unread(Cause),
}

/// The names of the ClusterCatalogs whose content a ClusterExtension can get: those that its selector selects,
/// and that are not switched off.
pub fn selected_catalogs<'c>(extension: &Object, catalogs: &'c [Object]) -> BTreeSet<&'c str> {
    let unread = Cause::new("the catalog is not read yet");
    let contents: Vec<(Object, FetchedPackage)> = catalogs
        .iter()
        .map(|catalog| (catalog.clone(), FetchedPackage::Unread(unread.clone())))
        .collect();
    let resolution = ExtensionResolution::of(extension, &contents);
    let names = catalogs.iter().map(Object::name);
    names.filter(|name| resolution.is_unread(name)).collect()
}

impl ExtensionResolution {
    /// Resolves a ClusterExtension.
    pub fn of(extension: &Object, catalogs: &[(Object, FetchedPackage)]) -> Self {
        let request = ExtensionRequest::of(extension);
        let installed = InstalledExtensionBundle::of(extension);
        let mut unread = Vec::new();
        let inputs = catalogs.iter().map(|(catalog, content)| {
            let content = match content {
                FetchedPackage::Read(content) => InputCatalogContent::Package(content.as_ref()),
                FetchedPackage::Invalid(why) => InputCatalogContent::Failed(why.clone()),
                FetchedPackage::NotServed => InputCatalogContent::NotServed,
                FetchedPackage::Unread(why) => {
                    unread.push((catalog.name().to_owned(), why.clone()));
                    InputCatalogContent::NotLoaded
                }
            };
            InputCatalog::of(catalog, content)
        });
        let inputs: Vec<InputCatalog<'_>> = inputs.collect();
        let result = resolve(&request, installed.as_ref(), &inputs);
        let dependencies = DependencyCheck::NotChecked;
        let mut resolution = Self { request, installed, result, unread: Vec::new(), dependencies };
        // The selector decides which of them count.
        let is_unreadable = |name: &str| {
            resolution.considered().iter().any(|result| {
                result.catalog == name && matches!(result.state, CatalogEvaluation::Unreadable(_))
            })
        };
        unread.retain(|(name, _)| is_unreadable(name));
        unread.sort_by(|(one, _), (other, _)| one.cmp(other));
        resolution.unread = unread;
        resolution
    }

    /// Whether the chosen bundle depends on APIs, so that [`Self::check_dependencies`] needs the
    /// CustomResourceDefinitions.
    pub fn concerns_apis(&self) -> bool {
        let choice = self.result.as_ref().ok();
        choice.is_some_and(|choice| choice.dependencies.iter().any(Dependency::concerns_apis))
    }

    /// Checks the dependencies of the chosen bundle, if the extension requires them, against the
    /// ClusterExtensions and CustomResourceDefinitions of the cluster.
    pub fn check_dependencies(
        &mut self,
        extension: &Object,
        extensions: &[Object],
        crds: &[Object],
    ) {
        let Ok(choice) = &self.result else { return };
        if self.request.dependencies == DependencyPolicy::Require {
            let others = extensions.iter().filter(|other| other.name() != extension.name());
            let providers = cluster_providers(others, crds);
            let unmet = UnmetDependencies::of(&choice.bundle, &choice.dependencies, &providers);
            self.dependencies = unmet.map_or(DependencyCheck::Satisfied, DependencyCheck::Unmet);
        }
    }

    /// Whether the controller comes to the same result: it does not if the caller could not read a catalog
    /// that counts.
    pub fn is_conclusive(&self) -> bool {
        match &self.result {
            Ok(_) => true,
            Err(failure) => {
                self.unread.is_empty() || failure.kind != ExtensionFailureKind::Unreadable
            }
        }
    }

    /// All catalogs, by name.
    pub fn considered(&self) -> &[CatalogResult] {
        match &self.result {
            Ok(choice) => &choice.considered,
            Err(failure) => &failure.considered,
        }
    }

    /// The resolution as text: the choice, then the catalogs and the bundles that each filter left.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![match &self.result {
            Ok(choice) => format!(
                "resolution: {} (version {}) of ClusterCatalog {}",
                choice.bundle, choice.version, choice.catalog
            ),
            Err(_) if self.is_conclusive() => "resolution: no bundle".to_owned(),
            Err(_) => "resolution: unknown, because catalogs could not be read here".to_owned(),
        }];
        lines.extend(self.filter_lines().into_iter().map(|line| format!("  {line}")));
        lines
    }

    /// The catalogs and bundles that each filter left, as text; empty if the request cannot be read.
    pub fn filter_lines(&self) -> Vec<String> {
        let considered = self.considered();
        if considered.is_empty() && self.result.is_err() {
            return Vec::new();
        }
        let mut lines = vec![self.catalog_filters(CatalogCounts::of(considered))];
        lines.extend(considered.iter().map(|result| self.catalog_line(result)));
        lines
    }

    /// The number of catalogs behind each filter, as text.
    fn catalog_filters(&self, counts: CatalogCounts) -> String {
        let mut parts = vec![match counts.all {
            1 => "1 ClusterCatalog".to_owned(),
            many => format!("{many} ClusterCatalogs"),
        }];
        let has_selector = self.request.selector.as_ref().is_some_and(|selector| {
            selector.as_object().is_some_and(|selector| !selector.is_empty())
        });
        if has_selector {
            parts.push(format!("{} selected", counts.selected));
        }
        for (count, words) in [
            (counts.available, "available"),
            (counts.readable, "readable"),
            (counts.with_package, "with the package"),
            (counts.with_bundle, "with a bundle that fits"),
            (counts.not_deprecated, "after deprecations"),
            (counts.of_top_priority, "of the highest priority"),
        ] {
            parts.push(format!("{count} {words}"));
        }
        parts.join(", ")
    }

    fn catalog_line(&self, result: &CatalogResult) -> String {
        let (name, priority) = (&result.catalog, result.priority);
        let text = match &result.state {
            CatalogEvaluation::NotSelected => "the selector does not select it".to_owned(),
            CatalogEvaluation::Unavailable => "switched off (Unavailable)".to_owned(),
            CatalogEvaluation::Unreadable(_) if self.is_unread(name) => {
                "could not be read here".to_owned()
            }
            CatalogEvaluation::Unreadable(why) => format!("cannot be read: {why}"),
            CatalogEvaluation::Absent => {
                format!("does not have package {}", self.request.package)
            }
            CatalogEvaluation::Evaluated(_) => {
                let mut text = self.bundle_filters(result.bundle_counts().unwrap_or_default());
                if let Some(best) = result.best() {
                    text.push_str("; the best is ");
                    text.push_str(&best.bundle);
                }
                text
            }
        };
        format!("{name} (priority {priority}): {text}")
    }

    /// The number of bundles behind each filter, as text. Filters that the request does not have are left out.
    fn bundle_filters(&self, counts: BundleCounts) -> String {
        let request = &self.request;
        let mut parts = vec![match counts.all {
            1 => "1 bundle".to_owned(),
            many => format!("{many} bundles"),
        }];
        if !request.channels.is_empty() {
            parts.push(format!(
                "{} in channel {}",
                counts.in_channels,
                request.channels.join(" or ")
            ));
        }
        if !request.version.is_empty() {
            parts.push(format!("{} in version '{}'", counts.in_range, request.version));
        }
        let follows_edges = request.policy != UpgradePolicy::SelfCertified;
        if let Some(installed) = self.installed.as_ref().filter(|_| follows_edges) {
            parts.push(format!("{} from {} on", counts.successors, installed.name));
        }
        parts.push(format!("{} not deprecated", counts.not_deprecated));
        parts.join(", ")
    }

    /// Whether the caller could not read a catalog.
    pub fn is_unread(&self, catalog: &str) -> bool {
        self.unread.iter().any(|(name, _)| name == catalog)
    }
}
