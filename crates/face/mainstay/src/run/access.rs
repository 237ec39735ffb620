//! Whether somebody may do what they ask for: the cluster is asked, and its answers are believed for
//! a moment.

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

const ACCESS: Resource =
    Resource::cluster("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews");
const TOKEN: Resource =
    Resource::cluster("authentication.k8s.io", "v1", "TokenReview", "tokenreviews");

/// For how long an answer is believed, as servers of aggregated groups do.
const BELIEVED: Duration = Duration::from_secs(10);
/// So many answers are remembered at most.
const REMEMBERED: usize = 4096;

/// Asks the cluster who may do what.
pub(super) struct Access {
    cluster: Cluster,
    clock: Clock,
    /// Answers by what was asked, and when. By both clocks, as a token's end is a time of the wall clock.
    known: Mutex<HashMap<String, (Value, Stamp)>>,
}

impl Access {
    pub(super) fn new(cluster: Cluster, clock: Clock) -> Self {
        Self { cluster, clock, known: Mutex::default() }
    }

    /// Refuses what somebody may not do.
    pub(super) async fn allow(&self, wanted: &Attributes<'_>) -> std::result::Result<(), Status> {
        let status = self.ask(&ACCESS, spec(wanted)).await.map_err(|error| {
            tracing::warn!(%error, "the cluster does not say who may do what");
            Status::internal(error)
        })?;
        if status.get("allowed").and_then(Value::as_bool) == Some(true) {
            return Ok(());
        }
        let reason = status.get("reason").and_then(Value::as_str).unwrap_or_default();
        Err(wanted.forbidden(reason))
    }

    /// Who asks, by the token that is sent along: nobody without one.
    pub(super) async fn bearer(
        &self,
        headers: &HeaderMap,
    ) -> std::result::Result<Identity, Status> {
        let token = headers.get(AUTHORIZATION).and_then(|header| header.to_str().ok());
        match token.and_then(|header| header.strip_prefix("Bearer ")) {
            Some(token) => self.token(token).await?.ok_or_else(Status::unauthorized),
            None => Ok(Identity::anonymous()),
        }
    }

    /// Whose token this is; none if it is nobody's.
    async fn token(&self, token: &str) -> std::result::Result<Option<Identity>, Status> {
        let status = self.ask(&TOKEN, json!({"token": token})).await.map_err(|error| {
            tracing::warn!(%error, "the cluster does not say whose token it is");
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

    /// The status of a review.
    async fn ask(&self, review: &Resource, spec: Value) -> Result<Value> {
        let question = format!("{} {spec}", review.kind);
        let fresh = |asked: &Stamp| self.clock.is_within(*asked, BELIEVED);
        if let Some((answer, asked)) = self.known.lock().get(&question)
            && fresh(asked)
        {
            return Ok(answer.clone());
        }
        let asked = self.clock.stamp();
        let mut object = Object::default();
        object.set(&["apiVersion"], review.api_version().into());
        object.set(&["kind"], (*review.kind).into());
        object.set(&["spec"], spec);
        let answer = self.cluster.create(review, &object).await?;
        let answer = answer.get(&["status"]).cloned().unwrap_or_default();
        let mut known = self.known.lock();
        if known.len() >= REMEMBERED {
            known.retain(|_, (_, asked)| fresh(asked));
        }
        if known.len() < REMEMBERED {
            known.insert(question, (answer.clone(), asked));
        }
        Ok(answer)
    }
}

fn texts(value: &Value) -> Vec<String> {
    let all = value.as_array().into_iter().flatten();
    all.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The question that a `SubjectAccessReview` asks.
fn spec(wanted: &Attributes<'_>) -> Value {
    let identity = wanted.identity;
    let mut spec = json!({"user": identity.user(), "groups": identity.groups()});
    if !identity.uid().is_empty() {
        spec["uid"] = identity.uid().into();
    }
    if !identity.extra().is_empty() {
        spec["extra"] = json!(identity.extra());
    }
    if wanted.is_resource {
        let fields = [
            ("verb", wanted.verb),
            ("group", wanted.group),
            ("version", wanted.version),
            ("resource", wanted.resource),
            ("subresource", wanted.subresource),
            ("namespace", wanted.namespace),
            ("name", wanted.name),
        ];
        let given = fields.into_iter().filter(|(_, value)| !value.is_empty());
        let given: Map<String, Value> =
            given.map(|(key, value)| (key.to_owned(), value.into())).collect();
        spec["resourceAttributes"] = given.into();
    } else {
        spec["nonResourceAttributes"] = json!({"verb": wanted.verb, "path": wanted.path});
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_names_who_wants_what() {
        let jane = Identity::new("jane", ["devs".to_owned()]);
        let packages = Attributes::resource(
            &jane,
            "list",
            "packages.operators.coreos.com",
            "packagemanifests",
        );
        let asked = spec(&packages.in_namespace("team"));
        assert_eq!(
            asked,
            json!({
                "user": "jane", "groups": ["devs", "system:authenticated"],
                "resourceAttributes": {
                    "verb": "list", "group": "packages.operators.coreos.com", "version": "*",
                    "resource": "packagemanifests", "namespace": "team",
                },
            })
        );
        let asked = spec(&Attributes::path(&jane, "get", "/openapi/v2"));
        assert_eq!(asked["nonResourceAttributes"], json!({"verb": "get", "path": "/openapi/v2"}));
    }
}
