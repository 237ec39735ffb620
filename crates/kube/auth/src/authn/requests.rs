//! `TokenRequest` and `TokenReview`: issuing and verifying tokens over the API.

use super::{
    Authenticator, BoundObject, ISSUER, SecretTokenUse, TokenClaims, VerifiedToken, headers,
};
use crate::Identity;
use mainstay_object::Objects;
use mainstay_object::{FieldError, FieldPath, Gvk, Object, Status};
use serde_json::{Value, json};

const GROUP: &str = "authentication.k8s.io";
const KIND: &str = "TokenRequest";
const DEFAULT_SECONDS: i64 = 3600;
const MIN_SECONDS: i64 = 600;
const MAX_SECONDS: i64 = 1 << 32;
/// The lifetime that kubelets request for the tokens of pods. Such a token lives a year, for
/// programs that never read it again. A claim records from when on its use is reported.
const POD_SECONDS: i64 = 3607;
const POD_SECONDS_EXTENDED: i64 = 365 * 24 * 60 * 60;

impl Authenticator {
    /// Handles a POST to `serviceaccounts/NAME/token`. `account` is the stored ServiceAccount.
    pub fn create_token(
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
        let claim = |index: usize| {
            bound.get(index).map(|(kind, object)| BoundObject {
                kind,
                name: object.name(),
                uid: object.uid(),
            })
        };
        let is_bound_to_pod = bound.first().is_some_and(|(kind, _)| *kind == "pod");
        let is_extended = is_bound_to_pod
            && seconds == POD_SECONDS
            && audiences.iter().all(|audience| audience == ISSUER);
        let issued = self.issue(&TokenClaims {
            namespace: account.namespace(),
            account: account.name(),
            uid: account.uid(),
            audiences: &audiences,
            seconds: if is_extended { POD_SECONDS_EXTENDED } else { seconds },
            bound: [claim(0), claim(1)],
            warn_after: is_extended.then_some(seconds),
        });
        let expiration = self.clock.now().checked_add(jiff::SignedDuration::from_secs(seconds));
        let expiration = expiration.unwrap_or(jiff::Timestamp::MAX);

        request.set(&["apiVersion"], format!("{GROUP}/v1").into());
        request.set(&["kind"], KIND.into());
        request.set(&["metadata", "name"], account.name().into());
        request.set(&["metadata", "namespace"], account.namespace().into());
        request.set(&["metadata", "uid"], account.uid().into());
        request.set(&["metadata", "creationTimestamp"], issued.issued_at.into());
        request.set(&["spec", "audiences"], json!(audiences));
        request.set(&["spec", "expirationSeconds"], seconds.into());
        request.set(
            &["status"],
            json!({"token": issued.token, "expirationTimestamp": mainstay_clock::rfc3339(expiration)}),
        );
        Ok(request)
    }

    /// Handles a POST to `tokenreviews`; an invalid token is a result, not an error. The second
    /// value is the use of a legacy token that is not recorded yet.
    pub fn review_token(
        &self,
        mut review: Object,
        objects: &dyn Objects,
    ) -> Result<(Object, Option<SecretTokenUse>), Status> {
        let audiences: Vec<String> = review.part(&["spec", "audiences"]).unwrap_or_default();
        let token = review.str(&["spec", "token"]).unwrap_or_default();
        if token.is_empty() {
            let message = "token is required for TokenReview in authentication";
            return Err(Status::bad_request(message));
        }
        // kube-apiserver puts the token into a header and parses the header. A text that is no
        // token there is reviewed as the anonymous user.
        let header = format!("Bearer {token}");
        let outcome = if let Some(token) = headers::parse_bearer(&header, &mut Vec::new()) {
            self.verify(&token, &audiences, objects)
        } else {
            let own = || vec![ISSUER.to_owned()];
            let audiences = if audiences.is_empty() { own() } else { audiences };
            Ok(VerifiedToken { audiences, ..VerifiedToken::new(Identity::anonymous()) })
        };
        let mut secret_use = None;
        let status = match outcome {
            Ok(verified) => {
                secret_use = verified.secret_use;
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
        Ok((review, secret_use))
    }
}

/// The request must name its ServiceAccount or none.
fn check_names(request: &Object, account: &Object) -> Result<(), Status> {
    let metadata = FieldPath::new("metadata");
    for (field, actual, requested) in [
        ("name", account.name(), request.name()),
        ("namespace", account.namespace(), request.namespace()),
    ] {
        if !requested.is_empty() && requested != actual {
            let detail = format!("must match the service account {field} if specified");
            let error = FieldError::invalid(&metadata.child(field), requested, detail);
            return Err(Status::invalid(GROUP, KIND, account.name(), &[error]));
        }
    }
    let requested = request.uid();
    if !requested.is_empty() && requested != account.uid() {
        let message = format!(
            "the UID in the token request ({requested}) does not match the UID of the service account ({})",
            account.uid()
        );
        return Err(Status::conflict(GROUP, KIND, account.name(), &message));
    }
    Ok(())
}

fn check_seconds(seconds: i64) -> Result<(), Status> {
    let detail = match seconds {
        ..MIN_SECONDS => "may not specify a duration less than 10 minutes",
        MIN_SECONDS..=MAX_SECONDS => return Ok(()),
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    let field = FieldPath::new("spec").child("expirationSeconds");
    let error = FieldError::invalid(&field, seconds, detail);
    Err(Status::invalid(GROUP, KIND, "", &[error]))
}

/// The object that a token is bound to, and the name of its claim; for a Pod its Node too.
fn bound_objects(
    reference: &Value,
    account: &Object,
    objects: &dyn Objects,
) -> Result<Vec<(&'static str, Object)>, Status> {
    let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default();
    let (version, kind, name, uid) = (text("apiVersion"), text("kind"), text("name"), text("uid"));
    let gvk = Gvk::from_api_version(version, kind);
    let (claim, resource, namespace) = match (&*gvk.group, kind) {
        ("", "Pod") => ("pod", "pods", account.namespace()),
        ("", "Secret") => ("secret", "secrets", account.namespace()),
        ("", "Node") => ("node", "nodes", ""),
        _ => {
            // Go prints the core group as an empty one here.
            return Err(Status::bad_request(format!(
                "cannot bind token to object of type {}/{}, Kind={kind}",
                gvk.group, gvk.version
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
        let node_name = object.str(&["spec", "nodeName"]).unwrap_or_default();
        if !node_name.is_empty() {
            // A Node that was deleted is named without a uid.
            let node_without_uid = || Object::new(&Gvk::new("", "v1", "Node"), node_name);
            node = Some((
                "node",
                objects.get("nodes", "", node_name).unwrap_or_else(node_without_uid),
            ));
        }
    }
    if !uid.is_empty() && uid != object.uid() {
        let message = format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
        );
        return Err(Status::conflict("", kind, name, &message));
    }
    Ok(std::iter::once((claim, object)).chain(node).collect())
}
