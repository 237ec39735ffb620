//! From trees to text.

use super::{parse_all, shown};
use mainstay_cel::syntax::unparse;

fn printed(text: &str) -> String {
    unparse(&parse_all(text).unwrap())
}

/// What is printed is read as the same tree.
fn assert_stays(text: &str) -> String {
    let parsed = parse_all(text).unwrap();
    let printed = unparse(&parsed);
    let again = parse_all(&printed).unwrap_or_else(|issues| panic!("{text} → {issues}"));
    assert_eq!(shown(&again.root), shown(&parsed.root), "{text} → {printed}");
    printed
}

#[test]
fn text_has_single_spaces_and_no_parentheses_that_say_nothing() {
    for (text, wanted) in [
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
        assert_eq!(assert_stays(text), wanted, "{text}");
    }
}

#[test]
fn what_would_be_read_as_another_tree_is_written_otherwise() {
    for (text, wanted) in [
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
        assert_eq!(assert_stays(text), wanted, "{text}");
    }
}

/// Every way to put these together, with and without parentheses.
#[test]
fn whatever_is_put_together_is_read_as_it_was() {
    const LEAVES: [&str; 6] = ["a", "1", "-1", "-2.5", "'s'", ".b"];
    const AROUND: [(&str, &str); 24] = [
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
            for (number, (before, after)) in AROUND.iter().enumerate() {
                // Of the deepest a part will do.
                if depth < 2 || (index + number).is_multiple_of(11) {
                    next.push(format!("{before}({text}){after}"));
                }
            }
        }
        for text in &next {
            assert_stays(text);
        }
        texts = next;
    }
}

#[test]
fn what_is_printed_is_printed_so_again() {
    for text in ["a&&(b||c)?-(1):[!(!d)]", "x.all(y,has(y.z))", "'''a\nb'''"] {
        let once = printed(text);
        assert_eq!(printed(&once), once);
    }
}
