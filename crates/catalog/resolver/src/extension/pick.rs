//! Bundle choice: evaluates all catalogs, and chooses the best bundle among theirs.

use super::bundle_match::{BundleMatch, ParsedRequest, Start, evaluate, follows_edges};
use super::offer::{PackageContent, PackageDeprecation};
use super::repair::ExtensionFix;
use super::request::{ExtensionRequest, InputCatalog, InputCatalogContent, InstalledExtension};
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
    /// A catalog cannot be read that could change the result.
    Unreadable,
    /// The version of the installed bundle cannot be read, so that edges have no start.
    Start,
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
    /// It has the package: a verdict for each bundle, in order of preference.
    Judged(Vec<BundleMatch>),
}

impl CatalogResult {
    /// The best bundle that fits.
    pub fn best(&self) -> Option<&BundleMatch> {
        match &self.state {
            CatalogEvaluation::Judged(verdicts) => {
                verdicts.iter().find(|verdict| verdict.unmet.fits())
            }
            _ => None,
        }
    }

    /// Why it cannot be read.
    pub(super) fn fault(&self) -> Option<&str> {
        match &self.state {
            CatalogEvaluation::Unreadable(why) => Some(why),
            _ => None,
        }
    }
}

/// Chooses the bundle of an extension. The [module](super) describes the rules and the texts.
pub fn resolve(
    request: &ExtensionRequest,
    installed: Option<&InstalledExtension>,
    catalogs: &[InputCatalog<'_>],
) -> Result<ExtensionChoice, Box<ExtensionFailure>> {
    attempt(request, installed, catalogs)
        .map_err(|refusal| Box::new(explain::failure(request, installed, catalogs, refusal)))
}

/// A failure without explanation.
pub(super) struct Refusal {
    pub kind: ExtensionFailureKind,
    pub message: String,
    pub considered: Vec<CatalogResult>,
    /// The catalogs whose bundles compete, or the one with the best bundle.
    pub rivals: Vec<usize>,
}

impl Refusal {
    fn early(kind: ExtensionFailureKind, message: String) -> Self {
        Self { kind, message, considered: Vec::new(), rivals: Vec::new() }
    }
}

/// The offer of a readable catalog.
pub(super) fn offer_of<'a>(
    catalog: &InputCatalog<'a>,
    package: &str,
) -> Option<Cow<'a, PackageContent>> {
    match catalog.content {
        InputCatalogContent::Ready(content) => {
            content.package(package).map(|package| Cow::Owned(PackageContent::of(package)))
        }
        InputCatalogContent::Offer(offer) => offer.map(Cow::Borrowed),
        InputCatalogContent::NotServed
        | InputCatalogContent::NotLoaded
        | InputCatalogContent::Failed(_) => None,
    }
}

/// Chooses the bundle, without explanations.
pub(super) fn attempt(
    request: &ExtensionRequest,
    installed: Option<&InstalledExtension>,
    catalogs: &[InputCatalog<'_>],
) -> Result<ExtensionChoice, Refusal> {
    let selector = request
        .selector()
        .map_err(|why| Refusal::early(ExtensionFailureKind::Selector, texts::selector(&why)))?;
    let range = if request.version.is_empty() {
        None
    } else {
        let range = VersionConstraint::parse(&request.version).map_err(|why| {
            Refusal::early(ExtensionFailureKind::Range, texts::range(&request.version, &why))
        })?;
        Some(range)
    };
    let start = installed.filter(|_| follows_edges(request)).map(Start::read).transpose();
    let (start, no_start) = match start {
        Ok(start) => (start, None),
        Err(why) => (None, Some(why)),
    };
    let rules = ParsedRequest { request, range, start };

    let mut sorted: Vec<&InputCatalog<'_>> = catalogs.iter().collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    let mut considered = Vec::with_capacity(sorted.len());
    let mut offers = Vec::with_capacity(sorted.len());
    // The first catalog by name at which upstream would stop because of the installed version.
    let mut start_fault = None;
    for catalog in &sorted {
        let mut offer = None;
        let state = if !catalog.fits(&selector) {
            CatalogEvaluation::NotSelected
        } else if !catalog.available {
            CatalogEvaluation::Unavailable
        } else if let Some(why) = catalog.fault() {
            CatalogEvaluation::Unreadable(why)
        } else {
            offer = offer_of(catalog, &request.package);
            match &offer {
                None => CatalogEvaluation::Absent,
                Some(offer) => {
                    if let (Some(why), None) = (&no_start, &start_fault) {
                        start_fault = Some((considered.len(), why));
                    }
                    CatalogEvaluation::Judged(evaluate(offer, &rules))
                }
            }
        };
        considered.push(CatalogResult {
            catalog: catalog.name.clone(),
            priority: catalog.priority,
            state,
        });
        offers.push(offer);
    }
    let decision = decide(&considered);
    if let Some((at, why)) = start_fault {
        let message = first_fault(request, &considered[..at], |_| true)
            .unwrap_or_else(|| texts::no_start(why));
        return Err(Refusal {
            kind: ExtensionFailureKind::Start,
            message,
            considered,
            rivals: vec![],
        });
    }
    // An unreadable catalog can have any bundle. It cannot win against a bundle that is not
    // deprecated and comes from a catalog of higher priority.
    let is_outranked = |other: &CatalogResult| match decision {
        Decision::One { at, deprecated } => !deprecated && other.priority < considered[at].priority,
        Decision::None | Decision::Many(_) => false,
    };
    if let Some(message) = first_fault(request, &considered, |considered| !is_outranked(considered))
    {
        let rivals = decision.catalogs();
        return Err(Refusal {
            kind: ExtensionFailureKind::Unreadable,
            message,
            considered,
            rivals,
        });
    }
    match decision {
        Decision::One { at, .. } => {
            let offer = offers.swap_remove(at);
            validate(at, considered, offer.as_deref())
        }
        Decision::None => {
            let message = texts::undecided(request, installed, &[]);
            Err(Refusal {
                kind: ExtensionFailureKind::NotFound,
                message,
                considered,
                rivals: vec![],
            })
        }
        Decision::Many(rivals) => {
            let names: Vec<&str> = rivals.iter().map(|&at| &*considered[at].catalog).collect();
            let message = texts::undecided(request, installed, &names);
            Err(Refusal { kind: ExtensionFailureKind::Ambiguous, message, considered, rivals })
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
            Self::Many(rivals) => rivals,
        }
    }
}

fn decide(considered: &[CatalogResult]) -> Decision {
    let picks = || {
        let best = |(at, considered): (usize, &CatalogResult)| {
            Some((at, considered.priority, considered.best()?.deprecated))
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
fn first_fault(
    request: &ExtensionRequest,
    considered: &[CatalogResult],
    is_relevant: impl Fn(&CatalogResult) -> bool,
) -> Option<String> {
    considered.iter().filter(|considered| is_relevant(considered)).find_map(|considered| {
        Some(texts::unreadable(&request.package, &considered.catalog, considered.fault()?))
    })
}

/// Validates the best bundle. If it is not valid, no other bundle takes its place: the user did not
/// ask for that one.
fn validate(
    at: usize,
    considered: Vec<CatalogResult>,
    offer: Option<&PackageContent>,
) -> Result<ExtensionChoice, Refusal> {
    let best = considered[at].best().zip(offer);
    let (kind, message) = match best.map(|(best, offer)| (best, offer.at(best.at), offer)) {
        Some((best, bundle, offer)) => match (&best.version, &bundle.dependency) {
            (Ok(version), None) => {
                return Ok(ExtensionChoice {
                    catalog: considered[at].catalog.clone(),
                    bundle: bundle.name.clone(),
                    version: version.clone(),
                    image: bundle.image.clone(),
                    deprecation: offer.deprecation(),
                    considered,
                });
            }
            (Ok(_), Some(property)) => {
                (ExtensionFailureKind::Dependency, texts::dependency(&bundle.name, property))
            }
            (Err(why), _) => (ExtensionFailureKind::Version, texts::no_version(&bundle.name, why)),
        },
        None => (ExtensionFailureKind::NotFound, String::new()),
    };
    Err(Refusal { kind, message, considered, rivals: vec![at] })
}
