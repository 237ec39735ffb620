//! Visitor of a parse tree with errors: it builds the expression, to find errors beyond syntax.

use super::super::ast::{Expr, ExprKind, Literal, operator};
use super::super::builder::Builder;
use super::super::lexer::{Token, TokenKind};
use super::super::nodes::MAX_DEPTH;
use super::super::parser::binary;
use super::network::{Label, Rule};
use super::tree::{Branch, Tree, missing_token};
use crate::source::NOWHERE;

/// The visitor gave up; all errors are recorded.
#[derive(Debug)]
pub(super) struct GivenUp;

type VisitResult = Result<Expr, GivenUp>;

/// Records the errors of a tree in the builder.
pub(super) fn visit(tree: &Tree, root: Branch, builder: &mut Builder<'_>) {
    let mut visitor = Visitor { tree, builder, depth: 0 };
    let result = visitor.visit(tree.branch(root, Label::First));
    if let Err(GivenUp) = result {
        let message = builder.nodes.exceeded_limit.unwrap_or("max recursion depth exceeded");
        builder.errors.push((None, message.to_owned()));
    }
}

struct Visitor<'a, 'b> {
    tree: &'a Tree,
    builder: &'a mut Builder<'b>,
    depth: u16,
}

impl Visitor<'_, '_> {
    /// Skips branches that have a single child and no meaning of their own.
    fn skip_trivial_branches(&self, mut branch: Option<Branch>) -> Option<Branch> {
        while let Some(at) = branch {
            let alternative = self.tree.alternative(at);
            let has_no_meaning = match self.tree.rule(at) {
                Rule::Expr | Rule::Or | Rule::And | Rule::Relation | Rule::Calc => {
                    self.tree.token(at, Label::Operator).is_none()
                }
                Rule::Unary => alternative == 1,
                Rule::Member => alternative == 0,
                Rule::Primary => alternative == 3 || alternative == 7,
                _ => false,
            };
            if !has_no_meaning {
                break;
            }
            branch = self.tree.branch(at, Label::First);
        }
        branch
    }

    fn visit(&mut self, branch: Option<Branch>) -> VisitResult {
        let Some(at) = self.skip_trivial_branches(branch) else {
            return Ok(self.error_placeholder(None));
        };
        self.depth += 1;
        if self.depth > MAX_DEPTH || self.builder.nodes.exceeded_limit.is_some() {
            return Err(GivenUp);
        }
        let alternative = self.tree.alternative(at);
        let visited = match (self.tree.rule(at), alternative) {
            (Rule::Expr, _) => self.conditional(at),
            (Rule::Or, _) => self.chain(at, operator::OR, "||"),
            (Rule::And, _) => self.chain(at, operator::AND, "&&"),
            (Rule::Relation | Rule::Calc, _) => self.binary(at),
            (Rule::Unary, 2) => self.with_signs(at, operator::NOT),
            (Rule::Unary, 3) => self.with_signs(at, operator::NEGATE),
            (Rule::Member, 1) => self.select(at),
            (Rule::Member, 2) => self.method(at),
            (Rule::Member, _) => self.index(at),
            (Rule::Primary, 1) => Ok(self.ident(at)),
            (Rule::Primary, 2) => self.function(at),
            (Rule::Primary, 4) => self.list(at),
            (Rule::Primary, 5) => self.map(at),
            (Rule::Primary, 6) => self.message(at),
            (Rule::Literal, 1..) => Ok(self.literal(at)),
            (Rule::Unary, _) => Ok(self.null_placeholder(at)),
            _ => Ok(self.error_placeholder(Some(at))),
        };
        self.depth -= 1;
        visited
    }

    fn null_placeholder(&mut self, at: Branch) -> Expr {
        let start = self.tree.start(at).at;
        self.builder.nodes.node(start, ExprKind::Literal(Literal::Null))
    }

    /// A placeholder for a missing branch; there is already an error for it.
    fn error_placeholder(&mut self, at: Option<Branch>) -> Expr {
        if self.builder.errors.is_empty() {
            let what =
                at.map_or("<<nil>>".to_owned(), |at| format!("<<{:?}>>", self.tree.rule(at)));
            let message = format!("unknown parse element encountered: {what}");
            self.builder.errors.push((None, message));
        }
        self.builder.nodes.node(NOWHERE, ExprKind::Literal(Literal::Null))
    }

    fn first(&mut self, at: Branch) -> VisitResult {
        self.visit(self.tree.branch(at, Label::First))
    }

    fn next(&mut self, at: Branch) -> VisitResult {
        self.visit(self.tree.branch(at, Label::Next))
    }

    /// A token, or a placeholder if it is missing.
    fn token(&self, at: Branch, label: Label) -> Token {
        self.tree
            .token(at, label)
            .unwrap_or_else(|| missing_token(TokenKind::End, self.tree.start(at).at))
    }

    fn conditional(&mut self, at: Branch) -> VisitResult {
        let condition = self.first(at)?;
        let then = self.next(at)?;
        let otherwise = self.visit(self.tree.branch(at, Label::Last))?;
        let place = self.token(at, Label::Operator).at;
        let args = vec![condition, then, otherwise];
        Ok(self.builder.nodes.call(place, operator::CONDITIONAL, args))
    }

    fn chain(&mut self, at: Branch, name: &str, sign: &str) -> VisitResult {
        let tree = self.tree;
        let mut operands = vec![self.first(at)?];
        let mut operators = Vec::new();
        let mut rest = tree.branches(at, Label::Next);
        for operator in tree.tokens(at, Label::Operator) {
            let Some(next) = rest.next() else {
                let message = format!("unexpected character, wanted '{sign}'");
                return Ok(self.builder.error(tree.start(at).at, message));
            };
            operands.push(self.visit(Some(next))?);
            operators.push(operator.at);
        }
        let chain = self.builder.chain(name, &operators, &mut operands.into_iter());
        Ok(chain.unwrap_or_else(|| self.null_placeholder(at)))
    }

    fn binary(&mut self, at: Branch) -> VisitResult {
        let operator = self.token(at, Label::Operator);
        let Some((_, name)) = binary(operator.kind) else {
            return Ok(self.builder.error(self.tree.start(at).at, "operator not found"));
        };
        let left = self.first(at)?;
        let right = self.next(at)?;
        Ok(self.builder.nodes.call(operator.at, name, vec![left, right]))
    }

    fn with_signs(&mut self, at: Branch, name: &str) -> VisitResult {
        let operand = self.first(at)?;
        let mut signs = self.tree.tokens(at, Label::Operator);
        match signs.next() {
            Some(first) if signs.count().is_multiple_of(2) => {
                Ok(self.builder.nodes.call(first.at, name, vec![operand]))
            }
            _ => Ok(operand),
        }
    }

    /// The name of a field, if it exists.
    fn name(&mut self, name: Option<Branch>, error_at: u32) -> Option<Token> {
        let token = name.and_then(|name| self.tree.token(name, Label::Name));
        if token.is_none() {
            self.builder.error(error_at, "unsupported ident kind");
        }
        token
    }

    fn select(&mut self, at: Branch) -> VisitResult {
        let operand = self.first(at)?;
        let dot = self.tree.token(at, Label::Operator);
        let name = self.tree.branch(at, Label::Name);
        let (Some(dot), Some(name)) = (dot, name) else { return Ok(self.null_placeholder(at)) };
        let optional = self.tree.token(at, Label::Optional).is_some();
        let start = self.tree.start(name).at;
        let field = self.name(Some(name), start).unwrap_or(missing_token(TokenKind::Ident, start));
        Ok(self.builder.select(operand, (dot, optional, field), start))
    }

    fn method(&mut self, at: Branch) -> VisitResult {
        let target = self.first(at)?;
        let Some(name) = self.tree.token(at, Label::Name) else {
            return Ok(self.null_placeholder(at));
        };
        let args = self.args(at)?;
        let open = self.token(at, Label::Open);
        Ok(self.builder.method(target, (name, open), args))
    }

    fn index(&mut self, at: Branch) -> VisitResult {
        let target = self.first(at)?;
        let Some(open) = self.tree.token(at, Label::Operator) else {
            return Ok(self.null_placeholder(at));
        };
        let index = self.next(at)?;
        let optional = self.tree.token(at, Label::Optional).is_some();
        Ok(self.builder.index(target, (open, optional), index))
    }

    fn args(&mut self, at: Branch) -> Result<Vec<Expr>, GivenUp> {
        let tree = self.tree;
        let Some(args) = tree.branch(at, Label::Args) else { return Ok(Vec::new()) };
        tree.branches(args, Label::Next).map(|arg| self.visit(Some(arg))).collect()
    }

    fn ident(&mut self, at: Branch) -> Expr {
        match self.tree.token(at, Label::Name) {
            Some(name) => self.builder.ident(self.tree.token(at, Label::Dot), name),
            None => self.null_placeholder(at),
        }
    }

    fn function(&mut self, at: Branch) -> VisitResult {
        let Some(name) = self.tree.token(at, Label::Name) else {
            return Ok(self.null_placeholder(at));
        };
        let errors_before = self.builder.errors.len();
        let args = self.args(at)?;
        let dot = self.tree.token(at, Label::Dot);
        let open = self.token(at, Label::Operator);
        Ok(self.builder.function((dot, name, open), args, errors_before))
    }

    fn list(&mut self, at: Branch) -> VisitResult {
        let tree = self.tree;
        let mut elements = Vec::new();
        if let Some(list) = tree.branch(at, Label::Args) {
            for element in tree.branches(list, Label::Next) {
                let mark = tree.token(element, Label::Optional);
                elements.push((mark, self.first(element)?));
            }
        }
        Ok(self.builder.list(self.token(at, Label::Operator), elements))
    }

    fn map(&mut self, at: Branch) -> VisitResult {
        let tree = self.tree;
        let mut entries = Vec::new();
        if let Some(list) = tree.branch(at, Label::Args) {
            let mut keys = tree.branches(list, Label::Key);
            let mut values = tree.branches(list, Label::Next);
            for colon in tree.tokens(list, Label::Colon) {
                let (Some(key), Some(value)) = (keys.next(), values.next()) else { break };
                let errors_before = self.builder.errors.len();
                let mark = tree.token(key, Label::Optional);
                let pair = (self.first(key)?, self.visit(Some(value))?);
                entries.extend(self.builder.entry((mark, colon), pair, errors_before));
            }
        }
        Ok(self.builder.map(self.token(at, Label::Operator), entries))
    }

    fn message(&mut self, at: Branch) -> VisitResult {
        let tree = self.tree;
        let mut fields = Vec::new();
        if let Some(list) = tree.branch(at, Label::Args) {
            let first = tree.start(list).at;
            let mut colons = tree.tokens(list, Label::Colon);
            let mut values = tree.branches(list, Label::Next);
            for field in tree.branches(list, Label::Key) {
                let (Some(colon), Some(value)) = (colons.next(), values.next()) else { break };
                let errors_before = self.builder.errors.len();
                let mark = tree.token(field, Label::Optional);
                if mark.is_none() || self.builder.options.optional {
                    let Some(name) = self.name(tree.branch(field, Label::Name), first) else {
                        continue;
                    };
                    let value = self.visit(Some(value))?;
                    let part = (first, mark, name, colon);
                    fields.extend(self.builder.field_entry(part, value, errors_before));
                } else {
                    self.builder.error(tree.start(field).at, "unsupported syntax '?'");
                }
            }
        }
        let names: Vec<_> = tree.tokens(at, Label::Name).collect();
        let open = self.token(at, Label::Operator);
        let dot = tree.token(at, Label::Dot);
        Ok(self.builder.message((dot, &names, open), fields))
    }

    fn literal(&mut self, at: Branch) -> Expr {
        match self.tree.token(at, Label::Name) {
            Some(token) => self.builder.literal(self.tree.token(at, Label::Sign), token),
            None => self.null_placeholder(at),
        }
    }
}
