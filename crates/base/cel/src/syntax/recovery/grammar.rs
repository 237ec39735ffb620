//! The grammar of the language, `parser/gen/CEL.g4` of cel-go.

use super::super::lexer::Kind;
use super::network::{Label, Network, Part, RULES, Rule, Tokens};
use std::sync::LazyLock;

/// The network of the grammar. Made when the first text with an error is met.
pub(super) static GRAMMAR: LazyLock<Network> = LazyLock::new(|| Network::new(rules()));

fn token(kind: Kind, label: Label) -> Part {
    Part::Token(Tokens::of(&[kind]), label)
}

fn mark(kind: Kind) -> Part {
    token(kind, Label::None)
}

fn rule(rule: Rule, label: Label) -> Part {
    Part::Rule(rule, 0, label)
}

fn maybe(part: Part) -> Part {
    Part::Maybe(vec![part])
}

/// `part (separator part)*`
fn chain(operator: Kind, operand: Rule) -> Vec<Part> {
    let turn = vec![token(operator, Label::Operator), rule(operand, Label::Next)];
    vec![rule(operand, Label::First), Part::Star { adaptive: false, turn }]
}

/// What stands between brackets: a list, perhaps with a comma after it.
fn bracketed(open: Kind, list: Rule, close: Kind) -> Vec<Part> {
    vec![
        token(open, Label::Operator),
        maybe(rule(list, Label::Args)),
        maybe(mark(Kind::Comma)),
        mark(close),
    ]
}

/// `key ':' value (',' key ':' value)*`
fn pairs(key: Rule) -> Vec<Part> {
    let pair = || {
        vec![rule(key, Label::Key), token(Kind::Colon, Label::Colon), rule(Rule::Expr, Label::Next)]
    };
    let mut turn = vec![mark(Kind::Comma)];
    turn.extend(pair());
    let mut parts = pair();
    parts.push(Part::Star { adaptive: true, turn });
    parts
}

fn rules() -> [(Rule, Vec<Part>); RULES] {
    let args = || maybe(rule(Rule::Args, Label::Args));
    let question = || maybe(token(Kind::Question, Label::Optional));
    [
        (Rule::Start, vec![rule(Rule::Expr, Label::First), mark(Kind::End)]),
        (
            Rule::Expr,
            vec![
                rule(Rule::Or, Label::First),
                Part::Maybe(vec![
                    token(Kind::Question, Label::Operator),
                    rule(Rule::Or, Label::Next),
                    mark(Kind::Colon),
                    rule(Rule::Expr, Label::Last),
                ]),
            ],
        ),
        (Rule::Or, chain(Kind::Or, Rule::And)),
        (Rule::And, chain(Kind::And, Rule::Relation)),
        (Rule::Relation, relation()),
        (Rule::Calc, calc()),
        (Rule::Unary, unary()),
        (Rule::Member, member(&args, &question)),
        (Rule::Primary, primary(&args)),
        (Rule::Args, {
            let turn = vec![mark(Kind::Comma), rule(Rule::Expr, Label::Next)];
            vec![rule(Rule::Expr, Label::Next), Part::Star { adaptive: false, turn }]
        }),
        (Rule::Elements, {
            let turn = vec![mark(Kind::Comma), rule(Rule::Element, Label::Next)];
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
                    vec![token(Kind::Ident, Label::Name)],
                    vec![token(Kind::Quoted, Label::Name)],
                ],
            }],
        ),
        (Rule::Element, vec![question(), rule(Rule::Expr, Label::First)]),
        (Rule::Literal, literal()),
    ]
}

fn relation() -> Vec<Part> {
    const OPERATORS: Tokens = Tokens::of(&[
        Kind::Equals,
        Kind::NotEquals,
        Kind::In,
        Kind::Less,
        Kind::LessEquals,
        Kind::GreaterEquals,
        Kind::Greater,
    ]);
    let comparison =
        vec![Part::Token(OPERATORS, Label::Operator), Part::Rule(Rule::Relation, 2, Label::Next)];
    vec![rule(Rule::Calc, Label::First), Part::Operators(vec![(1, comparison)])]
}

fn calc() -> Vec<Part> {
    const PRODUCTS: Tokens = Tokens::of(&[Kind::Star, Kind::Slash, Kind::Percent]);
    const SUMS: Tokens = Tokens::of(&[Kind::Plus, Kind::Minus]);
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
            signs(false, Kind::Not),
            // A second minus sign may belong to a number.
            signs(true, Kind::Minus),
        ],
    }]
}

fn member(args: &dyn Fn() -> Part, question: &dyn Fn() -> Part) -> Vec<Part> {
    let select = vec![token(Kind::Dot, Label::Operator), question(), rule(Rule::Name, Label::Name)];
    let call = vec![
        token(Kind::Dot, Label::Operator),
        token(Kind::Ident, Label::Name),
        token(Kind::LeftParen, Label::Open),
        args(),
        mark(Kind::RightParen),
    ];
    let index = vec![
        token(Kind::LeftBracket, Label::Operator),
        question(),
        rule(Rule::Expr, Label::Next),
        mark(Kind::RightBracket),
    ];
    let after = Part::Operators(vec![(3, select), (2, call), (1, index)]);
    vec![rule(Rule::Primary, Label::First), after]
}

fn primary(args: &dyn Fn() -> Part) -> Vec<Part> {
    let dot = || maybe(token(Kind::Dot, Label::Dot));
    let name = || token(Kind::Ident, Label::Name);
    let ident = vec![dot(), name()];
    let call = vec![
        dot(),
        name(),
        token(Kind::LeftParen, Label::Operator),
        args(),
        mark(Kind::RightParen),
    ];
    let nested =
        vec![mark(Kind::LeftParen), rule(Rule::Expr, Label::First), mark(Kind::RightParen)];
    let list = bracketed(Kind::LeftBracket, Rule::Elements, Kind::RightBracket);
    let map = bracketed(Kind::LeftBrace, Rule::Entries, Kind::RightBrace);
    let more = vec![mark(Kind::Dot), name()];
    let mut message = vec![dot(), name(), Part::Star { adaptive: false, turn: more }];
    message.extend(bracketed(Kind::LeftBrace, Rule::Fields, Kind::RightBrace));
    let literal = vec![rule(Rule::Literal, Label::First)];
    let of = vec![ident, call, nested, list, map, message, literal];
    vec![Part::OneOf { adaptive: true, of }]
}

fn literal() -> Vec<Part> {
    let sign = || maybe(token(Kind::Minus, Label::Sign));
    let value = |kind| token(kind, Label::Name);
    vec![Part::OneOf {
        adaptive: true,
        of: vec![
            vec![sign(), value(Kind::Int)],
            vec![value(Kind::Uint)],
            vec![sign(), value(Kind::Float)],
            vec![value(Kind::String)],
            vec![value(Kind::Bytes)],
            vec![value(Kind::True)],
            vec![value(Kind::False)],
            vec![value(Kind::Null)],
        ],
    }]
}
