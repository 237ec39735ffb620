//! Index of the webhook configurations in the store, read once.
//!
//! Each request compares revisions with those of the cached list. So a configuration is in force as
//! soon as its write is acknowledged.

use mainstay_object::Object;
use mainstay_outbound::{ClientConfig, ClientConfigError};
use mainstay_policy::ExpressionScope;
use mainstay_policy::matching::MatchCriteria;
use mainstay_policy::validator::{FailurePolicy, MatchConditions};
use mainstay_store::{ListSnapshot, Store};
use parking_lot::Mutex;
use serde_json::Value;
use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// Type of a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WebhookType {
    Mutating,
    Validating,
}

impl WebhookType {
    /// The value of the metric label `type`.
    pub(super) const fn metric_label(self) -> &'static str {
        match self {
            Self::Mutating => "admit",
            Self::Validating => "validating",
        }
    }

    /// The storage resource of its configurations.
    const fn storage(self) -> &'static str {
        match self {
            Self::Mutating => "admissionregistration.k8s.io/mutatingwebhookconfigurations",
            Self::Validating => "admissionregistration.k8s.io/validatingwebhookconfigurations",
        }
    }
}

/// An admission webhook.
#[derive(Debug)]
pub(super) struct Webhook {
    /// The name of its configuration.
    pub(super) configuration: Box<str>,
    /// The name of the webhook.
    pub(super) name: Box<str>,
    /// Unique id: configuration, name and index.
    pub(super) id: Arc<str>,
    /// Rules and selectors.
    pub(super) criteria: MatchCriteria,
    /// `matchConditions`.
    pub(super) conditions: MatchConditions,
    /// The effect of a failed call or condition.
    pub(super) failure_policy: FailurePolicy,
    /// Timeout of a call.
    pub(super) timeout: Duration,
    /// Whether it may be called for dry runs.
    pub(super) supports_dry_run: bool,
    /// `reinvocationPolicy: IfNeeded`: it is called again if the object changes after its call.
    pub(super) reinvoke_if_needed: bool,
    /// The `AdmissionReview` version that it receives; none if it supports no known version.
    pub(super) review_version: Option<&'static str>,
    /// The client configuration, or its error.
    pub(super) client: Result<ClientConfig, ClientConfigError>,
}

/// The scope of match conditions: no parameters, no variables.
static CONDITION_SCOPE: LazyLock<ExpressionScope> =
    LazyLock::new(|| ExpressionScope::new(false, false));

impl Webhook {
    fn read(configuration: &str, at: usize, webhook: &Value) -> Self {
        let text = |field: &str| webhook.get(field).and_then(Value::as_str).unwrap_or_default();
        let versions = webhook.get("admissionReviewVersions").and_then(Value::as_array);
        let mut versions = versions.into_iter().flatten().filter_map(Value::as_str);
        let group_version = |review_version| match review_version {
            "v1" => Some("admission.k8s.io/v1"),
            "v1beta1" => Some("admission.k8s.io/v1beta1"),
            _ => None,
        };
        let seconds = webhook.get("timeoutSeconds").and_then(Value::as_u64).unwrap_or(10);
        Self {
            configuration: configuration.into(),
            name: text("name").into(),
            id: format!("{configuration}/{}/{at}", text("name")).into(),
            criteria: MatchCriteria::of_webhook(webhook),
            conditions: MatchConditions::compile(&CONDITION_SCOPE, webhook),
            failure_policy: FailurePolicy::read(webhook),
            timeout: Duration::from_secs(seconds),
            supports_dry_run: matches!(text("sideEffects"), "None" | "NoneOnDryRun"),
            reinvoke_if_needed: text("reinvocationPolicy") == "IfNeeded",
            review_version: versions.find_map(group_version),
            client: ClientConfig::read(webhook.get("clientConfig").unwrap_or(&Value::Null)),
        }
    }
}

/// The webhooks in force.
#[derive(Default)]
pub(crate) struct Webhooks([Mutex<CachedWebhooks>; 2]);

#[derive(Default)]
struct CachedWebhooks {
    /// The revisions of the configurations.
    revisions: Vec<u64>,
    webhooks: Arc<Vec<Arc<Webhook>>>,
}

impl fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |cache: &Mutex<CachedWebhooks>| cache.lock().webhooks.len();
        write!(f, "{} webhooks in force", self.0.iter().map(count).sum::<usize>())
    }
}

impl Webhooks {
    /// Whether webhooks of a type may be in force.
    pub(super) fn may_exist(store: &Store, webhook_type: WebhookType) -> bool {
        !store.list(webhook_type.storage(), None).is_empty()
    }

    /// The webhooks in force, sorted by the names of their configurations (by bytes).
    pub(super) fn current(
        &self,
        store: &Store,
        webhook_type: WebhookType,
    ) -> Arc<Vec<Arc<Webhook>>> {
        let configurations = store.list(webhook_type.storage(), None);
        let revisions = || configurations.iter().map(|stored| stored.revision);
        let mut cache = self.0[usize::from(webhook_type == WebhookType::Validating)].lock();
        // A revision identifies one version of one object, so equal revisions are equal objects.
        if !cache.revisions.iter().copied().eq(revisions()) {
            cache.webhooks = Arc::new(read_webhooks(&configurations));
            cache.revisions = revisions().collect();
        }
        cache.webhooks.clone()
    }
}

fn read_webhooks(configurations: &ListSnapshot) -> Vec<Arc<Webhook>> {
    let mut objects: Vec<Object> = configurations.iter().map(|stored| stored.object()).collect();
    objects.sort_by(|a, b| a.name().cmp(b.name()));
    let read = |object: &Object| -> Vec<Arc<Webhook>> {
        let webhooks = object.array(&["webhooks"]).iter().enumerate();
        webhooks.map(|(at, webhook)| Arc::new(Webhook::read(object.name(), at, webhook))).collect()
    };
    objects.iter().flat_map(read).collect()
}
