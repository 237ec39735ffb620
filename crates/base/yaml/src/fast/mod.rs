//! Fast path: a scanner for common YAML that reads it in one pass over the bytes.
//!
//! Catalogs and manifests are block mappings and sequences of plain, quoted and literal scalars.
//! These need no events: the column of a line determines its collection, and `memchr` finds the end
//! of a scalar. [`section`] reads such a text directly into a value.
//!
//! The scanner reports no errors. It returns [`Unsupported`] where a text may be invalid, and for
//! anchors, aliases, tags, directives, merge keys, explicit keys, tabs outside of text, `\r`,
//! characters that some readers take for line breaks, several documents in one section, and values
//! beyond a limit. Then the parser reads the section, and it alone reports errors. So the scanner
//! has two possible results: the same value as the parser's, or none.

mod flow;
pub(crate) mod json;
mod quoted;
#[cfg(test)]
mod tests;
mod text;

use crate::{
    DuplicateKeys, Options, RepeatedKey,
    locate::TargetNodes,
    scalar::{self, Scalar},
    section::sections,
};
use memchr::{memchr, memchr_iter, memchr3};
use serde_json::{Map, Value, map::Entry};

/// The maximum depth of this reader, which recurses. Deeper texts are for the parser, which has its
/// own stack.
const MAX_DEPTH: usize = 64;
/// The maximum length of a key, below the parser's limit of 1,024 characters.
const MAX_KEY_LENGTH: usize = 1000;

/// This reader does not support the text.
#[derive(Debug, PartialEq, Eq)]
struct Unsupported;

type ScanResult<T> = Result<T, Unsupported>;

/// A document, the line of its first node, and its repeated keys.
pub(crate) type ScannedDocument = (Value, usize, Vec<RepeatedKey>);

/// Reads a section that begins on `line` and holds one common document.
pub(crate) fn section(text: &str, line: usize, options: &Options) -> Option<ScannedDocument> {
    let bytes = text.as_bytes();
    if options.duplicate_keys == DuplicateKeys::Refuse || has_unsupported_characters(bytes) {
        return None;
    }
    let mut scanner = Scanner::new(text, options, None);
    let (value, start) = scanner.document().ok()?;
    // They were recorded in the order in which their values ended.
    scanner.repeated_keys.sort_by_key(|(at, _)| *at);
    let breaks = |part: &[u8]| memchr_iter(b'\n', part).count();
    // Lines are counted from one key to the next.
    let (mut from, mut row) = (0, line);
    let repeated_keys = scanner.repeated_keys.into_iter().map(|(at, key)| {
        row += bytes.get(from..at).map_or(0, breaks);
        from = at;
        RepeatedKey { line: row, key }
    });
    Some((value, line + breaks(&bytes[..start]), repeated_keys.collect()))
}

/// Finds nodes of the first document of a text, by the byte at which each begins. False for an
/// unsupported text and for nodes inside of flow collections.
pub(crate) fn locate(text: &str, targets: &mut TargetNodes) -> bool {
    let Some(Ok(section)) = sections(text).next() else { return false };
    let text = crate::text::with_final_newline(&text[section.bytes.clone()]);
    if section.bytes.start > 0 || has_unsupported_characters(text.as_bytes()) {
        return false;
    }
    let options = Options::default();
    Scanner::new(&text, &options, Some(targets)).document().is_ok()
}

/// Whether a text has characters that YAML forbids or that YAML 1.1 and 1.2 treat differently:
/// control characters, carriage returns, NEL, the separators of lines and paragraphs, byte-order
/// marks.
fn has_unsupported_characters(bytes: &[u8]) -> bool {
    let ascii_control = |byte: u8| (byte < 0x20 && byte != b'\t' && byte != b'\n') || byte == 0x7f;
    // Short strides let the compiler check many bytes at once.
    let (mut control, mut non_ascii) = (false, false);
    for stride in bytes.chunks(4096) {
        let (mut found, mut high) = (false, 0);
        for &byte in stride {
            found |= ascii_control(byte);
            high |= byte;
        }
        control |= found;
        non_ascii |= high >= 0x80;
    }
    if control || !non_ascii {
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
    /// The column of the byte at `at` if only blanks are before it on its line; none at the end of
    /// the text.
    column: Option<usize>,
    /// The text has tabs.
    tabs: bool,
    depth: usize,
    max_depth: usize,
    options: &'o Options,
    /// The offsets and names of repeated keys.
    repeated_keys: Vec<(usize, String)>,
    /// The nodes to find, and the one of them that is the current node.
    targets: Option<&'o mut TargetNodes>,
    target: Option<usize>,
}

/// The key of a mapping.
struct Key {
    name: String,
    /// It is a string, not a number or a boolean.
    is_text: bool,
    start: usize,
}

/// The beginning of a node: the key of a mapping up to its colon, or a whole scalar or flow
/// collection up to the next content.
enum Head {
    Key(Key),
    Value(Value),
}

impl<'t, 'o> Scanner<'t, 'o> {
    fn new(text: &'t str, options: &'o Options, targets: Option<&'o mut TargetNodes>) -> Self {
        let bytes = text.as_bytes();
        Self {
            text,
            bytes,
            at: 0,
            column: None,
            tabs: memchr(b'\t', bytes).is_some(),
            depth: 0,
            max_depth: options.max_depth.min(MAX_DEPTH),
            options,
            repeated_keys: Vec::new(),
            target: targets.is_some().then_some(0),
            targets,
        }
    }

    /// Records that the current node begins at `at`.
    fn mark_start(&mut self, at: usize) {
        self.mark_start_after(at, 0);
    }

    /// Records that the current node begins `columns` columns after `at`.
    fn mark_start_after(&mut self, at: usize, columns: usize) {
        if let (Some(target), Some(targets)) = (self.target, &mut self.targets) {
            targets.record(target, at, columns);
        }
    }

    /// The node to find in the value of a key that has been read.
    fn target_of_key(&self, parent: Option<usize>, key: &Key) -> Option<usize> {
        let (parent, targets) = (parent?, self.targets.as_deref()?);
        let written =
            if key.is_text { &key.name } else { self.text.get(key.start..self.at - 1)? };
        targets.field(parent, written)
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_spaces(&mut self) {
        while self.peek() == Some(b' ') {
            self.at += 1;
        }
    }

    /// Whether the byte at `at` is a blank or beyond its line.
    fn blank_at(&self, at: usize) -> bool {
        matches!(self.bytes.get(at), None | Some(b' ' | b'\n' | b'\t'))
    }

    /// Whether an item's dash is at the current position.
    fn on_dash(&self) -> bool {
        self.peek() == Some(b'-') && self.blank_at(self.at + 1)
    }

    /// The text of a range that begins and ends at ASCII characters.
    fn slice(&self, start: usize, end: usize) -> ScanResult<&'t str> {
        self.text.get(start..end).ok_or(Unsupported)
    }

    /// Reads the document; also returns the offset of its first node.
    fn document(&mut self) -> ScanResult<(Value, usize)> {
        if self.bytes.starts_with(b"---") {
            self.at = 3;
            self.finish_line()?;
        } else {
            self.skip_to_content()?;
        }
        let start = self.at;
        let column = self.column.ok_or(Unsupported)?;
        if self.bytes[start..].starts_with(b"---") {
            return Err(Unsupported);
        }
        self.mark_start(start);
        let value = if self.on_dash() {
            self.sequence(column)?
        } else {
            match self.head(None)? {
                Head::Key(key) => self.mapping(column, key)?,
                Head::Value(_) => return Err(Unsupported),
            }
        };
        match self.column {
            None => Ok((value, start)),
            Some(_) => Err(Unsupported),
        }
    }

    /// Moves past the end of a line, which may have a comment, to the next content.
    fn finish_line(&mut self) -> ScanResult<()> {
        self.skip_spaces();
        match self.peek() {
            None => {
                self.column = None;
                Ok(())
            }
            Some(b'\n') => {
                self.at += 1;
                self.skip_to_content()
            }
            Some(b'#') if self.at > 0 && self.bytes[self.at - 1] == b' ' => {
                self.skip_line();
                self.skip_to_content()
            }
            Some(_) => Err(Unsupported),
        }
    }

    fn skip_line(&mut self) {
        let rest = &self.bytes[self.at..];
        self.at += memchr(b'\n', rest).map_or(rest.len(), |newline| newline + 1);
    }

    /// Moves from the start of a line to the next content, past blank lines and comments.
    fn skip_to_content(&mut self) -> ScanResult<()> {
        loop {
            let start = self.at;
            self.skip_spaces();
            match self.peek() {
                None => {
                    self.column = None;
                    return Ok(());
                }
                Some(b'\n') => self.at += 1,
                Some(b'#') => self.skip_line(),
                Some(b'\t') => return Err(Unsupported),
                Some(first) => {
                    let column = self.at - start;
                    if column == 0 && first == b'.' && self.bytes[start..].starts_with(b"...") {
                        return Err(Unsupported);
                    }
                    self.column = Some(column);
                    return Ok(());
                }
            }
        }
    }

    fn enter_collection(&mut self) -> ScanResult<()> {
        self.depth += 1;
        if self.depth > self.max_depth { Err(Unsupported) } else { Ok(()) }
    }

    /// Reads the beginning of a node, on a new line or after a dash. `parent` is the column of the
    /// collection around it.
    fn head(&mut self, parent: Option<usize>) -> ScanResult<Head> {
        let start = self.at;
        match self.peek().ok_or(Unsupported)? {
            quote @ (b'"' | b'\'') => {
                let text = self.quoted(quote, parent)?;
                if self.peek() != Some(b':') {
                    self.finish_line()?;
                    return Ok(Head::Value(Value::String(text)));
                }
                let long = self.at - start > MAX_KEY_LENGTH;
                if long
                    || !self.blank_at(self.at + 1)
                    || memchr(b'\n', &self.bytes[start..self.at]).is_some()
                {
                    return Err(Unsupported);
                }
                self.at += 1;
                Ok(Head::Key(Key { name: text, is_text: true, start }))
            }
            _ if self.begins_plain() => {
                let (end, colon) = self.plain_end(start);
                if !colon {
                    return self.plain(start, end, parent).map(Head::Value);
                }
                // Blanks before the colon are valid but rare, so they are left to the parser.
                if end - start > MAX_KEY_LENGTH || self.bytes[end - 1] == b' ' {
                    return Err(Unsupported);
                }
                let key = self.plain_key(start, end)?;
                self.at = end + 1;
                Ok(Head::Key(key))
            }
            _ => self.flow_or_block_scalar(parent).map(Head::Value),
        }
    }

    /// Resolves a key without quotes.
    fn plain_key(&self, start: usize, end: usize) -> ScanResult<Key> {
        let text = self.slice(start, end)?;
        self.check_length(text.len())?;
        if text == "<<" || (self.tabs && memchr(b'\t', text.as_bytes()).is_some()) {
            return Err(Unsupported);
        }
        let resolved = scalar::resolve(text, None, true).map_err(|_| Unsupported)?;
        let is_text = resolved == Scalar::Text;
        let name = resolved.key(text).map_err(|_| Unsupported)?;
        Ok(Key { name, is_text, start })
    }

    /// Reads a flow collection or a block scalar.
    fn flow_or_block_scalar(&mut self, parent: Option<usize>) -> ScanResult<Value> {
        match self.peek() {
            Some(b'[' | b'{') => {
                if let (Some(target), Some(targets)) = (self.target, &self.targets)
                    && targets.has_children(target)
                {
                    return Err(Unsupported);
                }
                let value = self.flow(parent)?;
                self.finish_line()?;
                Ok(value)
            }
            Some(b'|') => self.block_text(parent, false),
            Some(b'>') => self.block_text(parent, true),
            _ => Err(Unsupported),
        }
    }

    /// Whether a plain scalar begins here. Rare beginnings are left to the parser.
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

    /// The end on its line of the plain text that begins at `start`: the colon of a key (`true`),
    /// the blank before a comment, or the end of the line.
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

    /// Reads the value after the colon of a key in the mapping at `column`.
    fn value(&mut self, column: usize) -> ScanResult<Value> {
        let after_colon = self.at;
        self.skip_spaces();
        match self.peek() {
            None | Some(b'\n' | b'#') => {
                self.finish_line()?;
                match self.column {
                    Some(deeper) if deeper > column => self.block(deeper, column),
                    Some(same) if same == column && self.on_dash() => {
                        // The items begin after the dashes.
                        self.mark_start_after(self.at, 2);
                        self.sequence(column)
                    }
                    _ => {
                        self.mark_start(after_colon);
                        Ok(Value::Null)
                    }
                }
            }
            Some(quote @ (b'"' | b'\'')) => {
                self.mark_start(self.at);
                let text = self.quoted(quote, Some(column))?;
                self.finish_line()?;
                Ok(Value::String(text))
            }
            Some(_) if self.begins_plain() => {
                self.mark_start(self.at);
                let (end, colon) = self.plain_end(self.at);
                if colon {
                    return Err(Unsupported);
                }
                self.plain(self.at, end, Some(column))
            }
            Some(_) => {
                self.mark_start(self.at);
                self.flow_or_block_scalar(Some(column))
            }
        }
    }

    /// Reads the node at the current position in `column`, inside the collection at `parent`.
    fn block(&mut self, column: usize, parent: usize) -> ScanResult<Value> {
        self.mark_start(self.at);
        if self.on_dash() {
            return self.sequence(column);
        }
        match self.head(Some(parent))? {
            Head::Key(key) => self.mapping(column, key),
            Head::Value(value) => Ok(value),
        }
    }

    /// Reads the rest of the mapping at `column` whose first key has been read.
    fn mapping(&mut self, column: usize, first: Key) -> ScanResult<Value> {
        self.enter_collection()?;
        let target = self.target;
        let mut map = Map::new();
        let mut key = first;
        loop {
            self.target = self.target_of_key(target, &key);
            let value = self.value(column)?;
            self.insert(&mut map, key, value);
            match self.column {
                Some(same) if same == column => {}
                Some(deeper) if deeper > column => return Err(Unsupported),
                _ => break,
            }
            key = match self.head(Some(column))? {
                Head::Key(key) => key,
                Head::Value(_) => return Err(Unsupported),
            };
        }
        self.depth -= 1;
        Ok(Value::Object(map))
    }

    /// Adds a value to its mapping. The last value of a key wins.
    fn insert(&mut self, map: &mut Map<String, Value>, key: Key, value: Value) {
        let Key { name, is_text, start } = key;
        match map.entry(name) {
            Entry::Vacant(entry) => {
                entry.insert(value);
            }
            Entry::Occupied(mut entry) => {
                if self.options.duplicate_keys == DuplicateKeys::Note {
                    let name = entry.key();
                    let key = if is_text { format!("{name:?}") } else { name.clone() };
                    self.repeated_keys.push((start, key));
                }
                entry.insert(value);
            }
        }
    }

    /// Reads the sequence whose dashes are in `column`.
    fn sequence(&mut self, column: usize) -> ScanResult<Value> {
        self.enter_collection()?;
        let target = self.target;
        let mut items = Vec::new();
        while self.column == Some(column) && self.on_dash() {
            let dash = self.at;
            self.at += 1;
            let targets = self.targets.as_deref();
            self.target = target.and_then(|parent| targets?.item(parent, items.len()));
            self.skip_spaces();
            items.push(match self.peek() {
                None | Some(b'\n' | b'#') => {
                    self.finish_line()?;
                    match self.column {
                        Some(deeper) if deeper > column => self.block(deeper, column)?,
                        _ => {
                            self.mark_start(dash + 1);
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
            Some(deeper) if deeper > column => Err(Unsupported),
            _ => Ok(Value::Array(items)),
        }
    }

    fn check_length(&self, bytes: usize) -> ScanResult<()> {
        if bytes > self.options.max_scalar_bytes { Err(Unsupported) } else { Ok(()) }
    }

    /// Whether a plain text has a tab.
    fn has_tab(&self, start: usize, end: usize) -> bool {
        self.tabs && memchr(b'\t', &self.bytes[start..end]).is_some()
    }
}
