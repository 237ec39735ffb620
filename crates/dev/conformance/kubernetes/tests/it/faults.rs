//! The list of seeded faults and the places in the code that ask for them.

use mainstay_conformance_kubernetes::faults::list::{self, Finder};
use mainstay_conformance_kubernetes::scenario;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The faults that the sources below a folder ask for, with how often.
fn fault_points(folder: &Path, found: &mut BTreeMap<String, usize>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            // What the crate of the question itself and programs for tests say of it is no place.
            if !path.ends_with("base/fault") && !path.ends_with("crates/dev") {
                fault_points(&path, found)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path)?;
            for rest in text.split("mainstay_fault::is_on(").skip(1) {
                let name =
                    rest.trim_start().strip_prefix('"').and_then(|rest| rest.split('"').next());
                if let Some(name) = name {
                    *found.entry(name.to_owned()).or_default() += 1;
                }
            }
        }
    }
    Ok(())
}

#[test]
fn every_fault_is_listed_and_in_one_place_and_has_a_finder_that_there_is() {
    let home = scenario::home();
    let faults = list::read(&home).unwrap();
    let titles: BTreeSet<String> =
        scenario::all(&home).unwrap().iter().map(scenario::Scenario::title).collect();
    let mut found = BTreeMap::new();
    fault_points(home.ancestors().nth(3).unwrap(), &mut found).unwrap();
    let mut areas: BTreeMap<&str, usize> = BTreeMap::new();
    for fault in &faults {
        *areas.entry(&fault.area).or_default() += 1;
        assert_eq!(found.remove(&fault.name), Some(1), "{} is asked for in one place", fault.name);
        match &fault.by {
            Finder::Scenario(title) => assert!(titles.contains(title), "there is no {title}"),
            // `faults` says what is wrong with one.
            Finder::Test(name) => assert!(name.package.starts_with("mainstay-"), "{name}"),
        }
    }
    assert_eq!(found, BTreeMap::new(), "these are not listed");
    assert!(faults.len() >= 125 && areas.len() >= 16, "{areas:?}");
    assert!(areas.values().all(|count| *count >= 5), "{areas:?}");
}
