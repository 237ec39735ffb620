//! Pods: the status word that combines the phase, the conditions and the states of all containers.

use super::format_age;
use super::row::cells;
use super::row::{NONE, Row, at, number, text};
use jiff::Timestamp;
use mainstay_object::Object;
use serde_json::{Value, json};
use std::collections::HashSet;

/// The conditions of the row of a Pod that has completed.
pub(super) fn conditions(pod: &Object) -> Option<Value> {
    let (reason, message) = match pod.str(&["status", "phase"])? {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

pub(super) fn pod(row: &Row<'_>) -> Vec<Value> {
    let summary = Summary::of(row);
    let restarts = match summary.last_restart {
        Some(last) if summary.restarts != 0 => {
            format!("{} ({} ago)", summary.restarts, format_age(row.now.duration_since(last)))
        }
        _ => summary.restarts.to_string(),
    };
    let address = row.items(&["status", "podIPs"]).first().map_or("", |one| text(one, "ip"));
    cells![
        row.name(),
        format!("{}/{}", summary.ready, summary.total),
        summary.reason,
        restarts,
        row.age(),
        if address.is_empty() { NONE } else { address },
        row.text_or(&["spec", "nodeName"], NONE),
        row.text_or(&["status", "nominatedNodeName"], NONE),
        readiness_gates(row),
    ]
}

fn readiness_gates(row: &Row<'_>) -> String {
    let gates = row.items(&["spec", "readinessGates"]);
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let open = gates
        .iter()
        .filter(|gate| row.object.condition(text(gate, "conditionType")) == Some("True"));
    format!("{}/{}", open.count(), gates.len())
}

/// The containers of a Pod, summarised.
struct Summary {
    ready: usize,
    total: usize,
    restarts: i64,
    last_restart: Option<Timestamp>,
    reason: String,
}

/// The number of restarts, and the end of the last run before one.
#[derive(Clone, Copy, Default)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, container: &Value) {
        self.count += number(container, "restartCount");
        let finished = at(container, &["lastState", "terminated", "finishedAt"]);
        let finished = finished.and_then(Value::as_str).and_then(|text| text.parse().ok());
        self.last = self.last.max(finished);
    }
}

impl Summary {
    fn of(row: &Row<'_>) -> Self {
        let phase = row.text(&["status", "phase"]);
        let mut reason = row.text_or(&["status", "reason"], "").to_owned();
        if reason.is_empty() {
            phase.clone_into(&mut reason);
        }
        let gated = row.items(&["status", "conditions"]).iter().any(|condition| {
            text(condition, "type") == "PodScheduled"
                && text(condition, "reason") == "SchedulingGated"
        });
        if gated {
            "SchedulingGated".clone_into(&mut reason);
        }
        let sidecars = row.items(&["spec", "initContainers"]).iter().filter(|one| is_sidecar(one));
        let mut summary = Self {
            ready: 0,
            total: row.items(&["spec", "containers"]).len() + sidecars.count(),
            restarts: 0,
            last_restart: None,
            reason,
        };
        let (all, of_sidecars, initializing) = summary.initialize(row);
        let initialized = row.object.condition("Initialized") == Some("True");
        let restarts = if !initializing || initialized {
            // Restarts of finished init containers do not count; those of sidecars do.
            summary.run(row, of_sidecars)
        } else {
            all
        };
        (summary.restarts, summary.last_restart) = (restarts.count, restarts.last);
        if row.object.is_terminating() {
            if row.text(&["status", "reason"]) == "NodeLost" {
                "Unknown".clone_into(&mut summary.reason);
            } else if !matches!(phase, "Failed" | "Succeeded") {
                "Terminating".clone_into(&mut summary.reason);
            }
        }
        summary
    }

    /// Evaluates init containers up to the first unfinished one. Returns the restarts of all, those
    /// of sidecars, and whether one is unfinished.
    fn initialize(&mut self, row: &Row<'_>) -> (Restarts, Restarts, bool) {
        let specs = row.items(&["spec", "initContainers"]);
        let sidecars: HashSet<&str> =
            specs.iter().filter(|spec| is_sidecar(spec)).map(|spec| text(spec, "name")).collect();
        let (mut all, mut of_sidecars) = (Restarts::default(), Restarts::default());
        for (index, container) in row.items(&["status", "initContainerStatuses"]).iter().enumerate()
        {
            all.add(container);
            let name = text(container, "name");
            let sidecar = sidecars.contains(name);
            if sidecar {
                of_sidecars.add(container);
            }
            let terminated = at(container, &["state", "terminated"]);
            let waiting =
                at(container, &["state", "waiting"]).map_or("", |state| text(state, "reason"));
            if terminated.is_some_and(|state| number(state, "exitCode") == 0) {
                continue;
            }
            if sidecar && container.get("started") == Some(&Value::Bool(true)) {
                self.ready += usize::from(is_ready(container));
                continue;
            }
            self.reason = match terminated {
                Some(terminated) => format!("Init:{}", exit(terminated)),
                None if !waiting.is_empty() && waiting != "PodInitializing" => {
                    format!("Init:{waiting}")
                }
                None => format!("Init:{index}/{}", specs.len()),
            };
            return (all, of_sidecars, true);
        }
        (all, of_sidecars, false)
    }

    /// Evaluates the containers, the last one first: the state of the first one takes precedence.
    fn run(&mut self, row: &Row<'_>, mut restarts: Restarts) -> Restarts {
        let (mut running, mut error) = (false, None);
        for container in row.items(&["status", "containerStatuses"]).iter().rev() {
            restarts.add(container);
            let waiting =
                at(container, &["state", "waiting"]).map_or("", |state| text(state, "reason"));
            if !waiting.is_empty() {
                waiting.clone_into(&mut self.reason);
            } else if let Some(terminated) = at(container, &["state", "terminated"]) {
                self.reason = exit(terminated);
                if number(terminated, "exitCode") != 0 {
                    error = Some(self.reason.clone());
                }
            } else if is_ready(container) && at(container, &["state", "running"]).is_some() {
                running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" {
            // Some containers have completed; the others determine the status.
            let ready = row.object.condition("Ready") == Some("True");
            self.reason = match (running, error) {
                (true, _) if ready => "Running".to_owned(),
                (_, Some(error)) => error,
                (true, None) => "NotReady".to_owned(),
                (false, None) => "Completed".to_owned(),
            };
        }
        restarts
    }
}

fn is_sidecar(spec: &Value) -> bool {
    text(spec, "restartPolicy") == "Always"
}

fn is_ready(container: &Value) -> bool {
    container.get("ready") == Some(&Value::Bool(true))
}

/// Why a container ended.
fn exit(terminated: &Value) -> String {
    match (text(terminated, "reason"), number(terminated, "signal")) {
        ("", 0) => format!("ExitCode:{}", number(terminated, "exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}
