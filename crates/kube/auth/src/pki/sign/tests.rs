use super::super::Pki;
use super::*;
use serde_json::json;
use x509_parser::prelude::{FromDer as _, X509Certificate};

fn clock() -> Clock {
    Clock::starting_at("2026-01-02T03:04:05Z".parse().unwrap())
}

/// A request by openssl, of the subject and with the names that its file's name tells.
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

fn der_of(pem_text: &str) -> Vec<u8> {
    pem::blocks(pem_text).remove(0).bytes
}

#[tokio::test]
async fn a_client_certificate_has_the_subject_and_the_life_that_were_asked_for() {
    let pki = Pki::ephemeral(&clock(), &[]).unwrap();
    let signer = pki.signer(clock()).unwrap();
    for (seconds, since, until) in [
        (Some(3600), "2026-01-02T02:59:05Z", "2026-01-02T04:04:05Z"),
        (Some(1), "2026-01-02T02:59:05Z", "2026-01-02T03:14:05Z"),
        (Some(86_400), "2026-01-02T02:59:05Z", "2026-01-03T02:59:05Z"),
        (None, "2026-01-02T02:59:05Z", "2027-01-02T02:59:05Z"),
    ] {
        let made = signer.answer(&object(JANE, CLIENT, CLIENT_USAGES, seconds)).unwrap();
        let der = der_of(&made);
        let (rest, certificate) = X509Certificate::from_der(&der).unwrap();
        assert!(rest.is_empty());
        // The organizations are one set, in DER's order; the uid that was asked for is not there.
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
        // It proves who it names.
        let shown = crate::authn::Shown::new(Some(&[der.clone().into()]));
        let authn = pki.authenticator(clock()).unwrap();
        let proof = authn.identify(shown.as_ref(), &http::HeaderMap::new(), &Nothing).unwrap();
        assert_eq!((proof.identity.user(), proof.identity.uid()), ("jane", ""));
        assert_eq!(proof.identity.groups(), ["ops", "devs", "system:authenticated"]);
    }
}

struct Nothing;

impl mainstay_object::Objects for Nothing {
    fn get(&self, _: &str, _: &str, _: &str) -> Option<Object> {
        None
    }

    fn list(&self, _: &str, _: Option<&str>) -> Vec<Object> {
        Vec::new()
    }
}

#[tokio::test]
async fn each_signer_refuses_what_it_does_not_give() {
    let pki = Pki::ephemeral(&clock(), &[]).unwrap();
    let signer = pki.signer(clock()).unwrap();
    let refused = |why: &str| Err(Unsigned::Refused(why.to_owned()));
    let server = ["digital signature", "key encipherment", "server auth"];
    let no_kubelet = "usages did not match [client auth digital signature key encipherment]";
    for (pem, name, usages, expected) in [
        (JANE, "example.com/x", CLIENT_USAGES, Err(Unsigned::NotOurs)),
        (JANE, CLIENT, &server[..], refused("invalid usage for client certificate: server auth")),
        (
            JANE,
            CLIENT,
            &["digital signature"],
            refused("missing required usage for client certificate: client auth"),
        ),
        (JANE, KUBELET_CLIENT, CLIENT_USAGES, refused("subject organization is not system:nodes")),
        (NODE, KUBELET_CLIENT, &server, refused(no_kubelet)),
        (NODE, KUBELET_SERVING, &server, refused("DNS or IP subjectAltName is required")),
        (SERVER, KUBELET_CLIENT, CLIENT_USAGES, refused("DNS subjectAltNames are not allowed")),
        (
            SERVER,
            KUBELET_SERVING,
            CLIENT_USAGES,
            refused("usages did not match [digital signature key encipherment server auth]"),
        ),
        (NODE, KUBELET_CLIENT, CLIENT_USAGES, Ok(())),
        (SERVER, KUBELET_SERVING, &server, Ok(())),
        (SERVER, KUBELET_SERVING, &["server auth", "digital signature"], Ok(())),
        (JANE, LEGACY, &["any", "crl sign"], Ok(())),
    ] {
        let answer = signer.answer(&object(pem, name, usages, None)).map(drop);
        assert_eq!(answer, expected, "{name} {usages:?}");
    }
    let made = signer.answer(&object(SERVER, KUBELET_SERVING, &server, None)).unwrap();
    let der = der_of(&made);
    let (_, certificate) = X509Certificate::from_der(&der).unwrap();
    let names = super::super::names_of(&certificate);
    assert_eq!(names, ["node-1.example.com", "10.0.0.1"]);
}

#[tokio::test]
async fn requests_of_kubelets_for_themselves_may_be_approved_without_people() {
    let with = |pem: &str, signer: &str, user: &str| {
        let mut object = object(pem, signer, CLIENT_USAGES, None);
        object.set(&["spec", "username"], user.into());
        approvals(&object)
    };
    assert_eq!(with(NODE, KUBELET_CLIENT, "system:node:n1"), ["selfnodeclient", "nodeclient"]);
    assert_eq!(with(NODE, KUBELET_CLIENT, "jane"), ["nodeclient"]);
    assert!(with(NODE, CLIENT, "system:node:n1").is_empty());
    assert!(with(JANE, KUBELET_CLIENT, "jane").is_empty());
    assert!(with("junk", KUBELET_CLIENT, "jane").is_empty());
}

#[test]
fn broken_requests_are_told_apart() {
    let check = |text: &str| {
        let read = SigningRequest::read(text).and_then(|request| request.check_signature());
        read.map_err(|error| error.to_string())
    };
    for good in [JANE, NODE, SERVER] {
        assert_eq!(check(good), Ok(()));
    }
    let mut forged = der_of(JANE);
    let at = forged.windows(4).position(|part| part == b"jane").unwrap();
    forged[at] = b'J';
    let mut long = der_of(JANE);
    long.push(0);
    for (text, why) in [
        (String::new(), "PEM block type must be CERTIFICATE REQUEST"),
        (
            pem::text("NEW CERTIFICATE REQUEST", &der_of(JANE)),
            "PEM block type must be CERTIFICATE REQUEST",
        ),
        (pem::text("CERTIFICATE REQUEST", b"junk"), "x509: malformed certificate request"),
        (pem::text("CERTIFICATE REQUEST", &long), "asn1: syntax error: trailing data"),
        (pem::text("CERTIFICATE REQUEST", &forged), "x509: ECDSA verification failure"),
    ] {
        assert_eq!(check(&text), Err(why.to_owned()));
    }
    // No prefix of a request breaks the reader.
    let whole = der_of(SERVER);
    for length in 0..whole.len() {
        assert!(check(&pem::text("CERTIFICATE REQUEST", &whole[..length])).is_err());
    }
}
