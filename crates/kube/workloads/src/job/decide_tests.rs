use super::super::TRACKING;
use super::*;
use mainstay_object::NamespacedName;

const START: i64 = 1_767_225_600;

fn job(spec: &Value) -> Object {
    Object::from_value(json!({
        "metadata": {"name": "j", "namespace": "n", "uid": "j"},
        "spec": spec,
        "status": {"startTime": mainstay_clock::rfc3339(at(0))},
    }))
    .unwrap()
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(START + seconds).unwrap()
}

/// A pod of a phase, with the finalizer; `-` in front means without it, `~` means terminating.
fn pod(number: usize, phase: &str, index: Option<i64>) -> Named {
    let tracked = !phase.starts_with('-');
    let terminating = phase.starts_with('~');
    let phase = phase.trim_start_matches(['-', '~']);
    let name = format!("j-{number}");
    let mut pod = Object::from_value(json!({
        "metadata": {"name": name, "namespace": "n", "uid": name},
        "status": {"phase": phase, "containerStatuses": [
            {"name": "c", "state": {"terminated": {
                "exitCode": 3, "finishedAt": mainstay_clock::rfc3339(at(50)),
            }}},
        ]},
    }))
    .unwrap();
    if tracked {
        pod.set(&["metadata", "finalizers"], json!([TRACKING]));
    }
    if terminating {
        pod.set(&["metadata", "deletionTimestamp"], mainstay_clock::rfc3339(at(1)).into());
    }
    if let Some(index) = index {
        pod.set_annotation(super::super::COMPLETION_INDEX, index.to_string());
    }
    (NamespacedName::new("n", name), Arc::new(PodView::of(&pod)))
}

fn pods(phases: &[&str]) -> Vec<Named> {
    phases.iter().enumerate().map(|(number, phase)| pod(number, phase, None)).collect()
}

fn indexed(phases: &[(i64, &str)]) -> Vec<Named> {
    let pods = phases.iter().enumerate();
    pods.map(|(number, (index, phase))| pod(number, phase, Some(*index))).collect()
}

fn run(job: &Object, pods: &[Named], failures: u32, now: i64) -> Decision {
    decide(&Observed { job, pods, failures, now: at(now) })
}

fn kinds(decision: &Decision) -> Vec<&str> {
    let conditions = decision.status["conditions"].as_array();
    conditions.into_iter().flatten().map(|condition| condition["type"].as_str().unwrap()).collect()
}

#[test]
fn active_pods_match_parallelism_and_remaining_completions() {
    for (spec, phases, create, discard) in [
        (json!({}), vec![], 1, 0),
        (json!({"parallelism": 3, "completions": 5}), vec!["Running"], 2, 0),
        (json!({"parallelism": 3, "completions": 5}), vec!["Succeeded"; 4], 1, 0),
        (json!({"parallelism": 1, "completions": 5}), vec!["Running"; 3], 0, 2),
        (json!({"completions": 1}), vec!["Failed"], 1, 0),
        (json!({"parallelism": 2, "completions": 2, "suspend": true}), vec!["Running"], 0, 1),
        (json!({"parallelism": 2}), vec!["Succeeded", "Running"], 0, 0),
        // A terminating pod is replaced at once, or when it has failed.
        (json!({"completions": 1}), vec!["~Running"], 1, 0),
        (json!({"completions": 1, "podReplacementPolicy": "Failed"}), vec!["~Running"], 0, 0),
    ] {
        let decision = run(&job(&spec), &pods(&phases), 0, 60);
        let counts = (decision.create.len(), decision.discard.len());
        assert_eq!(counts, (create, discard), "{spec} {phases:?}");
        assert!(!kinds(&decision).contains(&"Complete"), "{spec} {phases:?}");
    }
}

#[test]
fn a_failed_pod_is_replaced_after_a_doubling_backoff() {
    let job = job(&json!({"completions": 1}));
    for (failures, now, create, requeue_after) in
        [(1, 55, 0, Some(5)), (1, 60, 1, None), (2, 60, 0, Some(10)), (9, 60, 0, Some(590))]
    {
        let decision = run(&job, &pods(&["Failed"]), failures, now);
        assert_eq!(
            (decision.create.len(), decision.requeue_after),
            (create, requeue_after),
            "{failures} at {now}"
        );
    }
}

#[test]
fn a_finished_pod_is_listed_as_uncounted_before_its_finalizer_is_removed() {
    let mut job = job(&json!({"completions": 2, "parallelism": 1}));
    let first_decision = run(&job, &pods(&["Succeeded"]), 0, 60);
    assert_eq!(first_decision.status["uncountedTerminatedPods"]["succeeded"], json!(["j-0"]));
    assert_eq!((first_decision.status.get("succeeded"), first_decision.release.len()), (None, 1));
    job.set(&["status"], first_decision.status);
    // Nothing is counted twice while the finalizer is there.
    assert_eq!(
        run(&job, &pods(&["Succeeded"]), 0, 60).status,
        job.get(&["status"]).unwrap().clone()
    );
    for remaining in [pods(&["-Succeeded"]), Vec::new()] {
        let counted = run(&job, &remaining, 0, 60);
        assert_eq!(counted.status["succeeded"], 1);
        assert_eq!(counted.status["uncountedTerminatedPods"], json!({}));
        assert_eq!(counted.create.len(), 1);
    }
}

#[test]
fn a_job_finishes_when_no_pod_is_uncounted_or_terminating() {
    for (spec, phases, ends, reason) in [
        (
            json!({"completions": 2}),
            vec!["Succeeded", "Succeeded"],
            ["SuccessCriteriaMet", "Complete"],
            "CompletionsReached",
        ),
        (
            json!({"completions": 1, "backoffLimit": 1}),
            vec!["Failed", "Failed", "Running"],
            ["FailureTarget", "Failed"],
            "BackoffLimitExceeded",
        ),
        (
            json!({"completions": 1, "activeDeadlineSeconds": 60}),
            vec!["Running"],
            ["FailureTarget", "Failed"],
            "DeadlineExceeded",
        ),
        (
            json!({"completions": 1, "podFailurePolicy": {"rules": [
                {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3]}},
            ]}}),
            vec!["Failed"],
            ["FailureTarget", "Failed"],
            "PodFailurePolicy",
        ),
    ] {
        let mut job = job(&spec);
        let first = run(&job, &pods(&phases), 0, 60);
        assert_eq!(kinds(&first), ends[..1], "{spec}");
        assert_eq!(first.status["conditions"][0]["reason"], reason);
        assert_eq!(first.events.len(), 0);
        job.set(&["status"], first.status);
        let last = run(&job, &[], 0, 61);
        assert_eq!(kinds(&last), ends, "{spec}");
        let complete = ends[1] == "Complete";
        assert_eq!(last.status["completionTime"].is_string(), complete);
        let event = if complete { "Completed" } else { reason };
        assert_eq!(last.events[0].0, event);
        job.set(&["status"], last.status.clone());
        let second = run(&job, &[], 0, 62);
        assert_eq!((second.status, second.create.len(), second.events.len()), (last.status, 0, 0));
    }
}

#[test]
fn failures_that_a_policy_ignores_do_not_count() {
    let job = job(&json!({"completions": 1, "backoffLimit": 0, "podFailurePolicy": {"rules": [
        {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [3]}},
    ]}}));
    let decision = run(&job, &pods(&["Failed"]), 0, 60);
    assert_eq!((kinds(&decision).len(), decision.create.len(), decision.release.len()), (0, 1, 1));
    assert_eq!(decision.status["uncountedTerminatedPods"], json!({}));
}

#[test]
fn every_index_succeeds_once() {
    let job = job(&json!({"completionMode": "Indexed", "completions": 4, "parallelism": 3}));
    let existing = indexed(&[(0, "Succeeded"), (2, "Running"), (2, "Running")]);
    let decision = run(&job, &existing, 0, 60);
    assert_eq!(decision.discard.len(), 1, "two of one index are one too many");
    let decision = run(&job, &existing[..2], 0, 60);
    assert_eq!(decision.create, [Some((1, None)), Some((3, None))]);
    assert_eq!(decision.status["completedIndexes"], "0");
    assert_eq!(decision.status["succeeded"], 1);
    let decision = run(&job, &indexed(&[(7, "Running")]), 0, 60);
    assert_eq!(decision.discard.len(), 1, "there is no such index");
}

#[test]
fn backoff_limit_per_index_fails_one_index() {
    let spec = |limit: i64| {
        json!({
            "completionMode": "Indexed", "completions": 2, "parallelism": 2, "backoffLimit": 99,
            "backoffLimitPerIndex": limit,
        })
    };
    let existing = indexed(&[(0, "Failed"), (1, "Running")]);
    let retried = run(&job(&spec(1)), &existing, 0, 60);
    assert_eq!(retried.create, [Some((0, Some(1)))]);
    assert_eq!(retried.status["failedIndexes"], "");
    let early_decision = run(&job(&spec(1)), &existing, 0, 52);
    assert_eq!(
        (early_decision.create.len(), early_decision.requeue_after, early_decision.release.len()),
        (0, Some(8), 0)
    );
    let given_up = run(&job(&spec(0)), &existing, 0, 60);
    assert_eq!((given_up.create.len(), kinds(&given_up).len()), (0, 0));
    assert_eq!(given_up.status["failedIndexes"], "0");
    let all = indexed(&[(0, "Failed"), (1, "Succeeded")]);
    assert_eq!(kinds(&run(&job(&spec(0)), &all, 0, 60)), ["FailureTarget"]);
}

#[test]
fn a_suspended_job_has_its_condition_and_resumes() {
    let mut job = job(&json!({"completions": 1, "suspend": true}));
    job.remove(&["status", "startTime"]);
    let suspended = run(&job, &[], 0, 5);
    assert_eq!(suspended.events[0].0, "Suspended");
    assert_eq!(suspended.status.get("startTime"), None);
    job.set(&["status"], suspended.status);
    job.set(&["spec", "suspend"], false.into());
    let resumed = run(&job, &[], 0, 30);
    assert_eq!((resumed.events[0].0.as_str(), resumed.create.len()), ("Resumed", 1));
    assert_eq!(resumed.status["conditions"][0]["status"], "False");
    assert_eq!(resumed.status["startTime"], mainstay_clock::rfc3339(at(30)));
}

#[test]
fn a_finished_job_is_deleted_after_its_ttl() {
    let mut job = job(&json!({"completions": 1, "ttlSecondsAfterFinished": 10}));
    let conditions = json!([{
        "type": "Complete", "status": "True",
        "lastTransitionTime": mainstay_clock::rfc3339(at(60)),
    }]);
    job.set(&["status", "conditions"], conditions);
    let early_decision = run(&job, &[], 0, 63);
    assert_eq!((early_decision.expired, early_decision.requeue_after), (false, Some(7)));
    assert!(run(&job, &[], 0, 70).expired);
}
