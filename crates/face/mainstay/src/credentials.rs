//! Signing keys of the embedded cluster, for its controllers.

use mainstay_auth::authn::Authenticator;
use mainstay_auth::pki::{self, Pki, PkiError, Signer};
use mainstay_clock::Clock;
use mainstay_object::Object;
use mainstay_workloads::{CertificateSigningError, Credentials};
use std::sync::Arc;

/// Signs certificate requests with the cluster's CA, and tokens with its token key.
#[derive(Debug)]
pub(crate) struct ClusterCredentials {
    signer: Signer,
    authenticator: Arc<Authenticator>,
}

impl ClusterCredentials {
    /// The signing keys of a cluster's PKI.
    pub(crate) fn new(
        pki: &Pki,
        authenticator: Arc<Authenticator>,
        clock: Clock,
    ) -> Result<Self, PkiError> {
        Ok(Self { signer: pki.signer(clock)?, authenticator })
    }
}

impl Credentials for ClusterCredentials {
    fn certificate(&self, request: &Object) -> Result<String, CertificateSigningError> {
        self.signer.issue(request).map_err(|error| match error {
            pki::IssueError::OtherSigner => CertificateSigningError::NotOurs,
            pki::IssueError::Rejected(why) => CertificateSigningError::Refused(why),
            pki::IssueError::Sign(error) => CertificateSigningError::Broken(error.to_string()),
        })
    }

    fn approvals(&self, request: &Object) -> Vec<&'static str> {
        pki::auto_approval_subresources(request)
    }

    fn token(&self, account: &Object, secret: &str) -> String {
        let (namespace, name) = (account.namespace(), account.name());
        self.authenticator.issue_for_secret(namespace, name, account.uid(), secret)
    }
}
