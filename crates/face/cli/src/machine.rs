//! How this machine wants images to be got: the files and variables that containers' tools and
//! Docker read, so what `podman` or `skopeo` can pull, we can. One thing is Mainstay's own: the
//! password of a cluster's registry, which `mainstay up` writes beside its kubeconfig.
//!
//! `lookup` reads a variable of the environment; nothing else of the environment is looked at.

use mainstay_clock::Clock;
use mainstay_image::{
    credentials::{self, CredentialsError, Keyring},
    mirror::{self, FileError, Rules},
    policy::{Policy, PolicyError},
    registry::{CertFolders, Proxies, ProxyError, Settings},
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
    #[error("CONTAINERS_POLICY_JSON names \"{}\", which is not there", path.display())]
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

/// How long a file of a machine's configuration may be, in bytes.
const LONGEST: u64 = 4 << 20;

/// How registries are talked to from here: the machine's proxies, credentials and certificates.
///
/// # Errors
/// Which variable or file cannot be read, and why.
pub fn settings(lookup: Lookup<'_>, clock: Clock) -> Result<Settings, MachineError> {
    let proxies = Proxies::from_environment(lookup)?;
    let keyring = Arc::new(keyring(lookup)?);
    let certificates = CertFolders::usual(lookup);
    Ok(Settings { proxies, keyring, certificates, ..Settings::new(clock) })
}

/// Names and passwords for registries. Docker's file comes before those of containers' tools, as
/// upstream's command lines look for them.
///
/// # Errors
/// Which file cannot be read, and why.
pub fn keyring(lookup: Lookup<'_>) -> Result<Keyring, MachineError> {
    let mut files = credentials::default_files(lookup);
    // The sort is stable: the others keep their order.
    files.sort_by_key(|file| file.file_name().is_none_or(|name| name != "config.json"));
    // Those of clusters come last: a file that somebody chose wins.
    files.extend(cluster_logins(lookup));
    Ok(Keyring::from_files(&files)?)
}

/// The file with the name and the password of a cluster's registry, in a folder beside the cluster's
/// kubeconfig, so that `DOCKER_CONFIG` can name the folder and `REGISTRY_AUTH_FILE` the file.
pub fn login_file(kubeconfig: &Path) -> PathBuf {
    let mut folder = kubeconfig.as_os_str().to_owned();
    folder.push(".registry");
    Path::new(&folder).join("config.json")
}

/// Those files of clusters that run, or ran: of the kubeconfigs that kubectl reads, and of the default
/// data folder. Only those in a folder that nobody else can look into or write to are read.
fn cluster_logins(lookup: Lookup<'_>) -> Vec<PathBuf> {
    let variable = |name: &str| lookup(name).filter(|value| !value.is_empty());
    let home = variable("HOME").map(PathBuf::from);
    let mut kubeconfigs: Vec<PathBuf> = match variable("KUBECONFIG") {
        Some(several) => std::env::split_paths(&several).collect(),
        None => home.iter().map(|home| home.join(".kube/config")).collect(),
    };
    let data = variable("XDG_DATA_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let data = data.or_else(|| home.map(|home| home.join(".local/share")));
    kubeconfigs.extend(data.map(|data| data.join("mainstay/kubeconfig")));
    let logins = kubeconfigs.iter().filter(|path| !path.as_os_str().is_empty());
    logins
        .map(|path| login_file(path))
        .filter(|file| {
            file.parent().is_some_and(mainstay_files::is_private)
                && mainstay_files::open(file).is_ok()
        })
        .collect()
}

/// Where a file of containers' tools may lie, the first place first.
fn places(lookup: Lookup<'_>, name: &str) -> Vec<PathBuf> {
    let variable = |name: &str| lookup(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let own = variable("XDG_CONFIG_HOME")
        .or_else(|| variable("HOME").map(|home| home.join(".config")))
        .map(|folder| folder.join("containers"));
    let shared = ["/etc/containers", "/usr/share/containers"].map(PathBuf::from);
    own.into_iter().chain(shared).map(|folder| folder.join(name)).collect()
}

/// The content of a file; none if it is not there.
fn content(path: &Path) -> Result<Option<Vec<u8>>, MachineError> {
    let failed = |source| MachineError::ReadFile { path: path.to_owned(), source };
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
        Ok(about) if about.len() > LONGEST => {
            Err(MachineError::FileTooLong { path: path.to_owned() })
        }
        Ok(_) => fs::read(path).map(Some).map_err(failed),
    }
}

/// Where images come from: `registries.conf`, version 2, and the files of `registries.conf.d` by
/// name, of which a later one takes the place of rules with the same prefix. The variable
/// `CONTAINERS_REGISTRIES_CONF` names another file, which then stands alone.
///
/// # Errors
/// Which file cannot be read, and why.
pub fn mirrors(lookup: Lookup<'_>) -> Result<Rules, MachineError> {
    let mut rules = Rules::default();
    let mut add = |path: &Path| -> Result<bool, MachineError> {
        let Some(bytes) = content(path)? else { return Ok(false) };
        let text = String::from_utf8(bytes)
            .map_err(|_| MachineError::NotUtf8 { path: path.to_owned() })?;
        let found = mirror::from_toml(&text)
            .map_err(|source| MachineError::ParseMirrors { path: path.to_owned(), source })?;
        for rule in found.rules {
            rules.rules.retain(|known| known.prefix != rule.prefix);
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
    for place in places(lookup, "registries.conf") {
        if add(&place)? {
            break;
        }
    }
    // Of files of one name the first place has the one that counts.
    let mut pieces: std::collections::BTreeMap<_, PathBuf> = std::collections::BTreeMap::new();
    for folder in places(lookup, "registries.conf.d") {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|kind| kind == "conf") {
                pieces.entry(entry.file_name()).or_insert(path);
            }
        }
    }
    for piece in pieces.values() {
        add(piece)?;
    }
    Ok(rules)
}

/// Where a policy is looked for, the first place first: the variable `CONTAINERS_POLICY_JSON` names
/// the only one, otherwise the folders of containers' tools have it.
pub fn policy_places(lookup: Lookup<'_>) -> Vec<PathBuf> {
    match lookup("CONTAINERS_POLICY_JSON").filter(|path| !path.is_empty()) {
        Some(only) => vec![PathBuf::from(only)],
        None => places(lookup, "policy.json"),
    }
}

/// Which images are taken, as the machine's `policy.json` says; none if there is no such file.
///
/// # Errors
/// Which file cannot be read, and why.
pub fn policy(lookup: Lookup<'_>) -> Result<Option<Policy>, MachineError> {
    for place in policy_places(lookup) {
        let Some(bytes) = content(&place)? else {
            // A policy that somebody names is not done without.
            if lookup("CONTAINERS_POLICY_JSON").is_some_and(|named| !named.is_empty()) {
                return Err(MachineError::NoPolicy { path: place });
            }
            continue;
        };
        let key = |path: &str| fs::read(path);
        return Policy::read(&bytes, key)
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
    fn a_variable_names_the_only_policy() {
        let set = |name: &str| (name == "CONTAINERS_POLICY_JSON").then(|| "/nowhere/p".to_owned());
        assert_eq!(policy_places(&set), [PathBuf::from("/nowhere/p")]);
        let missing = policy(&set).unwrap_err();
        assert_eq!(
            missing.to_string(),
            "CONTAINERS_POLICY_JSON names \"/nowhere/p\", which is not there"
        );
        let home = |name: &str| (name == "HOME").then(|| "/h".to_owned());
        assert_eq!(policy_places(&home)[0], Path::new("/h/.config/containers/policy.json"));
        let config = |name: &str| (name == "XDG_CONFIG_HOME").then(|| "/c".to_owned());
        assert_eq!(policy_places(&config)[0], Path::new("/c/containers/policy.json"));
    }

    #[test]
    fn a_later_piece_takes_the_place_of_a_rule() {
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
    fn what_cannot_be_read_is_named() {
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
    async fn password_of_a_cluster_is_found_beside_its_kubeconfig_if_nobody_else_wrote_it() {
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
        let knows = async |kubeconfig: Option<String>, registry: &str| {
            let lookup = |name: &str| match name {
                "HOME" => Some(path.clone()),
                "KUBECONFIG" => kubeconfig.clone(),
                _ => None,
            };
            keyring(&lookup).unwrap().login(&format!("{registry}/a")).await.unwrap().is_some()
        };
        let several = Some(format!("/nowhere:{path}/other"));
        mode(".kube/config.registry", 0o755);
        assert!(!knows(None, "127.0.0.1:5000").await, "others can look into the folder");
        mode(".kube/config.registry", 0o700);
        mode("other.registry", 0o700);
        assert!(knows(None, "127.0.0.1:5000").await);
        assert!(!knows(None, "127.0.0.1:5001").await);
        assert!(knows(several.clone(), "127.0.0.1:5001").await);
        assert!(!knows(several, "127.0.0.1:5000").await);
    }
}
