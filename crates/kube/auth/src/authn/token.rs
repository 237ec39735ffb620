//! Token claims: their validation, and the identity of the ServiceAccount.
//!
//! The rules and texts are those of kube-apiserver for two kinds of tokens. A bound token names the
//! issuer and audience of this server, and has times with a leeway of one minute. Its
//! ServiceAccount and its bound object must still exist with the same uid. A legacy token is stored
//! in a Secret and never expires.

use super::{AudienceList, CREDENTIAL_ID, ISSUER, Identity, TokenError, VerifiedToken};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_object::Object;
use mainstay_object::Objects;
use serde_json::Value;
use std::collections::BTreeMap;

/// The issuer of legacy tokens in Secrets.
pub(super) const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";
/// The label with the last day on which the token of a Secret was used.
const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";
const AUTO_GENERATED: &str = "Use tokens from the TokenRequest API or manually created secret-based tokens instead of auto-generated secret-based tokens.";
/// The extra fields of an identity with the Pod and Node that its token is bound to.
const BOUND_OBJECT_KEYS: [[&str; 2]; 2] = [
    ["authentication.kubernetes.io/pod-name", "authentication.kubernetes.io/pod-uid"],
    ["authentication.kubernetes.io/node-name", "authentication.kubernetes.io/node-uid"],
];
const INVALIDATED: &str = "service account token has been invalidated";
const LEGACY_INVALIDATED: &str = "Token has been invalidated";

/// Clocks may differ by this much. A deleted object counts as existing for as long (go-jose's
/// leeway).
const LEEWAY_SECONDS: i64 = 60;

/// A token with a valid signature.
pub(super) struct SignedToken<'a> {
    pub(super) token: &'a str,
    pub(super) claims: &'a Value,
    /// Seconds since the epoch.
    pub(super) now: i64,
    pub(super) objects: &'a dyn Objects,
}

impl SignedToken<'_> {
    /// Verifies the claims for one of the audiences.
    pub(super) fn verify(&self, wanted: &[String]) -> Result<VerifiedToken, TokenError> {
        let audiences = self.audiences(wanted)?;
        let issuer = self.claims.get("iss").and_then(Value::as_str);
        let mut verified = if issuer == Some(LEGACY_ISSUER) {
            self.verify_legacy()?
        } else {
            self.verify_bound()?
        };
        verified.audiences = audiences;
        Ok(verified)
    }

    /// The wanted audiences that the token has. A token without audiences is for this server.
    fn audiences(&self, wanted: &[String]) -> Result<Vec<String>, TokenError> {
        let own = || vec![ISSUER.to_owned()];
        let present: Vec<String> = match self.claims.get("aud") {
            None | Some(Value::Null) => own(),
            Some(Value::String(audience)) => vec![audience.clone()],
            Some(Value::Array(all)) if all.is_empty() => own(),
            Some(Value::Array(all)) => {
                all.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
            }
            Some(_) => {
                let reason =
                    "go-jose/go-jose/jwt: expected string or array value to unmarshal to Audience";
                return Err(TokenError::invalid(reason));
            }
        };
        let common: Vec<String> = present
            .iter()
            .filter(|audience| {
                wanted.contains(audience) || mainstay_fault::is_on("tokens-are-for-everybody")
            })
            .cloned()
            .collect();
        if common.is_empty() {
            let reason = format!(
                "token audiences {} is invalid for the target audiences {}",
                AudienceList(&present),
                AudienceList(wanted)
            );
            return Err(TokenError::invalid(reason));
        }
        Ok(common)
    }

    /// The time in a claim, in seconds since the epoch; none without the claim.
    fn time(&self, claim: &str) -> Result<Option<i64>, TokenError> {
        match self.claims.get(claim) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Number(number)) => {
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "a cast to an integer saturates"
                )]
                let truncated = || number.as_f64().map(|seconds| seconds as i64);
                Ok(number.as_i64().or_else(truncated))
            }
            Some(_) => {
                let reason = "go-jose/go-jose/jwt: expected number value to unmarshal NumericDate";
                Err(TokenError::invalid(reason))
            }
        }
    }

    fn check_times(&self) -> Result<(), TokenError> {
        let [expiry, not_before, issued_at] =
            [self.time("exp")?, self.time("nbf")?, self.time("iat")?];
        let is_future = |time: Option<i64>| {
            time.is_some_and(|time| time > self.now.saturating_add(LEEWAY_SECONDS))
        };
        let reason = if is_future(not_before) {
            "service account token is not valid yet"
        } else if expiry.is_some_and(|expiry| expiry < self.now.saturating_sub(LEEWAY_SECONDS)) {
            "service account token has expired"
        } else if is_future(issued_at) {
            "service account token is issued in the future"
        } else {
            return Ok(());
        };
        Err(TokenError::invalid(reason))
    }

    /// Whether the deletion timestamp of an object is older than the leeway.
    fn is_deleted(&self, object: &Object) -> bool {
        object
            .str(&["metadata", "deletionTimestamp"])
            .and_then(|time| time.parse::<jiff::Timestamp>().ok())
            .is_some_and(|time| time.as_second() < self.now.saturating_sub(LEEWAY_SECONDS))
    }

    fn service_account(&self, namespace: &str, name: &str) -> Result<Object, TokenError> {
        if name.is_empty() {
            return Err(TokenError::invalid("resource name may not be empty"));
        }
        self.objects
            .get("serviceaccounts", namespace, name)
            .ok_or_else(|| TokenError::invalid(format!("serviceaccounts {name:?} not found")))
    }

    fn verify_bound(&self) -> Result<VerifiedToken, TokenError> {
        self.check_times()?;
        let none = Value::Null;
        let private = self.claims.get("kubernetes.io").unwrap_or(&none);
        let namespace = text(private, "namespace");
        let reference = private.get("serviceaccount").unwrap_or(&none);
        let (name, uid) = (text(reference, "name"), text(reference, "uid"));
        let account = self.service_account(namespace, name)?;
        if account.uid() != uid {
            let reason =
                format!("service account UID ({}) does not match claim ({uid})", account.uid());
            return Err(TokenError::invalid(reason));
        }
        if self.is_deleted(&account) {
            let reason = format!("service account {namespace}/{name} has been deleted");
            return Err(TokenError::invalid(reason));
        }
        let mut extra = BTreeMap::new();
        let id = text(self.claims, "jti");
        if !id.is_empty() {
            extra.insert(CREDENTIAL_ID.to_owned(), vec![format!("JTI={id}")]);
        }
        let pod = private.get("pod").filter(|pod| pod.is_object());
        let node = private.get("node").filter(|node| node.is_object());
        if let Some(secret) = private.get("secret").filter(|secret| secret.is_object()) {
            self.check_bound_object("secrets", namespace, secret)?;
        }
        if let Some(pod) = pod {
            self.check_bound_object("pods", namespace, pod)?;
        }
        // The Node of a Pod is not checked: pods outlive nodes for a while.
        if let (None, Some(node)) = (pod, node) {
            self.check_bound_object("nodes", "", node)?;
        }
        for (reference, keys) in [pod, node].into_iter().zip(BOUND_OBJECT_KEYS) {
            for (key, field) in keys.into_iter().zip(["name", "uid"]) {
                let value = reference.map(|reference| text(reference, field)).unwrap_or_default();
                if !value.is_empty() {
                    extra.insert(key.to_owned(), vec![value.to_owned()]);
                }
            }
        }
        Ok(VerifiedToken::new(identity(namespace, name, uid, extra)))
    }

    /// Checks that the object of a claim still exists with the same uid.
    fn check_bound_object(
        &self,
        resource: &str,
        namespace: &str,
        claim: &Value,
    ) -> Result<(), TokenError> {
        if mainstay_fault::is_on("tokens-outlive-their-pods") {
            return Ok(());
        }
        let (name, uid) = (text(claim, "name"), text(claim, "uid"));
        let Some(found) = self.objects.get(resource, namespace, name) else {
            return Err(TokenError::invalid(INVALIDATED));
        };
        if found.uid() != uid {
            let kind = resource.trim_end_matches('s');
            let reason = format!(
                "{kind} UID ({}) does not match service account {kind} ref claim ({uid})",
                found.uid()
            );
            return Err(TokenError::invalid(reason));
        }
        if self.is_deleted(&found) { Err(TokenError::invalid(INVALIDATED)) } else { Ok(()) }
    }

    /// Verifies a legacy token: it is valid as long as its Secret contains it.
    fn verify_legacy(&self) -> Result<VerifiedToken, TokenError> {
        let claim = |name: &str| text(self.claims, &format!("kubernetes.io/serviceaccount/{name}"));
        let namespace = claim("namespace");
        let (secret_name, name) = (claim("secret.name"), claim("service-account.name"));
        let uid = claim("service-account.uid");
        let subject = text(self.claims, "sub");
        for (value, claim_name) in [
            (subject, "sub"),
            (namespace, "namespace"),
            (secret_name, "secretName"),
            (name, "serviceAccountName"),
            (uid, "serviceAccountUID"),
        ] {
            if value.is_empty() {
                return Err(TokenError::invalid(format!("{claim_name} claim is missing")));
            }
        }
        if subject != user_name(namespace, name) {
            return Err(TokenError::invalid("sub claim is invalid"));
        }
        let secret = self
            .objects
            .get("secrets", namespace, secret_name)
            .filter(|secret| !secret.is_terminating())
            .ok_or_else(|| TokenError::invalid(LEGACY_INVALIDATED))?;
        let stored = secret.str(&["data", "token"]).and_then(|token| STANDARD.decode(token).ok());
        // The signature is valid already, so the time of this comparison reveals nothing.
        if stored.as_deref() != Some(self.token.as_bytes()) {
            return Err(TokenError::invalid("Token does not match server's copy"));
        }
        let account = self.service_account(namespace, name)?;
        if account.is_terminating() {
            let reason = format!("ServiceAccount {namespace}/{name} has been deleted");
            return Err(TokenError::invalid(reason));
        }
        if account.uid() != uid {
            let reason =
                format!("ServiceAccount UID ({}) does not match claim ({uid})", account.uid());
            return Err(TokenError::invalid(reason));
        }
        if secret.label(INVALID_SINCE).is_some_and(|since| !since.is_empty()) {
            return Err(TokenError::invalid(format!(
                "the token in secret {namespace}/{secret_name} for service account {namespace}/{name} has been marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the '{INVALID_SINCE}' label from the secret to temporarily allow use of this token"
            )));
        }
        let mut verified = VerifiedToken::new(identity(namespace, name, uid, BTreeMap::new()));
        let is_auto_generated = account
            .array(&["secrets"])
            .iter()
            .any(|reference| reference.get("name").and_then(Value::as_str) == Some(secret_name));
        if is_auto_generated {
            verified.warning = Some(AUTO_GENERATED);
        }
        let day = |seconds: i64| {
            let time = jiff::Timestamp::from_second(seconds).unwrap_or_default();
            time.to_string().get(..10).map(ToOwned::to_owned).unwrap_or_default()
        };
        let (today, tomorrow) = (day(self.now), day(self.now.saturating_add(86_400)));
        let last_used = secret.label(LAST_USED).unwrap_or_default();
        if last_used != today && last_used != tomorrow {
            verified.secret_use = Some(super::SecretTokenUse {
                namespace: namespace.to_owned(),
                secret: secret_name.to_owned(),
                uid: secret.uid().to_owned(),
                day: today,
            });
        }
        Ok(verified)
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The user name of a ServiceAccount.
pub(super) fn user_name(namespace: &str, name: &str) -> String {
    format!("system:serviceaccount:{namespace}:{name}")
}

fn identity(
    namespace: &str,
    name: &str,
    uid: &str,
    extra: BTreeMap<String, Vec<String>>,
) -> Identity {
    let groups = super::account_groups(namespace);
    Identity::with_details(user_name(namespace, name), uid, groups, extra)
}
