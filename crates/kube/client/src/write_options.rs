//! Writes with options: dry runs, strict field validation, and applies that respect other field managers.

use crate::cluster::{namespace_of, object_target};
use crate::request::{self, Target, media};
use crate::{Cluster, Result};
use http::Method;
use mainstay_object::{Object, Resource};

/// How the server treats a write. By default it stores the object, and drops unknown fields with a
/// warning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Whether the server runs all checks and stores nothing.
    pub dry_run: bool,
    /// Whether the server refuses fields that the kind does not have.
    pub strict: bool,
}

/// A dry run.
const DRY_RUN: WriteOptions = WriteOptions { dry_run: true, strict: false };

impl WriteOptions {
    fn onto(self, target: Target) -> Target {
        target
            .pair("fieldValidation", if self.strict { "Strict" } else { "" })
            .pair("dryRun", if self.dry_run { "All" } else { "" })
    }
}

impl Cluster {
    /// [`Cluster::create`] with options.
    ///
    /// # Errors
    /// As those of [`Cluster::create`].
    pub async fn create_with(
        &self,
        resource: &Resource,
        object: &Object,
        options: WriteOptions,
    ) -> Result<Object> {
        let target = Target::new(resource.collection_path(namespace_of(object)));
        let body = request::encode_object(object)?;
        self.write(Method::POST, options.onto(target), media::JSON, body).await
    }

    /// Checks by a dry run whether an object could be created. Nothing is stored; a name conflict
    /// is reported only for an otherwise valid object.
    ///
    /// # Errors
    /// As those of [`Cluster::create`].
    pub async fn try_create(&self, resource: &Resource, object: &Object) -> Result<Object> {
        self.create_with(resource, object, DRY_RUN).await
    }

    /// [`Cluster::update`] with options.
    ///
    /// # Errors
    /// As those of [`Cluster::update`].
    pub async fn update_with(
        &self,
        resource: &Resource,
        object: &Object,
        options: WriteOptions,
    ) -> Result<Object> {
        let target = object_target(resource, namespace_of(object), object.name());
        let body = request::encode_object(object)?;
        self.write(Method::PUT, options.onto(target), media::JSON, body).await
    }

    /// Applies an object as it is: unlike in [`Cluster::apply`], its `resourceVersion` is a precondition,
    /// and fields of other managers are taken only if `force` is set. Otherwise the result is a conflict.
    pub async fn apply_exactly(
        &self,
        resource: &Resource,
        object: &Object,
        manager: &str,
        force: bool,
    ) -> Result<Object> {
        self.send_apply(resource, object, manager, force, WriteOptions::default()).await
    }

    /// [`Cluster::apply_exactly`] as a dry run: nothing is stored, and the result is what would be.
    pub async fn try_apply(
        &self,
        resource: &Resource,
        object: &Object,
        manager: &str,
        force: bool,
    ) -> Result<Object> {
        self.send_apply(resource, object, manager, force, DRY_RUN).await
    }

    async fn send_apply(
        &self,
        resource: &Resource,
        object: &Object,
        manager: &str,
        force: bool,
        options: WriteOptions,
    ) -> Result<Object> {
        let target = object_target(resource, namespace_of(object), object.name())
            .pair("fieldManager", manager)
            .pair("force", if force { "true" } else { "false" });
        let target = options.onto(target);
        self.write(Method::PATCH, target, media::APPLY_PATCH, request::encode_object(object)?).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DeleteOptions, Error};
    use http::{Request, Response, header};
    use http_body_util::BodyExt as _;
    use kube::client::Body;
    use mainstay_object::builtin;
    use parking_lot::Mutex;
    use serde_json::{Value, json};
    use std::convert::Infallible;
    use std::sync::Arc;

    type Requests = Arc<Mutex<Vec<(String, Value)>>>;

    /// A server that gives every request the same response, and the requests with their bodies.
    fn server(code: u16, warning: &'static str, body: &'static str) -> (Cluster, Requests) {
        let requests = Requests::default();
        let received = requests.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let received = received.clone();
            async move {
                let line = format!("{} {}", request.method(), request.uri());
                let bytes = request.into_body().collect().await.unwrap().to_bytes();
                received.lock().push((line, serde_json::from_slice(&bytes).unwrap()));
                let response = Response::builder().status(code).header(header::WARNING, warning);
                Ok::<_, Infallible>(response.body(Body::from(body.as_bytes().to_vec())).unwrap())
            }
        });
        (Cluster::new(kube::Client::new(service, "default")), requests)
    }

    fn tea() -> Object {
        Object::from_value(json!({"metadata": {"name": "tea", "uid": "u1"}})).unwrap()
    }

    #[tokio::test]
    async fn options_of_creations_and_updates_are_in_the_query() {
        let (cluster, requests) = server(200, "", "{}");
        let (kind, tea) = (&builtin::NODE, tea());
        let strict = WriteOptions { strict: true, dry_run: false };
        let strict_dry_run = WriteOptions { strict: true, dry_run: true };
        cluster.create_with(kind, &tea, WriteOptions::default()).await.unwrap();
        cluster.create_with(kind, &tea, strict).await.unwrap();
        cluster.create_with(kind, &tea, strict_dry_run).await.unwrap();
        cluster.update_with(kind, &tea, strict).await.unwrap();
        cluster.try_create(kind, &tea).await.unwrap();
        let lines: Vec<String> = requests.lock().iter().map(|(line, _)| line.clone()).collect();
        assert_eq!(
            lines,
            [
                "POST /api/v1/nodes",
                "POST /api/v1/nodes?fieldValidation=Strict",
                "POST /api/v1/nodes?fieldValidation=Strict&dryRun=All",
                "PUT /api/v1/nodes/tea?fieldValidation=Strict",
                "POST /api/v1/nodes?dryRun=All",
            ]
        );
    }

    #[tokio::test]
    async fn dry_run_of_a_deletion_is_in_its_body() {
        let (cluster, requests) = server(200, "", r#"{"kind": "Status"}"#);
        for (dry_run, expected) in [(true, json!(["All"])), (false, Value::Null)] {
            let options = DeleteOptions::uid("u1").dry_run(dry_run);
            let held = cluster.delete(&builtin::NODE, None, "tea", &options).await.unwrap();
            assert!(held.is_none());
            let (line, body) = requests.lock().pop().unwrap();
            assert_eq!(line, "DELETE /api/v1/nodes/tea");
            assert_eq!((&body["dryRun"], &body["preconditions"]["uid"]), (&expected, &json!("u1")));
        }
    }

    #[tokio::test]
    async fn plain_text_is_a_refusal_by_its_code_and_no_object() {
        for (code, reason) in [(403, "Forbidden"), (404, "NotFound"), (503, "ServiceUnavailable")] {
            let (cluster, _) = server(code, "", "a proxy's page");
            let error = cluster.create_with(&builtin::NODE, &tea(), DRY_RUN).await.unwrap_err();
            let status = error.status().unwrap();
            assert_eq!((status.code, status.reason.as_str()), (code, reason));
            assert_eq!(status.message, "a proxy's page");
        }
        for body in ["a page", "[]"] {
            let (cluster, _) = server(200, "", body);
            let result = cluster.update_with(&builtin::NODE, &tea(), DRY_RUN).await;
            assert!(matches!(result, Err(Error::Answer(_))), "{body}: {result:?}");
        }
    }

    #[tokio::test]
    async fn warnings_of_one_header_are_reported_one_by_one() {
        let (cluster, _) = server(201, r#"299 - "a \"b\" c", 299 - "two""#, "{}");
        let warnings = Arc::new(Mutex::new(Vec::new()));
        let reported = warnings.clone();
        let cluster = cluster.warning(move |text| reported.lock().push(text.to_owned()));
        cluster.create_with(&builtin::NODE, &tea(), DRY_RUN).await.unwrap();
        assert_eq!(*warnings.lock(), [r#"a "b" c"#, "two"]);
    }
}
