//! Printing trees.

use super::{debug_text, parse_all};
use mainstay_cel::syntax::unparse;

fn printed(text: &str) -> String {
    unparse(&parse_all(text).unwrap())
}

/// Checks that the printed text parses to the same tree.
fn assert_round_trip(text: &str) -> String {
    let parsed = parse_all(text).unwrap();
    let printed = unparse(&parsed);
    let again = parse_all(&printed).unwrap_or_else(|issues| panic!("{text} → {issues}"));
    assert_eq!(debug_text(&again.root), debug_text(&parsed.root), "{text} → {printed}");
    printed
}

#[test]
fn printed_text_has_no_redundant_spaces_and_parentheses() {
    for (text, expected) in [
        ("(a)+((b*c))", "a + b * c"),
        ("(a+b)*c", "(a + b) * c"),
        ("a-(b-c)", "a - (b - c)"),
        ("(a-b)-c", "a - b - c"),
        ("a<b==c", "a < b == c"),
        ("a in[b]", "a in [b]"),
        ("a&&b&&c&&d", "a && b && c && d"),
        ("a||b&&c", "a || b && c"),
        ("(a||b)&&c", "(a || b) && c"),
        ("a?b:c?d:e", "a ? b : (c ? d : e)"),
        ("a==b?c:d", "(a == b) ? c : d"),
        ("f(a,b)?c:d", "(f(a, b)) ? c : d"),
        ("!(a==b)", "!(a == b)"),
        ("!a.b(c)", "!a.b(c)"),
        ("(a+b).c", "(a + b).c"),
        ("(a+b)[c]", "(a + b)[c]"),
        ("a [ ?b ] .?c", "a[?b].?c"),
        ("[a,?b,]", "[a, ?b]"),
        ("{a:b,?c:d}", "{a: b, ?c: d}"),
        (".a.B{c:d,?e:f}", ".a.B{c: d, ?e: f}"),
        ("has(a.b)", "has(a.b)"),
        ("a.all(x,x.exists(y,y>x))", "a.all(x, x.exists(y, y > x))"),
        ("a.map(x,y,z)", "a.map(x, y, z)"),
        ("cel.bind(x,1,x)", "cel.bind(x, 1, x)"),
        ("a.?b.optMap(x,x)", "a.?b.optMap(x, x)"),
        (r"'a\n\u0000é\u200b'", r#""a\n\x00é\u200b""#),
        (r"b'a\xff'", r#"b"\141\377""#),
        ("1.50", "1.5"),
        ("2.0", "2.0"),
        ("123456789.0", "1.23456789e+08"),
        ("0.00001", "1e-05"),
        ("a.`in`", "a.`in`"),
        ("a.`b-c`", "a.`b-c`"),
    ] {
        assert_eq!(assert_round_trip(text), expected, "{text}");
    }
}

#[test]
fn ambiguous_trees_are_printed_differently() {
    for (text, expected) in [
        ("-(1)", "-(1)"),
        ("-(-1)", "-(-1)"),
        ("-(1.a)", "-(1.a)"),
        ("-(-a)", "-(-a)"),
        ("!(!a)", "!(!a)"),
        ("!(-a)", "!(-a)"),
        ("(-a).b", "(-a).b"),
        ("(!a)[0]", "(!a)[0]"),
        ("a&&(b&&c)", "a && (b && c)"),
        ("(a||b)||(c||d)", "a || b || c || d"),
        ("((a||b)||c)||d", "(a || b || c) || d"),
        ("1000000.0", "1e+06"),
        ("has((a+b).c)", "has((a + b).c)"),
        ("a.`true`", "a.`true`"),
    ] {
        assert_eq!(assert_round_trip(text), expected, "{text}");
    }
}

/// Every combination of these, with and without parentheses.
#[test]
fn combined_operators_round_trip() {
    const LEAVES: [&str; 6] = ["a", "1", "-1", "-2.5", "'s'", ".b"];
    const WRAPPERS: [(&str, &str); 24] = [
        ("!", ""),
        ("-", ""),
        ("", ".f()"),
        ("", ".g"),
        ("", ".?g"),
        ("", "[0]"),
        ("", "[?a]"),
        ("", " + a"),
        ("a - ", ""),
        ("", " * 2"),
        ("a / ", ""),
        ("", " == a"),
        ("a in ", ""),
        ("", " && a"),
        ("a && ", ""),
        ("", " || a"),
        ("a || b || ", ""),
        ("", " ? a : b"),
        ("a ? ", " : b"),
        ("a ? b : ", ""),
        ("f(", ", a)"),
        ("[?", "]"),
        ("{", ": a}"),
        ("x.all(y, ", ")"),
    ];
    let mut texts: Vec<String> = LEAVES.map(str::to_owned).to_vec();
    for depth in 0..3 {
        let mut next = Vec::new();
        for (index, text) in texts.iter().enumerate() {
            for (number, (before, after)) in WRAPPERS.iter().enumerate() {
                // Some of the deepest are enough.
                if depth < 2 || (index + number).is_multiple_of(11) {
                    next.push(format!("{before}({text}){after}"));
                }
            }
        }
        for text in &next {
            assert_round_trip(text);
        }
        texts = next;
    }
}

#[test]
fn printing_is_stable() {
    for text in ["a&&(b||c)?-(1):[!(!d)]", "x.all(y,has(y.z))", "'''a\nb'''"] {
        let once = printed(text);
        assert_eq!(printed(&once), once);
    }
}
