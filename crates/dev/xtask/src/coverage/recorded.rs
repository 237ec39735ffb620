//! Assertions of recorded cases: `crates/**/ids.txt`, one assertion per line.
//!
//! ```text
//! IDS = RULE STEPS KIND OBJECT: PATHS
//! ```
//!
//! `STEPS` are numbers of steps (`02`, `02,03`, `02-05`), `OBJECT` is a name or a namespace and a
//! name, `PATHS` are fields. Without `: PATHS`, the existence of the object shows the row. The
//! replay of the recordings checks each line: the field is recorded, compared, equal and not
//! excused. This module only reads the ids.

use anyhow::{Context as _, bail};

/// The ids of a line, as written.
pub(super) fn ids<'l>(file: &str, line: &'l str) -> anyhow::Result<&'l str> {
    let (ids, assertion) = line
        .split_once('=')
        .with_context(|| format!("{file}: `{line}` is no `IDS = RULE STEPS KIND OBJECT: PATHS`"))?;
    let (place, paths) = match assertion.split_once(": ") {
        Some((place, paths)) => (place, Some(paths)),
        None => (assertion, None),
    };
    let words: Vec<&str> = place.split_whitespace().collect();
    let [rule, steps, kind, object] = words[..] else {
        bail!("{file}: `{line}`: a rule, steps, a kind and an object are wanted, got {words:?}");
    };
    let is_rule = rule.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    let is_kind = kind.starts_with(|c: char| c.is_ascii_uppercase());
    if !is_rule || !is_kind || object.ends_with(':') {
        bail!("{file}: `{line}`: `{rule}` is no rule, `{kind}` no kind, or `{object}` no object");
    }
    if !are_steps(steps) {
        bail!("{file}: `{line}`: `{steps}` are no steps, which are `02`, `02,03` or `02-05`");
    }
    if paths.is_some_and(|paths| paths.trim().is_empty()) {
        bail!(
            "{file}: `{line}`: no fields behind the colon; leave it out to mean the whole object"
        );
    }
    Ok(ids)
}

/// Whether a text is a list of two-digit numbers and ranges of these.
fn are_steps(text: &str) -> bool {
    let number = |text: &str| {
        let fine = text.len() == 2 && text.chars().all(|c| c.is_ascii_digit());
        fine.then(|| text.parse::<u8>().ok()).flatten()
    };
    text.split(',').all(|part| match part.split_once('-') {
        Some((from, to)) => {
            matches!((number(from), number(to)), (Some(from), Some(to)) if from < to)
        }
        None => number(part).is_some(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_assertion_names_fields_of_one_object() {
        for (line, expected_error) in [
            (
                "R1 R2 = og-form-own 02 ClusterServiceVersion {case}/a.v1: status/phase status/reason",
                "",
            ),
            (
                "R1 = catalog-image 02-05,07 RoleBinding kube-system/a-service:x: subjects/0/name",
                "",
            ),
            ("R1 = packagemanifests 03 Command 03: exit out", ""),
            ("R1 = og-form-own 02 Role {case}/{name}-{hash}", ""),
            ("R1 og-form-own 02 Role a: b", "is no `IDS = "),
            ("R1 = og-form-own", "got [\"og-form-own\"]"),
            ("R1 = og-form-own 02 Role: b", "got [\"og-form-own\", \"02\", \"Role\"]"),
            ("R1 = og-form-own 2 Role a: b", "`2` are no steps"),
            ("R1 = og-form-own 05-02 Role a: b", "`05-02` are no steps"),
            ("R1 = og-form-own 02 role a: b", "`role` no kind"),
            ("R1 = og-form-own 02 Role a:", "`a:` no object"),
            ("R1 = og-form-own 02 Role a:  ", "no fields behind the colon"),
        ] {
            match ids("t.txt", line) {
                Ok(ids) => assert!(expected_error.is_empty() && ids.starts_with("R1"), "{line}"),
                Err(message) => {
                    let message = message.to_string();
                    assert!(
                        !expected_error.is_empty() && message.contains(expected_error),
                        "{line}: {message}"
                    );
                    assert!(message.starts_with("t.txt: "), "{message}");
                }
            }
        }
    }
}
