//! Comparison of two runs of a scenario.

use serde_json::Value;
use std::fmt;

/// The greatest number of differences per scenario. It is high, because expected differences are
/// removed afterwards.
const MAX_DIFFERENCES: usize = 400;

/// One difference.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseDifference {
    /// The step's number and a JSON pointer into its result, such as `2/body/metadata/name`.
    pub at: String,
    /// The real server's value; none if it has none.
    pub theirs: Option<Value>,
    /// Our value; none if we have none.
    pub ours: Option<Value>,
}

impl fmt::Display for ResponseDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |value: &Option<Value>| match value {
            None => "nothing".to_owned(),
            Some(Value::String(text)) if text.contains('\n') => {
                format!("\n      | {}", text.trim_end_matches('\n').replace('\n', "\n      | "))
            }
            Some(value) => truncate(&value.to_string()),
        };
        writeln!(f, "  {}", self.at)?;
        writeln!(f, "    theirs: {}", side(&self.theirs))?;
        write!(f, "    ours:   {}", side(&self.ours))
    }
}

/// Cuts a value to a bearable length.
fn truncate(text: &str) -> String {
    const LIMIT: usize = 600;
    match text.char_indices().nth(LIMIT) {
        Some((at, _)) => format!("{}… ({} bytes)", &text[..at], text.len()),
        None => text.to_owned(),
    }
}

/// All differences between two lists of steps, at most four hundred.
pub fn steps(theirs: &[Value], ours: &[Value]) -> Vec<ResponseDifference> {
    let mut found = Vec::new();
    for at in 0..theirs.len().max(ours.len()) {
        walk(&mut at.to_string(), theirs.get(at), ours.get(at), &mut found);
    }
    found
}

fn walk(
    at: &mut String,
    theirs: Option<&Value>,
    ours: Option<&Value>,
    found: &mut Vec<ResponseDifference>,
) {
    if theirs == ours || found.len() >= MAX_DIFFERENCES {
        return;
    }
    let length = at.len();
    match (theirs, ours) {
        // Objects of different kinds, such as a Status instead of a list, are one difference.
        (Some(Value::Object(theirs)), Some(Value::Object(ours)))
            if theirs.get("kind") == ours.get("kind") =>
        {
            let more = ours.keys().filter(|key| !theirs.contains_key(*key));
            for key in theirs.keys().chain(more) {
                at.push('/');
                at.push_str(&key.replace('~', "~0").replace('/', "~1"));
                walk(at, theirs.get(key), ours.get(key), found);
                at.truncate(length);
            }
        }
        // Short lists of different lengths are easier to read as a whole.
        (Some(Value::Array(theirs)), Some(Value::Array(ours)))
            if theirs.len() == ours.len() || theirs.len().max(ours.len()) > 3 =>
        {
            for index in 0..theirs.len().max(ours.len()) {
                at.push('/');
                at.push_str(&index.to_string());
                walk(at, theirs.get(index), ours.get(index), found);
                at.truncate(length);
            }
        }
        _ => {
            let (theirs, ours) = (theirs.cloned(), ours.cloned());
            found.push(ResponseDifference { at: at.clone(), theirs, ours });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn difference_has_its_path_and_both_values() {
        let theirs = [json!({"status": 200, "body": {"a/b": [1, 2], "c": 1}})];
        let ours = [json!({"status": 200, "body": {"a/b": [1, 3], "d": 1}}), json!(null)];
        let found: Vec<String> = steps(&theirs, &ours).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "  0/body/a~1b/1\n    theirs: 2\n    ours:   3",
                "  0/body/c\n    theirs: 1\n    ours:   nothing",
                "  0/body/d\n    theirs: nothing\n    ours:   1",
                "  1\n    theirs: nothing\n    ours:   null",
            ]
        );
        assert_eq!(steps(&theirs, &theirs), []);
    }

    #[test]
    fn integer_and_float_differ() {
        assert_eq!(steps(&[json!(1)], &[json!(1.0)]).len(), 1);
    }
}
