//! The parser of well-formed text: recursive descent, each operator's strength by its level.
//!
//! It gives up at the first thing that is no expression; what is then said about it is the matter
//! of another, slower parser.

use super::ast::{Expr, operator};
use super::builder::Builder;
use super::lexer::{Lexer, Token, TokenKind};
use super::nodes::MAX_DEPTH;

/// How deep rules of the grammar may be nested in themselves (cel-go counts each on its own).
pub(super) const MAX_NESTING: u16 = 250;

/// That a text is no expression.
#[derive(Debug)]
pub(super) struct NoExpression;

type Parse<T> = Result<T, NoExpression>;

/// All tokens of a text, the end too; none if something in it is no token.
fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut lexer = Lexer::new(text);
    let mut tokens = Vec::with_capacity(text.len() / 3 + 2);
    loop {
        let token = lexer.token().ok()?;
        tokens.push(token);
        if token.kind == TokenKind::End {
            return Some(tokens);
        }
    }
}

/// Reads a text. What is wrong beyond its form is noted in the builder.
pub(super) fn read(builder: &mut Builder<'_>) -> Parse<Expr> {
    let tokens = tokens(builder.text).ok_or(NoExpression)?;
    let mut parser = Parser { builder, tokens: &tokens, next: 0, depths: Depths::default() };
    let root = parser.expr()?;
    parser.expect(TokenKind::End)?;
    Ok(root)
}

/// How deep the parser is in rules that nest.
#[derive(Debug, Default)]
struct Depths {
    expr: u16,
    relation: u16,
    sum: u16,
    /// Nodes that are being read, other than those that an expression in brackets begins with.
    node: u16,
}

struct Parser<'a, 'b> {
    builder: &'a mut Builder<'b>,
    /// Ends with [`TokenKind::End`], which is never taken.
    tokens: &'a [Token],
    next: usize,
    depths: Depths,
}

fn enter(depth: &mut u16) -> Parse<()> {
    *depth += 1;
    if *depth > MAX_NESTING { Err(NoExpression) } else { Ok(()) }
}

/// The levels of binary operators that are read alike.
const RELATION: u8 = 1;
const SUM: u8 = 2;

/// A binary operator's level (the higher, the closer it binds) and name.
pub(super) fn binary(kind: TokenKind) -> Option<(u8, &'static str)> {
    Some(match kind {
        TokenKind::Equals => (RELATION, operator::EQUALS),
        TokenKind::NotEquals => (RELATION, operator::NOT_EQUALS),
        TokenKind::In => (RELATION, operator::IN),
        TokenKind::Less => (RELATION, operator::LESS),
        TokenKind::LessEquals => (RELATION, operator::LESS_EQUALS),
        TokenKind::GreaterEquals => (RELATION, operator::GREATER_EQUALS),
        TokenKind::Greater => (RELATION, operator::GREATER),
        TokenKind::Plus => (SUM, operator::ADD),
        TokenKind::Minus => (SUM, operator::SUBTRACT),
        TokenKind::Star => (SUM + 1, operator::MULTIPLY),
        TokenKind::Slash => (SUM + 1, operator::DIVIDE),
        TokenKind::Percent => (SUM + 1, operator::MODULO),
        _ => return None,
    })
}

impl Parser<'_, '_> {
    fn peek(&self) -> Token {
        self.peek_after(0)
    }

    fn peek_after(&self, count: usize) -> Token {
        let last = self.tokens.len() - 1;
        self.tokens[(self.next + count).min(last)]
    }

    fn take(&mut self) -> Token {
        let token = self.peek();
        self.next += 1;
        token
    }

    fn take_if(&mut self, kind: TokenKind) -> Option<Token> {
        (self.peek().kind == kind).then(|| self.take())
    }

    fn expect(&mut self, kind: TokenKind) -> Parse<Token> {
        self.take_if(kind).ok_or(NoExpression)
    }

    fn within_limits(&self) -> Parse<()> {
        if self.builder.nodes.beyond.is_some() { Err(NoExpression) } else { Ok(()) }
    }

    /// Begins to read a node that has others below it.
    fn enter_node(&mut self) -> Parse<()> {
        self.depths.node += 1;
        if self.depths.node > MAX_DEPTH {
            self.builder.nodes.too_deep();
            return Err(NoExpression);
        }
        Ok(())
    }

    /// `condition ? then : otherwise`, or only the first.
    fn expr(&mut self) -> Parse<Expr> {
        enter(&mut self.depths.expr)?;
        let mut expr = self.or()?;
        if self.peek().kind == TokenKind::Question {
            expr = self.conditional(expr)?;
        }
        self.within_limits()?;
        self.depths.expr -= 1;
        Ok(expr)
    }

    // What recurses is divided so that a text that is only nested does not pass through the large
    // frames of what it has no use for: all limits together stay within a small stack.

    fn conditional(&mut self, condition: Expr) -> Parse<Expr> {
        let question = self.take();
        let then = self.or()?;
        self.expect(TokenKind::Colon)?;
        let otherwise = self.expr()?;
        let args = vec![condition, then, otherwise];
        Ok(self.builder.nodes.call(question.at, operator::CONDITIONAL, args))
    }

    /// Operands between `||`, which are operands between `&&`.
    fn or(&mut self) -> Parse<Expr> {
        let first = self.and()?;
        if self.peek().kind == TokenKind::Or { self.rest_of_or(first) } else { Ok(first) }
    }

    fn rest_of_or(&mut self, first: Expr) -> Parse<Expr> {
        self.enter_node()?;
        let (mut operands, mut operators) = (vec![first], Vec::new());
        while let Some(operator) = self.take_if(TokenKind::Or) {
            operators.push(operator.at);
            operands.push(self.and()?);
        }
        let chain = self.builder.chain(operator::OR, &operators, &mut operands.into_iter());
        self.depths.node -= 1;
        chain.ok_or(NoExpression)
    }

    fn and(&mut self) -> Parse<Expr> {
        let first = self.binary(RELATION)?;
        if self.peek().kind == TokenKind::And { self.rest_of_and(first) } else { Ok(first) }
    }

    fn rest_of_and(&mut self, first: Expr) -> Parse<Expr> {
        self.enter_node()?;
        let (mut operands, mut operators) = (vec![first], Vec::new());
        while let Some(operator) = self.take_if(TokenKind::And) {
            operators.push(operator.at);
            operands.push(self.binary(RELATION)?);
        }
        let chain = self.builder.chain(operator::AND, &operators, &mut operands.into_iter());
        self.depths.node -= 1;
        chain.ok_or(NoExpression)
    }

    /// Operands between binary operators of at least a level.
    fn binary(&mut self, level: u8) -> Parse<Expr> {
        let before = (self.depths.relation, self.depths.sum);
        if level == RELATION {
            enter(&mut self.depths.relation)?;
        }
        enter(&mut self.depths.sum)?;
        let mut left = self.unary()?;
        if binary(self.peek().kind).is_some_and(|(strength, _)| strength >= level) {
            left = self.rest_of_binary(left, level)?;
        }
        (self.depths.relation, self.depths.sum) = before;
        Ok(left)
    }

    fn rest_of_binary(&mut self, mut left: Expr, level: u8) -> Parse<Expr> {
        self.enter_node()?;
        while let Some((strength, name)) = binary(self.peek().kind)
            && strength >= level
        {
            let operator = self.take();
            // A comparison's operand is a comparison without operators: one deeper in both.
            let right = if strength == RELATION {
                enter(&mut self.depths.relation)?;
                self.depths.sum -= 1;
                let right = self.binary(strength + 1)?;
                self.depths.relation -= 1;
                self.depths.sum += 1;
                right
            } else {
                self.binary(strength + 1)?
            };
            left = self.builder.nodes.call(operator.at, name, vec![left, right]);
            self.within_limits()?;
        }
        self.depths.node -= 1;
        Ok(left)
    }

    /// An operand with its signs. Two of a sign are none.
    fn unary(&mut self) -> Parse<Expr> {
        let first = self.peek();
        let name = match first.kind {
            TokenKind::Not => operator::NOT,
            TokenKind::Minus if !self.is_negative_number() => operator::NEGATE,
            _ => return self.member(),
        };
        self.signed(first, name)
    }

    fn signed(&mut self, first: Token, name: &str) -> Parse<Expr> {
        let mut count = 0;
        while self.take_if(first.kind).is_some() {
            count += 1;
        }
        let operand = self.member()?;
        Ok(if count % 2 == 0 {
            operand
        } else {
            self.builder.nodes.call(first.at, name, vec![operand])
        })
    }

    /// Whether a minus sign and a number follow.
    fn is_negative_number(&self) -> bool {
        self.peek().kind == TokenKind::Minus
            && matches!(self.peek_after(1).kind, TokenKind::Int | TokenKind::Float)
    }

    /// An operand with selections, calls and indices behind it.
    fn member(&mut self) -> Parse<Expr> {
        let expr = self.primary()?;
        if matches!(self.peek().kind, TokenKind::Dot | TokenKind::LeftBracket) {
            return self.rest_of_member(expr);
        }
        Ok(expr)
    }

    fn rest_of_member(&mut self, mut expr: Expr) -> Parse<Expr> {
        self.enter_node()?;
        loop {
            if let Some(dot) = self.take_if(TokenKind::Dot) {
                let optional = self.take_if(TokenKind::Question).is_some();
                let name = self.take();
                if !matches!(name.kind, TokenKind::Ident | TokenKind::Quoted) {
                    return Err(NoExpression);
                }
                expr = match self.peek() {
                    open if open.kind == TokenKind::LeftParen
                        && name.kind == TokenKind::Ident
                        && !optional =>
                    {
                        let args = self.args()?;
                        self.builder.method(expr, (name, open), args)
                    }
                    _ => self.builder.select(expr, (dot, optional, name), name.at),
                };
            } else if let Some(open) = self.take_if(TokenKind::LeftBracket) {
                let optional = self.take_if(TokenKind::Question).is_some();
                let index = self.expr()?;
                self.expect(TokenKind::RightBracket)?;
                expr = self.builder.index(expr, (open, optional), index);
            } else {
                self.depths.node -= 1;
                return Ok(expr);
            }
            self.within_limits()?;
        }
    }

    /// Arguments in parentheses.
    fn args(&mut self) -> Parse<Vec<Expr>> {
        self.expect(TokenKind::LeftParen)?;
        let mut args = Vec::new();
        if self.take_if(TokenKind::RightParen).is_some() {
            return Ok(args);
        }
        loop {
            args.push(self.expr()?);
            if self.take_if(TokenKind::Comma).is_none() {
                self.expect(TokenKind::RightParen)?;
                return Ok(args);
            }
        }
    }

    fn primary(&mut self) -> Parse<Expr> {
        match self.peek().kind {
            TokenKind::Dot | TokenKind::Ident => self.named(),
            TokenKind::LeftParen => {
                self.take();
                let expr = self.expr()?;
                self.expect(TokenKind::RightParen)?;
                Ok(expr)
            }
            TokenKind::LeftBracket => self.list(),
            TokenKind::LeftBrace => self.map(),
            TokenKind::Minus if self.is_negative_number() => {
                let minus = self.take();
                let number = self.take();
                Ok(self.builder.literal(Some(minus), number))
            }
            TokenKind::Int
            | TokenKind::Uint
            | TokenKind::Float
            | TokenKind::String
            | TokenKind::Bytes
            | TokenKind::True
            | TokenKind::False
            | TokenKind::Null => {
                let token = self.take();
                Ok(self.builder.literal(None, token))
            }
            _ => Err(NoExpression),
        }
    }

    /// A variable, a call of a function or a message.
    fn named(&mut self) -> Parse<Expr> {
        let dot = self.take_if(TokenKind::Dot);
        let name = self.expect(TokenKind::Ident)?;
        let open = self.peek();
        if open.kind == TokenKind::LeftParen {
            let noted = self.builder.errors.len();
            let args = self.args()?;
            return Ok(self.builder.function((dot, name, open), args, noted));
        }
        let mut more = 0;
        while self.peek_after(more).kind == TokenKind::Dot
            && self.peek_after(more + 1).kind == TokenKind::Ident
        {
            more += 2;
        }
        if self.peek_after(more).kind != TokenKind::LeftBrace {
            return Ok(self.builder.ident(dot, name));
        }
        let names: Vec<_> =
            self.tokens[self.next - 1..self.next + more].iter().step_by(2).copied().collect();
        self.next += more;
        self.message(dot, &names)
    }

    /// Goes through what stands between commas; one more at the end is allowed.
    fn between_commas(
        &mut self,
        end: TokenKind,
        mut one: impl FnMut(&mut Self) -> Parse<()>,
    ) -> Parse<()> {
        let is_end = |parser: &mut Self| parser.take_if(end).is_some();
        if is_end(self) {
            return Ok(());
        }
        if self.take_if(TokenKind::Comma).is_some() {
            return self.expect(end).map(drop);
        }
        loop {
            one(self)?;
            if self.take_if(TokenKind::Comma).is_none() {
                return self.expect(end).map(drop);
            }
            if is_end(self) {
                return Ok(());
            }
        }
    }

    fn list(&mut self) -> Parse<Expr> {
        let open = self.take();
        let mut elements = Vec::new();
        self.between_commas(TokenKind::RightBracket, |parser| {
            let mark = parser.take_if(TokenKind::Question);
            elements.push((mark, parser.expr()?));
            Ok(())
        })?;
        Ok(self.builder.list(open, elements))
    }

    fn map(&mut self) -> Parse<Expr> {
        let open = self.take();
        let mut entries = Vec::new();
        self.between_commas(TokenKind::RightBrace, |parser| {
            let noted = parser.builder.errors.len();
            let mark = parser.take_if(TokenKind::Question);
            let key = parser.expr()?;
            let colon = parser.expect(TokenKind::Colon)?;
            let value = parser.expr()?;
            entries.extend(parser.builder.entry((mark, colon), (key, value), noted));
            Ok(())
        })?;
        Ok(self.builder.map(open, entries))
    }

    fn message(&mut self, dot: Option<Token>, names: &[Token]) -> Parse<Expr> {
        let open = self.take();
        let first = self.peek().at;
        let mut fields = Vec::new();
        self.between_commas(TokenKind::RightBrace, |parser| {
            let noted = parser.builder.errors.len();
            let mark = parser.take_if(TokenKind::Question);
            let field = parser.take();
            if !matches!(field.kind, TokenKind::Ident | TokenKind::Quoted) {
                return Err(NoExpression);
            }
            let colon = parser.expect(TokenKind::Colon)?;
            let value = parser.expr()?;
            let part = (first, mark, field, colon);
            fields.extend(parser.builder.initializer(part, value, noted));
            Ok(())
        })?;
        Ok(self.builder.message((dot, names, open), fields))
    }
}
