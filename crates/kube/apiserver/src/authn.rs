//! Who asks: client certificates and tokens.
//!
//! Two proofs are accepted. A client certificate that the cluster's authority signed is checked by
//! TLS itself; here it is only read ([`certificate_identity`], once for each connection). A bearer
//! token is a service account's: signed by the cluster's token key, not expired, for this
//! audience, and its account (and the pod it is bound to) must still exist with the same uid, so
//! that deleting an account ends its tokens at once.
//!
//! A stranger may ask whether the server is alive and which version it has, nothing else. A proof
//! that fails is never downgraded to "stranger": it is refused, also on those paths.
//!
//! Data flow: connection ─► certificate ┐
//!            request ─► bearer token   ┴► [`Authenticator::identify`] ─► [`Identity`] or 401.
//!
//! What this does not do: decide what an identity may do, impersonation, tokens in Secrets, other
//! issuers.

mod requests;
mod token;

use crate::Identity;
use crate::strategy::Objects;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use mainstay_clock::Clock;
use mainstay_object::{Status, fnv};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use x509_parser::prelude::{FromDer as _, X509Certificate};

pub use token::{KeyError, Refused, TokenKey};

/// Issuer of the cluster's tokens, and their audience unless another is asked for.
pub const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
/// Where an identity tells by which certificate or token it was proved.
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";
const POD_NAME: &str = "authentication.kubernetes.io/pod-name";
const POD_UID: &str = "authentication.kubernetes.io/pod-uid";

/// A clock that was set back a little while the server was down must not lock accounts out.
const SKEW_SECONDS: i64 = 60;

/// Issues and verifies service-account tokens, and says who asks.
#[derive(Clone, Debug)]
pub struct Authenticator {
    key: Arc<TokenKey>,
    clock: Clock,
}

/// A namespaced object that a token or claim refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound<'a> {
    /// `pod` or `secret`: the name of the claim.
    pub kind: &'a str,
    /// Name, in the account's namespace.
    pub name: &'a str,
    /// Uid.
    pub uid: &'a str,
}

/// What a new token says.
#[derive(Clone, Copy, Debug)]
pub struct Grant<'a> {
    /// Namespace of the account.
    pub namespace: &'a str,
    /// Name of the account.
    pub account: &'a str,
    /// Uid of the account.
    pub uid: &'a str,
    /// Whom the token is for; empty means this server.
    pub audiences: &'a [String],
    /// How long it lives.
    pub seconds: i64,
    /// The object with which the token ends.
    pub bound: Option<Bound<'a>>,
}

/// A new token.
#[derive(Clone, Debug)]
pub struct Issued {
    /// The token.
    pub token: String,
    /// When it ends, RFC 3339.
    pub expires: String,
}

/// What a verified token proves.
#[derive(Clone, Debug)]
pub struct Verified {
    /// The account.
    pub identity: Identity,
    /// The audiences that were asked for and that the token has.
    pub audiences: Vec<String>,
}

impl Authenticator {
    /// An authenticator whose tokens are signed by this key, PKCS#8 of an ECDSA P-256 key
    /// ([`crate::pki::Pki::token_key_pkcs8`]).
    pub fn new(token_key_pkcs8: &[u8], clock: Clock) -> Result<Self, KeyError> {
        Ok(Self { key: Arc::new(TokenKey::from_pkcs8(token_key_pkcs8)?), clock })
    }

    /// Who sends a request: the certificate's identity, else the bearer token's. `Ok(None)` is a
    /// stranger on a path that strangers may read; everybody else gets 401.
    pub fn identify(
        &self,
        certificate: Option<&Identity>,
        path: &str,
        headers: &HeaderMap,
        objects: &dyn Objects,
    ) -> Result<Option<Identity>, Status> {
        if let Some(identity) = certificate {
            return Ok(Some(identity.clone()));
        }
        if let Some(header) = headers.get(AUTHORIZATION) {
            let token = header.to_str().ok().and_then(bearer).ok_or_else(Status::unauthorized)?;
            return match self.verify(token, &[], objects) {
                Ok(verified) => Ok(Some(verified.identity)),
                Err(reason) => {
                    tracing::debug!(%reason, path, "a token was refused");
                    Err(Status::unauthorized())
                }
            };
        }
        if is_public(path) { Ok(None) } else { Err(Status::unauthorized()) }
    }

    /// Signs a token.
    pub fn issue(&self, grant: &Grant<'_>) -> Issued {
        let now = self.clock.now();
        let expires = now + jiff::SignedDuration::from_secs(grant.seconds);
        let own = [ISSUER.to_owned()];
        let audiences = if grant.audiences.is_empty() { &own } else { grant.audiences };
        let mut private = json!({
            "namespace": grant.namespace,
            "serviceaccount": {"name": grant.account, "uid": grant.uid},
        });
        if let Some(bound) = grant.bound {
            private[bound.kind] = json!({"name": bound.name, "uid": bound.uid});
        }
        let claims = json!({
            "iss": ISSUER,
            "sub": format!("system:serviceaccount:{}:{}", grant.namespace, grant.account),
            "aud": audiences,
            "exp": expires.as_second(),
            "iat": now.as_second(),
            "nbf": now.as_second(),
            "jti": fnv::random_uid(),
            "kubernetes.io": private,
        });
        Issued { token: self.key.sign(&claims), expires: mainstay_clock::rfc3339(expires) }
    }

    /// Checks a token: signature, issuer, times, audience, and that account and bound object are
    /// still those it was issued for. No audiences asked for means this server's.
    pub fn verify(
        &self,
        token: &str,
        audiences: &[String],
        objects: &dyn Objects,
    ) -> Result<Verified, Refused> {
        let claims = self.key.verify(token)?;
        if claims.get("iss").and_then(Value::as_str) != Some(ISSUER) {
            return Err(Refused::Issuer);
        }
        let now = self.clock.now().as_second();
        let time = |claim: &str| claims.get(claim).and_then(Value::as_i64);
        if time("exp").ok_or(Refused::Claims)? <= now {
            return Err(Refused::Expired);
        }
        if ["nbf", "iat"].into_iter().filter_map(time).any(|since| since > now + SKEW_SECONDS) {
            return Err(Refused::NotYetValid);
        }
        let own = [ISSUER.to_owned()];
        let wanted = if audiences.is_empty() { &own } else { audiences };
        let has = |audience: &String| match claims.get("aud") {
            Some(Value::String(one)) => one == audience,
            Some(Value::Array(all)) => all.iter().any(|one| one == audience.as_str()),
            _ => false,
        };
        let audiences: Vec<String> = wanted.iter().filter(|one| has(one)).cloned().collect();
        if audiences.is_empty() {
            return Err(Refused::Audience);
        }
        let identity = account(&claims, objects)?;
        Ok(Verified { identity, audiences })
    }
}

/// The identity of a token whose signature and times are good.
fn account(claims: &Value, objects: &dyn Objects) -> Result<Identity, Refused> {
    let private = claims.get("kubernetes.io").ok_or(Refused::Claims)?;
    let text = |value: &Value, field: &str| {
        let text = value.get(field).and_then(Value::as_str).unwrap_or_default();
        if text.is_empty() { Err(Refused::Claims) } else { Ok(text.to_owned()) }
    };
    let namespace = text(private, "namespace")?;
    let reference = private.get("serviceaccount").ok_or(Refused::Claims)?;
    let (name, uid) = (text(reference, "name")?, text(reference, "uid")?);
    let user = format!("system:serviceaccount:{namespace}:{name}");
    if claims.get("sub").and_then(Value::as_str) != Some(user.as_str()) {
        return Err(Refused::Claims);
    }
    let exists = |resource: &str, name: &str, uid: &str| {
        objects.get(resource, &namespace, name).is_some_and(|found| found.uid() == uid)
    };
    if !exists("serviceaccounts", &name, &uid) {
        return Err(Refused::Gone);
    }
    let mut extra = BTreeMap::new();
    if let Some(id) = claims.get("jti").and_then(Value::as_str) {
        extra.insert(CREDENTIAL_ID.to_owned(), vec![format!("JTI={id}")]);
    }
    for (claim, resource) in [("pod", "pods"), ("secret", "secrets")] {
        let Some(reference) = private.get(claim) else { continue };
        let (name, uid) = (text(reference, "name")?, text(reference, "uid")?);
        if !exists(resource, &name, &uid) {
            return Err(Refused::Gone);
        }
        if claim == "pod" {
            extra.insert(POD_NAME.to_owned(), vec![name]);
            extra.insert(POD_UID.to_owned(), vec![uid]);
        }
    }
    let groups =
        ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
    Ok(Identity::with_details(user, uid, groups, extra))
}

/// The identity that a client certificate names: common name is the user, organizations are the
/// groups. None without a common name. The certificate must have been verified before.
pub fn certificate_identity(der: &[u8]) -> Option<Identity> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let subject = certificate.subject();
    let user = subject.iter_common_name().next()?.as_str().ok()?;
    if user.is_empty() {
        return None;
    }
    let groups: Vec<String> = subject
        .iter_organization()
        .filter_map(|name| name.as_str().ok())
        .map(ToOwned::to_owned)
        .collect();
    let mut id = "X509SHA256=".to_owned();
    for byte in Sha256::digest(der) {
        // Writing to a string does not fail.
        let _ = write!(id, "{byte:02x}");
    }
    let extra = BTreeMap::from([(CREDENTIAL_ID.to_owned(), vec![id])]);
    Some(Identity::with_details(user, "", groups, extra))
}

/// What strangers may read.
fn is_public(path: &str) -> bool {
    matches!(path, "/healthz" | "/livez" | "/readyz" | "/version" | "/version/")
}

/// The token of an `Authorization` header; the scheme's case does not matter.
fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests;
