//! Writing the kubeconfig without losing what is in the file already.
//!
//! `--kubeconfig ~/.kube/config` must not cost an administrator the other clusters in that file, so
//! our cluster, user and context are added to (or replaced in) what is there, by name. A file that
//! is no kubeconfig is left alone and refused.

use crate::embedded::io;
use mainstay_cause::{Cause, Place};
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Adds the clusters, users and contexts of `ours` to a file, and makes our context the current
/// one. Links are followed; the file is replaced whole or not at all, readable by its owner only.
pub(crate) fn write(file: &Path, ours: &str) -> Result<(), Cause> {
    let refuse = |why: Cause| {
        Cause::new("the kubeconfig cannot be written").at(Place::file(file)).because(why)
    };
    let file = &file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let text = match std::fs::read(file) {
        Ok(bytes) if bytes.trim_ascii().is_empty() => ours.to_owned(),
        Ok(bytes) => merge(&bytes, ours).map_err(|why| {
            let why =
                Cause::new("there is a file that is not a kubeconfig").because(Cause::new(why));
            refuse(why).remedy("name another file with --kubeconfig PATH")
        })?,
        Err(error) if error.kind() == ErrorKind::NotFound => ours.to_owned(),
        Err(error) => return Err(refuse(io(&error))),
    };
    let mut new = file.as_os_str().to_owned();
    new.push(format!(".{}.new", std::process::id()));
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)
        .and_then(|mut it| it.write_all(text.as_bytes()))
        .and_then(|()| std::fs::rename(&new, file));
    written.map_err(|error| {
        // What is left of the attempt is of no use to anybody.
        let _ = std::fs::remove_file(&new);
        refuse(io(&error))
    })
}

/// The kubeconfig `theirs` with the entries of `ours`.
fn merge(theirs: &[u8], ours: &str) -> Result<String, String> {
    let read = |bytes: &[u8]| {
        mainstay_yaml::one(bytes, &mainstay_yaml::Options::default())
            .map_err(|error| error.to_string())
    };
    let (mut all, ours) = (read(theirs)?, read(ours.as_bytes())?);
    if all["kind"] != "Config" || !all.is_object() {
        return Err("it has no `kind: Config`".to_owned());
    }
    for part in ["clusters", "users", "contexts"] {
        let mine = ours[part].as_array().cloned().unwrap_or_default();
        let mut entries = match &all[part] {
            Value::Null => Vec::new(),
            Value::Array(entries) => entries.clone(),
            _ => return Err(format!("`{part}` is not a list")),
        };
        entries.retain(|entry| !mine.iter().any(|it| it["name"] == entry["name"]));
        entries.extend(mine);
        all[part] = json!(entries);
    }
    all["current-context"] = ours["current-context"].clone();
    Ok(mainstay_yaml::to_string(&all))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "apiVersion: v1\nkind: Config\ncurrent-context: mainstay\n\
        clusters: [{name: mainstay, cluster: {server: new}}]\n\
        users: [{name: mainstay}]\ncontexts: [{name: mainstay}]\n";

    #[test]
    fn other_clusters_stay_and_ours_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("config"), folder.path().join("link"));
        let theirs = "apiVersion: v1\nkind: Config\ncurrent-context: prod\npreferences: {}\n\
            clusters: [{name: prod, cluster: {server: p}}, {name: mainstay, cluster: {server: old}}]\n";
        std::fs::write(&target, theirs).unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        write(&link, OURS).unwrap();
        assert!(link.is_symlink());
        let merged = std::fs::read(&target).unwrap();
        let merged = mainstay_yaml::one(&merged, &mainstay_yaml::Options::default()).unwrap();
        let servers: Vec<&Value> = merged["clusters"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| &it["cluster"]["server"])
            .collect();
        assert_eq!(servers, ["p", "new"]);
        assert_eq!(merged["current-context"], "mainstay");
    }

    #[test]
    fn what_is_no_kubeconfig_is_left_alone() {
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
}
