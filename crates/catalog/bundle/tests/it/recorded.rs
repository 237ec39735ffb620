//! Beside recorded answers of `opm render`: written bundles, and published ones by digest.

use crate::{Flags, render};
use mainstay_bundle::{Folder, Tree, is_bundle};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::{collections::BTreeSet, fs, path::Path};

/// Cases that differ, each with its reason: `NAME: why`.
const DIFFERENCES: &str = include_str!("differences.txt");

/// What a run says, and the list of what differs against [`DIFFERENCES`].
pub(crate) struct Score {
    pub(crate) cases: usize,
    pub(crate) differing: BTreeSet<String>,
}

impl Score {
    pub(crate) fn settle(&self, what: &str, prefix: &str) {
        let listed: BTreeSet<String> = DIFFERENCES
            .lines()
            .filter(|line| !line.starts_with('#') && line.starts_with(prefix))
            .filter_map(|line| Some(line.split_once(": ")?.0.to_owned()))
            .collect();
        let agree = self.cases - self.differing.len();
        mainstay_testdata::ran(&format!("{agree} of {} {what}", self.cases));
        assert!(self.cases > 0, "no cases");
        assert_eq!(self.differing, listed, "what differs is listed, and nothing else is");
        assert!(self.differing.len() * 100 <= self.cases.max(100), "at most one per cent differs");
    }
}

#[test]
fn written_bundles_are_rendered_as_recorded() {
    let Some(data) = mainstay_testdata::unpack("answers/opm", "recorded renderings") else {
        return;
    };
    let mut score = Score { cases: 0, differing: BTreeSet::new() };
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
        let Some(ours) = answer(&case, &recorded) else { continue };
        score.cases += 1;
        let agrees = match &ours {
            Ok(printed) => {
                recorded["exit"] == 0
                    && fs::read_to_string(case.join("stdout")).unwrap() == *printed
            }
            Err(message) => recorded["exit"] != 0 && recorded["message"] == message.as_str(),
        };
        if !agrees {
            eprintln!("{name}: {ours:?} instead of {}", recorded["message"]);
            score.differing.insert(name);
        }
    }
    score.settle("recorded renderings of written bundles agree", "2");
}

/// Our answer to a case; none if it is not about bundle folders only.
fn answer(case: &Path, recorded: &Value) -> Option<Result<String, String>> {
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
    let trees: Vec<Folder> = folders.iter().map(|name| Folder::new(case.join(name))).collect();
    if trees.iter().any(|tree| !is_bundle(tree)) {
        return None;
    }
    let bundles: Vec<(&dyn Tree, &str)> =
        trees.iter().zip(&folders).map(|(tree, name)| (tree as &dyn Tree, *name)).collect();
    Some(render(&bundles, &flags))
}

#[test]
fn published_bundles_are_rendered_as_recorded() {
    let Some(data) = mainstay_testdata::unpack("answers/opm", "published bundles") else { return };
    let Some(bundles) = mainstay_testdata::unpack("bundles-249", "published bundles") else {
        return;
    };
    let mut score = Score { cases: 0, differing: BTreeSet::new() };
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
        let ours = render(&[(&Folder::new(bundles.path().join(name)), name)], &flags);
        score.cases += 1;
        let agrees = match &ours {
            Ok(printed) => row["sha256_raw"] == format!("{:x}", Sha256::digest(printed)),
            Err(message) => row["message"] == message.as_str(),
        };
        if !agrees {
            let kind = if flags.migrate { "+migrate" } else { "" };
            score.differing.insert(format!("{name}{kind}"));
        }
    }
    score.settle("recorded renderings of published bundles agree", "c");
}
