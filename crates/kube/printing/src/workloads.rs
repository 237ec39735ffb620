//! Workloads and autoscalers.

use super::format_age;
use super::row::cells;
use super::row::{
    NONE, Row, UNSET, at, first_and_more, number_or_text, selector_text, text, yes_no,
};
use jiff::Timestamp;
use serde_json::Value;

const CONTAINERS: [&str; 4] = ["spec", "template", "spec", "containers"];
const SELECTOR: [&str; 2] = ["spec", "selector"];

pub(super) fn pod_template(row: &Row<'_>) -> Vec<Value> {
    let (names, images) = row.containers(&["template", "spec", "containers"]);
    cells![row.name(), names, images, row.labels(&["template", "metadata", "labels"])]
}

/// Desired, current and ready Pods.
fn counted(row: &Row<'_>, selector: String) -> Vec<Value> {
    let (names, images) = row.containers(&CONTAINERS);
    cells![
        row.name(),
        row.number(&["spec", "replicas"]),
        row.number(&["status", "replicas"]),
        row.number(&["status", "readyReplicas"]),
        row.age(),
        names,
        images,
        selector,
    ]
}

pub(super) fn replication_controller(row: &Row<'_>) -> Vec<Value> {
    counted(row, row.labels(&SELECTOR))
}

pub(super) fn replica_set(row: &Row<'_>) -> Vec<Value> {
    counted(row, row.selector(&SELECTOR))
}

fn ready(row: &Row<'_>) -> String {
    let (ready, wanted) =
        (row.number(&["status", "readyReplicas"]), row.number(&["spec", "replicas"]));
    format!("{ready}/{wanted}")
}

pub(super) fn deployment(row: &Row<'_>) -> Vec<Value> {
    let (names, images) = row.containers(&CONTAINERS);
    let selector = selector_text(row.object.get(&SELECTOR));
    cells![
        row.name(),
        ready(row),
        row.number(&["status", "updatedReplicas"]),
        row.number(&["status", "availableReplicas"]),
        row.age(),
        names,
        images,
        selector.unwrap_or_else(|| "<invalid>".to_owned()),
    ]
}

pub(super) fn stateful_set(row: &Row<'_>) -> Vec<Value> {
    let (names, images) = row.containers(&CONTAINERS);
    cells![row.name(), ready(row), row.age(), names, images]
}

pub(super) fn daemon_set(row: &Row<'_>) -> Vec<Value> {
    let (names, images) = row.containers(&CONTAINERS);
    cells![
        row.name(),
        row.number(&["status", "desiredNumberScheduled"]),
        row.number(&["status", "currentNumberScheduled"]),
        row.number(&["status", "numberReady"]),
        row.number(&["status", "updatedNumberScheduled"]),
        row.number(&["status", "numberAvailable"]),
        row.labels(&["spec", "template", "spec", "nodeSelector"]),
        row.age(),
        names,
        images,
        row.selector(&SELECTOR),
    ]
}

pub(super) fn controller_revision(row: &Row<'_>) -> Vec<Value> {
    let controller = row.object.controller_owner().map_or_else(
        || NONE.to_owned(),
        |owner| {
            let kind = owner.kind.to_lowercase();
            match owner.api_version.split_once('/') {
                Some((group, _)) => format!("{kind}.{group}/{}", owner.name),
                None => format!("{kind}/{}", owner.name),
            }
        },
    );
    cells![row.name(), controller, row.number(&["revision"]), row.age()]
}

pub(super) fn job(row: &Row<'_>) -> Vec<Value> {
    let (names, images) = row.containers(&CONTAINERS);
    let done = row.number(&["status", "succeeded"]);
    let parallel = row.number(&["spec", "parallelism"]);
    let completions = match row.object.i64(&["spec", "completions"]) {
        Some(wanted) => format!("{done}/{wanted}"),
        None if parallel > 1 => format!("{done}/1 of {parallel}"),
        None => format!("{done}/1"),
    };
    let time = |field: &str| row.text(&["status", field]).parse::<Timestamp>().ok();
    let duration = time("startTime").map_or_else(String::new, |start| {
        format_age(time("completionTime").unwrap_or(row.now).duration_since(start))
    });
    let is = |condition: &str| row.object.condition(condition) == Some("True");
    let status = if is("Complete") {
        "Complete"
    } else if is("Failed") {
        "Failed"
    } else if row.object.is_terminating() {
        "Terminating"
    } else {
        let states = ["Suspended", "FailureTarget", "SuccessCriteriaMet"];
        states.into_iter().find(|state| is(state)).unwrap_or("Running")
    };
    cells![
        row.name(),
        status,
        completions,
        duration,
        row.age(),
        names,
        images,
        row.selector(&SELECTOR),
    ]
}

pub(super) fn cron_job(row: &Row<'_>) -> Vec<Value> {
    let (names, images) =
        row.containers(&["spec", "jobTemplate", "spec", "template", "spec", "containers"]);
    let last = ["status", "lastScheduleTime"];
    cells![
        row.name(),
        row.text(&["spec", "schedule"]),
        row.text_or(&["spec", "timeZone"], NONE),
        yes_no(row.object.bool(&["spec", "suspend"])),
        row.items(&["status", "active"]).len(),
        if row.has(&last) { row.since(&last) } else { NONE.to_owned() },
        row.age(),
        names,
        images,
        row.selector(&["spec", "jobTemplate", "spec", "selector"]),
    ]
}

pub(super) fn disruption_budget(row: &Row<'_>) -> Vec<Value> {
    let share = |field: &str| {
        row.object
            .get(&["spec", field])
            .filter(|value| !value.is_null())
            .map_or_else(|| "N/A".to_owned(), number_or_text)
    };
    cells![
        row.name(),
        share("minAvailable"),
        share("maxUnavailable"),
        row.number(&["status", "disruptionsAllowed"]),
        row.age(),
    ]
}

pub(super) fn autoscaler(row: &Row<'_>) -> Vec<Value> {
    let target = ["spec", "scaleTargetRef"];
    let reference = row.object.get(&target).map_or_else(String::new, |target| {
        format!("{}/{}", text(target, "kind"), text(target, "name"))
    });
    let least = row.object.i64(&["spec", "minReplicas"]);
    cells![
        row.name(),
        reference,
        metrics(row),
        least.map_or_else(|| UNSET.to_owned(), |least| least.to_string()),
        row.number(&["spec", "maxReplicas"]),
        row.number(&["status", "currentReplicas"]),
        row.age(),
    ]
}

/// Current and target values of the first metrics.
fn metrics(row: &Row<'_>) -> String {
    // Version 1 of the API has one metric, in fields of its own.
    if let Some(wanted) = row.object.i64(&["spec", "targetCPUUtilizationPercentage"]) {
        let current = row.object.i64(&["status", "currentCPUUtilizationPercentage"]);
        let current =
            current.map_or_else(|| "<unknown>".to_owned(), |percentage| format!("{percentage}%"));
        return format!("cpu: {current}/{wanted}%");
    }
    let current = row.items(&["status", "currentMetrics"]);
    let list: Vec<String> = row
        .items(&["spec", "metrics"])
        .iter()
        .enumerate()
        .map(|(index, spec)| metric(spec, current.get(index)))
        .collect();
    if list.is_empty() { NONE.to_owned() } else { first_and_more(&list, 2, ", ") }
}

fn metric(spec: &Value, status: Option<&Value>) -> String {
    let (key, named) = match text(spec, "type") {
        "External" => ("external", false),
        "Pods" => ("pods", false),
        "Object" => ("object", false),
        "Resource" => ("resource", true),
        "ContainerResource" => ("containerResource", true),
        _ => return "<unknown type>".to_owned(),
    };
    let current = |field: &str| at(status?, &[key, "current", field]);
    let target = |field: &str| at(spec, &[key, "target", field]);
    let shown =
        |value: Option<&Value>| value.map_or_else(|| "<unknown>".to_owned(), number_or_text);
    let pair = if let Some(wanted) = target("averageValue") {
        let average = if named || key == "pods" { "" } else { " (avg)" };
        format!("{}/{}{average}", shown(current("averageValue")), number_or_text(wanted))
    } else if named {
        let percent = |value: Option<&Value>, nothing: &str| {
            value.map_or_else(|| nothing.to_owned(), |value| format!("{}%", number_or_text(value)))
        };
        format!(
            "{}/{}",
            percent(current("averageUtilization"), "<unknown>"),
            percent(target("averageUtilization"), "<auto>")
        )
    } else {
        format!(
            "{}/{}",
            shown(current("value")),
            target("value").map_or_else(String::new, number_or_text)
        )
    };
    if named {
        format!("{}: {pair}", at(spec, &[key, "name"]).map_or_else(String::new, number_or_text))
    } else {
        pair
    }
}

pub(super) fn scale(row: &Row<'_>) -> Vec<Value> {
    let (wanted, there) = (["spec", "replicas"], ["status", "replicas"]);
    cells![row.name(), row.number(&wanted), row.number(&there), row.age()]
}
