//! What only the keeper of the cluster's keys can do for controllers.

use mainstay_object::Object;

/// Why a request for a certificate gets none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsigned {
    /// Somebody else is to sign it.
    NotOurs,
    /// Its signer does not give that: the text is for its `Failed` condition.
    Refused(String),
    /// Something went wrong; it is tried again.
    Broken(String),
}

/// The keeper of the cluster's keys.
pub trait Credentials: std::fmt::Debug + Send + Sync {
    /// The certificate (PEM) for an approved `CertificateSigningRequest`.
    fn certificate(&self, request: &Object) -> Result<String, Unsigned>;

    /// For which subresources of `certificatesigningrequests` its sender must have permission to
    /// `create` so that it is approved without people; empty if people must look at it.
    fn approvals(&self, request: &Object) -> Vec<&'static str>;

    /// The token that lives in a Secret and stands for an account.
    fn token(&self, account: &Object, secret: &str) -> String;
}
