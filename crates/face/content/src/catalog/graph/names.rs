//! Escaping of names from a catalog in the graph formats.

use std::fmt::Write;

/// The largest number of characters of a name in a picture.
const MAX_LETTERS: usize = 80;

/// A name for display, without characters that move, hide or turn surrounding text. Control characters,
/// and characters that only change direction or joining, are escaped; a long name is cut.
pub(super) fn display_name(name: &str) -> String {
    let mut out = String::new();
    for (count, character) in name.chars().enumerate() {
        if count == MAX_LETTERS {
            out.push('…');
            break;
        }
        let is_invisible = matches!(
            character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{ffff}'
        );
        if character.is_control() || is_invisible || u32::from(character) >= 0xe_0000 {
            out.extend(character.escape_unicode());
        } else {
            out.push(character);
        }
    }
    out
}

/// A name in a text or an attribute of XML.
pub(super) fn xml(name: &str) -> String {
    let mut out = String::new();
    for character in display_name(name).chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            character => out.push(character),
        }
    }
    out
}

/// A name in a quoted label of Mermaid. Characters with a meaning there, some of which Mermaid parses
/// before labels (`%%`), are written as entities.
pub(super) fn mermaid(name: &str) -> String {
    let mut out = String::new();
    for character in display_name(name).chars() {
        if character.is_ascii()
            && !character.is_ascii_alphanumeric()
            && !" .-_+/,=()".contains(character)
        {
            // Writing to a string cannot fail.
            let _ = write!(out, "#{};", u32::from(character));
        } else {
            out.push(character);
        }
    }
    out
}

/// A name in a quoted text of DOT, where `\N` and entities mean something.
pub(super) fn dot(name: &str) -> String {
    let mut out = String::new();
    for character in display_name(name).chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '&' => out.push_str("&amp;"),
            character => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_name_is_escaped_in_every_format() {
        let name = "a\"]\n-->\u{202e}<script>&\\N%%{#";
        assert_eq!(display_name(name), "a\"]\\u{a}-->\\u{202e}<script>&\\N%%{#");
        assert_eq!(xml(name), "a&quot;]\\u{a}--&gt;\\u{202e}&lt;script&gt;&amp;\\N%%{#");
        assert_eq!(
            mermaid(name),
            "a#34;#93;#92;u#123;a#125;--#62;#92;u#123;202e#125;#60;script#62;#38;#92;N#37;#37;#123;#35;"
        );
        assert_eq!(dot(name), "a\\\"]\\\\u{a}-->\\\\u{202e}<script>&amp;\\\\N%%{#");
    }

    #[test]
    fn long_name_is_cut_and_letters_of_all_languages_stay() {
        assert_eq!(display_name("Größe-日本"), "Größe-日本");
        assert_eq!(display_name(&"x".repeat(500)).chars().count(), MAX_LETTERS + 1);
        assert_eq!(xml("it's\u{0}"), "it&#39;s\\u{0}");
    }
}
