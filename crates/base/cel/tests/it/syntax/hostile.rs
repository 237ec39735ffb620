//! Parser limits and attacks: cel-go's errors, without a deep stack or much time.

use super::{errors, parse, parse_all};
use mainstay_cel::syntax::unparse;

/// The stack size of server and test threads.
const STACK: usize = 2 * 1024 * 1024;

fn on_a_small_stack(run: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(STACK).spawn(run).unwrap().join().unwrap();
}

const NESTING_ERROR: &str = "-1:-1 expression recursion limit exceeded: 250";
const DEPTH_ERROR: &str = "-1:-1 max recursion depth exceeded";

#[test]
fn nesting_has_the_limit_of_cel_go() {
    on_a_small_stack(|| {
        for (open, core, close, max_depth, error_message) in [
            ("(", "x", ")", 249, NESTING_ERROR),
            ("[", "", "]", 250, NESTING_ERROR),
            ("{1: ", "x", "}", 249, NESTING_ERROR),
            ("f(", "x", ")", 249, NESTING_ERROR),
            ("a ? b : ", "x", "", 249, NESTING_ERROR),
            ("(1 + ", "x", ")", 124, NESTING_ERROR),
            ("(1 + 2 * ", "x", ")", 83, NESTING_ERROR),
            ("(1 < ", "x", ")", 124, NESTING_ERROR),
            ("", "x", ".a", 250, DEPTH_ERROR),
            ("", "x", "[0]", 250, DEPTH_ERROR),
            ("", "x", ".a()", 250, DEPTH_ERROR),
            ("", "x", " + 1", 250, DEPTH_ERROR),
            ("", "x", " < 1", 250, DEPTH_ERROR),
            ("!", "x", "", 20_000, ""),
            ("", "x", " && x", 19_000, ""),
            ("", "x", " || x && y", 9_000, ""),
        ] {
            let text =
                |count: usize| format!("{}{core}{}", open.repeat(count), close.repeat(count));
            let parsed = parse(&text(max_depth)).unwrap_or_else(|issues| panic!("{open} {issues}"));
            assert!(!unparse(&parsed).is_empty());
            if !error_message.is_empty() {
                assert_eq!(
                    errors(&parse(&text(max_depth + 1)).unwrap_err()),
                    [error_message],
                    "{open}"
                );
            }
        }
    });
}

#[test]
fn recovery_limits_attempts_tokens_and_errors() {
    for (text, limit) in [
        ("[".repeat(300), NESTING_ERROR),
        ("{a b, ".repeat(40), "1:183 Syntax error: error recovery attempt limit exceeded: 30"),
        (
            format!("a.b{}", " 1".repeat(300)),
            "-1:-1 error recovery token lookahead limit exceeded: 256",
        ),
    ] {
        let found = errors(&parse(&text).unwrap_err());
        assert!(found.iter().any(|error| error == limit), "{text}: {found:?}");
    }
    // A hundred errors are shown, and a message that there are more.
    let shown = parse(&"#".repeat(200)).unwrap_err().to_string();
    assert!(shown.ends_with("\n1 more errors were truncated"), "{shown}");
    assert_eq!(shown.matches("ERROR: ").count(), 100);
}

#[test]
fn long_and_unusual_texts_are_rejected_in_time() {
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
            let error = parse_all(&text);
            assert!(error.is_err(), "{part}{end}");
            assert!(error.unwrap_err().to_string().len() < 3_000_000);
        }
    });
}
