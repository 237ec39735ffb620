//! Glob patterns for one path component, and a state machine that matches many of them at once.

use std::collections::HashMap;

/// A pattern for one path component.
pub(super) struct Glob(Vec<Token>);

#[derive(Clone)]
enum Token {
    Any,
    One,
    Sign(char),
    Class(Class),
}

#[derive(Clone, PartialEq, Eq)]
struct Class {
    negated: bool,
    ranges: Vec<(char, char)>,
}

impl Glob {
    /// Parses a pattern; `None` for a malformed one, which matches nothing.
    pub(super) fn new(text: &str) -> Option<Self> {
        let mut tokens = Vec::new();
        let mut signs = text.chars().peekable();
        while let Some(sign) = signs.next() {
            tokens.push(match sign {
                '*' => Token::Any,
                '?' => Token::One,
                '\\' => Token::Sign(signs.next()?),
                '[' => {
                    let negated = signs.next_if_eq(&'^').is_some();
                    Token::Class(Class { negated, ranges: ranges(&mut signs)? })
                }
                sign => Token::Sign(sign),
            });
        }
        Some(Self(tokens))
    }

    /// The only name that the pattern matches, if it has no wildcards.
    pub(super) fn literal(&self) -> Option<String> {
        let sign = |token: &Token| match token {
            Token::Sign(sign) => Some(*sign),
            _ => None,
        };
        self.0.iter().map(sign).collect()
    }
}

impl Class {
    fn takes(&self, sign: char) -> bool {
        self.ranges.iter().any(|(low, high)| (*low..=*high).contains(&sign)) != self.negated
    }
}

/// The ranges of a class up to its closing bracket; `None` if it is malformed.
fn ranges(signs: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<Vec<(char, char)>> {
    let mut ranges = Vec::new();
    loop {
        if !ranges.is_empty() && signs.next_if_eq(&']').is_some() {
            return Some(ranges);
        }
        let low = class_sign(signs)?;
        let high = match signs.next_if_eq(&'-') {
            Some(_) => class_sign(signs)?,
            None => low,
        };
        ranges.push((low, high));
    }
}

fn class_sign(signs: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<char> {
    match signs.next()? {
        '-' | ']' => None,
        '\\' => signs.next(),
        sign => Some(sign),
    }
}

/// Any number of patterns, each with a number. Patterns with a common prefix share its states, so
/// that a name is compared only with patterns that may still match.
#[derive(Default)]
pub(super) struct Globs {
    /// The first one is the start state; without patterns there is none.
    states: Vec<State>,
    /// Transitions by character.
    signs: HashMap<(usize, char), usize>,
}

#[derive(Default)]
struct State {
    /// The state behind `*`.
    any: Option<usize>,
    /// The state behind `?`.
    one: Option<usize>,
    classes: Vec<(Class, usize)>,
    /// The state follows a `*`, which may match more.
    takes_more: bool,
    /// The number of the pattern that ends here.
    end: Option<usize>,
}

impl Globs {
    /// Adds a pattern under a number. Returns the number of an equal pattern, if there is one.
    pub(super) fn insert(&mut self, glob: Glob, number: usize) -> usize {
        let mut at = 0;
        if self.states.is_empty() {
            self.states.push(State::default());
        }
        for token in glob.0 {
            let new = self.states.len();
            let next = match token {
                // A second star takes nothing that the first one does not.
                Token::Any if self.states[at].takes_more => at,
                Token::Any => *self.states[at].any.get_or_insert(new),
                Token::One => *self.states[at].one.get_or_insert(new),
                Token::Sign(sign) => *self.signs.entry((at, sign)).or_insert(new),
                Token::Class(class) => {
                    let classes = &mut self.states[at].classes;
                    let known = classes.iter().position(|(known, _)| *known == class);
                    let place = known.unwrap_or_else(|| {
                        classes.push((class, new));
                        classes.len() - 1
                    });
                    classes[place].1
                }
            };
            if next == new {
                let takes_more = self.states[at].any == Some(new);
                self.states.push(State { takes_more, ..State::default() });
            }
            at = next;
        }
        *self.states[at].end.get_or_insert(number)
    }

    /// Adds the numbers of the patterns that match a name, and counts the steps.
    pub(super) fn matching(&self, name: &str, found: &mut Vec<usize>, steps: &mut u64) {
        if self.states.is_empty() {
            return;
        }
        let (mut now, mut next) = (Vec::new(), Vec::new());
        self.enter(0, &mut now);
        for sign in name.chars() {
            for at in now.drain(..) {
                let state = &self.states[at];
                *steps += 1 + state.classes.len() as u64;
                if state.takes_more {
                    self.enter(at, &mut next);
                }
                if let Some(behind) = self.signs.get(&(at, sign)) {
                    self.enter(*behind, &mut next);
                }
                if let Some(behind) = state.one {
                    self.enter(behind, &mut next);
                }
                for (_, behind) in state.classes.iter().filter(|(class, _)| class.takes(sign)) {
                    self.enter(*behind, &mut next);
                }
            }
            // Several transitions may lead to one state.
            next.sort_unstable();
            next.dedup();
            std::mem::swap(&mut now, &mut next);
        }
        *steps += now.len() as u64;
        found.extend(now.iter().filter_map(|at| self.states[*at].end));
    }

    /// Adds a state, and the state behind a `*` that matches nothing.
    fn enter(&self, at: usize, states: &mut Vec<usize>) {
        states.push(at);
        states.extend(self.states[at].any);
    }
}
