//! Authentication: client certificates, service account tokens, anonymous requests.
//!
//! Two proofs are accepted. A client certificate must be signed by the cluster's authority for this
//! use, and be valid now ([`ClientAuthority`]). A bearer token is a service account's: signed by one
//! of the cluster's token keys, not expired, for this audience, and its account (and the pod, secret
//! or node it is bound to) must still exist with the same uid, so that deleting an account ends its
//! tokens at once.
//!
//! Who shows no proof is `system:anonymous`; what strangers may read is a matter of permissions. A
//! proof that fails is never downgraded to "stranger": it is refused with 401, on every path. One good
//! proof is enough; a certificate goes first.
//!
//! Data flow: connection ─► certificate ┐
//!            request ─► bearer token   ┴► [`Authenticator::identify`] ─► [`Identity`] or 401 ─►
//!            `Impersonate-*` headers (`impersonation`) ─► the identity that permissions are asked for.
//!
//! What this does not do: decide what an identity may do; tokens of other issuers.

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

pub use certificate::{ClientAuthority, Shown};
pub use keys::KeyError;

use keys::TokenKeys;

/// Issuer of the cluster's tokens, and their audience unless another is asked for.
pub const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
/// Where an identity tells by which certificate or token it was proved.
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// A proof that proves nothing, without a reason.
const INVALID: &str = "invalid bearer token";

/// Issues and verifies service-account tokens, and says who asks.
#[derive(Clone, Debug)]
pub struct Authenticator {
    keys: Arc<TokenKeys>,
    clients: Option<Arc<ClientAuthority>>,
    clock: Clock,
}

/// A namespaced object that a token or claim refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound<'a> {
    /// `pod`, `secret` or `node`: the name of the claim.
    pub kind: &'a str,
    /// Name, in the account's namespace.
    pub name: &'a str,
    /// Uid; may be empty for the node of a pod.
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
    /// How long it lives, in seconds.
    pub seconds: i64,
    /// The object with which the token ends; the second is the node of a pod, for information.
    pub bound: [Option<Bound<'a>>; 2],
    /// After how many seconds its use is noted, where it lives longer than was asked for.
    pub warn_after: Option<i64>,
}

/// A new token.
#[derive(Clone, Debug)]
pub struct Issued {
    /// The token.
    pub token: String,
    /// When it was made, RFC 3339.
    pub made: String,
}

/// What a verified token proves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The account.
    pub identity: Identity,
    /// The audiences that were asked for and that the token has.
    pub audiences: Vec<String>,
    /// What its user is to be warned of.
    pub warning: Option<&'static str>,
    /// The Secret whose token this is, if its use today is still to be noted.
    pub used: Option<Used>,
}

impl Verified {
    fn new(identity: Identity) -> Self {
        Self { identity, audiences: Vec::new(), warning: None, used: None }
    }
}

/// The use of a token that lives in a Secret: it is noted once a day, as a label of the Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Used {
    /// Namespace of the Secret.
    pub namespace: String,
    /// Name of the Secret.
    pub secret: String,
    /// Uid of the Secret.
    pub uid: String,
    /// The day, such as `2026-01-31`, in UTC.
    pub day: String,
}

/// Why a token proves nothing. Whoever sends it only learns 401; whoever asks for a review reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is no token of this cluster's form and issuer.
    Foreign,
    /// It looks like one, and does not hold.
    Because(String),
}

impl Refused {
    fn because(why: impl Into<String>) -> Self {
        Self::Because(why.into())
    }
}

impl fmt::Display for Refused {
    /// The texts of kube-apiserver, as a token review shows them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => f.write_str(INVALID),
            Self::Because(why) => write!(f, "[{INVALID}, {why}]"),
        }
    }
}

/// What the headers and the certificate of a request prove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// Who asks.
    pub identity: Identity,
    /// What to warn the client of.
    pub warnings: Vec<&'static str>,
    /// The use of a Secret's token that is still to be noted.
    pub used: Option<Used>,
}

impl Authenticator {
    /// An authenticator whose tokens are signed by this key, in PKCS#8
    /// ([`crate::pki::Pki::token_key_pkcs8`]).
    pub fn new(token_key_pkcs8: &[u8], clock: Clock) -> Result<Self, KeyError> {
        Self::with_keys(token_key_pkcs8, [], clock)
    }

    /// As [`Authenticator::new`]; tokens that were signed by older keys are accepted too.
    pub fn with_keys<'a>(
        first: &[u8],
        older: impl IntoIterator<Item = &'a [u8]>,
        clock: Clock,
    ) -> Result<Self, KeyError> {
        Ok(Self { keys: Arc::new(TokenKeys::new(first, older)?), clients: None, clock })
    }

    /// Accepts client certificates of an authority. Without one, certificates prove nothing.
    #[must_use]
    pub fn with_clients(self, authority: ClientAuthority) -> Self {
        Self { clients: Some(Arc::new(authority)), ..self }
    }

    /// Who sends a request: the certificate's identity, else the bearer token's, else a stranger.
    /// 401 if a proof is shown and none holds.
    pub fn identify(
        &self,
        certificate: Option<&Shown>,
        headers: &HeaderMap,
        objects: &dyn Objects,
    ) -> Result<Proof, Status> {
        let proof = |identity| Proof { identity, warnings: Vec::new(), used: None };
        let mut failed = false;
        if let (Some(shown), Some(authority)) = (certificate, &self.clients) {
            match authority.judge(shown, self.clock) {
                Ok(Some(identity)) => return Ok(proof(identity)),
                Ok(None) => {}
                Err(reason) => {
                    tracing::debug!(%reason, "a client certificate was refused");
                    failed = true;
                }
            }
        }
        let mut warnings = Vec::new();
        let own = [ISSUER.to_owned()];
        for found in [Ok(headers::bearer(headers, &mut warnings)), headers::protocol(headers)] {
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
                        used: verified.used,
                    });
                }
                Err(reason) => {
                    tracing::debug!(%reason, "a token was refused");
                    failed = true;
                }
            }
        }
        if failed {
            return Err(Status::unauthorized());
        }
        Ok(Proof { warnings, ..proof(Identity::anonymous()) })
    }

    /// Signs a token.
    pub fn issue(&self, grant: &Grant<'_>) -> Issued {
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
        Issued { token: self.keys.sign(&claims), made: mainstay_clock::rfc3339(now) }
    }

    /// Signs a token that lives in a Secret and has no end of its own.
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

    /// Checks a token: form, issuer, signature, audience, times, and that account and bound object are
    /// still those it was issued for. No audiences asked for means this server's.
    pub fn verify(
        &self,
        token: &str,
        audiences: &[String],
        objects: &dyn Objects,
    ) -> Result<Verified, Refused> {
        let own = [ISSUER.to_owned()];
        let wanted = if audiences.is_empty() { &own } else { audiences };
        let claims = self.keys.verify(token, &[ISSUER, token::LEGACY_ISSUER])?;
        let now = self.clock.now().as_second();
        token::Signed { token, claims: &claims, now, objects }.judge(wanted)
    }
}

/// The groups of a service account, besides everyone's.
pub(crate) fn account_groups(namespace: &str) -> [String; 2] {
    let namespace =
        if mainstay_fault::is_on("accounts-have-no-group-of-their-own") { "" } else { namespace };
    ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]
}

/// Texts in brackets and quotes, as Go prints a list of them with `%q`.
struct Audience<'a>(&'a [String]);

impl fmt::Display for Audience<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(|one| mainstay_gocompat::quote(one)).collect();
        write!(f, "[{}]", all.join(" "))
    }
}

#[cfg(test)]
mod tests;
