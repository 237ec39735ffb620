//! Operators that do not need all operands.

use super::check_table;

#[test]
fn deciding_operands_absorb_errors() {
    check_table(&[
        ("1 / 0 == 1 || true", "true", 2),
        ("true || 1 / 0 == 1", "true", 0),
        ("1 / 0 == 1 && false", "false", 2),
        ("false && 1 / 0 == 1", "false", 0),
        ("unset == 1 || x.nothing || true", "true", 4),
        ("dyn(1) || true", "true", 0),
    ]);
}

#[test]
fn without_a_deciding_operand_the_first_error_remains() {
    check_table(&[
        ("1 / 0 == 1 || false", "error: division by zero", 2),
        ("false || 1 / 0 == 1", "error: division by zero", 2),
        ("x.nothing || 1 / 0 == 1", "error: no such key: nothing", 4),
        ("1 / 0 == 1 && x.nothing && 1 % 0 == 1", "error: division by zero", 6),
        ("dyn(1) && true", "error: no such overload", 0),
        ("true && dyn('a')", "error: no such overload", 0),
    ]);
}

#[test]
fn conditionals_evaluate_one_branch_and_are_free() {
    check_table(&[
        ("true ? 1 : 1 / 0", "1", 0),
        ("false ? 1 / 0 : 2", "2", 0),
        ("x.yes ? x.one : unset", "1", 3),
        ("x.one ? 1 : 2", "error: no such overload", 2),
        ("1 / 0 == 1 ? 1 : 2", "error: division by zero", 2),
        ("(x.yes ? x.a : x).b", "1", 4),
        ("has((x.yes ? x.a : x).b)", "true", 3),
    ]);
}

#[test]
fn operators_evaluate_both_operands() {
    check_table(&[
        ("1 / 0 + unset", "error: division by zero", 3),
        ("unset + 1 / 0", "error: no such attribute(s): unset", 3),
        ("1 / 0 == 1 % 0", "error: division by zero", 3),
    ]);
}

#[test]
fn calls_with_three_arguments_stop_at_the_first_error() {
    check_table(&[
        ("x.text.replace(x.nothing, x.one)", "error: no such key: nothing", 4),
        ("'aaaaaaaaaa'.replace('a', x.nothing)", "error: no such key: nothing", 4),
    ]);
}

#[test]
fn incomparable_values_are_unequal() {
    check_table(&[
        ("dyn(1) == 'a'", "false", 1),
        ("dyn(1) != 'a'", "true", 1),
        ("x.gone == null", "true", 3),
        ("x.one == 1.0", "true", 3),
    ]);
}

#[test]
fn overload_errors_have_three_forms() {
    check_table(&[
        ("x.a + 1", "error: no such overload: _+_", 3),
        ("x.one + 'a'", "error: no such overload", 3),
        ("x.text - 1", "error: no such overload", 3),
        ("-x.text", "error: no such overload", 3),
        ("-x.list", "error: no such overload: -_", 3),
        ("!x.one", "error: no such overload", 3),
        ("x.one.startsWith('a')", "error: no such overload", 3),
        ("x.one.matches('a')", "error: no such overload", 3),
        ("x.one.matches(x.text)", "error: no such overload: matches", 5),
        ("x.one.lowerAscii()", "error: no such overload: lowerAscii(int)", 3),
        ("size(x.one)", "error: no such overload: size", 3),
        ("x.one.getFullYear()", "error: no such overload: getFullYear(int)", 3),
        ("1 in x.one", "error: no such overload", 3),
        ("x.text < 1", "error: no such overload", 3),
        ("x.list < 1", "error: no such overload: _<_", 3),
    ]);
}
