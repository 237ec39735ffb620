//! Who may push to the registry of the cluster: whoever can read one file.
//!
//! The file lies in a folder beside the kubeconfig, `KUBECONFIG.registry/config.json`, which nobody
//! else can look into. It has the form that Docker and containers' tools share, so it is given to them
//! as it is (`DOCKER_CONFIG=KUBECONFIG.registry`, `REGISTRY_AUTH_FILE=KUBECONFIG.registry/config.json`,
//! `--authfile`), and our own commands find it. The password is another one after each start, and the
//! file goes when the cluster ends: a password for a port that somebody else has by now is worthless.

use crate::embedded::io;
use mainstay_cause::{Cause, Place};
use mainstay_cli::machine::login_file;
use mainstay_files::Durability;
use mainstay_image::serve::Account;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The name of the account; what counts is the password.
const NAME: &str = "mainstay";
/// How long the file may be, in bytes.
const MAX_BYTES: u64 = 64 << 10;

/// The file; removed with this.
pub(super) struct Login {
    file: PathBuf,
    /// What it holds.
    content: String,
}

impl Login {
    /// Makes an account for the registry at an address, and writes it beside a kubeconfig.
    pub(super) fn write(kubeconfig: &Path, address: SocketAddr) -> Result<(Account, Self), Cause> {
        let file = login_file(kubeconfig);
        let refused = |error: &std::io::Error| {
            Cause::new("the name and the password of the registry cannot be written")
                .at(Place::file(&file))
                .because(io(error))
                .remedy("name another place with --kubeconfig PATH")
        };
        let account = Account::random(NAME).map_err(|error| refused(&error))?;
        // Not by the name `localhost`: it may lead to the other loopback address, where somebody else can
        // listen and ask for the password.
        let registries = [address.to_string()];
        let folder = file.parent().unwrap_or(Path::new("."));
        let content = account.credentials_file(&registries);
        mainstay_files::claim_inner(folder)
            .and_then(|()| mainstay_files::replace(&file, content.as_bytes(), Durability::Process))
            .map_err(|error| refused(&error))?;
        Ok((account, Self { file: file.clone(), content }))
    }

    /// Where it is.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }
}

impl Drop for Login {
    fn drop(&mut self) {
        // Another cluster with this kubeconfig may have written its own meanwhile; and what somebody else
        // put into the folder stays.
        if mainstay_files::read_text(&self.file, MAX_BYTES)
            .is_ok_and(|current| current == self.content)
        {
            let _ = std::fs::remove_file(&self.file);
        }
        if let Some(folder) = self.file.parent() {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_image::credentials::Keyring;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[tokio::test]
    async fn login_is_readable_by_its_owner_only_names_the_address_and_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("config");
        let (_, login) = Login::write(&kubeconfig, "127.0.0.1:5000".parse().unwrap()).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        let credentials_folder = folder.path().join("config.registry");
        assert_eq!(login.file(), credentials_folder.join("config.json"));
        assert_eq!((mode(&credentials_folder), mode(login.file())), (0o700, 0o600));
        let first = std::fs::read_to_string(login.file()).unwrap();
        let keyring = Keyring::from_files(&[login.file().to_owned()]).unwrap();
        for (repository, has_login) in
            [("127.0.0.1:5000/a", true), ("localhost:5000/b/c", false), ("localhost:5001/a", false)]
        {
            assert_eq!(
                keyring.login(repository).await.unwrap().is_some(),
                has_login,
                "{repository}"
            );
        }
        drop(login);
        assert!(!credentials_folder.exists());
        let (_, again) = Login::write(&kubeconfig, "127.0.0.1:5000".parse().unwrap()).unwrap();
        assert_ne!(std::fs::read_to_string(again.file()).unwrap(), first);
    }

    #[test]
    fn login_is_not_written_into_a_folder_that_a_link_leads_to() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = folder.path().join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        symlink(&elsewhere, folder.path().join("config.registry")).unwrap();
        let kubeconfig = folder.path().join("config");
        let refused = Login::write(&kubeconfig, "127.0.0.1:5000".parse().unwrap());
        let error = refused.err().unwrap().to_string();
        assert!(error.contains("it is a link") && error.contains("--kubeconfig PATH"), "{error}");
        assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
    }
}
