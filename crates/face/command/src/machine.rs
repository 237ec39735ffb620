//! Registry configuration of this machine: the files and variables of container tools and Docker, so
//! that Mainstay can pull what `podman` or `skopeo` can. Mainstay adds one file: the credentials of a
//! cluster's registry, which `mainstay up` writes beside its kubeconfig.
//!
//! `lookup` reads a variable of the environment; no other access to the environment happens.

use mainstay_clock::Clock;
use mainstay_image::{
    credentials::{self, CredentialsError, Keyring},
    mirror::{self, FileError, MirrorRules},
    policy::{PolicyError, SignaturePolicy},
    registry::{CertFolders, ClientSettings, Proxies, ProxyError},
};
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// A variable or a file of the machine's configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// A variable names a proxy that cannot be used.
    #[error(transparent)]
    ReadProxies(#[from] ProxyError),
    /// A file with names and passwords cannot be read.
    #[error(transparent)]
    ReadCredentials(#[from] CredentialsError),
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    ReadFile {
        /// The file.
        path: PathBuf,
        /// Why it cannot be read.
        source: io::Error,
    },
    /// A file is too long.
    #[error("{}: it is too long", path.display())]
    FileTooLong {
        /// The file.
        path: PathBuf,
    },
    /// A `registries.conf` is no UTF-8.
    #[error("{}: it is not UTF-8", path.display())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
    },
    /// A `registries.conf` cannot be understood.
    #[error("{}: {source}", path.display())]
    ParseMirrors {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: FileError,
    },
    /// The variable `CONTAINERS_REGISTRIES_CONF` names no file.
    #[error("{path}: there is no such file")]
    NoMirrors {
        /// What it names.
        path: String,
    },
    /// The variable `CONTAINERS_POLICY_JSON` names no file.
    #[error("CONTAINERS_POLICY_JSON names \"{}\", which does not exist", path.display())]
    NoPolicy {
        /// What it names.
        path: PathBuf,
    },
    /// A policy cannot be understood.
    #[error("invalid policy in \"{}\": {source}", path.display())]
    ParsePolicy {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: PolicyError,
    },
}

/// Reads a variable of the environment.
pub type Lookup<'l> = &'l dyn Fn(&str) -> Option<String>;

/// The largest size of a configuration file, in bytes.
const MAX_BYTES: u64 = 4 << 20;

/// The registry client settings of this machine: proxies, credentials and certificates.
///
/// # Errors
/// A variable or file cannot be read.
pub fn settings(lookup: Lookup<'_>, clock: Clock) -> Result<ClientSettings, MachineError> {
    let proxies = Proxies::from_environment(lookup)?;
    let keyring = Arc::new(keyring(lookup)?);
    let certificates = CertFolders::usual(lookup);
    Ok(ClientSettings { proxies, keyring, certificates, ..ClientSettings::new(clock) })
}

/// Credentials for registries. Docker's file comes before those of container tools, in the order of
/// upstream's command lines.
///
/// # Errors
/// A file cannot be read.
pub fn keyring(lookup: Lookup<'_>) -> Result<Keyring, MachineError> {
    let mut files = credentials::default_files(lookup);
    // The sort is stable: the others keep their order.
    files.sort_by_key(|file| file.file_name().is_none_or(|name| name != "config.json"));
    // Credentials of clusters come last: a file that the user configured wins.
    files.extend(cluster_credentials_files(lookup));
    Ok(Keyring::from_files(&files)?)
}

/// The credentials file of a cluster's registry, in a folder beside the cluster's kubeconfig:
/// `DOCKER_CONFIG` can name the folder, `REGISTRY_AUTH_FILE` the file.
pub fn login_file(kubeconfig: &Path) -> PathBuf {
    let mut folder = kubeconfig.as_os_str().to_owned();
    folder.push(".registry");
    Path::new(&folder).join("config.json")
}

/// The credentials files of clusters that run, or ran: beside the kubeconfigs that kubectl reads, and
/// in the default data folder. Only files in a folder that other users can neither read nor write are
/// used.
fn cluster_credentials_files(lookup: Lookup<'_>) -> Vec<PathBuf> {
    let variable = |name: &str| lookup(name).filter(|value| !value.is_empty());
    let home = variable("HOME").map(PathBuf::from);
    let mut kubeconfigs: Vec<PathBuf> = match variable("KUBECONFIG") {
        Some(paths) => std::env::split_paths(&paths).collect(),
        None => home.iter().map(|home| home.join(".kube/config")).collect(),
    };
    let data = variable("XDG_DATA_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let data = data.or_else(|| home.map(|home| home.join(".local/share")));
    kubeconfigs.extend(data.map(|data| data.join("mainstay/kubeconfig")));
    let logins = kubeconfigs.iter().filter(|path| !path.as_os_str().is_empty());
    logins
        .map(|path| login_file(path))
        .filter(|file| {
            file.parent().is_some_and(mainstay_files::is_private_folder)
                && mainstay_files::open(file).is_ok()
        })
        .collect()
}

/// The paths at which container tools look for a file, in order.
fn config_paths(lookup: Lookup<'_>, name: &str) -> Vec<PathBuf> {
    let variable = |name: &str| lookup(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let own = variable("XDG_CONFIG_HOME")
        .or_else(|| variable("HOME").map(|home| home.join(".config")))
        .map(|folder| folder.join("containers"));
    let shared = ["/etc/containers", "/usr/share/containers"].map(PathBuf::from);
    own.into_iter().chain(shared).map(|folder| folder.join(name)).collect()
}

/// The content of a file; `None` if it does not exist.
fn read_optional(path: &Path) -> Result<Option<Vec<u8>>, MachineError> {
    let failed = |source| MachineError::ReadFile { path: path.to_owned(), source };
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
        Ok(about) if about.len() > MAX_BYTES => {
            Err(MachineError::FileTooLong { path: path.to_owned() })
        }
        Ok(_) => fs::read(path).map(Some).map_err(failed),
    }
}

/// The mirrors: `registries.conf`, version 2, and the drop-ins in `registries.conf.d` by name; a later
/// one replaces rules with the same prefix. The variable `CONTAINERS_REGISTRIES_CONF` names another
/// file, which then is the only one.
///
/// # Errors
/// A file cannot be read.
pub fn mirrors(lookup: Lookup<'_>) -> Result<MirrorRules, MachineError> {
    let mut rules = MirrorRules::default();
    let mut add = |path: &Path| -> Result<bool, MachineError> {
        let Some(bytes) = read_optional(path)? else { return Ok(false) };
        let text = String::from_utf8(bytes)
            .map_err(|_| MachineError::NotUtf8 { path: path.to_owned() })?;
        let found = mirror::from_toml(&text)
            .map_err(|source| MachineError::ParseMirrors { path: path.to_owned(), source })?;
        for rule in found.rules {
            rules.rules.retain(|earlier| earlier.prefix != rule.prefix);
            rules.rules.push(rule);
        }
        if !found.search.is_empty() {
            rules.search = found.search;
        }
        Ok(true)
    };
    if let Some(only) = lookup("CONTAINERS_REGISTRIES_CONF").filter(|path| !path.is_empty()) {
        if !add(Path::new(&only))? {
            return Err(MachineError::NoMirrors { path: only });
        }
        return Ok(rules);
    }
    for place in config_paths(lookup, "registries.conf") {
        if add(&place)? {
            break;
        }
    }
    // Of drop-ins with one name, the first folder's counts.
    let mut drop_ins: std::collections::BTreeMap<_, PathBuf> = std::collections::BTreeMap::new();
    for folder in config_paths(lookup, "registries.conf.d") {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|kind| kind == "conf") {
                drop_ins.entry(entry.file_name()).or_insert(path);
            }
        }
    }
    for drop_in in drop_ins.values() {
        add(drop_in)?;
    }
    Ok(rules)
}

/// The paths of a policy, in order: only that of the variable `CONTAINERS_POLICY_JSON` if it is set,
/// else those of container tools.
pub fn policy_places(lookup: Lookup<'_>) -> Vec<PathBuf> {
    match lookup("CONTAINERS_POLICY_JSON").filter(|path| !path.is_empty()) {
        Some(only) => vec![PathBuf::from(only)],
        None => config_paths(lookup, "policy.json"),
    }
}

/// The image policy of this machine's `policy.json`; `None` without such a file.
///
/// # Errors
/// A file cannot be read.
pub fn policy(lookup: Lookup<'_>) -> Result<Option<SignaturePolicy>, MachineError> {
    for place in policy_places(lookup) {
        let Some(bytes) = read_optional(&place)? else {
            // A policy that the user names must exist.
            if lookup("CONTAINERS_POLICY_JSON").is_some_and(|path| !path.is_empty()) {
                return Err(MachineError::NoPolicy { path: place });
            }
            continue;
        };
        let key = |path: &str| fs::read(path);
        return SignaturePolicy::read(&bytes, key)
            .map(Some)
            .map_err(|source| MachineError::ParsePolicy { path: place, source });
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(files: &[(&str, &str)]) -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = home.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        home
    }

    #[test]
    fn policy_variable_names_the_only_policy_file() {
        let set = |name: &str| (name == "CONTAINERS_POLICY_JSON").then(|| "/nowhere/p".to_owned());
        assert_eq!(policy_places(&set), [PathBuf::from("/nowhere/p")]);
        let missing = policy(&set).unwrap_err();
        assert_eq!(
            missing.to_string(),
            "CONTAINERS_POLICY_JSON names \"/nowhere/p\", which does not exist"
        );
        let home = |name: &str| (name == "HOME").then(|| "/h".to_owned());
        assert_eq!(policy_places(&home)[0], Path::new("/h/.config/containers/policy.json"));
        let config = |name: &str| (name == "XDG_CONFIG_HOME").then(|| "/c".to_owned());
        assert_eq!(policy_places(&config)[0], Path::new("/c/containers/policy.json"));
    }

    #[test]
    fn later_drop_in_replaces_a_rule_with_the_same_prefix() {
        let rule = |location: &str| {
            format!("[[registry]]\nprefix = \"a.example\"\nlocation = \"{location}\"\n")
        };
        let home = home(&[
            (".config/containers/registries.conf", &rule("first.example")),
            (".config/containers/registries.conf.d/2.conf", &rule("second.example")),
            (".config/containers/registries.conf.d/1.conf", &rule("other.example")),
            (".config/containers/registries.conf.d/3.off", "="),
        ]);
        let path = home.path().to_string_lossy().into_owned();
        let rules = mirrors(&|name| (name == "HOME").then(|| path.clone())).unwrap();
        let locations: Vec<&str> = rules
            .rules
            .iter()
            .filter(|rule| rule.prefix == "a.example")
            .map(|rule| &*rule.location)
            .collect();
        assert_eq!(locations, ["second.example"]);
    }

    #[test]
    fn errors_name_the_unreadable_file() {
        let home = home(&[
            ("broken", "="),
            (".config/containers/policy.json", "{}"),
            (".docker/config.json", "["),
        ]);
        let path = home.path().to_string_lossy().into_owned();
        let lookup = |name: &str| match name {
            "HOME" => Some(path.clone()),
            "CONTAINERS_REGISTRIES_CONF" => Some(format!("{path}/broken")),
            _ => None,
        };
        assert!(mirrors(&lookup).unwrap_err().to_string().starts_with(&format!("{path}/broken: ")));
        assert!(policy(&lookup).unwrap_err().to_string().starts_with("invalid policy in \""));
        assert!(keyring(&lookup).unwrap_err().to_string().contains("config.json"));
    }

    #[tokio::test]
    async fn cluster_credentials_are_read_only_from_a_private_folder_beside_the_kubeconfig() {
        use std::os::unix::fs::PermissionsExt as _;
        let login = r#"{"auths": {"127.0.0.1:5000": {"auth": "YTpi"}}}"#;
        let home = home(&[
            (".kube/config.registry/config.json", login),
            ("other.registry/config.json", &login.replace("5000", "5001")),
        ]);
        let path = home.path().to_string_lossy().into_owned();
        let mode = |name: &str, mode: u32| {
            let mode = fs::Permissions::from_mode(mode);
            fs::set_permissions(home.path().join(name), mode).unwrap();
        };
        let has_login = async |kubeconfig: Option<String>, registry: &str| {
            let lookup = |name: &str| match name {
                "HOME" => Some(path.clone()),
                "KUBECONFIG" => kubeconfig.clone(),
                _ => None,
            };
            keyring(&lookup).unwrap().login(&format!("{registry}/a")).await.unwrap().is_some()
        };
        let paths = Some(format!("/nowhere:{path}/other"));
        mode(".kube/config.registry", 0o755);
        assert!(!has_login(None, "127.0.0.1:5000").await, "others can look into the folder");
        mode(".kube/config.registry", 0o700);
        mode("other.registry", 0o700);
        assert!(has_login(None, "127.0.0.1:5000").await);
        assert!(!has_login(None, "127.0.0.1:5001").await);
        assert!(has_login(paths.clone(), "127.0.0.1:5001").await);
        assert!(!has_login(paths, "127.0.0.1:5000").await);
    }
}
