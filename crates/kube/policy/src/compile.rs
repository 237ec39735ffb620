//! From the text of an expression to a program, or to the words that refuse it.

use super::declarations::{Scope, VARIABLES};
use mainstay_cel::Program;
use mainstay_cel::types::Type;
use std::fmt::Write as _;

/// What an expression has to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gives {
    /// Whether something holds.
    Truth,
    /// A text.
    Text,
    /// A text, or nothing.
    TextOrNull,
    /// Whatever it likes.
    Anything,
}

/// Why an expression cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// In the original's words.
    pub detail: String,
    /// Whether it counts as a failure of the server rather than of who wrote the expression.
    pub internal: bool,
}

/// An expression that can be evaluated.
#[derive(Debug)]
pub struct Ready {
    /// The program.
    pub program: Program,
    /// What it gives, as far as that is known.
    pub output: Type,
}

impl Scope {
    /// Compiles an expression. `authorizer`: whether it may ask who may do what.
    pub fn compile(&self, text: &str, gives: Gives, authorizer: bool) -> Result<Ready, Broken> {
        let checked = self.env(authorizer).compile(text).map_err(|issues| Broken {
            detail: format!("compilation failed: {issues}"),
            internal: false,
        })?;
        let output = checked.output().clone();
        if let Some(detail) = gives.refusal(&output) {
            return Err(Broken { detail, internal: false });
        }
        let program = Program::with_parts(&checked, VARIABLES).map_err(|error| Broken {
            detail: format!("program instantiation failed: {error}"),
            internal: true,
        })?;
        Ok(Ready { program, output })
    }

    /// Compiles a variable's expression and names what it gives: something, even if it is broken.
    pub fn variable(&self, name: &str, text: &str) -> Result<Ready, Broken> {
        let compiled = self.compile(text, Gives::Anything, true);
        self.name(name, compiled.as_ref().map_or(&Type::Dyn, |ready| &ready.output));
        compiled
    }
}

impl Gives {
    fn refusal(self, output: &Type) -> Option<String> {
        let (allowed, wanted): (&[Type], _) = match self {
            Self::Truth => (&[Type::Bool], "bool"),
            Self::Text => (&[Type::String], "string"),
            Self::TextOrNull => (&[Type::String, Type::Null], "one of [string null_type]"),
            Self::Anything => return None,
        };
        let wrong = !allowed.contains(output);
        wrong.then(|| format!("must evaluate to {wanted} but got {}", go_name(output)))
    }
}

/// A type as Go prints it, which is not as the checker prints it.
fn go_name(of: &Type) -> String {
    let mut text = of.name().to_owned();
    let params: Vec<&Type> = match of {
        Type::List(element) => vec![element],
        Type::Map(entry) => vec![&entry.0, &entry.1],
        Type::Type(Some(of)) => vec![of],
        Type::Opaque(opaque) => opaque.params.iter().collect(),
        _ => Vec::new(),
    };
    for (at, param) in params.iter().enumerate() {
        // Writing to a text does not fail.
        let _ = write!(text, "{}{}", if at == 0 { "(" } else { ", " }, go_name(param));
    }
    if !params.is_empty() {
        text.push(')');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_has_to_be_what_is_wanted() {
        let scope = Scope::new(false, false);
        for (text, gives, expected) in [
            ("true", Gives::Truth, ""),
            ("object.a", Gives::Truth, "must evaluate to bool but got dyn"),
            ("[1]", Gives::Truth, "must evaluate to bool but got list(int)"),
            ("{'a': null}", Gives::Truth, "must evaluate to bool but got map(string, null_type)"),
            (
                "duration('1s')",
                Gives::Truth,
                "must evaluate to bool but got google.protobuf.Duration",
            ),
            ("type(1)", Gives::Truth, "must evaluate to bool but got type(int)"),
            ("optional.of(1)", Gives::Truth, "must evaluate to bool but got optional_type(int)"),
            ("1", Gives::Text, "must evaluate to string but got int"),
            ("null", Gives::TextOrNull, ""),
            ("1", Gives::TextOrNull, "must evaluate to one of [string null_type] but got int"),
            ("quantity('1')", Gives::Anything, ""),
            (
                "1 +",
                Gives::Anything,
                "compilation failed: ERROR: <input>:1:4: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | 1 +\n | ...^",
            ),
        ] {
            let found = scope.compile(text, gives, true).err();
            assert_eq!(found.map_or(String::new(), |broken| broken.detail), expected, "{text}");
        }
    }
}
