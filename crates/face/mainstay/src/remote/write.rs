//! Writes to a remote cluster: of whole objects, with the checks of the API server, and as dry runs.

use super::{RemoteCluster, RequestError, unserved_kind};
use crate::embedded::chain;
use http::{HeaderMap, Method, Request, header};
use http_body_util::BodyExt as _;
use kube::client::Body;
use mainstay_cause::Cause;
use mainstay_cli::cluster::{AcceptedWrite, ClusterWriteError, ClusterWriter, ObjectWrite};
use mainstay_client::Error;
use mainstay_object::{Object, Reason, Resource, Status};
use serde_json::{Value, json};

/// The user agent of requests, and the manager of the written fields.
const AGENT: &str = "mainstay-extension";

impl ClusterWriter for RemoteCluster {
    async fn write(
        &self,
        kind: &Resource,
        write: ObjectWrite<'_>,
        dry_run: bool,
    ) -> Result<AcceptedWrite, ClusterWriteError> {
        let request = write_request(kind, write, dry_run)
            .map_err(|error| ClusterWriteError::Failed(chain(&error)))?;
        match self.in_time(send(self.cluster.client(), request)).await {
            Ok(accepted) => Ok(accepted),
            Err(error) => Err(self.write_error(kind, write, &error)),
        }
    }
}

impl RemoteCluster {
    /// The error of a refused write: its kind and its text.
    fn write_error(
        &self,
        kind: &Resource,
        write: ObjectWrite<'_>,
        error: &RequestError,
    ) -> ClusterWriteError {
        let RequestError::Response(error) = error else {
            let text = format!("{} did not respond within {} s", self.url, self.timeout.as_secs());
            return ClusterWriteError::Failed(
                Cause::new(text).remedy("check that it is the right cluster and that it runs"),
            );
        };
        let cause = chain(error);
        if error.is_already_exists() {
            ClusterWriteError::AlreadyExists(cause)
        } else if error.is_conflict() {
            ClusterWriteError::Conflict(cause)
        } else if error.is_forbidden() {
            ClusterWriteError::Forbidden(cause.remedy("use an account that may write it"))
        } else if error.is_invalid() {
            ClusterWriteError::Invalid(cause)
        } else if error.is_not_found() && matches!(write, ObjectWrite::Create(_)) {
            let what = Cause::new(format!("{} does not serve {}", self.url, kind.plural));
            ClusterWriteError::Failed(unserved_kind(what, kind, cause))
        } else if error.is_not_found() {
            ClusterWriteError::NotFound(cause)
        } else {
            ClusterWriteError::Failed(cause)
        }
    }
}

/// The request of a write. Unknown fields are refused, as they would be dropped without a word.
fn write_request(
    kind: &Resource,
    write: ObjectWrite<'_>,
    dry_run: bool,
) -> Result<Request<Body>, http::Error> {
    let object = write.object();
    let namespace = Some(object.namespace()).filter(|namespace| !namespace.is_empty());
    let object_path = || kind.object_path(namespace, object.name());
    let (method, path, body) = match write {
        ObjectWrite::Create(_) => {
            (Method::POST, kind.collection_path(namespace), object.to_value())
        }
        ObjectWrite::Replace(_) => (Method::PUT, object_path(), object.to_value()),
        ObjectWrite::Delete(_) => {
            let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
            options["preconditions"]["uid"] = object.uid().into();
            if dry_run {
                // With a body, API servers ignore the query: the deletion would be a real one.
                options["dryRun"] = json!(["All"]);
            }
            (Method::DELETE, object_path(), options)
        }
    };
    let is_deletion = matches!(write, ObjectWrite::Delete(_));
    let dry_run = if dry_run { "&dryRun=All" } else { "" };
    let target = if is_deletion {
        format!("{path}?{}", dry_run.trim_start_matches('&'))
    } else {
        format!("{path}?fieldManager={AGENT}&fieldValidation=Strict{dry_run}")
    };
    Request::builder()
        .method(method)
        .uri(target)
        .header(header::ACCEPT, "application/json")
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::USER_AGENT, AGENT)
        .body(Body::from(body.to_string().into_bytes()))
}

/// Sends a write; a refusal becomes an error.
async fn send(
    client: &kube::Client,
    request: Request<Body>,
) -> mainstay_client::Result<AcceptedWrite> {
    let response = client.send(request).await?;
    let (head, body) = response.into_parts();
    let bytes = body.collect().await?.to_bytes();
    let value = serde_json::from_slice::<Value>(&bytes);
    if !head.status.is_success() {
        let mut status = match &value {
            Ok(value) if value["kind"] == "Status" => Status::from_value(value),
            // Proxies respond with plain text.
            _ => Status::new(Reason::Unknown, String::from_utf8_lossy(&bytes).trim().to_owned()),
        };
        status.code = head.status.as_u16();
        return Err(Error::Status(status));
    }
    let object = Object::from_value(value.map_err(Error::Answer)?).unwrap_or_default();
    Ok(AcceptedWrite { object, warnings: warnings(&head.headers) })
}

/// The texts of `Warning` headers: `299 - "text"`.
fn warnings(headers: &HeaderMap) -> Vec<String> {
    let texts = headers.get_all(header::WARNING).iter().filter_map(|value| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        let quoted = value.strip_prefix("299 ")?.split_once('"')?.1;
        Some(quoted.strip_suffix('"')?.replace("\\\"", "\""))
    });
    texts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_api::resources::CLUSTER_EXTENSION;

    fn tea() -> Object {
        let tea = json!({"metadata": {"name": "tea", "uid": "u1"}});
        Object::from_value(tea).expect("an object")
    }

    #[test]
    fn writes_are_checked_strictly_and_deletions_are_of_one_object() {
        let object = tea();
        let path = "/apis/olm.operatorframework.io/v1/clusterextensions";
        let strict = "fieldManager=mainstay-extension&fieldValidation=Strict";
        for (write, dry_run, method, target) in [
            (ObjectWrite::Create(&object), false, "POST", format!("{path}?{strict}")),
            (ObjectWrite::Create(&object), true, "POST", format!("{path}?{strict}&dryRun=All")),
            (ObjectWrite::Replace(&object), false, "PUT", format!("{path}/tea?{strict}")),
            (ObjectWrite::Delete(&object), true, "DELETE", format!("{path}/tea?dryRun=All")),
        ] {
            let request = write_request(&CLUSTER_EXTENSION, write, dry_run).expect("a request");
            assert_eq!((request.method().as_str(), request.uri().to_string()), (method, target));
        }
    }

    #[tokio::test]
    async fn dry_run_of_a_deletion_is_in_its_body() {
        let object = tea();
        let write = ObjectWrite::Delete(&object);
        for (dry_run, expected) in [(true, json!(["All"])), (false, Value::Null)] {
            let request = write_request(&CLUSTER_EXTENSION, write, dry_run).expect("a request");
            let body = request.into_body().collect().await.expect("a body").to_bytes();
            let body: Value = serde_json::from_slice(&body).expect("JSON");
            assert_eq!((&body["dryRun"], &body["preconditions"]["uid"]), (&expected, &json!("u1")));
        }
    }

    #[test]
    fn warning_is_the_text_in_quotes() {
        let mut headers = HeaderMap::new();
        for value in [r#"299 - "a \"b\" c""#, r#"199 - "proxy""#, "299"] {
            headers.append(header::WARNING, value.parse().expect("a header"));
        }
        assert_eq!(warnings(&headers), [r#"a "b" c"#]);
    }
}
