//! Words that are no names.

/// Words that are no names of variables and functions; fields and methods may be called so.
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

/// Whether the language keeps a word for itself.
pub fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}
