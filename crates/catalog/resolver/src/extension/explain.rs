//! Extension failure explanations: the cause tree and the repairs of a failed resolution.

use super::bundle_match::{BundleMatch, UnmetCriteria, follows_edges};
use super::pick::{
    CatalogEvaluation, CatalogResult, ExtensionFailure, ExtensionFailureKind, Refusal,
};
use super::repair::repairs;
use super::request::{ExtensionRequest, InputCatalog, InstalledExtension};
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
    installed: Option<&InstalledExtension>,
    catalogs: &[InputCatalog<'_>],
    refusal: Refusal,
) -> ExtensionFailure {
    let repairs = repairs(request, installed, catalogs, &refusal);
    let mut cause = tree(request, installed, &refusal);
    for repair in &repairs {
        cause = cause.remedy(repair.to_string());
    }
    let Refusal { kind, message, considered, .. } = refusal;
    ExtensionFailure { kind, message, cause, repairs, considered }
}

fn tree(
    request: &ExtensionRequest,
    installed: Option<&InstalledExtension>,
    refusal: &Refusal,
) -> Cause {
    let package = &request.package;
    let rival = |at: usize| &refusal.considered[at];
    match refusal.kind {
        ExtensionFailureKind::Selector => Cause::new("the selector cannot be read")
            .because(Cause::new(text_after(&refusal.message, "invalid: ")))
            .remedy("correct `spec.source.catalog.selector`"),
        ExtensionFailureKind::Range => {
            Cause::new(format!("version `{}` is not a range", request.version))
                .because(Cause::new(text_after(&refusal.message, "is invalid: ")))
                .remedy("correct `spec.source.catalog.version`")
        }
        ExtensionFailureKind::Start => {
            let version = installed.map(|bundle| bundle.version.as_str()).unwrap_or_default();
            Cause::new(format!("no update can start at the installed version `{version}`"))
                .because(Cause::new(text_after(&refusal.message, "upgrade edges: ")))
        }
        ExtensionFailureKind::Unreadable => {
            Cause::new(format!("a catalog that may have package `{package}` cannot be asked"))
                .because_all(catalogs(request, installed, refusal))
                .remedy("mend the catalog, or switch it off (`spec.availabilityMode: Unavailable`)")
        }
        ExtensionFailureKind::Ambiguous => {
            Cause::new(format!("several catalogs could be the source of package `{package}`"))
                .because_all(catalogs(request, installed, refusal))
        }
        ExtensionFailureKind::NotFound => {
            Cause::new(format!("no bundle of package `{package}` fits"))
                .because_all(no_version(request))
                .because_all(catalogs(request, installed, refusal))
        }
        ExtensionFailureKind::Version | ExtensionFailureKind::Dependency => {
            let best = refusal.rivals.first().and_then(|&at| Some((rival(at), rival(at).best()?)));
            let (catalog, bundle) = best
                .map(|(considered, best)| (&*considered.catalog, &*best.bundle))
                .unwrap_or_default();
            let why = if refusal.kind == ExtensionFailureKind::Version {
                "its version cannot be read: ".to_owned() + &text_after(&refusal.message, ": ")
            } else {
                // The message ends with the property.
                let property = refusal.message.split('"').rev().nth(1).unwrap_or_default();
                format!("it asks for other operators by `{property}`, which extensions cannot")
            };
            Cause::new(format!("bundle `{bundle}` of catalog `{catalog}` cannot be installed"))
                .because(Cause::new(why))
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
    installed: Option<&InstalledExtension>,
    refusal: &Refusal,
) -> Vec<Cause> {
    let considered = &refusal.considered;
    if considered.is_empty() {
        return vec![Cause::new("there is no catalog")];
    }
    let mut causes: Vec<Cause> = considered
        .iter()
        .enumerate()
        .map(|(at, considered)| {
            catalog(request, installed, considered, refusal.rivals.contains(&at))
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
    installed: Option<&InstalledExtension>,
    considered: &CatalogResult,
    rival: bool,
) -> Cause {
    let name = format!("catalog `{}`", considered.catalog);
    match &considered.state {
        CatalogEvaluation::NotSelected => {
            let selector =
                request.selector().map(|selector| selector.to_string()).unwrap_or_default();
            Cause::new(format!("{name} does not fit the selector `{selector}`"))
        }
        CatalogEvaluation::Unavailable => Cause::new(format!("{name} is switched off")),
        CatalogEvaluation::Unreadable(why) => {
            Cause::new(format!("{name} cannot be asked")).because(Cause::new(why))
        }
        CatalogEvaluation::Absent => Cause::new(format!("{name} does not have the package")),
        CatalogEvaluation::Judged(verdicts) if verdicts.is_empty() => {
            Cause::new(format!("{name} has no bundle of the package"))
        }
        CatalogEvaluation::Judged(verdicts) => match considered.best() {
            Some(best) => {
                let priority = considered.priority;
                let bundle = &best.bundle;
                let old = if best.deprecated { ", which is deprecated" } else { "" };
                let out = if rival { "" } else { ", but others are not deprecated" };
                Cause::new(format!("{name} of priority {priority} has `{bundle}`{old}{out}"))
            }
            None => Cause::new(format!("{name} has {}", count(verdicts.len(), "bundle")))
                .because_all(groups(request, installed, verdicts)),
        },
    }
}

/// Groups of bundles that do not fit for the same reasons; those with the fewest reasons first.
fn groups(
    request: &ExtensionRequest,
    installed: Option<&InstalledExtension>,
    verdicts: &[BundleMatch],
) -> Vec<Cause> {
    let mut groups: BTreeMap<(u8, UnmetCriteria), Vec<&BundleMatch>> = BTreeMap::new();
    for verdict in verdicts {
        groups.entry((verdict.unmet.count(), verdict.unmet)).or_default().push(verdict);
    }
    let group = |((_, fell), verdicts): ((u8, UnmetCriteria), Vec<&BundleMatch>)| {
        let names: Vec<String> = verdicts
            .iter()
            .take(MAX_BUNDLES)
            .map(|verdict| format!("`{}`", verdict.bundle))
            .collect();
        let mut text = names.join(", ");
        let more = verdicts.len() - names.len();
        if more > 0 {
            // Writing to a text cannot fail.
            let _ = write!(text, " and {more} more");
        }
        text.push_str(if verdicts.len() == 1 { " is " } else { " are " });
        text.push_str(&reasons(request, installed, fell));
        Cause::new(text)
    };
    groups.into_iter().map(group).collect()
}

fn reasons(
    request: &ExtensionRequest,
    installed: Option<&InstalledExtension>,
    fell: UnmetCriteria,
) -> String {
    let mut reasons = Vec::new();
    if fell.channel {
        let channels: Vec<String> =
            request.channels.iter().map(|channel| format!("`{channel}`")).collect();
        reasons.push(format!("not in channel {}", channels.join(" or ")));
    }
    if fell.range {
        reasons.push(format!("outside version `{}`", request.version));
    }
    if let Some(installed) = installed.filter(|_| fell.successor && follows_edges(request)) {
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
