//! State of a ClusterExtension, from its status, and its conditions in plain words.
//!
//! All functions read fields of the API only, so they are right for clusters of upstream OLM as well.

use mainstay_cause::Cause;
use mainstay_command::text::escape_controls;
use mainstay_explain::permission_remedy;
use mainstay_object::Object;
use serde_json::{Value, json};

/// How far the controller is with the spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InstallStage {
    /// The desired state is reached.
    Installed,
    /// The controller works on it, or did not begin.
    Pending,
    /// The controller gave up; only a change of the spec helps.
    Stopped,
}

/// The bundle that is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InstalledState<'o> {
    pub(super) name: &'o str,
    pub(super) version: &'o str,
    /// The release of the version; empty if there is none.
    pub(super) release: &'o str,
}

impl InstalledState<'_> {
    /// The version with its release.
    pub(super) fn version_text(&self) -> String {
        match self.release {
            "" => self.version.to_owned(),
            release => format!("{}-{release}", self.version),
        }
    }
}

/// The condition of a type.
fn condition<'o>(extension: &'o Object, kind: &str) -> Option<&'o Value> {
    let mut all = extension.array(&["status", "conditions"]).iter();
    all.find(|condition| condition["type"] == kind)
}

/// Whether a condition is about the present spec.
fn is_current(extension: &Object, condition: &Value) -> bool {
    condition["observedGeneration"]
        .as_i64()
        .is_none_or(|observed| observed >= extension.generation())
}

fn text<'v>(condition: &'v Value, field: &str) -> &'v str {
    condition[field].as_str().unwrap_or_default()
}

/// The stage of the present spec.
pub(super) fn install_stage(extension: &Object) -> InstallStage {
    let current =
        |kind| condition(extension, kind).filter(|condition| is_current(extension, condition));
    let (Some(progressing), installed) = (current("Progressing"), current("Installed")) else {
        return InstallStage::Pending;
    };
    let is_installed = installed.is_some_and(|installed| installed["status"] == "True");
    match (text(progressing, "status"), text(progressing, "reason")) {
        ("True", "Succeeded") if is_installed => InstallStage::Installed,
        ("False", _) => InstallStage::Stopped,
        _ => InstallStage::Pending,
    }
}

/// Whether the desired state is reached and works: by the condition Ready, or where a controller of upstream does not
/// set it, by the condition Available, if there is one.
pub(super) fn is_ready(extension: &Object) -> bool {
    let works = ["Ready", "Available"].iter().find_map(|kind| condition(extension, kind));
    install_stage(extension) == InstallStage::Installed
        && works.is_none_or(|works| works["status"] == "True" && is_current(extension, works))
}

/// The installed bundle.
pub(super) fn installed_bundle(extension: &Object) -> Option<InstalledState<'_>> {
    let field = |name| extension.str(&["status", "install", "bundle", name]);
    let name = field("name").filter(|name| !name.is_empty())?;
    let (version, release) = (field("version"), field("release"));
    Some(InstalledState {
        name,
        version: version.unwrap_or_default(),
        release: release.unwrap_or_default(),
    })
}

/// The image of the installed bundle, from the message of the condition Installed.
pub(super) fn installed_image(extension: &Object) -> Option<&str> {
    let installed = condition(extension, "Installed")?;
    let message = text(installed, "message").strip_prefix("Installed bundle ")?;
    message.strip_suffix(" successfully").filter(|image| !image.is_empty())
}

/// Why the desired state is not reached or does not work; empty if it is reached and works.
pub(super) fn obstacles(extension: &Object) -> Vec<Cause> {
    if is_ready(extension) {
        return Vec::new();
    }
    let sentences = ["Progressing", "Installed", "Available", "Ready"].iter().filter_map(|kind| {
        let condition = condition(extension, kind).filter(|condition| !repeats(condition))?;
        let is_reached = condition["status"] == "True"
            && (*kind != "Progressing" || condition["reason"] == "Succeeded");
        (!is_reached).then(|| condition_sentence(extension, condition))
    });
    let causes: Vec<Cause> =
        sentences.map(|sentence| with_remedy(extension, Cause::new(sentence))).collect();
    if !causes.is_empty() {
        return causes;
    }
    vec![
        Cause::new("no controller has reported on the present spec")
            .remedy("check that a controller of OLM v1 runs, such as `mainstay run`"),
    ]
}

/// Whether a condition repeats what another one says: Ready, unless it is about Deployments.
fn repeats(condition: &Value) -> bool {
    condition["type"] == "Ready"
        && condition["status"] != "True"
        && condition["reason"] != "DeploymentsUnavailable"
}

/// Adds the remedy for missing permissions of the ServiceAccount.
fn with_remedy(extension: &Object, cause: Cause) -> Cause {
    if !cause.what().contains("pre-authorization failed") {
        return cause;
    }
    let remedy = permission_remedy(extension, cause.what());
    cause.remedy(remedy)
}

/// The conditions in plain words, one a line. Deprecations that do not hold are left out.
pub(super) fn condition_sentences(extension: &Object) -> Vec<String> {
    let conditions = extension.array(&["status", "conditions"]).iter();
    let holding = conditions.filter(|condition| {
        let is_deprecation = text(condition, "type").ends_with("Deprecated");
        (!is_deprecation || condition["status"] == "True") && !repeats(condition)
    });
    holding.map(|condition| condition_sentence(extension, condition)).collect()
}

fn condition_sentence(extension: &Object, condition: &Value) -> String {
    let kind = text(condition, "type");
    let plain = plain_words(kind, text(condition, "status"), text(condition, "reason"));
    let message = text(condition, "message");
    let mut sentence = match plain {
        Some((words, true)) if !message.is_empty() => {
            format!("{words}: {}", escape_lines(message))
        }
        Some((words, _)) => words.to_owned(),
        None => format!(
            "{kind} is {} ({}): {}",
            text(condition, "status"),
            text(condition, "reason"),
            escape_lines(message)
        ),
    };
    if !is_current(extension, condition) {
        sentence.push_str(" (about an earlier spec)");
    }
    sentence
}

/// What a condition says, in plain words, and whether its message says more.
fn plain_words(kind: &str, status: &str, reason: &str) -> Option<(&'static str, bool)> {
    Some(match (kind, status, reason) {
        ("Installed", "True", _) => ("a bundle is installed", false),
        ("Installed", "False", "Absent") => ("no bundle is installed yet", false),
        ("Installed", "False", _) => ("no bundle is installed", false),
        ("Installed", _, _) => ("it is unknown which bundle is installed", true),
        ("Progressing", "True", "Succeeded") => ("the desired state is reached", false),
        ("Progressing", "True", "RollingOut") => ("the objects are being applied", true),
        ("Progressing", "True", "Retrying") => ("the controller met an error and retries", true),
        ("Progressing", "False", "Blocked") => {
            ("the controller stopped until the spec changes", true)
        }
        ("Progressing", "False", "InvalidConfiguration") => {
            ("the bundle refuses the configuration", true)
        }
        ("Progressing", "False", "ProgressDeadlineExceeded") => {
            ("the rollout takes longer than allowed", true)
        }
        ("Available", "True", _) => ("the objects work", false),
        ("Available", "False", "RollingOut") => ("some objects are not ready yet", true),
        ("Available", "False", _) => ("some objects do not work", true),
        ("Available", "Unknown", _) => ("it is unknown whether the objects work", true),
        ("Ready", "True", _) => ("it is ready", false),
        ("Ready", "False", "DeploymentsUnavailable") => {
            ("some Deployments are not available", true)
        }
        ("Deprecated", "True", _) => ("a part is deprecated", true),
        ("PackageDeprecated", "True", _) => ("the package is deprecated", true),
        ("ChannelDeprecated", "True", _) => ("a channel is deprecated", true),
        ("BundleDeprecated", "True", _) => ("the installed bundle is deprecated", true),
        _ => return None,
    })
}

/// A message of a cluster without control characters; its lines stay.
pub(super) fn escape_lines(message: &str) -> String {
    message.lines().map(escape_controls).collect::<Vec<_>>().join("\n")
}

/// What `list` and `describe` show of a ClusterExtension, as a value.
pub(super) fn summary(extension: &Object) -> Value {
    let catalog = |field| extension.get(&["spec", "source", "catalog", field]);
    let bundle = installed_bundle(extension).map(|bundle| {
        json!({"name": bundle.name, "version": bundle.version_text(), "image": installed_image(extension)})
    });
    json!({
        "name": extension.name(),
        "namespace": extension.str(&["spec", "namespace"]),
        "package": catalog("packageName"),
        "channels": catalog("channels").cloned().unwrap_or_else(|| json!([])),
        "version": catalog("version").and_then(Value::as_str).unwrap_or_default(),
        "sourceType": extension.str(&["spec", "source", "sourceType"]),
        "installed": bundle,
        "stage": match install_stage(extension) {
            InstallStage::Installed => "installed",
            InstallStage::Pending => "pending",
            InstallStage::Stopped => "stopped",
        },
        "conditions": extension.get(&["status", "conditions"]).cloned().unwrap_or_else(|| json!([])),
        "created": extension.str(&["metadata", "creationTimestamp"]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_permissions::unapproved_message;

    fn extension(conditions: &Value) -> Object {
        Object::from_value(json!({
            "metadata": {"name": "tea", "generation": 2},
            "status": {"conditions": conditions},
        }))
        .unwrap()
    }

    #[test]
    fn stage_counts_conditions_of_the_present_spec_only() {
        let progressing = |status: &str, reason: &str, generation: i64| json!({"type": "Progressing", "status": status, "reason": reason, "observedGeneration": generation});
        let installed = |status: &str| json!({"type": "Installed", "status": status, "reason": "x", "observedGeneration": 2});
        for (conditions, expected) in [
            (json!([]), InstallStage::Pending),
            (
                json!([progressing("True", "Succeeded", 2), installed("True")]),
                InstallStage::Installed,
            ),
            (
                json!([progressing("True", "Succeeded", 1), installed("True")]),
                InstallStage::Pending,
            ),
            (
                json!([progressing("True", "Succeeded", 2), installed("False")]),
                InstallStage::Pending,
            ),
            (json!([progressing("True", "Retrying", 2), installed("True")]), InstallStage::Pending),
            (json!([progressing("False", "Blocked", 2)]), InstallStage::Stopped),
            (json!([progressing("False", "Blocked", 1)]), InstallStage::Pending),
        ] {
            let found = install_stage(&extension(&conditions));
            assert_eq!(found, expected, "{conditions}");
        }
    }

    #[test]
    fn every_condition_has_plain_words() {
        for (kind, status, reason, expected) in [
            ("Installed", "True", "Succeeded", "a bundle is installed"),
            ("Installed", "False", "Absent", "no bundle is installed yet"),
            ("Installed", "False", "Failed", "no bundle is installed"),
            ("Installed", "Unknown", "Failed", "it is unknown which bundle is installed: m"),
            ("Progressing", "True", "Succeeded", "the desired state is reached"),
            ("Progressing", "True", "RollingOut", "the objects are being applied: m"),
            ("Progressing", "True", "Retrying", "the controller met an error and retries: m"),
            ("Progressing", "False", "Blocked", "the controller stopped until the spec changes: m"),
            (
                "Progressing",
                "False",
                "InvalidConfiguration",
                "the bundle refuses the configuration: m",
            ),
            (
                "Progressing",
                "False",
                "ProgressDeadlineExceeded",
                "the rollout takes longer than allowed: m",
            ),
            ("Available", "True", "ProbesSucceeded", "the objects work"),
            ("Available", "False", "RollingOut", "some objects are not ready yet: m"),
            ("Available", "False", "ProbeFailure", "some objects do not work: m"),
            ("Available", "False", "Other", "some objects do not work: m"),
            ("Available", "Unknown", "Archived", "it is unknown whether the objects work: m"),
            ("Ready", "True", "Ready", "it is ready"),
            ("Ready", "False", "DeploymentsUnavailable", "some Deployments are not available: m"),
            ("Deprecated", "True", "Deprecated", "a part is deprecated: m"),
            ("PackageDeprecated", "True", "Deprecated", "the package is deprecated: m"),
            ("ChannelDeprecated", "True", "Deprecated", "a channel is deprecated: m"),
            ("BundleDeprecated", "True", "Deprecated", "the installed bundle is deprecated: m"),
            ("New", "True", "Reason", "New is True (Reason): m"),
        ] {
            let condition =
                json!({"type": kind, "status": status, "reason": reason, "message": "m"});
            let found = condition_sentences(&extension(&json!([condition])));
            assert_eq!(found, [expected], "{condition}");
        }
        let quiet = json!([
            {"type": "Deprecated", "status": "False", "reason": "NotDeprecated"},
            {"type": "Ready", "status": "False", "reason": "Retrying", "message": "m"},
        ]);
        assert!(condition_sentences(&extension(&quiet)).is_empty());
    }

    #[test]
    fn ready_is_the_condition_ready_or_else_available() {
        let with = |more: Value| {
            let mut conditions = vec![
                json!({"type": "Installed", "status": "True", "observedGeneration": 2}),
                json!({"type": "Progressing", "status": "True", "reason": "Succeeded", "observedGeneration": 2}),
            ];
            conditions.extend(more.as_array().cloned().unwrap_or_default());
            extension(&conditions.into())
        };
        let condition = |kind: &str, status: &str, generation: i64| json!({"type": kind, "status": status, "observedGeneration": generation});
        for (more, expected) in [
            (json!([]), true),
            (json!([condition("Available", "False", 2)]), false),
            (json!([condition("Ready", "True", 2)]), true),
            (json!([condition("Ready", "True", 1)]), false),
            (json!([condition("Ready", "False", 2), condition("Available", "True", 2)]), false),
        ] {
            assert_eq!(is_ready(&with(more.clone())), expected, "{more}");
        }
        let unavailable = json!([{
            "type": "Ready", "status": "False", "reason": "DeploymentsUnavailable",
            "message": "Deployment a/b is rolling out", "observedGeneration": 2,
        }]);
        let found: Vec<String> =
            obstacles(&with(unavailable)).iter().map(|cause| cause.what().to_owned()).collect();
        assert_eq!(found, ["some Deployments are not available: Deployment a/b is rolling out"]);
    }

    #[test]
    fn reached_state_has_no_obstacles_and_a_condition_of_an_earlier_spec_is_one() {
        let conditions = |generation: i64| {
            json!([
                {"type": "Installed", "status": "True", "reason": "Succeeded", "observedGeneration": generation},
                {"type": "Progressing", "status": "True", "reason": "Succeeded", "observedGeneration": generation},
            ])
        };
        assert_eq!(obstacles(&extension(&conditions(2))), []);
        let stale = obstacles(&extension(&conditions(1)));
        assert_eq!(stale[0].what(), "no controller has reported on the present spec");
    }

    #[test]
    fn missing_permissions_have_the_command_that_prints_roles() {
        let message = "pre-authorization failed: service account requires";
        let mut tea = extension(&json!([
            {"type": "Progressing", "status": "True", "reason": "Retrying", "message": message},
        ]));
        tea.set(&["spec"], json!({"namespace": "kitchen", "serviceAccount": {"name": "me"}}));
        let text = obstacles(&tea).iter().map(ToString::to_string).collect::<String>();
        let remedy = "mainstay extension rbac tea --bundle DIR|IMAGE --namespace kitchen --service-account me";
        // shows PRE-10
        assert!(text.contains(remedy), "{text}");
        tea.set(&["status", "install"], json!({"bundle": {"name": "tea.v1", "version": "1.0.0"}}));
        let text = obstacles(&tea)[0].to_string();
        assert!(text.contains("rbac tea --bundle NEW --also OLD --namespace kitchen"), "{text}");
        let message = unapproved_message("tea", &[]);
        tea.set(
            &["status", "conditions"],
            json!([{"type": "Progressing", "status": "True", "reason": "Retrying", "message": message}]),
        );
        let text = obstacles(&tea)[0].to_string();
        assert!(text.contains("approve them: mainstay extension approve tea"), "{text}");
    }

    #[test]
    fn image_is_in_the_message_of_installed() {
        let installed =
            |message: &str| extension(&json!([{"type": "Installed", "message": message}]));
        for (message, image) in [
            ("Installed bundle x.io/tea@sha256:1 successfully", Some("x.io/tea@sha256:1")),
            ("No bundle installed", None),
            ("Installed bundle  successfully", None),
        ] {
            assert_eq!(installed_image(&installed(message)), image, "{message}");
        }
    }
}
