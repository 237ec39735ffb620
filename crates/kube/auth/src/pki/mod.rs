//! PKI of the cluster: the certificate authority (CA), its leaf certificates, and the token keys.
//!
//! One CA signs two leaf certificates: that of the TLS listener, and the client certificate of the
//! administrator. One more key signs ServiceAccount tokens. All keys are ECDSA P-256. Their
//! generation takes well under a millisecond each, so each ephemeral cluster has its own, and no
//! key is shared or shipped.
//!
//! The user rotates the token key: rename its file from `sa.key` to `sa-NAME.key` and restart. A
//! new key is then generated, and tokens of older keys are accepted until their files are removed.
//!
//! In a folder, the CA and the token keys are permanent, because kubeconfigs and tokens of users
//! depend on them. Damage to them is an error with the file and a remedy. Leaf certificates are
//! disposable. A leaf is issued again if it is missing, damaged, about to expire, signed by another
//! CA, or without a name that it needs. The serving certificate is also replaced while the server
//! runs (`serving`).
//!
//! Data flow: folder (or none) ─► [`Pki`] ─► TLS configuration, kubeconfig text, token key.
//!
//! This module does not revoke certificates.

pub(crate) mod der;
mod files;
mod leaf;
pub mod pem;
pub mod request;
mod serving;
mod sign;

use crate::authn::{Authenticator, ClientAuthority, TokenKeyError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use files::KeyFolder;
use leaf::Leaf;
use mainstay_clock::Clock;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType, IsCa, KeyPair,
    KeyUsagePurpose, SerialNumber, date_time_ymd,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ConfigBuilder, ServerConfig, WantsVerifier};
use serving::ServingCertificateResolver;
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use x509_parser::error::X509Error;
use x509_parser::prelude::{FromDer, GeneralName, ParsedExtension, X509Certificate};

pub use sign::{
    CLIENT, IssueError, KUBELET_CLIENT, KUBELET_SERVING, LEGACY, SignError, Signer,
    auto_approval_subresources,
};

/// Certificates are valid from this long before their creation, for clients whose clocks are
/// behind.
const BACKDATED: Duration = Duration::from_hours(1);
/// The CA is valid for ten years, as with kubeadm.
const AUTHORITY_LIFETIME: Duration = Duration::from_hours(3650 * 24);
/// A certificate is replaced this long before it expires.
const RENEW_BEFORE: Duration = Duration::from_hours(30 * 24);

/// The client certificate of the front proxy, with which the API server authenticates to aggregated
/// API servers.
pub struct FrontProxy {
    /// The certificate, and the intermediate ones up to the CA.
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

/// Keys or certificates are not available.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// The folder cannot be created or protected.
    #[error("cannot prepare the key folder {}; check who owns it and who may write there", .folder.display())]
    PrepareFolder {
        /// The folder.
        folder: PathBuf,
        /// The error.
        source: std::io::Error,
    },
    /// A file exists and cannot be read.
    #[error("cannot read {}; check who owns it and who may read it", .file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The error.
        source: std::io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {}; check the free space and who may write there", .file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// The error.
        source: std::io::Error,
    },
    /// A permanent file has invalid content.
    #[error(
        "{} is damaged ({problem}); put the file back from a backup, or remove the folder {} to have all keys made anew (kubeconfigs and tokens handed out before stop working)",
        .file.display(), .file.parent().unwrap_or(Path::new("/")).display()
    )]
    Damaged {
        /// The file.
        file: PathBuf,
        /// The problem of the content.
        problem: String,
    },
    /// A name for the serving certificate is neither an address nor a DNS name.
    #[error("{name:?} cannot be a name of the serving certificate")]
    ServingName {
        /// The name.
        name: String,
    },
    /// The cryptographic library fails.
    #[error("cannot make a key or certificate")]
    Generate(#[source] rcgen::Error),
    /// The TLS library rejects a certificate or key.
    #[error("cannot set up TLS")]
    Tls(#[source] rustls::Error),
    /// A token key has the wrong kind.
    #[error(transparent)]
    TokenKey(#[from] TokenKeyError),
}

/// A certificate and its key.
struct CertificateKeyPair {
    certificate: CertificateDer<'static>,
    certificate_pem: String,
    key: KeyPair,
}

/// The keys and certificates of one cluster.
pub struct Pki {
    clock: Clock,
    authority: Arc<CertificateKeyPair>,
    serving: CertificateKeyPair,
    /// Additional names of the serving certificate.
    names: Vec<String>,
    admin: CertificateKeyPair,
    /// PKCS#8 of the key that signs tokens.
    token_key: Vec<u8>,
    /// PKCS#8 of the keys that signed tokens before it.
    older_token_keys: Vec<Vec<u8>>,
}

impl fmt::Debug for Pki {
    /// Prints no keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pki").finish_non_exhaustive()
    }
}

// The names of the permanent files.
const AUTHORITY: &str = "ca";
const TOKENS: &str = "sa";

impl Pki {
    /// New keys that live as long as the process. `names` are additional host names and addresses
    /// under which clients reach the listener.
    pub fn ephemeral(clock: &Clock, names: &[String]) -> Result<Self, PkiError> {
        let authority = create_authority(generate()?, clock)?;
        let serving = Leaf::Serving(names).issue(&authority, clock)?;
        let admin = Leaf::Admin.issue(&authority, clock)?;
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

    /// Keys in a folder, which is created if needed (mode 0700, files 0600). Files are replaced
    /// atomically.
    pub fn load_or_create(
        folder: &Path,
        clock: &Clock,
        names: &[String],
    ) -> Result<Self, PkiError> {
        let folder = KeyFolder::prepare(folder)?;
        let authority = load_or_create_authority(&folder, clock)?;
        let serving = Leaf::Serving(names).load_or_issue(&folder, &authority, clock)?;
        let admin = Leaf::Admin.load_or_issue(&folder, &authority, clock)?;
        let token_file = format!("{TOKENS}.key");
        let token_key = if folder.read(&token_file)?.is_some() {
            read_token_key(&folder, &token_file)?
        } else {
            let key = generate()?;
            folder.write(&token_file, &key.serialize_pem())?;
            key.serialize_der()
        };
        let older_token_keys = folder
            .file_names(&format!("{TOKENS}-"), ".key")?
            .iter()
            .map(|name| read_token_key(&folder, name))
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

    /// The CA certificate: what clients must trust, and the content of `kube-root-ca.crt`.
    pub fn authority_pem(&self) -> &str {
        &self.authority.certificate_pem
    }

    /// The key of the CA, in PEM.
    pub fn authority_key_pem(&self) -> String {
        self.authority.key.serialize_pem()
    }

    /// Puts a CA into a folder for [`Pki::load_or_create`], in place of one that is there: processes that
    /// clients trust alike share it. Leaf certificates of another CA are issued again. Returns whether the
    /// folder changes.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn import_authority(
        folder: &Path,
        certificate_pem: &str,
        key_pem: &str,
    ) -> Result<bool, PkiError> {
        let folder = KeyFolder::prepare(folder)?;
        let (key_file, certificate_file) = (format!("{AUTHORITY}.key"), format!("{AUTHORITY}.crt"));
        let same = folder.read(&certificate_file)?.as_deref() == Some(certificate_pem)
            && folder.read(&key_file)?.as_deref() == Some(key_pem);
        if !same {
            // A certificate without its key would count as damaged, a key alone does not.
            folder.remove(&certificate_file)?;
            folder.write(&key_file, key_pem)?;
            folder.write(&certificate_file, certificate_pem)?;
        }
        Ok(!same)
    }

    /// The administrator's certificate and key, in PEM.
    pub fn admin_pem(&self) -> (&str, String) {
        (&self.admin.certificate_pem, self.admin.key.serialize_pem())
    }

    /// A new client certificate for requests to aggregated API servers, with the name
    /// `front-proxy`.
    pub fn front_proxy(&self, clock: &Clock) -> Result<FrontProxy, PkiError> {
        let pair = Leaf::FrontProxy.issue(&self.authority, clock)?;
        let key = PrivatePkcs8KeyDer::from(pair.key.serialize_der());
        Ok(FrontProxy { chain: vec![pair.certificate], key: PrivateKeyDer::Pkcs8(key) })
    }

    /// PKCS#8 of the key that signs service-account tokens.
    pub fn token_key_pkcs8(&self) -> &[u8] {
        &self.token_key
    }

    /// The CA for client certificates.
    pub fn client_authority(&self) -> Result<ClientAuthority, PkiError> {
        ClientAuthority::new(self.authority.certificate.clone()).map_err(PkiError::Tls)
    }

    /// The signer of `CertificateSigningRequest` objects.
    pub fn signer(&self, clock: Clock) -> Result<Signer, PkiError> {
        Signer::new(&self.authority, clock)
    }

    /// An authenticator that issues and verifies the tokens of this cluster, and verifies its
    /// certificates.
    pub fn authenticator(&self, clock: Clock) -> Result<Authenticator, PkiError> {
        let older = self.older_token_keys.iter().map(Vec::as_slice);
        let authenticator = Authenticator::with_keys(&self.token_key, older, clock)?;
        Ok(authenticator.with_clients(self.client_authority()?))
    }

    /// The TLS configuration of the listener. Client certificates are optional, since a client may
    /// have a token, and TLS checks only their keys; [`Pki::client_authority`] verifies them.
    /// Offers HTTP/2 and HTTP/1.1, TLS 1.2 and 1.3.
    ///
    /// # Errors
    /// A certificate cannot be used.
    pub fn server_config(&self) -> Result<Arc<ServerConfig>, PkiError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider);
        self.server_config_from(
            builder.with_safe_default_protocol_versions().map_err(PkiError::Tls)?,
        )
    }

    /// The same with the versions and cipher suites of `builder`.
    ///
    /// # Errors
    /// A certificate cannot be used.
    pub fn server_config_from(
        &self,
        builder: ConfigBuilder<ServerConfig, WantsVerifier>,
    ) -> Result<Arc<ServerConfig>, PkiError> {
        let verifier = self.client_authority()?.tls_verifier();
        let mut config = builder
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::new(self.serving_certificate()?));
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    /// The certificate of the listener, which is replaced before it expires.
    fn serving_certificate(&self) -> Result<ServingCertificateResolver, PkiError> {
        ServingCertificateResolver::new(
            Arc::clone(&self.authority),
            &self.serving,
            self.names.clone(),
            self.clock,
        )
    }

    /// The kubeconfig of the administrator, with embedded certificates. `server` is the URL of the
    /// listener, `name` the name of the cluster, the user and the context.
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

    /// Replaces a file with [`Pki::kubeconfig`] atomically; only its owner may read it.
    pub fn write_kubeconfig(&self, file: &Path, server: &str, name: &str) -> Result<(), PkiError> {
        files::write(file, &self.kubeconfig(server, name))
    }
}

/// Reads a key that signs tokens or signed them before.
fn read_token_key(folder: &KeyFolder, name: &str) -> Result<Vec<u8>, PkiError> {
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

/// The common parameters of certificates: subject, validity period, a random positive serial
/// number.
fn certificate_params(
    clock: &Clock,
    lifetime: Duration,
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
    params.not_after = epoch + Duration::from_secs(now) + lifetime;
    let mut serial = [0_u8; 16];
    getrandom::fill(&mut serial).map_err(|_| PkiError::Generate(rcgen::Error::RingUnspecified))?;
    serial[0] &= 0x7f;
    params.serial_number = Some(SerialNumber::from_slice(&serial));
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

fn key_pair_of(certificate: &Certificate, key: KeyPair) -> CertificateKeyPair {
    CertificateKeyPair {
        certificate: certificate.der().clone(),
        certificate_pem: certificate.pem(),
        key,
    }
}

fn create_authority(key: KeyPair, clock: &Clock) -> Result<CertificateKeyPair, PkiError> {
    // Each CA has its own name. So a client with another cluster's certificate gets "unknown
    // authority" instead of "bad signature". The name is a digest of the key and outlives renewal.
    let digest = Sha256::digest(key.public_key_raw());
    let name =
        format!("mainstay-ca-{:02x}{:02x}{:02x}{:02x}", digest[0], digest[1], digest[2], digest[3]);
    let mut params = certificate_params(clock, AUTHORITY_LIFETIME, &name, None)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
    ];
    let certificate = params.self_signed(&key).map_err(PkiError::Generate)?;
    Ok(key_pair_of(&certificate, key))
}

/// Reads the CA, or creates it. The key is written first: an interrupted start leaves a key without
/// a certificate, and the next start completes it.
fn load_or_create_authority(
    folder: &KeyFolder,
    clock: &Clock,
) -> Result<CertificateKeyPair, PkiError> {
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
        let der =
            decode_pem(&pem).map_err(|problem| folder.damaged(&certificate_file, &problem))?;
        let parsed = parse(&der).map_err(|problem| folder.damaged(&certificate_file, &problem))?;
        if parsed.public_key().subject_public_key.data != key.public_key_raw() {
            return Err(folder.damaged(&certificate_file, &"it belongs to another key"));
        }
        if is_valid_for_long(&parsed, clock) {
            return Ok(CertificateKeyPair { certificate: der.clone(), certificate_pem: pem, key });
        }
    }
    let authority = create_authority(key, clock)?;
    folder.write(&certificate_file, &authority.certificate_pem)?;
    Ok(authority)
}

/// A certificate that does not parse.
#[derive(Debug, thiserror::Error)]
enum ParseCertificateError {
    /// The text has no PEM block with a certificate.
    #[error("it holds no PEM certificate")]
    Pem,
    /// The bytes are no certificate.
    #[error("no X.509 certificate: {0}")]
    X509(#[from] x509_parser::nom::Err<X509Error>),
}

/// Decodes the first certificate of a PEM text. As in clients of a kubeconfig, both markers must be
/// present.
fn decode_pem(pem: &str) -> Result<CertificateDer<'static>, ParseCertificateError> {
    CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|_| ParseCertificateError::Pem)
}

fn parse(der: &[u8]) -> Result<X509Certificate<'_>, ParseCertificateError> {
    let (_, certificate) = X509Certificate::from_der(der)?;
    Ok(certificate)
}

/// Whether a certificate is valid now and not about to expire.
fn is_valid_for_long(certificate: &X509Certificate<'_>, clock: &Clock) -> bool {
    let now = clock.now().as_second();
    let margin = i64::try_from(RENEW_BEFORE.as_secs()).unwrap_or(i64::MAX);
    let validity = certificate.validity();
    validity.not_before.timestamp() <= now && validity.not_after.timestamp() > now + margin
}

fn subject_key_id<'a>(certificate: &'a X509Certificate<'_>) -> Option<&'a [u8]> {
    certificate.extensions().iter().find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::SubjectKeyIdentifier(key) => Some(key.0),
        _ => None,
    })
}

fn alternative_names(certificate: &X509Certificate<'_>) -> Vec<String> {
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
