//! Wait conditions: what a recorded step waits for.

use anyhow::{Context, bail};
use mainstay_client::Cluster;
use mainstay_object::Object;
use regex::Regex;
use serde_json::Value;

/// A condition on the objects of a cluster.
#[derive(Clone, Debug)]
pub enum WaitCondition {
    /// All of these hold.
    All(Vec<Self>),
    /// One object is in a state.
    Object {
        /// The object.
        object: ObjectName,
        /// The state.
        state: ObjectState,
    },
}

/// The kind, namespace and name of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectName {
    kind: String,
    namespace: Option<String>,
    name: String,
}

/// The state of an object.
#[derive(Clone, Debug)]
pub enum ObjectState {
    /// It exists.
    Exists,
    /// It does not exist.
    Gone,
    /// A condition in its status has these values.
    Condition {
        /// The type.
        kind: String,
        /// The status.
        status: Option<String>,
        /// The reason.
        reason: Option<String>,
        /// A pattern of the message.
        message: Option<Regex>,
        /// Whether `observedGeneration` has to be the object's generation.
        current: bool,
    },
    /// A field has a value.
    Field {
        /// The path, with dots.
        path: String,
        /// The value.
        value: Value,
    },
}

/// The fields of a condition on one object.
const KNOWN: &[&str] =
    &["object", "gone", "cond", "status", "reason", "message", "current", "path", "is"];

impl WaitCondition {
    /// Reads the field `until` of a step.
    ///
    /// # Errors
    /// The condition has a form that is not known.
    pub fn read(value: &Value) -> anyhow::Result<Self> {
        let fields = value.as_object().context("a condition")?;
        if let Some(all) = value["all"].as_array() {
            return Ok(Self::All(all.iter().map(Self::read).collect::<Result<_, _>>()?));
        }
        if let Some(key) = fields.keys().find(|key| !KNOWN.contains(&key.as_str())) {
            bail!("the condition has the field {key}, which is not known");
        }
        let text = |key: &str| value[key].as_str().map(str::to_owned);
        let object = text("object").context("the object of a condition")?;
        let words: Vec<&str> = object.split('/').collect();
        let object = match words.as_slice() {
            [kind, name] => ObjectName { kind: own(kind), namespace: None, name: own(name) },
            [kind, namespace, name] => {
                ObjectName { kind: own(kind), namespace: Some(own(namespace)), name: own(name) }
            }
            _ => bail!("{object} is no object"),
        };
        let state = if value["gone"] == true {
            ObjectState::Gone
        } else if let Some(kind) = text("cond") {
            ObjectState::Condition {
                kind,
                status: text("status"),
                reason: text("reason"),
                message: text("message").map(|pattern| Regex::new(&pattern)).transpose()?,
                current: value["current"] == true,
            }
        } else if let Some(path) = text("path") {
            ObjectState::Field { path, value: value["is"].clone() }
        } else {
            ObjectState::Exists
        };
        Ok(Self::Object { object, state })
    }

    /// Whether the condition holds.
    ///
    /// # Errors
    /// The cluster does not respond.
    pub async fn holds(&self, cluster: &Cluster) -> anyhow::Result<bool> {
        match self {
            Self::All(all) => {
                for condition in all {
                    if !Box::pin(condition.holds(cluster)).await? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::Object { object, state } => Ok(state.holds(object.find(cluster).await?.as_ref())),
        }
    }
}

fn own(text: &str) -> String {
    text.to_owned()
}

impl ObjectName {
    async fn find(&self, cluster: &Cluster) -> anyhow::Result<Option<Object>> {
        let served = cluster.resources().await?.resources;
        let api = served.iter().find(|api| api.resource.kind == self.kind && api.preferred);
        let Some(api) = api else { return Ok(None) };
        Ok(cluster.find(&api.resource, self.namespace.as_deref(), &self.name).await?)
    }
}

impl ObjectState {
    fn holds(&self, object: Option<&Object>) -> bool {
        let Some(object) = object else { return matches!(self, Self::Gone) };
        match self {
            Self::Exists => true,
            Self::Gone => false,
            Self::Field { path, value } => {
                let path: Vec<&str> = path.split('.').collect();
                object.get(&path).unwrap_or(&Value::Null) == value
            }
            Self::Condition { kind, status, reason, message, current } => {
                let generation = object.get(&["metadata", "generation"]);
                let is = |found: &Value, wanted: &Option<String>| {
                    wanted.as_deref().is_none_or(|wanted| found == wanted)
                };
                object.array(&["status", "conditions"]).iter().any(|condition| {
                    let text = condition["message"].as_str().unwrap_or_default();
                    condition["type"] == **kind
                        && is(&condition["status"], status)
                        && is(&condition["reason"], reason)
                        && message.as_ref().is_none_or(|pattern| pattern.is_match(text))
                        && (!current || condition.get("observedGeneration") == generation)
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(status: &Value) -> Object {
        Object::from_value(json!({
            "apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a", "generation": 2},
            "status": status,
        }))
        .unwrap()
    }

    fn state(more: &Value) -> ObjectState {
        let mut fields = json!({"object": "Thing/a"});
        fields.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        match WaitCondition::read(&fields).unwrap() {
            WaitCondition::Object { state, .. } => state,
            WaitCondition::All(_) => panic!("one object"),
        }
    }

    #[test]
    fn a_condition_is_current_if_it_observed_the_generation() {
        let with = |observed: i64| {
            let condition = json!({
                "type": "Ready", "status": "True", "reason": "Ok", "message": "all is well",
                "observedGeneration": observed,
            });
            object(&json!({"conditions": [condition]}))
        };
        let wanted = state(&json!({"cond": "Ready", "reason": "Ok", "current": true}));
        assert!(wanted.holds(Some(&with(2))) && !wanted.holds(Some(&with(1))));
        let wanted = state(&json!({"cond": "Ready", "status": "False"}));
        assert!(!wanted.holds(Some(&with(2))) && !wanted.holds(None));
        let wanted = state(&json!({"cond": "Ready", "message": "bad|well"}));
        assert!(wanted.holds(Some(&with(2))));
    }

    #[test]
    fn objects_are_there_gone_or_have_a_field() {
        let found = object(&json!({"phase": "x"}));
        assert!(state(&json!({"gone": true})).holds(None));
        assert!(!state(&json!({"gone": true})).holds(Some(&found)));
        assert!(state(&json!({})).holds(Some(&found)));
        assert!(state(&json!({"path": "status.phase", "is": "x"})).holds(Some(&found)));
        assert!(!state(&json!({"path": "status.other", "is": "x"})).holds(Some(&found)));
        assert!(WaitCondition::read(&json!({"object": "Thing/a", "near": 1})).is_err());
    }
}
