//! Errors of invalid text, as cel-go's generated parser reports them.
//!
//! cel-go's parser is generated from a grammar by ANTLR 4. Its errors depend on its recovery: which
//! token it inserts, which one it deletes, and where it continues. So this parser reads the text
//! with the same grammar ([`grammar`], [`network`]) and the same prediction ([`prediction`]), and
//! visits the resulting tree for further errors ([`visitor`]).
//!
//! It is some hundred times slower than the parser of valid text, and only runs for invalid text.

mod grammar;
mod network;
mod parser;
mod prediction;
mod stack;
mod tree;
mod visitor;

use super::builder::Builder;

/// Records the errors of a text in a fresh builder.
pub(super) fn report_errors(builder: &mut Builder<'_>) {
    let mut parser = parser::ErrorParser::new(builder.text);
    let root = parser.parse();
    builder.errors = std::mem::take(&mut parser.errors);
    if let Ok(root) = root {
        visitor::visit(&parser.tree, root, builder);
    }
    if builder.errors.is_empty() {
        // This is not expected: this parser finds an error in every text that the first one
        // rejects.
        builder.errors.push((None, "Syntax error".to_owned()));
    }
}
