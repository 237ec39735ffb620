//! Bundle choice: evaluates all catalogs, and chooses the best bundle among theirs.

use super::bundle_match::{BundleMatch, InstalledVersion, ParsedRequest, evaluate, follows_edges};
use super::dependency::{Dependency, DependencyPolicy};
use super::package_content::{PackageContent, PackageDeprecation};
use super::repair::ExtensionFix;
use super::request::{
    ExtensionRequest, InputCatalog, InputCatalogContent, InstalledExtensionBundle,
};
use super::{explain, texts};
use mainstay_cause::Cause;
use mainstay_version::VersionConstraint;
use mainstay_version::VersionRelease;
use std::borrow::Cow;
use std::sync::Arc;

/// The bundle that an extension gets.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtensionChoice {
    /// The catalog it comes from.
    pub catalog: String,
    /// Its name.
    pub bundle: Arc<str>,
    /// Its version and release.
    pub version: VersionRelease,
    /// Its image.
    pub image: Arc<str>,
    /// The deprecations of its package in its catalog.
    pub deprecation: PackageDeprecation,
    /// What it requires beside itself; only for a request that accepts bundles with dependencies.
    pub dependencies: Vec<Dependency>,
    /// All catalogs of the resolution, by name.
    pub considered: Vec<CatalogResult>,
}

/// Why an extension gets no bundle.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtensionFailure {
    /// The kind of the failure.
    pub kind: ExtensionFailureKind,
    /// Upstream's message.
    pub message: String,
    /// The explanation for users.
    pub cause: Cause,
    /// Repairs, each of which was tried and leads to a bundle.
    pub repairs: Vec<ExtensionFix>,
    /// All catalogs of the resolution, by name.
    pub considered: Vec<CatalogResult>,
}

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtensionFailureKind {
    /// The selector cannot be read.
    Selector,
    /// The version range cannot be read.
    Range,
    /// A catalog that could change the result cannot be read.
    Unreadable,
    /// The version of the installed bundle is invalid, so no update edge can be followed.
    InstalledVersion,
    /// No bundle fits.
    NotFound,
    /// Several catalogs of the highest priority have a bundle that fits.
    Ambiguous,
    /// The version of the best bundle cannot be read.
    Version,
    /// The best bundle requires other operators.
    Dependency,
}

/// A catalog, and the result of its evaluation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogResult {
    /// The catalog.
    pub catalog: String,
    /// Its priority.
    pub priority: i32,
    /// The result.
    pub state: CatalogEvaluation,
}

/// The result of the evaluation of a catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CatalogEvaluation {
    /// The selector does not select it.
    NotSelected,
    /// Its `spec.availabilityMode` is `Unavailable`.
    Unavailable,
    /// It cannot be read, with upstream's text.
    Unreadable(String),
    /// It does not have the package.
    Absent,
    /// It has the package: the evaluation of each bundle, in order of preference.
    Evaluated(Vec<BundleMatch>),
}

impl CatalogResult {
    /// The best bundle that fits.
    pub fn best(&self) -> Option<&BundleMatch> {
        match &self.state {
            CatalogEvaluation::Evaluated(bundle_matches) => {
                bundle_matches.iter().find(|bundle_match| bundle_match.unmet.is_empty())
            }
            _ => None,
        }
    }

    /// Why it cannot be read.
    pub(super) fn read_error(&self) -> Option<&str> {
        match &self.state {
            CatalogEvaluation::Unreadable(why) => Some(why),
            _ => None,
        }
    }
}

/// Chooses the bundle of an extension. The [module](super) describes the rules and the texts.
pub fn resolve(
    request: &ExtensionRequest,
    installed: Option<&InstalledExtensionBundle>,
    catalogs: &[InputCatalog<'_>],
) -> Result<ExtensionChoice, Box<ExtensionFailure>> {
    choose_bundle(request, installed, catalogs)
        .map_err(|failure| Box::new(explain::failure(request, installed, catalogs, failure)))
}

/// A failure without explanation.
pub(super) struct UnexplainedFailure {
    pub kind: ExtensionFailureKind,
    pub message: String,
    pub considered: Vec<CatalogResult>,
    /// The indexes of the catalogs whose bundles compete, or of the one with the best bundle.
    pub competing_catalogs: Vec<usize>,
}

impl UnexplainedFailure {
    fn before_evaluation(kind: ExtensionFailureKind, message: String) -> Self {
        Self { kind, message, considered: Vec::new(), competing_catalogs: Vec::new() }
    }
}

/// The content of a package in a readable catalog.
pub(super) fn package_content<'a>(
    catalog: &InputCatalog<'a>,
    package: &str,
) -> Option<Cow<'a, PackageContent>> {
    match catalog.content {
        InputCatalogContent::Ready(content) => {
            content.package(package).map(|package| Cow::Owned(PackageContent::of(package)))
        }
        InputCatalogContent::Package(content) => content.map(Cow::Borrowed),
        InputCatalogContent::NotServed
        | InputCatalogContent::NotLoaded
        | InputCatalogContent::Failed(_) => None,
    }
}

/// Chooses the bundle, without explanations.
pub(super) fn choose_bundle(
    request: &ExtensionRequest,
    installed: Option<&InstalledExtensionBundle>,
    catalogs: &[InputCatalog<'_>],
) -> Result<ExtensionChoice, UnexplainedFailure> {
    let selector = request.selector().map_err(|why| {
        UnexplainedFailure::before_evaluation(ExtensionFailureKind::Selector, texts::selector(&why))
    })?;
    let range = if request.version.is_empty() {
        None
    } else {
        let range = VersionConstraint::parse(&request.version).map_err(|why| {
            UnexplainedFailure::before_evaluation(
                ExtensionFailureKind::Range,
                texts::range(&request.version, &why),
            )
        })?;
        Some(range)
    };
    let parsed =
        installed.filter(|_| follows_edges(request)).map(InstalledVersion::parse).transpose();
    let (installed_version, parse_error) = match parsed {
        Ok(installed_version) => (installed_version, None),
        Err(why) => (None, Some(why)),
    };
    let rules = ParsedRequest { request, range, installed_version };

    let mut sorted: Vec<&InputCatalog<'_>> = catalogs.iter().collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    let mut considered = Vec::with_capacity(sorted.len());
    let mut contents = Vec::with_capacity(sorted.len());
    // Upstream stops at the first catalog by name that has the package, if the installed version is
    // invalid.
    let mut installed_version_error = None;
    for catalog in &sorted {
        let mut content = None;
        let state = if !catalog.matches(&selector) {
            CatalogEvaluation::NotSelected
        } else if !catalog.available {
            CatalogEvaluation::Unavailable
        } else if let Some(why) = catalog.read_error() {
            CatalogEvaluation::Unreadable(why)
        } else {
            content = package_content(catalog, &request.package);
            match &content {
                None => CatalogEvaluation::Absent,
                Some(content) => {
                    if let (Some(why), None) = (&parse_error, &installed_version_error) {
                        installed_version_error = Some((considered.len(), why));
                    }
                    CatalogEvaluation::Evaluated(evaluate(content, &rules))
                }
            }
        };
        considered.push(CatalogResult {
            catalog: catalog.name.clone(),
            priority: catalog.priority,
            state,
        });
        contents.push(content);
    }
    let decision = choose_catalog(&considered);
    if let Some((at, why)) = installed_version_error {
        let message = first_read_error(request, &considered[..at], |_| true)
            .unwrap_or_else(|| texts::installed_version(why));
        return Err(UnexplainedFailure {
            kind: ExtensionFailureKind::InstalledVersion,
            message,
            considered,
            competing_catalogs: vec![],
        });
    }
    // An unreadable catalog can have any bundle. It cannot win against a bundle that is not
    // deprecated and comes from a catalog of higher priority.
    let is_outranked = |other: &CatalogResult| match decision {
        Decision::One { at, deprecated } => !deprecated && other.priority < considered[at].priority,
        Decision::None | Decision::Many(_) => false,
    };
    if let Some(message) = first_read_error(request, &considered, |result| !is_outranked(result)) {
        let competing_catalogs = decision.catalogs();
        return Err(UnexplainedFailure {
            kind: ExtensionFailureKind::Unreadable,
            message,
            considered,
            competing_catalogs,
        });
    }
    match decision {
        Decision::One { at, .. } => {
            let content = contents.swap_remove(at);
            check_installable(request, at, considered, content.as_deref())
        }
        Decision::None => {
            let message = texts::undecided(request, installed, &[]);
            Err(UnexplainedFailure {
                kind: ExtensionFailureKind::NotFound,
                message,
                considered,
                competing_catalogs: vec![],
            })
        }
        Decision::Many(competing_catalogs) => {
            let names: Vec<&str> =
                competing_catalogs.iter().map(|&at| &*considered[at].catalog).collect();
            let message = texts::undecided(request, installed, &names);
            Err(UnexplainedFailure {
                kind: ExtensionFailureKind::Ambiguous,
                message,
                considered,
                competing_catalogs,
            })
        }
    }
}

/// The catalog of the best bundle.
enum Decision {
    None,
    One {
        at: usize,
        deprecated: bool,
    },
    /// All eligible catalogs by name, also those of lower priority: upstream lists them all.
    Many(Vec<usize>),
}

impl Decision {
    fn catalogs(self) -> Vec<usize> {
        match self {
            Self::None => vec![],
            Self::One { at, .. } => vec![at],
            Self::Many(competing_catalogs) => competing_catalogs,
        }
    }
}

fn choose_catalog(considered: &[CatalogResult]) -> Decision {
    let picks = || {
        let best = |(at, result): (usize, &CatalogResult)| {
            Some((at, result.priority, result.best()?.deprecated))
        };
        considered.iter().enumerate().filter_map(best)
    };
    // Deprecation counts before priority: deprecated bundles are eligible only if all are
    // deprecated.
    let deprecated = picks().all(|(_, _, deprecated)| deprecated);
    let eligible: Vec<_> = picks().filter(|pick| pick.2 == deprecated).collect();
    let Some(top) = eligible.iter().map(|(_, priority, _)| *priority).max() else {
        return Decision::None;
    };
    let mut winners = eligible.iter().filter(|(_, priority, _)| *priority == top);
    match (winners.next(), winners.next()) {
        (Some(&(at, _, deprecated)), None) => Decision::One { at, deprecated },
        _ => Decision::Many(eligible.iter().map(|(at, _, _)| *at).collect()),
    }
}

/// Upstream's message about the first unreadable catalog by name that is relevant.
fn first_read_error(
    request: &ExtensionRequest,
    considered: &[CatalogResult],
    is_relevant: impl Fn(&CatalogResult) -> bool,
) -> Option<String> {
    considered.iter().filter(|result| is_relevant(result)).find_map(|result| {
        Some(texts::unreadable(&request.package, &result.catalog, result.read_error()?))
    })
}

/// Checks the version and the dependencies of the best bundle. If it is not valid, resolution fails.
/// It does not fall back to the next best bundle, which the user did not request.
fn check_installable(
    request: &ExtensionRequest,
    at: usize,
    considered: Vec<CatalogResult>,
    content: Option<&PackageContent>,
) -> Result<ExtensionChoice, UnexplainedFailure> {
    let best = considered[at].best().zip(content);
    let (kind, message) = match best.map(|(best, content)| (best, content.at(best.at), content)) {
        Some((best, bundle, content)) => match (&best.version, bundle.dependencies().next()) {
            (Ok(_), Some(first)) if request.dependencies == DependencyPolicy::Refuse => {
                (ExtensionFailureKind::Dependency, texts::dependency(&bundle.name, &first.kind))
            }
            (Ok(version), _) => {
                return Ok(ExtensionChoice {
                    catalog: considered[at].catalog.clone(),
                    bundle: bundle.name.clone(),
                    version: version.clone(),
                    image: bundle.image.clone(),
                    deprecation: content.deprecation(),
                    dependencies: Dependency::all_of(bundle),
                    considered,
                });
            }
            (Err(why), _) => (ExtensionFailureKind::Version, texts::no_version(&bundle.name, why)),
        },
        None => (ExtensionFailureKind::NotFound, String::new()),
    };
    Err(UnexplainedFailure { kind, message, considered, competing_catalogs: vec![at] })
}
