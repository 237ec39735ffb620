//! From parser events to values.
//!
//! One loop with an explicit stack; nothing here recurses, whatever the document looks like. An
//! anchored node is kept beside the tree, with its size and depth, so that an alias is charged
//! for what it adds before it is copied.

use crate::{
    DuplicateKeys, Options, Repeated, YamlError,
    json::{check_length, duplicate},
    marks,
    scalar::{self, Scalar},
    text,
};
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, Tag};
use serde_json::{Map, Value};
use std::{borrow::Cow, collections::HashMap};

/// What a node is charged beside its text.
const NODE_BYTES: usize = 32;
/// How often a section is parsed again because of a tab.
const MAX_PATCHES: usize = 100;

/// Reads all documents of one section that begins on `line`: usually one, more when it has `...`.
/// Each comes with the line of its first node.
pub(crate) fn section(
    text: &str,
    line: usize,
    options: &Options,
) -> Result<Vec<(Value, usize, Vec<Repeated>)>, YamlError> {
    if let Some(at) = text::forbidden(text) {
        let (row, column) = text::position(&text[..at]);
        return Err(YamlError {
            line: line + row - 1,
            column,
            message: "control characters are not allowed".to_owned(),
        });
    }
    // A byte-order mark may open each document, not only the first.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (mut patched, stand_in) = marks::hidden(text);
    for _ in 0..MAX_PATCHES {
        match parse(&patched, options) {
            Err(error) if tab_after_colon(&patched, &error).is_some() => {
                // The parser insists on a blank after `:` where upstream takes a tab as well. A
                // blank in its place changes neither positions nor meaning.
                let Some(at) = tab_after_colon(&patched, &error) else { break };
                patched.to_mut().replace_range(at..=at, " ");
            }
            Err(error) if outdented_quote(&patched, &error).is_some() => {
                // The parser insists on indentation inside quotes, where upstream looks at none.
                // Blanks at the start of such a line are not part of the text.
                let Some(range) = outdented_quote(&patched, &error) else { break };
                let deeper = format!("\n{:width$}", "", width = error.mark.col() + 1);
                let quoted = patched[range.clone()].replace('\n', &deeper);
                patched.to_mut().replace_range(range, &quoted);
            }
            Err(error) => return Err(error.at_line(line)),
            Ok(documents) => {
                return Ok(documents
                    .into_iter()
                    .map(|(mut value, row, mut repeated)| {
                        if let Some(stand_in) = stand_in {
                            marks::shown(&mut value, stand_in);
                        }
                        for one in &mut repeated {
                            one.line += line - 1;
                        }
                        (value, line + row - 1, repeated)
                    })
                    .collect());
            }
        }
    }
    Err(YamlError { line, column: 1, message: "too many tabs after ':'".to_owned() })
}

/// The byte position of the tab that the parser complained about.
fn tab_after_colon(text: &str, error: &Fail) -> Option<usize> {
    if !error.message.contains("must be followed by a valid YAML whitespace") {
        return None;
    }
    let start = match error.mark.line() {
        0 | 1 => 0,
        line => text.match_indices('\n').nth(line - 2)?.0 + 1,
    };
    let rest = &text[start..];
    let column = rest.char_indices().nth(error.mark.col()).map_or(0, |(at, _)| at);
    // The mark stands at the tab or at what follows it.
    let at = start + rest[..rest.len().min(column + 1)].rfind(":\t")? + 1;
    Some(at)
}

/// Where the text in quotes stands that the parser found not indented enough, if it has an end.
fn outdented_quote(text: &str, error: &Fail) -> Option<std::ops::Range<usize>> {
    // Nobody indents a thousand columns; each line would grow by as many.
    let odd = error.mark.col() > 1000;
    if odd || !error.message.contains("invalid indentation in quoted scalar") {
        return None;
    }
    let line = match error.mark.line() {
        0 | 1 => 0,
        line => text.match_indices('\n').nth(line - 2)?.0 + 1,
    };
    let start = line + text[line..].char_indices().nth(error.mark.col())?.0;
    let quote = text[start..].chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let mut characters = text[start..].char_indices().skip(1).peekable();
    while let Some((at, c)) = characters.next() {
        if c == '\\' && quote == '"' {
            characters.next();
        } else if c == quote {
            let doubled = quote == '\'' && characters.next_if(|(_, c)| *c == quote).is_some();
            if !doubled {
                return Some(start..start + at);
            }
        }
    }
    None
}

/// All documents of a section, each with the row (from 1) of its first node.
fn parse(text: &str, options: &Options) -> Result<Vec<(Value, usize, Vec<Repeated>)>, Fail> {
    let mut builder = Builder::new(text, options);
    let mut parser = Parser::new_from_str(text);
    let mut documents = Vec::new();
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| builder.syntax(&error))?;
        match event {
            Event::StreamEnd => break,
            Event::DocumentStart(_) => builder.start(),
            Event::DocumentEnd => {
                let row = builder.first.map_or(1, |mark| mark.line());
                documents.push((builder.finish(), row, std::mem::take(&mut builder.repeated)));
            }
            event => builder.event(event, span)?,
        }
    }
    if documents.is_empty() {
        documents.push((Value::Null, 1, Vec::new()));
    }
    Ok(documents)
}

/// An error at a place relative to the section.
struct Fail {
    mark: Marker,
    message: String,
}

impl Fail {
    fn at_line(self, line: usize) -> YamlError {
        YamlError {
            line: line + self.mark.line().max(1) - 1,
            column: self.mark.col() + 1,
            message: self.message,
        }
    }
}

/// A finished node.
struct Node {
    value: Value,
    /// Roughly the bytes it occupies.
    bytes: usize,
    /// Levels of nesting below and including it; 0 for a scalar.
    depth: usize,
    /// It stands where an alias was written.
    aliased: bool,
}

struct Anchored {
    value: Value,
    bytes: usize,
    depth: usize,
}

/// The key whose value comes next.
enum Key {
    Name(String),
    Merge,
}

enum Collection {
    List(Vec<Value>),
    Map { map: Map<String, Value>, key: Option<Key>, merged: Vec<String> },
}

/// A collection that is still open.
struct Frame {
    collection: Collection,
    anchor: usize,
    bytes: usize,
    depth: usize,
}

struct Builder<'t, 'o> {
    text: &'t str,
    options: &'o Options,
    stack: Vec<Frame>,
    root: Option<Value>,
    first: Option<Marker>,
    /// Anchors of the present document by the parser's number; open ones are not in it yet.
    anchors: HashMap<usize, Anchored>,
    alias_bytes: usize,
    repeated: Vec<Repeated>,
    /// Where the text ends without a line break, in characters; never otherwise.
    abrupt_end: usize,
}

impl<'t, 'o> Builder<'t, 'o> {
    fn new(text: &'t str, options: &'o Options) -> Self {
        Self {
            text,
            options,
            stack: Vec::new(),
            root: None,
            first: None,
            anchors: HashMap::new(),
            alias_bytes: 0,
            repeated: Vec::new(),
            abrupt_end: if text.ends_with('\n') { usize::MAX } else { text.chars().count() },
        }
    }

    fn start(&mut self) {
        self.first = None;
        self.anchors.clear();
        self.alias_bytes = 0;
    }

    fn finish(&mut self) -> Value {
        self.root.take().unwrap_or(Value::Null)
    }

    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), Fail> {
        let mark = span.start;
        let fail = |message| Fail { mark, message };
        match event {
            Event::Scalar(mut text, style, anchor, tag) => {
                self.begin(mark);
                let block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                if block && span.end.index() >= self.abrupt_end && text.ends_with('\n') {
                    // The parser supplies the line break that the text does not have.
                    text.to_mut().pop();
                }
                check_length(text.len(), self.options).map_err(fail)?;
                self.scalar(text, style, anchor, tag.as_deref(), mark).map_err(fail)
            }
            Event::Alias(anchor) => self.alias(anchor, mark).map_err(fail),
            Event::SequenceStart(anchor, _) => {
                self.begin(mark);
                self.open(Collection::List(Vec::new()), anchor).map_err(fail)
            }
            Event::MappingStart(anchor, _) => {
                self.begin(mark);
                let map = Collection::Map { map: Map::new(), key: None, merged: Vec::new() };
                self.open(map, anchor).map_err(fail)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close().map_err(fail),
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => Ok(()),
        }
    }

    fn begin(&mut self, mark: Marker) {
        self.first.get_or_insert(mark);
    }

    /// Whether the next node is the key of a mapping.
    fn expects_key(&self) -> bool {
        matches!(
            self.stack.last(),
            Some(Frame { collection: Collection::Map { key: None, .. }, .. })
        )
    }

    fn scalar(
        &mut self,
        text: Cow<'_, str>,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        mark: Marker,
    ) -> Result<(), String> {
        let plain = style == ScalarStyle::Plain;
        let tag = tag.map(core_name);
        if self.expects_key() {
            let merge = text == "<<" && (tag == Some("merge") || (tag.is_none() && plain));
            let key = if merge {
                Key::Merge
            } else {
                let resolved = scalar::resolve(&text, tag, plain)?;
                let quoted = matches!(resolved, Scalar::Text);
                let name = resolved.key(&text)?;
                self.note_repeated(&name, quoted, mark);
                Key::Name(name)
            };
            if let (Key::Name(name), true) = (&key, anchor > 0) {
                let (value, bytes) = (Value::String(name.clone()), NODE_BYTES + name.len());
                self.anchors.insert(anchor, Anchored { value, bytes, depth: 0 });
            }
            return self.key(key);
        }
        let value = match scalar::resolve(&text, tag, plain)? {
            // The one large copy: take the parser's string where it owns one.
            Scalar::Text => Value::String(text.into_owned()),
            other => other.value(&text)?,
        };
        let bytes = NODE_BYTES + value.as_str().map_or(0, str::len);
        self.anchor(anchor, &value, bytes, 0);
        self.place(Node { value, bytes, depth: 0, aliased: false })
    }

    fn note_repeated(&mut self, name: &str, quoted: bool, mark: Marker) {
        if self.options.duplicate_keys != DuplicateKeys::Note {
            return;
        }
        // Upstream counts what a merge brought as well.
        if let Some(Frame { collection: Collection::Map { map, .. }, .. }) = self.stack.last()
            && map.contains_key(name)
        {
            let key = if quoted { format!("{name:?}") } else { name.to_owned() };
            self.repeated.push(Repeated { line: mark.line(), key });
        }
    }

    fn key(&mut self, found: Key) -> Result<(), String> {
        let Some(Frame { collection: Collection::Map { map, key, merged }, bytes, .. }) =
            self.stack.last_mut()
        else {
            return Ok(());
        };
        if let Key::Name(name) = &found {
            if self.options.duplicate_keys == DuplicateKeys::Refuse
                && map.contains_key(name)
                && !merged.contains(name)
            {
                return Err(duplicate(name));
            }
            *bytes += name.len();
        }
        *key = Some(found);
        Ok(())
    }

    fn alias(&mut self, anchor: usize, mark: Marker) -> Result<(), String> {
        let Some(anchored) = self.anchors.get(&anchor) else {
            return Err(format!("anchor '{}' value contains itself", self.name_at(mark)));
        };
        self.alias_bytes += anchored.bytes;
        if self.alias_bytes > self.options.max_alias_bytes {
            return Err("document contains excessive aliasing".to_owned());
        }
        if self.stack.len() + anchored.depth > self.options.max_depth {
            return Err(self.too_deep());
        }
        if self.expects_key() {
            let name = match &anchored.value {
                Value::String(text) => text.clone(),
                Value::Bool(flag) => flag.to_string(),
                Value::Number(number) => number.to_string(),
                Value::Null | Value::Array(_) | Value::Object(_) => {
                    return Err(format!("invalid map key: {}", anchored.value));
                }
            };
            return self.key(Key::Name(name));
        }
        let (bytes, depth) = (anchored.bytes, anchored.depth);
        let value = anchored.value.clone();
        self.place(Node { value, bytes, depth, aliased: true })
    }

    fn open(&mut self, collection: Collection, anchor: usize) -> Result<(), String> {
        if self.expects_key() {
            return Err("a mapping or sequence cannot be the key of a mapping".to_owned());
        }
        if self.stack.len() >= self.options.max_depth {
            return Err(self.too_deep());
        }
        self.stack.push(Frame { collection, anchor, bytes: NODE_BYTES, depth: 1 });
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        let Some(frame) = self.stack.pop() else { return Ok(()) };
        let value = match frame.collection {
            Collection::List(items) => Value::Array(items),
            Collection::Map { map, .. } => Value::Object(map),
        };
        self.anchor(frame.anchor, &value, frame.bytes, frame.depth);
        self.place(Node { value, bytes: frame.bytes, depth: frame.depth, aliased: false })
    }

    fn anchor(&mut self, anchor: usize, value: &Value, bytes: usize, depth: usize) {
        if anchor > 0 {
            self.anchors.insert(anchor, Anchored { value: value.clone(), bytes, depth });
        }
    }

    /// Puts a finished node where it belongs.
    fn place(&mut self, node: Node) -> Result<(), String> {
        let Some(frame) = self.stack.last_mut() else {
            self.root = Some(node.value);
            return Ok(());
        };
        frame.bytes += node.bytes;
        frame.depth = frame.depth.max(node.depth + 1);
        match &mut frame.collection {
            Collection::List(items) => items.push(node.value),
            Collection::Map { map, key, merged } => match key.take() {
                Some(Key::Name(name)) => {
                    map.insert(name, node.value);
                }
                Some(Key::Merge) => merge(map, merged, node)?,
                None => {}
            },
        }
        Ok(())
    }

    fn too_deep(&self) -> String {
        format!("exceeded max depth of {}", self.options.max_depth)
    }

    /// The name of the anchor or alias that begins at `mark`.
    fn name_at(&self, mark: Marker) -> &'t str {
        let line = self.text.lines().nth(mark.line().saturating_sub(1)).unwrap_or("");
        let start = line.char_indices().nth(mark.col()).map_or(line.len(), |(at, _)| at);
        let name = line[start..].trim_start_matches(['*', '&']);
        let ends = |c: char| c.is_whitespace() || matches!(c, ',' | '[' | ']' | '{' | '}');
        &name[..name.find(ends).unwrap_or(name.len())]
    }

    /// The parser's own refusals, in the words people know where there are some.
    fn syntax(&self, error: &ScanError) -> Fail {
        let mark = *error.marker();
        let message = if error.info().ends_with("unknown anchor") {
            format!("unknown anchor '{}' referenced", self.name_at(mark))
        } else {
            familiar(error.info())
        };
        Fail { mark, message }
    }
}

/// What libyaml says in the same place: those words are what people search for.
fn familiar(info: &str) -> String {
    if info.starts_with("unexpected character") || info.starts_with("tabs disallowed") {
        return "found character that cannot start any token".to_owned();
    }
    if info.starts_with("simple key expect") {
        return "could not find expected ':'".to_owned();
    }
    match info.split_once(", ") {
        Some((context, found)) if context.starts_with("while ") => {
            match found.strip_prefix("expected ") {
                Some(expected) => format!("did not find expected {expected}"),
                None => found.to_owned(),
            }
        }
        _ => info.to_owned(),
    }
}

/// Takes over the fields of what stands under `<<`. They replace what the mapping has so far, and
/// fields that follow replace them: the order of the text decides, as in Go's decoder.
fn merge(map: &mut Map<String, Value>, merged: &mut Vec<String>, node: Node) -> Result<(), String> {
    let refused = || "map merge requires map or sequence of maps as the value".to_owned();
    let sources = match node.value {
        Value::Object(fields) => vec![Value::Object(fields)],
        Value::Array(items) if !node.aliased => items,
        _ => return Err(refused()),
    };
    // Earlier mappings of the list win.
    for source in sources.into_iter().rev() {
        let Value::Object(fields) = source else { return Err(refused()) };
        for (name, value) in fields {
            merged.push(name.clone());
            map.insert(name, value);
        }
    }
    Ok(())
}

/// The name of a tag of the YAML repertoire; empty for all other tags.
fn core_name(tag: &Tag) -> &str {
    const CORE: &str = "tag:yaml.org,2002:";
    if tag.handle == CORE {
        &tag.suffix
    } else if tag.handle.is_empty() {
        tag.suffix.strip_prefix(CORE).unwrap_or("")
    } else {
        ""
    }
}
