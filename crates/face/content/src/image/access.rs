//! Registry access and image policy: options and their meaning.

use clap::Args;
use mainstay_cause::{Cause, FileLocation};
use mainstay_clock::Clock;
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_command::text::escape_controls;
use mainstay_command::{environment, machine};
use mainstay_gocompat::io_error_text;
use mainstay_image::{
    credentials::Keyring,
    mirror::{self, MirrorRules},
    policy::SignaturePolicy,
    reference::ImageReference,
    registry::{CertFolders, ClientSettings, ImageClient, Proxies, Security},
    store::ImageStore,
};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// Options of everything that talks to registries.
#[derive(Args, Debug)]
pub(crate) struct RegistryAccess {
    /// File with credentials for registries, in the format of Docker, Podman and pull secrets
    /// (repeatable) [default: the files of Podman and Docker].
    #[arg(long, value_name = "FILE", help_heading = "Registries")]
    authfile: Vec<PathBuf>,
    /// File with certificates (PEM) to trust in addition to those of the machine (repeatable).
    #[arg(long, value_name = "FILE", help_heading = "Registries")]
    ca_file: Vec<PathBuf>,
    /// Accept any certificate, and plain HTTP from a registry without TLS. This is the default for
    /// registries on this machine.
    #[arg(long, help_heading = "Registries")]
    insecure: bool,
    /// Use plain HTTP.
    #[arg(long, conflicts_with = "insecure", help_heading = "Registries")]
    plain_http: bool,
    /// Number of retries after an error that may be temporary.
    #[arg(long, value_name = "N", default_value_t = 5, help_heading = "Registries")]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=20))]
    retries: u32,
    /// Show no progress. Only terminals show progress.
    #[arg(short, long)]
    pub(super) quiet: bool,
}

/// Options of everything that looks for images in registries.
#[derive(Args, Debug)]
pub(crate) struct Mirrors {
    /// File with mirrors and blocked registries, `registries.conf` version 2 [default: the file of
    /// Podman].
    #[arg(long, value_name = "FILE", help_heading = "Mirrors and policy")]
    registries_conf: Option<PathBuf>,
    /// File with objects of the kinds `ImageDigestMirrorSet`, `ImageTagMirrorSet` and
    /// `ImageContentSourcePolicy` (repeatable).
    #[arg(long, value_name = "FILE", help_heading = "Mirrors and policy")]
    mirrors: Vec<PathBuf>,
}

/// Options of everything that takes images from registries.
#[derive(Args, Debug)]
pub struct TrustArguments {
    #[command(flatten)]
    pub(super) registry_access: RegistryAccess,
    #[command(flatten)]
    pub(super) mirrors: Mirrors,
    /// File with the signature policy, the `policy.json` of container tools [default: the file of
    /// Podman].
    #[arg(long, value_name = "FILE", help_heading = "Mirrors and policy")]
    policy: Option<PathBuf>,
    /// Accept only images that cosign has signed with the private key of this public key (repeatable: one
    /// of the keys).
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "policy",
        help_heading = "Mirrors and policy"
    )]
    cosign_key: Vec<PathBuf>,
}

/// Where images are kept.
#[derive(Args, Debug)]
pub struct StoreFolder {
    /// Folder of the image store [default: `mainstay/images` in the user's data folder].
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
}

fn unreadable(path: &Path, why: &str, remedy: &str) -> CommandFailure {
    CommandFailure::usage(
        Cause::new(escape_controls(why)).at(FileLocation::file(path)).remedy(remedy),
    )
}

fn read(path: &Path, remedy: &str) -> Result<Vec<u8>, CommandFailure> {
    std::fs::read(path).map_err(|error| unreadable(path, &io_error_text(&error), remedy))
}

impl StoreFolder {
    /// Opens the image store.
    pub(crate) fn open(&self, io: &CommandIo<'_>) -> Result<ImageStore, CommandFailure> {
        let folder = match &self.store {
            Some(folder) => io.folder.join(folder),
            None => environment::image_folder(io.variable).ok_or_else(|| {
                CommandFailure::usage(
                    Cause::new(
                        "there is no folder for images: neither XDG_DATA_HOME nor HOME is set",
                    )
                    .remedy("name one with --store DIR"),
                )
            })?,
        };
        ImageStore::open(folder)
            .map_err(|error| super::failure::store("the store cannot be opened", &error))
    }
}

impl RegistryAccess {
    /// The registry client settings of these options.
    pub(crate) fn settings(&self, io: &CommandIo<'_>) -> Result<ClientSettings, CommandFailure> {
        let mut settings = ClientSettings::new(Clock::system());
        settings.attempts = self.retries + 1;
        settings.proxies = Proxies::from_environment(io.variable).map_err(|error| {
            let cause = Cause::new("the variables of the proxy cannot be used");
            let cause = cause.because(Cause::new(error.to_string()));
            CommandFailure::usage(cause.remedy("correct HTTPS_PROXY and HTTP_PROXY"))
        })?;
        settings.keyring = Arc::new(self.keyring(io)?);
        settings.certificates = CertFolders::usual(io.variable);
        for file in &self.ca_file {
            let remedy = "name a file with certificates in PEM";
            let bytes = read(&io.folder.join(file), remedy)?;
            let before = settings.authorities.len();
            for certificate in CertificateDer::pem_slice_iter(&bytes) {
                let certificate =
                    certificate.map_err(|error| unreadable(file, &error.to_string(), remedy))?;
                settings.authorities.push(certificate);
            }
            if settings.authorities.len() == before {
                return Err(unreadable(file, "the file contains no certificate", remedy));
            }
        }
        Ok(settings)
    }

    fn keyring(&self, io: &CommandIo<'_>) -> Result<Keyring, CommandFailure> {
        let remedy = "correct the file, or name another one with --authfile FILE";
        let unusable = |why: String| {
            let cause = Cause::new("the credentials of registries cannot be read");
            CommandFailure::usage(cause.because(Cause::new(escape_controls(&why))).remedy(remedy))
        };
        if self.authfile.is_empty() {
            return machine::keyring(io.variable).map_err(|error| unusable(error.to_string()));
        }
        let mut keyring = Keyring::new();
        for file in &self.authfile {
            // A named file must exist.
            let bytes = read(&io.folder.join(file), remedy)?;
            let place = file.display().to_string();
            keyring.add_file(&place, &bytes).map_err(|error| unusable(error.to_string()))?;
        }
        Ok(keyring)
    }

    /// The transport security for an image's registry.
    pub(crate) fn security(&self, reference: &ImageReference) -> Security {
        if self.plain_http {
            Security::Plain
        } else if self.insecure || is_this_machine(reference.domain()) {
            Security::Insecure
        } else {
            Security::Tls
        }
    }

    /// A registry client with these settings.
    pub(crate) fn client(settings: ClientSettings) -> Result<ImageClient, CommandFailure> {
        ImageClient::new(settings)
            .map_err(|error| super::failure::registry("the registry client cannot start", &error))
    }
}

/// Whether a registry is on this machine, so that traffic does not leave it.
fn is_this_machine(domain: &str) -> bool {
    let host = match domain.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => domain.split(':').next().unwrap_or_default(),
    };
    let address = host.parse::<std::net::IpAddr>().ok();
    host == "localhost" || address.is_some_and(|address| address.is_loopback())
}

impl Mirrors {
    /// The mirror rules. Mirrors have the transport security of this machine's registries, or that of
    /// `registry_access` for all.
    pub(crate) fn rules(
        &self,
        registry_access: &RegistryAccess,
        io: &CommandIo<'_>,
    ) -> Result<MirrorRules, CommandFailure> {
        let remedy = "correct it, or name another one with --registries-conf FILE";
        let mut rules = MirrorRules::default();
        let mut objects = Vec::new();
        for file in &self.mirrors {
            let remedy = "name a file with ImageDigestMirrorSets, ImageTagMirrorSets or ImageContentSourcePolicies";
            let bytes = read(&io.folder.join(file), remedy)?;
            let options = mainstay_yaml::Options::default();
            for document in mainstay_yaml::documents(&bytes, &options) {
                let value = document.map_err(|error| {
                    let place = FileLocation::at(file.as_path(), error.line, error.column);
                    CommandFailure::usage(
                        Cause::new(escape_controls(&error.fault.to_string()))
                            .at(place)
                            .remedy(remedy),
                    )
                })?;
                let value = value.value;
                match value.get("items").and_then(serde_json::Value::as_array) {
                    Some(items) => objects.extend(items.iter().cloned()),
                    None => objects.push(value),
                }
            }
        }
        let of_objects = mirror::from_objects(&objects).map_err(|error| {
            CommandFailure::usage(
                Cause::new(escape_controls(&error.to_string())).remedy("correct the object"),
            )
        })?;
        rules.rules.extend(of_objects.rules);
        let of_files = match &self.registries_conf {
            Some(file) => {
                let file = io.folder.join(file);
                let bytes = read(&file, remedy)?;
                let text = std::str::from_utf8(&bytes)
                    .map_err(|_| unreadable(&file, "it is not UTF-8", remedy))?;
                mirror::from_toml(text)
                    .map_err(|error| unreadable(&file, &error.to_string(), remedy))?
            }
            None => machine::mirrors(io.variable).map_err(|error| {
                CommandFailure::usage(
                    Cause::new(escape_controls(&error.to_string())).remedy(remedy),
                )
            })?,
        };
        rules.rules.extend(of_files.rules);
        let trusted = |location: &str| {
            let domain = location.split('/').next().unwrap_or_default();
            registry_access.insecure || registry_access.plain_http || is_this_machine(domain)
        };
        for rule in &mut rules.rules {
            let itself = if rule.location.is_empty() { &rule.prefix } else { &rule.location };
            rule.insecure |= trusted(itself);
            for mirror in &mut rule.mirrors {
                mirror.insecure |= trusted(&mirror.location);
            }
        }
        Ok(rules)
    }
}

impl TrustArguments {
    /// The policy that decides which images are accepted.
    pub(crate) fn policy(&self, io: &CommandIo<'_>) -> Result<SignaturePolicy, CommandFailure> {
        let from = |text: &[u8], file: &Path, remedy: &str| {
            let folder = io.folder.clone();
            SignaturePolicy::read(text, |path| std::fs::read(folder.join(path)))
                .map_err(|error| unreadable(file, &error.to_string(), remedy))
        };
        if !self.cosign_key.is_empty() {
            let keys: Vec<_> =
                self.cosign_key.iter().map(|file| file.display().to_string()).collect();
            let policy = serde_json::json!({"default": [{
                "type": "sigstoreSigned",
                "keyPaths": keys,
                "signedIdentity": {"type": "matchRepository"},
            }]});
            let remedy = "name public keys of cosign (PEM)";
            let file = self.cosign_key.first().map_or(Path::new(""), PathBuf::as_path);
            return from(policy.to_string().as_bytes(), file, remedy);
        }
        let remedy = "correct it, or name another one with --policy FILE";
        if let Some(file) = &self.policy {
            let file = io.folder.join(file);
            return from(&read(&file, remedy)?, &file, remedy);
        }
        let found = machine::policy(io.variable);
        let found = found.map_err(|error| {
            CommandFailure::usage(Cause::new(escape_controls(&error.to_string())).remedy(remedy))
        })?;
        Ok(found.unwrap_or_else(SignaturePolicy::accept_anything))
    }
}
