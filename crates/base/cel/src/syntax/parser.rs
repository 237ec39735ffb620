//! Parser of valid text: recursive descent, with a precedence level for each operator.
//!
//! It fails at the first error without a message; [`super::recovery`] finds the messages.

use super::ast::{Expr, operator};
use super::builder::Builder;
use super::lexer::{Lexer, Token, TokenKind};
use super::nodes::MAX_DEPTH;

/// The maximum recursion of each grammar rule (cel-go counts each rule separately).
pub(super) const MAX_NESTING: u16 = 250;

/// The text is not an expression.
#[derive(Debug)]
pub(super) struct Invalid;

type ParseResult<T> = Result<T, Invalid>;

/// All tokens of a text including the end; none if it has invalid text.
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

/// Parses a text. Errors in well-formed text are recorded in the builder.
pub(super) fn read(builder: &mut Builder<'_>) -> ParseResult<Expr> {
    let tokens = tokens(builder.text).ok_or(Invalid)?;
    let mut parser = Parser { builder, tokens: &tokens, next: 0, depths: Depths::default() };
    let root = parser.expr()?;
    parser.expect(TokenKind::End)?;
    Ok(root)
}

/// The current recursion of grammar rules.
#[derive(Debug, Default)]
struct Depths {
    expr: u16,
    relation: u16,
    sum: u16,
    /// Nodes in progress, except those at the beginning of an expression in brackets.
    node: u16,
}

struct Parser<'a, 'b> {
    builder: &'a mut Builder<'b>,
    /// The last token is [`TokenKind::End`], which is never taken.
    tokens: &'a [Token],
    next: usize,
    depths: Depths,
}

fn enter(depth: &mut u16) -> ParseResult<()> {
    *depth += 1;
    if *depth > MAX_NESTING { Err(Invalid) } else { Ok(()) }
}

/// Precedence levels of binary operators.
const RELATION_LEVEL: u8 = 1;
const SUM_LEVEL: u8 = 2;

/// The level (a higher one binds more tightly) and name of a binary operator.
pub(super) fn binary(kind: TokenKind) -> Option<(u8, &'static str)> {
    Some(match kind {
        TokenKind::Equals => (RELATION_LEVEL, operator::EQUALS),
        TokenKind::NotEquals => (RELATION_LEVEL, operator::NOT_EQUALS),
        TokenKind::In => (RELATION_LEVEL, operator::IN),
        TokenKind::Less => (RELATION_LEVEL, operator::LESS),
        TokenKind::LessEquals => (RELATION_LEVEL, operator::LESS_EQUALS),
        TokenKind::GreaterEquals => (RELATION_LEVEL, operator::GREATER_EQUALS),
        TokenKind::Greater => (RELATION_LEVEL, operator::GREATER),
        TokenKind::Plus => (SUM_LEVEL, operator::ADD),
        TokenKind::Minus => (SUM_LEVEL, operator::SUBTRACT),
        TokenKind::Star => (SUM_LEVEL + 1, operator::MULTIPLY),
        TokenKind::Slash => (SUM_LEVEL + 1, operator::DIVIDE),
        TokenKind::Percent => (SUM_LEVEL + 1, operator::MODULO),
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

    fn expect(&mut self, kind: TokenKind) -> ParseResult<Token> {
        self.take_if(kind).ok_or(Invalid)
    }

    fn within_limits(&self) -> ParseResult<()> {
        if self.builder.nodes.exceeded_limit.is_some() { Err(Invalid) } else { Ok(()) }
    }

    /// Begins a node with children.
    fn enter_node(&mut self) -> ParseResult<()> {
        self.depths.node += 1;
        if self.depths.node > MAX_DEPTH {
            self.builder.nodes.too_deep();
            return Err(Invalid);
        }
        Ok(())
    }

    /// Parses `condition ? then : otherwise`, or only the first operand.
    fn expr(&mut self) -> ParseResult<Expr> {
        enter(&mut self.depths.expr)?;
        let mut expr = self.or()?;
        if self.peek().kind == TokenKind::Question {
            expr = self.conditional(expr)?;
        }
        self.within_limits()?;
        self.depths.expr -= 1;
        Ok(expr)
    }

    // Recursive functions are split, so nested text does not use the large stack frames of
    // operators that it does not have. All limits together fit on a small stack.

    fn conditional(&mut self, condition: Expr) -> ParseResult<Expr> {
        let question = self.take();
        let then = self.or()?;
        self.expect(TokenKind::Colon)?;
        let otherwise = self.expr()?;
        let args = vec![condition, then, otherwise];
        Ok(self.builder.nodes.call(question.at, operator::CONDITIONAL, args))
    }

    /// Parses operands joined by `||`.
    fn or(&mut self) -> ParseResult<Expr> {
        let first = self.and()?;
        if self.peek().kind == TokenKind::Or { self.rest_of_or(first) } else { Ok(first) }
    }

    fn rest_of_or(&mut self, first: Expr) -> ParseResult<Expr> {
        self.enter_node()?;
        let (mut operands, mut operators) = (vec![first], Vec::new());
        while let Some(operator) = self.take_if(TokenKind::Or) {
            operators.push(operator.at);
            operands.push(self.and()?);
        }
        let chain = self.builder.chain(operator::OR, &operators, &mut operands.into_iter());
        self.depths.node -= 1;
        chain.ok_or(Invalid)
    }

    fn and(&mut self) -> ParseResult<Expr> {
        let first = self.binary(RELATION_LEVEL)?;
        if self.peek().kind == TokenKind::And { self.rest_of_and(first) } else { Ok(first) }
    }

    fn rest_of_and(&mut self, first: Expr) -> ParseResult<Expr> {
        self.enter_node()?;
        let (mut operands, mut operators) = (vec![first], Vec::new());
        while let Some(operator) = self.take_if(TokenKind::And) {
            operators.push(operator.at);
            operands.push(self.binary(RELATION_LEVEL)?);
        }
        let chain = self.builder.chain(operator::AND, &operators, &mut operands.into_iter());
        self.depths.node -= 1;
        chain.ok_or(Invalid)
    }

    /// Parses operands joined by binary operators of at least a level.
    fn binary(&mut self, level: u8) -> ParseResult<Expr> {
        let before = (self.depths.relation, self.depths.sum);
        if level == RELATION_LEVEL {
            enter(&mut self.depths.relation)?;
        }
        enter(&mut self.depths.sum)?;
        let mut left = self.unary()?;
        if binary(self.peek().kind).is_some_and(|(precedence, _)| precedence >= level) {
            left = self.rest_of_binary(left, level)?;
        }
        (self.depths.relation, self.depths.sum) = before;
        Ok(left)
    }

    fn rest_of_binary(&mut self, mut left: Expr, level: u8) -> ParseResult<Expr> {
        self.enter_node()?;
        while let Some((precedence, name)) = binary(self.peek().kind)
            && precedence >= level
        {
            let operator = self.take();
            // The operand of a comparison is a comparison without operators: one level deeper in
            // both rules.
            let right = if precedence == RELATION_LEVEL {
                enter(&mut self.depths.relation)?;
                self.depths.sum -= 1;
                let right = self.binary(precedence + 1)?;
                self.depths.relation -= 1;
                self.depths.sum += 1;
                right
            } else {
                self.binary(precedence + 1)?
            };
            left = self.builder.nodes.call(operator.at, name, vec![left, right]);
            self.within_limits()?;
        }
        self.depths.node -= 1;
        Ok(left)
    }

    /// Parses an operand with its signs. Two equal signs cancel out.
    fn unary(&mut self) -> ParseResult<Expr> {
        let first = self.peek();
        let name = match first.kind {
            TokenKind::Not => operator::NOT,
            TokenKind::Minus if !self.is_negative_number() => operator::NEGATE,
            _ => return self.member(),
        };
        self.signed(first, name)
    }

    fn signed(&mut self, first: Token, name: &str) -> ParseResult<Expr> {
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

    /// Parses an operand with selections, calls and indices.
    fn member(&mut self) -> ParseResult<Expr> {
        let expr = self.primary()?;
        if matches!(self.peek().kind, TokenKind::Dot | TokenKind::LeftBracket) {
            return self.rest_of_member(expr);
        }
        Ok(expr)
    }

    fn rest_of_member(&mut self, mut expr: Expr) -> ParseResult<Expr> {
        self.enter_node()?;
        loop {
            if let Some(dot) = self.take_if(TokenKind::Dot) {
                let optional = self.take_if(TokenKind::Question).is_some();
                let name = self.take();
                if !matches!(name.kind, TokenKind::Ident | TokenKind::Quoted) {
                    return Err(Invalid);
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

    /// Parses arguments in parentheses.
    fn args(&mut self) -> ParseResult<Vec<Expr>> {
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

    fn primary(&mut self) -> ParseResult<Expr> {
        match self.peek().kind {
            TokenKind::Dot | TokenKind::Ident => self.name_call_or_message(),
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
            _ => Err(Invalid),
        }
    }

    /// Parses a variable, a call of a function or a message.
    fn name_call_or_message(&mut self) -> ParseResult<Expr> {
        let dot = self.take_if(TokenKind::Dot);
        let name = self.expect(TokenKind::Ident)?;
        let open = self.peek();
        if open.kind == TokenKind::LeftParen {
            let errors_before = self.builder.errors.len();
            let args = self.args()?;
            return Ok(self.builder.function((dot, name, open), args, errors_before));
        }
        let mut name_tokens = 0;
        while self.peek_after(name_tokens).kind == TokenKind::Dot
            && self.peek_after(name_tokens + 1).kind == TokenKind::Ident
        {
            name_tokens += 2;
        }
        if self.peek_after(name_tokens).kind != TokenKind::LeftBrace {
            return Ok(self.builder.ident(dot, name));
        }
        let names: Vec<_> = self.tokens[self.next - 1..self.next + name_tokens]
            .iter()
            .step_by(2)
            .copied()
            .collect();
        self.next += name_tokens;
        self.message(dot, &names)
    }

    /// Parses items between commas, with an optional trailing comma.
    fn comma_separated(
        &mut self,
        end: TokenKind,
        mut item: impl FnMut(&mut Self) -> ParseResult<()>,
    ) -> ParseResult<()> {
        let is_end = |parser: &mut Self| parser.take_if(end).is_some();
        if is_end(self) {
            return Ok(());
        }
        if self.take_if(TokenKind::Comma).is_some() {
            return self.expect(end).map(drop);
        }
        loop {
            item(self)?;
            if self.take_if(TokenKind::Comma).is_none() {
                return self.expect(end).map(drop);
            }
            if is_end(self) {
                return Ok(());
            }
        }
    }

    fn list(&mut self) -> ParseResult<Expr> {
        let open = self.take();
        let mut elements = Vec::new();
        self.comma_separated(TokenKind::RightBracket, |parser| {
            let mark = parser.take_if(TokenKind::Question);
            elements.push((mark, parser.expr()?));
            Ok(())
        })?;
        Ok(self.builder.list(open, elements))
    }

    fn map(&mut self) -> ParseResult<Expr> {
        let open = self.take();
        let mut entries = Vec::new();
        self.comma_separated(TokenKind::RightBrace, |parser| {
            let errors_before = parser.builder.errors.len();
            let mark = parser.take_if(TokenKind::Question);
            let key = parser.expr()?;
            let colon = parser.expect(TokenKind::Colon)?;
            let value = parser.expr()?;
            entries.extend(parser.builder.entry((mark, colon), (key, value), errors_before));
            Ok(())
        })?;
        Ok(self.builder.map(open, entries))
    }

    fn message(&mut self, dot: Option<Token>, names: &[Token]) -> ParseResult<Expr> {
        let open = self.take();
        let first = self.peek().at;
        let mut fields = Vec::new();
        self.comma_separated(TokenKind::RightBrace, |parser| {
            let errors_before = parser.builder.errors.len();
            let mark = parser.take_if(TokenKind::Question);
            let field = parser.take();
            if !matches!(field.kind, TokenKind::Ident | TokenKind::Quoted) {
                return Err(Invalid);
            }
            let colon = parser.expect(TokenKind::Colon)?;
            let value = parser.expr()?;
            let part = (first, mark, field, colon);
            fields.extend(parser.builder.field_entry(part, value, errors_before));
            Ok(())
        })?;
        Ok(self.builder.message((dot, names, open), fields))
    }
}
