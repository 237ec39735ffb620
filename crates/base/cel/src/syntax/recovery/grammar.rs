//! Grammar of CEL, as in `parser/gen/CEL.g4` of cel-go.

use super::super::lexer::TokenKind;
use super::network::{Label, Network, Production, RULES, Rule, Tokens};
use std::sync::LazyLock;

/// The transition network of the grammar, built for the first text with an error.
pub(super) static GRAMMAR: LazyLock<Network> = LazyLock::new(|| Network::new(rules()));

fn token(kind: TokenKind, label: Label) -> Production {
    Production::Token(Tokens::of(&[kind]), label)
}

fn punctuation(kind: TokenKind) -> Production {
    token(kind, Label::None)
}

fn rule(rule: Rule, label: Label) -> Production {
    Production::Rule(rule, 0, label)
}

fn optional(part: Production) -> Production {
    Production::Optional(vec![part])
}

/// `part (separator part)*`
fn chain(operator: TokenKind, operand: Rule) -> Vec<Production> {
    let repeated = vec![token(operator, Label::Operator), rule(operand, Label::Next)];
    vec![rule(operand, Label::First), Production::Star { adaptive: false, repeated }]
}

/// A list in brackets, with an optional trailing comma.
fn brackets(open: TokenKind, list: Rule, close: TokenKind) -> Vec<Production> {
    vec![
        token(open, Label::Operator),
        optional(rule(list, Label::Args)),
        optional(punctuation(TokenKind::Comma)),
        punctuation(close),
    ]
}

/// `key ':' value (',' key ':' value)*`
fn pairs(key: Rule) -> Vec<Production> {
    let pair = || {
        vec![
            rule(key, Label::Key),
            token(TokenKind::Colon, Label::Colon),
            rule(Rule::Expr, Label::Next),
        ]
    };
    let mut repeated = vec![punctuation(TokenKind::Comma)];
    repeated.extend(pair());
    let mut parts = pair();
    parts.push(Production::Star { adaptive: true, repeated });
    parts
}

fn rules() -> [(Rule, Vec<Production>); RULES] {
    let args = || optional(rule(Rule::Args, Label::Args));
    let question = || optional(token(TokenKind::Question, Label::Optional));
    [
        (Rule::Start, vec![rule(Rule::Expr, Label::First), punctuation(TokenKind::End)]),
        (
            Rule::Expr,
            vec![
                rule(Rule::Or, Label::First),
                Production::Optional(vec![
                    token(TokenKind::Question, Label::Operator),
                    rule(Rule::Or, Label::Next),
                    punctuation(TokenKind::Colon),
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
            let repeated = vec![punctuation(TokenKind::Comma), rule(Rule::Expr, Label::Next)];
            vec![rule(Rule::Expr, Label::Next), Production::Star { adaptive: false, repeated }]
        }),
        (Rule::Elements, {
            let repeated = vec![punctuation(TokenKind::Comma), rule(Rule::Element, Label::Next)];
            vec![rule(Rule::Element, Label::Next), Production::Star { adaptive: true, repeated }]
        }),
        (Rule::Fields, pairs(Rule::Field)),
        (Rule::Field, vec![question(), rule(Rule::Name, Label::Name)]),
        (Rule::Entries, pairs(Rule::Element)),
        (
            Rule::Name,
            vec![Production::OneOf {
                adaptive: false,
                alternatives: vec![
                    vec![token(TokenKind::Ident, Label::Name)],
                    vec![token(TokenKind::Quoted, Label::Name)],
                ],
            }],
        ),
        (Rule::Element, vec![question(), rule(Rule::Expr, Label::First)]),
        (Rule::Literal, literal()),
    ]
}

fn relation() -> Vec<Production> {
    const OPERATORS: Tokens = Tokens::of(&[
        TokenKind::Equals,
        TokenKind::NotEquals,
        TokenKind::In,
        TokenKind::Less,
        TokenKind::LessEquals,
        TokenKind::GreaterEquals,
        TokenKind::Greater,
    ]);
    let comparison = vec![
        Production::Token(OPERATORS, Label::Operator),
        Production::Rule(Rule::Relation, 2, Label::Next),
    ];
    vec![rule(Rule::Calc, Label::First), Production::Operators(vec![(1, comparison)])]
}

fn calc() -> Vec<Production> {
    const PRODUCTS: Tokens = Tokens::of(&[TokenKind::Star, TokenKind::Slash, TokenKind::Percent]);
    const SUMS: Tokens = Tokens::of(&[TokenKind::Plus, TokenKind::Minus]);
    let product = vec![
        Production::Token(PRODUCTS, Label::Operator),
        Production::Rule(Rule::Calc, 3, Label::Next),
    ];
    let sum = vec![
        Production::Token(SUMS, Label::Operator),
        Production::Rule(Rule::Calc, 2, Label::Next),
    ];
    vec![rule(Rule::Unary, Label::First), Production::Operators(vec![(2, product), (1, sum)])]
}

fn unary() -> Vec<Production> {
    let signs = |adaptive, kind| {
        let repeated = vec![token(kind, Label::Operator)];
        vec![Production::Plus { adaptive, repeated }, rule(Rule::Member, Label::First)]
    };
    vec![Production::OneOf {
        adaptive: true,
        alternatives: vec![
            vec![rule(Rule::Member, Label::First)],
            signs(false, TokenKind::Not),
            // A second minus sign may be part of a number.
            signs(true, TokenKind::Minus),
        ],
    }]
}

fn member(args: &dyn Fn() -> Production, question: &dyn Fn() -> Production) -> Vec<Production> {
    let select =
        vec![token(TokenKind::Dot, Label::Operator), question(), rule(Rule::Name, Label::Name)];
    let call = vec![
        token(TokenKind::Dot, Label::Operator),
        token(TokenKind::Ident, Label::Name),
        token(TokenKind::LeftParen, Label::Open),
        args(),
        punctuation(TokenKind::RightParen),
    ];
    let index = vec![
        token(TokenKind::LeftBracket, Label::Operator),
        question(),
        rule(Rule::Expr, Label::Next),
        punctuation(TokenKind::RightBracket),
    ];
    let after = Production::Operators(vec![(3, select), (2, call), (1, index)]);
    vec![rule(Rule::Primary, Label::First), after]
}

fn primary(args: &dyn Fn() -> Production) -> Vec<Production> {
    let dot = || optional(token(TokenKind::Dot, Label::Dot));
    let name = || token(TokenKind::Ident, Label::Name);
    let ident = vec![dot(), name()];
    let call = vec![
        dot(),
        name(),
        token(TokenKind::LeftParen, Label::Operator),
        args(),
        punctuation(TokenKind::RightParen),
    ];
    let nested = vec![
        punctuation(TokenKind::LeftParen),
        rule(Rule::Expr, Label::First),
        punctuation(TokenKind::RightParen),
    ];
    let list = brackets(TokenKind::LeftBracket, Rule::Elements, TokenKind::RightBracket);
    let map = brackets(TokenKind::LeftBrace, Rule::Entries, TokenKind::RightBrace);
    let more = vec![punctuation(TokenKind::Dot), name()];
    let mut message = vec![dot(), name(), Production::Star { adaptive: false, repeated: more }];
    message.extend(brackets(TokenKind::LeftBrace, Rule::Fields, TokenKind::RightBrace));
    let literal = vec![rule(Rule::Literal, Label::First)];
    let alternatives = vec![ident, call, nested, list, map, message, literal];
    vec![Production::OneOf { adaptive: true, alternatives }]
}

fn literal() -> Vec<Production> {
    let sign = || optional(token(TokenKind::Minus, Label::Sign));
    let value = |kind| token(kind, Label::Name);
    vec![Production::OneOf {
        adaptive: true,
        alternatives: vec![
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
