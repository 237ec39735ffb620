use super::*;

#[test]
fn syntax_errors_are_those_of_go() {
    for (text, what) in [
        ("(", "missing closing ): `(`"),
        ("((a)", "missing closing ): `((a)`"),
        ("a)b", "unexpected ): `a)b`"),
        ("[a", "missing closing ]: `[a`"),
        ("x[^]", "missing closing ]: `[^]`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("a|*", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a???", "invalid nested repetition operator: `???`"),
        ("a{1}{2}", "invalid nested repetition operator: `{1}{2}`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("a{99999999999}", "invalid repeat count: `{99999999999}`"),
        ("((a{100}){100})", "invalid repeat count: `{100}`"),
        ("(?!x)", "invalid or unsupported Perl syntax: `(?!`"),
        ("(?P=n)", "invalid or unsupported Perl syntax: `(?P`"),
        ("(?i-)", "invalid or unsupported Perl syntax: `(?i-)`"),
        ("(?i", "invalid or unsupported Perl syntax: `(?i`"),
        ("(?P<n", "invalid named capture: `(?P<n`"),
        ("(?P<>x)", "invalid named capture: `(?P<>`"),
        ("\\", "trailing backslash at end of expression: ``"),
        ("\\8", "invalid escape sequence: `\\8`"),
        ("\\1", "invalid escape sequence: `\\1`"),
        ("\\C", "invalid escape sequence: `\\C`"),
        ("\\u0041", "invalid escape sequence: `\\u`"),
        ("\\x{110000}", "invalid escape sequence: `\\x{110000`"),
        ("\\xg", "invalid escape sequence: `\\xg`"),
        ("^[a-\\d]$", "invalid escape sequence: `\\d`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
        ("\\p{Foo}", "invalid character class range: `\\p{Foo}`"),
    ] {
        let error = translate(text).unwrap_err();
        assert_eq!(error.to_string(), format!("error parsing regexp: {what}"), "{text}");
    }
}

#[test]
fn nesting_is_bounded_and_needs_no_stack() {
    let deep = format!("{}{}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(translate(&deep).unwrap_err().to_string().contains("nests too deeply"));
    assert!(translate(&format!("{}{}", "(".repeat(900), ")".repeat(900))).is_ok());
}

#[test]
fn flags_may_stand_before_a_repetition() {
    for (pattern, text, matches) in [
        ("^p(?i)?K$", "k", true),
        ("^p(?i)*$", "ppp", true),
        ("^a(?i){2}$", "aa", true),
        ("^a(?i){2}$", "aA", false),
        ("^a+(?i)?$", "", true),
        ("^(?ii)k$", "K", true),
        ("^(?i-i)k$", "K", false),
        ("^(?i)(?s)*k$", "K", true),
        ("^a(?i)(?s)*k$", "aaK", true),
    ] {
        let regex = compile(pattern);
        assert_eq!(regex.map(|regex| regex.is_match(text)), Ok(matches), "{pattern} on {text}");
    }
}

#[test]
fn too_large_expressions_are_refused_without_compiling() {
    for text in [
        r"(?:\pL{31}){32}",
        r"(?:[^a]\p{L}){1000}",
        r"(?i:(?:\pL{200}|x)+)",
        &r"\pL".repeat(1000),
        // The parts repeat zero times, but the crate parses them.
        &format!("(?:{}){{0}}", r"\pL".repeat(1000)),
    ] {
        let large = RegexpError { code: "expression too large", expr: (*text).to_owned() };
        assert_eq!(measure(text), Err(large.clone()), "{text}");
        assert_eq!(compile(text).err(), Some(large), "{text}");
    }
    for text in [
        &"a".repeat(500_000),
        "(?:a{10}){100}",
        "(?i:[a-z]{1000})",
        ".{1000}",
        r"[\pL\pN_-]{1,255}",
        r"\p{Greek}{1000}",
        r"\p{Nd}{1000}",
    ] {
        assert!(measure(text).is_ok() && compile(text).is_ok(), "{text}");
    }
}

#[test]
fn instructions_are_counted_as_go_counts_them() {
    for (text, instructions) in [
        ("", 0),
        ("abc", 3),
        ("[a-z]", 1),
        (r"\pL", 3),
        ("a|b|c", 5),
        ("(?:a)", 1),
        ("a*", 3),
        ("a+?b?", 4),
        ("a{3}", 3),
        ("a{2,5}", 8),
        ("a{2,}", 3),
        ("a{0,}", 2),
        ("(?:ab){10}", 20),
        ("(?:(?:ab){10}c){10}", 210),
        ("a{0}", 1),
        (r"(?i)a\Qbc\E", 3),
    ] {
        assert_eq!(measure(text).map(|size| size.instructions), Ok(instructions), "{text}");
    }
}

#[test]
fn translation_takes_time_linear_in_the_text() {
    // A Unicode class is compiled once, in any spelling.
    assert!(translate(&r"\pL\p{l}\p{L_}".repeat(30_000)).is_ok());
    // The end of a POSIX class is searched once.
    let open = format!("[{}x]", "[:".repeat(500_000));
    assert!(translate(&open).is_ok());
}
