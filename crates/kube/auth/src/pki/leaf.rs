//! Leaf certificates: the serving certificate, and the client certificates of the administrator and
//! of the front proxy. Each can be issued again at any time.

use super::files::KeyFolder;
use super::{
    CertificateKeyPair, PkiError, alternative_names, certificate_params, decode_pem, generate,
    is_valid_for_long, key_pair_of, parse, subject_key_id,
};
use mainstay_clock::Clock;
use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, Issuer, KeyPair, KeyUsagePurpose};
use std::net::IpAddr;
use std::time::Duration;
use x509_parser::prelude::{ParsedExtension, X509Certificate};

/// Leaf certificates are valid for one year.
const LEAF_LIFETIME: Duration = Duration::from_hours(365 * 24);

// The names of the files, without `.key` and `.crt`.
const SERVING: &str = "apiserver";
const ADMIN: &str = "admin";
const FRONT_PROXY: &str = "front-proxy";

/// The names in each serving certificate: those of this machine, and those that clients inside a
/// cluster use.
pub(super) const SERVING_NAMES: [&str; 7] = [
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "127.0.0.1",
    "::1",
];

/// A leaf certificate, which may be issued again at any time.
#[derive(Clone, Copy)]
pub(super) enum Leaf<'a> {
    /// The serving certificate of the TLS listener, with additional names.
    Serving(&'a [String]),
    /// The client certificate of the administrator.
    Admin,
    /// The client certificate for aggregated API servers.
    FrontProxy,
}

impl Leaf<'_> {
    fn file(self) -> &'static str {
        match self {
            Self::Serving(_) => SERVING,
            Self::Admin => ADMIN,
            Self::FrontProxy => FRONT_PROXY,
        }
    }

    /// All names of the certificate; addresses in their canonical form.
    pub(super) fn names(self) -> Vec<String> {
        let Self::Serving(additional) = self else { return Vec::new() };
        let mut names: Vec<String> = SERVING_NAMES.map(ToOwned::to_owned).to_vec();
        for name in additional {
            let name = match name.parse::<IpAddr>() {
                // No client connects to an unspecified address such as 0.0.0.0.
                Ok(address) if address.is_unspecified() => continue,
                Ok(address) => address.to_string(),
                Err(_) => name.clone(),
            };
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    pub(super) fn issue(
        self,
        authority: &CertificateKeyPair,
        clock: &Clock,
    ) -> Result<CertificateKeyPair, PkiError> {
        let mut params = match self {
            Self::Serving(_) => certificate_params(clock, LEAF_LIFETIME, "kube-apiserver", None)?,
            Self::Admin => {
                certificate_params(clock, LEAF_LIFETIME, "kubernetes-admin", Some(crate::MASTERS))?
            }
            Self::FrontProxy => certificate_params(clock, LEAF_LIFETIME, FRONT_PROXY, None)?,
        };
        for name in self.names() {
            let with_name = CertificateParams::new(vec![name.clone()])
                .map_err(|_| PkiError::ServingName { name })?;
            params.subject_alt_names.extend(with_name.subject_alt_names);
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![match self {
            Self::Serving(_) => ExtendedKeyUsagePurpose::ServerAuth,
            Self::Admin | Self::FrontProxy => ExtendedKeyUsagePurpose::ClientAuth,
        }];
        let issuer = Issuer::from_ca_cert_der(&authority.certificate, &authority.key)
            .map_err(PkiError::Generate)?;
        let key = generate()?;
        let certificate = params.signed_by(&key, &issuer).map_err(PkiError::Generate)?;
        Ok(key_pair_of(&certificate, key))
    }

    pub(super) fn load_or_issue(
        self,
        folder: &KeyFolder,
        authority: &CertificateKeyPair,
        clock: &Clock,
    ) -> Result<CertificateKeyPair, PkiError> {
        let (key_file, certificate_file) =
            (format!("{}.key", self.file()), format!("{}.crt", self.file()));
        if let (Some(key), Some(certificate)) =
            (folder.read(&key_file)?, folder.read(&certificate_file)?)
        {
            match self.check_usable(&certificate, &key, authority, clock) {
                Ok(pair) => return Ok(pair),
                Err(reason) => {
                    tracing::info!(file = %certificate_file, reason, "issuing a certificate again");
                }
            }
        }
        let pair = self.issue(authority, clock)?;
        folder.write(&key_file, &pair.key.serialize_pem())?;
        folder.write(&certificate_file, &pair.certificate_pem)?;
        Ok(pair)
    }

    /// The stored pair, if it is valid for some time; otherwise the reason to replace it.
    fn check_usable(
        self,
        certificate_pem: &str,
        key_pem: &str,
        authority: &CertificateKeyPair,
        clock: &Clock,
    ) -> Result<CertificateKeyPair, &'static str> {
        let key = KeyPair::from_pem(key_pem).map_err(|_| "its key cannot be read")?;
        let der = decode_pem(certificate_pem).map_err(|_| "it cannot be read")?;
        let parsed = parse(&der).map_err(|_| "it cannot be read")?;
        let issuer =
            parse(&authority.certificate).map_err(|_| "the CA certificate cannot be read")?;
        if parsed.public_key().subject_public_key.data != key.public_key_raw() {
            return Err("it belongs to another key");
        }
        if parsed.issuer() != issuer.subject()
            || authority_key_id(&parsed) != subject_key_id(&issuer)
        {
            return Err("another CA signed it");
        }
        if !is_valid_for_long(&parsed, clock) {
            return Err("it expires soon");
        }
        let present = alternative_names(&parsed);
        if self.names().iter().any(|name| !present.contains(name)) {
            return Err("it lacks a name");
        }
        Ok(CertificateKeyPair {
            certificate: der.clone(),
            certificate_pem: certificate_pem.to_owned(),
            key,
        })
    }
}

fn authority_key_id<'a>(certificate: &'a X509Certificate<'_>) -> Option<&'a [u8]> {
    certificate.extensions().iter().find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::AuthorityKeyIdentifier(found) => {
            found.key_identifier.as_ref().map(|key| key.0)
        }
        _ => None,
    })
}
