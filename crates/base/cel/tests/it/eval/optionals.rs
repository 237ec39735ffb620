//! Optionals.

use super::check_table;

#[test]
fn an_optional_step_makes_the_rest_of_the_path_optional() {
    check_table(&[
        ("x.?one", "optional(1)", 2),
        ("x.?nothing", "optional.none()", 1),
        ("x.?a.b", "optional(1)", 3),
        ("x.?nothing.a.b", "optional.none()", 1),
        ("x.a.?c.d", "optional.none()", 2),
        ("x.list[?5]", "optional.none()", 2),
        ("x.list[?1]", "optional(2)", 3),
        ("x.?one.a", "optional.none()", 2),
        ("x.nothing.?a", "error: no such key: nothing", 2),
    ]);
}

#[test]
fn defaults_are_evaluated_only_for_empty_optionals() {
    check_table(&[
        ("x.?one.orValue(1 / 0)", "1", 2),
        ("x.?nothing.orValue(1 / 0)", "error: division by zero", 2),
        ("x.?nothing.or(x.?one)", "optional(1)", 3),
        ("optional.none().orValue(1)", "1", 1),
        ("optional.of(1).or(optional.of(1 / 0))", "optional(1)", 1),
    ]);
}

#[test]
fn optionals_are_unwrapped_and_created() {
    check_table(&[
        ("optional.of(1).value()", "1", 2),
        ("optional.none().value()", "error: optional.none() dereference", 2),
        ("optional.of(1).hasValue()", "true", 2),
        ("optional.ofNonZeroValue(0)", "optional.none()", 1),
        ("optional.ofNonZeroValue([1])", "optional([1])", 1),
        ("optional.of(1).optMap(y, y + 1)", "optional(2)", 7),
        ("optional.none().optMap(y, y + 1)", "optional.none()", 3),
        ("x.?one.optFlatMap(y, optional.of(y))", "optional(1)", 8),
        ("[1, 2].first()", "optional(1)", 1),
        ("[1, 2].last()", "optional(2)", 1),
        ("dyn([]).last()", "optional.none()", 1),
        ("optional.unwrap([optional.of(1), optional.none()])", "[1]", 13),
    ]);
}

#[test]
fn empty_optional_elements_and_entries_are_omitted() {
    check_table(&[
        ("[?x.?one, ?x.?nothing]", "[1]", 13),
        ("{?'a': x.?nothing, 'b': dyn(1)}", "{b: 1}", 31),
        (
            "[?dyn(1)]",
            "error: cannot initialize optional list element from non-optional value 1",
            0,
        ),
        (
            "{?'a': x.one}",
            "error: cannot initialize optional entry 'a' from non-optional value 1",
            32,
        ),
    ]);
}

#[test]
fn nested_optionals_are_unwrapped_in_branches() {
    // cel-go unwraps optionals at the start of paths.
    check_table(&[("(true ? optional.of(optional.of(1)) : optional.none())", "optional(1)", 2)]);
}
