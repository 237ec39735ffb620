//! The keys of the cluster: what signs certificate requests and issues the tokens of Secrets.

use mainstay_auth::authn::Authenticator;
use mainstay_auth::pki::{self, IssueError, Pki, PkiError, Signer};
use mainstay_clock::Clock;
use mainstay_object::Object;
use std::sync::Arc;

/// Signs certificate requests with the cluster's CA, and tokens with its token key.
#[derive(Debug)]
pub struct ClusterCredentials {
    signer: Signer,
    authenticator: Arc<Authenticator>,
}

impl ClusterCredentials {
    /// The keys of a cluster's PKI.
    ///
    /// # Errors
    ///
    /// The certificate of the CA cannot be read.
    pub fn new(
        pki: &Pki,
        authenticator: Arc<Authenticator>,
        clock: Clock,
    ) -> Result<Self, PkiError> {
        Ok(Self { signer: pki.signer(clock)?, authenticator })
    }

    /// The certificate (PEM) for an approved `CertificateSigningRequest`.
    pub(crate) fn certificate(&self, request: &Object) -> Result<String, IssueError> {
        self.signer.issue(request)
    }

    /// The subresources of `certificatesigningrequests` for which the requester needs the
    /// permission to `create`, so that the request is approved automatically. Empty if a person
    /// must approve it.
    pub(crate) fn approvals(request: &Object) -> Vec<&'static str> {
        pki::auto_approval_subresources(request)
    }

    /// The long-lived token of a ServiceAccount for a Secret of type
    /// `kubernetes.io/service-account-token`.
    pub(crate) fn token(&self, account: &Object, secret: &str) -> String {
        let (namespace, name) = (account.namespace(), account.name());
        self.authenticator.issue_for_secret(namespace, name, account.uid(), secret)
    }
}
