//! Registry credentials: files of Docker and of containers' tools, pull secrets, credential
//! helpers.
//!
//! A key is a registry, a repository, or a path above repositories. The longest matching key wins;
//! of equal ones, the first that was read. A key may be a URL (`https://index.docker.io/v1/`), as
//! Docker writes it. In pull secrets it may have `*` in a part of the host, as Kubernetes allows.

use crate::{reference::DEFAULT_DOMAIN, registry::RegistrySecret};
use base64::Engine as _;
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// The timeout of a helper, and the maximum length of its output in bytes.
const HELPER_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_HELPER_OUTPUT: u64 = 64 << 10;
/// The maximum length of a file, in bytes.
const MAX_FILE_LENGTH: u64 = 8 << 20;

/// Why credentials cannot be read. The text never contains the credentials.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why it cannot be read.
        source: io::Error,
    },
    /// The content is not a credentials file.
    #[error("{place} is not a credentials file (line {line}, column {column})")]
    Json {
        /// The file.
        place: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// An entry is malformed.
    #[error("{place}: the entry for {key:?} {why}")]
    Entry {
        /// The file.
        place: String,
        /// The key of the entry.
        key: String,
        /// The fault.
        why: &'static str,
    },
    /// A helper fails.
    #[error("credential helper {helper}: {why}")]
    Helper {
        /// The helper.
        helper: String,
        /// Why it fails.
        why: String,
    },
}

/// How a client authenticates at a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Login {
    /// User name and password.
    Password {
        /// The user name.
        name: String,
        /// The password.
        password: RegistrySecret,
    },
    /// An identity token, which is exchanged for access tokens.
    Identity(RegistrySecret),
}

impl Login {
    /// The password or token.
    pub fn secret(&self) -> &RegistrySecret {
        match self {
            Self::Password { password, .. } => password,
            Self::Identity(token) => token,
        }
    }
}

#[derive(Clone, Debug)]
enum Entry {
    Login(Login),
    Helper(String),
}

/// The credentials of several files.
#[derive(Clone, Debug, Default)]
pub struct Keyring {
    /// Keys without scheme, in the order of reading.
    entries: Vec<(String, Entry)>,
    /// Helpers for registries without a key.
    defaults: Vec<String>,
    /// The folder of the helpers; by default they are in `PATH`.
    helpers: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    #[serde(default)]
    auths: Option<BTreeMap<String, Auth>>,
    #[serde(default)]
    cred_helpers: Option<BTreeMap<String, String>>,
    #[serde(default)]
    creds_store: Option<String>,
}

#[derive(Deserialize, Default)]
struct Auth {
    #[serde(default, rename = "auth")]
    joined: Option<String>,
    #[serde(default)]
    username: Option<String>,
    #[serde(default)]
    password: Option<String>,
    #[serde(default)]
    identitytoken: Option<String>,
}

/// The credentials files in the order in which Docker and containers' tools read them. `lookup`
/// reads an environment variable.
pub fn default_files(lookup: impl Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    let path = |name: &str, rest: &str| {
        lookup(name).filter(|value| !value.is_empty()).map(|value| Path::new(&value).join(rest))
    };
    if let Some(file) = path("REGISTRY_AUTH_FILE", "") {
        // Joining with nothing appends a slash.
        return vec![file.components().collect()];
    }
    let config = path("XDG_CONFIG_HOME", "containers/auth.json")
        .or_else(|| path("HOME", ".config/containers/auth.json"));
    let docker =
        path("DOCKER_CONFIG", "config.json").or_else(|| path("HOME", ".docker/config.json"));
    let first = path("XDG_RUNTIME_DIR", "containers/auth.json");
    [first, config, docker, path("HOME", ".dockercfg")].into_iter().flatten().collect()
}

impl Keyring {
    /// A keyring without credentials.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the files that exist.
    pub fn from_files(paths: &[PathBuf]) -> Result<Self, CredentialsError> {
        let mut keyring = Self::default();
        for path in paths {
            let failed = |source| CredentialsError::Io { path: path.clone(), source };
            let length = match std::fs::metadata(path) {
                Ok(about) => about.len(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(failed(error)),
            };
            if length > MAX_FILE_LENGTH {
                return Err(failed(io::Error::other("it is larger than 8 MiB")));
            }
            let bytes = std::fs::read(path).map_err(failed)?;
            keyring.add_file(&path.display().to_string(), &bytes)?;
        }
        Ok(keyring)
    }

    /// Adds the content of a file: Docker's `config.json`, containers' `auth.json`, the value of a
    /// pull secret (`.dockerconfigjson`), or the old format with only the content of `auths`
    /// (`.dockercfg`). `place` names the file in errors.
    pub fn add_file(&mut self, place: &str, bytes: &[u8]) -> Result<(), CredentialsError> {
        // The text of a parser error could contain a part of a password.
        let invalid = |error: serde_json::Error| CredentialsError::Json {
            place: place.to_owned(),
            line: error.line(),
            column: error.column(),
        };
        let value: serde_json::Value = serde_json::from_slice(bytes).map_err(invalid)?;
        let known = ["auths", "credHelpers", "credsStore"];
        let old = value.as_object().is_some_and(|fields| {
            !fields.is_empty()
                && known.iter().all(|name| !fields.contains_key(*name))
                && fields.values().all(|one| one.get("auth").is_some())
        });
        let file: File = if old {
            let auths = serde_json::from_value(value).map_err(invalid)?;
            File { auths: Some(auths), cred_helpers: None, creds_store: None }
        } else {
            serde_json::from_value(value).map_err(invalid)?
        };
        for (key, helper) in file.cred_helpers.into_iter().flatten() {
            self.entries.push((normalized(&key), Entry::Helper(check_helper_name(helper)?)));
        }
        for (key, auth) in file.auths.into_iter().flatten() {
            let login = login(auth).map_err(|why| CredentialsError::Entry {
                place: place.to_owned(),
                key: key.clone(),
                why,
            })?;
            // Docker leaves an empty entry where a helper has the password.
            self.entries.extend(login.map(|login| (normalized(&key), Entry::Login(login))));
        }
        if let Some(helper) = file.creds_store.filter(|helper| !helper.is_empty()) {
            self.defaults.push(check_helper_name(helper)?);
        }
        Ok(())
    }

    /// Adds a user name and password for a registry or a repository.
    pub fn add(&mut self, key: &str, name: &str, password: RegistrySecret) {
        let login = Login::Password { name: name.to_owned(), password };
        self.entries.push((normalized(key), Entry::Login(login)));
    }

    /// Uses the helpers in a folder instead of those in `PATH`.
    #[must_use]
    pub fn with_helpers_in(mut self, folder: PathBuf) -> Self {
        self.helpers = Some(folder);
        self
    }

    /// The credentials for a repository, whose name includes its registry.
    pub async fn login(&self, repository: &str) -> Result<Option<Login>, CredentialsError> {
        let mut best: Option<(usize, &Entry)> = None;
        for (key, entry) in &self.entries {
            if let Some(specificity) = specificity(key, repository)
                && best.is_none_or(|(known, _)| {
                    specificity > known && !mainstay_fault::is_on("the-first-key-is-used")
                })
            {
                best = Some((specificity, entry));
            }
        }
        let domain = repository.split('/').next().unwrap_or_default();
        let server = if domain == DEFAULT_DOMAIN { "https://index.docker.io/v1/" } else { domain };
        match best {
            Some((_, Entry::Login(login))) => return Ok(Some(login.clone())),
            Some((_, Entry::Helper(helper))) => {
                if let Some(login) = self.run_helper(helper, server).await? {
                    return Ok(Some(login));
                }
            }
            None => {}
        }
        for helper in &self.defaults {
            if let Some(login) = self.run_helper(helper, server).await? {
                return Ok(Some(login));
            }
        }
        Ok(None)
    }
}

/// A key without scheme and API version, with one name for Docker's registry.
fn normalized(key: &str) -> String {
    let rest = key.split_once("://").map_or(key, |(_, rest)| rest).trim_end_matches('/');
    let rest = rest.strip_suffix("/v1").or_else(|| rest.strip_suffix("/v2")).unwrap_or(rest);
    let (domain, path) = rest.split_once('/').map_or((rest, None), |(a, b)| (a, Some(b)));
    let domain = match domain {
        "index.docker.io" | "registry-1.docker.io" | "registry.hub.docker.com" => DEFAULT_DOMAIN,
        other => other,
    };
    path.map_or_else(|| domain.to_owned(), |path| format!("{domain}/{path}"))
}

/// How specifically a key matches a repository; none if it does not match.
fn specificity(key: &str, repository: &str) -> Option<usize> {
    let (key_domain, key_path) = key.split_once('/').unwrap_or((key, ""));
    let (domain, path) = repository.split_once('/').unwrap_or((repository, ""));
    let exact = key_domain == domain;
    if !exact && (!key_domain.contains('*') || !covers(key_domain, domain)) {
        return None;
    }
    let rest = path.strip_prefix(key_path)?;
    let whole = key_path.is_empty() || rest.is_empty() || rest.starts_with('/');
    whole.then_some(2 * key_path.len() + usize::from(exact))
}

/// Whether a pattern matches a host: part by part, with `*` for any characters but dots. Ports must
/// be equal.
fn covers(pattern: &str, domain: &str) -> bool {
    let port = |text: &str| text.split_once(':').map(|(_, port)| port.to_owned());
    let host = |text: &str| text.split(':').next().unwrap_or_default().to_owned();
    let (patterns, parts) = (host(pattern), host(domain));
    let (patterns, parts): (Vec<_>, Vec<_>) =
        (patterns.split('.').collect(), parts.split('.').collect());
    port(pattern) == port(domain)
        && patterns.len() == parts.len()
        && patterns.iter().zip(&parts).all(|(pattern, part)| match pattern.split_once('*') {
            None => pattern == part,
            Some((start, end)) => {
                !end.contains('*')
                    && part.len() >= start.len() + end.len()
                    && part.starts_with(start)
                    && part.ends_with(end)
            }
        })
}

fn login(auth: Auth) -> Result<Option<Login>, &'static str> {
    let full = |text: Option<String>| text.filter(|text| !text.is_empty());
    if let Some(token) = full(auth.identitytoken) {
        return Ok(Some(Login::Identity(RegistrySecret::new(token))));
    }
    let (name, password) = match full(auth.joined) {
        Some(text) => {
            let engine = base64::engine::GeneralPurpose::new(
                &base64::alphabet::STANDARD,
                base64::engine::GeneralPurposeConfig::new()
                    .with_decode_padding_mode(base64::engine::DecodePaddingMode::Indifferent),
            );
            let bytes = engine.decode(text.trim()).map_err(|_| "is not base64")?;
            let text = String::from_utf8(bytes).map_err(|_| "is not UTF-8 text")?;
            let (name, password) = text.split_once(':').ok_or("has no colon")?;
            (name.to_owned(), password.trim_matches('\0').to_owned())
        }
        None => match (full(auth.username), full(auth.password)) {
            (Some(name), Some(password)) => (name, password),
            _ => return Ok(None),
        },
    };
    if name.contains(['\r', '\n']) || password.contains(['\r', '\n']) {
        return Err("contains a line break");
    }
    if name == "<token>" {
        return Ok(Some(Login::Identity(RegistrySecret::new(password))));
    }
    Ok(Some(Login::Password { name, password: RegistrySecret::new(password) }))
}

/// Checks the name of a helper, which becomes part of a program's name.
fn check_helper_name(helper: String) -> Result<String, CredentialsError> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if !helper.is_empty() && helper.bytes().all(is_allowed) {
        return Ok(helper);
    }
    let why = "its name has other characters than letters, digits, dots and dashes".to_owned();
    Err(CredentialsError::Helper { helper: helper.chars().take(50).collect(), why })
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct HelperOutput {
    username: String,
    secret: String,
}

impl Keyring {
    /// Runs a helper: `docker-credential-<name> get`, with the server on its standard input.
    async fn run_helper(
        &self,
        helper: &str,
        server: &str,
    ) -> Result<Option<Login>, CredentialsError> {
        let failed = |why: String| CredentialsError::Helper { helper: helper.to_owned(), why };
        let program = format!("docker-credential-{helper}");
        let program = self
            .helpers
            .as_ref()
            .map_or_else(|| PathBuf::from(&program), |folder| folder.join(&program));
        let run = async {
            let mut child = tokio::process::Command::new(&program)
                .arg("get")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .kill_on_drop(true)
                .spawn()?;
            if let Some(mut input) = child.stdin.take() {
                // A helper that does not read its input may answer nevertheless.
                let _ = input.write_all(server.as_bytes()).await;
            }
            let mut text = Vec::new();
            if let Some(output) = child.stdout.take() {
                output.take(MAX_HELPER_OUTPUT).read_to_end(&mut text).await?;
            }
            Ok::<_, io::Error>((child.wait().await?, text))
        };
        let (status, output) = tokio::time::timeout(HELPER_TIMEOUT, run)
            .await
            .map_err(|_| {
                failed(format!("it did not answer within {} s", HELPER_TIMEOUT.as_secs()))
            })?
            .map_err(|error| failed(error.to_string()))?;
        if !status.success() {
            let none = String::from_utf8_lossy(&output).contains("credentials not found");
            return if none { Ok(None) } else { Err(failed(format!("it exited with {status}"))) };
        }
        let answer: HelperOutput = serde_json::from_slice(&output)
            .map_err(|_| failed("its output is not JSON with Username and Secret".to_owned()))?;
        login(Auth {
            username: Some(answer.username),
            password: Some(answer.secret),
            ..Auth::default()
        })
        .map(|login| {
            login.map(|login| match login {
                Login::Password { name, password } if name == "<token>" => {
                    Login::Identity(password)
                }
                other => other,
            })
        })
        .map_err(|why| failed(format!("its output {why}")))
    }
}
