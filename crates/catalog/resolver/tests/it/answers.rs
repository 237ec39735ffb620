//! Recorded answers of the original, where they are at hand.

use crate::data;
use crate::universe::{Case, RealCatalog, to_json};
use mainstay_resolver::resolve;
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;

fn cases(folder: &Path) -> Vec<Case> {
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
        .iter()
        .map(|file| {
            let text = std::fs::read_to_string(file).unwrap();
            serde_json::from_str(&text)
                .unwrap_or_else(|error| panic!("{}: {error}", file.display()))
        })
        .collect()
}

fn without_runs(outcome: &Value) -> Value {
    let mut outcome = outcome.clone();
    if let Some(fields) = outcome.as_object_mut() {
        fields.remove("runs");
        for list in ["resolved", "install", "newSubscriptions", "updatedSubscriptions"] {
            if let Some(Value::Array(items)) = fields.get_mut(list) {
                if items.is_empty() {
                    fields.remove(list);
                } else {
                    items.sort_by_key(ToString::to_string);
                }
            }
        }
    }
    outcome
}

#[test]
fn probe() {
    let Some(root) = data::folder("answers/resolver") else { return };
    let real: HashMap<String, RealCatalog> = HashMap::new();
    for name in ["hand", "random", "large"] {
        let (mut same, mut other, mut unsupported, mut all) = (0, 0, 0, 0);
        for case in cases(&root.join("resolver").join(name)) {
            all += 1;
            let snapshots = case.universe.snapshots();
            let start = std::time::Instant::now();
            let got = without_runs(&to_json(&resolve(&case.universe.world(&snapshots, &real))));
            let ms = start.elapsed().as_millis();
            if ms > 500 {
                println!("SLOW {} {ms} ms", case.id);
            }
            if got["errorKind"] == "Unsupported" {
                unsupported += 1;
                continue;
            }
            if case.outcomes.iter().any(|outcome| without_runs(outcome) == got) {
                same += 1;
            } else if got["errorKind"] == "NotSatisfiable"
                && case.outcomes.iter().any(|o| o["errorKind"] == "NotSatisfiable")
            {
                other += 1;
                if case.outcomes.len() < 3 {
                    println!(
                        "REASONS {} {}\n  got  {got}\n  want {}",
                        case.id, case.rule, case.outcomes[0]
                    );
                }
            } else {
                println!(
                    "DIFF {} {} outcomes={}\n  got  {got}\n  want {}",
                    case.id,
                    case.rule,
                    case.outcomes.len(),
                    case.outcomes[0]
                );
            }
        }
        println!("{name}: {same} same, {other} other reasons, {unsupported} unsupported, of {all}");
    }
}
