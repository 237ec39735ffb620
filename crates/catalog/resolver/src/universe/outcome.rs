//! JSON of resolution outcomes.

use crate::{Failure, FailureKind, Outcome, Repair};
use mainstay_cause::Cause;
use serde_json::{Map, Value, json};

/// An outcome in the format of the recorded outcomes.
///
/// `install` is in the order of names, `resolved` in the order of the outcome. With a failure,
/// `error` and `errorKind` of the [`Outcome::summary`] come with the results of the other parts,
/// without empty lists.
pub fn to_json(outcome: &Outcome) -> Value {
    let mut all = Map::new();
    if let Some(summary) = &outcome.summary {
        all.insert("error".to_owned(), json!(summary.message));
        all.insert("errorKind".to_owned(), json!(kind(summary.kind)));
    }
    let mut put = |name: &str, list: Vec<Value>, always: bool| {
        if always || !list.is_empty() {
            all.insert(name.to_owned(), Value::Array(list));
        }
    };
    let complete = outcome.failures.is_empty();
    put("resolved", outcome.resolved.iter().map(chosen).collect(), complete);
    let installs =
        outcome.installs.iter().filter_map(|install| outcome.resolved.get(install.chosen));
    let mut names: Vec<&str> = installs.map(|chosen| &*chosen.name).collect();
    names.sort_unstable();
    put("install", names.into_iter().map(|name| json!(name)).collect(), false);
    let new = outcome.new_subscriptions.iter().map(|subscription| {
        json!({
            "name": subscription.name, "package": subscription.package, "channel": subscription.channel,
            "source": subscription.catalog.name, "sourceNamespace": subscription.catalog.namespace,
            "startingCSV": subscription.starting_csv,
        })
    });
    put("newSubscriptions", new.collect(), false);
    let updated = outcome.updated_subscriptions.iter().map(
        |subscription| json!({"name": subscription.name, "currentCSV": subscription.current_csv}),
    );
    put("updatedSubscriptions", updated.collect(), false);
    Value::Object(all)
}

/// An outcome as by [`to_json`], with all failures and their explanations in `failures`, if it has
/// any.
pub fn report(outcome: &Outcome) -> Value {
    let mut value = to_json(outcome);
    if !outcome.failures.is_empty() {
        value["failures"] = outcome.failures.iter().map(failure_json).collect();
    }
    value
}

/// The name of the kind in recorded outcomes.
const fn kind(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::NotSatisfiable => "NotSatisfiable",
        FailureKind::Error => "Other",
    }
}

/// A failure with its explanation and its repairs.
pub fn failure_json(failure: &Failure) -> Value {
    let repair =
        |repair: &Repair| json!({"what": repair.to_string(), "certain": repair.is_certain()});
    json!({
        "error": failure.message,
        "errorKind": kind(failure.kind),
        "subscriptions": failure.subscriptions,
        "explanation": cause_json(&failure.cause),
        "repairs": failure.repairs.iter().map(repair).collect::<Vec<_>>(),
    })
}

fn chosen(chosen: &crate::Chosen) -> Value {
    let mut value = json!({
        "name": chosen.name, "package": chosen.package, "channel": chosen.channel,
        "catalog": chosen.catalog.name, "catalogNamespace": chosen.catalog.namespace,
    });
    if let Some(version) = &chosen.version {
        value["version"] = json!(version);
    }
    if let Some(replaces) = &chosen.replaces {
        value["replaces"] = json!(replaces);
    }
    value
}

/// A tree of causes: `what`, and where there are any `place`, `because` and `remedies`.
pub fn cause_json(cause: &Cause) -> Value {
    let mut value = json!({"what": cause.what()});
    if let Some(place) = cause.location() {
        value["place"] = json!(place.to_string());
    }
    if !cause.children().is_empty() {
        value["because"] = cause.children().iter().map(cause_json).collect();
    }
    if !cause.remedies().is_empty() {
        value["remedies"] = json!(cause.remedies());
    }
    value
}
