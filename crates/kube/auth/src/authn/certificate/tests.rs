use super::*;
use rcgen::{
    CertificateParams, CustomExtension, DistinguishedName, DnType, DnValue,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, date_time_ymd,
};

const UID: &[u64] = &[1, 3, 6, 1, 4, 1, 57683, 2];

fn clock(time: &str) -> Clock {
    Clock::starting_at(time.parse().unwrap())
}

struct Authority {
    key: KeyPair,
    params: CertificateParams,
    verifier: ClientAuthority,
}

fn authority() -> Authority {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "test-ca");
    params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).unwrap();
    let verifier = ClientAuthority::new(certificate.der().clone()).unwrap();
    Authority { key, params, verifier }
}

impl Authority {
    fn sign(
        &self,
        names: &[(DnType, &str)],
        change: impl Fn(&mut CertificateParams),
    ) -> ClientCertificate {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for (kind, name) in names {
            params.distinguished_name.push(kind.clone(), DnValue::Utf8String((*name).to_owned()));
        }
        params.not_before = date_time_ymd(2026, 1, 1);
        params.not_after = date_time_ymd(2027, 1, 1);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let issuer = Issuer::from_params(&self.params, &self.key);
        let signed = params.signed_by(&key, &issuer).unwrap();
        ClientCertificate::new(Some(&[signed.der().clone()])).unwrap()
    }

    fn verify(
        &self,
        certificate: &ClientCertificate,
        time: &str,
    ) -> Result<Option<Identity>, CertificateError> {
        self.verifier.verify(certificate, clock(time))
    }
}

const NOW: &str = "2026-06-01T00:00:00Z";

#[test]
fn subject_names_user_groups_and_uid() {
    let authority = authority();
    let uid = DnType::from_oid(UID);
    let certificate = authority.sign(
        &[(DnType::CommonName, "jane"), (DnType::OrganizationName, "devs"), (uid.clone(), "u7")],
        |_| {},
    );
    let identity = authority.verify(&certificate, NOW).unwrap().unwrap();
    assert_eq!((identity.user(), identity.uid()), ("jane", "u7"));
    assert_eq!(identity.groups(), ["devs", "system:authenticated"]);
    assert!(identity.extra()[CREDENTIAL_ID][0].starts_with("X509SHA256="));
    // A certificate without a common name gives no identity, and is no error.
    let nameless = authority.sign(&[(DnType::OrganizationName, "devs")], |_| {});
    assert_eq!(authority.verify(&nameless, NOW), Ok(None));
    let empty = authority.sign(&[(DnType::CommonName, "jane"), (uid, "")], |_| {});
    assert_eq!(authority.verify(&empty, NOW), Err(CertificateError::EmptyUid));
}

#[test]
fn validity_period_of_a_certificate_is_checked_on_open_connections() {
    let authority = authority();
    let certificate = authority.sign(&[(DnType::CommonName, "jane")], |_| {});
    for (time, is_valid) in [
        (NOW, true),
        ("2025-12-31T23:59:59Z", false),
        ("2026-01-01T00:00:00Z", true),
        ("2027-01-01T00:00:00Z", true),
        ("2027-01-01T00:00:01Z", false),
        (NOW, true),
    ] {
        assert_eq!(authority.verify(&certificate, time).is_ok(), is_valid, "{time}");
    }
    let early = authority.sign(&[(DnType::CommonName, "jane")], |_| {});
    assert!(authority.verify(&early, "2025-01-01T00:00:00Z").is_err());
    // The clock was wrong when the connection began; the first result must not stay.
    assert!(authority.verify(&early, NOW).is_ok());
}

#[test]
fn validity_period_of_an_intermediate_certificate_is_checked_on_open_connections() {
    let authority = authority();
    let key = KeyPair::generate().unwrap();
    let mut intermediate = CertificateParams::default();
    intermediate.distinguished_name.push(DnType::CommonName, "between");
    intermediate.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    intermediate.not_before = date_time_ymd(2026, 1, 1);
    intermediate.not_after = date_time_ymd(2026, 7, 1);
    let issuer = Issuer::from_params(&authority.params, &authority.key);
    let signed = intermediate.signed_by(&key, &issuer).unwrap();
    let intermediate_authority =
        Authority { key, params: intermediate, verifier: authority.verifier };
    let jane = intermediate_authority.sign(&[(DnType::CommonName, "jane")], |_| {});
    let chain = [jane.chain()[0].clone(), signed.der().clone()];
    let certificate = ClientCertificate::new(Some(&chain)).unwrap();
    assert!(intermediate_authority.verify(&certificate, NOW).unwrap().is_some());
    let after_end = "2026-07-01T00:00:01Z";
    assert_eq!(
        intermediate_authority.verify(&certificate, after_end),
        Err(CertificateError::OutsideValidity)
    );
    assert!(
        intermediate_authority.verify(&certificate, NOW).is_ok(),
        "an earlier time is valid again"
    );
    // An expired certificate that the chain does not need changes nothing.
    let authority = self::authority();
    let direct = authority.sign(&[(DnType::CommonName, "jane")], |_| {});
    let both = [direct.chain()[0].clone(), signed.der().clone()];
    let certificate = ClientCertificate::new(Some(&both)).unwrap();
    for time in [NOW, after_end] {
        assert!(authority.verify(&certificate, time).is_ok(), "{time}");
    }
}

#[test]
fn forged_and_foreign_certificates_are_invalid() {
    let (ours, other) = (authority(), authority());
    let jane = [(DnType::CommonName, "jane")];
    let serving = |params: &mut CertificateParams| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    };
    let critical = |params: &mut CertificateParams| {
        let mut unknown = CustomExtension::from_oid_content(&[1, 2, 3, 4], vec![5, 0]);
        unknown.set_criticality(true);
        params.custom_extensions.push(unknown);
    };
    for certificate in [
        other.sign(&jane, |_| {}),
        ours.sign(&jane, serving),
        ours.sign(&jane, critical),
        ClientCertificate::new(Some(&[CertificateDer::from(b"junk".to_vec())])).unwrap(),
    ] {
        assert!(ours.verify(&certificate, NOW).is_err());
    }
    assert!(ClientCertificate::new(Some(&[])).is_none());
    assert!(ClientCertificate::new(None).is_none());
}
