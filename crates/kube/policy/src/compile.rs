//! Compilation of CEL expressions to programs, with the errors of Kubernetes.

use super::declarations::{ExpressionScope, VARIABLES};
use mainstay_cel::Program;
use mainstay_cel::types::Type;
use std::fmt::Write as _;

/// The type that an expression must return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnType {
    /// `bool`.
    Bool,
    /// `string`.
    String,
    /// `string` or `null_type`.
    StringOrNull,
    /// Any type.
    Any,
}

/// An expression does not compile, or returns the wrong type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    /// The error in the words of Kubernetes.
    pub detail: String,
    /// Whether the error is internal, not a mistake in the expression.
    pub internal: bool,
}

/// A compiled expression.
#[derive(Debug)]
pub struct PolicyExpression {
    /// The program.
    pub program: Program,
    /// The type that it returns, as far as the checker knows.
    pub output: Type,
}

impl ExpressionScope {
    /// Compiles an expression. `authorizer`: whether it may use the variable `authorizer`.
    pub fn compile(
        &self,
        text: &str,
        returns: ReturnType,
        authorizer: bool,
    ) -> Result<PolicyExpression, CompileError> {
        let checked = self.env(authorizer).compile(text).map_err(|issues| CompileError {
            detail: format!("compilation failed: {issues}"),
            internal: false,
        })?;
        let output = checked.output().clone();
        if let Some(detail) = returns.type_error(&output) {
            return Err(CompileError { detail, internal: false });
        }
        let program = Program::with_parts(&checked, VARIABLES).map_err(|error| CompileError {
            detail: format!("program instantiation failed: {error}"),
            internal: true,
        })?;
        Ok(PolicyExpression { program, output })
    }

    /// Compiles the expression of a variable and declares the variable: as `dyn` if compilation fails.
    pub fn compile_variable(
        &self,
        name: &str,
        text: &str,
    ) -> Result<PolicyExpression, CompileError> {
        let compiled = self.compile(text, ReturnType::Any, true);
        self.declare(name, compiled.as_ref().map_or(&Type::Dyn, |compiled| &compiled.output));
        compiled
    }
}

impl ReturnType {
    fn type_error(self, output: &Type) -> Option<String> {
        let (allowed, expected): (&[Type], _) = match self {
            Self::Bool => (&[Type::Bool], "bool"),
            Self::String => (&[Type::String], "string"),
            Self::StringOrNull => (&[Type::String, Type::Null], "one of [string null_type]"),
            Self::Any => return None,
        };
        (!allowed.contains(output))
            .then(|| format!("must evaluate to {expected} but got {}", go_name(output)))
    }
}

/// A type as cel-go prints it with `%v`; the checker prints types in another form.
fn go_name(ty: &Type) -> String {
    let mut text = ty.name().to_owned();
    let params: Vec<&Type> = match ty {
        Type::List(element) => vec![element],
        Type::Map(entry) => vec![&entry.0, &entry.1],
        Type::Type(Some(inner)) => vec![inner],
        Type::Opaque(opaque) => opaque.params.iter().collect(),
        _ => Vec::new(),
    };
    for (at, param) in params.iter().enumerate() {
        // Writing to a String does not fail.
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
    fn an_expression_must_return_the_type_that_its_field_requires() {
        let scope = ExpressionScope::new(false, false);
        for (text, returns, expected) in [
            ("true", ReturnType::Bool, ""),
            ("object.a", ReturnType::Bool, "must evaluate to bool but got dyn"),
            ("[1]", ReturnType::Bool, "must evaluate to bool but got list(int)"),
            (
                "{'a': null}",
                ReturnType::Bool,
                "must evaluate to bool but got map(string, null_type)",
            ),
            (
                "duration('1s')",
                ReturnType::Bool,
                "must evaluate to bool but got google.protobuf.Duration",
            ),
            ("type(1)", ReturnType::Bool, "must evaluate to bool but got type(int)"),
            (
                "optional.of(1)",
                ReturnType::Bool,
                "must evaluate to bool but got optional_type(int)",
            ),
            ("1", ReturnType::String, "must evaluate to string but got int"),
            ("null", ReturnType::StringOrNull, ""),
            (
                "1",
                ReturnType::StringOrNull,
                "must evaluate to one of [string null_type] but got int",
            ),
            ("quantity('1')", ReturnType::Any, ""),
            (
                "1 +",
                ReturnType::Any,
                "compilation failed: ERROR: <input>:1:4: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | 1 +\n | ...^",
            ),
        ] {
            let found = scope.compile(text, returns, true).err();
            assert_eq!(found.map_or(String::new(), |error| error.detail), expected, "{text}");
        }
    }
}
