//! `TokenRequest` and `TokenReview`: issuing and checking tokens over the API.

use super::{Authenticator, Bound, Grant, ISSUER};
use crate::strategy::Objects;
use mainstay_object::{FieldError, FieldPath, Gvk, Object, Status};
use serde_json::{Value, json};

const GROUP: &str = "authentication.k8s.io";
const DEFAULT_SECONDS: i64 = 3600;
const SHORTEST_SECONDS: i64 = 600;
const LONGEST_SECONDS: i64 = 1 << 32;

impl Authenticator {
    /// Answers a POST to `serviceaccounts/NAME/token`. `account` is the stored account.
    pub fn answer_token_request(
        &self,
        mut request: Object,
        account: &Object,
        objects: &dyn Objects,
    ) -> Result<Object, Status> {
        let metadata = FieldPath::new("metadata");
        for (field, mine, asked) in [
            ("name", account.name(), request.name()),
            ("namespace", account.namespace(), request.namespace()),
        ] {
            if !asked.is_empty() && asked != mine {
                let words = format!("must match the service account {field} if specified");
                let error = FieldError::invalid(&metadata.child(field), asked, words);
                return Err(Status::invalid(GROUP, "TokenRequest", account.name(), &[error]));
            }
        }
        let seconds = request.i64(&["spec", "expirationSeconds"]).unwrap_or(DEFAULT_SECONDS);
        let words = match seconds {
            ..SHORTEST_SECONDS => Some("may not specify a duration less than 10 minutes"),
            SHORTEST_SECONDS..=LONGEST_SECONDS => None,
            _ => Some("may not specify a duration larger than 2^32 seconds"),
        };
        if let Some(words) = words {
            let field = FieldPath::new("spec").child("expirationSeconds");
            let error = FieldError::invalid(&field, seconds, words);
            return Err(Status::invalid(GROUP, "TokenRequest", "", &[error]));
        }
        let mut audiences: Vec<String> = request.part(&["spec", "audiences"]).unwrap_or_default();
        if audiences.is_empty() {
            audiences.push(ISSUER.to_owned());
        }

        let reference = request.get(&["spec", "boundObjectRef"]).filter(|it| it.is_object());
        let bound_object = match reference {
            Some(reference) => Some(bound_object(reference, account, objects)?),
            None => None,
        };
        let bound = bound_object.as_ref().map(|(kind, object)| Bound {
            kind,
            name: object.name(),
            uid: object.uid(),
        });
        let issued = self.issue(&Grant {
            namespace: account.namespace(),
            account: account.name(),
            uid: account.uid(),
            audiences: &audiences,
            seconds,
            bound,
        });

        request.set(&["apiVersion"], format!("{GROUP}/v1").into());
        request.set(&["kind"], "TokenRequest".into());
        request.set(
            &["metadata"],
            json!({
                "name": account.name(),
                "namespace": account.namespace(),
                "uid": account.uid(),
                "creationTimestamp": self.clock.now_rfc3339(),
            }),
        );
        request.set(&["spec", "audiences"], json!(audiences));
        request.set(&["spec", "expirationSeconds"], seconds.into());
        request.set(
            &["status"],
            json!({"token": issued.token, "expirationTimestamp": issued.expires}),
        );
        Ok(request)
    }

    /// Answers a POST to `tokenreviews`: a token that proves nothing is an answer, not an error.
    pub fn answer_token_review(&self, mut review: Object, objects: &dyn Objects) -> Object {
        let audiences: Vec<String> = review.part(&["spec", "audiences"]).unwrap_or_default();
        let token = review.str(&["spec", "token"]).unwrap_or_default();
        let status = match self.verify(token, &audiences, objects) {
            Ok(verified) => json!({
                "authenticated": true,
                "audiences": verified.audiences,
                "user": {
                    "username": verified.identity.user(),
                    "uid": verified.identity.uid(),
                    "groups": verified.identity.groups(),
                    "extra": verified.identity.extra(),
                },
            }),
            Err(_) => json!({"user": {}, "error": "invalid bearer token"}),
        };
        review.set(&["status"], status);
        review
    }
}

/// The object that a token is to end with, and the name of its claim.
fn bound_object(
    reference: &Value,
    account: &Object,
    objects: &dyn Objects,
) -> Result<(&'static str, Object), Status> {
    let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default();
    let (version, kind, name, uid) = (text("apiVersion"), text("kind"), text("name"), text("uid"));
    let (claim, resource) = match (version, kind) {
        ("v1", "Pod") => ("pod", "pods"),
        ("v1", "Secret") => ("secret", "secrets"),
        _ => {
            let asked = Gvk::from_api_version(version, kind);
            // Go prints the core group as an empty one here.
            return Err(Status::bad_request(format!(
                "cannot bind token to object of type {}/{}, Kind={kind}",
                asked.group, asked.version
            )));
        }
    };
    let object = objects
        .get(resource, account.namespace(), name)
        .ok_or_else(|| Status::not_found("", resource, name))?;
    if claim == "pod" && object.str(&["spec", "serviceAccountName"]) != Some(account.name()) {
        return Err(Status::bad_request(format!(
            "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
            account.name()
        )));
    }
    if !uid.is_empty() && uid != object.uid() {
        let why = format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
        );
        return Err(Status::conflict("", kind, name, &why));
    }
    Ok((claim, object))
}
