//! Literal values, positions of nodes, and expanded macros.

use super::{debug_text, errors, parse, parse_all};
use mainstay_cel::syntax::ast::{Expr, ExprKind, Literal};
use mainstay_cel::syntax::{MAX_CODE_POINTS, MAX_NODES};
use std::collections::BTreeMap;

fn literal(text: &str) -> Literal {
    match parse(text).unwrap().root.kind {
        ExprKind::Literal(literal) => literal,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn string_escapes_are_decoded() {
    for (text, meaning) in [
        (r"''", ""),
        (r#""a'b""#, "a'b"),
        (r#"'a"b'"#, "a\"b"),
        (r#"'\a\b\f\n\r\t\v\\\?\`\'\"'"#, "\x07\x08\x0c\n\r\t\x0b\\?`'\""),
        (r"'\x41\X41\u00e9\U0001F600\101'", "AA\u{e9}\u{1f600}A"),
        (r"'\377\xff'", "\u{ff}\u{ff}"),
        (r"r'\n'", "\\n"),
        (r#"R"\u12""#, "\\u12"),
        ("'''a\nb'c''d'''", "a\nb'c''d"),
        ("'''a\r\nb\rc'''", "a\nb\nc"),
        ("\"\"\"a\"b\\\"\"\"\"", "a\"b\""),
        ("r'''a\\\r\nb'''", "a\\\nb"),
        ("'é😀'", "é😀"),
    ] {
        assert_eq!(literal(text), Literal::String(meaning.into()), "{text}");
    }
    for (text, meaning) in [
        (r"b''", &b""[..]),
        (r"b'\377\xff\101a'", b"\xff\xffAa"),
        ("b'é'", "é".as_bytes()),
        (r"bR'\x41'", br"\x41"),
        ("B\"\"\"a\r\n\"\"\"", b"a\n"),
    ] {
        assert_eq!(literal(text), Literal::Bytes(meaning.into()), "{text}");
    }
}

#[test]
fn numbers_are_exact_or_errors() {
    for (text, meaning) in [
        ("9223372036854775807", Literal::Int(i64::MAX)),
        ("-9223372036854775808", Literal::Int(i64::MIN)),
        ("-0x8000000000000000", Literal::Int(i64::MIN)),
        ("007", Literal::Int(7)),
        ("18446744073709551615u", Literal::Uint(u64::MAX)),
        ("0xFFu", Literal::Uint(255)),
        ("1e3", Literal::Double(1000.0)),
        (".5E-1", Literal::Double(0.05)),
        ("-1.5", Literal::Double(-1.5)),
        ("1e-999", Literal::Double(0.0)),
    ] {
        assert_eq!(literal(text), meaning, "{text}");
    }
    for (text, error) in [
        ("9223372036854775808", "1:0 invalid int literal"),
        ("a + -9223372036854775809", "1:4 invalid int literal"),
        ("18446744073709551616u", "1:0 invalid uint literal"),
        ("1e999", "1:0 invalid double literal"),
    ] {
        assert_eq!(errors(&parse(text).unwrap_err()), [error], "{text}");
    }
}

fn walk<'e>(expr: &'e Expr, visit: &mut impl FnMut(&'e Expr)) {
    visit(expr);
    match &expr.kind {
        ExprKind::Literal(_) | ExprKind::Ident(_) => {}
        ExprKind::Select { operand, .. } => walk(operand, visit),
        ExprKind::Call { target, args, .. } => {
            target.as_deref().into_iter().chain(args).for_each(|child| walk(child, visit));
        }
        ExprKind::List { elements, .. } => elements.iter().for_each(|child| walk(child, visit)),
        ExprKind::Map(entries) => entries.iter().for_each(|entry| {
            walk(&entry.key, visit);
            walk(&entry.value, visit);
        }),
        ExprKind::Struct { fields, .. } => {
            for field in fields {
                walk(&field.value, visit);
            }
        }
        ExprKind::Comprehension(comprehension) => {
            for child in [
                &comprehension.range,
                &comprehension.accu_init,
                &comprehension.condition,
                &comprehension.step,
                &comprehension.result,
            ] {
                walk(child, visit);
            }
        }
    }
}

#[test]
fn nodes_have_the_positions_of_errors() {
    for (text, at) in [
        ("  a", 2),
        (" .a", 2),
        (" a.b", 2),
        (" a.b(c)", 4),
        (" a(c)", 2),
        (" a[c]", 2),
        (" a.?c", 2),
        (" a + b", 3),
        (" a ? b : c", 3),
        (" !a", 1),
        (" !!!a", 1),
        (" - 1", 1),
        (" [a]", 1),
        (" {a: b}", 1),
        (" a.B{c: d}", 4),
        (" a && b && c", 8),
        (" (a)", 2),
        (" a.all(x, x)", 6),
        (" has(a.b)", 4),
        ("'é'.b", 3),
    ] {
        assert_eq!(parse(text).unwrap().root.at, at, "{text}");
    }
}

#[test]
fn node_ids_are_unique_and_dense() {
    let text = "a.all(x, x.exists(i, v, {v: [i, ?x]}.?a.optMap(y, y).hasValue())) || A{b: c}.d";
    let parsed = parse(text).unwrap();
    let mut seen = BTreeMap::new();
    walk(&parsed.root, &mut |expr| {
        assert!(seen.insert(expr.id, expr).is_none(), "{} twice", expr.id);
        assert!((1..=parsed.last_id).contains(&expr.id));
    });
    assert!(parsed.last_id as usize <= 2 * seen.len(), "{} of {}", seen.len(), parsed.last_id);
}

#[test]
fn macro_calls_are_kept() {
    let parsed = parse("[1].all(x, has(x.a) && [x].exists(y, y))").unwrap();
    let call = &parsed.macro_calls[&parsed.root.id];
    // Macro calls inside it are referenced by their ids.
    assert_eq!(debug_text(call), "[1].all(x,_&&_(,))");
    assert_eq!(parsed.macro_calls.len(), 3);
    let ExprKind::Call { args, .. } = &call.kind else { panic!("{call:?}") };
    let ExprKind::Call { args, .. } = &args[1].kind else { panic!("{args:?}") };
    assert_eq!(debug_text(&parsed.macro_calls[&args[0].id]), "has(x.a)");
    assert_eq!(debug_text(&parsed.macro_calls[&args[1].id]), "[x].exists(y,y)");
}

#[test]
fn quoted_names_are_fields_if_enabled() {
    assert_eq!(
        debug_text(&parse_all("a.`b-c/d.e f`.?`g`").unwrap().root),
        "_?._(a.b-c/d.e f,\"g\")"
    );
    let error = parse("a.`b-c`").unwrap_err();
    assert_eq!(errors(&error), ["1:2 unsupported syntax: '`'"]);
}

#[test]
fn text_and_tree_sizes_are_limited() {
    let longest = format!("'{}'", "é".repeat(MAX_CODE_POINTS - 2));
    assert!(parse(&longest).is_ok());
    let error = parse(&format!("{longest} ")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100001, limit 100000"
    );
    // Each macro doubles the expression before it.
    let doubled = format!("a{}", ".optMap(x, x)".repeat(40));
    let error = parse(&doubled).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("ERROR: <input>:-1:0: expression size exceeds limit: {MAX_NODES} nodes")
    );
}
