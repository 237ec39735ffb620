//! What is known before anything is evaluated.

use super::{env, expect};
use mainstay_cel::Program;

#[test]
fn conversions_of_constants_are_free_and_other_calls_cost_what_they_do() {
    expect(&[
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
fn a_search_in_constants_is_free() {
    expect(&[
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
fn what_fails_before_anything_is_evaluated_is_no_program() {
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
fn known_and_unknown_regular_expressions_match_alike() {
    expect(&[
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
fn large_patterns_match_as_others_do() {
    let pattern = "(\\\\pL{300}|b)+$";
    for (text, answer) in [
        (format!("'ab'.matches('{pattern}') && !'a'.matches('{pattern}')"), "true"),
        (format!("'ab'.find('{pattern}')"), "b"),
        (format!("'abxb'.findAll('{pattern}')"), "[b]"),
        (format!("'ab'.matches('{}')", "(\\\\pL{1000})(\\\\pN{1000})".repeat(9)), "error"),
    ] {
        assert!(super::answer(&text).0.starts_with(answer), "{text}");
    }
}
