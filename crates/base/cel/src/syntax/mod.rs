//! Syntax: parsing of expressions to trees, and unparsing.
//!
//! Trees, errors and positions are those of cel-go 0.26, whose parser is generated from a grammar.
//! A small hand-written parser reads valid text directly into a tree. If it fails, a second parser
//! reads the text again like the generated one, whose error recovery determines the errors.

pub mod ast;
mod builder;
mod lexer;
mod literal;
pub mod macros;
mod nodes;
mod parser;
mod recovery;
mod reserved;
mod unparse;

pub use nodes::{ACCUMULATOR, MAX_DEPTH, MAX_NODES, NodeFactory};
pub use reserved::is_reserved;
pub use unparse::unparse;

use crate::source::{CompileIssue, ExpressionSource, Issues};
use ast::{Expr, ParsedExpression};
use builder::Builder;

/// The maximum length of a text in code points (cel-go's limit).
pub const MAX_CODE_POINTS: usize = 100_000;

/// The options of the parser.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// The macros, including standard ones. The last macro for a call wins.
    pub macros: &'a [Macro],
    /// Whether `a.?b`, `a[?b]`, `[?a]` and `{?a: b}` are allowed.
    pub optional: bool,
    /// Whether names in backquotes are allowed.
    pub quoted_names: bool,
}

/// A macro: a call that the parser replaces by its expansion.
#[derive(Clone, Copy, Debug)]
pub struct Macro {
    /// The function's name.
    pub name: &'static str,
    /// Whether it is a method.
    pub receiver: bool,
    /// The number of its arguments; none for any number.
    pub args: Option<usize>,
    /// Its expansion.
    pub expand: ExpandMacro,
}

/// Expands a macro's call with its target and arguments.
pub type ExpandMacro =
    fn(&mut NodeFactory<'_>, Option<Expr>, Vec<Expr>) -> Result<Expansion, MacroError>;

/// The result of expanding a macro.
#[derive(Debug)]
pub enum Expansion {
    /// A node that replaces the call.
    Replacement(Expr),
    /// The call is not the macro's and stays as it is.
    Unchanged(Option<Expr>, Vec<Expr>),
}

/// An error of a macro's arguments.
#[derive(Debug)]
pub struct MacroError {
    /// The position of the error.
    pub at: u32,
    /// The message, as in cel-go.
    pub message: String,
}

/// Parses an expression.
///
/// # Errors
///
/// The errors and positions of cel-go's ANTLR parser; also texts of more than [`MAX_CODE_POINTS`],
/// and trees beyond [`MAX_DEPTH`] or [`MAX_NODES`].
pub fn parse(text: &str, options: &Options<'_>) -> Result<ParsedExpression, Issues> {
    let size = if text.len() <= MAX_CODE_POINTS { text.len() } else { text.chars().count() };
    if size > MAX_CODE_POINTS {
        let message = format!(
            "expression code point size exceeds limit: size: {size}, limit {MAX_CODE_POINTS}"
        );
        return Err(Issues::new(
            ExpressionSource::new(text),
            vec![CompileIssue { at: None, message }],
        ));
    }
    let source = ExpressionSource::new(text);
    let mut builder = Builder::new(text, options);
    let errors = match parser::read(&mut builder) {
        Ok(root) if builder.errors.is_empty() => {
            return Ok(ParsedExpression {
                source,
                root,
                last_id: builder.nodes.last_id(),
                macro_calls: builder.macro_calls,
            });
        }
        Ok(_) => builder.errors,
        Err(_) => {
            builder = Builder::new(text, options);
            recovery::report_errors(&mut builder);
            builder.errors
        }
    };
    let issues = errors
        .into_iter()
        .map(|(at, message)| CompileIssue { at: at.map(|at| source.location(at)), message })
        .collect();
    Err(Issues::new(source, issues))
}
