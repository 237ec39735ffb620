//! Message texts of upstream for constraints and for lists of errors.

use crate::candidates::Candidates;
use crate::part_search::UnsatCore;
use crate::problem::{Constraint, Reason, Rule, Subject, Var};
use rustc_hash::FxHashSet;

/// `A, B and C`, or with another conjunction.
fn list(names: &[String], last: &str) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}

/// Several errors as one text, without repetitions.
pub(crate) fn aggregate(errors: &[String]) -> String {
    let mut seen = FxHashSet::default();
    let distinct: Vec<&str> =
        errors.iter().map(String::as_str).filter(|error| seen.insert(*error)).collect();
    match distinct.as_slice() {
        [one] => (*one).to_owned(),
        all => format!("[{}]", all.join(", ")),
    }
}

/// How many constraints the message names of a core that is not minimal.
const MAX_COARSE_REASONS: usize = 100;

/// The sorted texts of the constraints of an unsatisfiable core.
pub(crate) fn reasons(candidates: &Candidates<'_>, core: &UnsatCore) -> Vec<String> {
    let limit = if core.coarse { MAX_COARSE_REASONS } else { usize::MAX };
    let all = &candidates.problem.constraints;
    let mut texts: Vec<String> =
        core.reasons.iter().take(limit).map(|at| constraint(candidates, &all[*at])).collect();
    texts.sort();
    let more = core.reasons.len().saturating_sub(limit);
    if more > 0 {
        texts.push(format!("and {more} more reasons"));
    }
    texts
}

/// The message of a contradiction with these texts of constraints.
pub(crate) fn unsatisfiable(reasons: &[String]) -> String {
    let mut message = "constraints not satisfiable".to_owned();
    if !reasons.is_empty() {
        message.push_str(": ");
        message.push_str(&reasons.join(", "));
    }
    message
}

/// The text of a constraint.
pub(crate) fn constraint(candidates: &Candidates<'_>, constraint: &Constraint) -> String {
    let names =
        |vars: &[Var]| vars.iter().map(|var| candidates.identifier(*var)).collect::<Vec<_>>();
    let sorted = |vars: &[Var]| {
        let mut names = names(vars);
        names.sort();
        names
    };
    let subject = constraint.subject.map(|var| (var, candidates.problem.subjects[var.index()]));
    let subscription = match subject {
        Some((_, Subject::Subscription(at))) => &*candidates.subscriptions[at].name,
        _ => "",
    };
    let bundle = match subject {
        Some((_, Subject::Bundle(entry))) => &*candidates.entry(entry).0.name,
        _ => "",
    };
    let identifier = || subject.map(|(var, _)| candidates.identifier(var)).unwrap_or_default();
    match (&constraint.rule, &constraint.reason) {
        (_, Reason::Exists) => format!("subscription {subscription} exists"),
        (_, Reason::NoCandidates(text)) => text.clone(),
        (_, Reason::Unsubscribed) => {
            format!("clusterserviceversion {bundle} exists and is not referenced by a subscription")
        }
        (_, Reason::SubscriptionUnmet(at)) => {
            let subscription = &candidates.subscriptions[*at].name;
            format!(
                "clusterserviceversion {bundle} exists and stays because subscription \
                 {subscription} cannot be resolved"
            )
        }
        (_, Reason::Forbidden(message)) => message.clone(),
        (_, Reason::Kubernetes(least, there)) => {
            let bundle = identifier();
            format!("bundle {bundle} needs Kubernetes {least} or later, the cluster has {there}")
        }
        (_, Reason::DemandExists) => format!("package {} is demanded", identifier()),
        (Rule::Dependency(vars), Reason::DemandWants) => {
            let package = identifier();
            match vars.len() {
                0 => format!("no operators found for the demanded package {package}"),
                _ => format!(
                    "demand for package {package} requires at least one of {}",
                    list(&names(vars), "or")
                ),
            }
        }
        (_, Reason::Deprecated) => format!("bundle {} is deprecated", identifier()),
        (Rule::Dependency(vars), Reason::SubscriptionWants) => match vars.len() {
            0 => format!("no operators found matching the criteria of subscription {subscription}"),
            1 => format!("subscription {subscription} requires {}", list(&names(vars), "or")),
            _ => format!(
                "subscription {subscription} requires at least one of {}",
                list(&names(vars), "or")
            ),
        },
        (_, Reason::Required(at)) => {
            let requirement = match subject {
                Some((_, Subject::Bundle(entry))) => {
                    candidates.entry(entry).1.requirements.get(*at)
                }
                _ => None,
            };
            let text = requirement.map(ToString::to_string).unwrap_or_default();
            format!("bundle {bundle} requires an operator {text}")
        }
        (Rule::Conflict(other), _) => {
            format!("{} conflicts with {}", identifier(), candidates.identifier(*other))
        }
        (Rule::AtMostOne(vars), Reason::OneProvider(api)) => {
            format!("{} provide {api}", list(&sorted(vars), "and"))
        }
        (Rule::AtMostOne(vars), Reason::OneOfPackage(package)) => {
            format!("{} originate from package {package}", list(&sorted(vars), "and"))
        }
        // The candidates module states no other combination.
        _ => identifier(),
    }
}
