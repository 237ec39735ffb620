//! Validation of Jobs and CronJobs.

use super::super::rules::{
    Errors, FieldRule, Node, Rule, go_structs, immutable, one_of,
    selectors::{label_selector, matcher},
    semantically_equal, walk,
};
use super::schedule;
use super::{object_field, pod};
use mainstay_object::{Object, names};
use serde_json::Value;
use std::collections::HashSet;

const LEGACY_UID: &str = "controller-uid";
const LEGACY_NAME: &str = "job-name";
const UID: &str = "batch.kubernetes.io/controller-uid";
const NAME: &str = "batch.kubernetes.io/job-name";
/// From this number of completions on, stricter limits apply.
const LARGE_JOB: i64 = 100_000;
const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];

/// Validates a Job.
pub(in super::super) fn job(object: &Object, errors: &mut Errors) {
    let spec = Node::top_level(object_field(object, "spec"), "spec");
    generated_selector(object, &spec, errors);
    spec_and_selector(&spec, errors);
    let last = spec.number_of("completions").unwrap_or_default() - 1;
    if spec.text_of("completionMode") == "Indexed" && last >= 0 {
        let host = format!("{}-{last}", object.name());
        if !names::dns1123_label(&host).is_empty() {
            let detail = format!("will not able to create pod with invalid DNS label: {host}");
            let metadata = Node::top_level(object_field(object, "metadata"), "metadata");
            errors.invalid(&metadata.get("name"), object.name(), detail);
        }
    }
}

/// Validates the generated selector and labels, unless `manualSelector` is set.
fn generated_selector(object: &Object, spec: &Node<'_, '_>, errors: &mut Errors) {
    let selector = spec.get("selector");
    if spec.is_true("manualSelector") || !selector.is_set() {
        return;
    }
    let template = spec.get("template");
    let metadata = template.get("metadata");
    let labels = metadata.get("labels");
    for (key, expected) in [
        (LEGACY_UID, object.uid()),
        (LEGACY_NAME, object.name()),
        (UID, object.uid()),
        (NAME, object.name()),
    ] {
        let detail = format!("must be '{expected}'");
        match labels.value().get(key).and_then(Value::as_str) {
            None => errors.required(&labels.key(key), detail),
            Some(found) if found != expected => {
                errors.invalid(&labels.key(key), labels.value().clone(), detail);
            }
            Some(_) => {}
        }
    }
    let expected = serde_json::json!({
        LEGACY_UID: object.uid(), LEGACY_NAME: object.name(), UID: object.uid(), NAME: object.name(),
    });
    if matcher(selector.value()).is_some_and(|matcher| !matcher.selects(&expected)) {
        let printed = go_structs::print("LabelSelector", selector.value());
        errors.printed(&selector, Some(printed), "`selector` not auto-generated");
    }
}

fn spec_and_selector(spec: &Node<'_, '_>, errors: &mut Errors) {
    job_spec(spec, errors);
    let selector = spec.get("selector");
    if !selector.is_set() {
        errors.required(&selector, "");
    }
    label_selector(&selector, errors);
    let template = spec.get("template");
    let metadata = template.get("metadata");
    let labels = metadata.get("labels");
    if matcher(selector.value()).is_some_and(|matcher| !matcher.selects(labels.value())) {
        errors.invalid_value(&labels, "`selector` does not match template `labels`");
    }
}

/// Validates what Job specs and job templates have in common.
fn job_spec(spec: &Node<'_, '_>, errors: &mut Errors) {
    const NUMBERS: &[FieldRule] = &[
        ("parallelism", Rule::NotNegative),
        ("completions", Rule::NotNegative),
        ("activeDeadlineSeconds", Rule::NotNegative),
        ("backoffLimit", Rule::NotNegative),
        ("ttlSecondsAfterFinished", Rule::NotNegative),
        ("backoffLimitPerIndex", Rule::NotNegative),
        ("maxFailedIndexes", Rule::NotNegative),
    ];
    walk(spec, NUMBERS, errors);
    let per_index = spec.get("backoffLimitPerIndex");
    if spec.has("maxFailedIndexes") && !per_index.is_set() {
        errors.required(&per_index, "when maxFailedIndexes is specified");
    }
    let manager = spec.get("managedBy");
    if manager.is_set() {
        super::domain_path(&manager, errors);
        if manager.text().len() > 63 {
            errors.too_long(&manager, 63);
        }
    }
    walk(spec, &[("completionMode", Rule::OneOf(&["NonIndexed", "Indexed"]))], errors);
    match spec.text_of("completionMode") {
        "Indexed" => indexed_completion(spec, errors),
        "NonIndexed" | "" => {
            for key in ["backoffLimitPerIndex", "maxFailedIndexes"] {
                let node = spec.get(key);
                if node.is_set() {
                    errors.invalid_value(&node, "requires indexed completion mode");
                }
            }
        }
        _ => {}
    }
    failure_policy(spec, errors);
    let success = spec.get("successPolicy");
    if success.is_set() {
        if spec.text_of("completionMode") == "Indexed" {
            success_policy(spec, &success, errors);
        } else {
            let printed = go_structs::print("SuccessPolicy", success.value());
            errors.printed(&success, Some(printed), "requires indexed completion mode");
        }
    }
    let replacement = spec.get("podReplacementPolicy");
    if replacement.is_set() {
        let allowed: &[&str] = if spec.has("podFailurePolicy") {
            &["Failed"]
        } else {
            &["Failed", "TerminatingOrFailed"]
        };
        one_of(&replacement, allowed, errors);
    }
    let template = spec.get("template");
    pod::template(&template, errors);
    let pod = template.get("spec");
    let policy = pod.get("restartPolicy");
    match policy.text() {
        "" | "Always" => errors.required(&policy, "valid values: \"OnFailure\", \"Never\""),
        "OnFailure" if spec.has("podFailurePolicy") => {
            let detail = "only \"Never\" is supported when podFailurePolicy is specified";
            errors.invalid_value(&policy, detail);
        }
        "OnFailure" | "Never" => {}
        other => errors.unsupported(&policy, other, &["OnFailure", "Never"]),
    }
}

fn indexed_completion(spec: &Node<'_, '_>, errors: &mut Errors) {
    let (completions, parallelism) = (spec.get("completions"), spec.get("parallelism"));
    let failed = spec.get("maxFailedIndexes");
    let exceeds = |node: &Node<'_, '_>, max: i64| node.number().is_some_and(|number| number > max);
    if !completions.is_set() {
        errors.required(&completions, "when completion mode is Indexed");
    }
    if exceeds(&parallelism, LARGE_JOB) {
        let detail = "must be less than or equal to 100000 when completion mode is Indexed";
        errors.invalid_value(&parallelism, detail);
    }
    if completions.number().is_some_and(|max| exceeds(&failed, max)) {
        errors.invalid_value(&failed, "must be less than or equal to completions");
    }
    if exceeds(&failed, LARGE_JOB) {
        errors.invalid_value(&failed, "must be less than or equal to 100000");
    }
    if exceeds(&completions, LARGE_JOB) && spec.has("backoffLimitPerIndex") {
        if !failed.is_set() {
            errors.required(&failed, "must be specified when completions is above 100000");
        }
        for node in [&parallelism, &failed] {
            if exceeds(node, 10_000) {
                let detail = "must be less than or equal to 10000 when completions are above 100000 and used with backoff limit per index";
                errors.invalid_value(node, detail);
            }
        }
    }
}

/// The valid values as Go prints a list.
fn valid_values(allowed: &[&str]) -> String {
    let quoted: Vec<String> = allowed.iter().map(|text| format!("{text:?}")).collect();
    format!("valid values: [{}]", quoted.join(" "))
}

fn required_one_of(node: &Node<'_, '_>, allowed: &[&str], errors: &mut Errors) {
    match node.text() {
        "" => errors.required(node, valid_values(allowed)),
        _ => one_of(node, allowed, errors),
    }
}

fn failure_policy(spec: &Node<'_, '_>, errors: &mut Errors) {
    let policy = spec.get("podFailurePolicy");
    if !policy.is_set() {
        return;
    }
    let rules = policy.get("rules");
    if rules.len() > 20 {
        errors.too_many(&rules, rules.len(), 20);
    }
    let template = spec.get("template");
    let pod = template.get("spec");
    let containers: HashSet<&Value> = ["containers", "initContainers"]
        .iter()
        .flat_map(|list| pod.get(list).list())
        .filter_map(|container| container.get("name"))
        .collect();
    for rule in rules.items() {
        let action = rule.get("action");
        if action.text() == "FailIndex" {
            if !spec.has("backoffLimitPerIndex") {
                errors.invalid_value(&action, "requires the backoffLimitPerIndex to be set");
            }
        } else {
            required_one_of(&action, &ACTIONS, errors);
        }
        let (codes, conditions) = (rule.get("onExitCodes"), rule.get("onPodConditions"));
        if codes.is_set() {
            exit_codes(&codes, &containers, errors);
        }
        pod_conditions(&conditions, errors);
        let detail = match (codes.is_set(), conditions.len() > 0) {
            (true, true) => "specifying both OnExitCodes and OnPodConditions is not supported",
            (false, false) => "specifying one of OnExitCodes and OnPodConditions is required",
            _ => continue,
        };
        errors.printed(&rule, None, detail);
    }
}

fn pod_conditions(list: &Node<'_, '_>, errors: &mut Errors) {
    if list.len() > 20 {
        errors.too_many(list, list.len(), 20);
    }
    for condition in list.items() {
        walk(&condition, &[("type", Rule::AlwaysFormat(names::qualified_name))], errors);
        required_one_of(&condition.get("status"), &["False", "True", "Unknown"], errors);
    }
}

fn exit_codes(node: &Node<'_, '_>, containers: &HashSet<&Value>, errors: &mut Errors) {
    required_one_of(&node.get("operator"), &["In", "NotIn"], errors);
    let name = node.get("containerName");
    if name.is_set() && !containers.contains(&name.value()) {
        let detail = "must be one of the container or initContainer names in the pod template";
        errors.invalid_value(&name, detail);
    }
    let values = node.get("values");
    if values.len() == 0 {
        errors.invalid_value(&values, "at least one value is required");
    } else if values.len() > 255 {
        errors.too_many(&values, values.len(), 255);
    }
    let mut seen: HashSet<i64> = HashSet::new();
    let mut last = i64::MIN;
    let mut is_ordered = true;
    for value in values.items() {
        let code = value.number().unwrap_or_default();
        if node.text_of("operator") == "In" && code == 0 {
            errors.invalid_value(&value, "must not be 0 for the In operator");
        }
        if !seen.insert(code) {
            errors.duplicate(&value, code);
        }
        is_ordered &= last <= code;
        last = code;
    }
    if !is_ordered {
        errors.invalid_value(&values, "must be ordered");
    }
}

fn success_policy(spec: &Node<'_, '_>, policy: &Node<'_, '_>, errors: &mut Errors) {
    let rules = policy.get("rules");
    let max = spec.number_of("completions").unwrap_or_default();
    if rules.len() == 0 {
        let detail = "at least one rules must be specified when the successPolicy is specified";
        errors.required(&rules, detail);
    }
    if rules.len() > 20 {
        errors.too_many(&rules, rules.len(), 20);
    }
    for rule in rules.items() {
        let (indexes, count) = (rule.get("succeededIndexes"), rule.get("succeededCount"));
        if !indexes.is_set() && !count.is_set() {
            let detail = "at least one of succeededCount or succeededIndexes must be specified";
            errors.required(&rule, detail);
        }
        let mut total = 0;
        if indexes.is_set() {
            if indexes.text().len() > 64 * 1024 {
                errors.too_long(&indexes, 64 * 1024);
            }
            match schedule::indexes(indexes.text(), max) {
                Ok(found) => total = found,
                Err(error) => {
                    errors.invalid_value(
                        &indexes,
                        format!("error parsing succeededIndexes: {error}"),
                    );
                }
            }
        }
        if let Some(number) = count.number() {
            walk(&count, &[("", Rule::NotNegative)], errors);
            if number > max {
                let detail = format!(
                    "must be less than or equal to {max} (the number of specified completions)"
                );
                errors.invalid_value(&count, detail);
            }
            if indexes.is_set() && number > total {
                let detail = format!(
                    "must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
                );
                errors.invalid_value(&count, detail);
            }
        }
    }
}

/// Validates an update of a Job.
pub(in super::super) fn job_update(object: &Object, old: &Object, errors: &mut Errors) {
    let (new, before) = (object_field(object, "spec"), object_field(old, "spec"));
    let (spec, before) = (Node::top_level(new, "spec"), Node::root(before));
    spec_and_selector(&spec, errors);
    completions(&spec, &before, errors);
    immutable_struct(&spec, &before, "selector", "LabelSelector", errors);
    template_update(object, old, errors);
    immutable(&spec.get("completionMode"), before.get("completionMode").value(), errors);
    immutable_struct(&spec, &before, "podFailurePolicy", "PodFailurePolicy", errors);
    for key in ["backoffLimitPerIndex", "managedBy"] {
        immutable(&spec.get(key), before.get(key).value(), errors);
    }
    immutable_struct(&spec, &before, "successPolicy", "SuccessPolicy", errors);
}

/// Validates that a struct is unchanged; the error prints the Go struct.
fn immutable_struct(
    spec: &Node<'_, '_>,
    old: &Node<'_, '_>,
    key: &'static str,
    ty: &str,
    errors: &mut Errors,
) {
    let node = spec.get(key);
    if !semantically_equal(node.value(), old.get(key).value()) {
        let printed = go_structs::pointer(ty, node.value());
        errors.printed(&node, Some(printed), super::IMMUTABLE);
    }
}

fn completions(spec: &Node<'_, '_>, old: &Node<'_, '_>, errors: &mut Errors) {
    let node = spec.get("completions");
    if spec.text_of("completionMode") != "Indexed" {
        immutable(&node, old.get("completions").value(), errors);
        return;
    }
    if node.value() == old.get("completions").value() || !node.is_set() {
        return;
    }
    if node.number() != spec.number_of("parallelism") {
        errors.invalid_value(&node, "can only be modified in tandem with spec.parallelism");
    }
}

/// Validates that the pod template is unchanged; a suspended Job that has not started may change its
/// scheduling fields.
fn template_update(object: &Object, old: &Object, errors: &mut Errors) {
    let spec = Node::top_level(object_field(object, "spec"), "spec");
    let template = spec.get("template");
    let before = object_field(old, "spec");
    let mut expected = before.get("template").cloned().unwrap_or_default();
    let is_suspended = before.get("suspend") == Some(&Value::Bool(true));
    let is_started =
        object_field(old, "status").get("startTime").is_some_and(|time| !time.is_null());
    if is_suspended && !is_started {
        for path in [
            &["metadata", "annotations"][..],
            &["metadata", "labels"],
            &["spec", "affinity", "nodeAffinity"],
            &["spec", "nodeSelector"],
            &["spec", "tolerations"],
            &["spec", "schedulingGates"],
        ] {
            copy_path(&mut expected, template.value(), path);
        }
    }
    if !semantically_equal(template.value(), &expected) {
        let printed = go_structs::print("PodTemplateSpec", template.value());
        errors.printed(&template, Some(printed), super::IMMUTABLE);
    }
}

/// Copies the value at a path.
fn copy_path(to: &mut Value, from: &Value, path: &[&str]) {
    let [key, rest @ ..] = path else { return };
    let value = from.get(key);
    let Some(fields) = to.as_object_mut() else { return };
    if rest.is_empty() {
        match value {
            Some(value) => fields.insert((*key).to_owned(), value.clone()),
            None => fields.remove(*key),
        };
        return;
    }
    let inner = fields.entry(*key).or_insert_with(|| Value::Object(serde_json::Map::new()));
    copy_path(inner, value.unwrap_or(&Value::Null), rest);
    if inner.as_object().is_some_and(serde_json::Map::is_empty) && value.is_none() {
        fields.remove(*key);
    }
}

pub(in super::super) fn cron_job(object: &Object, errors: &mut Errors) {
    cron_job_spec(&Node::top_level(object_field(object, "spec"), "spec"), None, errors);
    if object.name().len() > 52 {
        let metadata = Node::top_level(object_field(object, "metadata"), "metadata");
        let detail = "must be no more than 52 characters";
        errors.invalid(&metadata.get("name"), object.name(), detail);
    }
}

pub(in super::super) fn cron_job_update(object: &Object, old: &Object, errors: &mut Errors) {
    cron_job_spec(
        &Node::top_level(object_field(object, "spec"), "spec"),
        Some(object_field(old, "spec")),
        errors,
    );
}

fn cron_job_spec(spec: &Node<'_, '_>, old: Option<&Value>, errors: &mut Errors) {
    const HISTORY: &[FieldRule] = &[
        ("successfulJobsHistoryLimit", Rule::NotNegative),
        ("failedJobsHistoryLimit", Rule::NotNegative),
    ];
    let (schedule_text, time_zone) = (spec.get("schedule"), spec.get("timeZone"));
    let before = |key: &str| old.and_then(|old| old.get(key)).unwrap_or(&Value::Null);
    if schedule_text.text().is_empty() {
        errors.required(&schedule_text, "");
    } else {
        if let Err(error) = schedule::cron(schedule_text.text()) {
            errors.invalid_value(&schedule_text, error.to_string());
        }
        let has_zone = schedule_text.text().contains("TZ");
        let had_zone =
            before("schedule").as_str().is_some_and(|schedule_text| schedule_text.contains("TZ"));
        if has_zone && had_zone && time_zone.is_set() {
            errors.invalid_value(
                &schedule_text,
                "cannot use both timeZone field and TZ or CRON_TZ in schedule",
            );
        } else if has_zone && !had_zone {
            errors.invalid_value(
                &schedule_text,
                "cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
            );
        }
    }
    walk(spec, &[("startingDeadlineSeconds", Rule::NotNegative)], errors);
    if time_zone.is_set() && (old.is_none() || before("timeZone") != time_zone.value()) {
        for problem in schedule::time_zone(time_zone.text()) {
            errors.invalid_value(&time_zone, problem);
        }
    }
    walk(
        spec,
        &[("concurrencyPolicy", Rule::RequiredOneOf(&["Allow", "Forbid", "Replace"]))],
        errors,
    );
    let template = spec.get("jobTemplate");
    let job = template.get("spec");
    job_spec(&job, errors);
    let selector = job.get("selector");
    if selector.is_set() {
        let printed = go_structs::print("LabelSelector", selector.value());
        errors.printed(&selector, Some(printed), "`selector` will be auto-generated");
    }
    if job.is_true("manualSelector") {
        errors.unsupported(&job.get("manualSelector"), true, &["nil", "false"]);
    }
    walk(spec, HISTORY, errors);
}
