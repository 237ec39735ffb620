//! Constants, which are evaluated when the program is created.

use super::{check_table, env};
use mainstay_cel::Program;

#[test]
fn only_conversions_of_constants_are_free() {
    check_table(&[
        ("duration('1h')", "1h0m0s", 0),
        ("int('7') + 1", "8", 1),
        ("[duration('1h')] == [duration('1h')]", "true", 1),
        ("quantity('1Gi').isInteger()", "true", 2),
        ("[quantity('1')].size()", "1", 12),
        ("size('abc')", "3", 1),
        (
            "quantity('x').isInteger()",
            "error: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            2,
        ),
    ]);
}

#[test]
fn in_over_constants_is_free() {
    check_table(&[
        ("x.one in [1, 2]", "true", 2),
        ("x.one in [dyn(1.0), dyn('a')]", "true", 2),
        ("x.text in ['a', 'b']", "false", 2),
        ("x.nothing in []", "false", 0),
        ("1 in x.list", "true", 3),
        ("x.one in [x.one]", "true", 15),
        ("x.gone in [null]", "true", 3),
    ]);
}

#[test]
fn failing_constants_are_errors_of_the_program() {
    for (text, error) in [
        ("int('x')", "type conversion error from 'string' to 'int'"),
        ("true || int('x') == 1", "type conversion error from 'string' to 'int'"),
        ("x.text.find('(')", "error parsing regexp: missing closing ): `(`"),
    ] {
        let checked = env().compile(text).map_err(|issues| issues.to_string()).unwrap();
        assert_eq!(Program::new(&checked).unwrap_err().to_string(), error, "{text}");
    }
}

#[test]
fn constant_and_computed_patterns_match_alike() {
    check_table(&[
        ("long.matches('^[0-9]+')", "true", 7),
        ("long.matches('^[0-9]' + '+')", "true", 8),
        ("long.find('[a-c]+')", "abc", 7),
        (
            "x.text.matches('(' + x.text)",
            "error: error parsing regexp: missing closing ): `(text`",
            7,
        ),
    ]);
}

#[test]
fn large_patterns_match() {
    let pattern = "(\\\\pL{300}|b)+$";
    for (text, expected) in [
        (format!("'ab'.matches('{pattern}') && !'a'.matches('{pattern}')"), "true"),
        (format!("'ab'.find('{pattern}')"), "b"),
        (format!("'abxb'.findAll('{pattern}')"), "[b]"),
        (format!("'ab'.matches('{}')", "(\\\\pL{1000})(\\\\pN{1000})".repeat(9)), "error"),
    ] {
        assert!(super::result_and_cost(&text).0.starts_with(expected), "{text}");
    }
}
