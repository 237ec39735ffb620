//! Extension failure explanations: the cause tree and the repairs of a failed resolution.

use super::bundle_match::{BundleMatch, UnmetCriteria, follows_edges};
use super::dependency::DEPENDENCIES_ANNOTATION;
use super::pick::{
    CatalogEvaluation, CatalogResult, ExtensionFailure, ExtensionFailureKind, UnexplainedFailure,
};
use super::repair::repairs;
use super::request::{ExtensionRequest, InputCatalog, InstalledExtensionBundle};
use mainstay_cause::Cause;
use mainstay_version::VersionConstraint;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// How many bundles of a group the explanation names.
const MAX_BUNDLES: usize = 3;
/// How many catalogs the explanation names.
const MAX_CATALOGS: usize = 12;

/// Adds the cause and the repairs to a failure.
pub(super) fn failure(
    request: &ExtensionRequest,
    installed: Option<&InstalledExtensionBundle>,
    catalogs: &[InputCatalog<'_>],
    failure: UnexplainedFailure,
) -> ExtensionFailure {
    let repairs = repairs(request, installed, catalogs, &failure);
    let mut cause = tree(request, installed, &failure);
    for repair in &repairs {
        cause = cause.remedy(repair.to_string());
    }
    let UnexplainedFailure { kind, message, considered, .. } = failure;
    ExtensionFailure { kind, message, cause, repairs, considered }
}

fn tree(
    request: &ExtensionRequest,
    installed: Option<&InstalledExtensionBundle>,
    failure: &UnexplainedFailure,
) -> Cause {
    let package = &request.package;
    let catalog_at = |at: usize| &failure.considered[at];
    match failure.kind {
        ExtensionFailureKind::Selector => Cause::new("the selector cannot be read")
            .because(Cause::new(text_after(&failure.message, "invalid: ")))
            .remedy("correct `spec.source.catalog.selector`"),
        ExtensionFailureKind::Range => {
            Cause::new(format!("version `{}` is not a range", request.version))
                .because(Cause::new(text_after(&failure.message, "is invalid: ")))
                .remedy("correct `spec.source.catalog.version`")
        }
        ExtensionFailureKind::InstalledVersion => {
            let version = installed.map(|bundle| bundle.version.as_str()).unwrap_or_default();
            Cause::new(format!("no update can start at the installed version `{version}`"))
                .because(Cause::new(text_after(&failure.message, "upgrade edges: ")))
        }
        ExtensionFailureKind::Unreadable => {
            Cause::new(format!("a catalog that may have package `{package}` cannot be read"))
                .because_all(catalogs(request, installed, failure))
                .remedy("repair the catalog, or disable it (`spec.availabilityMode: Unavailable`)")
        }
        ExtensionFailureKind::Ambiguous => {
            Cause::new(format!("several catalogs could be the source of package `{package}`"))
                .because_all(catalogs(request, installed, failure))
        }
        ExtensionFailureKind::NotFound => {
            Cause::new(format!("no bundle of package `{package}` fits"))
                .because_all(no_version(request))
                .because_all(catalogs(request, installed, failure))
        }
        ExtensionFailureKind::Version | ExtensionFailureKind::Dependency => {
            let best = failure
                .competing_catalogs
                .first()
                .and_then(|&at| Some((catalog_at(at), catalog_at(at).best()?)));
            let (catalog, bundle) = best
                .map(|(considered, best)| (&*considered.catalog, &*best.bundle))
                .unwrap_or_default();
            let why = if failure.kind == ExtensionFailureKind::Version {
                "its version cannot be read: ".to_owned() + &text_after(&failure.message, ": ")
            } else {
                // The message ends with the property.
                let property = failure.message.split('"').rev().nth(1).unwrap_or_default();
                format!(
                    "it requires other operators by `{property}`, which OLM v1 does not support"
                )
            };
            let cause =
                Cause::new(format!("bundle `{bundle}` of catalog `{catalog}` cannot be installed"))
                    .because(Cause::new(why));
            if failure.kind == ExtensionFailureKind::Version {
                return cause;
            }
            cause.remedy(format!(
                "let the controller of Mainstay install the bundle once its dependencies are satisfied: \
                 annotate the ClusterExtension with `{DEPENDENCIES_ANNOTATION}=Require`"
            ))
        }
    }
}

/// The cause that the requested range is empty, if it is.
fn no_version(request: &ExtensionRequest) -> Option<Cause> {
    let range = VersionConstraint::parse(&request.version).ok()?;
    let text = format!("no version at all is in `{}`", request.version);
    range.set().is_empty().then(|| Cause::new(text))
}

/// The rest of upstream's message after a part of it.
fn text_after(message: &str, part: &str) -> String {
    message.split_once(part).map_or(message, |(_, rest)| rest).to_owned()
}

fn catalogs(
    request: &ExtensionRequest,
    installed: Option<&InstalledExtensionBundle>,
    failure: &UnexplainedFailure,
) -> Vec<Cause> {
    let considered = &failure.considered;
    if considered.is_empty() {
        return vec![Cause::new("there is no catalog")];
    }
    let mut causes: Vec<Cause> = considered
        .iter()
        .enumerate()
        .map(|(at, result)| {
            catalog(request, installed, result, failure.competing_catalogs.contains(&at))
        })
        .take(MAX_CATALOGS)
        .collect();
    if considered.len() > MAX_CATALOGS {
        causes.push(Cause::new(format!("{} more catalogs", considered.len() - MAX_CATALOGS)));
    }
    causes
}

fn catalog(
    request: &ExtensionRequest,
    installed: Option<&InstalledExtensionBundle>,
    considered: &CatalogResult,
    competes: bool,
) -> Cause {
    let name = format!("catalog `{}`", considered.catalog);
    match &considered.state {
        CatalogEvaluation::NotSelected => {
            let selector =
                request.selector().map(|selector| selector.to_string()).unwrap_or_default();
            Cause::new(format!("{name} does not fit the selector `{selector}`"))
        }
        CatalogEvaluation::Unavailable => Cause::new(format!("{name} is disabled (`Unavailable`)")),
        CatalogEvaluation::Unreadable(why) => {
            Cause::new(format!("{name} cannot be read")).because(Cause::new(why))
        }
        CatalogEvaluation::Absent => Cause::new(format!("{name} does not have the package")),
        CatalogEvaluation::Evaluated(bundle_matches) if bundle_matches.is_empty() => {
            Cause::new(format!("{name} has no bundle of the package"))
        }
        CatalogEvaluation::Evaluated(bundle_matches) => match considered.best() {
            Some(best) => {
                let priority = considered.priority;
                let bundle = &best.bundle;
                let old = if best.deprecated { ", which is deprecated" } else { "" };
                let out = if competes { "" } else { ", but others are not deprecated" };
                Cause::new(format!("{name} of priority {priority} has `{bundle}`{old}{out}"))
            }
            None => Cause::new(format!("{name} has {}", count(bundle_matches.len(), "bundle")))
                .because_all(groups(request, installed, bundle_matches)),
        },
    }
}

/// Groups of bundles that do not fit for the same reasons; those with the fewest reasons first.
fn groups(
    request: &ExtensionRequest,
    installed: Option<&InstalledExtensionBundle>,
    bundle_matches: &[BundleMatch],
) -> Vec<Cause> {
    let mut groups: BTreeMap<(u8, UnmetCriteria), Vec<&BundleMatch>> = BTreeMap::new();
    for bundle_match in bundle_matches {
        groups
            .entry((bundle_match.unmet.count(), bundle_match.unmet))
            .or_default()
            .push(bundle_match);
    }
    let group = |((_, unmet), bundle_matches): ((u8, UnmetCriteria), Vec<&BundleMatch>)| {
        let names: Vec<String> = bundle_matches
            .iter()
            .take(MAX_BUNDLES)
            .map(|bundle_match| format!("`{}`", bundle_match.bundle))
            .collect();
        let mut text = names.join(", ");
        let more = bundle_matches.len() - names.len();
        if more > 0 {
            // Writing to a text cannot fail.
            let _ = write!(text, " and {more} more");
        }
        text.push_str(if bundle_matches.len() == 1 { " is " } else { " are " });
        text.push_str(&reasons(request, installed, unmet));
        Cause::new(text)
    };
    groups.into_iter().map(group).collect()
}

fn reasons(
    request: &ExtensionRequest,
    installed: Option<&InstalledExtensionBundle>,
    unmet: UnmetCriteria,
) -> String {
    let mut reasons = Vec::new();
    if unmet.channel {
        let channels: Vec<String> =
            request.channels.iter().map(|channel| format!("`{channel}`")).collect();
        reasons.push(format!("not in channel {}", channels.join(" or ")));
    }
    if unmet.range {
        reasons.push(format!("outside version `{}`", request.version));
    }
    if let Some(installed) = installed.filter(|_| unmet.successor && follows_edges(request)) {
        reasons.push(format!("no successor of the installed `{}`", installed.name));
    }
    match reasons.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

fn count(number: usize, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}
