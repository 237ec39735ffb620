//! Credentials for pushing to the cluster's registry, in one file.
//!
//! The file `KUBECONFIG.registry/config.json` is in a folder beside the kubeconfig that only its owner
//! can read. It has the format of Docker and other container tools, so they read it as it is
//! (`DOCKER_CONFIG=KUBECONFIG.registry`, `REGISTRY_AUTH_FILE=KUBECONFIG.registry/config.json`,
//! `--authfile`), and our own commands find it. Each start makes a new password, and stopping the
//! cluster removes the file: another program may have the port by then.

use crate::embedded::io;
use mainstay_cause::{Cause, FileLocation};
use mainstay_command::machine::login_file;
use mainstay_files::Durability;
use mainstay_image::serve::Account;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The user name of the account; only the password counts.
const NAME: &str = "mainstay";
/// The largest size of the file, in bytes.
const MAX_BYTES: u64 = 64 << 10;

/// The credentials file; dropping this value removes it.
pub(super) struct Login {
    file: PathBuf,
    /// Its content.
    content: String,
}

impl Login {
    /// Creates an account for the registry at an address, and writes it beside a kubeconfig.
    pub(super) fn write(kubeconfig: &Path, address: SocketAddr) -> Result<(Account, Self), Cause> {
        let file = login_file(kubeconfig);
        let refused = |error: &std::io::Error| {
            Cause::new("the credentials of the registry cannot be written")
                .at(FileLocation::file(&file))
                .because(io(error))
                .remedy("name another file with --kubeconfig PATH")
        };
        let account = Account::random(NAME).map_err(|error| refused(&error))?;
        // Not with the name `localhost`, which may resolve to the other loopback address, where another
        // program can listen and receive the password.
        let registries = [address.to_string()];
        let folder = file.parent().unwrap_or(Path::new("."));
        let content = account.credentials_file(&registries);
        mainstay_files::claim_private_folder(folder)
            .and_then(|()| mainstay_files::replace(&file, content.as_bytes(), Durability::Process))
            .map_err(|error| refused(&error))?;
        Ok((account, Self { file: file.clone(), content }))
    }

    /// The path of the file.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }
}

impl Drop for Login {
    fn drop(&mut self) {
        // Another cluster with this kubeconfig may have written its own file meanwhile. Other files in
        // the folder stay.
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
