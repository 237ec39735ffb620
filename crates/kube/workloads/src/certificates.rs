//! `CertificateSigningRequest` controllers: approve requests of kubelets, sign approved requests,
//! delete old ones.
//!
//! The signers are those of kube-controller-manager. A request that its signer refuses gets the
//! condition `Failed`; requests for other signers are left to those signers.

use crate::Started;
use crate::common::Context;
use crate::credentials::ClusterCredentials;
use mainstay_auth::pki::IssueError;
use mainstay_client::{Action, Cache, Controller, DeleteOptions, Error, Reconciler, Selection};
use mainstay_object::{NamespacedName, Object, Resource};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const REQUEST: Resource = Resource::cluster(
    "certificates.k8s.io",
    "v1",
    "CertificateSigningRequest",
    "certificatesigningrequests",
);
const REVIEW: Resource =
    Resource::cluster("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews");

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;

/// Starts the controller.
pub(crate) fn start(context: &Context, keys: &Arc<ClusterCredentials>, started: &mut Started) {
    let controller = Controller::new("certificatesigningrequests");
    let queue = controller.queue();
    let requests = Cache::builder(Selection::all(REQUEST), |request| {
        Some(Arc::<str>::from(request.resource_version()))
    })
    .subscribe(move |change| {
        if change.after.is_some() {
            queue.add(change.key.clone());
        }
    })
    .start(&context.cluster, context.stop.clone());
    let reconciler = Reconcile { context: context.clone(), keys: Arc::clone(keys) };
    started.controller(controller.reads(&requests).start(reconciler, context.stop.clone()));
}

struct Reconcile {
    context: Context,
    keys: Arc<ClusterCredentials>,
}

impl Reconciler for Reconcile {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        let cluster = &self.context.cluster;
        let Some(mut request) = cluster.find(&REQUEST, None, &key.name).await? else {
            return Ok(Action::Done);
        };
        let now = self.context.clock.now().as_second();
        if let Some(remaining) = seconds_left(&request, now) {
            if remaining < 0 {
                let options = DeleteOptions::uid(request.uid());
                cluster.ensure_deleted(&REQUEST, None, request.name(), &options).await?;
                return Ok(Action::Done);
            }
            let wait = Duration::from_secs(u64::try_from(remaining).unwrap_or(0).saturating_add(1));
            self.answer(&mut request).await?;
            return Ok(Action::in_wall_time(self.context.clock, wait));
        }
        self.answer(&mut request).await?;
        Ok(Action::Done)
    }
}

impl Reconcile {
    async fn answer(&self, request: &mut Object) -> Result<(), Error> {
        match state(request) {
            State::Waiting => self.approve(request).await,
            State::Approved => self.sign(request).await,
            State::Answered => Ok(()),
        }
    }

    /// Approves a request that needs no review by a person.
    async fn approve(&self, request: &mut Object) -> Result<(), Error> {
        for subresource in ClusterCredentials::approvals(request) {
            let spec = |field: &str| request.get(&["spec", field]).cloned().unwrap_or_default();
            let mut review = Object::new(&REVIEW.gvk(), "");
            review.set(
                &["spec"],
                json!({
                    "user": spec("username"), "uid": spec("uid"), "groups": spec("groups"), "extra": spec("extra"),
                    "resourceAttributes": {
                        "group": REQUEST.group, "resource": REQUEST.plural, "verb": "create",
                        "subresource": subresource, "version": "*",
                    },
                }),
            );
            let review = self.context.cluster.create(&REVIEW, &review).await?;
            if review.bool(&["status", "allowed"]) != Some(true) {
                continue;
            }
            let message = if subresource == "selfnodeclient" {
                "Auto approving self kubelet client certificate after SubjectAccessReview."
            } else {
                "Auto approving kubelet client certificate after SubjectAccessReview."
            };
            add_condition(request, "Approved", "AutoApproved", message);
            self.context.cluster.update_subresource(&REQUEST, "approval", request).await?;
            return Ok(());
        }
        Ok(())
    }

    async fn sign(&self, request: &mut Object) -> Result<(), Error> {
        match self.keys.certificate(request) {
            Ok(pem) => request.set(&["status", "certificate"], base64(pem.as_bytes()).into()),
            Err(IssueError::Rejected(why)) => {
                add_condition(request, "Failed", "SignerValidationFailure", &why);
            }
            Err(IssueError::OtherSigner) => return Ok(()),
            Err(IssueError::Sign(why)) => {
                tracing::warn!(request = request.name(), %why, "a certificate was not signed");
                return Ok(());
            }
        }
        self.context.cluster.update_status(&REQUEST, request).await?;
        Ok(())
    }
}

/// The state of a `CertificateSigningRequest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Neither approved, denied nor failed.
    Waiting,
    /// Approved, without a certificate yet.
    Approved,
    /// Has a certificate, or was denied, or failed.
    Answered,
}

fn conditions<'a>(request: &'a Object, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    let is = move |one: &&Value| one.get("type").and_then(Value::as_str) == Some(kind);
    request.array(&["status", "conditions"]).iter().filter(is)
}

fn has(request: &Object, kind: &str) -> bool {
    conditions(request, kind).next().is_some()
}

fn issued(request: &Object) -> bool {
    request.str(&["status", "certificate"]).is_some_and(|certificate| !certificate.is_empty())
}

fn state(request: &Object) -> State {
    let answered = issued(request) || has(request, "Denied") || has(request, "Failed");
    match (answered, has(request, "Approved")) {
        (true, _) => State::Answered,
        (false, true) => State::Approved,
        (false, false) => State::Waiting,
    }
}

/// Seconds until the request is deleted: a day after its creation without an answer, an hour after
/// an answer. None if no rule applies.
fn seconds_left(request: &Object, now: i64) -> Option<i64> {
    let seconds = |time: Option<&str>| {
        time.and_then(|time| time.parse::<jiff::Timestamp>().ok()).map(jiff::Timestamp::as_second)
    };
    let since = |kind: &'static str, life: i64| {
        conditions(request, kind)
            .filter_map(|one| seconds(one.get("lastUpdateTime").and_then(Value::as_str)))
            .map(|since| since + life)
            .min()
    };
    let approved = if issued(request) { HOUR } else { DAY };
    let mut ends: Vec<i64> =
        [since("Denied", HOUR), since("Failed", HOUR), since("Approved", approved)]
            .into_iter()
            .flatten()
            .collect();
    if request.array(&["status", "conditions"]).is_empty() {
        ends.extend(seconds(request.str(&["metadata", "creationTimestamp"])).map(|at| at + DAY));
    }
    ends.into_iter().min().map(|end| end - now)
}

fn add_condition(request: &mut Object, kind: &str, reason: &str, message: &str) {
    let mut list = request.array(&["status", "conditions"]).to_vec();
    list.push(json!({"type": kind, "status": "True", "reason": reason, "message": message}));
    request.set(&["status", "conditions"], list.into());
}

/// Base64 with padding (RFC 4648, 4).
pub(crate) fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or_default());
        let all = at(0) << 16 | at(1) << 8 | at(2);
        for (place, shift) in [18, 12, 6, 0].into_iter().enumerate() {
            let letter = LETTERS[(all >> shift & 0x3f) as usize];
            out.push(if place > chunk.len() { '=' } else { char::from(letter) });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(status: &Value) -> Object {
        let created = json!({"creationTimestamp": "1970-01-02T00:00:00Z"});
        Object::from_value(json!({"metadata": created, "status": status})).unwrap()
    }

    #[test]
    fn csrs_are_answered_once_and_deleted_after_their_time() {
        let condition =
            |kind: &str| json!([{"type": kind, "lastUpdateTime": "1970-01-02T01:00:00Z"}]);
        for (status, remaining, expected) in [
            (json!({}), Some(DAY), State::Waiting),
            (json!({"conditions": condition("Approved")}), Some(HOUR + DAY), State::Approved),
            (json!({"conditions": condition("Denied")}), Some(2 * HOUR), State::Answered),
            (json!({"conditions": condition("Failed")}), Some(2 * HOUR), State::Answered),
            (
                json!({"conditions": condition("Approved"), "certificate": "eA=="}),
                Some(2 * HOUR),
                State::Answered,
            ),
            (json!({"conditions": condition("Other")}), None, State::Waiting),
        ] {
            let request = request(&status);
            assert_eq!((seconds_left(&request, DAY), state(&request)), (remaining, expected));
        }
    }

    #[test]
    fn base64_has_padding() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
