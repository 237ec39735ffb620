//! Administrators' scripts with kubectl: each script of `tests/scripts` runs unchanged against a
//! cluster of its own.

use crate::harness::Kubectl;
use mainstay_testdata::{ran, skipped};
use std::path::{Path, PathBuf};
use std::process::Command;

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripts");

/// The scripts, by name.
fn scripts() -> Vec<String> {
    let all = std::fs::read_dir(SCRIPTS).expect("the folder of scripts");
    let mut names: Vec<String> = all
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sh"))
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
        .filter(|name| name != "common.sh" && name != "fresh.sh")
        .collect();
    names.sort();
    names
}

/// Folders for PATH: that of the binary, then those that there are.
fn path() -> std::ffi::OsString {
    let binary = Path::new(env!("CARGO_BIN_EXE_mainstay"));
    let folder = binary.parent().expect("a folder").to_owned();
    let there = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(folder).chain(std::env::split_paths(&there));
    std::env::join_paths(all).expect("no folder has a colon")
}

/// Runs a script against a cluster of its own; returns its failure.
fn run(name: &str) -> Result<(), String> {
    let folder = tempfile::tempdir().expect("a folder");
    let output = Command::new("timeout")
        .args(["120", "bash"])
        .arg(PathBuf::from(SCRIPTS).join("fresh.sh"))
        .arg(name)
        .env("PATH", path())
        .env_remove("KUBECONFIG")
        .env_remove("MAINSTAY_LOG")
        .env("HOME", folder.path())
        .env("XDG_DATA_HOME", folder.path().join("data"))
        .env("TMPDIR", folder.path())
        .env("NO_COLOR", "1")
        .current_dir(folder.path())
        .output()
        .expect("bash runs");
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    match output.status.code() {
        Some(0) => Ok(()),
        // A program that the script needs is not installed.
        Some(77) => {
            skipped(&format!("script {name}: {}", said.lines().last().unwrap_or_default()));
            Ok(())
        }
        code => Err(format!("{name} ended with {code:?}:\n{said}")),
    }
}

#[test]
fn scripts_of_the_administrators_guide_succeed() {
    let names = scripts();
    let what = format!("{} scripts of administrators", names.len());
    if Kubectl::find(Path::new("/nonexistent"), &what).is_none() {
        return;
    }
    // Two at a time: most of each is waiting.
    let failed: Vec<String> = names
        .chunks(2)
        .flat_map(|pair| {
            std::thread::scope(|scope| {
                let running: Vec<_> =
                    pair.iter().map(|name| scope.spawn(move || run(name))).collect();
                running
                    .into_iter()
                    .filter_map(|thread| thread.join().expect("it ends").err())
                    .collect::<Vec<_>>()
            })
        })
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
    ran(&what);
}

#[test]
fn every_script_is_linked_in_the_administrators_guide() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/administrators.md");
    let guide = std::fs::read_to_string(guide).expect("the guide");
    for name in scripts() {
        let link = format!("(../crates/face/mainstay/tests/scripts/{name})");
        assert!(guide.contains(&link), "docs/administrators.md has no link to {name}");
    }
}

#[test]
fn script_without_a_cluster_prints_how_to_run_it() {
    for name in scripts() {
        let script = PathBuf::from(SCRIPTS).join(&name);
        let output = Command::new("bash")
            .arg(script)
            .env_remove("SAMPLE")
            .env_remove("REGISTRY")
            .output()
            .expect("bash runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{name}: {said}");
        assert!(said.contains(&format!("/fresh.sh {name}")), "{name}: {said}");
    }
}
