//! Published catalogs, and the verdicts of upstream's `opm validate` on catalogs with one fault
//! each, where they are at hand.

use mainstay_catalog::{Catalog, LoadOptions};
use mainstay_testdata::{ran, unpack};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
};

#[test]
fn published_catalogs_load_without_problems() {
    let table = [
        ("catalog-certified-v4.14", "v4.14", [40, 133, 369]),
        ("catalog-community-v4.19", "v4.19", [37, 81, 757]),
    ];
    for (archive, root, counts) in table {
        let Some(folder) = unpack(archive, "the published catalogs") else { return };
        let catalog = Catalog::load(&folder.path().join(root), &LoadOptions::default()).unwrap();
        let channels: usize = catalog.packages().map(|package| package.channels().len()).sum();
        let bundles: usize = catalog.packages().map(|package| package.bundles().len()).sum();
        assert_eq!([catalog.packages().len(), channels, bundles], counts);
        // The newest of each package; all of them take a minute without optimization.
        for package in catalog.packages() {
            let head = &package.channel(&package.default_channel).unwrap().head().name;
            let bundle = package.bundle(head).unwrap();
            let objects = bundle.objects().unwrap();
            assert_eq!(objects.len(), bundle.object_count());
            match bundle.csv().unwrap() {
                Some(csv) => assert_eq!(csv.name(), &*bundle.name),
                None => assert!(bundle.csv_metadata().unwrap().is_some(), "{}", bundle.name),
            }
        }
        // The smaller one is enough: without optimization the larger takes half a minute.
        if root == "v4.19" {
            let snapshot = folder.path().join("snapshot");
            catalog.save(&snapshot).unwrap();
            assert_eq!(Catalog::load_snapshot(&snapshot).unwrap().digest(), catalog.digest());
        }
        ran(&format!("{archive}, {bundles} bundles"));
    }
}

/// Cases whose verdict differs on purpose, by a part of their name.
const DIFFERENT: &[&str] = &[
    // More is read: byte-order marks, blanks before JSON, CR line ends, YAML 1.2 characters, tabs.
    "ignore-bom",
    "yaml-bom-json",
    "yaml-cr",
    "yaml-nel",
    "json-leading-4096",
    "yaml-tab-in-list",
    // Less is: links out of the folder, deep nesting, bytes and escapes that are no text.
    "symlink-outside",
    "yaml-deep-ok",
    "yaml-deep-block",
    "json-deep-ok",
    "json-bad-utf8",
    "json-lone-surrogate",
    "json-error-long",
    // A lone exclamation mark as a pattern.
    "ignore-double-negate",
];

#[test]
fn verdicts_agree_with_recorded_ones() {
    let Some(folder) = unpack("answers/opm", "recorded verdicts") else { return };
    let mut cases: Vec<PathBuf> = fs::read_dir(folder.path().join("opm"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().contains("-validate-"))
        .collect();
    cases.sort();
    let (mut judged, mut wrong) = (0, Vec::new());
    for case in cases {
        let name = case.file_name().unwrap().to_string_lossy().into_owned();
        let known = DIFFERENT.iter().any(|known| name.ends_with(known));
        if let Some((theirs, ours)) = verdicts(&case) {
            judged += 1;
            if (theirs == ours) == known {
                wrong.push(format!("{name}: theirs {theirs}, ours {ours}"));
            }
        }
    }
    assert!(judged > 700, "{judged}");
    assert!(wrong.is_empty(), "{} of {judged}:\n{}", wrong.len(), wrong.join("\n"));
    ran(&format!("{judged} recorded verdicts on catalogs"));
}

/// Whether upstream and we accept the catalog of a case; `None` for other command lines.
fn verdicts(case: &Path) -> Option<(bool, bool)> {
    let recorded: Value =
        serde_json::from_slice(&fs::read(case.join("case.json")).unwrap()).unwrap();
    if recorded["argv"] != serde_json::json!(["opm", "validate", "input"]) {
        return None;
    }
    let ours = Catalog::load(&case.join("input"), &LoadOptions::default()).is_ok();
    Some((recorded["exit"] == 0, ours))
}
