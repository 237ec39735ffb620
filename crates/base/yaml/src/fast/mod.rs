//! The usual YAML, read in one pass over the bytes.
//!
//! Catalogs and manifests are block mappings and sequences of plain, quoted and literal scalars.
//! For these no events are needed: the column of a line says which collection it belongs to, and
//! `memchr` finds where a scalar ends. [`section`] reads such a text straight into a value.
//!
//! The rule that keeps this honest: it decides nothing. Where a text has anything unusual
//! (anchors, aliases, tags, directives, merge keys, explicit keys, tabs outside of text, `\r`,
//! characters that some readers take for line breaks, several documents in one section, a value
//! out of bounds) and wherever something might be wrong with it, the answer is [`Unusual`], and
//! the section is read by the parser, which alone gives verdicts and their words. So only two
//! answers are possible: the same value as the parser's, or none.

mod flow;
pub(crate) mod json;
mod quoted;
#[cfg(test)]
mod tests;
mod text;

use crate::{
    DuplicateKeys, Options, Repeated,
    locate::Wanted,
    scalar::{self, Scalar},
    section::sections,
};
use memchr::{memchr, memchr_iter, memchr3};
use serde_json::{Map, Value, map::Entry};

/// How deep this reader nests, which is how deep it recurses. Deeper texts are for the parser,
/// which has a stack of its own.
const DEEPEST: usize = 64;
/// A key may begin at most 1,024 characters before its colon. This keeps below.
const LONGEST_KEY: usize = 1000;

/// The text is not for this reader.
#[derive(Debug, PartialEq, Eq)]
struct Unusual;

type Read<T> = Result<T, Unusual>;

/// A document, the line of its first node, and its repeated keys.
pub(crate) type Found = (Value, usize, Vec<Repeated>);

/// Reads a section that begins on `line` and holds one usual document.
pub(crate) fn section(text: &str, line: usize, options: &Options) -> Option<Found> {
    let bytes = text.as_bytes();
    if options.duplicate_keys == DuplicateKeys::Refuse || unusual_characters(bytes) {
        return None;
    }
    let mut scanner = Scanner::new(text, options, None);
    let (value, start) = scanner.document().ok()?;
    // They were noted when their values ended.
    scanner.repeated.sort_by_key(|(at, _)| *at);
    let breaks = |part: &[u8]| memchr_iter(b'\n', part).count();
    // Each stands behind the one before.
    let (mut from, mut row) = (0, line);
    let repeated = scanner.repeated.into_iter().map(|(at, key)| {
        row += bytes.get(from..at).map_or(0, breaks);
        from = at;
        Repeated { line: row, key }
    });
    Some((value, line + breaks(&bytes[..start]), repeated.collect()))
}

/// Finds nodes of the first document of a text, by the byte at which each begins. Nothing is said of a
/// text that is unusual, or of nodes inside of brackets.
pub(crate) fn locate(text: &str, wanted: &mut Wanted) -> bool {
    let Some(Ok(section)) = sections(text).next() else { return false };
    let text = crate::text::ended(&text[section.bytes.clone()]);
    if section.bytes.start > 0 || unusual_characters(text.as_bytes()) {
        return false;
    }
    let options = Options::default();
    Scanner::new(&text, &options, Some(wanted)).document().is_ok()
}

/// Whether a text has characters that are no text of YAML, or that readers of YAML 1.1 and 1.2
/// see differently: control characters, carriage returns, NEL and the separators of lines and
/// paragraphs, byte-order marks.
fn unusual_characters(bytes: &[u8]) -> bool {
    let ascii_control = |byte: u8| (byte < 0x20 && byte != b'\t' && byte != b'\n') || byte == 0x7f;
    // Short strides let the compiler check many bytes at once.
    let (mut control, mut beyond) = (false, false);
    for stride in bytes.chunks(4096) {
        let (mut found, mut high) = (false, 0);
        for &byte in stride {
            found |= ascii_control(byte);
            high |= byte;
        }
        control |= found;
        beyond |= high >= 0x80;
    }
    if control || !beyond {
        return control;
    }
    memchr::memchr3_iter(0xc2, 0xe2, 0xef, bytes).any(|at| match bytes[at..] {
        // U+0080 to U+009F, of which U+0085 is NEL.
        [0xc2, second, ..] => second < 0xa0,
        [0xe2, second, third, ..] => second == 0x80 && (third == 0xa8 || third == 0xa9),
        // The byte-order mark U+FEFF, and U+FFFE and U+FFFF, which are no characters.
        [0xef, second, third, ..] => {
            (second, third) == (0xbb, 0xbf) || second == 0xbf && third >= 0xbe
        }
        _ => true,
    })
}

struct Scanner<'t, 'o> {
    text: &'t str,
    bytes: &'t [u8],
    /// The next byte.
    at: usize,
    /// The column of the byte at `at`, if that is the first of its line that is no blank; none at
    /// the end of the text.
    column: Option<usize>,
    /// The text has tabs somewhere.
    tabs: bool,
    depth: usize,
    deepest: usize,
    options: &'o Options,
    /// Where keys stand again, and which.
    repeated: Vec<(usize, String)>,
    /// Nodes that are looked for, and which of them the present one is.
    wanted: Option<&'o mut Wanted>,
    wish: Option<usize>,
}

/// The key of a mapping, in quotes or not.
struct Key {
    name: String,
    /// It is a text, not the name of a number or a truth value.
    is_text: bool,
    start: usize,
}

/// What begins at some place: the key of a mapping (the place is behind its colon then), or a
/// whole scalar or flow collection, read up to the next content.
enum Head {
    Key(Key),
    Value(Value),
}

impl<'t, 'o> Scanner<'t, 'o> {
    fn new(text: &'t str, options: &'o Options, wanted: Option<&'o mut Wanted>) -> Self {
        let bytes = text.as_bytes();
        Self {
            text,
            bytes,
            at: 0,
            column: None,
            tabs: memchr(b'\t', bytes).is_some(),
            depth: 0,
            deepest: options.max_depth.min(DEEPEST),
            options,
            repeated: Vec::new(),
            wish: wanted.is_some().then_some(0),
            wanted,
        }
    }

    /// The present node begins at `at`.
    fn begins(&mut self, at: usize) {
        self.begins_behind(at, 0);
    }

    /// The present node begins so many columns behind `at`.
    fn begins_behind(&mut self, at: usize, columns: usize) {
        if let (Some(wish), Some(wanted)) = (self.wish, &mut self.wanted) {
            wanted.note(wish, at, columns);
        }
    }

    /// What is looked for in the value of a key that has been read.
    fn wish_of_key(&self, parent: Option<usize>, key: &Key) -> Option<usize> {
        let (parent, wanted) = (parent?, self.wanted.as_deref()?);
        let written =
            if key.is_text { &key.name } else { self.text.get(key.start..self.at - 1)? };
        wanted.field(parent, written)
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn spaces(&mut self) {
        while self.peek() == Some(b' ') {
            self.at += 1;
        }
    }

    /// Whether the byte at `at` is a blank, or no byte of its line.
    fn blank_at(&self, at: usize) -> bool {
        matches!(self.bytes.get(at), None | Some(b' ' | b'\n' | b'\t'))
    }

    /// Whether `at` is on the dash of an item.
    fn on_dash(&self) -> bool {
        self.peek() == Some(b'-') && self.blank_at(self.at + 1)
    }

    /// The text of a range whose ends are next to characters of ASCII.
    fn slice(&self, start: usize, end: usize) -> Read<&'t str> {
        self.text.get(start..end).ok_or(Unusual)
    }

    /// The whole document, and where its first node stands.
    fn document(&mut self) -> Read<(Value, usize)> {
        if self.bytes.starts_with(b"---") {
            self.at = 3;
            self.end_of_line()?;
        } else {
            self.lines()?;
        }
        let start = self.at;
        let column = self.column.ok_or(Unusual)?;
        if self.bytes[start..].starts_with(b"---") {
            return Err(Unusual);
        }
        self.begins(start);
        let value = if self.on_dash() {
            self.sequence(column)?
        } else {
            match self.head(None)? {
                Head::Key(key) => self.mapping(column, key)?,
                Head::Value(_) => return Err(Unusual),
            }
        };
        match self.column {
            None => Ok((value, start)),
            Some(_) => Err(Unusual),
        }
    }

    /// Passes the end of a line, which may hold a comment, and goes on to the next content.
    fn end_of_line(&mut self) -> Read<()> {
        self.spaces();
        match self.peek() {
            None => {
                self.column = None;
                Ok(())
            }
            Some(b'\n') => {
                self.at += 1;
                self.lines()
            }
            Some(b'#') if self.at > 0 && self.bytes[self.at - 1] == b' ' => {
                self.skip_line();
                self.lines()
            }
            Some(_) => Err(Unusual),
        }
    }

    fn skip_line(&mut self) {
        let rest = &self.bytes[self.at..];
        self.at += memchr(b'\n', rest).map_or(rest.len(), |newline| newline + 1);
    }

    /// From the start of a line to the next content, over blank lines and comments.
    fn lines(&mut self) -> Read<()> {
        loop {
            let start = self.at;
            self.spaces();
            match self.peek() {
                None => {
                    self.column = None;
                    return Ok(());
                }
                Some(b'\n') => self.at += 1,
                Some(b'#') => self.skip_line(),
                Some(b'\t') => return Err(Unusual),
                Some(first) => {
                    let column = self.at - start;
                    if column == 0 && first == b'.' && self.bytes[start..].starts_with(b"...") {
                        return Err(Unusual);
                    }
                    self.column = Some(column);
                    return Ok(());
                }
            }
        }
    }

    fn deeper(&mut self) -> Read<()> {
        self.depth += 1;
        if self.depth > self.deepest { Err(Unusual) } else { Ok(()) }
    }

    /// What begins at the present place, on a line of its own or behind a dash. `parent` is the
    /// column of the collection around it.
    fn head(&mut self, parent: Option<usize>) -> Read<Head> {
        let start = self.at;
        match self.peek().ok_or(Unusual)? {
            quote @ (b'"' | b'\'') => {
                let text = self.quoted(quote, parent)?;
                if self.peek() != Some(b':') {
                    self.end_of_line()?;
                    return Ok(Head::Value(Value::String(text)));
                }
                let long = self.at - start > LONGEST_KEY;
                if long
                    || !self.blank_at(self.at + 1)
                    || memchr(b'\n', &self.bytes[start..self.at]).is_some()
                {
                    return Err(Unusual);
                }
                self.at += 1;
                Ok(Head::Key(Key { name: text, is_text: true, start }))
            }
            _ if self.begins_plain() => {
                let (end, colon) = self.plain_end(start);
                if !colon {
                    return self.plain(start, end, parent).map(Head::Value);
                }
                // Blanks before the colon are fine for the parser, and nobody writes them.
                if end - start > LONGEST_KEY || self.bytes[end - 1] == b' ' {
                    return Err(Unusual);
                }
                let key = self.plain_key(start, end)?;
                self.at = end + 1;
                Ok(Head::Key(key))
            }
            _ => self.inline(parent).map(Head::Value),
        }
    }

    /// The key that is written without quotes.
    fn plain_key(&self, start: usize, end: usize) -> Read<Key> {
        let text = self.slice(start, end)?;
        self.check_length(text.len())?;
        if text == "<<" || (self.tabs && memchr(b'\t', text.as_bytes()).is_some()) {
            return Err(Unusual);
        }
        let resolved = scalar::resolve(text, None, true).map_err(|_| Unusual)?;
        let is_text = resolved == Scalar::Text;
        let name = resolved.key(text).map_err(|_| Unusual)?;
        Ok(Key { name, is_text, start })
    }

    /// A value that a character announces: a collection in brackets or a block of text.
    fn inline(&mut self, parent: Option<usize>) -> Read<Value> {
        match self.peek() {
            Some(b'[' | b'{') => {
                if let (Some(wish), Some(wanted)) = (self.wish, &self.wanted)
                    && wanted.has_parts(wish)
                {
                    return Err(Unusual);
                }
                let value = self.flow(parent)?;
                self.end_of_line()?;
                Ok(value)
            }
            Some(b'|') => self.block_text(parent, false),
            Some(b'>') => self.block_text(parent, true),
            _ => Err(Unusual),
        }
    }

    /// Whether a plain scalar begins here. Some more could begin one; those are for the parser.
    fn begins_plain(&self) -> bool {
        match self.peek() {
            None => false,
            Some(b'-') => !self.blank_at(self.at + 1),
            Some(byte) => !matches!(
                byte,
                b'?' | b':'
                    | b','
                    | b'['
                    | b']'
                    | b'{'
                    | b'}'
                    | b'#'
                    | b'&'
                    | b'*'
                    | b'!'
                    | b'|'
                    | b'>'
                    | b'\''
                    | b'"'
                    | b'%'
                    | b'@'
                    | b'`'
                    | b' '
                    | b'\t'
                    | b'\n'
            ),
        }
    }

    /// Where the plain text that begins at `start` ends on its line: at the colon of a key
    /// (`true`), at the blank before a comment, or at the end of the line.
    fn plain_end(&self, start: usize) -> (usize, bool) {
        let mut at = start;
        while let Some(found) = memchr3(b':', b'#', b'\n', &self.bytes[at..]) {
            at += found;
            match self.bytes[at] {
                b':' if self.blank_at(at + 1) => return (at, true),
                b'#' if at > start && matches!(self.bytes[at - 1], b' ' | b'\t') => {
                    return (at - 1, false);
                }
                b'\n' => return (at, false),
                _ => at += 1,
            }
        }
        (self.bytes.len(), false)
    }

    /// The value behind the colon of a key in the mapping at `column`.
    fn value(&mut self, column: usize) -> Read<Value> {
        let behind_colon = self.at;
        self.spaces();
        match self.peek() {
            None | Some(b'\n' | b'#') => {
                self.end_of_line()?;
                match self.column {
                    Some(deeper) if deeper > column => self.block(deeper, column),
                    Some(same) if same == column && self.on_dash() => {
                        // What is inside stands behind its dashes.
                        self.begins_behind(self.at, 2);
                        self.sequence(column)
                    }
                    _ => {
                        self.begins(behind_colon);
                        Ok(Value::Null)
                    }
                }
            }
            Some(quote @ (b'"' | b'\'')) => {
                self.begins(self.at);
                let text = self.quoted(quote, Some(column))?;
                self.end_of_line()?;
                Ok(Value::String(text))
            }
            Some(_) if self.begins_plain() => {
                self.begins(self.at);
                let (end, colon) = self.plain_end(self.at);
                if colon {
                    return Err(Unusual);
                }
                self.plain(self.at, end, Some(column))
            }
            Some(_) => {
                self.begins(self.at);
                self.inline(Some(column))
            }
        }
    }

    /// The node at the present place in `column`, inside the collection at `parent`.
    fn block(&mut self, column: usize, parent: usize) -> Read<Value> {
        self.begins(self.at);
        if self.on_dash() {
            return self.sequence(column);
        }
        match self.head(Some(parent))? {
            Head::Key(key) => self.mapping(column, key),
            Head::Value(value) => Ok(value),
        }
    }

    /// The mapping at `column` whose first key has been read.
    fn mapping(&mut self, column: usize, first: Key) -> Read<Value> {
        self.deeper()?;
        let wish = self.wish;
        let mut map = Map::new();
        let mut key = first;
        loop {
            self.wish = self.wish_of_key(wish, &key);
            let value = self.value(column)?;
            self.put(&mut map, key, value);
            match self.column {
                Some(same) if same == column => {}
                Some(deeper) if deeper > column => return Err(Unusual),
                _ => break,
            }
            key = match self.head(Some(column))? {
                Head::Key(key) => key,
                Head::Value(_) => return Err(Unusual),
            };
        }
        self.depth -= 1;
        Ok(Value::Object(map))
    }

    /// Puts a value into its mapping. Of one key the last value counts.
    fn put(&mut self, map: &mut Map<String, Value>, key: Key, value: Value) {
        let Key { name, is_text, start } = key;
        match map.entry(name) {
            Entry::Vacant(entry) => {
                entry.insert(value);
            }
            Entry::Occupied(mut entry) => {
                if self.options.duplicate_keys == DuplicateKeys::Note {
                    let name = entry.key();
                    let shown = if is_text { format!("{name:?}") } else { name.clone() };
                    self.repeated.push((start, shown));
                }
                entry.insert(value);
            }
        }
    }

    /// The sequence whose dashes stand in `column`.
    fn sequence(&mut self, column: usize) -> Read<Value> {
        self.deeper()?;
        let wish = self.wish;
        let mut items = Vec::new();
        while self.column == Some(column) && self.on_dash() {
            let dash = self.at;
            self.at += 1;
            let wanted = self.wanted.as_deref();
            self.wish = wish.and_then(|parent| wanted?.item(parent, items.len()));
            self.spaces();
            items.push(match self.peek() {
                None | Some(b'\n' | b'#') => {
                    self.end_of_line()?;
                    match self.column {
                        Some(deeper) if deeper > column => self.block(deeper, column)?,
                        _ => {
                            self.begins(dash + 1);
                            Value::Null
                        }
                    }
                }
                Some(_) => {
                    let inner = column + (self.at - dash);
                    self.column = Some(inner);
                    self.block(inner, column)?
                }
            });
        }
        self.depth -= 1;
        match self.column {
            Some(deeper) if deeper > column => Err(Unusual),
            _ => Ok(Value::Array(items)),
        }
    }

    fn check_length(&self, bytes: usize) -> Read<()> {
        if bytes > self.options.max_scalar_bytes { Err(Unusual) } else { Ok(()) }
    }

    /// Whether a plain text has a tab, which is part of it or not.
    fn has_tab(&self, start: usize, end: usize) -> bool {
        self.tabs && memchr(b'\t', &self.bytes[start..end]).is_some()
    }
}
