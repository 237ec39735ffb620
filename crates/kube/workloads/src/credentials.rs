//! The signer of certificates and tokens, which the cluster implements because it holds the keys.

use mainstay_object::Object;

/// Why a `CertificateSigningRequest` gets no certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateSigningError {
    /// Another signer is responsible.
    NotOurs,
    /// The signer refuses the request; the text is the message of its `Failed` condition.
    Refused(String),
    /// Signing failed and is tried again.
    Broken(String),
}

/// Signs with the keys of the cluster.
pub trait Credentials: std::fmt::Debug + Send + Sync {
    /// The certificate (PEM) for an approved `CertificateSigningRequest`.
    fn certificate(&self, request: &Object) -> Result<String, CertificateSigningError>;

    /// The subresources of `certificatesigningrequests` for which the requester needs the
    /// permission to `create`, so that the request is approved automatically. Empty if a person
    /// must approve it.
    fn approvals(&self, request: &Object) -> Vec<&'static str>;

    /// The long-lived token of a ServiceAccount for a Secret of type
    /// `kubernetes.io/service-account-token`.
    fn token(&self, account: &Object, secret: &str) -> String;
}
