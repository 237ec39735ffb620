//! The faults, as `faults.yaml` lists them.

use anyhow::{Context, bail};
use mainstay_yaml::{DuplicateKeys, Options};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The areas whose faults tests find; scenarios find the others.
const OF_OPERATORS: [&str; 5] = ["bundles", "catalogs", "classic", "images", "resolver"];

/// A fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What the code calls it.
    pub name: String,
    /// Where it is.
    pub area: String,
    /// What goes wrong.
    pub what: String,
    /// What is tried first.
    pub by: Finder,
    /// Why nothing finds it, if that is known.
    pub missed: Option<String>,
}

/// What may find a fault.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Finder {
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
    /// Its program: `lib` for the tests in its sources, else the name of the target, as `it`.
    pub program: String,
    /// The path of the test in that.
    pub test: String,
}

impl std::fmt::Display for TestName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.package, self.program, self.test)
    }
}

impl std::fmt::Display for Finder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Scenario(title) => f.write_str(title),
            Self::Test(name) => name.fmt(f),
        }
    }
}

impl Fault {
    /// Whether it is in what Kubernetes does, so that scenarios find it.
    pub fn is_of_kubernetes(&self) -> bool {
        matches!(self.by, Finder::Scenario(_))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    name: String,
    what: String,
    by: String,
    missed: Option<String>,
}

/// Reads `<home>/faults.yaml`, in order of areas.
///
/// # Errors
///
/// A file that does not say what it should, and a name that is there twice.
pub fn read(home: &Path) -> anyhow::Result<Vec<Fault>> {
    let path = home.join("faults.yaml");
    let text = std::fs::read(&path).with_context(|| format!("read {}", path.display()))?;
    parse(&text).with_context(|| path.display().to_string())
}

fn parse(text: &[u8]) -> anyhow::Result<Vec<Fault>> {
    let options = Options { duplicate_keys: DuplicateKeys::Refuse, ..Options::default() };
    let value = mainstay_yaml::one(text, &options)?;
    let areas: BTreeMap<String, Vec<Listed>> = serde_json::from_value(value)?;
    let (mut faults, mut names) = (Vec::new(), BTreeSet::new());
    for (area, listed) in areas {
        for Listed { name, what, by, missed } in listed {
            if !names.insert(name.clone()) {
                bail!("{name} is there twice");
            }
            let by = finder(&area, &by).with_context(|| name.clone())?;
            faults.push(Fault { name, area: area.clone(), what, by, missed });
        }
    }
    Ok(faults)
}

fn finder(area: &str, by: &str) -> anyhow::Result<Finder> {
    if !OF_OPERATORS.contains(&area) {
        return Ok(Finder::Scenario(by.to_owned()));
    }
    let words: Vec<&str> = by.split(' ').collect();
    let [package, program, test] = words.as_slice() else {
        bail!("`by` is a package, `lib` or a test program of it, and a test");
    };
    Ok(Finder::Test(TestName {
        package: (*package).to_owned(),
        program: (*program).to_owned(),
        test: (*test).to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finder_is_a_scenario_or_a_test_by_the_area() {
        let text = b"
            resolver: [{name: a, what: w, by: mainstay-resolver it scenes::one}]
            access: [{name: b, what: w, by: access/one, missed: nobody looks}]
        ";
        let faults = parse(text).unwrap();
        let told: Vec<String> =
            faults.iter().map(|fault| format!("{} {}", fault.name, fault.by)).collect();
        assert_eq!(told, ["b access/one", "a mainstay-resolver it scenes::one"]);
        assert!(faults[0].is_of_kubernetes() && !faults[1].is_of_kubernetes());
        assert_eq!(faults[0].missed.as_deref(), Some("nobody looks"));
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
