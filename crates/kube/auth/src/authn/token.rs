//! What the claims of a token must say, and who it stands for.
//!
//! The rules and texts are those of kube-apiserver: a token of an account (issuer and audience of this
//! server, times with a minute's leeway, the account and the object it is bound to still there with the
//! same uid), and the older kind that lives in a Secret and never ends.

use super::{Audience, CREDENTIAL_ID, ISSUER, Identity, Refused, Verified};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_object::Object;
use mainstay_object::Objects;
use serde_json::Value;
use std::collections::BTreeMap;

/// Issuer of tokens that live in Secrets.
pub(super) const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";
/// The label that says on which day the token of a Secret was used last.
const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";
const AUTO_GENERATED: &str = "Use tokens from the TokenRequest API or manually created secret-based tokens instead of auto-generated secret-based tokens.";
/// Where an identity tells to which pod and node its token is bound.
const FACTS: [[&str; 2]; 2] = [
    ["authentication.kubernetes.io/pod-name", "authentication.kubernetes.io/pod-uid"],
    ["authentication.kubernetes.io/node-name", "authentication.kubernetes.io/node-uid"],
];
const GONE: &str = "service account token has been invalidated";
const LEGACY_GONE: &str = "Token has been invalidated";

/// Clocks may differ by this much, and what is deleted counts for so long (of go-jose).
const LEEWAY_SECONDS: i64 = 60;

/// A token whose signature is good.
pub(super) struct Signed<'a> {
    pub(super) token: &'a str,
    pub(super) claims: &'a Value,
    /// Seconds since the epoch.
    pub(super) now: i64,
    pub(super) objects: &'a dyn Objects,
}

impl Signed<'_> {
    /// Whom it stands for, if it holds for one of the audiences.
    pub(super) fn judge(&self, wanted: &[String]) -> Result<Verified, Refused> {
        let audiences = self.audiences(wanted)?;
        let issuer = self.claims.get("iss").and_then(Value::as_str);
        let mut verified =
            if issuer == Some(LEGACY_ISSUER) { self.legacy()? } else { self.bound()? };
        verified.audiences = audiences;
        Ok(verified)
    }

    /// The audiences of the token that are wanted. A token without any is for this server.
    fn audiences(&self, wanted: &[String]) -> Result<Vec<String>, Refused> {
        let own = || vec![ISSUER.to_owned()];
        let present: Vec<String> = match self.claims.get("aud") {
            None | Some(Value::Null) => own(),
            Some(Value::String(one)) => vec![one.clone()],
            Some(Value::Array(all)) if all.is_empty() => own(),
            Some(Value::Array(all)) => {
                all.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
            }
            Some(_) => {
                let why =
                    "go-jose/go-jose/jwt: expected string or array value to unmarshal to Audience";
                return Err(Refused::because(why));
            }
        };
        let common: Vec<String> = present
            .iter()
            .filter(|one| wanted.contains(one) || mainstay_fault::is_on("tokens-are-for-everybody"))
            .cloned()
            .collect();
        if common.is_empty() {
            let why = format!(
                "token audiences {} is invalid for the target audiences {}",
                Audience(&present),
                Audience(wanted)
            );
            return Err(Refused::because(why));
        }
        Ok(common)
    }

    /// A moment that the token names; none if it does not.
    fn time(&self, claim: &str) -> Result<Option<i64>, Refused> {
        match self.claims.get(claim) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Number(number)) => {
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "a cast to an integer saturates"
                )]
                let whole = || number.as_f64().map(|seconds| seconds as i64);
                Ok(number.as_i64().or_else(whole))
            }
            Some(_) => {
                let why = "go-jose/go-jose/jwt: expected number value to unmarshal NumericDate";
                Err(Refused::because(why))
            }
        }
    }

    fn times(&self) -> Result<(), Refused> {
        let [ends, begins, made] = [self.time("exp")?, self.time("nbf")?, self.time("iat")?];
        let later = |since: Option<i64>| {
            since.is_some_and(|since| since > self.now.saturating_add(LEEWAY_SECONDS))
        };
        let why = if later(begins) {
            "service account token is not valid yet"
        } else if ends.is_some_and(|ends| ends < self.now.saturating_sub(LEEWAY_SECONDS)) {
            "service account token has expired"
        } else if later(made) {
            "service account token is issued in the future"
        } else {
            return Ok(());
        };
        Err(Refused::because(why))
    }

    /// Whether an object has been on its way out for longer than clocks may differ.
    fn deleted(&self, object: &Object) -> bool {
        object
            .str(&["metadata", "deletionTimestamp"])
            .and_then(|time| time.parse::<jiff::Timestamp>().ok())
            .is_some_and(|time| time.as_second() < self.now.saturating_sub(LEEWAY_SECONDS))
    }

    fn account(&self, namespace: &str, name: &str) -> Result<Object, Refused> {
        if name.is_empty() {
            return Err(Refused::because("resource name may not be empty"));
        }
        self.objects
            .get("serviceaccounts", namespace, name)
            .ok_or_else(|| Refused::because(format!("serviceaccounts {name:?} not found")))
    }

    fn bound(&self) -> Result<Verified, Refused> {
        self.times()?;
        let none = Value::Null;
        let private = self.claims.get("kubernetes.io").unwrap_or(&none);
        let namespace = text(private, "namespace");
        let reference = private.get("serviceaccount").unwrap_or(&none);
        let (name, uid) = (text(reference, "name"), text(reference, "uid"));
        let account = self.account(namespace, name)?;
        if account.uid() != uid {
            let why =
                format!("service account UID ({}) does not match claim ({uid})", account.uid());
            return Err(Refused::because(why));
        }
        if self.deleted(&account) {
            let why = format!("service account {namespace}/{name} has been deleted");
            return Err(Refused::because(why));
        }
        let mut extra = BTreeMap::new();
        let id = text(self.claims, "jti");
        if !id.is_empty() {
            extra.insert(CREDENTIAL_ID.to_owned(), vec![format!("JTI={id}")]);
        }
        let pod = private.get("pod").filter(|pod| pod.is_object());
        let node = private.get("node").filter(|node| node.is_object());
        if let Some(secret) = private.get("secret").filter(|secret| secret.is_object()) {
            self.still_there("secrets", namespace, secret)?;
        }
        if let Some(pod) = pod {
            self.still_there("pods", namespace, pod)?;
        }
        // The node of a pod is told, not checked: pods outlive nodes for a while.
        if let (None, Some(node)) = (pod, node) {
            self.still_there("nodes", "", node)?;
        }
        for (reference, keys) in [pod, node].into_iter().zip(FACTS) {
            for (key, field) in keys.into_iter().zip(["name", "uid"]) {
                let fact = reference.map(|reference| text(reference, field)).unwrap_or_default();
                if !fact.is_empty() {
                    extra.insert(key.to_owned(), vec![fact.to_owned()]);
                }
            }
        }
        Ok(Verified::new(identity(namespace, name, uid, extra)))
    }

    /// Whether the object that a token is bound to is the one that it was.
    fn still_there(&self, resource: &str, namespace: &str, claim: &Value) -> Result<(), Refused> {
        if mainstay_fault::is_on("tokens-outlive-their-pods") {
            return Ok(());
        }
        let (name, uid) = (text(claim, "name"), text(claim, "uid"));
        let Some(found) = self.objects.get(resource, namespace, name) else {
            return Err(Refused::because(GONE));
        };
        if found.uid() != uid {
            let kind = resource.trim_end_matches('s');
            let why = format!(
                "{kind} UID ({}) does not match service account {kind} ref claim ({uid})",
                found.uid()
            );
            return Err(Refused::because(why));
        }
        if self.deleted(&found) { Err(Refused::because(GONE)) } else { Ok(()) }
    }

    /// The token of a Secret: it holds as long as the Secret has it.
    fn legacy(&self) -> Result<Verified, Refused> {
        let claim = |name: &str| text(self.claims, &format!("kubernetes.io/serviceaccount/{name}"));
        let namespace = claim("namespace");
        let (secret_name, name) = (claim("secret.name"), claim("service-account.name"));
        let uid = claim("service-account.uid");
        let subject = text(self.claims, "sub");
        for (value, what) in [
            (subject, "sub"),
            (namespace, "namespace"),
            (secret_name, "secretName"),
            (name, "serviceAccountName"),
            (uid, "serviceAccountUID"),
        ] {
            if value.is_empty() {
                return Err(Refused::because(format!("{what} claim is missing")));
            }
        }
        if subject != user_name(namespace, name) {
            return Err(Refused::because("sub claim is invalid"));
        }
        let secret = self
            .objects
            .get("secrets", namespace, secret_name)
            .filter(|secret| !secret.is_terminating())
            .ok_or_else(|| Refused::because(LEGACY_GONE))?;
        let kept = secret.str(&["data", "token"]).and_then(|kept| STANDARD.decode(kept).ok());
        // Its signature is good: there is nothing left to be guessed by the time this takes.
        if kept.as_deref() != Some(self.token.as_bytes()) {
            return Err(Refused::because("Token does not match server's copy"));
        }
        let account = self.account(namespace, name)?;
        if account.is_terminating() {
            let why = format!("ServiceAccount {namespace}/{name} has been deleted");
            return Err(Refused::because(why));
        }
        if account.uid() != uid {
            let why =
                format!("ServiceAccount UID ({}) does not match claim ({uid})", account.uid());
            return Err(Refused::because(why));
        }
        if secret.label(INVALID_SINCE).is_some_and(|since| !since.is_empty()) {
            return Err(Refused::because(format!(
                "the token in secret {namespace}/{secret_name} for service account {namespace}/{name} has been marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the '{INVALID_SINCE}' label from the secret to temporarily allow use of this token"
            )));
        }
        let mut verified = Verified::new(identity(namespace, name, uid, BTreeMap::new()));
        let made = account
            .array(&["secrets"])
            .iter()
            .any(|one| one.get("name").and_then(Value::as_str) == Some(secret_name));
        if made {
            verified.warning = Some(AUTO_GENERATED);
        }
        let day = |at: i64| {
            let time = jiff::Timestamp::from_second(at).unwrap_or_default();
            time.to_string().get(..10).map(ToOwned::to_owned).unwrap_or_default()
        };
        let (today, tomorrow) = (day(self.now), day(self.now.saturating_add(86_400)));
        let marked = secret.label(LAST_USED).unwrap_or_default();
        if marked != today && marked != tomorrow {
            verified.used = Some(super::Used {
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

/// The user name of an account.
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
