//! Outputs of the original's labelling webhook.
//!
//! The original labels each ClusterCatalog in a webhook of catalogd. It decodes the object into Go
//! types and writes it back, so that missing fields arrive at the API server as empty ones, and it
//! refuses wrong types itself. While catalogd is down, an object without the label is refused. Ours
//! labels without a webhook: the API server's own words remain, and nothing is refused. Per document
//! of the input, this module makes recorded outcomes equal to ours where only that is different.

use mainstay_conformance_harness::kubectl::CommandResult;
use serde_json::Value;

/// The name in the webhook's own refusals.
const WEBHOOK: &str = "inject-metadata-name.olm.operatorframework.io";
/// What the API server says about a field that the webhook added as an empty text.
const EMPTY_FIELD: [&str; 2] = ["Unsupported value: \"\"", "Invalid value: \"\""];

/// What the rule changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct WebhookOutcome {
    /// The number of documents whose outcome differs because of the webhook.
    pub(super) documents: usize,
    /// The objects that only the unreachable webhook kept from being created.
    pub(super) unreachable: Vec<String>,
}

/// Replaces recorded outcomes by ours where the webhook makes the difference.
pub(super) fn apply_rule(
    recorded: &mut CommandResult,
    ours: &CommandResult,
    input: &str,
) -> WebhookOutcome {
    let mut outcome = WebhookOutcome::default();
    let names = names(input);
    let (Some(left), Some(right)) = (outcomes(recorded, &names), outcomes(ours, &names)) else {
        return outcome;
    };
    let mut merged = CommandResult::default();
    for (name, (left, right)) in names.iter().zip(left.into_iter().zip(right)) {
        let chosen = if is_of_webhook(&left, &right) {
            outcome.documents += 1;
            if left.text.contains("failed calling webhook") && right.succeeds {
                outcome.unreachable.push(name.clone());
            }
            right
        } else {
            left
        };
        if chosen.succeeds {
            merged.output += &chosen.text;
        } else {
            merged.exit = 1;
            merged.error += &chosen.text;
        }
    }
    if outcome.documents > 0 {
        *recorded = merged;
    }
    outcome
}

fn is_of_webhook(recorded: &DocumentOutcome, ours: &DocumentOutcome) -> bool {
    if recorded.succeeds || *recorded == *ours {
        return false;
    }
    let text = &recorded.text;
    if text.contains("failed calling webhook") && text.contains(WEBHOOK) {
        return true;
    }
    let denies = text.contains(WEBHOOK) && text.contains("denied the request: json:");
    let has_empty_field = EMPTY_FIELD.iter().any(|words| text.contains(words));
    !ours.succeeds && (denies || (has_empty_field && ours.text.contains("Required value")))
}

/// The names of the input's objects.
fn names(input: &str) -> Vec<String> {
    let options = mainstay_yaml::Options::default();
    let documents = mainstay_yaml::documents(input.as_bytes(), &options).filter_map(Result::ok);
    documents
        .map(|document| document.value["metadata"]["name"].as_str().map(str::to_owned))
        .map(Option::unwrap_or_default)
        .collect()
}

/// What became of one document.
#[derive(Clone, Debug, PartialEq, Eq)]
struct DocumentOutcome {
    succeeds: bool,
    /// Its line of the output, or its error.
    text: String,
}

/// What became of each document; none if the output cannot be split.
fn outcomes(output: &CommandResult, names: &[String]) -> Option<Vec<DocumentOutcome>> {
    let created: Vec<&str> = output.output.lines().collect();
    let line_of = |name: &str| {
        let ends = |line: &&&str| {
            let object = line.split(' ').next().unwrap_or_default();
            object.rsplit_once('/').is_some_and(|(_, found)| found == name)
        };
        created.iter().find(ends).map(|line| format!("{line}\n"))
    };
    let lines: Vec<Option<String>> = names.iter().map(|name| line_of(name)).collect();
    let failed = lines.iter().filter(|line| line.is_none()).count();
    let mut errors: Vec<String> = match failed {
        1 => vec![output.error.clone()],
        _ => output.error.lines().map(|line| format!("{line}\n")).collect(),
    };
    if errors.len() != failed {
        return None;
    }
    errors.reverse();
    lines
        .into_iter()
        .map(|line| {
            let succeeds = line.is_some();
            let text = line.or_else(|| errors.pop())?;
            Some(DocumentOutcome { succeeds, text })
        })
        .collect()
}

/// Whether an object was created only by ours, as the webhook was unreachable in the recording.
pub(super) fn is_unreachable(object: &Value, names: &[String]) -> bool {
    object["kind"] == "ClusterCatalog"
        && names.iter().any(|name| object["metadata"]["name"] == **name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INPUT: &str = "{metadata: {name: a}}\n---\n{metadata: {name: b}}\n";

    fn printed(output: &str, error: &str) -> CommandResult {
        CommandResult {
            exit: i64::from(!error.is_empty()),
            output: output.to_owned(),
            error: error.to_owned(),
        }
    }

    #[test]
    fn a_refusal_by_the_webhook_equals_a_refusal_by_the_server() {
        let denied = format!("Error: webhook \"{WEBHOOK}\" denied the request: json: cannot\n");
        let mut recorded = printed("x/a created\n", &denied);
        let ours = printed("x/a created\n", "Error: b must be an integer\n");
        let outcome = apply_rule(&mut recorded, &ours, INPUT);
        assert_eq!((outcome.documents, &recorded), (1, &ours));
        let mut recorded = printed("x/a created\n", &denied);
        let accepted = printed("x/a created\nx/b created\n", "");
        assert_eq!(apply_rule(&mut recorded, &accepted, INPUT), WebhookOutcome::default());
    }

    #[test]
    fn an_empty_field_of_the_webhook_is_a_missing_one() {
        let mut recorded = printed("", "a: Unsupported value: \"\"\nb: Unsupported value: \"X\"\n");
        let ours = printed("", "a: Required value\nb: Required value\n");
        assert_eq!(apply_rule(&mut recorded, &ours, INPUT).documents, 1);
        assert_eq!(recorded.error, "a: Required value\nb: Unsupported value: \"X\"\n");
    }

    #[test]
    fn an_object_is_created_although_the_webhook_is_unreachable() {
        let error = format!("Error: failed calling webhook \"{WEBHOOK}\": refused\n");
        let mut recorded = printed("x/a created\n", &error);
        let ours = printed("x/a created\nx/b created\n", "");
        let outcome = apply_rule(&mut recorded, &ours, INPUT);
        assert_eq!(outcome.unreachable, ["b"]);
        assert_eq!(recorded, ours);
    }
}
