//! Comprehensions.

use super::check_table;
use std::fmt::Write;

#[test]
fn comprehensions_cost_their_parts() {
    check_table(&[
        ("[1, 2].all(y, y > 0)", "true", 11),
        ("[1, 2].all(y, y > 1)", "false", 8),
        ("[1, 2].exists(y, y > 1)", "true", 13),
        ("[1, 2].exists(y, y > 0)", "true", 10),
        ("[1, 2].exists_one(y, y > 1)", "true", 8),
        ("[1, 2].map(y, y + 1)", "[2, 3]", 29),
        ("[1, 2].filter(y, y > 1)", "[2]", 18),
        ("[1, 2].map(y, y > 1, y)", "[2]", 18),
        ("[].all(y, y > 1)", "true", 1),
        ("{'a': 1}.all(k, k == 'a')", "true", 6),
        ("['a'].transformMap(i, v, v)", "{0: a}", 5),
        ("{'b': 2, 'a': 1}.transformList(k, v, k)", "[a, b]", 27),
    ]);
}

#[test]
fn later_iterations_can_absorb_an_error() {
    check_table(&[
        ("[0, 1].exists(y, 1 / y == 1)", "true", 15),
        ("[0, 1].all(y, 1 / y == 2)", "false", 13),
        ("[0, 1].all(y, 1 / y == 1)", "error: division by zero", 13),
        ("[0, 1].map(y, 1 / y)", "error: division by zero", 29),
        ("[0, 1].filter(y, 1 / y == 1)", "error: division by zero", 20),
    ]);
}

#[test]
fn other_ranges_are_errors() {
    check_table(&[
        ("x.one.all(y, true)", "error: got 'types.Int', expected iterable type", 2),
        ("x.text.map(y, y)", "error: got 'types.String', expected iterable type", 2),
        ("x.one.all(i, y, true)", "error: unsupported comprehension range type: types.Int", 2),
    ]);
}

#[test]
fn inner_variables_shadow_outer_ones() {
    check_table(&[
        ("[[1], [2]].map(y, y.map(y, y + 1))", "[[2], [3]]", 57),
        ("[1].map(x, x + 1)", "[2]", 15),
        ("[x.one].map(x, x + 1).map(x, x)", "[2]", 41),
    ]);
}

#[test]
fn duplicate_keys_are_errors() {
    check_table(&[(
        "[1, 2].transformMapEntry(i, v, {'a': v})",
        "error: insert failed: key a already exists",
        67,
    )]);
}

#[test]
fn bound_variables_are_evaluated_lazily_and_once() {
    // `optMap` binds its variable with a comprehension over an empty list.
    check_table(&[
        ("x.?one.optMap(y, 1)", "optional(1)", 4),
        ("x.?one.optMap(y, y + y)", "optional(2)", 10),
    ]);
}

#[test]
fn accumulated_lists_do_not_change_shared_lists() {
    check_table(&[("[[]].map(y, y + [1]).map(y, [y + [2], y])", "[[[1, 2], [1]]]", 41)]);
}

#[test]
fn long_lists_are_accumulated_in_linear_time() {
    let list = (0..5_000).fold(String::new(), |mut list, item| {
        write!(list, "{item},").unwrap();
        list
    });
    let (result, _) =
        super::result_and_cost(&format!("[{list}].map(y, y).filter(y, y >= 0).size()"));
    assert_eq!(result, "5000");
}
