//! Names of field managers: their validation, and the default name.

use mainstay_gocompat::is_printable;
use mainstay_object::{FieldError, FieldErrorKind, FieldPath};
use serde_json::Value;

/// The longest name of a manager, in bytes.
pub const MAX_NAME: usize = 128;

/// The longest name of a subresource, in bytes.
const MAX_SUBRESOURCE: usize = 256;

/// Validates the name of a manager: at most [`MAX_NAME`] bytes, each character printable. `path` is
/// its field in the request.
pub fn name_errors(name: &str, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if name.len() > MAX_NAME {
        let kind = FieldErrorKind::TooLong(Some(MAX_NAME as u64));
        errors.push(FieldError::new(path, kind, ""));
    }
    for (position, character) in
        name.char_indices().filter(|(_, character)| !is_printable(*character))
    {
        let code = u32::from(character);
        let detail = format!("invalid character U+{code:04X} (at position {position})");
        errors.push(FieldError::invalid(path, name, detail));
    }
    errors
}

/// The default name of a manager: the `User-Agent` up to the first slash, without unprintable
/// characters, truncated to [`MAX_NAME`] bytes. It may be empty.
pub fn manager_of_user_agent(agent: &str) -> String {
    let program = agent.split('/').next().unwrap_or_default();
    let mut name = String::with_capacity(program.len().min(MAX_NAME));
    for character in program.chars().filter(|character| is_printable(*character)) {
        if name.len() + character.len_utf8() > MAX_NAME {
            break;
        }
        name.push(character);
    }
    name
}

/// Validates the names in managed fields entries. (Other invalid entries are not stored.)
pub fn entry_errors(entries: &[Value], path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
        let name = text("manager");
        if name.len() > MAX_NAME || !name.chars().all(is_printable) {
            errors.extend(name_errors(name, &path.index(index).child("manager")));
        }
        if text("subresource").len() > MAX_SUBRESOURCE {
            let kind = FieldErrorKind::TooLong(Some(MAX_SUBRESOURCE as u64));
            errors.push(FieldError::new(&path.index(index).child("subresource"), kind, ""));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_manager_is_the_program_of_the_user_agent() {
        for (agent, name) in [
            ("kubectl/v1.35.4 (linux/amd64) kubernetes/b", "kubectl"),
            ("Mozilla", "Mozilla"),
            ("", ""),
            ("/v1", ""),
            ("a b\u{7}c/1", "a bc"),
            ("stra\u{df}e\u{200b}/1", "stra\u{df}e"),
        ] {
            assert_eq!(manager_of_user_agent(agent), name, "{agent}");
        }
        let long = "\u{e9}".repeat(100);
        assert_eq!(manager_of_user_agent(&long).len(), 128);
        assert_eq!(manager_of_user_agent(&format!("x{long}")).len(), 127);
    }

    #[test]
    fn manager_names_are_short_and_printable() {
        let errors = |name: &str| -> Vec<String> {
            let errors = name_errors(name, &FieldPath::new("fieldManager"));
            errors.iter().map(ToString::to_string).collect()
        };
        assert!(errors("").is_empty());
        assert!(errors("a b \"\u{e9}\u{301}\u{1f600}'").is_empty());
        assert_eq!(
            errors(&"x".repeat(129)),
            ["fieldManager: Too long: may not be more than 128 bytes"]
        );
        let both = errors("a\u{7}b\u{2028}");
        assert!(both[0].ends_with(": invalid character U+0007 (at position 1)"), "{both:?}");
        assert!(both[1].ends_with(": invalid character U+2028 (at position 3)"), "{both:?}");
    }
}
