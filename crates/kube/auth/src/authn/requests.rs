//! `TokenRequest` and `TokenReview`: issuing and checking tokens over the API.

use super::{Authenticator, Bound, Grant, ISSUER, Used, Verified, headers};
use crate::Identity;
use mainstay_object::Objects;
use mainstay_object::{FieldError, FieldPath, Gvk, Object, Status};
use serde_json::{Value, json};

const GROUP: &str = "authentication.k8s.io";
const KIND: &str = "TokenRequest";
const DEFAULT_SECONDS: i64 = 3600;
const SHORTEST_SECONDS: i64 = 600;
const LONGEST_SECONDS: i64 = 1 << 32;
/// What kubelets ask for on behalf of pods. Such a token lives a year, so that programs that never
/// read it again go on working; its use after the time that was asked for is noted in the claims.
const POD_SECONDS: i64 = 3607;
const POD_SECONDS_EXTENDED: i64 = 365 * 24 * 60 * 60;

impl Authenticator {
    /// Answers a POST to `serviceaccounts/NAME/token`. `account` is the stored account.
    pub fn answer_token_request(
        &self,
        mut request: Object,
        account: &Object,
        objects: &dyn Objects,
    ) -> Result<Object, Status> {
        check_names(&request, account)?;
        let mut audiences: Vec<String> = request.part(&["spec", "audiences"]).unwrap_or_default();
        if audiences.is_empty() {
            audiences.push(ISSUER.to_owned());
        }
        let seconds = request.i64(&["spec", "expirationSeconds"]).unwrap_or(DEFAULT_SECONDS);
        check_seconds(seconds)?;
        let reference =
            request.get(&["spec", "boundObjectRef"]).filter(|reference| reference.is_object());
        let bound = match reference {
            Some(reference) => bound_objects(reference, account, objects)?,
            None => Vec::new(),
        };
        let claim = |at: usize| {
            bound.get(at).map(|(kind, object)| Bound {
                kind,
                name: object.name(),
                uid: object.uid(),
            })
        };
        let of_pod = bound.first().is_some_and(|(kind, _)| *kind == "pod");
        let extended =
            of_pod && seconds == POD_SECONDS && audiences.iter().all(|audience| audience == ISSUER);
        let issued = self.issue(&Grant {
            namespace: account.namespace(),
            account: account.name(),
            uid: account.uid(),
            audiences: &audiences,
            seconds: if extended { POD_SECONDS_EXTENDED } else { seconds },
            bound: [claim(0), claim(1)],
            warn_after: extended.then_some(seconds),
        });
        let ends = self.clock.now().checked_add(jiff::SignedDuration::from_secs(seconds));
        let ends = ends.unwrap_or(jiff::Timestamp::MAX);

        request.set(&["apiVersion"], format!("{GROUP}/v1").into());
        request.set(&["kind"], KIND.into());
        request.set(&["metadata", "name"], account.name().into());
        request.set(&["metadata", "namespace"], account.namespace().into());
        request.set(&["metadata", "uid"], account.uid().into());
        request.set(&["metadata", "creationTimestamp"], issued.made.into());
        request.set(&["spec", "audiences"], json!(audiences));
        request.set(&["spec", "expirationSeconds"], seconds.into());
        request.set(
            &["status"],
            json!({"token": issued.token, "expirationTimestamp": mainstay_clock::rfc3339(ends)}),
        );
        Ok(request)
    }

    /// Answers a POST to `tokenreviews`: a token that proves nothing is an answer, not an error. The
    /// second is a use of a Secret's token that is to be noted.
    pub fn answer_token_review(
        &self,
        mut review: Object,
        objects: &dyn Objects,
    ) -> Result<(Object, Option<Used>), Status> {
        let audiences: Vec<String> = review.part(&["spec", "audiences"]).unwrap_or_default();
        let token = review.str(&["spec", "token"]).unwrap_or_default();
        if token.is_empty() {
            let why = "token is required for TokenReview in authentication";
            return Err(Status::bad_request(why));
        }
        // The original puts the token into a header and reads it again; what is no token then is sent
        // by nobody.
        let header = format!("Bearer {token}");
        let outcome = if let Some(token) = headers::token_of(&header, &mut Vec::new()) {
            self.verify(&token, &audiences, objects)
        } else {
            let own = || vec![ISSUER.to_owned()];
            let audiences = if audiences.is_empty() { own() } else { audiences };
            Ok(Verified { audiences, ..Verified::new(Identity::anonymous()) })
        };
        let mut used = None;
        let status = match outcome {
            Ok(verified) => {
                used = verified.used;
                let identity = &verified.identity;
                let mut user = json!({"username": identity.user(), "groups": identity.groups()});
                if !identity.uid().is_empty() {
                    user["uid"] = identity.uid().into();
                }
                if !identity.extra().is_empty() {
                    user["extra"] = json!(identity.extra());
                }
                json!({"authenticated": true, "audiences": verified.audiences, "user": user})
            }
            Err(reason) => json!({"user": {}, "error": reason.to_string()}),
        };
        review.set(&["status"], status);
        Ok((review, used))
    }
}

/// What a request says of the account must be true.
fn check_names(request: &Object, account: &Object) -> Result<(), Status> {
    let metadata = FieldPath::new("metadata");
    for (field, mine, asked) in [
        ("name", account.name(), request.name()),
        ("namespace", account.namespace(), request.namespace()),
    ] {
        if !asked.is_empty() && asked != mine {
            let words = format!("must match the service account {field} if specified");
            let error = FieldError::invalid(&metadata.child(field), asked, words);
            return Err(Status::invalid(GROUP, KIND, account.name(), &[error]));
        }
    }
    let asked = request.uid();
    if !asked.is_empty() && asked != account.uid() {
        let why = format!(
            "the UID in the token request ({asked}) does not match the UID of the service account ({})",
            account.uid()
        );
        return Err(Status::conflict(GROUP, KIND, account.name(), &why));
    }
    Ok(())
}

fn check_seconds(seconds: i64) -> Result<(), Status> {
    let words = match seconds {
        ..SHORTEST_SECONDS => "may not specify a duration less than 10 minutes",
        SHORTEST_SECONDS..=LONGEST_SECONDS => return Ok(()),
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    let field = FieldPath::new("spec").child("expirationSeconds");
    let error = FieldError::invalid(&field, seconds, words);
    Err(Status::invalid(GROUP, KIND, "", &[error]))
}

/// The object that a token is to end with, and the name of its claim; for a pod its node too.
fn bound_objects(
    reference: &Value,
    account: &Object,
    objects: &dyn Objects,
) -> Result<Vec<(&'static str, Object)>, Status> {
    let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default();
    let (version, kind, name, uid) = (text("apiVersion"), text("kind"), text("name"), text("uid"));
    let asked = Gvk::from_api_version(version, kind);
    let (claim, resource, namespace) = match (&*asked.group, kind) {
        ("", "Pod") => ("pod", "pods", account.namespace()),
        ("", "Secret") => ("secret", "secrets", account.namespace()),
        ("", "Node") => ("node", "nodes", ""),
        _ => {
            // Go prints the core group as an empty one here.
            return Err(Status::bad_request(format!(
                "cannot bind token to object of type {}/{}, Kind={kind}",
                asked.group, asked.version
            )));
        }
    };
    if name.is_empty() {
        return Err(Status::bad_request("Name parameter required."));
    }
    let object = objects
        .get(resource, namespace, name)
        .ok_or_else(|| Status::not_found("", resource, name))?;
    let mut node = None;
    if claim == "pod" {
        if object.str(&["spec", "serviceAccountName"]) != Some(account.name()) {
            return Err(Status::bad_request(format!(
                "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
                account.name()
            )));
        }
        let on = object.str(&["spec", "nodeName"]).unwrap_or_default();
        if !on.is_empty() {
            // A node that is gone is told by its name.
            let gone = || Object::new(&Gvk::new("", "v1", "Node"), on);
            node = Some(("node", objects.get("nodes", "", on).unwrap_or_else(gone)));
        }
    }
    if !uid.is_empty() && uid != object.uid() {
        let why = format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
        );
        return Err(Status::conflict("", kind, name, &why));
    }
    Ok(std::iter::once((claim, object)).chain(node).collect())
}
