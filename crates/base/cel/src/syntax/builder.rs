//! Tree builder of the parsers, with errors in well-formed text: reserved words, literals out of
//! range, wrong arguments of macros.

use super::ast::{Expr, ExprKind, FieldEntry, Id, Literal, MapEntry, operator};
use super::lexer::{Token, TokenKind};
use super::nodes::{NodeFactory, Nodes};
use super::reserved::is_reserved;
use super::{Expansion, Options, literal};
use std::collections::HashMap;
use std::sync::Arc;

/// Builds trees.
#[derive(Debug)]
pub(super) struct Builder<'a> {
    pub(super) text: &'a str,
    pub(super) options: &'a Options<'a>,
    pub(super) nodes: Nodes,
    pub(super) macro_calls: HashMap<Id, Expr>,
    /// Errors with their positions; without a position for the whole text.
    pub(super) errors: Vec<(Option<u32>, String)>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(text: &'a str, options: &'a Options<'a>) -> Self {
        Self { text, options, nodes: Nodes::new(), macro_calls: HashMap::new(), errors: Vec::new() }
    }

    pub(super) fn text_of(&self, token: Token) -> &'a str {
        &self.text[token.start as usize..token.end as usize]
    }

    /// Records an error; returns a placeholder node.
    pub(super) fn error(&mut self, at: u32, message: impl Into<String>) -> Expr {
        self.errors.push((Some(at), message.into()));
        self.nodes.node(at, ExprKind::Literal(Literal::Null))
    }

    /// Builds a literal, with an optional minus sign.
    pub(super) fn literal(&mut self, minus: Option<Token>, token: Token) -> Expr {
        let text = self.text_of(token);
        let at = minus.map_or(token.at, |minus| minus.at);
        let negative = minus.is_some();
        let literal = match token.kind {
            TokenKind::Int => literal::int(negative, text),
            TokenKind::Uint => literal::uint(text),
            TokenKind::Float => literal::double(negative, text),
            TokenKind::String => literal::string(text, |plain| self.nodes.name(plain)),
            TokenKind::Bytes => literal::bytes(text),
            TokenKind::True => Ok(Literal::Bool(true)),
            TokenKind::False => Ok(Literal::Bool(false)),
            _ => Ok(Literal::Null),
        };
        match literal {
            Ok(literal) => self.nodes.node(at, ExprKind::Literal(literal)),
            Err(message) => self.error(at, message),
        }
    }

    /// Builds an identifier, with an optional leading dot.
    pub(super) fn ident(&mut self, dot: Option<Token>, token: Token) -> Expr {
        let name = self.text_of(token);
        let start = dot.map_or(token.at, |dot| dot.at);
        if is_reserved(name) {
            return self.error(start, format!("reserved identifier: {name}"));
        }
        let name = self.absolute_name(dot, name);
        self.nodes.node(token.at, ExprKind::Ident(name))
    }

    fn absolute_name(&mut self, dot: Option<Token>, name: &str) -> Arc<str> {
        match dot {
            Some(_) => self.nodes.name(&format!(".{name}")),
            None => self.nodes.name(name),
        }
    }

    /// Builds a call of a function. `errors_before` is the number of errors before its arguments.
    pub(super) fn function(
        &mut self,
        (dot, token, open): (Option<Token>, Token, Token),
        args: Vec<Expr>,
        errors_before: usize,
    ) -> Expr {
        let name = self.text_of(token);
        let start = dot.map_or(token.at, |dot| dot.at);
        if is_reserved(name) {
            // Errors in its arguments are dropped.
            self.errors.truncate(errors_before);
            return self.error(start, format!("reserved identifier: {name}"));
        }
        let name = self.absolute_name(dot, name);
        self.call_or_macro(open.at, &name, None, args)
    }

    /// Builds a call of a method.
    pub(super) fn method(
        &mut self,
        target: Expr,
        (token, open): (Token, Token),
        args: Vec<Expr>,
    ) -> Expr {
        let name = self.nodes.name(self.text_of(token));
        self.call_or_macro(open.at, &name, Some(target), args)
    }

    /// The name of a field, if its syntax is allowed.
    fn field(&mut self, token: Token, at: u32) -> Option<Arc<str>> {
        let text = self.text_of(token);
        if token.kind != TokenKind::Quoted {
            return Some(self.nodes.name(text));
        }
        if self.options.quoted_names {
            return Some(self.nodes.name(&text[1..text.len() - 1]));
        }
        self.error(at, "unsupported syntax: '`'");
        None
    }

    /// Builds `operand.field` or `operand.?field`; `name_at` is the position of the name.
    pub(super) fn select(
        &mut self,
        operand: Expr,
        (dot, optional, field): (Token, bool, Token),
        name_at: u32,
    ) -> Expr {
        let name = self.field(field, name_at).unwrap_or_default();
        if !optional {
            let operand = Box::new(operand);
            let kind = ExprKind::Select { operand, field: name, test_only: false };
            return self.nodes.node(dot.at, kind);
        }
        if !self.options.optional {
            return self.error(dot.at, "unsupported syntax '.?'");
        }
        let name = self.nodes.node(name_at, ExprKind::Literal(Literal::String(name)));
        self.nodes.call(dot.at, operator::OPT_SELECT, vec![operand, name])
    }

    /// Builds `operand[index]` or `operand[?index]`.
    pub(super) fn index(
        &mut self,
        operand: Expr,
        (open, optional): (Token, bool),
        index: Expr,
    ) -> Expr {
        if optional && !self.options.optional {
            return self.error(open.at, "unsupported syntax '[?'");
        }
        let operator = if optional { operator::OPT_INDEX } else { operator::INDEX };
        self.nodes.call(open.at, operator, vec![operand, index])
    }

    /// Builds `[elements]`, each with an optional question mark.
    pub(super) fn list(&mut self, open: Token, elements: Vec<(Option<Token>, Expr)>) -> Expr {
        let mut optional = Vec::new();
        for (index, (mark, _)) in elements.iter().enumerate() {
            if let Some(mark) = mark {
                if self.options.optional {
                    optional.push(u32::try_from(index).unwrap_or(u32::MAX));
                } else {
                    self.error(mark.at, "unsupported syntax '?'");
                }
            }
        }
        let elements = elements.into_iter().map(|(_, element)| element).collect();
        self.nodes.node(open.at, ExprKind::List { elements, optional })
    }

    /// Builds `?key: value` of a map; none after an error. `errors_before` is the number of errors
    /// before it.
    pub(super) fn entry(
        &mut self,
        (mark, colon): (Option<Token>, Token),
        (key, value): (Expr, Expr),
        errors_before: usize,
    ) -> Option<MapEntry> {
        if let Some(mark) = mark
            && !self.options.optional
        {
            self.errors.truncate(errors_before);
            self.error(mark.at, "unsupported syntax '?'");
            return None;
        }
        let id = self.nodes.id();
        Some(MapEntry { id, at: colon.at, key, value, optional: mark.is_some() })
    }

    /// Builds `{entries}`.
    pub(super) fn map(&mut self, open: Token, entries: Vec<MapEntry>) -> Expr {
        self.nodes.node(open.at, ExprKind::Map(entries))
    }

    /// Builds `?field: value` of a message whose first field begins at `first`; none after an
    /// error. `errors_before` is the number of errors before it.
    pub(super) fn field_entry(
        &mut self,
        (first, mark, field, colon): (u32, Option<Token>, Token, Token),
        value: Expr,
        errors_before: usize,
    ) -> Option<FieldEntry> {
        if let Some(mark) = mark
            && !self.options.optional
        {
            self.errors.truncate(errors_before);
            self.error(mark.at, "unsupported syntax '?'");
            return None;
        }
        if field.kind == TokenKind::Quoted && !self.options.quoted_names {
            self.errors.truncate(errors_before);
        }
        let field = self.field(field, first)?;
        let id = self.nodes.id();
        Some(FieldEntry { id, at: colon.at, field, value, optional: mark.is_some() })
    }

    /// Builds `name{fields}`.
    pub(super) fn message(
        &mut self,
        (dot, names, open): (Option<Token>, &[Token], Token),
        fields: Vec<FieldEntry>,
    ) -> Expr {
        let mut name = String::new();
        for (index, token) in names.iter().enumerate() {
            if index > 0 || dot.is_some() {
                name.push('.');
            }
            name.push_str(self.text_of(*token));
        }
        let name = self.nodes.name(&name);
        self.nodes.node(open.at, ExprKind::Struct { name, fields })
    }

    /// Builds a balanced tree of operands joined by `&&` or `||`, so long chains stay flat.
    /// `operators` are the positions between the operands.
    pub(super) fn chain(
        &mut self,
        operator: &str,
        operators: &[u32],
        operands: &mut impl Iterator<Item = Expr>,
    ) -> Option<Expr> {
        if operators.is_empty() {
            return operands.next();
        }
        let middle = operators.len() / 2;
        let left = self.chain(operator, &operators[..middle], operands)?;
        let right = self.chain(operator, &operators[middle + 1..], operands)?;
        Some(self.nodes.call(operators[middle], operator, vec![left, right]))
    }

    fn call_or_macro(
        &mut self,
        at: u32,
        name: &Arc<str>,
        target: Option<Expr>,
        args: Vec<Expr>,
    ) -> Expr {
        let receiver = target.is_some();
        // A later macro replaces an earlier one, and one with the exact number of arguments comes
        // before a variadic one.
        let find = |count: Option<usize>| {
            let matches = |candidate: &&super::Macro| {
                candidate.name == &**name
                    && candidate.receiver == receiver
                    && candidate.args == count
            };
            self.options.macros.iter().rev().find(matches)
        };
        let Some(macro_found) = find(Some(args.len())).or_else(|| find(None)).copied() else {
            return self.plain_call(at, name, target, args);
        };
        // A text with errors has no tree, so its original calls are not needed.
        let original_call =
            self.errors.is_empty().then(|| self.original_call(name, target.as_ref(), &args));
        let mut factory = NodeFactory { nodes: &mut self.nodes, at };
        match (macro_found.expand)(&mut factory, target, args) {
            Ok(Expansion::Replacement(expr)) => {
                self.macro_calls.extend(original_call.map(|call| (expr.id, call)));
                expr
            }
            Ok(Expansion::Unchanged(target, args)) => self.plain_call(at, name, target, args),
            Err(refusal) => self.error(refusal.at, refusal.message),
        }
    }

    fn plain_call(
        &mut self,
        at: u32,
        name: &Arc<str>,
        target: Option<Expr>,
        args: Vec<Expr>,
    ) -> Expr {
        let function = Arc::clone(name);
        let target = target.map(Box::new);
        self.nodes.node(at, ExprKind::Call { function, target, args })
    }

    /// The original call of a macro. Nested expansions in it are replaced by their ids.
    fn original_call(&self, name: &Arc<str>, target: Option<&Expr>, args: &[Expr]) -> Expr {
        let function = Arc::clone(name);
        let target = target.map(|target| Box::new(self.without_expansions(target)));
        let args = args.iter().map(|arg| self.without_expansions(arg)).collect();
        Expr { id: 0, at: 0, kind: ExprKind::Call { function, target, args } }
    }

    fn without_expansions(&self, expr: &Expr) -> Expr {
        let Expr { id, at, .. } = *expr;
        if self.macro_calls.contains_key(&id) {
            return Expr { id, at, kind: ExprKind::Ident("".into()) };
        }
        let kind = match &expr.kind {
            ExprKind::Select { operand, field, test_only } => ExprKind::Select {
                operand: Box::new(self.without_expansions(operand)),
                field: field.clone(),
                test_only: *test_only,
            },
            ExprKind::Call { function, target, args } => ExprKind::Call {
                function: function.clone(),
                target: target.as_ref().map(|target| Box::new(self.without_expansions(target))),
                args: args.iter().map(|arg| self.without_expansions(arg)).collect(),
            },
            ExprKind::List { elements, optional } => ExprKind::List {
                elements: elements.iter().map(|element| self.without_expansions(element)).collect(),
                optional: optional.clone(),
            },
            ExprKind::Map(entries) => {
                let without_expansions = |entry: &MapEntry| MapEntry {
                    key: self.without_expansions(&entry.key),
                    value: self.without_expansions(&entry.value),
                    ..*entry
                };
                ExprKind::Map(entries.iter().map(without_expansions).collect())
            }
            ExprKind::Struct { name, fields } => {
                let without_expansions = |field: &FieldEntry| FieldEntry {
                    field: field.field.clone(),
                    value: self.without_expansions(&field.value),
                    ..*field
                };
                ExprKind::Struct {
                    name: name.clone(),
                    fields: fields.iter().map(without_expansions).collect(),
                }
            }
            whole @ (ExprKind::Literal(_) | ExprKind::Ident(_) | ExprKind::Comprehension(_)) => {
                whole.clone()
            }
        };
        Expr { id, at, kind }
    }
}
