//! Limits and attacks: what is refused, in cel-go's words, without a deep stack or much time.

use super::{errors, parse, parse_all};
use mainstay_cel::syntax::unparse;

/// As threads of servers and tests have it.
const STACK: usize = 2 * 1024 * 1024;

fn on_a_small_stack(run: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(STACK).spawn(run).unwrap().join().unwrap();
}

const NESTED: &str = "-1:-1 expression recursion limit exceeded: 250";
const DEEP: &str = "-1:-1 max recursion depth exceeded";

#[test]
fn nesting_ends_where_it_ends_for_cel_go() {
    on_a_small_stack(|| {
        for (open, core, close, most, refusal) in [
            ("(", "x", ")", 249, NESTED),
            ("[", "", "]", 250, NESTED),
            ("{1: ", "x", "}", 249, NESTED),
            ("f(", "x", ")", 249, NESTED),
            ("a ? b : ", "x", "", 249, NESTED),
            ("(1 + ", "x", ")", 124, NESTED),
            ("(1 + 2 * ", "x", ")", 83, NESTED),
            ("(1 < ", "x", ")", 124, NESTED),
            ("", "x", ".a", 250, DEEP),
            ("", "x", "[0]", 250, DEEP),
            ("", "x", ".a()", 250, DEEP),
            ("", "x", " + 1", 250, DEEP),
            ("", "x", " < 1", 250, DEEP),
            ("!", "x", "", 20_000, ""),
            ("", "x", " && x", 19_000, ""),
            ("", "x", " || x && y", 9_000, ""),
        ] {
            let text =
                |count: usize| format!("{}{core}{}", open.repeat(count), close.repeat(count));
            let parsed = parse(&text(most)).unwrap_or_else(|issues| panic!("{open} {issues}"));
            assert!(!unparse(&parsed).is_empty());
            if !refusal.is_empty() {
                assert_eq!(errors(&parse(&text(most + 1)).unwrap_err()), [refusal], "{open}");
            }
        }
    });
}

#[test]
fn recovery_ends_after_so_many_attempts_tokens_and_errors() {
    for (text, limit) in [
        ("[".repeat(300), NESTED),
        ("{a b, ".repeat(40), "1:183 Syntax error: error recovery attempt limit exceeded: 30"),
        (
            format!("a.b{}", " 1".repeat(300)),
            "-1:-1 error recovery token lookahead limit exceeded: 256",
        ),
    ] {
        let found = errors(&parse(&text).unwrap_err());
        assert!(found.iter().any(|error| error == limit), "{text}: {found:?}");
    }
    // A hundred and that there are more, of which a hundred are shown.
    let shown = parse(&"#".repeat(200)).unwrap_err().to_string();
    assert!(shown.ends_with("\n1 more errors were truncated"), "{shown}");
    assert_eq!(shown.matches("ERROR: ").count(), 100);
}

#[test]
fn long_and_odd_texts_are_refused_in_time() {
    on_a_small_stack(|| {
        let attacks = [
            ("(", ""),
            ("[", ""),
            ("{", ""),
            ("-1.f(", ""),
            ("-1.f(", "x"),
            ("a.", ""),
            ("a.b.", "{"),
            ("a?", ""),
            ("a ", ""),
            ("'''", "\\q"),
            ("r\"", ""),
            ("\"\"\"\\q", ""),
            ("f(a, -", ""),
            ("[a.b, ", "#"),
            ("x.all(y, ", ""),
            ("`", ""),
            ("é", ""),
            ("\n", "("),
            ("//\n", "="),
            ("a.b(c) == d && ", "="),
        ];
        for (part, end) in attacks {
            let text = part.repeat(30_000 / part.len()) + end;
            let refused = parse_all(&text);
            assert!(refused.is_err(), "{part}{end}");
            assert!(refused.unwrap_err().to_string().len() < 3_000_000);
        }
    });
}
