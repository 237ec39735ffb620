//! No text causes a panic or a stack overflow.

use super::random::Random;
use super::{attempt, run_on_stack};

/// The stack size of server threads.
const STACK: usize = 2 * 1024 * 1024;

/// Far above the parser's limit.
const DEPTH: usize = 1_200;

#[test]
fn deep_nesting_and_long_chains_do_not_overflow_the_stack() {
    let nested = |open: &str, core: &str, close: &str| {
        [240, DEPTH].map(|times| format!("{}{core}{}", open.repeat(times), close.repeat(times)))
    };
    let chained = |first: &str, more: &str| {
        [240, DEPTH].map(|times| format!("{first}{}", more.repeat(times)))
    };
    let texts = [
        nested("(", "1", ")"),
        nested("[", "1", "]"),
        nested("{1: ", "1", "}"),
        nested("{", "1", ": 1}"),
        nested("a.T{b: ", "1", "}"),
        nested("!", "true", ""),
        nested("-", "x", ""),
        nested("-", "1", ""),
        nested("! -", "x", ""),
        nested("true ? 1 : ", "1", ""),
        nested("true ? (", "1", ") : 1"),
        nested("(true ? ", "1", " : 1)"),
        nested("size(", "x", ")"),
        nested("x[", "0", "]"),
        nested("[1].all(a, ", "true", ")"),
        nested("[1].map(a, ", "a", ")"),
        nested("[1].exists(a, b, ", "true", ")"),
        nested("has(", "x.y", ")"),
        nested("optional.of(1).optMap(a, ", "a", ")"),
        nested("1 + (", "1", ")"),
        nested("(", "(", ""),
        nested("[", "", ""),
        nested("{", "", ""),
        nested("a(", "", ""),
        nested("\"", "", ""),
        nested("x.f(", "1", ")"),
        nested("true || true && x.f(", "1", ")"),
        nested("true || true && 1 == 1 + x[", "1", "]"),
        nested("true ? true || true && [1 * -{1: ", "1", "}] : 1"),
        chained("1", " + 1"),
        chained("'a'", " + 'a'"),
        chained("[1]", " + [1]"),
        chained("1", " - -1"),
        chained("true", " && true"),
        chained("true", " || false"),
        chained("true", " && true || false"),
        chained("1", " == 1"),
        chained("1", " in [1]"),
        chained("1", " ? 1 : 1"),
        chained("x", ".y"),
        chained("x", ".?y"),
        chained("x", "[0]"),
        chained("x", "[?0]"),
        chained("'a'", ".trim()"),
        chained("[[1]]", ".map(a, a)"),
        chained("[1]", ".filter(a, true)"),
        chained("x", "()"),
        chained("[1", ", 1"),
        chained("f(1", ", 1"),
        chained("{1: 1", ", 1: 1"),
        chained("", ") "),
        chained("", "1 "),
        chained("", "? "),
        chained("", ". "),
        chained("", "' "),
    ];
    for text in texts.into_iter().flatten() {
        run_on_stack(STACK, move || attempt(&text));
    }
}

#[test]
fn long_literals_do_not_panic() {
    for text in [
        format!("'{}'", "ä".repeat(99_998)),
        format!("'{}'", "ä".repeat(100_001)),
        format!("'{}'", "\\n".repeat(40_000)),
        format!("b'{}'", "\\377".repeat(20_000)),
        "9".repeat(90_000),
        format!("0x{}", "f".repeat(90_000)),
        format!("{}u", "9".repeat(90_000)),
        format!("1.{}", "9".repeat(90_000)),
        format!("1e{}", "9".repeat(90_000)),
        format!("{}.5e-{}", "9".repeat(1000), "9".repeat(1000)),
        "a".repeat(90_000),
        format!("// {}", "x".repeat(90_000)),
        "\n".repeat(90_000),
        format!("'a'.matches('{}')", "(a|".repeat(20_000)),
        format!("'a'.matches('{}b{}')", "(".repeat(20_000), ")".repeat(20_000)),
        "'a'.matches('((((a{1000}){1000}){1000}){1000})')".to_owned(),
        format!("'%{}d'.format([1])", "9".repeat(1000)),
        "'%.999999999f'.format([1.0])".to_owned(),
        format!("quantity('{}')", "9".repeat(50_000)),
        format!("duration('{}h')", "9".repeat(50_000)),
        format!("timestamp('{}')", "9".repeat(50_000)),
        format!("semver('{}')", "1.".repeat(20_000)),
        format!("url('http://{}')", "a".repeat(50_000)),
        format!("ip('{}')", ":".repeat(50_000)),
        "lists.range(9223372036854775807)".to_owned(),
        "[[1]].flatten(9223372036854775807)".to_owned(),
        "[1].slice(-9223372036854775808, 9223372036854775807)".to_owned(),
        "'a'.substring(9223372036854775807)".to_owned(),
        "'a'.replace('', 'b', 9223372036854775807)".to_owned(),
        "'a'.split('', 9223372036854775807)".to_owned(),
    ] {
        run_on_stack(STACK, move || attempt(&text));
    }
}

/// Pieces that sometimes form expressions when concatenated.
const PIECES: &[&str] = &[
    "x",
    "y",
    "self",
    "1",
    "1u",
    "1.5",
    "'a'",
    "b'a'",
    "r'a'",
    "\"",
    "'",
    "'''",
    "\\",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ".",
    "?",
    ":",
    ",",
    "+",
    "-",
    "*",
    "/",
    "%",
    "!",
    "==",
    "!=",
    "<",
    ">=",
    "&&",
    "||",
    " in ",
    "[?",
    ".?",
    "true",
    "null",
    "has(",
    "size(",
    ".all(a, ",
    ".map(a, ",
    ".exists(a, b, ",
    "optional.of(",
    "optional.none()",
    ".orValue(",
    "matches(",
    "@",
    "`",
    "#",
    "0x",
    "1e",
    "\n",
    "\t",
    "//",
    "ä",
    "😀",
    "\u{0}",
    "in",
    "as",
    "if",
    "T{a: 1}",
    ".f(",
    "dyn(",
];

#[test]
fn random_tokens_and_bytes_do_not_panic() {
    run_on_stack(STACK, || {
        let mut random = Random(1);
        for _ in 0..2_000 {
            let length = 1 + random.below(12);
            let text: String = (0..length).map(|_| random.pick(PIECES)).collect();
            attempt(&text);
            let bytes: Vec<u8> =
                (0..length).map(|_| u8::try_from(random.below(256)).unwrap()).collect();
            attempt(&String::from_utf8_lossy(&bytes));
        }
    });
}
