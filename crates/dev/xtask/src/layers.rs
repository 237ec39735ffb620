//! `cargo xtask layers`: checks the dependencies between our crates (docs/architecture.md §4).
//!
//! `cargo metadata` lists the dependencies, and the folder of a crate decides which are allowed.
//! The table below is the whole rule, so a new dependency is a change that needs an argument.

use anyhow::{Context, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The allowed dependencies of a folder's crates, or of one crate. The first matching row applies.
/// An entry that ends in `/` is a folder, any other is one crate.
const RULES: &[(&str, &[&str])] = &[
    ("base/", &["base/"]),
    ("kube/object", &["base/"]),
    ("kube/schema", &["base/", "kube/object"]),
    ("kube/patch", &["base/", "kube/object", "kube/schema"]),
    ("kube/http", &["base/", "kube/object", "kube/schema"]),
    ("kube/crdsafety", &["base/", "kube/object", "kube/schema"]),
    ("kube/quota", &["base/", "kube/object"]),
    ("kube/security", &["base/", "kube/object"]),
    ("kube/store", &["base/", "kube/object"]),
    ("kube/auth", &["base/", "kube/object", "kube/http", "kube/store"]),
    ("kube/kinds", &["base/", "kube/object", "kube/schema", "kube/store", "kube/auth"]),
    ("kube/policy", &["base/", "kube/object", "kube/schema", "kube/kinds"]),
    (
        "kube/validation",
        &["base/", "kube/object", "kube/schema", "kube/auth", "kube/kinds", "kube/policy"],
    ),
    ("kube/printing", &["base/", "kube/object", "kube/schema", "kube/kinds"]),
    ("kube/outbound", &["base/", "kube/object", "kube/schema", "kube/http", "kube/store"]),
    (
        "kube/conversion",
        &["base/", "kube/object", "kube/schema", "kube/store", "kube/kinds", "kube/outbound"],
    ),
    (
        "kube/admission",
        &[
            "base/",
            "kube/object",
            "kube/schema",
            "kube/patch",
            "kube/http",
            "kube/quota",
            "kube/security",
            "kube/store",
            "kube/auth",
            "kube/kinds",
            "kube/policy",
            "kube/validation",
            "kube/outbound",
            "kube/conversion",
        ],
    ),
    (
        "kube/streams",
        &[
            "base/",
            "kube/object",
            "kube/schema",
            "kube/http",
            "kube/security",
            "kube/store",
            "kube/kinds",
            "kube/outbound",
        ],
    ),
    ("kube/", &["base/", "kube/"]),
    ("catalog/", &["base/", "kube/object", "kube/schema", "catalog/"]),
    (
        "lifecycle/catalogsources",
        &[
            "base/",
            "kube/object",
            "kube/client",
            "catalog/",
            "lifecycle/api",
            "lifecycle/controller",
            "lifecycle/images",
            "lifecycle/packages",
        ],
    ),
    // What-if resolution compares the CRDs of bundles, which is a function of plain data.
    ("lifecycle/whatif", &["base/", "kube/object", "kube/crdsafety", "catalog/", "lifecycle/"]),
    // So does the preflight of extensions.
    (
        "lifecycle/extensions",
        &["base/", "kube/object", "kube/crdsafety", "kube/client", "catalog/", "lifecycle/"],
    ),
    (
        "lifecycle/",
        &[
            "base/",
            "kube/object",
            "kube/schema",
            "kube/patch",
            "kube/client",
            "catalog/",
            "lifecycle/",
        ],
    ),
    ("dev/testkit", &["base/", "kube/", "catalog/"]),
    ("dev/testdata", &[]),
    ("dev/reference", &["base/", "catalog/"]),
    ("dev/", &["base/", "kube/", "catalog/", "lifecycle/", "author/", "face/", "dev/"]),
    ("face/command", &["base/", "kube/", "catalog/", "lifecycle/", "author/"]),
    ("face/content", &["base/", "kube/", "catalog/", "lifecycle/", "author/", "face/command"]),
    (
        "face/operators",
        &["base/", "kube/", "catalog/", "lifecycle/", "author/", "face/command", "face/content"],
    ),
    ("face/opm", &["base/", "kube/", "catalog/", "lifecycle/", "author/", "face/command"]),
    ("face/", &["base/", "kube/", "catalog/", "lifecycle/", "author/", "face/"]),
];

/// Additional dependencies that every crate's tests may use.
const TEST_DEPENDENCIES: &[&str] = &["dev/testkit", "dev/testdata", "dev/reference", "dev/clitest"];

/// External crates that only some of ours may use, with the reason.
const CONFINED_CRATES: &[(&str, &[&str], &str)] = &[
    (
        "kube",
        &["kube/client", "dev/testkit", "dev/bench", "dev/conformance/", "face/mainstay"],
        "its yearly majors shall touch few crates",
    ),
    ("rusqlite", &["catalog/database"], "SQLite is C, and takes long to compile"),
    ("redb", &["dev/bench"], "measured against, not used"),
    ("kube-cel", &["dev/bench"], "measured against, not used"),
    (
        "clap",
        &[
            "face/cli",
            "face/command",
            "face/content",
            "face/operators",
            "dev/attack",
            "dev/bench",
            "dev/conformance",
            "dev/conformance/walks",
            "dev/clitest",
        ],
        "each program parses its arguments in one place",
    ),
    ("anyhow", &["dev/"], "library errors are typed"),
];

/// Crates that must not be in the lock file.
const BANNED_CRATES: &[(&str, &str)] = &[
    ("aws-lc-sys", "one TLS provider: ring"),
    ("aws-lc-rs", "one TLS provider: ring"),
    ("openssl-sys", "one TLS provider: ring"),
];

fn covers(pattern: &str, folder: &str) -> bool {
    if pattern.ends_with('/') { folder.starts_with(pattern) } else { folder == pattern }
}

/// Fails with a list of all forbidden dependencies.
pub(crate) fn run() -> anyhow::Result<()> {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--locked"])
        .output()
        .context("run cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).context("read cargo metadata")?;
    let root = metadata["workspace_root"].as_str().context("no workspace_root")?;
    let violations = check(&metadata, Path::new(root))?;
    if violations.is_empty() {
        return Ok(());
    }
    bail!(
        "{} arrows are not in the table of crates/dev/xtask/src/layers.rs:\n{}",
        violations.len(),
        violations.join("\n")
    )
}

fn check(metadata: &Value, root: &Path) -> anyhow::Result<Vec<String>> {
    let packages = metadata["packages"].as_array().context("no packages")?;
    let crates = root.join("crates");
    let mut folders = BTreeMap::new();
    for package in packages {
        let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
        let Some(folder) = manifest.parent().and_then(|folder| folder.strip_prefix(&crates).ok())
        else {
            continue;
        };
        let name = package["name"].as_str().unwrap_or_default();
        folders.insert(name, (folder.to_string_lossy().replace('\\', "/"), package));
    }
    let mut violations = Vec::new();
    for (name, (folder, package)) in &folders {
        let Some((_, allowed)) = RULES.iter().find(|(who, _)| covers(who, folder)) else {
            violations.push(format!("{name}: no rule for crates/{folder}"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let target = dependency["name"].as_str().unwrap_or_default();
            let only_tests = dependency["kind"].as_str() == Some("dev");
            if let Some((theirs, _)) = folders.get(target) {
                // Tests have no further exceptions.
                let fine = allowed.iter().any(|pattern| covers(pattern, theirs))
                    || (only_tests && TEST_DEPENDENCIES.contains(&theirs.as_str()));
                if !fine {
                    violations.push(format!(
                        "{name} → {target}: crates/{folder} may use {}",
                        allowed.join(", ")
                    ));
                }
            } else if let Some((_, may, why)) =
                CONFINED_CRATES.iter().find(|(who, _, _)| *who == target)
                && !only_tests
                && !may.iter().any(|pattern| covers(pattern, folder))
            {
                violations.push(format!("{name} → {target}: only {} ({why})", may.join(", ")));
            }
        }
    }
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        if let Some((_, why)) = BANNED_CRATES.iter().find(|(who, _)| *who == name) {
            violations.push(format!("{name} is in Cargo.lock: {why}"));
        }
    }
    Ok(violations)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn package(name: &str, folder: &str, dependencies: &[(&str, Option<&str>)]) -> Value {
        let dependencies: Vec<Value> =
            dependencies.iter().map(|(name, kind)| json!({"name": name, "kind": kind})).collect();
        json!({
            "name": name,
            "manifest_path": format!("/w/crates/{folder}/Cargo.toml"),
            "dependencies": dependencies,
        })
    }

    fn violations(packages: &[Value]) -> Vec<String> {
        check(&json!({"packages": packages}), Path::new("/w")).unwrap()
    }

    #[test]
    fn forbidden_dependency_is_reported() {
        let store = package("mainstay-store", "kube/store", &[]);
        let classic = package("mainstay-classic", "lifecycle/classic", &[("mainstay-store", None)]);
        let found = violations(&[store, classic]);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("mainstay-classic → mainstay-store"), "{found:?}");
    }

    #[test]
    fn tests_may_stand_on_the_test_kit_and_test_data_only() {
        for (name, folder, fine) in [
            ("mainstay-testkit", "dev/testkit", true),
            ("mainstay-testdata", "dev/testdata", true),
            ("mainstay-reference", "dev/reference", true),
            ("mainstay-bench", "dev/bench", false),
        ] {
            let target = package(name, folder, &[]);
            let classic = |kind| package("mainstay-classic", "lifecycle/classic", &[(name, kind)]);
            assert_eq!(
                violations(&[target.clone(), classic(Some("dev"))]).is_empty(),
                fine,
                "{name}"
            );
            assert_eq!(violations(&[target, classic(None)]).len(), 1, "{name}");
        }
    }

    #[test]
    fn confined_and_banned_crates_are_reported() {
        let api = package("mainstay-api", "lifecycle/api", &[("kube", None)]);
        let outside =
            json!({"name": "aws-lc-sys", "manifest_path": "/r/aws/Cargo.toml", "dependencies": []});
        assert_eq!(violations(&[api, outside]).len(), 2);
    }
}
