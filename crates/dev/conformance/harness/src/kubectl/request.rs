//! Requests that the cluster's client does not have.

use http::Request;
use http_body_util::BodyExt;
use mainstay_client::{Cluster, Error};
use mainstay_object::{Reason, Status};
use serde_json::Value;

/// Sends a request, and reads the response.
pub(super) async fn send(cluster: &Cluster, request: Request<Vec<u8>>) -> Result<Value, Error> {
    let request = request.map(kube::client::Body::from);
    let response = cluster.client().send(request).await?;
    let code = response.status();
    let bytes = response.into_body().collect().await?.to_bytes();
    let value = serde_json::from_slice::<Value>(&bytes);
    if code.is_success() {
        return value.map_err(Error::Answer);
    }
    let mut status = match value {
        Ok(value) if value["kind"] == "Status" => Status::from_value(&value),
        _ => Status::new(Reason::Unknown, String::from_utf8_lossy(&bytes).trim()),
    };
    status.code = code.as_u16();
    Err(Error::Status(status))
}
