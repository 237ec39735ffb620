//! What is said about a text that is no expression.
//!
//! People see the words of cel-go, whose parser is generated from a grammar by ANTLR 4, and those
//! come of its way to recover: which token it misses, which one it would leave out, where it goes
//! on. So the text is read once more as that parser does it, through the same grammar
//! ([`grammar`], [`network`]) with the same kind of prediction ([`predict`]), and the tree that
//! comes of it is visited for what is wrong beyond its form ([`visit`]).
//!
//! This is some hundred times slower than reading well-formed text, and only done for text that
//! is refused.

mod grammar;
mod network;
mod parser;
mod prediction;
mod stack;
mod tree;
mod visitor;

use super::builder::Builder;

/// Notes in a fresh builder what is wrong with its text.
pub(super) fn explain(builder: &mut Builder<'_>) {
    let mut run = parser::ErrorParser::new(builder.text);
    let root = run.run();
    builder.errors = std::mem::take(&mut run.errors);
    if let Ok(root) = root {
        visitor::visit(&run.tree, root, builder);
    }
    if builder.errors.is_empty() {
        // Not met with: whatever the first parser refuses is refused here.
        builder.errors.push((None, "Syntax error".to_owned()));
    }
}
