//! The original's texts for constraints and lists of errors.

use crate::candidates::Candidates;
use crate::part_search::UnsatCore;
use crate::problem::{Constraint, Reason, Rule, Subject, Var};
use rustc_hash::FxHashSet;

/// `A, B and C`, or with another last word.
fn list(names: &[String], last: &str) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}

/// Several errors as one text; equal ones count once.
pub(crate) fn aggregate(errors: &[String]) -> String {
    let mut seen = FxHashSet::default();
    let distinct: Vec<&str> =
        errors.iter().map(String::as_str).filter(|error| seen.insert(*error)).collect();
    match distinct.as_slice() {
        [one] => (*one).to_owned(),
        all => format!("[{}]", all.join(", ")),
    }
}

/// How many reasons are told where it is not known which of them are needed.
const COARSE: usize = 100;

/// What the reasons of a contradiction say, in order.
pub(crate) fn reasons(world: &Candidates<'_>, core: &UnsatCore) -> Vec<String> {
    let told = if core.coarse { COARSE } else { usize::MAX };
    let all = &world.problem.constraints;
    let mut texts: Vec<String> =
        core.reasons.iter().take(told).map(|at| constraint(world, &all[*at])).collect();
    texts.sort();
    let more = core.reasons.len().saturating_sub(told);
    if more > 0 {
        texts.push(format!("and {more} more reasons"));
    }
    texts
}

/// The message of a contradiction, of its reasons in order.
pub(crate) fn unsatisfiable(reasons: &[String]) -> String {
    let mut message = "constraints not satisfiable".to_owned();
    if !reasons.is_empty() {
        message.push_str(": ");
        message.push_str(&reasons.join(", "));
    }
    message
}

/// What a constraint says.
pub(crate) fn constraint(world: &Candidates<'_>, constraint: &Constraint) -> String {
    let names = |vars: &[Var]| vars.iter().map(|var| world.identifier(*var)).collect::<Vec<_>>();
    let sorted = |vars: &[Var]| {
        let mut names = names(vars);
        names.sort();
        names
    };
    let subject = constraint.subject.map(|var| (var, world.problem.subjects[var.index()]));
    let subscription = match subject {
        Some((_, Subject::Subscription(at))) => &*world.subscriptions[at].name,
        _ => "",
    };
    let bundle = match subject {
        Some((_, Subject::Bundle(entry))) => &*world.entry(entry).0.name,
        _ => "",
    };
    let identifier = || subject.map(|(var, _)| world.identifier(var)).unwrap_or_default();
    match (&constraint.rule, &constraint.reason) {
        (_, Reason::Exists) => format!("subscription {subscription} exists"),
        (_, Reason::NoCandidates(text)) => text.clone(),
        (_, Reason::Unsubscribed) => {
            format!("clusterserviceversion {bundle} exists and is not referenced by a subscription")
        }
        (_, Reason::SubscriptionUnmet(at)) => {
            let subscription = &world.subscriptions[*at].name;
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
                Some((_, Subject::Bundle(entry))) => world.entry(entry).1.requirements.get(*at),
                _ => None,
            };
            let text = requirement.map(ToString::to_string).unwrap_or_default();
            format!("bundle {bundle} requires an operator {text}")
        }
        (Rule::Conflict(other), _) => {
            format!("{} conflicts with {}", identifier(), world.identifier(*other))
        }
        (Rule::AtMostOne(vars), Reason::OneProvider(api)) => {
            format!("{} provide {api}", list(&sorted(vars), "and"))
        }
        (Rule::AtMostOne(vars), Reason::OneOfPackage(package)) => {
            format!("{} originate from package {package}", list(&sorted(vars), "and"))
        }
        // No other combination is made.
        _ => identifier(),
    }
}
