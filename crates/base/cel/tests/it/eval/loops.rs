//! Loops.

use super::expect;
use std::fmt::Write;

#[test]
fn loops_cost_what_their_parts_do() {
    expect(&[
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
fn an_error_in_a_turn_may_be_made_up_for_by_a_later_one() {
    expect(&[
        ("[0, 1].exists(y, 1 / y == 1)", "true", 15),
        ("[0, 1].all(y, 1 / y == 2)", "false", 13),
        ("[0, 1].all(y, 1 / y == 1)", "error: division by zero", 13),
        ("[0, 1].map(y, 1 / y)", "error: division by zero", 29),
        ("[0, 1].filter(y, 1 / y == 1)", "error: division by zero", 20),
    ]);
}

#[test]
fn what_is_no_list_and_no_map_is_not_gone_through() {
    expect(&[
        ("x.one.all(y, true)", "error: got 'types.Int', expected iterable type", 2),
        ("x.text.map(y, y)", "error: got 'types.String', expected iterable type", 2),
        ("x.one.all(i, y, true)", "error: unsupported comprehension range type: types.Int", 2),
    ]);
}

#[test]
fn the_variable_of_an_inner_loop_hides_that_of_an_outer_one() {
    expect(&[
        ("[[1], [2]].map(y, y.map(y, y + 1))", "[[2], [3]]", 57),
        ("[1].map(x, x + 1)", "[2]", 15),
        ("[x.one].map(x, x + 1).map(x, x)", "[2]", 41),
    ]);
}

#[test]
fn a_key_is_inserted_once() {
    expect(&[(
        "[1, 2].transformMapEntry(i, v, {'a': v})",
        "error: insert failed: key a already exists",
        67,
    )]);
}

#[test]
fn what_is_bound_is_made_when_it_is_asked_for_and_once() {
    // `optMap` binds its variable with a loop that takes no turn.
    expect(&[
        ("x.?one.optMap(y, 1)", "optional(1)", 4),
        ("x.?one.optMap(y, y + y)", "optional(2)", 10),
    ]);
}

#[test]
fn what_is_gathered_is_not_changed_where_it_is_seen_elsewhere() {
    expect(&[("[[]].map(y, y + [1]).map(y, [y + [2], y])", "[[[1, 2], [1]]]", 41)]);
}

#[test]
fn long_lists_are_gathered_in_good_time() {
    let list = (0..5_000).fold(String::new(), |mut list, item| {
        write!(list, "{item},").unwrap();
        list
    });
    let (answer, _) = super::answer(&format!("[{list}].map(y, y).filter(y, y >= 0).size()"));
    assert_eq!(answer, "5000");
}
