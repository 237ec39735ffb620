//! Authentication: client certificates, service account tokens, anonymous requests.
//!
//! Two credentials are accepted. A client certificate must be signed by the cluster's CA for this
//! use, and be valid now ([`ClientAuthority`]). A bearer token must belong to a ServiceAccount:
//! signed by one of the cluster's token keys, not expired, for this audience. The ServiceAccount
//! (and the Pod, Secret or Node that the token is bound to) must still exist with the same uid. So
//! the deletion of a ServiceAccount invalidates its tokens at once.
//!
//! A request without a credential is `system:anonymous`; RBAC decides what it may read. A request
//! with an invalid credential never becomes anonymous: it gets 401, on every path. One valid
//! credential is enough; the certificate is checked first.
//!
//! ```text
//! connection ─► certificate ┐
//! request ─► bearer token   ┴► Authenticator::identify ─► Identity or 401
//!            Impersonate-* headers (impersonation) ─► the identity that is authorized
//! ```
//!
//! This module does not authorize, and accepts no tokens of other issuers.

mod certificate;
mod headers;
pub mod impersonation;
mod keys;
pub mod openid;
mod requests;
mod token;

use crate::Identity;
use http::HeaderMap;
use mainstay_clock::Clock;
use mainstay_object::Objects;
use mainstay_object::{Status, fnv};
use serde_json::json;
use std::fmt;
use std::sync::Arc;

pub use certificate::{ClientAuthority, ClientCertificate};
pub use keys::TokenKeyError;

use keys::TokenKeys;

/// The issuer of the cluster's tokens, and their default audience.
pub const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
/// The extra field of an identity that names its certificate or token.
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// kube-apiserver's text for an invalid token without a reason.
const INVALID_TOKEN: &str = "invalid bearer token";

/// Issues and verifies ServiceAccount tokens, and identifies the sender of a request.
#[derive(Clone, Debug)]
pub struct Authenticator {
    keys: Arc<TokenKeys>,
    clients: Option<Arc<ClientAuthority>>,
    clock: Clock,
}

/// An object that a token is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundObject<'a> {
    /// `pod`, `secret` or `node`: the name of the claim.
    pub kind: &'a str,
    /// Name, in the namespace of the ServiceAccount.
    pub name: &'a str,
    /// Uid; may be empty for the node of a pod.
    pub uid: &'a str,
}

/// The claims of a new token.
#[derive(Clone, Copy, Debug)]
pub struct TokenClaims<'a> {
    /// Namespace of the ServiceAccount.
    pub namespace: &'a str,
    /// Name of the ServiceAccount.
    pub account: &'a str,
    /// Uid of the ServiceAccount.
    pub uid: &'a str,
    /// Audiences; empty means this server.
    pub audiences: &'a [String],
    /// Lifetime in seconds.
    pub seconds: i64,
    /// The object that the token is bound to; the second is the Node of a Pod, for information.
    pub bound: [Option<BoundObject<'a>>; 2],
    /// After how many seconds a use of the token is recorded, if it lives longer than requested.
    pub warn_after: Option<i64>,
}

/// A new token.
#[derive(Clone, Debug)]
pub struct IssuedToken {
    /// The token.
    pub token: String,
    /// When it was issued, RFC 3339.
    pub issued_at: String,
}

/// The result of verifying a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedToken {
    /// The ServiceAccount.
    pub identity: Identity,
    /// The requested audiences that the token has.
    pub audiences: Vec<String>,
    /// A warning for the user of the token.
    pub warning: Option<&'static str>,
    /// The Secret of a legacy token whose use today is not recorded yet.
    pub secret_use: Option<SecretTokenUse>,
}

impl VerifiedToken {
    fn new(identity: Identity) -> Self {
        Self { identity, audiences: Vec::new(), warning: None, secret_use: None }
    }
}

/// The use of a token in a Secret: a label of the Secret records it once a day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretTokenUse {
    /// Namespace of the Secret.
    pub namespace: String,
    /// Name of the Secret.
    pub secret: String,
    /// Uid of the Secret.
    pub uid: String,
    /// The day, such as `2026-01-31`, in UTC.
    pub day: String,
}

/// Why a token is invalid. The sender of a request only learns 401; a `TokenReview` has the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenError {
    /// The token has another form or another issuer than those of this cluster.
    Foreign,
    /// The token of this cluster is invalid for this reason.
    Invalid(String),
}

impl TokenError {
    fn invalid(reason: impl Into<String>) -> Self {
        Self::Invalid(reason.into())
    }
}

impl fmt::Display for TokenError {
    /// The texts of kube-apiserver, as in a `TokenReview`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => f.write_str(INVALID_TOKEN),
            Self::Invalid(reason) => write!(f, "[{INVALID_TOKEN}, {reason}]"),
        }
    }
}

/// The result of authenticating a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The identity of the sender.
    pub identity: Identity,
    /// Warnings for the client.
    pub warnings: Vec<&'static str>,
    /// The use of a legacy token that is not recorded yet.
    pub secret_use: Option<SecretTokenUse>,
}

impl Authenticator {
    /// An authenticator whose tokens are signed by this PKCS#8 key
    /// ([`crate::pki::Pki::token_key_pkcs8`]).
    pub fn new(token_key_pkcs8: &[u8], clock: Clock) -> Result<Self, TokenKeyError> {
        Self::with_keys(token_key_pkcs8, [], clock)
    }

    /// As [`Authenticator::new`]; tokens of older keys are accepted too.
    pub fn with_keys<'a>(
        first: &[u8],
        older: impl IntoIterator<Item = &'a [u8]>,
        clock: Clock,
    ) -> Result<Self, TokenKeyError> {
        Ok(Self { keys: Arc::new(TokenKeys::new(first, older)?), clients: None, clock })
    }

    /// Accepts client certificates of a CA. Without one, certificates are ignored.
    #[must_use]
    pub fn with_clients(self, authority: ClientAuthority) -> Self {
        Self { clients: Some(Arc::new(authority)), ..self }
    }

    /// The sender of a request: the identity of its certificate, else of its bearer token, else the
    /// anonymous user. Status 401 if all credentials of the request are invalid.
    pub fn identify(
        &self,
        certificate: Option<&ClientCertificate>,
        headers: &HeaderMap,
        objects: &dyn Objects,
    ) -> Result<Proof, Status> {
        let proof = |identity| Proof { identity, warnings: Vec::new(), secret_use: None };
        let mut failed = false;
        if let (Some(certificate), Some(authority)) = (certificate, &self.clients) {
            match authority.verify(certificate, self.clock) {
                Ok(Some(identity)) => return Ok(proof(identity)),
                Ok(None) => {}
                Err(reason) => {
                    tracing::debug!(%reason, "client certificate is invalid");
                    failed = true;
                }
            }
        }
        let mut warnings = Vec::new();
        let own = [ISSUER.to_owned()];
        for found in
            [Ok(headers::bearer_token(headers, &mut warnings)), headers::websocket_token(headers)]
        {
            let verified = match found {
                Ok(None) => continue,
                Ok(Some(token)) => self.verify(&token, &own, objects).map_err(|e| e.to_string()),
                Err(reason) => Err(reason.to_owned()),
            };
            match verified {
                Ok(verified) => {
                    warnings.extend(verified.warning);
                    return Ok(Proof {
                        identity: verified.identity,
                        warnings,
                        secret_use: verified.secret_use,
                    });
                }
                Err(reason) => {
                    tracing::debug!(%reason, "bearer token is invalid");
                    failed = true;
                }
            }
        }
        if failed {
            return Err(Status::unauthorized());
        }
        Ok(Proof { warnings, ..proof(Identity::anonymous()) })
    }

    /// Signs a new token.
    pub fn issue(&self, grant: &TokenClaims<'_>) -> IssuedToken {
        let now = self.clock.now();
        let own = [ISSUER.to_owned()];
        let audiences = if grant.audiences.is_empty() { &own } else { grant.audiences };
        let mut private = json!({
            "namespace": grant.namespace,
            "serviceaccount": {"name": grant.account, "uid": grant.uid},
        });
        for bound in grant.bound.into_iter().flatten() {
            private[bound.kind] = json!({"name": bound.name});
            if !bound.uid.is_empty() {
                private[bound.kind]["uid"] = bound.uid.into();
            }
        }
        let second = now.as_second();
        if let Some(seconds) = grant.warn_after {
            private["warnafter"] = second.saturating_add(seconds).into();
        }
        let claims = json!({
            "iss": ISSUER,
            "sub": token::user_name(grant.namespace, grant.account),
            "aud": audiences,
            "exp": second.saturating_add(grant.seconds),
            "iat": second,
            "nbf": second,
            "jti": fnv::random_uid(),
            "kubernetes.io": private,
        });
        IssuedToken { token: self.keys.sign(&claims), issued_at: mainstay_clock::rfc3339(now) }
    }

    /// Signs a legacy token for a Secret, which never expires.
    pub fn issue_for_secret(
        &self,
        namespace: &str,
        account: &str,
        uid: &str,
        secret: &str,
    ) -> String {
        self.keys.sign(&json!({
            "iss": token::LEGACY_ISSUER,
            "kubernetes.io/serviceaccount/namespace": namespace,
            "kubernetes.io/serviceaccount/secret.name": secret,
            "kubernetes.io/serviceaccount/service-account.name": account,
            "kubernetes.io/serviceaccount/service-account.uid": uid,
            "sub": token::user_name(namespace, account),
        }))
    }

    /// Verifies a token: form, issuer, signature, audience and times. The ServiceAccount and the
    /// bound object must be those that the token was issued for. No audiences means the audience of
    /// this server.
    pub fn verify(
        &self,
        token: &str,
        audiences: &[String],
        objects: &dyn Objects,
    ) -> Result<VerifiedToken, TokenError> {
        let own = [ISSUER.to_owned()];
        let wanted = if audiences.is_empty() { &own } else { audiences };
        let claims = self.keys.verify(token, &[ISSUER, token::LEGACY_ISSUER])?;
        let now = self.clock.now().as_second();
        token::SignedToken { token, claims: &claims, now, objects }.verify(wanted)
    }
}

/// The groups that each ServiceAccount of a namespace has.
pub(crate) fn account_groups(namespace: &str) -> [String; 2] {
    let namespace =
        if mainstay_fault::is_on("accounts-have-no-group-of-their-own") { "" } else { namespace };
    ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]
}

/// A list of audiences as Go prints it with `%q`.
struct AudienceList<'a>(&'a [String]);

impl fmt::Display for AudienceList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> =
            self.0.iter().map(|audience| mainstay_gocompat::quote(audience)).collect();
        write!(f, "[{}]", all.join(" "))
    }
}

#[cfg(test)]
mod tests;
