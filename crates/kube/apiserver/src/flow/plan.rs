//! The flow schemas and priority levels as they are now, read once and asked for each request.

use crate::chain::info::Info;
use http::HeaderValue;
use mainstay_auth::Identity;
use mainstay_object::Object;
use mainstay_object::Objects;
use serde_json::Value;
use std::sync::Arc;

/// Where flow schemas are stored.
pub(crate) const SCHEMAS: &str = "flowcontrol.apiserver.k8s.io/flowschemas";
/// Where priority levels are stored.
pub(crate) const LEVELS: &str = "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations";
/// The suffix that makes a path a prefix.
const ALL: &str = "*";

/// What every request is held against.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// In the order in which they are asked; those without a level are left out.
    schemas: Vec<Schema>,
    /// All levels.
    pub(super) levels: Vec<Arc<Level>>,
}

/// One flow schema.
#[derive(Debug)]
pub(crate) struct Schema {
    /// Its name.
    pub(crate) name: Arc<str>,
    /// Its uid, for the header that tells it.
    pub(crate) uid: HeaderValue,
    /// Its level.
    pub(crate) level: Arc<Level>,
    by: Flows,
    rules: Vec<Value>,
}

/// What makes two requests of a schema different flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flows {
    One,
    User,
    Namespace,
}

/// One priority level.
#[derive(Debug)]
pub(crate) struct Level {
    /// Its name.
    pub(crate) name: Arc<str>,
    /// Its uid, for the header that tells it.
    pub(crate) uid: HeaderValue,
    /// How many requests it serves at a time; none if they need not wait.
    pub(super) bounds: Option<Bounds>,
}

/// What a level may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Its share of the seats.
    pub(super) shares: u64,
    /// How much of its seats others may use, in hundredths.
    pub(super) lendable: u64,
    /// How much it may borrow, in hundredths of its seats; none is as much as there is.
    pub(super) borrowing: Option<u64>,
    /// Where requests wait; none if they are refused at once.
    pub(super) queues: Option<Queues>,
}

/// How requests of a level wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Queues {
    /// How many queues there are.
    pub(super) count: u64,
    /// How many of them a flow may use.
    pub(super) hand: u64,
    /// How many requests may wait in one.
    pub(super) length: usize,
}

impl Level {
    /// Whether requests that find no seat wait, rather than being refused at once.
    pub(crate) fn queues(&self) -> bool {
        self.bounds.is_some_and(|bounds| bounds.queues.is_some())
    }
}

impl Plan {
    /// Reads what the store holds.
    pub(crate) fn read(objects: &dyn Objects) -> Self {
        let levels: Vec<Arc<Level>> =
            objects.list(LEVELS, None).iter().map(|one| Arc::new(Level::read(one))).collect();
        let mut schemas: Vec<(i64, Schema)> = objects
            .list(SCHEMAS, None)
            .iter()
            .filter_map(|one| {
                let name = one.str(&["spec", "priorityLevelConfiguration", "name"])?;
                let level = levels.iter().find(|level| &*level.name == name)?;
                Some((one.i64(&["spec", "matchingPrecedence"])?, Schema::read(one, level)))
            })
            .collect();
        schemas.sort_by(|(a, one), (b, other)| a.cmp(b).then_with(|| one.name.cmp(&other.name)));
        Self { schemas: schemas.into_iter().map(|(_, schema)| schema).collect(), levels }
    }

    /// The schema of a request: the first that matches. None only while the schema that catches
    /// everything is not there.
    pub(crate) fn classify(&self, identity: &Identity, info: &Info<'_>) -> Option<&Schema> {
        self.schemas.iter().find(|schema| {
            schema.rules.iter().any(|rule| {
                list(rule, "subjects").any(|one| subject_matches(one, identity))
                    && if info.is_resource {
                        list(rule, "resourceRules").any(|one| resource_matches(one, info))
                    } else {
                        list(rule, "nonResourceRules").any(|one| path_matches(one, info))
                    }
            })
        })
    }
}

impl Level {
    fn read(object: &Object) -> Self {
        let limited = object.get(&["spec", "limited"]);
        let whole = |value: &Value, field: &str| value.get(field).and_then(Value::as_u64);
        let bounds = limited.map(|limited| {
            let queuing = limited.pointer("/limitResponse/queuing").filter(|_| {
                limited.pointer("/limitResponse/type").is_some_and(|kind| kind == "Queue")
            });
            Bounds {
                shares: whole(limited, "nominalConcurrencyShares").unwrap_or(30),
                lendable: whole(limited, "lendablePercent").unwrap_or(0).min(100),
                borrowing: whole(limited, "borrowingLimitPercent"),
                queues: queuing.map(|queuing| Queues {
                    count: whole(queuing, "queues").unwrap_or(64).max(1),
                    hand: whole(queuing, "handSize").unwrap_or(8).max(1),
                    length: whole(queuing, "queueLengthLimit")
                        .and_then(|length| usize::try_from(length).ok())
                        .unwrap_or(50),
                }),
            }
        });
        Self { name: object.name().into(), uid: header(object.uid()), bounds }
    }
}

impl Schema {
    fn read(object: &Object, level: &Arc<Level>) -> Self {
        let by = match object.str(&["spec", "distinguisherMethod", "type"]) {
            Some("ByUser") => Flows::User,
            Some("ByNamespace") => Flows::Namespace,
            _ => Flows::One,
        };
        Self {
            name: object.name().into(),
            uid: header(object.uid()),
            level: level.clone(),
            by,
            rules: object
                .get(&["spec", "rules"])
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default(),
        }
    }

    /// What tells the flows of the schema apart.
    pub(crate) fn flow<'a>(&self, identity: &'a Identity, info: &Info<'a>) -> &'a str {
        match self.by {
            Flows::One => "",
            Flows::User => identity.user(),
            Flows::Namespace => info.namespace,
        }
    }
}

fn header(uid: &str) -> HeaderValue {
    HeaderValue::try_from(uid).unwrap_or_else(|_| HeaderValue::from_static(""))
}

fn list<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    value.get(field).and_then(Value::as_array).into_iter().flatten()
}

/// Whether a list has a text, or what stands for all.
fn has(rule: &Value, field: &str, text: &str) -> bool {
    list(rule, field).any(|one| one == ALL || one == text)
}

fn subject_matches(subject: &Value, identity: &Identity) -> bool {
    let text = |path: &str| subject.pointer(path).and_then(Value::as_str).unwrap_or_default();
    match text("/kind") {
        "User" => matches!(text("/user/name"), ALL) || text("/user/name") == identity.user(),
        "Group" => text("/group/name") == ALL || identity.is_in(text("/group/name")),
        "ServiceAccount" => {
            let Some(account) = identity.user().strip_prefix("system:serviceaccount:") else {
                return false;
            };
            account.split_once(':').is_some_and(|(namespace, name)| {
                namespace == text("/serviceAccount/namespace")
                    && matches!(text("/serviceAccount/name"), one if one == ALL || one == name)
            })
        }
        _ => false,
    }
}

fn resource_matches(rule: &Value, info: &Info<'_>) -> bool {
    let of_scope = if info.namespace.is_empty() {
        rule.get("clusterScope") == Some(&Value::Bool(true))
    } else {
        has(rule, "namespaces", info.namespace)
    };
    of_scope
        && has(rule, "verbs", info.verb)
        && has(rule, "apiGroups", info.group)
        && if info.subresource.is_empty() {
            has(rule, "resources", info.resource)
        } else {
            has(rule, "resources", &format!("{}/{}", info.resource, info.subresource))
        }
}

fn path_matches(rule: &Value, info: &Info<'_>) -> bool {
    has(rule, "verbs", info.verb)
        && list(rule, "nonResourceURLs").filter_map(Value::as_str).any(|url| {
            url == ALL
                || url == info.path
                || url
                    .strip_suffix('*')
                    .is_some_and(|prefix| url.ends_with("/*") && info.path.starts_with(prefix))
        })
}
