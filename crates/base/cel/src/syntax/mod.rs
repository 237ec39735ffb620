//! From text to trees and back.
//!
//! Trees, texts of errors and their places are those of cel-go 0.26, whose parser is generated
//! from a grammar. Well-formed text is read by a small parser written by hand, straight into the
//! tree. Only where that gives up, a second one goes through the text anew as the generated one
//! would, to say what that would say: its way of recovering is what people see.

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

/// How many code points a text may have (cel-go's limit).
pub const MAX_CODE_POINTS: usize = 100_000;

/// What the parser is to accept.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// The macros that are known, standard ones too. Of two for the same calls the later is used.
    pub macros: &'a [Macro],
    /// Whether `a.?b`, `a[?b]`, `[?a]` and `{?a: b}` are known.
    pub optional: bool,
    /// Whether names in backquotes are known.
    pub quoted_names: bool,
}

/// A macro: a call that the parser replaces by something else.
#[derive(Clone, Copy, Debug)]
pub struct Macro {
    /// The function's name.
    pub name: &'static str,
    /// Whether it stands behind a dot.
    pub receiver: bool,
    /// How many arguments it takes; none for any number.
    pub args: Option<usize>,
    /// What becomes of it; none if this call is not the macro's after all.
    pub expand: ExpandMacro,
}

/// What becomes of a macro's call with its target and arguments.
pub type ExpandMacro =
    fn(&mut NodeFactory<'_>, Option<Expr>, Vec<Expr>) -> Result<Expansion, MacroError>;

/// What came of a macro.
#[derive(Debug)]
pub enum Expansion {
    /// This instead of the call.
    Replacement(Expr),
    /// The call is not the macro's: it stays.
    Unchanged(Option<Expr>, Vec<Expr>),
}

/// Why a macro cannot be expanded.
#[derive(Debug)]
pub struct MacroError {
    /// The code point that is to blame.
    pub at: u32,
    /// In cel-go's words.
    pub message: String,
}

/// Reads an expression.
///
/// # Errors
///
/// In the words and at the places that cel-go (with its ANTLR parser) gives. Refuses texts of more
/// than [`MAX_CODE_POINTS`] and trees that are deeper than [`MAX_DEPTH`] or have more than
/// [`MAX_NODES`].
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
            recovery::explain(&mut builder);
            builder.errors
        }
    };
    let issues = errors
        .into_iter()
        .map(|(at, message)| CompileIssue { at: at.map(|at| source.location(at)), message })
        .collect();
    Err(Issues::new(source, issues))
}
