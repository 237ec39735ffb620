//! Status of validating admission policies: `typeChecking` and `observedGeneration`.
//!
//! kube-controller-manager writes it upstream (`validatingadmissionpolicystatus`). In Mainstay
//! the API server writes it, because it has the schemas.

use crate::server::ApiServer;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Method, Request};
use http_body_util::Full;
use mainstay_admission::POLICIES;
use mainstay_auth::Identity;
use mainstay_object::Object;
use mainstay_policy::type_checking::expression_warnings;
use mainstay_store::{EventKind, WatchError};
use serde_json::{Value, json};
use std::sync::Arc;

/// Field manager of the status.
const MANAGER: &str = "validatingadmissionpolicy-status";

/// Updates the status of all policies until the server ends.
pub(crate) fn start(server: &Arc<ApiServer>) {
    let server = server.clone();
    tokio::spawn(async move {
        let stop = server.stop.clone();
        tokio::select! {
            () = stop.cancelled() => {}
            () = follow(&server) => {}
        }
    });
}

async fn follow(server: &Arc<ApiServer>) {
    loop {
        let list = server.store.list(POLICIES, None);
        let from = list.revision();
        let objects: Vec<Object> = list.iter().map(|stored| stored.object()).collect();
        for object in &objects {
            update_status(server, object).await;
        }
        let Ok(mut watch) = server.store.watch(POLICIES, from) else { continue };
        loop {
            match watch.next().await {
                Ok(event) if event.kind == EventKind::Deleted => {}
                Ok(event) => {
                    if let Some(stored) = server.store.find(POLICIES, "", &event.object.key.name) {
                        update_status(server, &stored.object()).await;
                    }
                }
                Err(WatchError::Expired(_)) => break,
                Err(WatchError::Closed) => return,
            }
        }
    }
}

/// Updates the status of one policy.
async fn update_status(server: &Arc<ApiServer>, policy: &Object) {
    let generation = policy.generation();
    let observed = policy.i64(&["status", "observedGeneration"]).unwrap_or_default();
    if generation <= observed {
        return;
    }
    let spec = policy.get(&["spec"]).cloned().unwrap_or_default();
    let kinds = server.registry.kinds();
    // Type checking is slow for many expressions and many kinds.
    let type_check = tokio::task::spawn_blocking(move || expression_warnings(&spec, &kinds)).await;
    let Ok(expression_warnings) = type_check else { return };
    let hints = if expression_warnings.is_empty() {
        json!({})
    } else {
        json!({"expressionWarnings": expression_warnings})
    };
    let body = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": policy.name()},
        "status": {"observedGeneration": generation, "typeChecking": hints},
    });
    let uri = format!(
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/{}/status?fieldManager={MANAGER}&force=true",
        policy.name()
    );
    let request = Request::builder()
        .method(Method::PATCH)
        .uri(uri)
        .header(CONTENT_TYPE, "application/apply-patch+yaml")
        .body(Full::new(Bytes::from(Value::to_string(&body))));
    let Ok(request) = request else { return };
    let response = server.answer(&Identity::admin(), request).await;
    if !response.status().is_success() {
        // The policy was deleted, or it changed again; another event reports that.
        tracing::debug!(policy = policy.name(), status = %response.status(), "cannot write the status of the policy");
    }
}
