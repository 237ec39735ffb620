//! `CertificateSigningRequests`: permissions to approve and sign for a signer, and forbidden subjects.

use super::{ADMITTED, AdmissionAttributes, AdmissionDecision, Operation, Plugin};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_auth::authz;
use mainstay_auth::pki::CLIENT;
use mainstay_auth::pki::request::SigningRequest;
use mainstay_object::Object;
use serde_json::Value;

const SIGNING_REQUESTS: &str = "certificates.k8s.io/certificatesigningrequests";
const GROUP: &str = "certificates.k8s.io";

fn is_operation(
    attributes: &AdmissionAttributes<'_>,
    operation: Operation,
    subresource: &str,
) -> bool {
    attributes.operation == operation
        && attributes.subresource == subresource
        && &*attributes.row.storage == SIGNING_REQUESTS
}

fn signer(object: &Object) -> &str {
    object.str(&["spec", "signerName"]).unwrap_or_default()
}

/// Whether the user has a verb on a signer, or on all signers of its domain (`example.com/*`).
fn is_allowed_for_signer(attributes: &AdmissionAttributes<'_>, verb: &str, signer: &str) -> bool {
    let permission = authz::Attributes::resource(attributes.identity, verb, GROUP, "signers");
    let domain = signer.split('/').next().unwrap_or_default();
    let all = format!("{domain}/*");
    [signer, &all].into_iter().any(|name| {
        attributes.admission.authorizer.decide(&permission.with_name(name)).is_allowed()
    })
}

/// An approval needs the verb `approve` on the signer.
pub(super) struct CertificateApproval;

impl Plugin for CertificateApproval {
    fn handles(&self, attributes: &AdmissionAttributes<'_>) -> bool {
        is_operation(attributes, Operation::Update, "approval")
    }

    fn validate<'a>(&'a self, attributes: &'a AdmissionAttributes<'_>) -> AdmissionDecision<'a> {
        let signer = attributes.old.map(signer).unwrap_or_default();
        if is_allowed_for_signer(attributes, "approve", signer)
            || mainstay_fault::is_on("approval-needs-no-permission")
        {
            return ADMITTED;
        }
        let message = format!("user not permitted to approve requests with signerName {signer:?}");
        AdmissionDecision::Ready(Err(attributes.forbidden(&message)))
    }
}

/// A change of the certificate or of conditions needs the verb `sign` on the signer.
pub(super) struct CertificateSigning;

impl Plugin for CertificateSigning {
    fn handles(&self, attributes: &AdmissionAttributes<'_>) -> bool {
        is_operation(attributes, Operation::Update, "status")
    }

    fn validate<'a>(&'a self, attributes: &'a AdmissionAttributes<'_>) -> AdmissionDecision<'a> {
        let (Some(object), Some(old)) = (&attributes.object, attributes.old) else {
            return ADMITTED;
        };
        let non_empty = |object: &Object, field: &str| -> Option<Value> {
            let value = object.get(&["status", field])?;
            (value.as_str() != Some("") && value.as_array().is_none_or(|list| !list.is_empty()))
                .then(|| value.clone())
        };
        let is_unchanged = |field: &str| non_empty(object, field) == non_empty(old, field);
        let signer = signer(old);
        if (is_unchanged("certificate") && is_unchanged("conditions"))
            || is_allowed_for_signer(attributes, "sign", signer)
        {
            return ADMITTED;
        }
        let message = format!("user not permitted to sign requests with signerName {signer:?}");
        AdmissionDecision::Ready(Err(attributes.forbidden(&message)))
    }
}

/// A signing request for an API client may not name the group `system:masters`.
pub(super) struct CertificateSubjectRestriction;

impl Plugin for CertificateSubjectRestriction {
    fn handles(&self, attributes: &AdmissionAttributes<'_>) -> bool {
        is_operation(attributes, Operation::Create, "")
    }

    fn validate<'a>(&'a self, attributes: &'a AdmissionAttributes<'_>) -> AdmissionDecision<'a> {
        let Some(object) = attributes.object.as_ref().filter(|object| signer(object) == CLIENT)
        else {
            return ADMITTED;
        };
        let encoded = object.str(&["spec", "request"]).unwrap_or_default();
        let bytes = STANDARD.decode(encoded).unwrap_or_default();
        let message = match SigningRequest::parse(&String::from_utf8_lossy(&bytes)) {
            Err(error) => format!("failed to parse CSR: {error}"),
            Ok(request)
                if request
                    .organizations
                    .iter()
                    .any(|organization| organization == mainstay_auth::MASTERS)
                    && !mainstay_fault::is_on("anybody-becomes-a-master") =>
            {
                format!("use of {CLIENT} signer with system:masters group is not allowed")
            }
            Ok(_) => return ADMITTED,
        };
        AdmissionDecision::Ready(Err(attributes.forbidden(&message)))
    }
}
