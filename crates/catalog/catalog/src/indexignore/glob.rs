//! Glob patterns for one path component, and a state machine that matches many of them at once.

use std::collections::HashMap;

/// A pattern for one path component.
pub(super) struct Glob(Vec<Token>);

#[derive(Clone)]
enum Token {
    AnyText,
    AnyCharacter,
    Character(char),
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
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            tokens.push(match character {
                '*' => Token::AnyText,
                '?' => Token::AnyCharacter,
                '\\' => Token::Character(characters.next()?),
                '[' => {
                    let negated = characters.next_if_eq(&'^').is_some();
                    Token::Class(Class { negated, ranges: ranges(&mut characters)? })
                }
                character => Token::Character(character),
            });
        }
        Some(Self(tokens))
    }

    /// The only name that the pattern matches, if it has no wildcards.
    pub(super) fn literal(&self) -> Option<String> {
        let character = |token: &Token| match token {
            Token::Character(character) => Some(*character),
            _ => None,
        };
        self.0.iter().map(character).collect()
    }
}

impl Class {
    fn matches(&self, character: char) -> bool {
        self.ranges.iter().any(|(low, high)| (*low..=*high).contains(&character)) != self.negated
    }
}

/// The ranges of a class up to its closing bracket; `None` if it is malformed.
fn ranges(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<Vec<(char, char)>> {
    let mut ranges = Vec::new();
    loop {
        if !ranges.is_empty() && characters.next_if_eq(&']').is_some() {
            return Some(ranges);
        }
        let low = class_character(characters)?;
        let high = match characters.next_if_eq(&'-') {
            Some(_) => class_character(characters)?,
            None => low,
        };
        ranges.push((low, high));
    }
}

fn class_character(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<char> {
    match characters.next()? {
        '-' | ']' => None,
        '\\' => characters.next(),
        character => Some(character),
    }
}

/// Any number of patterns, each with a number. Patterns with a common prefix share its states, so
/// that a name is compared only with patterns that may still match.
#[derive(Default)]
pub(super) struct Globs {
    /// The first one is the start state; without patterns there is none.
    states: Vec<State>,
    /// Transitions by character.
    characters: HashMap<(usize, char), usize>,
}

#[derive(Default)]
struct State {
    /// The state behind `*`.
    any: Option<usize>,
    /// The state behind `?`.
    one: Option<usize>,
    classes: Vec<(Class, usize)>,
    /// The state follows a `*`, which may match more.
    is_behind_star: bool,
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
                Token::AnyText if self.states[at].is_behind_star => at,
                Token::AnyText => *self.states[at].any.get_or_insert(new),
                Token::AnyCharacter => *self.states[at].one.get_or_insert(new),
                Token::Character(character) => {
                    *self.characters.entry((at, character)).or_insert(new)
                }
                Token::Class(class) => {
                    let classes = &mut self.states[at].classes;
                    let existing = classes.iter().position(|(existing, _)| *existing == class);
                    let index = existing.unwrap_or_else(|| {
                        classes.push((class, new));
                        classes.len() - 1
                    });
                    classes[index].1
                }
            };
            if next == new {
                let is_behind_star = self.states[at].any == Some(new);
                self.states.push(State { is_behind_star, ..State::default() });
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
        let (mut current, mut next) = (Vec::new(), Vec::new());
        self.enter(0, &mut current);
        for character in name.chars() {
            for at in current.drain(..) {
                let state = &self.states[at];
                *steps += 1 + state.classes.len() as u64;
                if state.is_behind_star {
                    self.enter(at, &mut next);
                }
                if let Some(target) = self.characters.get(&(at, character)) {
                    self.enter(*target, &mut next);
                }
                if let Some(target) = state.one {
                    self.enter(target, &mut next);
                }
                for (_, target) in
                    state.classes.iter().filter(|(class, _)| class.matches(character))
                {
                    self.enter(*target, &mut next);
                }
            }
            // Several transitions may lead to one state.
            next.sort_unstable();
            next.dedup();
            std::mem::swap(&mut current, &mut next);
        }
        *steps += current.len() as u64;
        found.extend(current.iter().filter_map(|at| self.states[*at].end));
    }

    /// Adds a state, and the state behind a `*` that matches nothing.
    fn enter(&self, at: usize, states: &mut Vec<usize>) {
        states.push(at);
        states.extend(self.states[at].any);
    }
}
