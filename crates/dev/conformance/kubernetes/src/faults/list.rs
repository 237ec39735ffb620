//! The list of faults: `faults.yaml`.

use anyhow::{Context, bail};
use mainstay_yaml::{DuplicateKeys, Options};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Areas whose faults tests detect; scenarios detect the others.
const OPERATOR_AREAS: [&str; 5] = ["bundles", "catalogs", "classic", "images", "resolver"];

/// A fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeededFault {
    /// The name that the code uses (`mainstay_fault::is_on`).
    pub name: String,
    /// The area.
    pub area: String,
    /// What the fault does.
    pub what: String,
    /// The scenario or test that is tried first.
    pub detected_by: Detector,
    /// Why nothing detects it, for a known gap.
    pub undetected_reason: Option<String>,
}

/// A scenario or test that may detect a fault.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detector {
    /// A scenario, by its title.
    Scenario(String),
    /// A test.
    Test(TestName),
}

/// A test of a crate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TestName {
    /// The package.
    pub package: String,
    /// The test program: `lib` for unit tests, else the name of the target, such as `it`.
    pub program: String,
    /// The path of the test in the program.
    pub test: String,
}

impl std::fmt::Display for TestName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.package, self.program, self.test)
    }
}

impl std::fmt::Display for Detector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Scenario(title) => f.write_str(title),
            Self::Test(name) => name.fmt(f),
        }
    }
}

impl SeededFault {
    /// Whether the fault is in the behaviour of Kubernetes, so that scenarios detect it.
    pub fn is_in_kubernetes(&self) -> bool {
        matches!(self.detected_by, Detector::Scenario(_))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FaultEntry {
    name: String,
    what: String,
    by: String,
    missed: Option<String>,
}

/// Reads `<home>/faults.yaml`, in order of areas.
///
/// # Errors
///
/// The file is malformed, or a name is not unique.
pub fn read(home: &Path) -> anyhow::Result<Vec<SeededFault>> {
    let path = home.join("faults.yaml");
    let text = std::fs::read(&path).with_context(|| format!("read {}", path.display()))?;
    parse(&text).with_context(|| path.display().to_string())
}

fn parse(text: &[u8]) -> anyhow::Result<Vec<SeededFault>> {
    let options = Options { duplicate_keys: DuplicateKeys::Refuse, ..Options::default() };
    let value = mainstay_yaml::one(text, &options)?;
    let areas: BTreeMap<String, Vec<FaultEntry>> = serde_json::from_value(value)?;
    let (mut faults, mut names) = (Vec::new(), BTreeSet::new());
    for (area, entries) in areas {
        for FaultEntry { name, what, by, missed } in entries {
            if !names.insert(name.clone()) {
                bail!("{name} is there twice");
            }
            let detected_by = detector(&area, &by).with_context(|| name.clone())?;
            faults.push(SeededFault {
                name,
                area: area.clone(),
                what,
                detected_by,
                undetected_reason: missed,
            });
        }
    }
    Ok(faults)
}

fn detector(area: &str, by: &str) -> anyhow::Result<Detector> {
    if !OPERATOR_AREAS.contains(&area) {
        return Ok(Detector::Scenario(by.to_owned()));
    }
    let words: Vec<&str> = by.split(' ').collect();
    let [package, program, test] = words.as_slice() else {
        bail!("`by` is a package, `lib` or a test program of it, and a test");
    };
    Ok(Detector::Test(TestName {
        package: (*package).to_owned(),
        program: (*program).to_owned(),
        test: (*test).to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detector_is_a_scenario_or_a_test_depending_on_the_area() {
        let text = b"
            resolver: [{name: a, what: w, by: mainstay-resolver it scenes::one}]
            access: [{name: b, what: w, by: access/one, missed: nobody looks}]
        ";
        let faults = parse(text).unwrap();
        let lines: Vec<String> =
            faults.iter().map(|fault| format!("{} {}", fault.name, fault.detected_by)).collect();
        assert_eq!(lines, ["b access/one", "a mainstay-resolver it scenes::one"]);
        assert!(faults[0].is_in_kubernetes() && !faults[1].is_in_kubernetes());
        assert_eq!(faults[0].undetected_reason.as_deref(), Some("nobody looks"));
        for wrong in [
            "access: [{name: a, what: w, by: x}, {name: a, what: w, by: x}]",
            "classic: [{name: a, what: w, by: access/one}]",
            "access: [{name: a, what: w}]",
            "access: [{name: a, what: w, by: x, more: y}]",
        ] {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
