//! The list of seeded faults agrees with the code that asks for them.

use mainstay_conformance_kubernetes::faults::list::{self, Detector};
use mainstay_conformance_kubernetes::scenario;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The faults that the sources in a folder ask for, with the number of places.
fn fault_points(folder: &Path, points: &mut BTreeMap<String, usize>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            // The fault crate itself and development tools contain no faults.
            if !path.ends_with("base/fault") && !path.ends_with("crates/dev") {
                fault_points(&path, points)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path)?;
            for rest in text.split("mainstay_fault::is_on(").skip(1) {
                let name =
                    rest.trim_start().strip_prefix('"').and_then(|rest| rest.split('"').next());
                if let Some(name) = name {
                    *points.entry(name.to_owned()).or_default() += 1;
                }
            }
        }
    }
    Ok(())
}

#[test]
fn every_fault_is_listed_and_seeded_in_one_place_and_names_an_existing_detector() {
    let home = scenario::home();
    let faults = list::read(&home).unwrap();
    let titles: BTreeSet<String> =
        scenario::read_all(&home).unwrap().iter().map(scenario::Scenario::title).collect();
    let mut points = BTreeMap::new();
    fault_points(home.ancestors().nth(3).unwrap(), &mut points).unwrap();
    let mut areas: BTreeMap<&str, usize> = BTreeMap::new();
    for fault in &faults {
        *areas.entry(&fault.area).or_default() += 1;
        assert_eq!(points.remove(&fault.name), Some(1), "{} is asked for in one place", fault.name);
        match &fault.detected_by {
            Detector::Scenario(title) => assert!(titles.contains(title), "there is no {title}"),
            // The command `faults` checks whether the test exists.
            Detector::Test(name) => assert!(name.package.starts_with("mainstay-"), "{name}"),
        }
    }
    assert_eq!(points, BTreeMap::new(), "these are not listed");
    assert!(faults.len() >= 125 && areas.len() >= 16, "{areas:?}");
    assert!(areas.values().all(|count| *count >= 5), "{areas:?}");
}
