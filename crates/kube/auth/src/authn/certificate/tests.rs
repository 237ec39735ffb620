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
    judge: ClientAuthority,
}

fn authority() -> Authority {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "test-ca");
    params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).unwrap();
    let judge = ClientAuthority::new(certificate.der().clone()).unwrap();
    Authority { key, params, judge }
}

impl Authority {
    fn sign(&self, names: &[(DnType, &str)], change: impl Fn(&mut CertificateParams)) -> Shown {
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
        let made = params.signed_by(&key, &issuer).unwrap();
        Shown::new(Some(&[made.der().clone()])).unwrap()
    }

    fn judge(&self, shown: &Shown, time: &str) -> Result<Option<Identity>, CertificateError> {
        self.judge.judge(shown, clock(time))
    }
}

const NOW: &str = "2026-06-01T00:00:00Z";

#[test]
fn the_subject_names_user_groups_and_uid() {
    let authority = authority();
    let uid = DnType::from_oid(UID);
    let shown = authority.sign(
        &[(DnType::CommonName, "jane"), (DnType::OrganizationName, "devs"), (uid.clone(), "u7")],
        |_| {},
    );
    let identity = authority.judge(&shown, NOW).unwrap().unwrap();
    assert_eq!((identity.user(), identity.uid()), ("jane", "u7"));
    assert_eq!(identity.groups(), ["devs", "system:authenticated"]);
    assert!(identity.extra()[CREDENTIAL_ID][0].starts_with("X509SHA256="));
    // Who is told apart by nothing is nobody, and not refused.
    let nameless = authority.sign(&[(DnType::OrganizationName, "devs")], |_| {});
    assert_eq!(authority.judge(&nameless, NOW), Ok(None));
    let empty = authority.sign(&[(DnType::CommonName, "jane"), (uid, "")], |_| {});
    assert_eq!(authority.judge(&empty, NOW), Err(CertificateError::EmptyUid));
}

#[test]
fn a_certificate_counts_from_its_beginning_to_its_end_also_on_an_open_connection() {
    let authority = authority();
    let shown = authority.sign(&[(DnType::CommonName, "jane")], |_| {});
    for (time, good) in [
        (NOW, true),
        ("2025-12-31T23:59:59Z", false),
        ("2026-01-01T00:00:00Z", true),
        ("2027-01-01T00:00:00Z", true),
        ("2027-01-01T00:00:01Z", false),
        (NOW, true),
    ] {
        assert_eq!(authority.judge(&shown, time).is_ok(), good, "{time}");
    }
    let early = authority.sign(&[(DnType::CommonName, "jane")], |_| {});
    assert!(authority.judge(&early, "2025-01-01T00:00:00Z").is_err());
    // The clock was wrong when the connection began: the certificate is judged again, not its first verdict.
    assert!(authority.judge(&early, NOW).is_ok());
}

#[test]
fn an_intermediate_certificate_counts_to_its_end_also_on_an_open_connection() {
    let authority = authority();
    let key = KeyPair::generate().unwrap();
    let mut between = CertificateParams::default();
    between.distinguished_name.push(DnType::CommonName, "between");
    between.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    between.not_before = date_time_ymd(2026, 1, 1);
    between.not_after = date_time_ymd(2026, 7, 1);
    let issuer = Issuer::from_params(&authority.params, &authority.key);
    let signed = between.signed_by(&key, &issuer).unwrap();
    let lower = Authority { key, params: between, judge: authority.judge };
    let jane = lower.sign(&[(DnType::CommonName, "jane")], |_| {});
    let chain = [jane.chain()[0].clone(), signed.der().clone()];
    let shown = Shown::new(Some(&chain)).unwrap();
    assert!(lower.judge(&shown, NOW).unwrap().is_some());
    let ended = "2026-07-01T00:00:01Z";
    assert_eq!(lower.judge(&shown, ended), Err(CertificateError::Untimely));
    assert!(lower.judge(&shown, NOW).is_ok(), "the clock was wrong");
    // One that was shown and is not needed takes nothing away.
    let authority = self::authority();
    let direct = authority.sign(&[(DnType::CommonName, "jane")], |_| {});
    let both = [direct.chain()[0].clone(), signed.der().clone()];
    let shown = Shown::new(Some(&both)).unwrap();
    for time in [NOW, ended] {
        assert!(authority.judge(&shown, time).is_ok(), "{time}");
    }
}

#[test]
fn forged_and_foreign_certificates_prove_nothing() {
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
    for shown in [
        other.sign(&jane, |_| {}),
        ours.sign(&jane, serving),
        ours.sign(&jane, critical),
        Shown::new(Some(&[CertificateDer::from(b"junk".to_vec())])).unwrap(),
    ] {
        assert!(ours.judge(&shown, NOW).is_err());
    }
    assert!(Shown::new(Some(&[])).is_none());
    assert!(Shown::new(None).is_none());
}
