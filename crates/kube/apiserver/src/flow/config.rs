//! Flow configuration: the `FlowSchema`s and `PriorityLevelConfiguration`s, parsed once for all
//! requests.

use crate::chain::info::RequestSummary;
use http::HeaderValue;
use mainstay_auth::Identity;
use mainstay_object::Object;
use mainstay_object::Objects;
use serde_json::Value;
use std::sync::Arc;

/// Storage name of `FlowSchema`s.
pub(crate) const SCHEMAS: &str = "flowcontrol.apiserver.k8s.io/flowschemas";
/// Storage name of `PriorityLevelConfiguration`s.
pub(crate) const LEVELS: &str = "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations";
/// The wildcard of rules.
const WILDCARD: &str = "*";

/// The configuration that classifies requests.
#[derive(Debug, Default)]
pub(crate) struct FlowConfig {
    /// By precedence; those whose level does not exist are left out.
    schemas: Vec<FlowSchema>,
    /// All levels.
    pub(super) levels: Vec<Arc<PriorityLevel>>,
}

/// One flow schema.
#[derive(Debug)]
pub(crate) struct FlowSchema {
    /// Its name.
    pub(crate) name: Arc<str>,
    /// Its uid, for the response header.
    pub(crate) uid: HeaderValue,
    /// Its level.
    pub(crate) level: Arc<PriorityLevel>,
    distinguisher: Distinguisher,
    rules: Vec<Value>,
}

/// How a schema distinguishes flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Distinguisher {
    One,
    User,
    Namespace,
}

/// One priority level.
#[derive(Debug)]
pub(crate) struct PriorityLevel {
    /// Its name.
    pub(crate) name: Arc<str>,
    /// Its uid, for the response header.
    pub(crate) uid: HeaderValue,
    /// Its limits; none if it is exempt.
    pub(super) limits: Option<LevelLimits>,
}

/// Limits of a priority level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LevelLimits {
    /// Its share of the seats.
    pub(super) shares: u64,
    /// Percentage of its seats that other levels may borrow.
    pub(super) lendable: u64,
    /// How much it may borrow, as a percentage of its seats; none is unlimited.
    pub(super) borrowing: Option<u64>,
    /// Its queues; none if it refuses excess requests at once.
    pub(super) queues: Option<QueueConfig>,
}

/// Queues of a priority level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueueConfig {
    /// Number of queues.
    pub(super) count: u64,
    /// Number of queues that one flow may use.
    pub(super) hand: u64,
    /// Requests that may wait in one queue.
    pub(super) length: usize,
}

impl PriorityLevel {
    /// Whether excess requests wait, rather than being refused at once.
    pub(crate) fn has_queues(&self) -> bool {
        self.limits.is_some_and(|limits| limits.queues.is_some())
    }
}

impl FlowConfig {
    /// Parses the stored objects.
    pub(crate) fn read(objects: &dyn Objects) -> Self {
        let levels: Vec<Arc<PriorityLevel>> = objects
            .list(LEVELS, None)
            .iter()
            .map(|entry| Arc::new(PriorityLevel::read(entry)))
            .collect();
        let mut schemas: Vec<(i64, FlowSchema)> = objects
            .list(SCHEMAS, None)
            .iter()
            .filter_map(|entry| {
                let name = entry.str(&["spec", "priorityLevelConfiguration", "name"])?;
                let level = levels.iter().find(|level| &*level.name == name)?;
                Some((entry.i64(&["spec", "matchingPrecedence"])?, FlowSchema::read(entry, level)))
            })
            .collect();
        schemas.sort_by(|(a, entry), (b, other_entry)| {
            a.cmp(b).then_with(|| entry.name.cmp(&other_entry.name))
        });
        Self { schemas: schemas.into_iter().map(|(_, schema)| schema).collect(), levels }
    }

    /// The schema of a request: the first that matches. None only while the catch-all schema is
    /// missing.
    pub(crate) fn classify(
        &self,
        identity: &Identity,
        info: &RequestSummary<'_>,
    ) -> Option<&FlowSchema> {
        self.schemas.iter().find(|schema| {
            schema.rules.iter().any(|rule| {
                entries(rule, "subjects").any(|entry| subject_matches(entry, identity))
                    && if info.is_resource {
                        entries(rule, "resourceRules").any(|entry| resource_matches(entry, info))
                    } else {
                        entries(rule, "nonResourceRules").any(|entry| path_matches(entry, info))
                    }
            })
        })
    }
}

impl PriorityLevel {
    fn read(object: &Object) -> Self {
        let limited = object.get(&["spec", "limited"]);
        let number = |value: &Value, field: &str| value.get(field).and_then(Value::as_u64);
        let limits = limited.map(|limited| {
            let queuing = limited.pointer("/limitResponse/queuing").filter(|_| {
                limited.pointer("/limitResponse/type").is_some_and(|kind| kind == "Queue")
            });
            LevelLimits {
                shares: number(limited, "nominalConcurrencyShares").unwrap_or(30),
                lendable: number(limited, "lendablePercent").unwrap_or(0).min(100),
                borrowing: number(limited, "borrowingLimitPercent"),
                queues: queuing.map(|queuing| QueueConfig {
                    count: number(queuing, "queues").unwrap_or(64).max(1),
                    hand: number(queuing, "handSize").unwrap_or(8).max(1),
                    length: number(queuing, "queueLengthLimit")
                        .and_then(|length| usize::try_from(length).ok())
                        .unwrap_or(50),
                }),
            }
        });
        Self { name: object.name().into(), uid: header_value(object.uid()), limits }
    }
}

impl FlowSchema {
    fn read(object: &Object, level: &Arc<PriorityLevel>) -> Self {
        let distinguisher = match object.str(&["spec", "distinguisherMethod", "type"]) {
            Some("ByUser") => Distinguisher::User,
            Some("ByNamespace") => Distinguisher::Namespace,
            _ => Distinguisher::One,
        };
        Self {
            name: object.name().into(),
            uid: header_value(object.uid()),
            level: level.clone(),
            distinguisher,
            rules: object
                .get(&["spec", "rules"])
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default(),
        }
    }

    /// The value that distinguishes the flows of the schema.
    pub(crate) fn distinguish<'a>(
        &self,
        identity: &'a Identity,
        info: &RequestSummary<'a>,
    ) -> &'a str {
        match self.distinguisher {
            Distinguisher::One => "",
            Distinguisher::User => identity.user(),
            Distinguisher::Namespace => info.namespace,
        }
    }
}

fn header_value(uid: &str) -> HeaderValue {
    HeaderValue::try_from(uid).unwrap_or_else(|_| HeaderValue::from_static(""))
}

fn entries<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    value.get(field).and_then(Value::as_array).into_iter().flatten()
}

/// Whether a list has a text or the wildcard.
fn contains(rule: &Value, field: &str, text: &str) -> bool {
    entries(rule, field).any(|entry| entry == WILDCARD || entry == text)
}

fn subject_matches(subject: &Value, identity: &Identity) -> bool {
    let text = |path: &str| subject.pointer(path).and_then(Value::as_str).unwrap_or_default();
    match text("/kind") {
        "User" => matches!(text("/user/name"), WILDCARD) || text("/user/name") == identity.user(),
        "Group" => text("/group/name") == WILDCARD || identity.is_in(text("/group/name")),
        "ServiceAccount" => {
            let Some(account) = identity.user().strip_prefix("system:serviceaccount:") else {
                return false;
            };
            account.split_once(':').is_some_and(|(namespace, name)| {
                namespace == text("/serviceAccount/namespace")
                    && matches!(text("/serviceAccount/name"), entry if entry == WILDCARD || entry == name)
            })
        }
        _ => false,
    }
}

fn resource_matches(rule: &Value, info: &RequestSummary<'_>) -> bool {
    let scope_matches = if info.namespace.is_empty() {
        rule.get("clusterScope") == Some(&Value::Bool(true))
    } else {
        contains(rule, "namespaces", info.namespace)
    };
    scope_matches
        && contains(rule, "verbs", info.verb)
        && contains(rule, "apiGroups", info.group)
        && if info.subresource.is_empty() {
            contains(rule, "resources", info.resource)
        } else {
            contains(rule, "resources", &format!("{}/{}", info.resource, info.subresource))
        }
}

fn path_matches(rule: &Value, info: &RequestSummary<'_>) -> bool {
    contains(rule, "verbs", info.verb)
        && entries(rule, "nonResourceURLs").filter_map(Value::as_str).any(|url| {
            url == WILDCARD
                || url == info.path
                || url
                    .strip_suffix('*')
                    .is_some_and(|prefix| url.ends_with("/*") && info.path.starts_with(prefix))
        })
}
