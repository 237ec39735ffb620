//! PKI of the cluster: the certificate authority, its leaves, and the keys of tokens.
//!
//! One certificate authority signs two leaves: what the TLS port shows, and who the administrator
//! is. One more key signs service-account tokens. All are ECDSA P-256: generation takes well under
//! a millisecond each, so an ephemeral cluster has its own and nothing is ever shared or shipped.
//!
//! The token key is rotated by renaming its file from `sa.key` to `sa-NAME.key` and starting again: a
//! new one is made, and tokens of the older ones are accepted until their files are taken away.
//!
//! Kept in a folder, the authority and the token keys are permanent, because kubeconfigs and tokens
//! out there depend on them: damage to them is an error that names the file and what to do. Leaves
//! are disposable: one that is missing, damaged, close to its end, signed by another authority or
//! without a name it needs is made again without asking. What the port shows is exchanged while it is
//! served, too (`serving`).
//!
//! Data flow: folder (or nothing) ─► [`Pki`] ─► TLS configuration, kubeconfig text, token key.
//!
//! What this does not do: revoke.

pub(crate) mod der;
mod files;
pub mod pem;
pub mod request;
mod serving;
mod sign;

use crate::authn::{Authenticator, ClientAuthority, KeyError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use files::Folder;
use mainstay_clock::Clock;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, SerialNumber, date_time_ymd,
};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use serving::Serving;
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use x509_parser::error::X509Error;
use x509_parser::prelude::{FromDer, GeneralName, ParsedExtension, X509Certificate};

pub use sign::{
    CLIENT, KUBELET_CLIENT, KUBELET_SERVING, LEGACY, SignError, Signer, Unsigned, approvals,
};

/// Certificates begin this long ago, for clients whose clocks are behind.
const BACKDATED: Duration = Duration::from_hours(1);
/// The authority lives ten years, as kubeadm's does.
const AUTHORITY_LIFE: Duration = Duration::from_hours(3650 * 24);
/// Leaves live one year.
const LEAF_LIFE: Duration = Duration::from_hours(365 * 24);
/// A certificate that ends this soon is replaced.
const RENEW_BEFORE: Duration = Duration::from_hours(30 * 24);

/// Names that every serving certificate carries: how the port is reached on this machine, and how
/// clients inside a cluster would name it.
const SERVING_NAMES: [&str; 7] = [
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "127.0.0.1",
    "::1",
];

/// Client certificate of the front proxy, by which the API server proves to aggregated API servers
/// that it forwards requests.
pub struct FrontProxy {
    /// The certificate, and those between it and the authority.
    pub chain: Vec<CertificateDer<'static>>,
    /// Its key.
    pub key: PrivateKeyDer<'static>,
}

impl fmt::Debug for FrontProxy {
    /// Prints no keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrontProxy").finish_non_exhaustive()
    }
}

/// Why keys or certificates cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// The folder cannot be made or locked down.
    #[error("cannot prepare the key folder {}; check who owns it and who may write there", .folder.display())]
    PrepareFolder {
        /// The folder.
        folder: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is there and cannot be read.
    #[error("cannot read {}; check who owns it and who may read it", .file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {}; check the free space and who may write there", .file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A permanent file holds something else than it should.
    #[error(
        "{} is damaged ({problem}); put the file back from a backup, or remove the folder {} to have all keys made anew (kubeconfigs and tokens handed out before stop working)",
        .file.display(), .file.parent().unwrap_or(Path::new("/")).display()
    )]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A name for the serving certificate is neither an address nor a DNS name.
    #[error("{name:?} cannot be a name of the serving certificate")]
    ServingName {
        /// The name.
        name: String,
    },
    /// The cryptographic library refuses.
    #[error("cannot make a key or certificate")]
    Generate(#[source] rcgen::Error),
    /// The TLS library refuses what was made.
    #[error("cannot set up TLS")]
    Tls(#[source] rustls::Error),
    /// A key for tokens is of a kind that does not sign any.
    #[error(transparent)]
    TokenKey(#[from] KeyError),
}

/// A certificate and its key.
struct Pair {
    certificate: CertificateDer<'static>,
    certificate_pem: String,
    key: KeyPair,
}

/// The keys and certificates of one cluster.
pub struct Pki {
    clock: Clock,
    authority: Arc<Pair>,
    serving: Pair,
    /// Names of the serving certificate besides the usual ones.
    names: Vec<String>,
    admin: Pair,
    /// PKCS#8 of the key that signs tokens.
    token_key: Vec<u8>,
    /// PKCS#8 of keys that signed tokens before it.
    older_token_keys: Vec<Vec<u8>>,
}

impl fmt::Debug for Pki {
    /// Prints no keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pki").finish_non_exhaustive()
    }
}

/// The permanent part.
const AUTHORITY: &str = "ca";
const SERVING: &str = "apiserver";
const ADMIN: &str = "admin";
const FRONT_PROXY: &str = "front-proxy";
const TOKENS: &str = "sa";

impl Pki {
    /// Fresh keys that live as long as the process. `names` are host names and addresses, besides
    /// the usual ones, under which clients reach the port.
    pub fn ephemeral(clock: &Clock, names: &[String]) -> Result<Self, PkiError> {
        let authority = make_authority(generate()?, clock)?;
        let serving = Leaf::Serving(names).make(&authority, clock)?;
        let admin = Leaf::Admin.make(&authority, clock)?;
        let token_key = generate()?.serialize_der();
        Ok(Self {
            clock: *clock,
            authority: Arc::new(authority),
            serving,
            names: names.to_vec(),
            admin,
            token_key,
            older_token_keys: Vec::new(),
        })
    }

    /// Keys kept in a folder, which is made if it is not there (mode 0700, files 0600). Files are
    /// written whole or not at all.
    pub fn load_or_create(
        folder: &Path,
        clock: &Clock,
        names: &[String],
    ) -> Result<Self, PkiError> {
        let folder = Folder::prepare(folder)?;
        let authority = load_authority(&folder, clock)?;
        let serving = Leaf::Serving(names).load_or_make(&folder, &authority, clock)?;
        let admin = Leaf::Admin.load_or_make(&folder, &authority, clock)?;
        let token_file = format!("{TOKENS}.key");
        let token_key = if folder.read(&token_file)?.is_some() {
            token_key_of(&folder, &token_file)?
        } else {
            let key = generate()?;
            folder.write(&token_file, &key.serialize_pem())?;
            key.serialize_der()
        };
        let older_token_keys = folder
            .names(&format!("{TOKENS}-"), ".key")?
            .iter()
            .map(|name| token_key_of(&folder, name))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            clock: *clock,
            authority: Arc::new(authority),
            serving,
            names: names.to_vec(),
            admin,
            token_key,
            older_token_keys,
        })
    }

    /// The authority's certificate: what clients must trust, and `kube-root-ca.crt`.
    pub fn authority_pem(&self) -> &str {
        &self.authority.certificate_pem
    }

    /// The administrator's certificate and key, in PEM.
    pub fn admin_pem(&self) -> (&str, String) {
        (&self.admin.certificate_pem, self.admin.key.serialize_pem())
    }

    /// What the server shows to servers of aggregated groups: a new certificate of the authority for
    /// the name `front-proxy`.
    pub fn front_proxy(&self, clock: &Clock) -> Result<FrontProxy, PkiError> {
        let made = Leaf::FrontProxy.make(&self.authority, clock)?;
        let key = PrivatePkcs8KeyDer::from(made.key.serialize_der());
        Ok(FrontProxy { chain: vec![made.certificate], key: PrivateKeyDer::Pkcs8(key) })
    }

    /// PKCS#8 of the key that signs service-account tokens.
    pub fn token_key_pkcs8(&self) -> &[u8] {
        &self.token_key
    }

    /// Whose client certificates are accepted: those that this authority signed.
    pub fn client_authority(&self) -> Result<ClientAuthority, PkiError> {
        ClientAuthority::new(self.authority.certificate.clone()).map_err(PkiError::Tls)
    }

    /// Signs requests of others with this authority.
    pub fn signer(&self, clock: Clock) -> Result<Signer, PkiError> {
        Signer::new(&self.authority, clock)
    }

    /// An authenticator that issues and accepts the tokens and certificates of this cluster.
    pub fn authenticator(&self, clock: Clock) -> Result<Authenticator, PkiError> {
        let older = self.older_token_keys.iter().map(Vec::as_slice);
        let made = Authenticator::with_keys(&self.token_key, older, clock)?;
        Ok(made.with_clients(self.client_authority()?))
    }

    /// TLS of the port: asks for a client certificate and takes any whose key the client has, or none
    /// (it may have a token); [`Pki::client_authority`] judges it. Offers HTTP/2 and HTTP/1.1.
    pub fn server_config(&self) -> Result<Arc<ServerConfig>, PkiError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = self.client_authority()?.for_tls();
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(PkiError::Tls)?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::new(self.serving()?));
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    /// What the port shows, and goes on showing when it has been exchanged.
    fn serving(&self) -> Result<Serving, PkiError> {
        Serving::new(Arc::clone(&self.authority), &self.serving, self.names.clone(), self.clock)
    }

    /// A kubeconfig of the administrator with everything inside it. `server` is the URL of the
    /// port, `name` what cluster, user and context are called.
    pub fn kubeconfig(&self, server: &str, name: &str) -> String {
        let encode = |pem: &str| STANDARD.encode(pem);
        let (certificate, key) = self.admin_pem();
        format!(
            "apiVersion: v1\n\
             kind: Config\n\
             clusters:\n\
             - name: {name}\n\
             \x20 cluster:\n\
             \x20   certificate-authority-data: {authority}\n\
             \x20   server: {server}\n\
             users:\n\
             - name: {name}-admin\n\
             \x20 user:\n\
             \x20   client-certificate-data: {certificate}\n\
             \x20   client-key-data: {key}\n\
             contexts:\n\
             - name: {name}\n\
             \x20 context:\n\
             \x20   cluster: {name}\n\
             \x20   user: {name}-admin\n\
             current-context: {name}\n",
            authority = encode(self.authority_pem()),
            certificate = encode(certificate),
            key = encode(&key),
        )
    }

    /// Writes [`Pki::kubeconfig`] to a file that only its owner may read, whole or not at all.
    pub fn write_kubeconfig(&self, file: &Path, server: &str, name: &str) -> Result<(), PkiError> {
        files::write(file, &self.kubeconfig(server, name))
    }
}

/// Reads a key that signs tokens, or did.
fn token_key_of(folder: &Folder, name: &str) -> Result<Vec<u8>, PkiError> {
    let pem = folder.read(name)?.unwrap_or_default();
    let parsed = x509_parser::pem::Pem::iter_from_buffer(pem.as_bytes())
        .filter_map(Result::ok)
        .find(|block| block.label == "PRIVATE KEY");
    let key = parsed.ok_or_else(|| folder.damaged(name, &"it holds no PKCS#8 private key"))?;
    Authenticator::new(&key.contents, Clock::system())
        .map_err(|error| folder.damaged(name, &error))?;
    Ok(key.contents)
}

fn generate() -> Result<KeyPair, PkiError> {
    KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).map_err(PkiError::Generate)
}

/// Parameters common to all certificates: subject, life, a random positive serial number.
fn parameters(
    clock: &Clock,
    life: Duration,
    common_name: &str,
    organization: Option<&str>,
) -> Result<CertificateParams, PkiError> {
    let mut params = CertificateParams::default();
    let mut name = DistinguishedName::new();
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, organization);
    }
    name.push(DnType::CommonName, common_name);
    params.distinguished_name = name;
    let now = u64::try_from(clock.now().as_second()).unwrap_or_default();
    let epoch = date_time_ymd(1970, 1, 1);
    params.not_before = epoch + Duration::from_secs(now.saturating_sub(BACKDATED.as_secs()));
    params.not_after = epoch + Duration::from_secs(now) + life;
    let mut serial = [0_u8; 16];
    getrandom::fill(&mut serial).map_err(|_| PkiError::Generate(rcgen::Error::RingUnspecified))?;
    serial[0] &= 0x7f;
    params.serial_number = Some(SerialNumber::from_slice(&serial));
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

fn pair(certificate: &Certificate, key: KeyPair) -> Pair {
    Pair { certificate: certificate.der().clone(), certificate_pem: certificate.pem(), key }
}

fn make_authority(key: KeyPair, clock: &Clock) -> Result<Pair, PkiError> {
    // The name tells authorities apart, so that a client with another cluster's certificate is told
    // "unknown authority" instead of "bad signature". It follows from the key and outlives renewal.
    let digest = Sha256::digest(key.public_key_raw());
    let name =
        format!("mainstay-ca-{:02x}{:02x}{:02x}{:02x}", digest[0], digest[1], digest[2], digest[3]);
    let mut params = parameters(clock, AUTHORITY_LIFE, &name, None)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
    ];
    let certificate = params.self_signed(&key).map_err(PkiError::Generate)?;
    Ok(pair(&certificate, key))
}

/// Reads the authority, or makes it. Its key is written first: a key without a certificate is what
/// an interrupted start leaves behind, and is completed.
fn load_authority(folder: &Folder, clock: &Clock) -> Result<Pair, PkiError> {
    let (key_file, certificate_file) = (format!("{AUTHORITY}.key"), format!("{AUTHORITY}.crt"));
    let certificate = folder.read(&certificate_file)?;
    let key = match folder.read(&key_file)? {
        Some(pem) => KeyPair::from_pem(&pem).map_err(|e| folder.damaged(&key_file, &e))?,
        None if certificate.is_some() => {
            return Err(
                folder.damaged(&key_file, &"it is missing although its certificate is there")
            );
        }
        None => {
            let key = generate()?;
            folder.write(&key_file, &key.serialize_pem())?;
            key
        }
    };
    if let Some(pem) = certificate {
        let der = decode(&pem).map_err(|problem| folder.damaged(&certificate_file, &problem))?;
        let parsed = parse(&der).map_err(|problem| folder.damaged(&certificate_file, &problem))?;
        if parsed.public_key().subject_public_key.data != key.public_key_raw() {
            return Err(folder.damaged(&certificate_file, &"it belongs to another key"));
        }
        if lives(&parsed, clock) {
            return Ok(Pair { certificate: der.clone(), certificate_pem: pem, key });
        }
    }
    let made = make_authority(key, clock)?;
    folder.write(&certificate_file, &made.certificate_pem)?;
    Ok(made)
}

/// A certificate that may be made again at any time.
#[derive(Clone, Copy)]
enum Leaf<'a> {
    /// What the TLS port shows, with names besides the usual ones.
    Serving(&'a [String]),
    /// Who the administrator is.
    Admin,
    /// Who the server is to servers of aggregated groups.
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

    /// All names of the certificate; addresses in their shortest form.
    fn names(self) -> Vec<String> {
        let Self::Serving(more) = self else { return Vec::new() };
        let mut names: Vec<String> = SERVING_NAMES.map(ToOwned::to_owned).to_vec();
        for name in more {
            let name = match name.parse::<IpAddr>() {
                // "Everywhere" is not an address that a client connects to.
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

    fn make(self, authority: &Pair, clock: &Clock) -> Result<Pair, PkiError> {
        let mut params = match self {
            Self::Serving(_) => parameters(clock, LEAF_LIFE, "kube-apiserver", None)?,
            Self::Admin => parameters(clock, LEAF_LIFE, "kubernetes-admin", Some(crate::MASTERS))?,
            Self::FrontProxy => parameters(clock, LEAF_LIFE, FRONT_PROXY, None)?,
        };
        for name in self.names() {
            let one = CertificateParams::new(vec![name.clone()])
                .map_err(|_| PkiError::ServingName { name })?;
            params.subject_alt_names.extend(one.subject_alt_names);
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
        Ok(pair(&certificate, key))
    }

    fn load_or_make(
        self,
        folder: &Folder,
        authority: &Pair,
        clock: &Clock,
    ) -> Result<Pair, PkiError> {
        let (key_file, certificate_file) =
            (format!("{}.key", self.file()), format!("{}.crt", self.file()));
        if let (Some(key), Some(certificate)) =
            (folder.read(&key_file)?, folder.read(&certificate_file)?)
        {
            match self.usable(&certificate, &key, authority, clock) {
                Ok(pair) => return Ok(pair),
                Err(reason) => {
                    tracing::info!(file = %certificate_file, reason, "making a certificate again");
                }
            }
        }
        let made = self.make(authority, clock)?;
        folder.write(&key_file, &made.key.serialize_pem())?;
        folder.write(&certificate_file, &made.certificate_pem)?;
        Ok(made)
    }

    /// The pair, if it can serve for a while yet; otherwise why not.
    fn usable(
        self,
        certificate_pem: &str,
        key_pem: &str,
        authority: &Pair,
        clock: &Clock,
    ) -> Result<Pair, &'static str> {
        let key = KeyPair::from_pem(key_pem).map_err(|_| "its key cannot be read")?;
        let der = decode(certificate_pem).map_err(|_| "it cannot be read")?;
        let parsed = parse(&der).map_err(|_| "it cannot be read")?;
        let issuer = parse(&authority.certificate).map_err(|_| "the authority cannot be read")?;
        if parsed.public_key().subject_public_key.data != key.public_key_raw() {
            return Err("it belongs to another key");
        }
        if parsed.issuer() != issuer.subject() || authority_key(&parsed) != subject_key(&issuer) {
            return Err("another authority signed it");
        }
        if !lives(&parsed, clock) {
            return Err("it ends soon");
        }
        let present = names_of(&parsed);
        if self.names().iter().any(|name| !present.contains(name)) {
            return Err("it lacks a name");
        }
        Ok(Pair { certificate: der.clone(), certificate_pem: certificate_pem.to_owned(), key })
    }
}

/// A certificate cannot be read.
#[derive(Debug, thiserror::Error)]
enum ParseCertificateError {
    /// The text is no PEM with a certificate.
    #[error("it holds no PEM certificate")]
    Pem,
    /// The bytes are no certificate.
    #[error("no X.509 certificate: {0}")]
    X509(#[from] x509_parser::nom::Err<X509Error>),
}

/// Reads the first certificate of a PEM text, as clients do that get it in a kubeconfig: with both of its markers.
fn decode(pem: &str) -> Result<CertificateDer<'static>, ParseCertificateError> {
    CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|_| ParseCertificateError::Pem)
}

fn parse(der: &[u8]) -> Result<X509Certificate<'_>, ParseCertificateError> {
    let (_, certificate) = X509Certificate::from_der(der)?;
    Ok(certificate)
}

/// Whether a certificate is valid now and for a while yet.
fn lives(certificate: &X509Certificate<'_>, clock: &Clock) -> bool {
    let now = clock.now().as_second();
    let margin = i64::try_from(RENEW_BEFORE.as_secs()).unwrap_or(i64::MAX);
    let validity = certificate.validity();
    validity.not_before.timestamp() <= now && validity.not_after.timestamp() > now + margin
}

fn authority_key<'a>(certificate: &'a X509Certificate<'_>) -> Option<&'a [u8]> {
    certificate.extensions().iter().find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::AuthorityKeyIdentifier(found) => {
            found.key_identifier.as_ref().map(|key| key.0)
        }
        _ => None,
    })
}

fn subject_key<'a>(certificate: &'a X509Certificate<'_>) -> Option<&'a [u8]> {
    certificate.extensions().iter().find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::SubjectKeyIdentifier(key) => Some(key.0),
        _ => None,
    })
}

fn names_of(certificate: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(names)) = certificate.subject_alternative_name() else { return Vec::new() };
    let text = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => match bytes.len() {
            4 => <[u8; 4]>::try_from(*bytes).ok().map(|b| IpAddr::from(b).to_string()),
            16 => <[u8; 16]>::try_from(*bytes).ok().map(|b| IpAddr::from(b).to_string()),
            _ => None,
        },
        _ => None,
    };
    names.value.general_names.iter().filter_map(text).collect()
}

#[cfg(test)]
mod tests;
