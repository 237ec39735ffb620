//! Requests for certificates: who may approve and sign for which signer, and which subjects nobody
//! gets.

use super::{ADMITTED, Attributes, Operation, Plugin, Verdict};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_auth::authz;
use mainstay_auth::pki::CLIENT;
use mainstay_auth::pki::request::SigningRequest;
use mainstay_object::Object;
use serde_json::Value;

const STORAGE: &str = "certificates.k8s.io/certificatesigningrequests";
const GROUP: &str = "certificates.k8s.io";

fn is(attributes: &Attributes<'_>, operation: Operation, subresource: &str) -> bool {
    attributes.operation == operation
        && attributes.subresource == subresource
        && &*attributes.row.storage == STORAGE
}

fn signer(object: &Object) -> &str {
    object.str(&["spec", "signerName"]).unwrap_or_default()
}

/// Whether somebody has a verb on a signer, or on all signers of its domain (`example.com/*`).
fn may(attributes: &Attributes<'_>, verb: &str, signer: &str) -> bool {
    let ask = authz::Attributes::resource(attributes.identity, verb, GROUP, "signers");
    let domain = signer.split('/').next().unwrap_or_default();
    let all = format!("{domain}/*");
    [signer, &all]
        .into_iter()
        .any(|name| attributes.admission.authorizer.decide(&ask.with_name(name)).is_allowed())
}

/// Who approves needs the verb `approve` on the signer.
pub(super) struct CertificateApproval;

impl Plugin for CertificateApproval {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        is(attributes, Operation::Update, "approval")
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Verdict<'a> {
        let signer = attributes.old.map(signer).unwrap_or_default();
        if may(attributes, "approve", signer)
            || mainstay_fault::is_on("approval-needs-no-permission")
        {
            return ADMITTED;
        }
        let why = format!("user not permitted to approve requests with signerName {signer:?}");
        Verdict::Now(Err(attributes.forbidden(&why)))
    }
}

/// Who writes a certificate, or a condition, needs the verb `sign` on the signer.
pub(super) struct CertificateSigning;

impl Plugin for CertificateSigning {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        is(attributes, Operation::Update, "status")
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Verdict<'a> {
        let (Some(object), Some(old)) = (&attributes.object, attributes.old) else {
            return ADMITTED;
        };
        let of = |object: &Object, field: &str| -> Option<Value> {
            let value = object.get(&["status", field])?;
            (value.as_str() != Some("") && value.as_array().is_none_or(|list| !list.is_empty()))
                .then(|| value.clone())
        };
        let same = |field: &str| of(object, field) == of(old, field);
        let signer = signer(old);
        if (same("certificate") && same("conditions")) || may(attributes, "sign", signer) {
            return ADMITTED;
        }
        let why = format!("user not permitted to sign requests with signerName {signer:?}");
        Verdict::Now(Err(attributes.forbidden(&why)))
    }
}

/// Nobody becomes a member of `system:masters` by a certificate that was asked for here.
pub(super) struct CertificateSubjectRestriction;

impl Plugin for CertificateSubjectRestriction {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        is(attributes, Operation::Create, "")
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Verdict<'a> {
        let Some(object) = attributes.object.as_ref().filter(|object| signer(object) == CLIENT)
        else {
            return ADMITTED;
        };
        let encoded = object.str(&["spec", "request"]).unwrap_or_default();
        let bytes = STANDARD.decode(encoded).unwrap_or_default();
        let refused = match SigningRequest::parse(&String::from_utf8_lossy(&bytes)) {
            Err(why) => format!("failed to parse CSR: {why}"),
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
        Verdict::Now(Err(attributes.forbidden(&refused)))
    }
}
