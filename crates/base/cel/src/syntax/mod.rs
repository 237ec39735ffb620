//! From text to trees and back.

pub mod ast;

use crate::source::Issues;
use ast::{Expr, Parsed};

/// What the parser is to accept.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// The macros that are known, standard ones too.
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
    pub expand: Expand,
}

/// What becomes of a macro's call with its target and arguments.
pub type Expand = fn(&mut Maker<'_>, Option<Expr>, Vec<Expr>) -> Result<Expanded, Refusal>;

/// What came of a macro.
#[derive(Debug)]
pub enum Expanded {
    /// This instead of the call.
    Instead(Expr),
    /// The call is not the macro's: it stays.
    Stays(Option<Expr>, Vec<Expr>),
}

/// Why a macro cannot be expanded.
#[derive(Debug)]
pub struct Refusal {
    /// The code point that is to blame.
    pub at: u32,
    /// In cel-go's words.
    pub message: String,
}

/// Makes nodes for macros: gives them numbers and the macro's place.
#[derive(Debug)]
pub struct Maker<'a> {
    last_id: &'a mut u32,
    at: u32,
}

impl Maker<'_> {
    /// A new node at the macro's place.
    pub fn node(&mut self, kind: ast::ExprKind) -> Expr {
        *self.last_id += 1;
        Expr { id: *self.last_id, at: self.at, kind }
    }
}

/// Reads an expression.
///
/// # Errors
///
/// In the words and at the places that cel-go (with its ANTLR parser) gives. Refuses texts of more
/// than 100,000 code points and trees that are too deep.
pub type Parse = fn(&str, Options<'_>) -> Result<Parsed, Issues>;
