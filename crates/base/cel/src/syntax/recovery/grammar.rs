//! The grammar of the language, `parser/gen/CEL.g4` of cel-go.

use super::super::lexer::TokenKind;
use super::network::{Label, Network, Part, RULES, Rule, Tokens};
use std::sync::LazyLock;

/// The network of the grammar. Made when the first text with an error is met.
pub(super) static GRAMMAR: LazyLock<Network> = LazyLock::new(|| Network::new(rules()));

fn token(kind: TokenKind, label: Label) -> Part {
    Part::Token(Tokens::of(&[kind]), label)
}

fn mark(kind: TokenKind) -> Part {
    token(kind, Label::None)
}

fn rule(rule: Rule, label: Label) -> Part {
    Part::Rule(rule, 0, label)
}

fn maybe(part: Part) -> Part {
    Part::Maybe(vec![part])
}

/// `part (separator part)*`
fn chain(operator: TokenKind, operand: Rule) -> Vec<Part> {
    let turn = vec![token(operator, Label::Operator), rule(operand, Label::Next)];
    vec![rule(operand, Label::First), Part::Star { adaptive: false, turn }]
}

/// What stands between brackets: a list, perhaps with a comma after it.
fn bracketed(open: TokenKind, list: Rule, close: TokenKind) -> Vec<Part> {
    vec![
        token(open, Label::Operator),
        maybe(rule(list, Label::Args)),
        maybe(mark(TokenKind::Comma)),
        mark(close),
    ]
}

/// `key ':' value (',' key ':' value)*`
fn pairs(key: Rule) -> Vec<Part> {
    let pair = || {
        vec![
            rule(key, Label::Key),
            token(TokenKind::Colon, Label::Colon),
            rule(Rule::Expr, Label::Next),
        ]
    };
    let mut turn = vec![mark(TokenKind::Comma)];
    turn.extend(pair());
    let mut parts = pair();
    parts.push(Part::Star { adaptive: true, turn });
    parts
}

fn rules() -> [(Rule, Vec<Part>); RULES] {
    let args = || maybe(rule(Rule::Args, Label::Args));
    let question = || maybe(token(TokenKind::Question, Label::Optional));
    [
        (Rule::Start, vec![rule(Rule::Expr, Label::First), mark(TokenKind::End)]),
        (
            Rule::Expr,
            vec![
                rule(Rule::Or, Label::First),
                Part::Maybe(vec![
                    token(TokenKind::Question, Label::Operator),
                    rule(Rule::Or, Label::Next),
                    mark(TokenKind::Colon),
                    rule(Rule::Expr, Label::Last),
                ]),
            ],
        ),
        (Rule::Or, chain(TokenKind::Or, Rule::And)),
        (Rule::And, chain(TokenKind::And, Rule::Relation)),
        (Rule::Relation, relation()),
        (Rule::Calc, calc()),
        (Rule::Unary, unary()),
        (Rule::Member, member(&args, &question)),
        (Rule::Primary, primary(&args)),
        (Rule::Args, {
            let turn = vec![mark(TokenKind::Comma), rule(Rule::Expr, Label::Next)];
            vec![rule(Rule::Expr, Label::Next), Part::Star { adaptive: false, turn }]
        }),
        (Rule::Elements, {
            let turn = vec![mark(TokenKind::Comma), rule(Rule::Element, Label::Next)];
            vec![rule(Rule::Element, Label::Next), Part::Star { adaptive: true, turn }]
        }),
        (Rule::Fields, pairs(Rule::Field)),
        (Rule::Field, vec![question(), rule(Rule::Name, Label::Name)]),
        (Rule::Entries, pairs(Rule::Element)),
        (
            Rule::Name,
            vec![Part::OneOf {
                adaptive: false,
                of: vec![
                    vec![token(TokenKind::Ident, Label::Name)],
                    vec![token(TokenKind::Quoted, Label::Name)],
                ],
            }],
        ),
        (Rule::Element, vec![question(), rule(Rule::Expr, Label::First)]),
        (Rule::Literal, literal()),
    ]
}

fn relation() -> Vec<Part> {
    const OPERATORS: Tokens = Tokens::of(&[
        TokenKind::Equals,
        TokenKind::NotEquals,
        TokenKind::In,
        TokenKind::Less,
        TokenKind::LessEquals,
        TokenKind::GreaterEquals,
        TokenKind::Greater,
    ]);
    let comparison =
        vec![Part::Token(OPERATORS, Label::Operator), Part::Rule(Rule::Relation, 2, Label::Next)];
    vec![rule(Rule::Calc, Label::First), Part::Operators(vec![(1, comparison)])]
}

fn calc() -> Vec<Part> {
    const PRODUCTS: Tokens = Tokens::of(&[TokenKind::Star, TokenKind::Slash, TokenKind::Percent]);
    const SUMS: Tokens = Tokens::of(&[TokenKind::Plus, TokenKind::Minus]);
    let product =
        vec![Part::Token(PRODUCTS, Label::Operator), Part::Rule(Rule::Calc, 3, Label::Next)];
    let sum = vec![Part::Token(SUMS, Label::Operator), Part::Rule(Rule::Calc, 2, Label::Next)];
    vec![rule(Rule::Unary, Label::First), Part::Operators(vec![(2, product), (1, sum)])]
}

fn unary() -> Vec<Part> {
    let signs = |adaptive, kind| {
        let turn = vec![token(kind, Label::Operator)];
        vec![Part::Plus { adaptive, turn }, rule(Rule::Member, Label::First)]
    };
    vec![Part::OneOf {
        adaptive: true,
        of: vec![
            vec![rule(Rule::Member, Label::First)],
            signs(false, TokenKind::Not),
            // A second minus sign may belong to a number.
            signs(true, TokenKind::Minus),
        ],
    }]
}

fn member(args: &dyn Fn() -> Part, question: &dyn Fn() -> Part) -> Vec<Part> {
    let select =
        vec![token(TokenKind::Dot, Label::Operator), question(), rule(Rule::Name, Label::Name)];
    let call = vec![
        token(TokenKind::Dot, Label::Operator),
        token(TokenKind::Ident, Label::Name),
        token(TokenKind::LeftParen, Label::Open),
        args(),
        mark(TokenKind::RightParen),
    ];
    let index = vec![
        token(TokenKind::LeftBracket, Label::Operator),
        question(),
        rule(Rule::Expr, Label::Next),
        mark(TokenKind::RightBracket),
    ];
    let after = Part::Operators(vec![(3, select), (2, call), (1, index)]);
    vec![rule(Rule::Primary, Label::First), after]
}

fn primary(args: &dyn Fn() -> Part) -> Vec<Part> {
    let dot = || maybe(token(TokenKind::Dot, Label::Dot));
    let name = || token(TokenKind::Ident, Label::Name);
    let ident = vec![dot(), name()];
    let call = vec![
        dot(),
        name(),
        token(TokenKind::LeftParen, Label::Operator),
        args(),
        mark(TokenKind::RightParen),
    ];
    let nested = vec![
        mark(TokenKind::LeftParen),
        rule(Rule::Expr, Label::First),
        mark(TokenKind::RightParen),
    ];
    let list = bracketed(TokenKind::LeftBracket, Rule::Elements, TokenKind::RightBracket);
    let map = bracketed(TokenKind::LeftBrace, Rule::Entries, TokenKind::RightBrace);
    let more = vec![mark(TokenKind::Dot), name()];
    let mut message = vec![dot(), name(), Part::Star { adaptive: false, turn: more }];
    message.extend(bracketed(TokenKind::LeftBrace, Rule::Fields, TokenKind::RightBrace));
    let literal = vec![rule(Rule::Literal, Label::First)];
    let of = vec![ident, call, nested, list, map, message, literal];
    vec![Part::OneOf { adaptive: true, of }]
}

fn literal() -> Vec<Part> {
    let sign = || maybe(token(TokenKind::Minus, Label::Sign));
    let value = |kind| token(kind, Label::Name);
    vec![Part::OneOf {
        adaptive: true,
        of: vec![
            vec![sign(), value(TokenKind::Int)],
            vec![value(TokenKind::Uint)],
            vec![sign(), value(TokenKind::Float)],
            vec![value(TokenKind::String)],
            vec![value(TokenKind::Bytes)],
            vec![value(TokenKind::True)],
            vec![value(TokenKind::False)],
            vec![value(TokenKind::Null)],
        ],
    }]
}
