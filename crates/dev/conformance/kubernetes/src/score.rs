//! The score: how many scenarios of each area are as they shall be.

use crate::check::{Judged, Verdict};
use crate::scenario::{AREAS, Scenario};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The score as a table, an area a line.
pub fn table(judged: &[Judged<'_>]) -> String {
    let mut text = format!(
        "{:<12}{:>10}{:>8}{:>8}{:>11}{:>13}{:>9}\n",
        "area", "scenarios", "same", "listed", "different", "not recorded", "score"
    );
    let mut line = |name: &str, those: &[&Judged<'_>]| {
        let count = |wanted: fn(&Verdict) -> bool| {
            those.iter().filter(|judged| wanted(&judged.verdict)).count()
        };
        let same = count(|verdict| matches!(verdict, Verdict::Same));
        let listed = count(|verdict| matches!(verdict, Verdict::Listed));
        let missing = count(|verdict| matches!(verdict, Verdict::NotRecorded));
        let all = those.len();
        let tenths = ((same + listed) * 1000).checked_div(all).unwrap_or_default();
        let score = format!("{}.{} %", tenths / 10, tenths % 10);
        let different = all - same - listed - missing;
        let _ = writeln!(
            text,
            "{name:<12}{all:>10}{same:>8}{listed:>8}{different:>11}{missing:>13}{score:>9}"
        );
    };
    for area in AREAS {
        let those: Vec<_> = judged.iter().filter(|judged| judged.scenario.area == area).collect();
        line(area, &those);
    }
    line("all", &judged.iter().collect::<Vec<_>>());
    text
}

/// What differs, scenario by scenario, at most `most` differences each.
pub fn findings(judged: &[Judged<'_>], most: usize) -> String {
    let mut text = String::new();
    for Judged { scenario, verdict } in judged.iter().filter(|judged| !judged.verdict.is_good()) {
        let _ = write!(text, "{} ({}/{}.yaml)", scenario.title(), scenario.area, scenario.file);
        let found = match verdict {
            Verdict::Same | Verdict::Listed => continue,
            Verdict::NotRecorded => {
                text += ": there is no recording of what it says now\n";
                continue;
            }
            Verdict::Broken(why, found) => {
                let _ = write!(text, ": {why}");
                found
            }
            Verdict::Different(found) => found,
        };
        text.push('\n');
        for difference in found.iter().take(most) {
            let _ = writeln!(text, "{difference}");
        }
        if found.len() > most {
            let _ = writeln!(text, "  … and {} more", found.len() - most);
        }
    }
    text
}

/// How many there are: scenarios of each area, and invocations of each sub-command of kubectl.
pub fn counts(scenarios: &[Scenario]) -> String {
    let mut text = format!("{:<12}{:>10}{:>9}{:>9}\n", "area", "scenarios", "steps", "kubectl");
    for area in AREAS.into_iter().map(Some).chain([None]) {
        let those =
            || scenarios.iter().filter(|scenario| area.is_none_or(|area| scenario.area == area));
        let steps: usize = those().map(|scenario| scenario.steps.len()).sum();
        let kubectl: usize = those().map(|scenario| scenario.kubectl().count()).sum();
        let (name, all) = (area.unwrap_or("all"), those().count());
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
