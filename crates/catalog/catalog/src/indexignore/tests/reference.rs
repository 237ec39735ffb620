//! Reference implementation of `.indexignore`: one pattern at a time. Tests compare the prefix tree
//! with it.

/// One line.
pub(super) struct Pattern {
    /// The folder of the pattern, with a slash at its end.
    folder: String,
    pub(super) includes: bool,
    folders_only: bool,
    /// The pattern has slashes: it matches a path from the folder on, not any component.
    is_path: bool,
    parts: Vec<Part>,
}

enum Part {
    /// The empty part between two slashes.
    Empty,
    /// `**`: any number of folders.
    Folders,
    /// `**` next to other characters, which matches nothing.
    Never,
    Name(Glob),
}

impl Pattern {
    pub(super) fn new(folder: &str, line: &str) -> Self {
        let (includes, line) = match line.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let (folders_only, line) = match line.strip_suffix('/') {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let is_path = line.contains('/');
        let part = |part: &str| match part {
            "" if is_path => Part::Empty,
            "**" if is_path => Part::Folders,
            _ if is_path && part.contains("**") => Part::Never,
            _ => Part::Name(Glob::new(part)),
        };
        let parts = line.split('/').map(part).collect();
        Self { folder: folder.to_owned(), includes, folders_only, is_path, parts }
    }

    pub(super) fn matches(&self, path: &str) -> bool {
        let Some(below) = path.strip_prefix(self.folder.as_str()) else { return false };
        let names: Vec<&str> = below.split('/').collect();
        let end = if self.is_path {
            self.end_of_path(&names)
        } else {
            let name = self.parts.first();
            let found = names
                .iter()
                .position(|found| matches!(name, Some(Part::Name(glob)) if glob.matches(found)));
            found.map(|at| at + 1)
        };
        // The rest of the path lies in a folder that matches.
        end.is_some_and(|end| !self.folders_only || end < names.len())
    }

    /// How many components the path pattern matches; `None` if it does not match.
    fn end_of_path(&self, names: &[&str]) -> Option<usize> {
        let (mut at, mut matched, mut anywhere) = (0, false, false);
        let last = self.parts.len().saturating_sub(1);
        for (index, part) in self.parts.iter().enumerate() {
            match part {
                Part::Empty => anywhere = false,
                Part::Folders if index == last => break,
                Part::Folders => anywhere = true,
                Part::Never => return None,
                Part::Name(_) if at >= names.len() => return None,
                Part::Name(glob) if anywhere => {
                    anywhere = false;
                    let found = names[at..].iter().position(|name| glob.matches(name));
                    matched = found.is_some();
                    at = found.map_or(names.len(), |more| at + more + 1);
                }
                Part::Name(glob) => {
                    if !glob.matches(names[at]) {
                        return None;
                    }
                    matched = true;
                    at += 1;
                }
            }
        }
        matched.then_some(at)
    }
}

/// A pattern for one path component; `None` for a malformed one, which matches nothing.
struct Glob(Option<Vec<Token>>);

enum Token {
    AnyText,
    AnyCharacter,
    Character(char),
    Class { negated: bool, ranges: Vec<(char, char)> },
}

impl Glob {
    fn new(text: &str) -> Self {
        let mut tokens = Vec::new();
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            tokens.push(match character {
                '*' => Token::AnyText,
                '?' => Token::AnyCharacter,
                '\\' => match characters.next() {
                    Some(character) => Token::Character(character),
                    None => return Self(None),
                },
                '[' => {
                    let negated = characters.next_if_eq(&'^').is_some();
                    match ranges(&mut characters) {
                        Some(ranges) => Token::Class { negated, ranges },
                        None => return Self(None),
                    }
                }
                character => Token::Character(character),
            });
        }
        Self(Some(tokens))
    }

    fn matches(&self, name: &str) -> bool {
        let Some(tokens) = &self.0 else { return false };
        let name: Vec<char> = name.chars().collect();
        let (mut token, mut at) = (0, 0);
        // The last star, and how far it reaches.
        let mut star: Option<(usize, usize)> = None;
        while at < name.len() {
            match tokens.get(token) {
                Some(Token::AnyText) => {
                    star = Some((token, at));
                    token += 1;
                }
                Some(one) if one.matches(name[at]) => {
                    token += 1;
                    at += 1;
                }
                _ => {
                    let Some((back, reach)) = star else { return false };
                    star = Some((back, reach + 1));
                    (token, at) = (back + 1, reach + 1);
                }
            }
        }
        tokens[token..].iter().all(|token| matches!(token, Token::AnyText))
    }
}

impl Token {
    fn matches(&self, character: char) -> bool {
        match self {
            Self::AnyText => false,
            Self::AnyCharacter => true,
            Self::Character(expected) => *expected == character,
            Self::Class { negated, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&character)) != *negated
            }
        }
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
