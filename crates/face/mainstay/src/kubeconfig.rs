//! Kubeconfig output: merges the cluster into a file and keeps its other entries.
//!
//! `--kubeconfig ~/.kube/config` must not cost an administrator the other clusters in that file. So our
//! cluster, user and context are added, or replace entries of the same name. A file that is no
//! kubeconfig is refused and stays unchanged.
//!
//! The file holds the administrator's key, so [`mainstay_files`] writes it. A symbolic link is followed
//! only if no other user can have created it. A FIFO is refused. No other user can create the temporary
//! file of the key first.

use crate::embedded::io;
use mainstay_cause::{Cause, FileLocation};
use mainstay_files::Durability;
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::path::Path;

/// The largest size of a kubeconfig, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// Adds the clusters, users and contexts of `ours` to a file, and makes our context the current
/// one. The file is replaced whole or not at all, readable by its owner only.
pub(crate) fn write(file: &Path, ours: &str) -> Result<(), Cause> {
    let refuse = |why: Cause| {
        Cause::new("the kubeconfig cannot be written").at(FileLocation::file(file)).because(why)
    };
    let remedy = "name another file with --kubeconfig PATH";
    let file = mainstay_files::resolve_named_file(file);
    let file = &file.map_err(|error| refuse(io(&error)).remedy(remedy))?;
    let text = match mainstay_files::read(file, MAX_BYTES) {
        Ok(bytes) if bytes.trim_ascii().is_empty() => ours.to_owned(),
        Ok(bytes) => merge(&bytes, ours).map_err(|error| {
            let why = Cause::new("the existing file is not a kubeconfig")
                .because(Cause::new(error.to_string()));
            refuse(why).remedy(remedy)
        })?,
        Err(error) if error.kind() == ErrorKind::NotFound => ours.to_owned(),
        Err(error) => return Err(refuse(io(&error))),
    };
    mainstay_files::replace(file, text.as_bytes(), Durability::Process)
        .map_err(|error| refuse(io(&error)).remedy(remedy))
}

/// A file is no kubeconfig.
#[derive(Debug, thiserror::Error)]
enum MergeError {
    /// The file is no YAML.
    #[error(transparent)]
    ParseYaml(#[from] mainstay_yaml::YamlError),
    /// The `kind` is not `Config`.
    #[error("it has no `kind: Config`")]
    NotAConfig,
    /// A field is not a list.
    #[error("`{field}` is not a list")]
    NotAList {
        /// The field.
        field: &'static str,
    },
}

/// Merges the entries of `ours` into the kubeconfig `existing`.
fn merge(existing: &[u8], ours: &str) -> Result<String, MergeError> {
    let read = |bytes: &[u8]| mainstay_yaml::one(bytes, &mainstay_yaml::Options::default());
    let (mut merged, ours) = (read(existing)?, read(ours.as_bytes())?);
    if merged["kind"] != "Config" || !merged.is_object() {
        return Err(MergeError::NotAConfig);
    }
    for field in ["clusters", "users", "contexts"] {
        let our_entries = ours[field].as_array().cloned().unwrap_or_default();
        let mut entries = match &merged[field] {
            Value::Null => Vec::new(),
            Value::Array(entries) => entries.clone(),
            _ => return Err(MergeError::NotAList { field }),
        };
        entries.retain(|entry| {
            !our_entries.iter().any(|our_entry| our_entry["name"] == entry["name"])
        });
        entries.extend(our_entries);
        merged[field] = json!(entries);
    }
    merged["current-context"] = ours["current-context"].clone();
    Ok(mainstay_yaml::to_string(&merged))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "apiVersion: v1\nkind: Config\ncurrent-context: mainstay\n\
        clusters: [{name: mainstay, cluster: {server: new}}]\n\
        users: [{name: mainstay}]\ncontexts: [{name: mainstay}]\n";

    #[test]
    fn merge_keeps_other_clusters_and_replaces_ours() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("config"), folder.path().join("link"));
        let existing = "apiVersion: v1\nkind: Config\ncurrent-context: prod\npreferences: {}\n\
            clusters: [{name: prod, cluster: {server: p}}, {name: mainstay, cluster: {server: old}}]\n";
        std::fs::write(&target, existing).unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        write(&link, OURS).unwrap();
        assert!(link.is_symlink());
        let merged = std::fs::read(&target).unwrap();
        let merged = mainstay_yaml::one(&merged, &mainstay_yaml::Options::default()).unwrap();
        let servers: Vec<&Value> = merged["clusters"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| &entry["cluster"]["server"])
            .collect();
        assert_eq!(servers, ["p", "new"]);
        assert_eq!(merged["current-context"], "mainstay");
    }

    #[test]
    fn file_that_is_no_kubeconfig_stays_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("notes");
        for text in ["just words", "a: [", "kind: Config\nclusters: 3"] {
            std::fs::write(&file, text).unwrap();
            let error = write(&file, OURS).unwrap_err().to_string();
            assert!(
                error.contains("not a kubeconfig") && error.contains("--kubeconfig PATH"),
                "{error}"
            );
            assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        }
    }

    #[test]
    fn kubeconfig_is_not_written_through_a_fifo_or_the_link_of_another_user() {
        use std::os::unix::fs::{PermissionsExt, lchown, symlink};
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let fifo = std::process::Command::new("mkfifo").arg(at("fifo")).status();
        assert!(fifo.unwrap().success());
        let error = write(&at("fifo"), OURS).unwrap_err().to_string();
        assert!(error.contains("it is a fifo") && error.contains("--kubeconfig PATH"), "{error}");
        // A link in a folder with the sticky bit, like /tmp.
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o1777)).unwrap();
        symlink(at("victim"), at("link")).unwrap();
        if lchown(at("link"), Some(12_345), None).is_err() {
            return mainstay_testdata::skipped("the link of another user: only root can make one");
        }
        let error = write(&at("link"), OURS).unwrap_err().to_string();
        assert!(error.contains("another user (12345)"), "{error}");
        assert!(!at("victim").exists());
    }

    #[test]
    fn kubeconfig_is_readable_by_its_owner_only_and_no_temporary_file_stays() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        std::fs::write(&file, "").unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
        write(&file, OURS).unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
