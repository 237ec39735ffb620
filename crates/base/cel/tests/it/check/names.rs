//! Name resolution.

use super::{check_table, env, type_or_errors};
use mainstay_cel::check::{CheckedExpression, ResolvedReference};
use mainstay_cel::library::{optional, standard};
use mainstay_cel::syntax::ast::ExprKind;
use mainstay_cel::types::Type;
use mainstay_cel::{Env, EnvOptions};

fn env_with_container(container: &str) -> Env {
    let options = EnvOptions { container: container.to_owned(), ..EnvOptions::default() };
    Env::new(&[&standard::LIBRARY, &optional::LIBRARY], options)
}

#[test]
fn names_resolve_to_the_longest_declared_name() {
    check_table(
        &env(),
        &[
            ("a.b", "int"),
            ("a.b.c", "string"),
            ("a.b + 1", "int"),
            ("a.b.d", "1:4: type 'int' does not support field selection"),
            ("a", "1:1: undeclared reference to 'a' (in container '')"),
            (".a.b", "int"),
            (".i", "int"),
            ("has(a.b)", "1:5: undeclared reference to 'a' (in container '')"),
            ("net.IP == type(x)", "bool"),
            ("net", "1:1: undeclared reference to 'net' (in container '')"),
        ],
    );
}

#[test]
fn containers_are_searched_from_the_inside() {
    let env = env_with_container("p.q")
        .with_variable("p.q.v", Type::Int)
        .with_variable("p.v", Type::String)
        .with_variable("v", Type::Bool)
        .with_variable("p.w", Type::Bytes)
        .with_variable("q.w", Type::Double);
    check_table(
        &env,
        &[
            ("v", "int"),
            (".v", "bool"),
            (".p.v", "string"),
            ("p.v", "string"),
            ("q.v", "int"),
            ("w", "bytes"),
            ("q.w", "double"),
            ("z", "1:1: undeclared reference to 'z' (in container 'p.q')"),
            ("z()", "1:2: undeclared reference to 'z' (in container 'p.q')"),
        ],
    );
    assert_eq!(type_or_errors(&env, "[true].all(e, e)"), "bool");
}

#[test]
fn iteration_variables_shadow_others() {
    check_table(
        &env(),
        &[
            ("ls.all(i, i == s)", "bool"),
            ("ls.all(i, .i == s)", "bool"),
            ("li.all(v, ls.exists(v, v == s))", "bool"),
            ("li.all(v, ls.exists(w, w == s) && v == 1)", "bool"),
            ("mss.all(k, v, k == v)", "bool"),
            ("li.all(k, v, k == v)", "bool"),
            ("li.all(int, int > 0)", "bool"),
        ],
    );
}

fn compiled(expression: &str) -> CheckedExpression {
    env().compile(expression).unwrap()
}

#[test]
fn the_checked_tree_has_qualified_names() {
    let checked = compiled("a.b.c");
    assert!(matches!(&checked.root.kind, ExprKind::Ident(name) if &**name == "a.b.c"));
    assert!(matches!(
        checked.reference(checked.root.id),
        Some(ResolvedReference::Variable(name)) if &**name == "a.b.c"
    ));

    let checked = compiled("optional.of(i)");
    let ExprKind::Call { function, target, args } = &checked.root.kind else { panic!() };
    assert_eq!((&**function, target.is_none(), args.len()), ("optional.of", true, 1));

    let checked = compiled("net.IP");
    assert!(matches!(
        checked.reference(checked.root.id),
        Some(ResolvedReference::Type(Type::Opaque(opaque))) if &*opaque.name == "net.IP"
    ));
}

#[test]
fn calls_refer_to_all_matching_overloads() {
    let overloads = |expression: &str| {
        let checked = compiled(expression);
        let Some(ResolvedReference::Overloads(overloads)) = checked.reference(checked.root.id)
        else {
            panic!("{expression}")
        };
        let mut ids: Vec<_> = overloads.iter().map(|overload| overload.id).collect();
        ids.sort_unstable();
        ids.join(" ")
    };
    assert_eq!(overloads("i + 1"), "add_int64");
    assert_eq!(
        overloads("x - x"),
        "subtract_double subtract_duration_duration subtract_int64 subtract_timestamp_duration \
         subtract_timestamp_timestamp subtract_uint64"
    );
    assert_eq!(overloads("x.size()"), "bytes_size list_size map_size string_size");
    assert_eq!(
        overloads("x[i]"),
        "index_list index_map optional_list_index_int optional_map_index_value"
    );
    assert_eq!(overloads("x && b"), "logical_and");
}

#[test]
fn mixed_number_comparisons_need_the_option_or_a_comprehension() {
    let none = Env::kubernetes(27).with_variable("li", Type::list(Type::Int));
    check_table(
        &none,
        &[
            ("1 < 2", "bool"),
            ("1 < 2.0", "1:3: found no matching overload for '_<_' applied to '(int, double)'"),
            ("1u >= 2", "1:4: found no matching overload for '_>=_' applied to '(uint, int)'"),
            // In cel-go the first comprehension removes the restriction.
            ("li.all(v, v < 2.0)", "bool"),
            ("li.all(v, v < 2) && 1 < 2.0", "bool"),
            (
                "1 < 2.0 && li.all(v, v < 2)",
                "1:3: found no matching overload for '_<_' applied to '(int, double)'",
            ),
        ],
    );
    assert_eq!(type_or_errors(&Env::kubernetes(28), "1 < 2.0"), "bool");
}
