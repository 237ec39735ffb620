//! Behaviours that change with time: Pods that start slowly, end after a while, or restart
//! repeatedly.

use super::ANNOTATION;
use super::command::{self, Program};
use jiff::Timestamp;
use mainstay_object::Object;
use serde_json::{Value, json};
use std::time::Duration;

/// Seconds between restarts: the first delay, and the longest.
const RESTART_DELAY: (i64, i64) = (10, 300);
/// For so many seconds the first attempt to pull an image fails.
const FIRST_PULL_SECONDS: i64 = 10;
/// The seconds of `slow-start` and `complete-after` without a number.
const DEFAULT_SECONDS: i64 = 10;

/// The exit of a failing container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Crash {
    pub(super) code: i64,
    pub(super) reason: &'static str,
}

/// The behaviour of the containers of a Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behaviour {
    Run,
    Complete,
    Crash(Crash),
    Stuck,
    NotReady,
    Starting,
    /// The init container with this index (from 0, sidecars not counted) is running.
    Init(usize),
    /// The first init container fails.
    InitCrash(Crash),
}

fn restart_policy(pod: &Object) -> &str {
    pod.str(&["spec", "restartPolicy"]).unwrap_or("Always")
}

fn parts(pod: &Object) -> (&str, Option<i64>) {
    let text = pod.annotation(ANNOTATION).unwrap_or_default();
    match text.split_once(':') {
        Some((name, number)) => (name, number.parse().ok()),
        None => (text, None),
    }
}

/// Whether the annotation of a Pod has a known value.
pub(super) fn is_understood(pod: &Object) -> bool {
    let text = pod.annotation(ANNOTATION).unwrap_or_default();
    match parts(pod) {
        ("" | "crash" | "oom" | "stuck" | "not-ready" | "run" | "init-crash", _) => true,
        ("exit", number) => number.is_some(),
        ("slow-start" | "complete-after" | "init", number) => {
            number.map_or(!text.contains(':'), |seconds| seconds >= 0)
        }
        _ => false,
    }
}

fn seconds_between(since: Option<&str>, now: &str) -> i64 {
    let since: Option<Timestamp> = since.and_then(|text| text.parse().ok());
    let now: Option<Timestamp> = now.parse().ok();
    since.zip(now).map_or(0, |(since, now)| now.as_second() - since.as_second())
}

/// For how many seconds a Pod has been on its node.
fn age(pod: &Object, now: &str) -> i64 {
    seconds_between(pod.str(&["status", "startTime"]), now)
}

impl Behaviour {
    /// The behaviour of a Pod at a time (RFC 3339).
    pub(super) fn of(pod: &Object, now: &str) -> Self {
        let (name, number) = parts(pod);
        let may_end = restart_policy(pod) != "Always";
        let ends = matches!(name, "exit" | "complete-after") || is_of_job(pod);
        let usual = if may_end && ends { Self::Complete } else { Self::Run };
        if follows_commands(pod)
            && let Some(program) = program(pod)
        {
            return match program {
                Program { seconds, .. }
                    if seconds.is_none_or(|seconds| age(pod, now) < seconds) =>
                {
                    Self::Run
                }
                Program { code: 0, .. } => Self::Complete,
                Program { code, .. } => Self::Crash(Crash { code, reason: "Error" }),
            };
        }
        let long = number.unwrap_or(DEFAULT_SECONDS);
        match (name, number) {
            ("crash", _) => Self::Crash(Crash { code: 1, reason: "Error" }),
            ("exit", Some(0)) => usual,
            ("exit", Some(code)) => Self::Crash(Crash { code, reason: "Error" }),
            ("oom", _) => Self::Crash(Crash { code: 137, reason: "OOMKilled" }),
            ("stuck", _) => Self::Stuck,
            ("not-ready", _) => Self::NotReady,
            ("slow-start", _) if age(pod, now) < long => Self::Starting,
            ("complete-after", _) if age(pod, now) < long => Self::Run,
            ("run", _) => Self::Run,
            ("init", _) => match usize::try_from(age(pod, now).max(0) / long.max(1)) {
                Ok(at) if at < init_container_count(pod) => Self::Init(at),
                _ => usual,
            },
            ("init-crash", _) if init_container_count(pod) > 0 => {
                Self::InitCrash(Crash { code: 1, reason: "Error" })
            }
            _ => usual,
        }
    }
}

/// Whether container commands decide the behaviour of a Pod: only without the annotation.
pub(super) fn follows_commands(pod: &Object) -> bool {
    pod.annotation(ANNOTATION).is_none_or(str::is_empty)
}

/// The combined program of a Pod's containers. Containers with `restartPolicy: Always` count as
/// running, unless they only fail.
fn program(pod: &Object) -> Option<Program> {
    let usual = Program { seconds: is_of_job(pod).then_some(0), code: 0 };
    let program = command::of_pod(pod, usual)?;
    let fails = program.seconds == Some(0) && program.code != 0;
    (restart_policy(pod) != "Always" || fails).then_some(program)
}

/// Whether a Job owns the Pod.
fn is_of_job(pod: &Object) -> bool {
    pod.controller_owner().is_some_and(|owner| owner.kind == "Job")
}

/// Whether an init container is a sidecar, which runs beside the other containers.
pub(super) fn is_sidecar(container: &Value) -> bool {
    container.get("restartPolicy").and_then(Value::as_str) == Some("Always")
}

/// How many init containers have to end before the other containers start.
fn init_container_count(pod: &Object) -> usize {
    pod.array(&["spec", "initContainers"]).iter().filter(|container| !is_sidecar(container)).count()
}

/// The delay in seconds before the next restart.
fn restart_delay(restarts: i64) -> i64 {
    let doublings = u32::try_from(restarts - 1).unwrap_or(0).min(16);
    RESTART_DELAY.0.saturating_mul(1 << doublings).min(RESTART_DELAY.1)
}

/// The same delay, formatted as a Go duration.
pub(super) fn restart_delay_text(restarts: i64) -> String {
    match (restart_delay(restarts) / 60, restart_delay(restarts) % 60) {
        (0, seconds) => format!("{seconds}s"),
        (minutes, seconds) => format!("{minutes}m{seconds}s"),
    }
}

fn finished_at(container: &Value) -> Option<&str> {
    container.get("lastState")?.get("terminated")?.get("finishedAt")?.as_str()
}

/// How often a failing container has restarted by now, and its last end. The end has an `id`:
/// without one, `kubectl logs` finds no log of it.
pub(super) fn restarts(old: Option<&Value>, crash: Crash, id: &str, now: &str) -> (i64, Value) {
    let count = old.and_then(|old| old.get("restartCount")?.as_i64()).unwrap_or_default();
    let last = old.and_then(|old| old.get("lastState")?.get("terminated"));
    if let Some(last) = last.filter(|last| last["exitCode"] == crash.code)
        && count > 0
        && seconds_between(last["finishedAt"].as_str(), now) < restart_delay(count)
    {
        return (count, last.clone());
    }
    let ended = json!({
        "exitCode": crash.code, "reason": crash.reason, "startedAt": now, "finishedAt": now,
        "containerID": id,
    });
    (count + 1, ended)
}

/// Reason and message of a container whose image cannot be pulled.
pub(super) fn pull(pod: &Object, image: &str, now: &str) -> (&'static str, String) {
    if age(pod, now) < FIRST_PULL_SECONDS {
        let message = format!("failed to pull image {image:?}: simulated: no such image");
        ("ErrImagePull", message)
    } else {
        ("ImagePullBackOff", format!("Back-off pulling image {image:?}"))
    }
}

/// The time after which a Pod has to be reconciled because its behaviour changes with time.
pub(crate) fn next_change(pod: &Object, now: &str) -> Option<Duration> {
    let finished = matches!(pod.str(&["status", "phase"]), Some("Succeeded" | "Failed"));
    let (name, number) = parts(pod);
    if finished || (name.is_empty() && program(pod).is_none()) {
        return None;
    }
    let remaining = match Behaviour::of(pod, now) {
        Behaviour::Run if name.is_empty() => program(pod)?.seconds?.saturating_sub(age(pod, now)),
        Behaviour::Stuck => FIRST_PULL_SECONDS.saturating_sub(age(pod, now)),
        Behaviour::Starting => number.unwrap_or(DEFAULT_SECONDS).saturating_sub(age(pod, now)),
        Behaviour::Run if name == "complete-after" => {
            number.unwrap_or(DEFAULT_SECONDS).saturating_sub(age(pod, now))
        }
        Behaviour::Init(at) => {
            let long = number.unwrap_or(DEFAULT_SECONDS).max(1);
            let all = long.saturating_mul(i64::try_from(at).ok()?.saturating_add(1));
            all.saturating_sub(age(pod, now))
        }
        Behaviour::Crash(_) | Behaviour::InitCrash(_) if restart_policy(pod) != "Never" => {
            let inits = pod.array(&["status", "initContainerStatuses"]).iter();
            inits
                .chain(pod.array(&["status", "containerStatuses"]))
                .filter(|container| container["state"]["waiting"]["reason"] == "CrashLoopBackOff")
                .filter_map(|container| {
                    let count = container.get("restartCount")?.as_i64()?;
                    Some(restart_delay(count) - seconds_between(finished_at(container), now))
                })
                .min()?
        }
        _ => return None,
    };
    u64::try_from(remaining).ok().filter(|remaining| *remaining > 0).map(Duration::from_secs)
}

/// The status of a Pod whose containers ended because the Pod is deleted.
pub(crate) fn status_after_deletion(pod: &Object, now: &str) -> Value {
    let mut status = pod.get(&["status"]).cloned().unwrap_or_else(|| json!({}));
    status["phase"] = "Failed".into();
    let mut containers = pod.array(&["status", "containerStatuses"]).to_vec();
    for container in &mut containers {
        let since = container["state"]["running"]["startedAt"].as_str().unwrap_or(now).to_owned();
        container["state"] = json!({"terminated": {
            "exitCode": 137, "reason": "Error", "startedAt": since, "finishedAt": now,
        }});
        if let Some(id) = container.get("containerID").cloned() {
            container["state"]["terminated"]["containerID"] = id;
        }
        container["ready"] = false.into();
        container["started"] = false.into();
    }
    if !containers.is_empty() {
        status["containerStatuses"] = Value::Array(containers);
    }
    let old = pod.array(&["status", "conditions"]);
    let conditions: Vec<Value> = old
        .iter()
        .map(|old_condition| match old_condition["type"].as_str() {
            Some(kind @ ("Ready" | "ContainersReady")) => {
                super::condition(old, kind, false, Some(("PodFailed", None)), now)
            }
            _ => old_condition.clone(),
        })
        .collect();
    status["conditions"] = Value::Array(conditions);
    status
}

#[cfg(test)]
mod tests {
    use super::super::{PodAddresses, status};
    use super::*;

    const ADDRESSES_OF_POD: PodAddresses<'static> =
        PodAddresses { host_ip: "172.18.0.2", pod_ip: "10.244.0.5" };

    fn pod(annotation: &str, restart: &str) -> Object {
        let mut pod = Object::from_value(json!({
            "metadata": {"name": "p", "namespace": "n", "uid": "u"},
            "spec": {"restartPolicy": restart, "containers": [{"name": "main", "image": "m"}]},
        }))
        .unwrap();
        pod.set_annotation(ANNOTATION, annotation);
        pod
    }

    fn at(seconds: i64) -> String {
        mainstay_clock::rfc3339(Timestamp::from_second(1_767_225_600 + seconds).unwrap())
    }

    /// Steps through times at which the behaviour changes and returns the state of the container.
    fn states_at(pod: &mut Object, times: &[i64]) -> Vec<String> {
        let mut state_texts = Vec::new();
        for time in times {
            if let Some(status) = status(pod, &ADDRESSES_OF_POD, &at(*time)) {
                pod.set(&["status"], status);
            }
            let container = &pod.array(&["status", "containerStatuses"])[0];
            let state = &container["state"];
            let state_name = state["waiting"]["reason"]
                .as_str()
                .or_else(|| state["terminated"]["reason"].as_str())
                .unwrap_or("Running");
            let next_change =
                next_change(pod, &at(*time)).map_or(0, |next_change| next_change.as_secs());
            state_texts.push(format!("{state_name} {} {next_change}", container["restartCount"]));
        }
        state_texts
    }

    #[test]
    fn a_crashing_container_restarts_with_backoff() {
        let state_texts =
            states_at(&mut pod("crash", "Always"), &[0, 9, 10, 30, 70, 150, 310, 610]);
        assert_eq!(
            state_texts,
            [
                "CrashLoopBackOff 1 10",
                "CrashLoopBackOff 1 1",
                "CrashLoopBackOff 2 20",
                "CrashLoopBackOff 3 40",
                "CrashLoopBackOff 4 80",
                "CrashLoopBackOff 5 160",
                "CrashLoopBackOff 6 300",
                "CrashLoopBackOff 7 300",
            ]
        );
        assert_eq!(
            (restart_delay_text(1), restart_delay_text(4), restart_delay_text(9)),
            ("10s".into(), "1m20s".into(), "5m0s".into())
        );
    }

    #[test]
    fn timed_behaviours_last_as_long_as_given() {
        for (annotation, restart, state_texts) in [
            (
                "slow-start:5",
                "Always",
                ["ContainerCreating 0 5", "ContainerCreating 0 1", "Running 0 0"],
            ),
            ("complete-after:5", "Never", ["Running 0 5", "Running 0 1", "Completed 0 0"]),
            ("stuck", "Always", ["ErrImagePull 0 10", "ErrImagePull 0 6", "ErrImagePull 0 5"]),
            ("oom", "Never", ["OOMKilled 0 0"; 3]),
        ] {
            assert_eq!(
                states_at(&mut pod(annotation, restart), &[0, 4, 5]),
                state_texts,
                "{annotation}"
            );
        }
        for (script, restart, state_texts) in [
            ("sleep 5", "Never", ["Running 0 5", "Running 0 1", "Completed 0 0"]),
            ("sleep 5; exit 3", "Never", ["Running 0 5", "Running 0 1", "Error 0 0"]),
            (
                "sleep 5; exit 3",
                "OnFailure",
                ["Running 0 5", "Running 0 1", "CrashLoopBackOff 1 10"],
            ),
            ("sleep 5", "Always", ["Running 0 0"; 3]),
            (
                "exit 3",
                "Always",
                ["CrashLoopBackOff 1 10", "CrashLoopBackOff 1 6", "CrashLoopBackOff 1 5"],
            ),
            ("serve", "Never", ["Running 0 0"; 3]),
        ] {
            let mut pod = pod("", restart);
            let container =
                json!([{"name": "main", "image": "m", "command": ["sh", "-c", script]}]);
            pod.set(&["spec", "containers"], container);
            assert_eq!(states_at(&mut pod, &[0, 4, 5]), state_texts, "{script} {restart}");
        }
        assert_eq!(states_at(&mut pod("stuck", "Always"), &[0, 10])[1], "ImagePullBackOff 0 0");
        assert_eq!(states_at(&mut pod("exit:3", "Never"), &[0])[0], "Error 0 0");
    }

    /// A Pod with two init containers and a sidecar between them: phase, `Initialized`, and the
    /// state of each container.
    fn stage(pod: &mut Object, time: i64) -> String {
        if let Some(status) = status(pod, &ADDRESSES_OF_POD, &at(time)) {
            pod.set(&["status"], status);
        }
        let containers = pod.array(&["status", "initContainerStatuses"]).iter();
        let states: Vec<String> = containers
            .chain(pod.array(&["status", "containerStatuses"]))
            .map(|container| {
                let state = &container["state"];
                let reason = ["waiting", "terminated"]
                    .iter()
                    .find_map(|field| state[field]["reason"].as_str());
                format!(
                    "{}{}",
                    reason.unwrap_or("Running"),
                    if container["ready"] == true { "!" } else { "" }
                )
            })
            .collect();
        let next_change =
            next_change(pod, &at(time)).map_or(0, |next_change| next_change.as_secs());
        let phase = pod.str(&["status", "phase"]).unwrap();
        format!(
            "{phase} {} {} {next_change}",
            pod.condition("Initialized").unwrap(),
            states.join(" ")
        )
    }

    #[test]
    fn init_containers_run_in_sequence() {
        let with_inits = |annotation: &str, restart: &str| {
            let mut pod = pod(annotation, restart);
            if restart == "Never" {
                let owner = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "v", "controller": true});
                pod.set(&["metadata", "ownerReferences"], json!([owner]));
            }
            pod.set(
                &["spec", "initContainers"],
                json!([
                    {"name": "a", "image": "a"},
                    {"name": "s", "image": "s", "restartPolicy": "Always"},
                    {"name": "b", "image": "b"},
                ]),
            );
            pod
        };
        for (annotation, restart, stages) in [
            (
                "init:5",
                "Always",
                vec![
                    (0, "Pending False Running PodInitializing PodInitializing PodInitializing 5"),
                    (5, "Pending False Completed! Running! Running PodInitializing 5"),
                    (10, "Running True Completed! Running! Completed! Running! 0"),
                ],
            ),
            (
                "init:5",
                "Never",
                vec![
                    (10, "Pending False Running PodInitializing PodInitializing PodInitializing 5"),
                    (20, "Succeeded True Completed! Completed! Completed! Completed 0"),
                ],
            ),
            (
                "init-crash",
                "Always",
                vec![
                    (
                        0,
                        "Pending False CrashLoopBackOff PodInitializing PodInitializing PodInitializing 10",
                    ),
                    (
                        10,
                        "Pending False CrashLoopBackOff PodInitializing PodInitializing PodInitializing 20",
                    ),
                ],
            ),
            (
                "init-crash",
                "Never",
                vec![(0, "Failed False Error PodInitializing PodInitializing PodInitializing 0")],
            ),
            (
                "stuck",
                "Always",
                vec![(
                    0,
                    "Pending False ErrImagePull PodInitializing PodInitializing PodInitializing 10",
                )],
            ),
            (
                "slow-start:5",
                "Always",
                vec![
                    (
                        0,
                        "Pending False PodInitializing PodInitializing PodInitializing PodInitializing 5",
                    ),
                    (5, "Running True Completed! Running! Completed! Running! 0"),
                ],
            ),
        ] {
            let mut pod = with_inits(annotation, restart);
            for (time, wanted) in stages {
                assert_eq!(stage(&mut pod, time), wanted, "{annotation} {restart} {time}");
            }
        }
    }

    #[test]
    fn a_killed_pod_has_phase_failed() {
        let mut pod = pod("run", "Never");
        states_at(&mut pod, &[0]);
        pod.set(&["status"], status_after_deletion(&pod, &at(3)));
        assert_eq!(
            (pod.str(&["status", "phase"]), pod.condition("Ready")),
            (Some("Failed"), Some("False"))
        );
        let ended = &pod.array(&["status", "containerStatuses"])[0]["state"]["terminated"];
        assert_eq!((&ended["exitCode"], &ended["startedAt"]), (&json!(137), &json!(at(0))));
    }
}
