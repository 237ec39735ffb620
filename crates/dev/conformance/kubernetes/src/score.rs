//! Reports: the score of each area, and the differences of each scenario.

use crate::check::{ScenarioComparison, ScenarioResult};
use crate::scenario::{AREAS, Scenario};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The score as a table, one area per line.
pub fn table(results: &[ScenarioResult<'_>]) -> String {
    let mut text = format!(
        "{:<12}{:>10}{:>8}{:>8}{:>11}{:>13}{:>9}\n",
        "area", "scenarios", "same", "listed", "different", "not recorded", "score"
    );
    let mut line = |name: &str, selected: &[&ScenarioResult<'_>]| {
        let count = |predicate: fn(&ScenarioComparison) -> bool| {
            selected.iter().filter(|results| predicate(&results.comparison)).count()
        };
        let same = count(|comparison| matches!(comparison, ScenarioComparison::Same));
        let listed = count(|comparison| matches!(comparison, ScenarioComparison::Expected));
        let not_recorded =
            count(|comparison| matches!(comparison, ScenarioComparison::NotRecorded));
        let all = selected.len();
        let tenths = ((same + listed) * 1000).checked_div(all).unwrap_or_default();
        let score = format!("{}.{} %", tenths / 10, tenths % 10);
        let different = all - same - listed - not_recorded;
        let _ = writeln!(
            text,
            "{name:<12}{all:>10}{same:>8}{listed:>8}{different:>11}{not_recorded:>13}{score:>9}"
        );
    };
    for area in AREAS {
        let selected: Vec<_> =
            results.iter().filter(|result| result.scenario.area == area).collect();
        line(area, &selected);
    }
    line("all", &results.iter().collect::<Vec<_>>());
    text
}

/// The unexpected differences of each scenario, at most `limit` each.
pub fn findings(results: &[ScenarioResult<'_>], limit: usize) -> String {
    let mut text = String::new();
    for ScenarioResult { scenario, comparison } in
        results.iter().filter(|result| !result.comparison.passes())
    {
        let _ = write!(text, "{} ({}/{}.yaml)", scenario.title(), scenario.area, scenario.file);
        let found = match comparison {
            ScenarioComparison::Same | ScenarioComparison::Expected => continue,
            ScenarioComparison::NotRecorded => {
                text += ": there is no recording of what it says now\n";
                continue;
            }
            ScenarioComparison::Failed(why, found) => {
                let _ = write!(text, ": {why}");
                found
            }
            ScenarioComparison::Different(found) => found,
        };
        text.push('\n');
        for difference in found.iter().take(limit) {
            let _ = writeln!(text, "{difference}");
        }
        if found.len() > limit {
            let _ = writeln!(text, "  … and {} more", found.len() - limit);
        }
    }
    text
}

/// The number of scenarios per area, and of kubectl commands per sub-command.
pub fn counts(scenarios: &[Scenario]) -> String {
    let mut text = format!("{:<12}{:>10}{:>9}{:>9}\n", "area", "scenarios", "steps", "kubectl");
    for area in AREAS.into_iter().map(Some).chain([None]) {
        let selected =
            || scenarios.iter().filter(|scenario| area.is_none_or(|area| scenario.area == area));
        let steps: usize = selected().map(|scenario| scenario.steps.len()).sum();
        let kubectl: usize = selected().map(|scenario| scenario.kubectl().count()).sum();
        let (name, all) = (area.unwrap_or("all"), selected().count());
        let _ = writeln!(text, "{name:<12}{all:>10}{steps:>9}{kubectl:>9}");
    }
    text += "\nkubectl\n";
    let mut commands: BTreeMap<String, usize> = BTreeMap::new();
    for step in scenarios.iter().flat_map(Scenario::kubectl) {
        *commands.entry(step.sub_command()).or_default() += 1;
    }
    for (command, count) in commands {
        let _ = writeln!(text, "{command:<28}{count:>5}");
    }
    text
}
