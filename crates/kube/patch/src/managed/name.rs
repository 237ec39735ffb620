//! Names of managers: which are allowed, and what a client is called that gives none.

use mainstay_gocompat::is_printable;
use mainstay_object::{FieldError, FieldErrorKind, FieldPath};
use serde_json::Value;

/// The most bytes that the name of a manager has.
pub const MAX_NAME: usize = 128;

/// The most bytes that the name of a subresource has.
const MAX_SUBRESOURCE: usize = 256;

/// The rules that a name breaks which a client gave: at most [`MAX_NAME`] bytes, each character
/// printable. `path` is where the client gave it.
pub fn name_errors(name: &str, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if name.len() > MAX_NAME {
        let kind = FieldErrorKind::TooLong(Some(MAX_NAME as u64));
        errors.push(FieldError::new(path, kind, ""));
    }
    for (at, character) in name.char_indices().filter(|(_, one)| !is_printable(*one)) {
        let code = u32::from(character);
        let why = format!("invalid character U+{code:04X} (at position {at})");
        errors.push(FieldError::invalid(path, name, why));
    }
    errors
}

/// What a client is called that names no manager: its `User-Agent` up to the first slash, without
/// characters that do not print, cut at [`MAX_NAME`] bytes. Empty if nothing is left.
pub fn name_of_agent(agent: &str) -> String {
    let program = agent.split('/').next().unwrap_or_default();
    let mut name = String::with_capacity(program.len().min(MAX_NAME));
    for character in program.chars().filter(|one| is_printable(*one)) {
        if name.len() + character.len_utf8() > MAX_NAME {
            break;
        }
        name.push(character);
    }
    name
}

/// The rules that entries break which a client may have sent. (Those that break others are not kept.)
pub fn entry_errors(entries: &[Value], path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
        let name = text("manager");
        if name.len() > MAX_NAME || !name.chars().all(is_printable) {
            errors.extend(name_errors(name, &path.index(at).child("manager")));
        }
        if text("subresource").len() > MAX_SUBRESOURCE {
            let kind = FieldErrorKind::TooLong(Some(MAX_SUBRESOURCE as u64));
            errors.push(FieldError::new(&path.index(at).child("subresource"), kind, ""));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_called_by_its_program() {
        for (agent, name) in [
            ("kubectl/v1.35.4 (linux/amd64) kubernetes/b", "kubectl"),
            ("Mozilla", "Mozilla"),
            ("", ""),
            ("/v1", ""),
            ("a b\u{7}c/1", "a bc"),
            ("stra\u{df}e\u{200b}/1", "stra\u{df}e"),
        ] {
            assert_eq!(name_of_agent(agent), name, "{agent}");
        }
        let long = "\u{e9}".repeat(100);
        assert_eq!(name_of_agent(&long).len(), 128);
        assert_eq!(name_of_agent(&format!("x{long}")).len(), 127);
    }

    #[test]
    fn names_that_clients_give_are_short_and_printable() {
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
