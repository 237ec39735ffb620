use super::super::Pki;
use super::*;
use serde_json::json;
use x509_parser::prelude::{FromDer as _, X509Certificate};

fn clock() -> Clock {
    Clock::starting_at("2026-01-02T03:04:05Z".parse().unwrap())
}

/// A signing request made with openssl; the name of its file tells its subject and names.
fn object(pem: &str, signer: &str, usages: &[&str], seconds: Option<i64>) -> Object {
    let mut object = Object::from_value(json!({
        "spec": {"request": STANDARD.encode(pem), "signerName": signer, "usages": usages},
    }))
    .unwrap();
    if let Some(seconds) = seconds {
        object.set(&["spec", "expirationSeconds"], seconds.into());
    }
    object
}

const JANE: &str = include_str!("jane.pem");
const NODE: &str = include_str!("node.pem");
const SERVER: &str = include_str!("server.pem");
const CLIENT_USAGES: &[&str] = &["digital signature", "key encipherment", "client auth"];

fn decode_pem(pem_text: &str) -> Vec<u8> {
    pem::blocks(pem_text).remove(0).bytes
}

#[tokio::test]
async fn client_certificate_has_the_requested_subject_and_lifetime() {
    let pki = Pki::ephemeral(&clock(), &[]).unwrap();
    let signer = pki.signer(clock()).unwrap();
    for (seconds, since, until) in [
        (Some(3600), "2026-01-02T02:59:05Z", "2026-01-02T04:04:05Z"),
        (Some(1), "2026-01-02T02:59:05Z", "2026-01-02T03:14:05Z"),
        (Some(86_400), "2026-01-02T02:59:05Z", "2026-01-03T02:59:05Z"),
        (None, "2026-01-02T02:59:05Z", "2027-01-02T02:59:05Z"),
    ] {
        let issued = signer.issue(&object(JANE, CLIENT, CLIENT_USAGES, seconds)).unwrap();
        let der = decode_pem(&issued);
        let (rest, certificate) = X509Certificate::from_der(&der).unwrap();
        assert!(rest.is_empty());
        // The organizations are one set, in DER's order; the requested uid is not signed.
        assert_eq!(certificate.subject().to_string(), "O=ops + O=devs, CN=jane");
        let at = |text: &str| text.parse::<Timestamp>().unwrap().as_second();
        assert_eq!(certificate.validity().not_before.timestamp(), at(since));
        assert_eq!(certificate.validity().not_after.timestamp(), at(until));
        let usage = certificate.key_usage().unwrap().unwrap();
        assert!(
            usage.critical && usage.value.digital_signature() && usage.value.key_encipherment()
        );
        let purposes = certificate.extended_key_usage().unwrap().unwrap();
        assert!(purposes.value.client_auth && !purposes.value.server_auth);
        assert!(!certificate.basic_constraints().unwrap().unwrap().value.ca);
        // The certificate authenticates its subject.
        let certificate = crate::authn::ClientCertificate::new(Some(&[der.clone().into()]));
        let authn = pki.authenticator(clock()).unwrap();
        let proof =
            authn.identify(certificate.as_ref(), &http::HeaderMap::new(), &NoObjects).unwrap();
        assert_eq!((proof.identity.user(), proof.identity.uid()), ("jane", ""));
        assert_eq!(proof.identity.groups(), ["ops", "devs", "system:authenticated"]);
    }
}

struct NoObjects;

impl mainstay_object::Objects for NoObjects {
    fn get(&self, _: &str, _: &str, _: &str) -> Option<Object> {
        None
    }

    fn list(&self, _: &str, _: Option<&str>) -> Vec<Object> {
        Vec::new()
    }
}

#[tokio::test]
async fn signers_reject_requests_outside_their_rules() {
    let pki = Pki::ephemeral(&clock(), &[]).unwrap();
    let signer = pki.signer(clock()).unwrap();
    let rejected = |reason: &str| Err(IssueError::Rejected(reason.to_owned()));
    let server = ["digital signature", "key encipherment", "server auth"];
    let wrong_usages = "usages did not match [client auth digital signature key encipherment]";
    for (pem, name, usages, expected) in [
        (JANE, "example.com/x", CLIENT_USAGES, Err(IssueError::OtherSigner)),
        (JANE, CLIENT, &server[..], rejected("invalid usage for client certificate: server auth")),
        (
            JANE,
            CLIENT,
            &["digital signature"],
            rejected("missing required usage for client certificate: client auth"),
        ),
        (JANE, KUBELET_CLIENT, CLIENT_USAGES, rejected("subject organization is not system:nodes")),
        (NODE, KUBELET_CLIENT, &server, rejected(wrong_usages)),
        (NODE, KUBELET_SERVING, &server, rejected("DNS or IP subjectAltName is required")),
        (SERVER, KUBELET_CLIENT, CLIENT_USAGES, rejected("DNS subjectAltNames are not allowed")),
        (
            SERVER,
            KUBELET_SERVING,
            CLIENT_USAGES,
            rejected("usages did not match [digital signature key encipherment server auth]"),
        ),
        (NODE, KUBELET_CLIENT, CLIENT_USAGES, Ok(())),
        (SERVER, KUBELET_SERVING, &server, Ok(())),
        (SERVER, KUBELET_SERVING, &["server auth", "digital signature"], Ok(())),
        (JANE, LEGACY, &["any", "crl sign"], Ok(())),
    ] {
        let result = signer.issue(&object(pem, name, usages, None)).map(drop);
        assert_eq!(result, expected, "{name} {usages:?}");
    }
    let issued = signer.issue(&object(SERVER, KUBELET_SERVING, &server, None)).unwrap();
    let der = decode_pem(&issued);
    let (_, certificate) = X509Certificate::from_der(&der).unwrap();
    let names = super::super::alternative_names(&certificate);
    assert_eq!(names, ["node-1.example.com", "10.0.0.1"]);
}

#[tokio::test]
async fn kubelet_requests_for_themselves_may_be_approved_automatically() {
    let subresources = |pem: &str, signer: &str, user: &str| {
        let mut object = object(pem, signer, CLIENT_USAGES, None);
        object.set(&["spec", "username"], user.into());
        auto_approval_subresources(&object)
    };
    let own = subresources(NODE, KUBELET_CLIENT, "system:node:n1");
    assert_eq!(own, ["selfnodeclient", "nodeclient"]);
    assert_eq!(subresources(NODE, KUBELET_CLIENT, "jane"), ["nodeclient"]);
    assert!(subresources(NODE, CLIENT, "system:node:n1").is_empty());
    assert!(subresources(JANE, KUBELET_CLIENT, "jane").is_empty());
    assert!(subresources("junk", KUBELET_CLIENT, "jane").is_empty());
}

#[test]
fn malformed_requests_have_the_errors_of_go() {
    let check = |text: &str| {
        let parsed = SigningRequest::parse(text).and_then(|request| request.check_signature());
        parsed.map_err(|error| error.to_string())
    };
    for valid in [JANE, NODE, SERVER] {
        assert_eq!(check(valid), Ok(()));
    }
    let mut forged = decode_pem(JANE);
    let index = forged.windows(4).position(|part| part == b"jane").unwrap();
    forged[index] = b'J';
    let mut long = decode_pem(JANE);
    long.push(0);
    for (text, error) in [
        (String::new(), "PEM block type must be CERTIFICATE REQUEST"),
        (
            pem::encode("NEW CERTIFICATE REQUEST", &decode_pem(JANE)),
            "PEM block type must be CERTIFICATE REQUEST",
        ),
        (pem::encode("CERTIFICATE REQUEST", b"junk"), "x509: malformed certificate request"),
        (pem::encode("CERTIFICATE REQUEST", &long), "asn1: syntax error: trailing data"),
        (pem::encode("CERTIFICATE REQUEST", &forged), "x509: ECDSA verification failure"),
    ] {
        assert_eq!(check(&text), Err(error.to_owned()));
    }
    // No prefix of a request crashes the parser.
    let whole = decode_pem(SERVER);
    for length in 0..whole.len() {
        assert!(check(&pem::encode("CERTIFICATE REQUEST", &whole[..length])).is_err(), "{length}");
    }
}
