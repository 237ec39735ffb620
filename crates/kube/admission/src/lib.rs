//! Admission: plugins, policies and webhooks that change or refuse writes before they are stored.
//!
//! ```text
//! body ─► decoded ─► defaults ─► managers ─► mutate ─► strategy, validation ─► validate ─► store
//! ```
//!
//! A [`Plugin`] is one rule of the server itself; policies and webhooks are plugins too. They run
//! in the original's order (`CHAIN`), in both phases, once for each try of a write that another
//! write overtakes. A plugin that has nothing to say of a write costs one call of
//! [`Plugin::handles`]; nothing is copied for it.
//!
//! Objects are lent: the handler moves its object in, and takes it back.

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
pub use metrics::Metrics;
pub use policies::POLICIES;

use futures::future::BoxFuture;
use mainstay_auth::Identity;
use mainstay_http::Warnings;
use mainstay_http::query::Query;
use mainstay_kinds::KindRow;
use mainstay_object::{Gvk, Object, Status};
use metrics::Step;
use serde_json::{Map, Value, json};
use std::ops::Deref;
use std::time::Duration;

/// All plugins, in the original's order.
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
    ("MutatingAdmissionWebhook", &webhooks::Mutating),
    ("ValidatingAdmissionPolicy", &policies::ValidatingAdmissionPolicy),
    ("ValidatingAdmissionWebhook", &webhooks::Validating),
    ("ResourceQuota", &resource_quota::ResourceQuota),
];

/// Operation on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// An object is made: a POST, or a write that creates.
    Create,
    /// An object is changed: a PUT or a PATCH, of it or of a part.
    Update,
    /// An object is deleted.
    Delete,
    /// Somebody is connected with what an object stands for: `exec`, `proxy`, ….
    Connect,
}

impl Operation {
    /// The name in rules and reviews.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// Options of a request, made into a value when a webhook or policy needs them.
#[derive(Clone, Copy, Debug)]
pub enum Options<'a> {
    /// `CreateOptions`, as the query has them.
    Create(&'a Query),
    /// `UpdateOptions`, as the query has them; of a patch too.
    Update(&'a Query),
    /// Options that are a value: `DeleteOptions`, `PodExecOptions`, ….
    Value(&'a Value),
}

impl Options<'_> {
    /// The options as reviews show them.
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

/// Request that admission decides on, the same for every try of it.
#[derive(Clone, Copy)]
pub struct AdmissionRequest<'a> {
    /// Admission of the server.
    pub admission: &'a Admission,
    /// Client of the server itself.
    pub loopback: &'a dyn Loopback,
    /// User of the request.
    pub identity: &'a Identity,
    /// Operation.
    pub operation: Operation,
    /// The kind in the version that is asked for.
    pub row: &'a KindRow,
    /// Subresource; empty for the object itself.
    pub subresource: &'a str,
    /// Namespace of the path. Of a namespace itself its own name; empty for other kinds without.
    pub namespace: &'a str,
    /// Name of the object; empty if it is generated, and for a deletion of many.
    pub name: &'a str,
    /// Options of the request.
    pub options: Options<'a>,
    /// Whether nothing is to be stored.
    pub dry_run: bool,
    /// How long it may take, if the request says so.
    pub allotted: Option<Duration>,
    /// Warnings and audit annotations of the response.
    pub warnings: &'a Warnings,
}

impl AdmissionRequest<'_> {
    /// The kind of the object: of some subresources another one than the row's.
    pub fn kind(&self) -> Gvk {
        match self.row.subresource(self.subresource) {
            Some(subresource) => subresource.gvk.clone(),
            None => self.row.gvk(),
        }
    }

    /// Whether the object is of the row's kind. If so it is in the stored form, else in the
    /// version of its kind.
    pub fn is_of_row(&self) -> bool {
        self.subresource.is_empty() || self.kind().kind == *self.row.kind
    }
}

/// Attributes of a request: what plugins see of it, with the objects of one try.
pub struct Attributes<'a> {
    asked: AdmissionRequest<'a>,
    /// The object that is to be; none for a deletion. In the stored form if it is of the row's kind.
    pub object: Option<Object>,
    /// The object that is; none for a creation.
    pub old: Option<&'a Object>,
    /// What webhooks remember of the first of two rounds.
    rounds: webhooks::Rounds,
}

impl<'a> Attributes<'a> {
    fn new(asked: AdmissionRequest<'a>, object: Option<Object>, old: Option<&'a Object>) -> Self {
        Self { asked, object, old, rounds: webhooks::Rounds::default() }
    }
}

impl<'a> Deref for Attributes<'a> {
    type Target = AdmissionRequest<'a>;

    fn deref(&self) -> &AdmissionRequest<'a> {
        &self.asked
    }
}

impl Attributes<'_> {
    /// 403 in the form that the original's plugins give it.
    pub fn forbidden(&self, why: &str) -> Status {
        let sent = |field: &str| self.object.as_ref()?.str(&["metadata", field]);
        let given = [Some(self.name), sent("name"), sent("generateName")];
        let name = given.into_iter().flatten().find(|name| !name.is_empty()).unwrap_or("Unknown");
        Status::forbidden(&self.row.group, &self.row.plural, name, why)
    }
}

/// Verdict of a plugin: at once, or when a webhook has responded.
pub enum Verdict<'a> {
    /// Decided.
    Now(Result<(), Status>),
    /// Decided when the future ends.
    Later(BoxFuture<'a, Result<(), Status>>),
}

/// No objection.
pub const ADMITTED: Verdict<'static> = Verdict::Now(Ok(()));

impl Verdict<'_> {
    async fn get(self) -> Result<(), Status> {
        match self {
            Self::Now(result) => result,
            Self::Later(future) => future.await,
        }
    }
}

/// A rule of admission. State that it keeps is a field of [`Admission`].
pub trait Plugin: Send + Sync {
    /// Whether it may have something to say; cheap, because every write asks.
    fn handles(&self, attributes: &Attributes<'_>) -> bool;

    /// Changes the object, or refuses it, before it is validated.
    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Verdict<'a> {
        let _ = attributes;
        ADMITTED
    }

    /// Judges the object that would be stored.
    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Verdict<'a> {
        let _ = attributes;
        ADMITTED
    }
}

/// Whether any plugin handles a request, for handlers that would have to make the objects first.
pub fn listens(asked: AdmissionRequest<'_>) -> bool {
    let attributes = Attributes::new(asked, None, None);
    CHAIN.iter().any(|(_, plugin)| plugin.handles(&attributes))
}

/// Mutating phase: plugins may change the object.
pub async fn mutate(
    asked: AdmissionRequest<'_>,
    object: &mut Object,
    old: Option<&Object>,
) -> Result<(), Status> {
    let mut attributes = Attributes::new(asked, Some(std::mem::take(object)), old);
    let outcome = admit(&mut attributes).await;
    *object = attributes.object.unwrap_or_default();
    outcome
}

/// Asks everyone, and everyone again if a webhook has changed something.
async fn admit(attributes: &mut Attributes<'_>) -> Result<(), Status> {
    let timed = Timed::begin(&attributes.asked, "admit");
    let outcome = admit_all(attributes).await;
    timed.end(None, &outcome);
    outcome
}

async fn admit_all(attributes: &mut Attributes<'_>) -> Result<(), Status> {
    loop {
        for (name, plugin) in CHAIN {
            if plugin.handles(attributes) {
                let timed = Timed::begin(&attributes.asked, "admit");
                let outcome = plugin.admit(attributes).get().await;
                timed.end(Some(name), &outcome);
                outcome?;
            }
        }
        if !attributes.rounds.next() {
            return Ok(());
        }
    }
}

/// Counts how long something of admission takes.
struct Timed<'a> {
    admission: &'a Admission,
    operation: &'static str,
    kind: &'static str,
    begun: Duration,
}

impl<'a> Timed<'a> {
    fn begin(asked: &AdmissionRequest<'a>, kind: &'static str) -> Self {
        let operation = asked.operation.name();
        Self { admission: asked.admission, operation, kind, begun: asked.admission.clock.elapsed() }
    }

    /// `plugin` is whose time it was; none for all together.
    fn end(self, plugin: Option<&'static str>, outcome: &Result<(), Status>) {
        let Self { admission, operation, kind, begun } = self;
        let step = Step { operation, rejected: outcome.is_err(), kind };
        let seconds = admission.clock.elapsed().saturating_sub(begun).as_secs_f64();
        let counts = &admission.metrics;
        match plugin {
            Some(plugin) => counts.plugin(plugin, step, seconds),
            None => counts.step(step, seconds),
        }
    }
}

/// Validating phase: plugins may refuse the object.
pub async fn validate(
    asked: AdmissionRequest<'_>,
    object: &mut Object,
    old: Option<&Object>,
) -> Result<(), Status> {
    let attributes = Attributes::new(asked, Some(std::mem::take(object)), old);
    let outcome = judge(&attributes).await;
    *object = attributes.object.unwrap_or_default();
    outcome
}

async fn judge(attributes: &Attributes<'_>) -> Result<(), Status> {
    let timed = Timed::begin(&attributes.asked, "validate");
    let outcome = judge_all(attributes).await;
    timed.end(None, &outcome);
    outcome
}

async fn judge_all(attributes: &Attributes<'_>) -> Result<(), Status> {
    for (name, plugin) in CHAIN {
        if plugin.handles(attributes) {
            let timed = Timed::begin(&attributes.asked, "validate");
            let outcome = plugin.validate(attributes).get().await;
            timed.end(Some(name), &outcome);
            outcome?;
        }
    }
    Ok(())
}

/// Both phases of a deletion, which has no object but the stored one.
pub async fn delete(asked: AdmissionRequest<'_>, old: &Object) -> Result<(), Status> {
    let mut attributes = Attributes::new(asked, None, Some(old));
    admit(&mut attributes).await?;
    judge(&attributes).await
}

/// Both phases of an object that is not stored: reviews, bindings, evictions, requests for tokens.
pub async fn answered(asked: AdmissionRequest<'_>, object: &mut Object) -> Result<(), Status> {
    mutate(asked, object, None).await?;
    validate(asked, object, None).await
}

#[cfg(test)]
mod tests;
