//! The marks of a deletion on an object that stays for now.

use super::options::{Options, Propagation};
use crate::handlers::definitions;
use crate::server::ApiServer;
use jiff::{SignedDuration, Timestamp};
use mainstay_kinds::{Dependents, KindRow};
use mainstay_object::Object;

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// An object with the marks of its deletion.
pub(super) struct Marked {
    pub(super) object: Object,
    /// Whether it must be seen with its marks before it goes: pods are.
    pub(super) graceful: bool,
    /// Whether its grace period holds it.
    pub(super) held: bool,
}

/// The object with the marks of its deletion; none if it is marked already and nothing changes.
pub(super) fn marked(
    server: &ApiServer,
    row: &KindRow,
    old: &Object,
    options: &Options,
) -> Option<Marked> {
    let mut object = old.clone();
    let (mut graceful, mut held) = (false, false);
    let deletion = row.strategy.deletion();
    if deletion.has_grace_period {
        match grace(server.clock.now(), old, options.grace) {
            Grace::Goes => {}
            Grace::Pending => return None,
            Grace::Set { end, seconds } => {
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
        // Only definitions are marked without it.
        if &*row.storage == definitions::STORAGE {
            object.set(&["metadata", "deletionGracePeriodSeconds"], 0.into());
        }
        return Some(Marked { object, graceful, held });
    }
    if !graceful {
        let now = server.clock.now_rfc3339();
        object.set(&["metadata", "deletionTimestamp"], now.into());
    }
    // Definitions have a deletion of their own, too: no grace, no new generation.
    if definitions::is(row) {
        definitions::hold(&mut object, &server.clock.now_rfc3339());
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
    Some(Marked { object, graceful, held })
}

/// Whether finalizers hold an object: its own, or others that its kind has.
pub(in crate::handlers) fn is_held(row: &KindRow, object: &Object) -> bool {
    object.finalizers().next().is_some() || row.strategy.holds_deletion(object)
}

/// Writes down how dependents fare.
fn decide_dependents(usual: Dependents, old: &Object, object: &mut Object, options: &Options) {
    let undecided = || !old.finalizers().any(|one| matches!(one, ORPHAN | FOREGROUND));
    let usual = usual == Dependents::Orphaned && undecided();
    let Some(propagation) = options.propagation.or(usual.then_some(Propagation::Orphan)) else {
        return;
    };
    let mut finalizers: Vec<&str> =
        old.finalizers().filter(|one| !matches!(*one, ORPHAN | FOREGROUND)).collect();
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

/// What a deletion does to a pod's time to end.
#[derive(Debug, PartialEq, Eq)]
enum Grace {
    /// It has had its time.
    Goes,
    /// It has as much time as before.
    Pending,
    /// It ends by then.
    Set { end: Timestamp, seconds: i64 },
}

/// How long a pod may take to end. A second deletion may only shorten the time.
fn grace(now: Timestamp, pod: &Object, asked: Option<i64>) -> Grace {
    let asked = asked.map(|seconds| if seconds < 0 { 1 } else { seconds });
    if pod.is_terminating() {
        let had = pod.i64(&["metadata", "deletionGracePeriodSeconds"]).unwrap_or_default();
        if had == 0 {
            return Grace::Goes;
        }
        let Some(mut seconds) = asked.filter(|seconds| *seconds < had) else {
            return Grace::Pending;
        };
        let marked = pod.str(&["metadata", "deletionTimestamp"]).unwrap_or_default();
        let marked: Timestamp = marked.parse().unwrap_or(now);
        let mut end = after(marked, seconds - had);
        if end < now {
            end = now;
            // Whoever ends the pod gets to see that it is asked to hurry.
            seconds = seconds.min(1);
        }
        return Grace::Set { end, seconds };
    }
    let usual = || pod.i64(&["spec", "terminationGracePeriodSeconds"]).unwrap_or_default();
    let waits = pod.str(&["spec", "nodeName"]).is_some_and(|node| !node.is_empty())
        && !matches!(pod.str(&["status", "phase"]), Some("Succeeded" | "Failed"));
    let seconds = match asked.unwrap_or_else(usual) {
        _ if !waits => 0,
        seconds if seconds < 0 => 1,
        seconds => seconds,
    };
    Grace::Set { end: after(now, seconds), seconds }
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
    fn a_pod_on_a_node_gets_its_time_and_others_none() {
        let spec = json!({"nodeName": "n", "terminationGracePeriodSeconds": 30});
        let running = json!({"spec": spec, "status": {"phase": "Running"}});
        let done = json!({"spec": spec, "status": {"phase": "Succeeded"}});
        let waiting = json!({"spec": {"terminationGracePeriodSeconds": 30}});
        for (value, asked, seconds) in [
            (&running, None, 30),
            (&running, Some(5), 5),
            (&running, Some(0), 0),
            (&running, Some(-7), 1),
            (&done, None, 0),
            (&waiting, Some(9), 0),
        ] {
            let expected = Grace::Set { end: at(seconds), seconds };
            assert_eq!(grace(at(0), &pod(value.clone()), asked), expected, "{asked:?}");
        }
    }

    #[test]
    fn a_second_deletion_only_shortens_the_time() {
        let marked = |seconds: i64| {
            pod(json!({"metadata": {
                "deletionTimestamp": at(30).to_string(), "deletionGracePeriodSeconds": seconds,
            }}))
        };
        for (asked, expected) in [
            (None, Grace::Pending),
            (Some(30), Grace::Pending),
            (Some(40), Grace::Pending),
            (Some(20), Grace::Set { end: at(20), seconds: 20 }),
            (Some(3), Grace::Set { end: at(5), seconds: 1 }),
            (Some(0), Grace::Set { end: at(5), seconds: 0 }),
        ] {
            assert_eq!(grace(at(5), &marked(30), asked), expected, "{asked:?}");
        }
        assert_eq!(grace(at(5), &marked(0), Some(9)), Grace::Goes);
    }
}
