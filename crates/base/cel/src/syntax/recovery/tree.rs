//! Parse tree of a text with errors.

use super::super::lexer::{Token, TokenKind};
use super::network::{Label, Rule};

/// The index of a branch.
pub(super) type Branch = u32;

#[derive(Debug)]
enum Child {
    Token(Token),
    Branch(Branch),
}

#[derive(Debug)]
struct BranchNode {
    rule: Rule,
    /// The alternative of the rule, from one; zero if none was found.
    alternative: u8,
    /// Its first token.
    start: Token,
    children: Vec<(Label, Child)>,
}

/// Branches for rules, with labelled children.
#[derive(Debug, Default)]
pub(super) struct Tree {
    branches_by_index: Vec<BranchNode>,
}

impl Tree {
    pub(super) fn add(&mut self, rule: Rule, start: Token) -> Branch {
        self.branches_by_index.push(BranchNode {
            rule,
            alternative: 0,
            start,
            children: Vec::new(),
        });
        // There are about as many branches as tokens.
        Branch::try_from(self.branches_by_index.len() - 1).unwrap_or(Branch::MAX)
    }

    pub(super) fn set_alternative(&mut self, branch: Branch, alternative: u8) {
        self.branches_by_index[branch as usize].alternative = alternative;
    }

    pub(super) fn add_token(&mut self, branch: Branch, label: Label, token: Token) {
        if label != Label::None {
            self.branches_by_index[branch as usize].children.push((label, Child::Token(token)));
        }
    }

    pub(super) fn add_branch(&mut self, branch: Branch, label: Label, child: Branch) {
        self.branches_by_index[branch as usize].children.push((label, Child::Branch(child)));
    }

    pub(super) fn rule(&self, branch: Branch) -> Rule {
        self.branches_by_index[branch as usize].rule
    }

    pub(super) fn alternative(&self, branch: Branch) -> u8 {
        self.branches_by_index[branch as usize].alternative
    }

    pub(super) fn start(&self, branch: Branch) -> Token {
        self.branches_by_index[branch as usize].start
    }

    pub(super) fn tokens(&self, branch: Branch, label: Label) -> impl Iterator<Item = Token> {
        self.branches_by_index[branch as usize].children.iter().filter_map(
            move |(child_label, child)| match child {
                Child::Token(token) if *child_label == label => Some(*token),
                _ => None,
            },
        )
    }

    pub(super) fn token(&self, branch: Branch, label: Label) -> Option<Token> {
        self.tokens(branch, label).next()
    }

    pub(super) fn branches(&self, branch: Branch, label: Label) -> impl Iterator<Item = Branch> {
        self.branches_by_index[branch as usize].children.iter().filter_map(
            move |(child_label, child)| match child {
                Child::Branch(child) if *child_label == label => Some(*child),
                _ => None,
            },
        )
    }

    pub(super) fn branch(&self, branch: Branch, label: Label) -> Option<Branch> {
        self.branches(branch, label).next()
    }
}

/// A missing token at the position of its insertion.
pub(super) fn missing_token(kind: TokenKind, at: u32) -> Token {
    Token { kind, start: 0, end: 0, at }
}
