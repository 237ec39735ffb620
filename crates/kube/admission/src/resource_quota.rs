//! `ResourceQuota`: what is written must fit into the quotas of its namespace, and is charged to them.
//!
//! It comes last, when nobody else objects. One write at a time is looked at, so that two never take
//! the same room. What is charged for a write that comes to nothing after all is given back when
//! somebody counts what there is: the controller of quotas, within seconds.

use super::{ADMITTED, Attributes, Loopback, Operation, Plugin, Verdict};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{Method, Request, StatusCode};
use mainstay_auth::Identity;
use mainstay_auth::MASTERS;
use mainstay_object::{Object, Status};
use mainstay_quota::{CountedKind, QuotaWrite, charge};

pub(super) struct ResourceQuota;

const QUOTAS: &str = "resourcequotas";
/// How often a quota is read again that somebody else has changed.
const ATTEMPTS: usize = 8;

impl Plugin for ResourceQuota {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        !attributes.namespace.is_empty()
            && matches!(attributes.operation, Operation::Create | Operation::Update)
            && &*attributes.row.storage != "namespaces"
            && attributes.row.is_stored()
            && is_counted(attributes.subresource, attributes.operation)
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Verdict<'a> {
        let store = &attributes.admission.store;
        if store.list(QUOTAS, Some(attributes.namespace)).is_empty() {
            return ADMITTED;
        }
        Verdict::Later(Box::pin(fit(attributes)))
    }
}

/// Whether any kind looks at writes of a subresource.
fn is_counted(subresource: &str, operation: Operation) -> bool {
    match subresource {
        "" => true,
        "resize" | "status" => operation == Operation::Update,
        _ => false,
    }
}

async fn fit(attributes: &Attributes<'_>) -> Result<(), Status> {
    let Some(object) = &attributes.object else { return Ok(()) };
    let kind = CountedKind::of(&attributes.row.group, &attributes.row.plural);
    if !kind.is_changed_by(attributes.subresource, attributes.old, object) {
        return Ok(());
    }
    let admission = attributes.admission;
    let _one_at_a_time = admission.quotas.lock().await;
    for _ in 0..ATTEMPTS {
        let stored = admission.store.list(QUOTAS, Some(attributes.namespace));
        let mut quotas: Vec<Object> = stored.iter().map(|quota| quota.object()).collect();
        let write = QuotaWrite {
            kind: &kind,
            object,
            old: attributes.old,
            is_status: attributes.subresource == "status",
            now: admission.clock.now(),
        };
        let charged =
            charge(&quotas, write).map_err(|error| attributes.forbidden(&error.to_string()))?;
        if attributes.dry_run {
            return Ok(());
        }
        let mut overtaken = false;
        for (at, used) in charged {
            let quota = &mut quotas[at];
            quota.set(&["status", "used"], used.to_value());
            overtaken |= !write_status(attributes.loopback, quota).await?;
        }
        if !overtaken {
            return Ok(());
        }
    }
    Err(Status::internal("the quotas of the namespace change too often to be charged"))
}

/// Writes the status of a quota as the server itself. False if somebody else was quicker.
async fn write_status(loopback: &dyn Loopback, quota: &Object) -> Result<bool, Status> {
    let identity = Identity::new("system:apiserver", [MASTERS.to_owned()]);
    let path =
        format!("/api/v1/namespaces/{}/resourcequotas/{}/status", quota.namespace(), quota.name());
    let body = serde_json::to_vec(quota).map_err(Status::internal)?;
    let request = Request::builder()
        .method(Method::PUT)
        .uri(path)
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, "kube-apiserver")
        .body(Bytes::from(body))
        .map_err(Status::internal)?;
    let response = loopback.send(identity, request).await;
    match response.status() {
        StatusCode::OK => Ok(true),
        StatusCode::CONFLICT | StatusCode::NOT_FOUND => Ok(false),
        code => Err(Status::internal(format!("a quota could not be charged: {code}"))),
    }
}
