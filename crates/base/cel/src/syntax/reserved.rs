//! Reserved words.

/// Words that cannot name variables and functions; fields and methods can have these names.
const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// Whether a word is reserved.
pub fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}
