//! `ResourceQuota`: a write must fit into the quotas of its namespace and is charged to them.
//!
//! The plugin runs last, after all others admitted the write. It handles one write at a time, so that
//! two writes never use the same remainder. The charge for a write that fails later is corrected by
//! the `ResourceQuota` controller, which counts the objects again within seconds.

use super::{ADMITTED, AdmissionAttributes, AdmissionDecision, Loopback, Operation, Plugin};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{Method, Request, StatusCode};
use mainstay_auth::Identity;
use mainstay_auth::MASTERS;
use mainstay_object::{Object, Status};
use mainstay_quota::{CountedKind, QuotaWrite, charge};

pub(super) struct ResourceQuota;

const QUOTAS: &str = "resourcequotas";
/// Maximum number of attempts to charge quotas after conflicts.
const MAX_ATTEMPTS: usize = 8;

impl Plugin for ResourceQuota {
    fn handles(&self, attributes: &AdmissionAttributes<'_>) -> bool {
        !attributes.namespace.is_empty()
            && matches!(attributes.operation, Operation::Create | Operation::Update)
            && &*attributes.row.storage != "namespaces"
            && attributes.row.is_stored()
            && is_counted(attributes.subresource, attributes.operation)
    }

    fn validate<'a>(&'a self, attributes: &'a AdmissionAttributes<'_>) -> AdmissionDecision<'a> {
        let store = &attributes.admission.store;
        if store.list(QUOTAS, Some(attributes.namespace)).is_empty() {
            return ADMITTED;
        }
        AdmissionDecision::Pending(Box::pin(charge_quotas(attributes)))
    }
}

/// Whether writes of a subresource can change the usage of any quota.
fn is_counted(subresource: &str, operation: Operation) -> bool {
    match subresource {
        "" => true,
        "resize" | "status" => operation == Operation::Update,
        _ => false,
    }
}

async fn charge_quotas(attributes: &AdmissionAttributes<'_>) -> Result<(), Status> {
    let Some(object) = &attributes.object else { return Ok(()) };
    let kind = CountedKind::of(&attributes.row.group, &attributes.row.plural);
    if !kind.is_changed_by(attributes.subresource, attributes.old, object) {
        return Ok(());
    }
    let admission = attributes.admission;
    let _guard = admission.quotas.lock().await;
    for _ in 0..MAX_ATTEMPTS {
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
        let mut has_conflict = false;
        for (at, used) in charged {
            let quota = &mut quotas[at];
            quota.set(&["status", "used"], used.to_value());
            has_conflict |= !write_status(attributes.loopback, quota).await?;
        }
        if !has_conflict {
            return Ok(());
        }
    }
    Err(Status::internal("the quotas of the namespace change too often to be charged"))
}

/// Writes the status of a quota as the API server. False after a conflict or a deletion.
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
