//! Deletion marks on an object that is not deleted yet.

use super::options::{DeleteOptions, Propagation};
use crate::handlers::crds;
use crate::server::ApiServer;
use jiff::{SignedDuration, Timestamp};
use mainstay_kinds::{Dependents, KindRow};
use mainstay_object::Object;

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// An object with its deletion marks.
pub(super) struct MarkedObject {
    pub(super) object: Object,
    /// Whether the marks must be stored before the deletion; pods need this.
    pub(super) graceful: bool,
    /// Whether its grace period delays the deletion.
    pub(super) held: bool,
}

/// The object with its deletion marks; none if it is marked already and nothing changes.
pub(super) fn mark_for_deletion(
    server: &ApiServer,
    row: &KindRow,
    old: &Object,
    options: &DeleteOptions,
) -> Option<MarkedObject> {
    let mut object = old.clone();
    let (mut graceful, mut held) = (false, false);
    let deletion = row.strategy.deletion();
    if deletion.has_grace_period {
        match grace_period(server.clock.now(), old, options.grace) {
            GracePeriod::Expired => {}
            GracePeriod::Unchanged => return None,
            GracePeriod::Set { end, seconds } => {
                object.set(&["metadata", "deletionTimestamp"], rfc3339(end).into());
                object.set(&["metadata", "deletionGracePeriodSeconds"], seconds.into());
                (graceful, held) = (true, seconds > 0);
            }
        }
    }
    if deletion.dependents != Dependents::Ignored {
        decide_dependents(deletion.dependents, old, &mut object, options);
    }
    if old.is_terminating() {
        // Only CRDs are marked without it.
        if &*row.storage == crds::STORAGE {
            object.set(&["metadata", "deletionGracePeriodSeconds"], 0.into());
        }
        return Some(MarkedObject { object, graceful, held });
    }
    if !graceful {
        let now = server.clock.now_rfc3339();
        object.set(&["metadata", "deletionTimestamp"], now.into());
    }
    // The deletion of a CRD has no grace period and no new generation.
    if crds::is_crd(row) {
        crds::mark_terminating(&mut object, &server.clock.now_rfc3339());
    } else if let Some(mark) = row.strategy.deletion_mark() {
        mark(&mut object);
    } else {
        if !graceful && !mainstay_fault::is_on("deletions-have-no-grace") {
            object.set(&["metadata", "deletionGracePeriodSeconds"], 0.into());
        }
        if old.generation() > 0 {
            object.set(&["metadata", "generation"], (old.generation() + 1).into());
        }
    }
    Some(MarkedObject { object, graceful, held })
}

/// Whether finalizers delay the deletion: those of the object, or others that its kind has.
pub(in crate::handlers) fn is_held(row: &KindRow, object: &Object) -> bool {
    object.finalizers().next().is_some() || row.strategy.holds_deletion(object)
}

/// Records the treatment of dependents as a finalizer.
fn decide_dependents(
    default: Dependents,
    old: &Object,
    object: &mut Object,
    options: &DeleteOptions,
) {
    let undecided = || !old.finalizers().any(|finalizer| matches!(finalizer, ORPHAN | FOREGROUND));
    let default = default == Dependents::Orphaned && undecided();
    let Some(propagation) = options.propagation.or(default.then_some(Propagation::Orphan)) else {
        return;
    };
    let mut finalizers: Vec<&str> =
        old.finalizers().filter(|finalizer| !matches!(*finalizer, ORPHAN | FOREGROUND)).collect();
    match propagation {
        Propagation::Orphan => finalizers.push(ORPHAN),
        Propagation::Foreground if mainstay_fault::is_on("foreground-is-background") => {}
        Propagation::Foreground => finalizers.push(FOREGROUND),
        Propagation::Background => {}
    }
    if finalizers.is_empty() {
        object.remove(&["metadata", "finalizers"]);
    } else {
        object.set(&["metadata", "finalizers"], finalizers.into());
    }
}

/// The effect of a deletion on the grace period of a pod.
#[derive(Debug, PartialEq, Eq)]
enum GracePeriod {
    /// The grace period is over.
    Expired,
    /// The grace period is unchanged.
    Unchanged,
    /// The grace period ends at this time.
    Set { end: Timestamp, seconds: i64 },
}

/// The grace period of a pod. A second deletion may only shorten it.
fn grace_period(now: Timestamp, pod: &Object, requested: Option<i64>) -> GracePeriod {
    let requested = requested.map(|seconds| if seconds < 0 { 1 } else { seconds });
    if pod.is_terminating() {
        let previous_seconds =
            pod.i64(&["metadata", "deletionGracePeriodSeconds"]).unwrap_or_default();
        if previous_seconds == 0 {
            return GracePeriod::Expired;
        }
        let Some(mut seconds) = requested.filter(|seconds| *seconds < previous_seconds) else {
            return GracePeriod::Unchanged;
        };
        let marked_at = pod.str(&["metadata", "deletionTimestamp"]).unwrap_or_default();
        let marked_at: Timestamp = marked_at.parse().unwrap_or(now);
        let mut end = after(marked_at, seconds - previous_seconds);
        if end < now {
            end = now;
            // The kubelet notices the shorter period.
            seconds = seconds.min(1);
        }
        return GracePeriod::Set { end, seconds };
    }
    let default = || pod.i64(&["spec", "terminationGracePeriodSeconds"]).unwrap_or_default();
    let is_running = pod.str(&["spec", "nodeName"]).is_some_and(|node| !node.is_empty())
        && !matches!(pod.str(&["status", "phase"]), Some("Succeeded" | "Failed"));
    let seconds = match requested.unwrap_or_else(default) {
        _ if !is_running => 0,
        seconds if seconds < 0 => 1,
        seconds => seconds,
    };
    GracePeriod::Set { end: after(now, seconds), seconds }
}

fn after(time: Timestamp, seconds: i64) -> Timestamp {
    time.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(time)
}

fn rfc3339(time: Timestamp) -> String {
    mainstay_clock::rfc3339(time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + seconds).unwrap()
    }

    fn pod(value: serde_json::Value) -> Object {
        Object::from_value(value).unwrap()
    }

    #[test]
    fn only_a_running_pod_on_a_node_has_a_grace_period() {
        let spec = json!({"nodeName": "n", "terminationGracePeriodSeconds": 30});
        let running = json!({"spec": spec, "status": {"phase": "Running"}});
        let finished = json!({"spec": spec, "status": {"phase": "Succeeded"}});
        let waiting = json!({"spec": {"terminationGracePeriodSeconds": 30}});
        for (value, requested, seconds) in [
            (&running, None, 30),
            (&running, Some(5), 5),
            (&running, Some(0), 0),
            (&running, Some(-7), 1),
            (&finished, None, 0),
            (&waiting, Some(9), 0),
        ] {
            let expected = GracePeriod::Set { end: at(seconds), seconds };
            assert_eq!(
                grace_period(at(0), &pod(value.clone()), requested),
                expected,
                "{requested:?}"
            );
        }
    }

    #[test]
    fn a_second_deletion_only_shortens_the_grace_period() {
        let marked_pod = |seconds: i64| {
            pod(json!({"metadata": {
                "deletionTimestamp": at(30).to_string(), "deletionGracePeriodSeconds": seconds,
            }}))
        };
        for (requested, expected) in [
            (None, GracePeriod::Unchanged),
            (Some(30), GracePeriod::Unchanged),
            (Some(40), GracePeriod::Unchanged),
            (Some(20), GracePeriod::Set { end: at(20), seconds: 20 }),
            (Some(3), GracePeriod::Set { end: at(5), seconds: 1 }),
            (Some(0), GracePeriod::Set { end: at(5), seconds: 0 }),
        ] {
            assert_eq!(grace_period(at(5), &marked_pod(30), requested), expected, "{requested:?}");
        }
        assert_eq!(grace_period(at(5), &marked_pod(0), Some(9)), GracePeriod::Expired);
    }
}
