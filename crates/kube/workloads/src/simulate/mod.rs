//! Pod simulation: the status of a simulated Pod, as a pure function of its spec, its status and
//! the time.
//!
//! Containers start at once, are ready and run for ever; those of a Job's Pod end at once with exit
//! code 0. In a Pod with `restartPolicy` other than `Always`, a plain command (`sleep 5`, `false`,
//! `sh -c "sleep 5; exit 3"`) takes its time and ends with its code; all containers end together,
//! with the last one. In any Pod, a command that only fails does so. Volumes, probes and images
//! always work. The annotation [`ANNOTATION`] on a Pod (or in a template) requests another
//! behaviour:
//!
//! | value | effect |
//! |---|---|
//! | `crash` | containers end with exit code 1: `CrashLoopBackOff` with restarts after 10 s, 20 s, 40 s … 5 min, or phase `Failed` if the `restartPolicy` forbids restarts |
//! | `exit:N` | the same with exit code N |
//! | `oom` | the same with exit code 137 and reason `OOMKilled` |
//! | `stuck` | images cannot be pulled: `ErrImagePull`, after 10 s `ImagePullBackOff`; the Pod stays `Pending` |
//! | `not-ready` | containers run and are never ready |
//! | `slow-start:N` | containers are being created for N seconds (default 10), then behave as usual |
//! | `complete-after:N` | containers run for N seconds (default 10), then end with exit code 0 unless the `restartPolicy` is `Always` |
//! | `run` | containers run for ever, even in a Pod of a Job |
//! | `init:N` | init containers take N seconds each (default 10), one after the other; then the Pod behaves as usual |
//! | `init-crash` | the first init container ends with exit code 1 and restarts, or fails the Pod if the `restartPolicy` forbids restarts |
//!
//! Changing or removing the annotation on a living Pod changes its behaviour; a Pod that has ended
//! stays as it is. Sidecars (init containers with `restartPolicy: Always`) start at once. Failing
//! containers and images are reported in events, as a kubelet does, and so is an unknown value of
//! the annotation. Ephemeral containers run for as long as the Pod does. On a Node, `not-ready` and
//! `unreachable` set its conditions.

mod command;
mod events;
mod stages;

pub(crate) use events::{Note, notes};
pub(crate) use stages::{next_change, status_after_deletion};

use mainstay_object::Object;
use mainstay_object::fnv;
use serde_json::{Map, Value, json};
use stages::{Behaviour, Crash};
use std::cmp::Ordering;

/// The annotation that requests a behaviour.
pub const ANNOTATION: &str = "mainstay.dev/simulate";

/// The addresses of a Pod and its node.
#[derive(Clone, Debug)]
pub(crate) struct PodAddresses<'a> {
    pub(crate) host_ip: &'a str,
    pub(crate) pod_ip: &'a str,
}

/// The readiness gates that keep a Pod with ready containers from being ready: other clients write
/// their conditions.
pub(crate) fn unmet_gates(pod: &Object) -> Option<String> {
    let conditions = pod.array(&["status", "conditions"]);
    let gates = pod.array(&["spec", "readinessGates"]).iter();
    let unmet: Vec<String> = gates
        .filter_map(|gate| {
            let gate = gate.get("conditionType")?.as_str()?;
            match find(conditions, "type", gate).map(|condition| &condition["status"]) {
                None => Some(format!(
                    "corresponding condition of pod readiness gate {gate:?} does not exist."
                )),
                Some(status) if status == "True" => None,
                Some(status) => Some(format!(
                    "the status of pod readiness gate {gate:?} is not \"True\", but {}",
                    status.as_str().unwrap_or_default()
                )),
            }
        })
        .collect();
    (!unmet.is_empty()).then(|| unmet.join(", "))
}

/// The new status of a scheduled Pod; none if it is up to date. `now` is RFC 3339.
pub(crate) fn status(pod: &Object, addresses: &PodAddresses<'_>, now: &str) -> Option<Value> {
    let old = pod.get(&["status"]).and_then(Value::as_object).cloned().unwrap_or_default();
    if matches!(old.get("phase").and_then(Value::as_str), Some("Succeeded" | "Failed")) {
        return None;
    }
    let behaviour = Behaviour::of(pod, now);
    let restarts = !matches!(pod.str(&["spec", "restartPolicy"]), Some("Never"));
    let phase = match behaviour {
        Behaviour::Run | Behaviour::NotReady => "Running",
        Behaviour::Complete => "Succeeded",
        Behaviour::Crash(_) if restarts => "Running",
        Behaviour::InitCrash(_) if restarts => "Pending",
        Behaviour::Crash(_) | Behaviour::InitCrash(_) => "Failed",
        Behaviour::Stuck | Behaviour::Starting | Behaviour::Init(_) => "Pending",
    };
    let ready = behaviour == Behaviour::Run;
    let mut status = old.clone();
    status.insert("phase".to_owned(), phase.into());
    status.insert("hostIP".to_owned(), addresses.host_ip.into());
    status.insert("hostIPs".to_owned(), json!([{"ip": addresses.host_ip}]));
    let host_network = pod.bool(&["spec", "hostNetwork"]) == Some(true);
    let pod_ip = if host_network { addresses.host_ip } else { addresses.pod_ip };
    status.insert("podIP".to_owned(), pod_ip.into());
    status.insert("podIPs".to_owned(), json!([{"ip": pod_ip}]));
    status.entry("startTime").or_insert_with(|| now.into());

    let old_conditions = pod.array(&["status", "conditions"]);
    let finished = matches!(phase, "Succeeded" | "Failed");
    let (reason, message) = if ready {
        (None, None)
    } else if phase == "Succeeded" {
        (Some("PodCompleted"), None)
    } else if phase == "Failed" {
        (Some("PodFailed"), None)
    } else {
        let names: Vec<&str> = names(pod, "containers").collect();
        let message = format!("containers with unready status: [{}]", names.join(" "));
        (Some("ContainersNotReady"), Some(message))
    };
    let gates = if ready { unmet_gates(pod) } else { None };
    let init_steps = init_steps(pod, behaviour);
    let incomplete: Vec<&str> = init_steps
        .iter()
        .zip(names(pod, "initContainers"))
        .filter(|(step, _)| {
            !matches!(step, ContainerStep::Active(Behaviour::Run | Behaviour::Complete))
        })
        .map(|(_, name)| name)
        .collect();
    let incomplete = (!incomplete.is_empty())
        .then(|| format!("containers with incomplete status: [{}]", incomplete.join(" ")));
    let mut conditions = Vec::new();
    for (kind, holds) in [
        ("PodReadyToStartContainers", !finished && behaviour != Behaviour::Starting),
        ("Initialized", incomplete.is_none()),
        ("Ready", ready && gates.is_none()),
        ("ContainersReady", ready),
        ("PodScheduled", true),
    ] {
        let readiness = matches!(kind, "Ready" | "ContainersReady");
        let why = match reason {
            Some(reason) if readiness => Some((reason, message.as_deref())),
            _ if kind == "Ready" => {
                gates.as_deref().map(|message| ("ReadinessGatesNotReady", Some(message)))
            }
            Some("PodCompleted") if kind == "Initialized" => Some(("PodCompleted", None)),
            _ if kind == "Initialized" => {
                incomplete.as_deref().map(|message| ("ContainersNotInitialized", Some(message)))
            }
            _ => None,
        };
        conditions.push(condition(old_conditions, kind, holds, why, now));
    }
    // Readiness gates and other conditions of the Pod belong to other clients.
    conditions.extend(
        old_conditions
            .iter()
            .filter(|old| {
                let kind = old.get("type").and_then(Value::as_str).unwrap_or_default();
                !conditions.iter().any(|new| new["type"] == kind)
            })
            .cloned()
            .collect::<Vec<_>>(),
    );
    status.insert("conditions".to_owned(), Value::Array(conditions));

    for (list, field, is_init) in [
        ("initContainers", "initContainerStatuses", true),
        ("containers", "containerStatuses", false),
    ] {
        let main = if incomplete.is_some() {
            ContainerStep::Waiting
        } else {
            ContainerStep::Active(behaviour)
        };
        let statuses: Vec<Value> = pod
            .array(&["spec", list])
            .iter()
            .enumerate()
            .map(|(at, container)| {
                let step = if is_init {
                    init_steps.get(at).copied().unwrap_or(main)
                } else {
                    command_step(pod, container, main)
                };
                container_status(pod, container, field, step, restarts, now)
            })
            .collect();
        if !statuses.is_empty() {
            status.insert(field.to_owned(), Value::Array(statuses));
        }
    }
    let debuggers = ephemeral(pod, finished, restarts, now);
    if !debuggers.is_empty() {
        status.insert("ephemeralContainerStatuses".to_owned(), Value::Array(debuggers));
    }
    (status != old).then_some(Value::Object(status))
}

/// The statuses of ephemeral containers (`kubectl debug`). They start as soon as the Pod is on its
/// node, whatever its own containers do, are never ready, and end with the Pod.
fn ephemeral(pod: &Object, finished: bool, restarts: bool, now: &str) -> Vec<Value> {
    let step =
        ContainerStep::Active(if finished { Behaviour::Complete } else { Behaviour::NotReady });
    let status = |container: &Value| {
        let field = "ephemeralContainerStatuses";
        let mut status = container_status(pod, container, field, step, restarts, now);
        // Nothing waits for ephemeral containers, so their status has no `ready` or `started`.
        if let Some(fields) = status.as_object_mut() {
            fields.remove("started");
        }
        status
    };
    pod.array(&["spec", "ephemeralContainers"]).iter().map(status).collect()
}

/// The part of one container in the behaviour of its Pod.
#[derive(Clone, Copy)]
enum ContainerStep {
    Active(Behaviour),
    /// The container waits for others.
    Waiting,
}

/// The step of a container by its own command: where some containers of a Pod fail by their
/// commands, the others complete.
fn command_step(pod: &Object, container: &Value, step: ContainerStep) -> ContainerStep {
    let ContainerStep::Active(Behaviour::Crash(crash)) = step else { return step };
    if !stages::follows_commands(pod) {
        return step;
    }
    match command::Program::of(container).map_or(0, |program| program.code) {
        0 => ContainerStep::Active(Behaviour::Complete),
        code => ContainerStep::Active(Behaviour::Crash(Crash { code, ..crash })),
    }
}

/// The steps of the init containers of a Pod.
fn init_steps(pod: &Object, behaviour: Behaviour) -> Vec<ContainerStep> {
    let inits = pod.array(&["spec", "initContainers"]);
    let up = matches!(behaviour, Behaviour::Run | Behaviour::NotReady);
    let mut working = 0;
    let step = |(at, container): (usize, &Value)| {
        let sidecar = stages::is_sidecar(container);
        let number = working;
        working += usize::from(!sidecar);
        match behaviour {
            Behaviour::Stuck if at == 0 => ContainerStep::Active(Behaviour::Stuck),
            Behaviour::Stuck | Behaviour::Starting => ContainerStep::Waiting,
            Behaviour::Init(_) | Behaviour::InitCrash(_) => {
                let current = if let Behaviour::Init(current) = behaviour { current } else { 0 };
                match (number.cmp(&current), sidecar, behaviour) {
                    // A sidecar before the current init container runs already.
                    (Ordering::Less | Ordering::Equal, true, _) => {
                        ContainerStep::Active(Behaviour::Run)
                    }
                    (Ordering::Less, false, _) => ContainerStep::Active(Behaviour::Complete),
                    (Ordering::Equal, false, Behaviour::InitCrash(crash)) => {
                        ContainerStep::Active(Behaviour::Crash(crash))
                    }
                    (Ordering::Equal, false, _) => ContainerStep::Active(Behaviour::NotReady),
                    (Ordering::Greater, ..) => ContainerStep::Waiting,
                }
            }
            _ if sidecar && up => ContainerStep::Active(Behaviour::Run),
            _ => ContainerStep::Active(Behaviour::Complete),
        }
    };
    inits.iter().enumerate().map(step).collect()
}

fn names<'a>(pod: &'a Object, list: &str) -> impl Iterator<Item = &'a str> {
    pod.array(&["spec", list])
        .iter()
        .filter_map(|container| container.get("name").and_then(Value::as_str))
}

fn find<'a>(list: &'a [Value], key: &str, value: &str) -> Option<&'a Value> {
    list.iter().find(|entry| entry.get(key).and_then(Value::as_str) == Some(value))
}

fn condition(
    old: &[Value],
    kind: &str,
    holds: bool,
    reason_and_message: Option<(&str, Option<&str>)>,
    now: &str,
) -> Value {
    let status = if holds { "True" } else { "False" };
    let since = find(old, "type", kind)
        .filter(|old| old.get("status").and_then(Value::as_str) == Some(status))
        .and_then(|old| old.get("lastTransitionTime"))
        .and_then(Value::as_str)
        .unwrap_or(now);
    let mut condition = json!({
        "type": kind, "status": status, "lastProbeTime": null, "lastTransitionTime": since,
    });
    if let Some((reason, message)) = reason_and_message {
        condition["reason"] = reason.into();
        if let Some(message) = message {
            condition["message"] = message.into();
        }
    }
    condition
}

fn container_status(
    pod: &Object,
    container: &Value,
    field: &str,
    step: ContainerStep,
    restarts: bool,
    now: &str,
) -> Value {
    let name = container.get("name").and_then(Value::as_str).unwrap_or_default();
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let old = find(pod.array(&["status", field]), "name", name);
    let seed = format!("{}/{name}", pod.uid());
    let id = format!("simulated://{:016x}", fnv::fnv64a(seed.as_bytes()));
    let ended = |code: i64, reason: &str| {
        // The timestamps of an end stay while the end is the same.
        let known = ["state", "lastState"].iter().find_map(|field| {
            let ended = old?.get(field)?.get("terminated")?;
            (ended.get("exitCode").and_then(Value::as_i64) == Some(code)).then(|| ended.clone())
        });
        known.unwrap_or_else(|| {
            json!({
                "exitCode": code, "reason": reason, "startedAt": now, "finishedAt": now,
                "containerID": id,
            })
        })
    };
    let running = || {
        let since = old
            .and_then(|old| old.get("state")?.get("running")?.get("startedAt")?.as_str())
            .unwrap_or(now);
        json!({"running": {"startedAt": since}})
    };
    let mut last_state = json!({});
    // A restart count never decreases.
    let mut restarted = old.and_then(|old| old.get("restartCount")?.as_i64()).unwrap_or_default();
    let waiting = |reason: &str| (json!({"waiting": {"reason": reason}}), false, false);
    let ContainerStep::Active(behaviour) = step else {
        return build_status(name, image, waiting("PodInitializing"), &last_state, restarted, None);
    };
    let parts = match behaviour {
        Behaviour::Run => (running(), true, true),
        Behaviour::NotReady => (running(), false, true),
        Behaviour::Complete => {
            // Init containers that completed count as ready.
            let is_init = field == "initContainerStatuses";
            (json!({"terminated": ended(0, "Completed")}), is_init, false)
        }
        Behaviour::Crash(crash) if restarts => {
            let (count, ended) = stages::restarts(old, crash, &id, now);
            restarted = count;
            let message = format!(
                "back-off {} restarting failed container={name} pod={}_{}({})",
                stages::restart_delay_text(count),
                pod.name(),
                pod.namespace(),
                pod.uid()
            );
            last_state = json!({"terminated": ended});
            (json!({"waiting": {"reason": "CrashLoopBackOff", "message": message}}), false, false)
        }
        Behaviour::Crash(Crash { code, reason }) => {
            (json!({"terminated": ended(code, reason)}), false, false)
        }
        // While a Pod is initializing, each init container has a step of its own.
        Behaviour::Starting | Behaviour::Init(_) | Behaviour::InitCrash(_) => {
            waiting("ContainerCreating")
        }
        Behaviour::Stuck => {
            let (reason, message) = stages::pull(pod, image, now);
            (json!({"waiting": {"reason": reason, "message": message}}), false, false)
        }
    };
    let is_there = !matches!(behaviour, Behaviour::Stuck | Behaviour::Starting);
    build_status(name, image, parts, &last_state, restarted, is_there.then_some(id.as_str()))
}

/// The status of a container; `id` is the ID of a container that exists or existed.
fn build_status(
    name: &str,
    image: &str,
    (state, ready, started): (Value, bool, bool),
    last_state: &Value,
    restarted: i64,
    id: Option<&str>,
) -> Value {
    let mut status = Map::new();
    status.insert("name".to_owned(), name.into());
    status.insert("image".to_owned(), image.into());
    status.insert("ready".to_owned(), ready.into());
    status.insert("started".to_owned(), started.into());
    status.insert("state".to_owned(), state);
    status.insert("lastState".to_owned(), last_state.clone());
    status.insert("restartCount".to_owned(), restarted.into());
    if let Some(id) = id {
        status.insert("imageID".to_owned(), image.into());
        status.insert("containerID".to_owned(), id.into());
    } else {
        status.insert("imageID".to_owned(), "".into());
    }
    Value::Object(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-01-01T00:00:00Z";
    const ADDRESSES_OF_POD: PodAddresses<'static> =
        PodAddresses { host_ip: "172.18.0.2", pod_ip: "10.244.0.5" };

    fn pod(annotation: Option<&str>, restart: &str) -> Object {
        let mut pod = Object::from_value(json!({
            "metadata": {"name": "p", "namespace": "n", "uid": "u"},
            "spec": {
                "restartPolicy": restart,
                "initContainers": [{"name": "init", "image": "i"}],
                "containers": [{"name": "main", "image": "m"}],
            },
        }))
        .unwrap();
        if let Some(value) = annotation {
            pod.set_annotation(ANNOTATION, value);
        }
        pod
    }

    #[test]
    fn ephemeral_containers_run_as_long_as_the_pod_does() {
        for (annotation, restart, state) in [
            (None, "Always", "running"),
            (Some("crash"), "Always", "running"),
            (Some("stuck"), "Always", "running"),
            (Some("slow-start:5"), "Always", "running"),
            (Some("crash"), "Never", "terminated"),
        ] {
            let mut pod = pod(annotation, restart);
            let before = status(&pod, &ADDRESSES_OF_POD, NOW).unwrap();
            assert!(before.get("ephemeralContainerStatuses").is_none());
            let debugger =
                json!([{"name": "debugger", "image": "d", "targetContainerName": "main"}]);
            pod.set(&["spec", "ephemeralContainers"], debugger);
            let status = status(&pod, &ADDRESSES_OF_POD, NOW).unwrap();
            let found = &status["ephemeralContainerStatuses"][0];
            assert_eq!(found["name"], "debugger");
            assert!(found["state"].get(state).is_some(), "{annotation:?}: {found}");
            assert_eq!((&found["ready"], found.get("started")), (&json!(false), None));
            // Readiness has not changed.
            assert_eq!(status["conditions"], before["conditions"]);
        }
    }

    #[test]
    fn a_crashed_container_has_an_id() {
        let status = status(&pod(Some("crash"), "Always"), &ADDRESSES_OF_POD, NOW).unwrap();
        let last = &status["containerStatuses"][0]["lastState"]["terminated"];
        assert_eq!(last["exitCode"], 1);
        assert!(last["containerID"].as_str().is_some_and(|id| id.starts_with("simulated://")));
    }

    #[test]
    fn each_behaviour_sets_phase_readiness_and_container_state() {
        for (annotation, restart, phase, ready, state) in [
            (None, "Always", "Running", "True", "running"),
            (None, "Never", "Running", "True", "running"),
            (None, "OnFailure", "Running", "True", "running"),
            (Some("exit:0"), "OnFailure", "Succeeded", "False", "terminated"),
            (Some("run"), "Never", "Running", "True", "running"),
            (Some("crash"), "Always", "Running", "False", "waiting"),
            (Some("crash"), "Never", "Failed", "False", "terminated"),
            (Some("stuck"), "Always", "Pending", "False", "waiting"),
            (Some("not-ready"), "Always", "Running", "False", "running"),
            (Some("exit:3"), "Never", "Failed", "False", "terminated"),
            (Some("oom"), "Never", "Failed", "False", "terminated"),
            (Some("slow-start:60"), "Always", "Pending", "False", "waiting"),
            (Some("complete-after:60"), "Never", "Running", "True", "running"),
            (Some("nonsense"), "Always", "Running", "True", "running"),
        ] {
            let mut pod = pod(annotation, restart);
            pod.set(&["status"], status(&pod, &ADDRESSES_OF_POD, NOW).unwrap());
            let case = format!("{annotation:?} {restart}");
            assert_eq!(pod.str(&["status", "phase"]), Some(phase), "{case}");
            assert_eq!(pod.condition("Ready"), Some(ready), "{case}");
            let main = &pod.array(&["status", "containerStatuses"])[0];
            assert!(main["state"].get(state).is_some(), "{case}: {main}");
            assert_eq!(
                status(&pod, &ADDRESSES_OF_POD, "2026-01-01T00:00:05Z"),
                None,
                "{case}: settles"
            );
        }
    }

    /// Readiness gates, and the conditions that other clients write for them.
    type Gates = [(&'static str, &'static str)];

    #[test]
    fn a_pod_is_ready_when_its_readiness_gates_are_true() {
        let mut pod = pod(None, "Always");
        pod.set(
            &["spec", "readinessGates"],
            json!([{"conditionType": "x/a"}, {"conditionType": "x/b"}]),
        );
        let open = |pod: &mut Object, gate: &str, open: &str| {
            let mut all = pod.array(&["status", "conditions"]).to_vec();
            all.retain(|condition| condition["type"] != gate);
            all.push(json!({"type": gate, "status": open}));
            pod.set(&["status", "conditions"], Value::Array(all));
        };
        let missing = |gate: &str| {
            format!("corresponding condition of pod readiness gate \"{gate}\" does not exist.")
        };
        let closed = "the status of pod readiness gate \"x/b\" is not \"True\", but False";
        let changes: [(&Gates, Option<String>); 4] = [
            (&[], Some(format!("{}, {}", missing("x/a"), missing("x/b")))),
            (&[("x/a", "True")], Some(missing("x/b"))),
            (&[("x/b", "False")], Some(closed.to_owned())),
            (&[("x/b", "True")], None),
        ];
        for (changes, why) in changes {
            for (gate, status) in changes {
                open(&mut pod, gate, status);
            }
            let status = status(&pod, &ADDRESSES_OF_POD, NOW).unwrap();
            pod.set(&["status"], status);
            let ready = find(pod.array(&["status", "conditions"]), "type", "Ready").unwrap();
            assert_eq!(ready["status"], if why.is_some() { "False" } else { "True" });
            assert_eq!(ready.get("message").and_then(Value::as_str), why.as_deref());
            assert_eq!(pod.condition("ContainersReady"), Some("True"));
        }
    }

    #[test]
    fn an_unfinished_pod_follows_its_annotation_and_a_finished_one_does_not() {
        let mut live_pod = pod(Some("not-ready"), "Always");
        live_pod.set(&["status"], status(&live_pod, &ADDRESSES_OF_POD, NOW).unwrap());
        live_pod.remove(&["metadata", "annotations"]);
        live_pod.set(
            &["status"],
            status(&live_pod, &ADDRESSES_OF_POD, "2026-01-01T00:01:00Z").unwrap(),
        );
        assert_eq!(live_pod.condition("Ready"), Some("True"));
        let ready = find(live_pod.array(&["status", "conditions"]), "type", "Ready").unwrap();
        assert_eq!(ready["lastTransitionTime"], "2026-01-01T00:01:00Z");
        assert!(ready.get("reason").is_none());

        let mut of_job = pod(None, "Never");
        let owner = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "v", "controller": true});
        of_job.set(&["metadata", "ownerReferences"], json!([owner]));
        of_job.set(&["status"], status(&of_job, &ADDRESSES_OF_POD, NOW).unwrap());
        assert_eq!(of_job.str(&["status", "phase"]), Some("Succeeded"));

        let mut dead = pod(Some("exit:0"), "Never");
        dead.set(&["status"], status(&dead, &ADDRESSES_OF_POD, NOW).unwrap());
        dead.set_annotation(ANNOTATION, "crash");
        assert_eq!(status(&dead, &ADDRESSES_OF_POD, NOW), None);
    }

    #[test]
    fn foreign_conditions_of_a_pod_are_kept() {
        let mut pod = pod(None, "Always");
        pod.set(&["status", "conditions"], json!([{"type": "example.com/gate", "status": "True"}]));
        pod.set(&["status", "qosClass"], "BestEffort".into());
        pod.set(&["status"], status(&pod, &ADDRESSES_OF_POD, NOW).unwrap());
        assert_eq!(pod.condition("example.com/gate"), Some("True"));
        assert_eq!(pod.str(&["status", "qosClass"]), Some("BestEffort"));
    }
}
