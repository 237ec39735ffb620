//! Tests of extension resolution.

mod laws;
mod plans;
mod prose;
mod real;
mod scenario;

use mainstay_resolver::extension::{CatalogEvaluation, ExtensionFailureKind};
use scenario::Scenario;
use std::path::Path;

/// All scenarios of `scenarios/extension`.
#[test]
fn scenarios_have_the_answers_of_the_specification() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/extension");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        for scenario in Scenario::read(&std::fs::read_to_string(&file).unwrap()) {
            scenario.check();
        }
    }
}

/// Random scenarios, with the recorded results of operator-controller 1.11.
#[test]
fn extension_choices_equal_the_recorded_choices_of_upstream() {
    for line in include_str!("answers.jsonl").lines() {
        let scenario: Scenario = serde_json::from_str(line).unwrap();
        let stopped =
            scenario.expect.error.as_deref().is_some_and(|message| message.contains(STOPPED));
        if stopped { only_what_might_matter_blocks(&scenario) } else { scenario.check() }
    }
}

const STOPPED: &str = "error walking catalogs: error getting package ";

/// Upstream fails at any unreadable catalog. Mainstay succeeds if that catalog cannot have a better
/// bundle.
fn only_what_might_matter_blocks(scenario: &Scenario) {
    let mut rest = scenario.clone();
    rest.catalogs.retain(|catalog| !catalog.is_broken());
    let choice = match scenario.answer() {
        Ok(choice) => choice,
        // The validation of the chosen bundle.
        Err(failure) if failure.kind == ExtensionFailureKind::Dependency => {
            assert_eq!(failure.message, rest.answer().unwrap_err().message, "{}", scenario.name);
            return;
        }
        Err(failure) => {
            assert!(failure.message.starts_with(STOPPED), "{}: {}", scenario.name, failure.message);
            return;
        }
    };
    let without = rest.answer().unwrap();
    assert_eq!((&choice.catalog, &choice.bundle), (&without.catalog, &without.bundle));
    assert!(!choice.deprecation.bundles.contains_key(&choice.bundle), "{}", scenario.name);
    let priority =
        |name: &str| scenario.catalogs.iter().find(|source| source.name == name).unwrap().priority;
    let top = priority(&choice.catalog);
    for other in choice
        .considered
        .iter()
        .filter(|considered| matches!(considered.state, CatalogEvaluation::Unreadable(_)))
    {
        assert!(other.priority < top, "{}", scenario.name);
    }
}
