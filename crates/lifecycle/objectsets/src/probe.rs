//! Progression probes: whether an object is ready, and why not.
//!
//! A selector that does not match an object succeeds without a message. Each probe also needs a current status:
//! an object whose `status.observedGeneration` is old is in an unknown state.

use mainstay_api::{
    ConditionEqualProbe, FieldValueProbe, FieldsEqualProbe, ProbeAssertion, ProbeAssertionType,
    ProbeSelector, ProbeSelectorType, ProgressionProbe,
};
use mainstay_gocompat::quote;
use mainstay_gocompat::values::{json as go_json, plain, type_name};
use mainstay_object::Object;
use mainstay_object::selector::LabelSelector;
use serde_json::Value;

/// The state that a probe found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeStatus {
    /// The object is ready.
    True,
    /// The object is not ready.
    False,
    /// The status is missing or outdated.
    Unknown,
}

/// The result of probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeResult {
    /// The state.
    pub status: ProbeStatus,
    /// What was found, in upstream's words.
    pub messages: Vec<String>,
}

/// Probes that cannot be run, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadProbesError {
    /// An assertion of an unknown type.
    #[error("unknown progressionProbe assertion probe type: {0}")]
    AssertionType(String),
    /// A selector of an unknown type.
    #[error("unknown progressionProbe selector type: {0}")]
    SelectorType(String),
    /// A label selector that cannot be parsed.
    #[error("invalid label selector in progressionProbe ({selector}): {message}")]
    LabelSelector {
        /// The selector.
        selector: String,
        /// Why.
        message: String,
    },
}

/// The probes of a ClusterObjectSet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgressionProbes(Vec<Probe>);

#[derive(Clone, Debug, PartialEq)]
struct Probe {
    selector: Selector,
    assertions: Vec<Assertion>,
}

#[derive(Clone, Debug, PartialEq)]
enum Selector {
    GroupKind { group: String, kind: String },
    Labels(LabelSelector),
}

#[derive(Clone, Debug, PartialEq)]
enum Assertion {
    Condition(ConditionEqualProbe),
    Fields(FieldsEqualProbe),
    Value(FieldValueProbe),
}

impl ProbeResult {
    fn new(status: ProbeStatus, message: String) -> Self {
        Self { status, messages: vec![message] }
    }

    const fn success() -> Self {
        Self { status: ProbeStatus::True, messages: Vec::new() }
    }

    /// Whether the object is ready.
    pub fn is_success(&self) -> bool {
        self.status == ProbeStatus::True
    }

    /// Unknown outweighs false, and false outweighs true. Only messages of the resulting state remain.
    fn all(results: impl IntoIterator<Item = Self>) -> Self {
        let mut combined = Self::success();
        let rank = |status| match status {
            ProbeStatus::True => 0,
            ProbeStatus::False => 1,
            ProbeStatus::Unknown => 2,
        };
        for result in results {
            if rank(result.status) > rank(combined.status) {
                combined = result;
            } else if result.status == combined.status {
                combined.messages.extend(result.messages);
            }
        }
        combined
    }
}

impl ProgressionProbes {
    /// Reads the probes of a ClusterObjectSet.
    ///
    /// # Errors
    /// A probe has an unknown type, or an invalid label selector.
    pub fn read(probes: &[ProgressionProbe]) -> Result<Self, ReadProbesError> {
        let read = |probe: &ProgressionProbe| {
            let assertions =
                probe.assertions.iter().map(read_assertion).collect::<Result<_, _>>()?;
            Ok(Probe { assertions, selector: read_selector(&probe.selector)? })
        };
        probes.iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    /// Runs the probes.
    pub fn probe(&self, object: &Object) -> ProbeResult {
        ProbeResult::all(self.0.iter().map(|probe| probe.run(object)))
    }
}

fn read_selector(selector: &ProbeSelector) -> Result<Selector, ReadProbesError> {
    match selector.kind {
        ProbeSelectorType::GroupKind => {
            let group_kind = selector.group_kind.clone().unwrap_or_default();
            Ok(Selector::GroupKind { group: group_kind.group, kind: group_kind.kind })
        }
        ProbeSelectorType::Label => {
            let value = selector.label.clone().unwrap_or_default();
            LabelSelector::from_value(&value).map(Selector::Labels).map_err(|error| {
                ReadProbesError::LabelSelector {
                    selector: go_selector(&value),
                    message: error.to_string(),
                }
            })
        }
        ProbeSelectorType::Other(ref kind) => Err(ReadProbesError::SelectorType(kind.to_string())),
    }
}

/// A label selector as Go prints the struct.
fn go_selector(selector: &Value) -> String {
    let labels = selector.get("matchLabels").map_or_else(|| "map[]".to_owned(), plain);
    let expression = |expression: &Value| {
        let part = |name: &str| expression.get(name).map_or_else(String::new, plain);
        let values = expression.get("values").map_or_else(|| "[]".to_owned(), plain);
        format!("{{{} {} {values}}}", part("key"), part("operator"))
    };
    let expressions: Vec<String> = selector
        .get("matchExpressions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(expression)
        .collect();
    format!("{{{labels} [{}]}}", expressions.join(" "))
}

fn read_assertion(assertion: &ProbeAssertion) -> Result<Assertion, ReadProbesError> {
    Ok(match assertion.kind {
        ProbeAssertionType::ConditionEqual => {
            Assertion::Condition(assertion.condition_equal.clone().unwrap_or_default())
        }
        ProbeAssertionType::FieldsEqual => {
            Assertion::Fields(assertion.fields_equal.clone().unwrap_or_default())
        }
        ProbeAssertionType::FieldValue => {
            Assertion::Value(assertion.field_value.clone().unwrap_or_default())
        }
        ProbeAssertionType::Other(ref kind) => {
            return Err(ReadProbesError::AssertionType(kind.to_string()));
        }
    })
}

impl Probe {
    fn run(&self, object: &Object) -> ProbeResult {
        let observed = object.i64(&["status", "observedGeneration"]);
        if observed.is_some_and(|observed| observed != object.generation()) {
            // This applies to objects that the selector does not match, too.
            return ProbeResult::new(ProbeStatus::Unknown, ".status outdated".to_owned());
        }
        let is_selected = match &self.selector {
            Selector::GroupKind { group, kind } => {
                let gvk = object.gvk();
                gvk.group == *group && gvk.kind == *kind
            }
            Selector::Labels(selector) => selector.matches(object),
        };
        if !is_selected {
            return ProbeResult::success();
        }
        ProbeResult::all(self.assertions.iter().map(|assertion| assertion.run(object)))
    }
}

impl Assertion {
    fn run(&self, object: &Object) -> ProbeResult {
        match self {
            Self::Condition(probe) => condition_equal(object, probe),
            Self::Fields(probe) => fields_equal(object, probe),
            Self::Value(probe) => field_value(object, probe),
        }
    }
}

fn condition_equal(object: &Object, probe: &ConditionEqualProbe) -> ProbeResult {
    let unknown = |message: String| ProbeResult::new(ProbeStatus::Unknown, message);
    let Some(conditions) = object.get(&["status", "conditions"]) else {
        return unknown("missing .status.conditions".to_owned());
    };
    let malformed = || unknown("malformed .status.conditions".to_owned());
    let Value::Array(conditions) = conditions else { return malformed() };
    let kind = &probe.kind;
    for condition in conditions {
        let Value::Object(condition) = condition else { return malformed() };
        if condition.get("type").and_then(Value::as_str) != Some(kind) {
            continue;
        }
        let observed = condition.get("observedGeneration").and_then(Value::as_i64);
        if observed.is_some_and(|observed| observed != object.generation()) {
            return unknown(format!(".status.condition[\"{kind}\"] outdated"));
        }
        let status = condition.get("status").unwrap_or(&Value::Null);
        let holds = status.as_str() == Some(&probe.status);
        let verdict = if holds { ProbeStatus::True } else { ProbeStatus::False };
        let message = format!(".status.condition[\"{kind}\"] is {}", plain(status));
        return ProbeResult::new(verdict, message);
    }
    unknown(format!("missing .status.condition[\"{kind}\"]"))
}

fn fields_equal(object: &Object, probe: &FieldsEqualProbe) -> ProbeResult {
    let (first, second) = (&probe.field_a, &probe.field_b);
    let missing = |path: &str| ProbeResult::new(ProbeStatus::False, format!("\"{path}\" missing"));
    let Ok(Some(left)) = field_at(object, first) else { return missing(first) };
    let Ok(Some(right)) = field_at(object, second) else { return missing(second) };
    if left == right {
        return ProbeResult::new(ProbeStatus::True, format!("\"{first}\" == \"{second}\""));
    }
    let (left, right) = (go_json(left), go_json(right));
    let message = format!("\"{first}\" != \"{second}\" expected: {left} got: {right}");
    ProbeResult::new(ProbeStatus::False, message)
}

fn field_value(object: &Object, probe: &FieldValueProbe) -> ProbeResult {
    let (path, value) = (quote(&probe.field_path), quote(&probe.value));
    let fails = |message: String| ProbeResult::new(ProbeStatus::False, message);
    match field_at(object, &probe.field_path) {
        Err(message) => fails(format!("error locating key {path}; {message}")),
        Ok(None) => fails(format!("missing key: {path}")),
        Ok(Some(Value::String(found))) if *found == probe.value => {
            ProbeResult::new(ProbeStatus::True, format!("value at key {path} == {value}"))
        }
        Ok(Some(found)) => {
            let expected = go_json(&Value::String(probe.value.clone()));
            let found = go_json(found);
            fails(format!("value at key {path} != {value}; expected: {expected} got: {found}"))
        }
    }
}

/// The value at a path; none if it is absent. The error is that of a value on the way which has no fields.
fn field_at<'o>(object: &'o Object, path: &str) -> Result<Option<&'o Value>, String> {
    let names: Vec<&str> = path.trim_matches('.').split('.').collect();
    let mut found = object.fields().get(names[0]);
    for (at, name) in names.iter().enumerate().skip(1) {
        found = match found {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Object(fields)) => fields.get(*name),
            Some(other) => {
                return Err(format!(
                    ".{} accessor error: {} is of the type {}, expected map[string]interface {{}}",
                    names[..=at].join("."),
                    plain(other),
                    type_name(other)
                ));
            }
        };
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::default_probes::default_progression_probes;
    use serde_json::json;

    fn object(value: Value) -> Object {
        Object::from_value(value).unwrap()
    }

    fn probes(value: Value) -> ProgressionProbes {
        let probes: Vec<ProgressionProbe> = serde_json::from_value(value).unwrap();
        ProgressionProbes::read(&probes).unwrap()
    }

    fn run(assertion: &Value, object: &Object) -> (ProbeStatus, String) {
        let selector = json!({"type": "Label", "label": {"matchLabels": {}}});
        let probes = probes(json!([{"selector": selector, "assertions": [assertion]}]));
        let result = probes.probe(object);
        (result.status, result.messages.join("|"))
    }

    #[test]
    fn field_value_messages_are_those_of_upstream() {
        let claim = object(json!({"status": {"phase": "Pending", "n": 1}}));
        let value = |path: &str, value: &str| {
            run(
                &json!({"type": "FieldValue", "fieldValue": {"fieldPath": path, "value": value}}),
                &claim,
            )
        };
        let cases = [
            (
                "status.phase",
                "Pending",
                ProbeStatus::True,
                r#"value at key "status.phase" == "Pending""#,
            ),
            (
                "status.phase",
                "Bound",
                ProbeStatus::False,
                r#"value at key "status.phase" != "Bound"; expected: "Bound" got: "Pending""#,
            ),
            (
                "status.n",
                "1",
                ProbeStatus::False,
                r#"value at key "status.n" != "1"; expected: "1" got: 1"#,
            ),
            ("status.x.y", "1", ProbeStatus::False, r#"missing key: "status.x.y""#),
            (
                "status.phase.y",
                "1",
                ProbeStatus::False,
                "error locating key \"status.phase.y\"; .status.phase.y accessor error: Pending is of \
                 the type string, expected map[string]interface {}",
            ),
        ];
        for (path, wanted, status, message) in cases {
            assert_eq!(value(path, wanted), (status, message.to_owned()), "{path} {wanted}");
        }
    }

    #[test]
    fn equal_fields_and_conditions_have_the_messages_of_upstream() {
        let deployment = object(json!({
            "metadata": {"generation": 2},
            "status": {
                "updatedReplicas": 1,
                "replicas": 2,
                "conditions": [
                    {"type": "Available", "status": "False"},
                    {"type": "Old", "status": "True", "observedGeneration": 1},
                ],
            },
        }));
        let equal = |second: &str| {
            let fields = json!({"fieldA": "status.updatedReplicas", "fieldB": second});
            run(&json!({"type": "FieldsEqual", "fieldsEqual": fields}), &deployment)
        };
        let (status, message) = equal("status.replicas");
        assert_eq!(status, ProbeStatus::False);
        assert_eq!(message, "\"status.updatedReplicas\" != \"status.replicas\" expected: 1 got: 2");
        assert_eq!(equal("status.x").1, "\"status.x\" missing");
        assert_eq!(equal("status.updatedReplicas").0, ProbeStatus::True);

        let condition = |kind: &str, object: &Object| {
            let condition = json!({"type": kind, "status": "True"});
            run(&json!({"type": "ConditionEqual", "conditionEqual": condition}), object)
        };
        let cases = [
            ("Available", ProbeStatus::False, ".status.condition[\"Available\"] is False"),
            ("Old", ProbeStatus::Unknown, ".status.condition[\"Old\"] outdated"),
            ("New", ProbeStatus::Unknown, "missing .status.condition[\"New\"]"),
        ];
        for (kind, status, message) in cases {
            assert_eq!(condition(kind, &deployment), (status, message.to_owned()), "{kind}");
        }
        let bare = object(json!({}));
        assert_eq!(condition("A", &bare).1, "missing .status.conditions");
        let malformed = object(json!({"status": {"conditions": "x"}}));
        assert_eq!(condition("A", &malformed).1, "malformed .status.conditions");
    }

    #[test]
    fn an_outdated_status_is_unknown_for_each_probe_and_other_kinds_succeed() {
        let probes = ProgressionProbes::read(&default_progression_probes()).unwrap();
        let map = object(json!({"apiVersion": "v1", "kind": "ConfigMap"}));
        assert_eq!(probes.probe(&map), ProbeResult::success());
        let outdated = object(json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"generation": 2},
            "status": {"observedGeneration": 1},
        }));
        let result = probes.probe(&outdated);
        assert_eq!(result.status, ProbeStatus::Unknown);
        assert_eq!(result.messages, vec![".status outdated"; 7]);
    }

    #[test]
    fn label_selectors_choose_objects_and_unknown_forms_are_refused() {
        let expressions = json!([{"key": "a", "operator": "In", "values": ["x", "y"]}]);
        let selector = json!({"type": "Label", "label": {"matchExpressions": expressions}});
        let value = json!({"fieldPath": "data.x", "value": "1"});
        let assertion = json!({"type": "FieldValue", "fieldValue": value});
        let probes = probes(json!([{"selector": selector, "assertions": [assertion]}]));
        let labelled = object(json!({"metadata": {"labels": {"a": "y"}}}));
        assert_eq!(probes.probe(&labelled).status, ProbeStatus::False);
        assert!(probes.probe(&object(json!({}))).is_success());

        let refused = |probe: Value| {
            let probe: ProgressionProbe = serde_json::from_value(probe).unwrap();
            ProgressionProbes::read(&[probe]).unwrap_err().to_string()
        };
        let expressions = json!([{"key": "a", "operator": "Near", "values": ["x"]}]);
        let selector = json!({"type": "Label", "label": {"matchExpressions": expressions}});
        assert_eq!(
            refused(json!({"selector": selector, "assertions": []})),
            "invalid label selector in progressionProbe ({map[] [{a Near [x]}]}): \"Near\" is not a \
             valid label selector operator"
        );
        assert_eq!(
            refused(json!({"selector": {"type": "Name"}, "assertions": []})),
            "unknown progressionProbe selector type: Name"
        );
    }
}
