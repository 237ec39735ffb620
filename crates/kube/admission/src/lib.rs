//! Admission control: plugins, policies and webhooks that change or refuse writes before storage.
//!
//! ```text
//! body ─► decode ─► defaults ─► managed fields ─► mutate ─► strategy, validation ─► validate ─► store
//! ```
//!
//! A [`Plugin`] is one built-in rule; policies and webhooks are plugins too. The plugins run in the
//! order of Kubernetes (`CHAIN`), in both phases. They run again for each retry of a write after a
//! conflict. A plugin that does not handle a write costs one call of [`Plugin::handles`] and no copy.
//!
//! A handler moves its object into the attributes and takes it back afterwards.

mod certificates;
mod context;
mod lifecycle;
mod limit_ranger;
mod metrics;
mod nodes;
mod pod_security;
mod pods;
mod policies;
mod resource_quota;
mod storage;
mod webhooks;

pub use context::{Admission, Loopback};
pub use lifecycle::SYSTEM_NAMESPACES;
pub use metrics::AdmissionMetrics;
pub use policies::POLICIES;

use futures::future::BoxFuture;
use mainstay_auth::Identity;
use mainstay_http::Warnings;
use mainstay_http::query::Query;
use mainstay_kinds::KindRow;
use mainstay_object::{Gvk, Object, Status};
use metrics::PhaseLabels;
use serde_json::{Map, Value, json};
use std::ops::Deref;
use std::time::Duration;

/// All plugins, in the order of Kubernetes.
static CHAIN: &[(&str, &dyn Plugin)] = &[
    ("NamespaceLifecycle", &lifecycle::NamespaceLifecycle),
    ("LimitRanger", &limit_ranger::LimitRanger),
    ("ServiceAccount", &pods::ServiceAccount),
    ("TaintNodesByCondition", &nodes::TaintNodesByCondition),
    ("PodSecurity", &pod_security::PodSecurity),
    ("Priority", &pods::Priority),
    ("DefaultTolerationSeconds", &pods::DefaultTolerationSeconds),
    ("DefaultStorageClass", &storage::DefaultStorageClass),
    ("StorageObjectInUseProtection", &storage::StorageObjectInUseProtection),
    ("PersistentVolumeClaimResize", &storage::PersistentVolumeClaimResize),
    ("RuntimeClass", &pods::RuntimeClass),
    ("CertificateApproval", &certificates::CertificateApproval),
    ("CertificateSigning", &certificates::CertificateSigning),
    ("CertificateSubjectRestriction", &certificates::CertificateSubjectRestriction),
    ("DefaultIngressClass", &storage::DefaultIngressClass),
    ("PodTopologyLabels", &pods::PodTopologyLabels),
    ("ParameterPermissions", &policies::ParameterPermissions),
    ("MutatingAdmissionWebhook", &webhooks::MutatingAdmissionWebhook),
    ("ValidatingAdmissionPolicy", &policies::ValidatingAdmissionPolicy),
    ("ValidatingAdmissionWebhook", &webhooks::ValidatingAdmissionWebhook),
    ("ResourceQuota", &resource_quota::ResourceQuota),
];

/// Operation on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// An object is created: by a POST, or by a PUT or PATCH of a missing object.
    Create,
    /// An object or a subresource of it is changed by a PUT or a PATCH.
    Update,
    /// An object is deleted.
    Delete,
    /// A client connects to a subresource such as `exec` or `proxy`.
    Connect,
}

impl Operation {
    /// The name in rules and in `AdmissionReviews`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// Options of a request; a JSON value is built when a webhook or policy needs it.
#[derive(Clone, Copy, Debug)]
pub enum RequestOptions<'a> {
    /// `CreateOptions` of the query.
    Create(&'a Query),
    /// `UpdateOptions` of the query, also for a PATCH.
    Update(&'a Query),
    /// Other options as a JSON value: `DeleteOptions`, `PodExecOptions`, ….
    Value(&'a Value),
}

impl RequestOptions<'_> {
    /// The options as an `AdmissionReview` contains them.
    pub fn to_value(self) -> Value {
        let (kind, query) = match self {
            Self::Create(query) => ("CreateOptions", query),
            Self::Update(query) => ("UpdateOptions", query),
            Self::Value(value) => return value.clone(),
        };
        let mut fields = Map::new();
        fields.insert("apiVersion".to_owned(), "meta.k8s.io/v1".into());
        fields.insert("kind".to_owned(), kind.into());
        let dry_run: Vec<&str> = query.all("dryRun").collect();
        if !dry_run.is_empty() {
            fields.insert("dryRun".to_owned(), json!(dry_run));
        }
        for name in ["fieldManager", "fieldValidation"] {
            if let Some(text) = query.text(name).filter(|text| !text.is_empty()) {
                fields.insert(name.to_owned(), text.into());
            }
        }
        Value::Object(fields)
    }
}

/// A request that admission decides on, the same for every retry.
#[derive(Clone, Copy)]
pub struct AdmissionRequest<'a> {
    /// Admission control of the server.
    pub admission: &'a Admission,
    /// Client of the server itself.
    pub loopback: &'a dyn Loopback,
    /// User of the request.
    pub identity: &'a Identity,
    /// Operation.
    pub operation: Operation,
    /// The kind in the version of the request.
    pub row: &'a KindRow,
    /// Subresource; empty for the object itself.
    pub subresource: &'a str,
    /// Namespace of the path. For a Namespace its own name; empty for other cluster-scoped kinds.
    pub namespace: &'a str,
    /// Name of the object; empty if it is generated, and for a deletion of a collection.
    pub name: &'a str,
    /// Options of the request.
    pub options: RequestOptions<'a>,
    /// Whether the request is a dry run.
    pub dry_run: bool,
    /// The timeout that the request sets.
    pub timeout: Option<Duration>,
    /// Warnings and audit annotations of the response.
    pub warnings: &'a Warnings,
}

impl AdmissionRequest<'_> {
    /// The kind of the object; some subresources have another kind than the row.
    pub fn kind(&self) -> Gvk {
        match self.row.subresource(self.subresource) {
            Some(subresource) => subresource.gvk.clone(),
            None => self.row.gvk(),
        }
    }

    /// Whether the object is of the row's kind. If so, it is in the storage version, else in the
    /// version of its kind.
    pub fn is_of_row(&self) -> bool {
        self.subresource.is_empty() || self.kind().kind == *self.row.kind
    }
}

/// Attributes of a request, with the objects of one try: the input of plugins.
pub struct AdmissionAttributes<'a> {
    request: AdmissionRequest<'a>,
    /// The new object; none for a deletion. In the storage version if it is of the row's kind.
    pub object: Option<Object>,
    /// The old object; none for a creation.
    pub old: Option<&'a Object>,
    /// State of mutating webhooks between the first and the second round.
    reinvocation: webhooks::ReinvocationContext,
}

impl<'a> AdmissionAttributes<'a> {
    fn new(request: AdmissionRequest<'a>, object: Option<Object>, old: Option<&'a Object>) -> Self {
        Self { request, object, old, reinvocation: webhooks::ReinvocationContext::default() }
    }
}

impl<'a> Deref for AdmissionAttributes<'a> {
    type Target = AdmissionRequest<'a>;

    fn deref(&self) -> &AdmissionRequest<'a> {
        &self.request
    }
}

impl AdmissionAttributes<'_> {
    /// A 403 in the form of the plugins of Kubernetes.
    pub fn forbidden(&self, message: &str) -> Status {
        let metadata = |field: &str| self.object.as_ref()?.str(&["metadata", field]);
        let candidates = [Some(self.name), metadata("name"), metadata("generateName")];
        let name =
            candidates.into_iter().flatten().find(|name| !name.is_empty()).unwrap_or("Unknown");
        Status::forbidden(&self.row.group, &self.row.plural, name, message)
    }
}

/// Decision of a plugin: immediate, or after the response of a webhook.
pub enum AdmissionDecision<'a> {
    /// Decided.
    Ready(Result<(), Status>),
    /// The future resolves to the decision.
    Pending(BoxFuture<'a, Result<(), Status>>),
}

/// The plugin admits the request.
pub const ADMITTED: AdmissionDecision<'static> = AdmissionDecision::Ready(Ok(()));

impl AdmissionDecision<'_> {
    async fn resolve(self) -> Result<(), Status> {
        match self {
            Self::Ready(result) => result,
            Self::Pending(future) => future.await,
        }
    }
}

/// A rule of admission. Its state is a field of [`Admission`].
pub trait Plugin: Send + Sync {
    /// Whether the plugin may act on a request; cheap, because it is called for every write.
    fn handles(&self, attributes: &AdmissionAttributes<'_>) -> bool;

    /// Changes or refuses the object before validation.
    fn admit<'a>(&'a self, attributes: &'a mut AdmissionAttributes<'_>) -> AdmissionDecision<'a> {
        let _ = attributes;
        ADMITTED
    }

    /// Admits or refuses the final object.
    fn validate<'a>(&'a self, attributes: &'a AdmissionAttributes<'_>) -> AdmissionDecision<'a> {
        let _ = attributes;
        ADMITTED
    }
}

/// Whether any plugin handles a request; a handler asks before it builds objects for admission.
pub fn handles_request(request: AdmissionRequest<'_>) -> bool {
    let attributes = AdmissionAttributes::new(request, None, None);
    CHAIN.iter().any(|(_, plugin)| plugin.handles(&attributes))
}

/// Mutating phase: plugins may change the object.
pub async fn mutate(
    request: AdmissionRequest<'_>,
    object: &mut Object,
    old: Option<&Object>,
) -> Result<(), Status> {
    let mut attributes = AdmissionAttributes::new(request, Some(std::mem::take(object)), old);
    let outcome = run_mutating_phase(&mut attributes).await;
    *object = attributes.object.unwrap_or_default();
    outcome
}

/// Calls all plugins, and all of them once more if a webhook changed the object.
async fn run_mutating_phase(attributes: &mut AdmissionAttributes<'_>) -> Result<(), Status> {
    let timer = PhaseTimer::start(&attributes.request, "admit");
    let outcome = call_admit_plugins(attributes).await;
    timer.record(None, &outcome);
    outcome
}

async fn call_admit_plugins(attributes: &mut AdmissionAttributes<'_>) -> Result<(), Status> {
    loop {
        for (name, plugin) in CHAIN {
            if plugin.handles(attributes) {
                let timer = PhaseTimer::start(&attributes.request, "admit");
                let outcome = plugin.admit(attributes).resolve().await;
                timer.record(Some(name), &outcome);
                outcome?;
            }
        }
        if !attributes.reinvocation.start_second_round() {
            return Ok(());
        }
    }
}

/// Measures the duration of a phase or a plugin.
struct PhaseTimer<'a> {
    admission: &'a Admission,
    operation: &'static str,
    kind: &'static str,
    started: Duration,
}

impl<'a> PhaseTimer<'a> {
    fn start(request: &AdmissionRequest<'a>, kind: &'static str) -> Self {
        let operation = request.operation.name();
        Self {
            admission: request.admission,
            operation,
            kind,
            started: request.admission.clock.elapsed(),
        }
    }

    /// Records the duration: of one plugin, or of the whole phase for none.
    fn record(self, plugin: Option<&'static str>, outcome: &Result<(), Status>) {
        let Self { admission, operation, kind, started } = self;
        let labels = PhaseLabels { operation, rejected: outcome.is_err(), kind };
        let seconds = admission.clock.elapsed().saturating_sub(started).as_secs_f64();
        let metrics = &admission.metrics;
        match plugin {
            Some(plugin) => metrics.record_plugin(plugin, labels, seconds),
            None => metrics.record_phase(labels, seconds),
        }
    }
}

/// Validating phase: plugins may refuse the object.
pub async fn validate(
    request: AdmissionRequest<'_>,
    object: &mut Object,
    old: Option<&Object>,
) -> Result<(), Status> {
    let attributes = AdmissionAttributes::new(request, Some(std::mem::take(object)), old);
    let outcome = run_validating_phase(&attributes).await;
    *object = attributes.object.unwrap_or_default();
    outcome
}

async fn run_validating_phase(attributes: &AdmissionAttributes<'_>) -> Result<(), Status> {
    let timer = PhaseTimer::start(&attributes.request, "validate");
    let outcome = call_validate_plugins(attributes).await;
    timer.record(None, &outcome);
    outcome
}

async fn call_validate_plugins(attributes: &AdmissionAttributes<'_>) -> Result<(), Status> {
    for (name, plugin) in CHAIN {
        if plugin.handles(attributes) {
            let timer = PhaseTimer::start(&attributes.request, "validate");
            let outcome = plugin.validate(attributes).resolve().await;
            timer.record(Some(name), &outcome);
            outcome?;
        }
    }
    Ok(())
}

/// Both phases of a deletion, which has an old object only.
pub async fn delete(request: AdmissionRequest<'_>, old: &Object) -> Result<(), Status> {
    let mut attributes = AdmissionAttributes::new(request, None, Some(old));
    run_mutating_phase(&mut attributes).await?;
    run_validating_phase(&attributes).await
}

/// Both phases of an object that is not stored: review, binding, eviction, token request.
pub async fn admit_unstored(
    request: AdmissionRequest<'_>,
    object: &mut Object,
) -> Result<(), Status> {
    mutate(request, object, None).await?;
    validate(request, object, None).await
}

#[cfg(test)]
mod tests;
