//! Kubelet events about failing containers and failing image pulls.

use mainstay_object::Object;
use serde_json::Value;

/// The known values of the annotation.
const KNOWN_VALUES: &str = "crash, exit:N, oom, stuck, not-ready, slow-start:N, complete-after:N, run, init:N and init-crash";

/// An event about a part of a Pod.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// The part: `spec.containers{main}`.
    pub(crate) field: String,
    pub(crate) is_warning: bool,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// The events for the change from the current status of a Pod to a new one.
pub(crate) fn notes(pod: &Object, new: &Value) -> Vec<Note> {
    let mut notes = Vec::new();
    let is_first = pod.get(&["status", "startTime"]).is_none();
    if is_first && !super::stages::is_understood(pod) {
        let behaviour = pod.annotation(super::ANNOTATION).unwrap_or_default();
        notes.push(Note {
            field: format!("metadata.annotations[{}]", super::ANNOTATION),
            is_warning: true,
            reason: "UnknownSimulation",
            message: format!("{behaviour:?} asks for nothing that is known, so the pod does as others do; known are {KNOWN_VALUES}"),
        });
    }
    for (list, part) in
        [("initContainerStatuses", "initContainers"), ("containerStatuses", "containers")]
    {
        for container in new.get(list).and_then(Value::as_array).into_iter().flatten() {
            let name = container["name"].as_str().unwrap_or_default();
            let old = super::find(pod.array(&["status", list]), "name", name);
            let field = format!("spec.{part}{{{name}}}");
            of_container(old, container, |is_warning, reason, message| {
                notes.push(Note { field: field.clone(), is_warning, reason, message });
            });
        }
    }
    notes
}

fn of_container(
    old: Option<&Value>,
    new: &Value,
    mut note: impl FnMut(bool, &'static str, String),
) {
    let what = |container: &Value| {
        let reason = container["state"]["waiting"]["reason"].as_str().unwrap_or_default();
        (reason.to_owned(), container["restartCount"].as_i64())
    };
    let (reason, _) = what(new);
    if old.is_some_and(|old| what(old) == what(new)) {
        return;
    }
    let message = new["state"]["waiting"]["message"].as_str().unwrap_or_default();
    match reason.as_str() {
        "ErrImagePull" => {
            let message = message.strip_prefix("failed").unwrap_or(message);
            note(true, "Failed", format!("Failed{message}"));
            note(true, "Failed", "Error: ErrImagePull".to_owned());
        }
        "ImagePullBackOff" => {
            note(false, "BackOff", message.to_owned());
            note(true, "Failed", "Error: ImagePullBackOff".to_owned());
        }
        "CrashLoopBackOff" => {
            // The delay is in the status only, so that equal events are counted as one.
            let container =
                message.split_once(" restarting ").map_or(message, |(_, container)| container);
            note(true, "BackOff", format!("Back-off restarting {}", spaced(container)));
        }
        _ => {}
    }
}

/// `failed container=main pod=…` as events write it: `failed container main in pod …`.
fn spaced(text: &str) -> String {
    text.replacen("container=", "container ", 1).replacen(" pod=", " in pod ", 1)
}

#[cfg(test)]
mod tests {
    use super::super::{ANNOTATION, PodAddresses, status};
    use super::*;
    use serde_json::json;

    #[test]
    fn an_unknown_behaviour_gets_one_event() {
        let addresses = PodAddresses { host_ip: "172.18.0.2", pod_ip: "10.244.0.5" };
        for (annotation, known) in [
            ("", true),
            ("crash", true),
            ("exit:7", true),
            ("slow-start", true),
            ("slow-start:5", true),
            ("init:0", true),
            ("Crash", false),
            ("exit", false),
            ("exit:seven", false),
            ("slow-start:5s", false),
            ("slow-start:-1", false),
            ("complete-after:99999999999999999999", false),
        ] {
            let mut pod = Object::from_value(json!({
                "metadata": {"name": "p", "namespace": "n", "uid": "u"},
                "spec": {"containers": [{"name": "main", "image": "m"}]},
            }))
            .unwrap();
            pod.set_annotation(ANNOTATION, annotation);
            let has_unknown_event = |pod: &Object, new: &Value| {
                notes(pod, new).iter().any(|note| note.reason == "UnknownSimulation")
            };
            let new = status(&pod, &addresses, "2026-01-01T00:00:00Z").unwrap();
            assert_eq!(has_unknown_event(&pod, &new), !known, "{annotation}");
            pod.set(&["status"], new.clone());
            assert!(!has_unknown_event(&pod, &new), "{annotation}");
        }
    }

    #[test]
    fn each_failure_gets_one_event() {
        let addresses = PodAddresses { host_ip: "172.18.0.2", pod_ip: "10.244.0.5" };
        for (annotation, inits, times) in [
            (
                "crash",
                json!([]),
                [
                    vec![
                        "containers{main} Warning BackOff Back-off restarting failed container main in pod p_n(u)",
                    ],
                    vec![],
                    vec![
                        "containers{main} Warning BackOff Back-off restarting failed container main in pod p_n(u)",
                    ],
                ],
            ),
            (
                "init-crash",
                json!([{"name": "first", "image": "f"}, {"name": "second", "image": "s"}]),
                [
                    vec![
                        "initContainers{first} Warning BackOff Back-off restarting failed container first in pod p_n(u)",
                    ],
                    vec![],
                    vec![
                        "initContainers{first} Warning BackOff Back-off restarting failed container first in pod p_n(u)",
                    ],
                ],
            ),
            (
                "stuck",
                json!([]),
                [
                    vec![
                        "containers{main} Warning Failed Failed to pull image \"m\": simulated: no such image",
                        "containers{main} Warning Failed Error: ErrImagePull",
                    ],
                    vec![],
                    vec![
                        "containers{main} Normal BackOff Back-off pulling image \"m\"",
                        "containers{main} Warning Failed Error: ImagePullBackOff",
                    ],
                ],
            ),
            ("slow-start:5", json!([]), [vec![], vec![], vec![]]),
        ] {
            let mut pod = Object::from_value(json!({
                "metadata": {"name": "p", "namespace": "n", "uid": "u"},
                "spec": {
                    "restartPolicy": "Always", "initContainers": inits,
                    "containers": [{"name": "main", "image": "m"}],
                },
            }))
            .unwrap();
            pod.set_annotation(ANNOTATION, annotation);
            for (second, wanted) in [0, 9, 10].into_iter().zip(times) {
                let now = format!("2026-01-01T00:00:{second:02}Z");
                let Some(new) = status(&pod, &addresses, &now) else {
                    assert!(wanted.is_empty(), "{annotation} {second}");
                    continue;
                };
                let events: Vec<String> = notes(&pod, &new)
                    .into_iter()
                    .map(|note| {
                        let kind = if note.is_warning { "Warning" } else { "Normal" };
                        let field = note.field.trim_start_matches("spec.");
                        format!("{field} {kind} {} {}", note.reason, note.message)
                    })
                    .collect();
                assert_eq!(events, wanted, "{annotation} {second}");
                pod.set(&["status"], new);
            }
        }
    }
}
