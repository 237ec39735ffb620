//! Variables, fields and indices.

use super::check_table;

#[test]
fn each_path_step_and_the_variable_cost_one() {
    check_table(&[
        ("long", "0123456789abcdefghij", 1),
        ("x.one", "1", 2),
        ("x.a.b", "1", 3),
        ("x['a']['b']", "1", 3),
        ("x.list[1]", "2", 3),
        ("x.list[x.one]", "2", 4),
        ("x.list[1 - 1]", "1", 4),
        ("[7, 8][1]", "8", 2),
        ("{'a': 7}.a", "7", 2),
        ("[x.one][0]", "1", 14),
    ]);
}

#[test]
fn missing_fields_and_indices_are_errors() {
    check_table(&[
        ("unset", "error: no such attribute(s): unset", 1),
        ("x.nothing.at.all", "error: no such key: nothing", 2),
        ("x.one.a", "error: no such key: a", 3),
        ("x.list[3]", "error: index out of bounds: 3", 3),
        ("x.list[-1]", "error: index out of bounds: -1", 3),
        ("x.list.a", "error: unsupported index type 'string' in list", 3),
        ("x.list[1.0]", "2", 3),
        ("x.list[dyn(1.5)]", "error: unsupported index value 1.5 in list", 3),
        ("x[x.yes]", "error: no such key: true", 3),
        ("x[x.a]", "error: invalid qualifier type: map[string]interface {}", 3),
    ]);
}

#[test]
fn has_tests_the_last_step_and_its_variable_is_free() {
    check_table(&[
        ("has(x.a)", "true", 1),
        ("has(x.a.b)", "true", 2),
        ("has(x.a.c)", "false", 2),
        ("has(x.gone)", "true", 1),
        ("has(x.one.a)", "false", 2),
        ("has(x.nothing.a)", "error: no such key: nothing", 1),
        ("has(x.?nothing.a)", "false", 0),
        ("has(x.?a.b)", "true", 2),
        ("has({'a': 1}.a)", "true", 1),
    ]);
}

#[test]
fn list_and_map_literals_cost_their_creation() {
    check_table(&[
        ("[1, 2]", "[1, 2]", 0),
        ("[x.one]", "[1]", 12),
        ("{'a': 1}", "{a: 1}", 0),
        ("{'a': x.one}", "{a: 1}", 32),
        ("[x.nothing]", "error: no such key: nothing", 12),
    ]);
}
