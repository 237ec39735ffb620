//! Variables, fields and indices.

use super::expect;

#[test]
fn each_step_of_a_path_costs_one_and_so_does_its_beginning() {
    expect(&[
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
fn a_path_ends_where_it_leads_nowhere() {
    expect(&[
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
fn has_asks_for_the_last_step_only_and_costs_no_beginning() {
    expect(&[
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
fn lists_and_maps_that_are_written_out_cost_what_making_them_does() {
    expect(&[
        ("[1, 2]", "[1, 2]", 0),
        ("[x.one]", "[1]", 12),
        ("{'a': 1}", "{a: 1}", 0),
        ("{'a': x.one}", "{a: 1}", 32),
        ("[x.nothing]", "error: no such key: nothing", 12),
    ]);
}
