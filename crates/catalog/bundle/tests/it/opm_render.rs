//! Blobs of bundles, compared with recorded answers of `opm render`; published ones by digest.

use crate::{Flags, render};
use mainstay_bundle::{BundleFolder, FileTree, is_bundle};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::{collections::BTreeSet, fs, path::Path};

/// Known differences, each with its reason: `NAME: why`.
pub(crate) const DIFFERENCES: &str = include_str!("differences.txt");

/// The result of a run, to compare with [`DIFFERENCES`].
#[derive(Default)]
pub(crate) struct Score {
    pub(crate) cases: usize,
    pub(crate) differing: BTreeSet<String>,
    /// Descriptions of the differences.
    notes: Vec<String>,
}

impl Score {
    /// Compares a case.
    pub(crate) fn compare(&mut self, name: String, found: &Value, wanted: &Value) {
        self.cases += 1;
        if found == wanted {
            return;
        }
        let (path, found, wanted) = first_difference(found, wanted);
        self.notes.push(format!("{name}: at {path}: {found} instead of {wanted}"));
        self.differing.insert(name);
    }

    pub(crate) fn assert_as_listed(&self, what: &str, prefix: &str) {
        let listed: BTreeSet<String> = DIFFERENCES
            .lines()
            .filter(|line| !line.starts_with('#') && line.starts_with(prefix))
            .filter_map(|line| Some(line.split_once(": ")?.0.to_owned()))
            .collect();
        let agree = self.cases - self.differing.len();
        mainstay_testdata::ran(&format!("{agree} of {} {what}", self.cases));
        assert!(self.cases > 0, "no cases");
        let notes = self.notes.join("\n");
        assert_eq!(
            self.differing, listed,
            "the differences are not those of differences.txt\n{notes}"
        );
        assert!(
            self.differing.len() * 100 <= self.cases.max(100),
            "more than one per cent differs"
        );
    }
}

/// The first path at which two values differ, and both values there.
fn first_difference(found: &Value, wanted: &Value) -> (String, String, String) {
    let null = Value::Null;
    let below = |step: String, one: &Value, other: &Value| {
        let (path, one, other) = first_difference(one, other);
        (format!("/{step}{path}"), one, other)
    };
    match (found, wanted) {
        (Value::Object(one), Value::Object(other)) => {
            let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for name in names {
                let pair = (one.get(name).unwrap_or(&null), other.get(name).unwrap_or(&null));
                if pair.0 != pair.1 || one.contains_key(name) != other.contains_key(name) {
                    return below(name.clone(), pair.0, pair.1);
                }
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            if let Some(at) = (0..one.len()).find(|at| one[*at] != other[*at]) {
                return below(at.to_string(), &one[at], &other[at]);
            }
        }
        _ => {}
    }
    let short = |value: &Value| value.to_string().chars().take(600).collect();
    (String::new(), short(found), short(wanted))
}

#[test]
fn written_bundles_are_rendered_as_recorded() {
    let Some(data) = mainstay_testdata::unpack("answers/opm", "recorded renderings") else {
        return;
    };
    let mut score = Score::default();
    let mut cases: Vec<_> =
        fs::read_dir(data.path().join("opm")).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    for case in cases {
        let name = case.file_name().unwrap().to_str().unwrap().to_owned();
        if !name.contains("-render-bundle") {
            continue;
        }
        let recorded: Value =
            serde_json::from_slice(&fs::read(case.join("case.json")).unwrap()).unwrap();
        let Some(ours) = our_answer(&case, &recorded) else { continue };
        score.cases += 1;
        let agrees = match &ours {
            Ok(format_go_value) => {
                recorded["exit"] == 0
                    && fs::read_to_string(case.join("stdout")).unwrap() == *format_go_value
            }
            Err(message) => recorded["exit"] != 0 && recorded["message"] == message.as_str(),
        };
        if !agrees {
            eprintln!("{name}: {ours:?} instead of {}", recorded["message"]);
            score.differing.insert(name);
        }
    }
    score.assert_as_listed("recorded renderings of written bundles agree", "2");
}

/// Our answer to a case; none if an argument is not a bundle folder.
fn our_answer(case: &Path, recorded: &Value) -> Option<Result<String, String>> {
    let mut flags = Flags::default();
    let mut folders = Vec::new();
    let mut arguments = recorded["argv"].as_array()?.iter().filter_map(Value::as_str).skip(2);
    while let Some(argument) = arguments.next() {
        match argument {
            "-o" => flags.yaml = arguments.next() == Some("yaml"),
            "--migrate" => flags.migrate = true,
            "--alpha-image-ref-template" => flags.template = arguments.next(),
            folder => folders.push(folder),
        }
    }
    let trees: Vec<BundleFolder> =
        folders.iter().map(|name| BundleFolder::new(case.join(name))).collect();
    if trees.iter().any(|tree| !is_bundle(tree)) {
        return None;
    }
    let bundles: Vec<(&dyn FileTree, &str)> =
        trees.iter().zip(&folders).map(|(tree, name)| (tree as &dyn FileTree, *name)).collect();
    Some(render(&bundles, &flags))
}

#[test]
fn published_bundles_are_rendered_as_recorded() {
    let Some(data) = mainstay_testdata::unpack("answers/opm", "published bundles") else { return };
    let Some(bundles) = mainstay_testdata::unpack("bundles-249", "published bundles") else {
        return;
    };
    let mut score = Score::default();
    let rows = data.path().join("opm/5901-real-bundles-249/rows.jsonl");
    for row in fs::read_to_string(rows).unwrap().lines() {
        let row: Value = serde_json::from_str(row).unwrap();
        let name = row["bundle"].as_str().unwrap();
        let flags = row["flags"].as_array().unwrap();
        let flags = Flags {
            yaml: false,
            migrate: flags.iter().any(|flag| flag == "--migrate"),
            template: flags.iter().skip(2).find_map(Value::as_str),
        };
        let ours = render(&[(&BundleFolder::new(bundles.path().join(name)), name)], &flags);
        score.cases += 1;
        let agrees = match &ours {
            Ok(format_go_value) => {
                row["sha256_raw"] == format!("{:x}", Sha256::digest(format_go_value))
            }
            Err(message) => row["message"] == message.as_str(),
        };
        if !agrees {
            let kind = if flags.migrate { "+migrate" } else { "" };
            score.differing.insert(format!("{name}{kind}"));
        }
    }
    score.assert_as_listed("recorded renderings of published bundles agree", "c");
}
