//! Authentication and authorization by the cluster: `TokenReview` and `SubjectAccessReview`, cached for a
//! moment.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use mainstay_auth::Identity;
use mainstay_auth::authz::Attributes;
use mainstay_client::{Cluster, Result};
use mainstay_clock::{Clock, Stamp};
use mainstay_object::{Object, Resource, Status};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::collections::HashMap;
use std::time::Duration;

const SUBJECT_ACCESS_REVIEW: Resource =
    Resource::cluster("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews");
const TOKEN_REVIEW: Resource =
    Resource::cluster("authentication.k8s.io", "v1", "TokenReview", "tokenreviews");

/// How long a review's status stays cached, as in aggregated API servers.
const CACHE_TTL: Duration = Duration::from_secs(10);
/// The largest number of cached reviews.
const MAX_CACHED: usize = 4096;

/// Creates reviews on the cluster and caches their status.
pub(super) struct AccessReviews {
    cluster: Cluster,
    clock: Clock,
    /// Status and time by kind and spec of the review. The stamp has both clocks, as a token expires by
    /// the wall clock.
    cache: Mutex<HashMap<String, (Value, Stamp)>>,
}

impl AccessReviews {
    pub(super) fn new(cluster: Cluster, clock: Clock) -> Self {
        Self { cluster, clock, cache: Mutex::default() }
    }

    /// Refuses a request that the user may not make.
    pub(super) async fn authorize(
        &self,
        attributes: &Attributes<'_>,
    ) -> std::result::Result<(), Status> {
        let status = self
            .create_review(&SUBJECT_ACCESS_REVIEW, access_review_spec(attributes))
            .await
            .map_err(|error| {
                tracing::warn!(%error, "the cluster does not answer a SubjectAccessReview");
                Status::internal(error)
            })?;
        if status.get("allowed").and_then(Value::as_bool) == Some(true) {
            return Ok(());
        }
        let reason = status.get("reason").and_then(Value::as_str).unwrap_or_default();
        Err(attributes.forbidden(reason))
    }

    /// The user of a request's bearer token; anonymous without one.
    pub(super) async fn authenticate(
        &self,
        headers: &HeaderMap,
    ) -> std::result::Result<Identity, Status> {
        let token = headers.get(AUTHORIZATION).and_then(|header| header.to_str().ok());
        match token.and_then(|header| header.strip_prefix("Bearer ")) {
            Some(token) => self.review_token(token).await?.ok_or_else(Status::unauthorized),
            None => Ok(Identity::anonymous()),
        }
    }

    /// The user of a token; `None` if it is invalid.
    async fn review_token(&self, token: &str) -> std::result::Result<Option<Identity>, Status> {
        let status =
            self.create_review(&TOKEN_REVIEW, json!({"token": token})).await.map_err(|error| {
                tracing::warn!(%error, "the cluster does not answer a TokenReview");
                Status::internal(error)
            })?;
        if status.get("authenticated").and_then(Value::as_bool) != Some(true) {
            return Ok(None);
        }
        let user = &status["user"];
        let text = |key: &str| user[key].as_str().unwrap_or_default().to_owned();
        let extra: BTreeMap<String, Vec<String>> =
            serde_json::from_value(user["extra"].clone()).unwrap_or_default();
        Ok(Some(Identity::with_details(
            text("username"),
            text("uid"),
            texts(&user["groups"]),
            extra,
        )))
    }

    /// Creates a review, or takes it from the cache; returns its status.
    async fn create_review(&self, review: &Resource, spec: Value) -> Result<Value> {
        let cache_key = format!("{} {spec}", review.kind);
        let is_fresh = |asked_at: &Stamp| self.clock.is_within(*asked_at, CACHE_TTL);
        if let Some((status, asked_at)) = self.cache.lock().get(&cache_key)
            && is_fresh(asked_at)
        {
            return Ok(status.clone());
        }
        let asked_at = self.clock.stamp();
        let mut object = Object::default();
        object.set(&["apiVersion"], review.api_version().into());
        object.set(&["kind"], (*review.kind).into());
        object.set(&["spec"], spec);
        let status = self.cluster.create(review, &object).await?;
        let status = status.get(&["status"]).cloned().unwrap_or_default();
        let mut cache = self.cache.lock();
        if cache.len() >= MAX_CACHED {
            cache.retain(|_, (_, asked_at)| is_fresh(asked_at));
        }
        if cache.len() < MAX_CACHED {
            cache.insert(cache_key, (status.clone(), asked_at));
        }
        Ok(status)
    }
}

fn texts(value: &Value) -> Vec<String> {
    let all = value.as_array().into_iter().flatten();
    all.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The spec of a `SubjectAccessReview`.
fn access_review_spec(attributes: &Attributes<'_>) -> Value {
    let identity = attributes.identity;
    let mut spec = json!({"user": identity.user(), "groups": identity.groups()});
    if !identity.uid().is_empty() {
        spec["uid"] = identity.uid().into();
    }
    if !identity.extra().is_empty() {
        spec["extra"] = json!(identity.extra());
    }
    if attributes.is_resource {
        let fields = [
            ("verb", attributes.verb),
            ("group", attributes.group),
            ("version", attributes.version),
            ("resource", attributes.resource),
            ("subresource", attributes.subresource),
            ("namespace", attributes.namespace),
            ("name", attributes.name),
        ];
        let non_empty = fields.into_iter().filter(|(_, value)| !value.is_empty());
        let non_empty: Map<String, Value> =
            non_empty.map(|(key, value)| (key.to_owned(), value.into())).collect();
        spec["resourceAttributes"] = non_empty.into();
    } else {
        spec["nonResourceAttributes"] = json!({"verb": attributes.verb, "path": attributes.path});
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_review_names_user_verb_and_resource() {
        let jane = Identity::new("jane", ["devs".to_owned()]);
        let packages = Attributes::resource(
            &jane,
            "list",
            "packages.operators.coreos.com",
            "packagemanifests",
        );
        let spec = access_review_spec(&packages.in_namespace("team"));
        assert_eq!(
            spec,
            json!({
                "user": "jane", "groups": ["devs", "system:authenticated"],
                "resourceAttributes": {
                    "verb": "list", "group": "packages.operators.coreos.com", "version": "*",
                    "resource": "packagemanifests", "namespace": "team",
                },
            })
        );
        let spec = access_review_spec(&Attributes::path(&jane, "get", "/openapi/v2"));
        assert_eq!(spec["nonResourceAttributes"], json!({"verb": "get", "path": "/openapi/v2"}));
    }
}
