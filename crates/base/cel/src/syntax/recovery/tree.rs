//! What was read of a text with errors.

use super::super::lexer::{Token, TokenKind};
use super::network::{Label, Rule};

/// The number of a branch.
pub(super) type Branch = u32;

#[derive(Debug)]
enum Leaf {
    Token(Token),
    Branch(Branch),
}

#[derive(Debug)]
struct Part {
    rule: Rule,
    /// Which alternative of the rule it is, from one; zero if none was found.
    alternative: u8,
    /// The token that it begins at.
    start: Token,
    leaves: Vec<(Label, Leaf)>,
}

/// Branches by rules, with what they are labelled with.
#[derive(Debug, Default)]
pub(super) struct Tree {
    parts: Vec<Part>,
}

impl Tree {
    pub(super) fn add(&mut self, rule: Rule, start: Token) -> Branch {
        self.parts.push(Part { rule, alternative: 0, start, leaves: Vec::new() });
        // As many as there are tokens and rules around them.
        Branch::try_from(self.parts.len() - 1).unwrap_or(Branch::MAX)
    }

    pub(super) fn set_alternative(&mut self, branch: Branch, alternative: u8) {
        self.parts[branch as usize].alternative = alternative;
    }

    pub(super) fn add_token(&mut self, branch: Branch, label: Label, token: Token) {
        if label != Label::None {
            self.parts[branch as usize].leaves.push((label, Leaf::Token(token)));
        }
    }

    pub(super) fn add_branch(&mut self, branch: Branch, label: Label, below: Branch) {
        self.parts[branch as usize].leaves.push((label, Leaf::Branch(below)));
    }

    pub(super) fn rule(&self, branch: Branch) -> Rule {
        self.parts[branch as usize].rule
    }

    pub(super) fn alternative(&self, branch: Branch) -> u8 {
        self.parts[branch as usize].alternative
    }

    pub(super) fn start(&self, branch: Branch) -> Token {
        self.parts[branch as usize].start
    }

    pub(super) fn tokens(&self, branch: Branch, label: Label) -> impl Iterator<Item = Token> {
        self.parts[branch as usize].leaves.iter().filter_map(move |(its, leaf)| match leaf {
            Leaf::Token(token) if *its == label => Some(*token),
            _ => None,
        })
    }

    pub(super) fn token(&self, branch: Branch, label: Label) -> Option<Token> {
        self.tokens(branch, label).next()
    }

    pub(super) fn branches(&self, branch: Branch, label: Label) -> impl Iterator<Item = Branch> {
        self.parts[branch as usize].leaves.iter().filter_map(move |(its, leaf)| match leaf {
            Leaf::Branch(below) if *its == label => Some(*below),
            _ => None,
        })
    }

    pub(super) fn branch(&self, branch: Branch, label: Label) -> Option<Branch> {
        self.branches(branch, label).next()
    }
}

/// A token that is not in the text, put where it was missed.
pub(super) fn missing(kind: TokenKind, at: u32) -> Token {
    Token { kind, start: 0, end: 0, at }
}
