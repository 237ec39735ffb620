//! ClusterExtension resolution of OLM v1: which bundle an extension gets.
//!
//! [`resolve`] is a pure function of an [`ExtensionRequest`] (`spec.source.catalog`), the installed
//! bundle ([`InstalledExtensionBundle`]), and the [`InputCatalog`]s of the cluster. The order of
//! catalogs, labels, bundles and entries does not change a byte of the result.
//!
//! ```text
//! catalogs ─► selector, availability ─► in each catalog: channels, range, edges ─► best bundle ─┐
//!                                                                                               ▼
//!                   ExtensionChoice ◄── dependencies ◄── priority ◄── those not deprecated first
//! ```
//!
//! * A bundle fits if it is in one of the requested channels (if there are any), and if its version
//!   is in the requested range (if there is one). Where edges count, it must also be the installed
//!   bundle or a direct successor of it.
//! * The best bundle of a catalog is the one with the highest version and release that is not
//!   deprecated; if all are deprecated, the highest one.
//! * Between catalogs, deprecation counts before priority: a bundle that is not deprecated wins
//!   over deprecated ones from catalogs of any priority. Equal highest priorities are an error,
//!   never a guess.
//! * An unreadable catalog is an error only if it could change the result. It cannot if the
//!   chosen bundle is not deprecated and its catalog has a higher priority.
//! * A bundle with dependencies is an error, as upstream, unless the request accepts it
//!   ([`DependencyPolicy`]). Then the choice lists them, and [`UnmetDependencies`] are those that nothing
//!   in the cluster meets.
//!
//! An [`ExtensionFailure`] has upstream's message, byte for byte, and a [`Cause`] for users: the
//! catalogs, why each bundle does not fit, and [`ExtensionFix`]es, each of which was tried.
//!
//! ```
//! use mainstay_resolver::extension::{
//!     self, ExtensionRequest, InputCatalog, InputCatalogContent, PackageBundle, PackageContent,
//! };
//! use mainstay_updates::{EntryEdges, Graph};
//!
//! let versions = ["1.0.0", "1.1.0"];
//! let mut graph = Graph::builder("argocd");
//! for version in versions {
//!     graph = graph.entry("stable", &format!("argocd.v{version}"), EntryEdges::default());
//! }
//! let bundle = |version: &str| PackageBundle {
//!     name: format!("argocd.v{version}").into(),
//!     version: version.into(),
//!     ..PackageBundle::default()
//! };
//! let content = PackageContent::new(graph.finish(), versions.map(bundle));
//! let catalogs = [InputCatalog::new("community", InputCatalogContent::Package(Some(&content)))];
//! let mut request =
//!     ExtensionRequest { package: "argocd".to_owned(), ..ExtensionRequest::default() };
//!
//! let choice = extension::resolve(&request, None, &catalogs).unwrap();
//! assert_eq!(&*choice.bundle, "argocd.v1.1.0");
//!
//! "2.x".clone_into(&mut request.version);
//! let failure = extension::resolve(&request, None, &catalogs).unwrap_err();
//! assert_eq!(failure.message, r#"no bundles found for package "argocd" matching version "2.x""#);
//! ```
//!
//! What this module does not do: unpack, render or apply bundles, write conditions, or any I/O.
//!
//! [`Cause`]: mainstay_cause::Cause

mod api_range;
mod bundle_match;
mod consequence;
mod dependency;
mod documents;
mod explain;
mod filter_counts;
mod package_content;
mod pick;
mod plan;
mod repair;
mod request;
mod route;
mod texts;

pub use bundle_match::{BundleMatch, UnmetCriteria};
pub use consequence::{Consequence, consequence};
pub use dependency::{
    DEPENDENCIES_ANNOTATION, Dependency, DependencyPolicy, Provider, ProviderSource,
    UNMET_DEPENDENCIES, UnmetDependencies, cluster_providers, established_apis, owning_extension,
};
pub use documents::{read_package, read_packages};
pub use filter_counts::{BundleCounts, CatalogCounts};
pub use package_content::{
    PackageBundle, PackageContent, PackageDeprecation, PackageProperty, VersionError,
};
pub use pick::{
    CatalogEvaluation, CatalogResult, ExtensionChoice, ExtensionFailure, ExtensionFailureKind,
    resolve,
};
pub use plan::{
    ExistingExtension, ExtensionPlan, PlanCatalog, PlanInput, PlanStep, PresentDependency,
    RequiredDependency, plan_installation,
};
pub use repair::{ExtensionChange, ExtensionFix};
pub use request::{
    CATALOG_NAME_LABEL, ExtensionRequest, InputCatalog, InputCatalogContent,
    InstalledExtensionBundle, UpgradePolicy,
};
