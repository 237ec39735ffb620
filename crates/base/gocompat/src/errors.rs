//! Errors of the operating system as Go prints them.

use std::io;

/// The text of an I/O error: in lower case, and without the number that Rust appends.
pub fn io_error_text(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_errors_have_gos_text() {
        let missing = std::fs::metadata("/nowhere/at/all").unwrap_err();
        assert_eq!(io_error_text(&missing), "no such file or directory");
        assert_eq!(io_error_text(&io::Error::other("Broken")), "broken");
    }
}
