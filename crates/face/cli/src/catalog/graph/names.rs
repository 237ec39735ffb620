//! Names of strangers in texts of ours.

use std::fmt::Write;

/// How many letters of a name are shown in a picture.
const LONGEST: usize = 80;

/// A name as people see it: nothing that moves, hides or turns what stands around it. Control
/// characters, and those that only change the direction or the joining of others, are written out;
/// a long name is cut.
pub(super) fn shown(name: &str) -> String {
    let mut out = String::new();
    for (count, sign) in name.chars().enumerate() {
        if count == LONGEST {
            out.push('…');
            break;
        }
        let hides = matches!(
            sign,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{ffff}'
        );
        if sign.is_control() || hides || u32::from(sign) >= 0xe_0000 {
            out.extend(sign.escape_unicode());
        } else {
            out.push(sign);
        }
    }
    out
}

/// A name in a text or an attribute of XML.
pub(super) fn xml(name: &str) -> String {
    let mut out = String::new();
    for sign in shown(name).chars() {
        match sign {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

/// A name in a quoted label of Mermaid. Signs that may mean something there, also before labels are
/// looked for (`%%`), are written by their numbers.
pub(super) fn mermaid(name: &str) -> String {
    let mut out = String::new();
    for sign in shown(name).chars() {
        if sign.is_ascii() && !sign.is_ascii_alphanumeric() && !" .-_+/,=()".contains(sign) {
            // Writing to a string cannot fail.
            let _ = write!(out, "#{};", u32::from(sign));
        } else {
            out.push(sign);
        }
    }
    out
}

/// A name in a quoted text of DOT, where `\N` and entities mean something.
pub(super) fn dot(name: &str) -> String {
    let mut out = String::new();
    for sign in shown(name).chars() {
        match sign {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '&' => out.push_str("&amp;"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_stays_a_name_in_every_format() {
        let name = "a\"]\n-->\u{202e}<script>&\\N%%{#";
        assert_eq!(shown(name), "a\"]\\u{a}-->\\u{202e}<script>&\\N%%{#");
        assert_eq!(xml(name), "a&quot;]\\u{a}--&gt;\\u{202e}&lt;script&gt;&amp;\\N%%{#");
        assert_eq!(
            mermaid(name),
            "a#34;#93;#92;u#123;a#125;--#62;#92;u#123;202e#125;#60;script#62;#38;#92;N#37;#37;#123;#35;"
        );
        assert_eq!(dot(name), "a\\\"]\\\\u{a}-->\\\\u{202e}<script>&amp;\\\\N%%{#");
    }

    #[test]
    fn a_name_is_cut_and_may_have_letters_of_all_languages() {
        assert_eq!(shown("Größe-日本"), "Größe-日本");
        assert_eq!(shown(&"x".repeat(500)).chars().count(), LONGEST + 1);
        assert_eq!(xml("it's\u{0}"), "it&#39;s\\u{0}");
    }
}
