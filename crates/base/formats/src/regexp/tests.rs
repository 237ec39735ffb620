use super::*;

#[test]
fn what_is_wrong_is_said_in_the_words_of_go() {
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
        assert_eq!(error, format!("error parsing regexp: {what}"), "{text}");
    }
}

#[test]
fn nesting_is_bounded_and_needs_no_stack() {
    let deep = format!("{}{}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(translate(&deep).unwrap_err().contains("nests too deeply"));
    assert!(translate(&format!("{}{}", "(".repeat(900), ")".repeat(900))).is_ok());
}

#[test]
fn flags_may_be_anywhere() {
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
