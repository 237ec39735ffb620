//! From parser events to values.
//!
//! One loop with an explicit stack; nothing here recurses, whatever the document looks like. An
//! anchored node is kept beside the tree, with its size and depth, so that an alias is charged
//! for what it adds before it is copied.

use crate::{
    DuplicateKeys, NodeFault, Options, Repeated, YamlError, YamlFault,
    error::check_length,
    parser::{Event, Mark, Parser, Properties, Style},
    scalar::{self, Scalar},
    text,
};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// What a node is charged beside its text.
const NODE_BYTES: usize = 32;
/// Roughly what a mapping occupies before it has much: a node of a tree.
const MAP_BYTES: usize = 600;

/// The beginning of a value, for messages.
fn shortened(value: &Value) -> String {
    let mut text = value.to_string();
    if let Some((end, _)) = text.char_indices().nth(200) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Reads all documents of one section that begins on `line`: usually one, more when it has `...`.
/// Each comes with the line of its first node.
pub(crate) fn section(
    text: &str,
    line: usize,
    options: &Options,
) -> Result<Vec<(Value, usize, Vec<Repeated>)>, YamlError> {
    if let Some(at) = text::forbidden(text) {
        let (row, column) = text::position(&text[..at]);
        return Err(YamlError { line: line + row - 1, column, fault: YamlFault::ControlCharacter });
    }
    // A byte-order mark may open each document, not only the first.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut builder = Builder::new(options);
    let mut documents = Vec::new();
    for event in Parser::new(text) {
        let (event, mark) = event.map_err(|fault| error(fault.place, fault.into(), line))?;
        match event {
            Event::DocumentStart => builder.start(),
            Event::DocumentEnd => {
                let row = builder.first.map_or(0, |mark| mark.line);
                let mut repeated = std::mem::take(&mut builder.repeated);
                for one in &mut repeated {
                    one.line += line;
                }
                documents.push((builder.finish(), line + row, repeated));
            }
            event => {
                builder.event(event, mark).map_err(|fault| error(mark, fault.into(), line))?;
            }
        }
    }
    if documents.is_empty() {
        documents.push((Value::Null, line, Vec::new()));
    }
    Ok(documents)
}

/// An error at a place of a section that begins on `line`.
fn error(mark: Mark, fault: YamlFault, line: usize) -> YamlError {
    YamlError { line: line + mark.line, column: mark.column + 1, fault }
}

/// A finished node.
struct Node {
    value: Value,
    /// Roughly the bytes it occupies.
    bytes: usize,
    /// Levels of nesting below and including it; 0 for a scalar.
    depth: usize,
    /// How many nodes upstream decodes for it.
    nodes: usize,
    /// It stands where an alias was written.
    aliased: bool,
}

struct Anchored {
    value: Value,
    bytes: usize,
    depth: usize,
    nodes: usize,
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
    anchor: Option<String>,
    bytes: usize,
    depth: usize,
    nodes: usize,
}

struct Builder<'o> {
    options: &'o Options,
    stack: Vec<Frame>,
    root: Option<Value>,
    first: Option<Mark>,
    /// Anchors of the present document; open ones are not in it yet.
    anchors: HashMap<String, Anchored>,
    /// Bytes of all copies that anchors and aliases have made in the section.
    alias_bytes: usize,
    /// Nodes of the present document that upstream decodes, and those of them behind aliases.
    decoded: usize,
    aliased: usize,
    repeated: Vec<Repeated>,
}

impl<'o> Builder<'o> {
    fn new(options: &'o Options) -> Self {
        Self {
            options,
            stack: Vec::new(),
            root: None,
            first: None,
            anchors: HashMap::new(),
            alias_bytes: 0,
            decoded: 1,
            aliased: 0,
            repeated: Vec::new(),
        }
    }

    fn start(&mut self) {
        self.first = None;
        self.anchors.clear();
        (self.decoded, self.aliased) = (1, 0);
    }

    fn finish(&mut self) -> Value {
        self.root.take().unwrap_or(Value::Null)
    }

    fn event(&mut self, event: Event, mark: Mark) -> Result<(), NodeFault> {
        match event {
            Event::Scalar(text, style, properties) => {
                self.begin(mark)?;
                check_length(text.len(), self.options)?;
                self.scalar(text, style, properties, mark)
            }
            Event::Alias(anchor) => self.alias(&anchor),
            Event::SequenceStart(properties) => {
                self.begin(mark)?;
                self.open(Collection::List(Vec::new()), properties.anchor)
            }
            Event::MappingStart(properties) => {
                self.begin(mark)?;
                let map = Collection::Map { map: Map::new(), key: None, merged: Vec::new() };
                self.open(map, properties.anchor)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::DocumentStart | Event::DocumentEnd => Ok(()),
        }
    }

    fn begin(&mut self, mark: Mark) -> Result<(), NodeFault> {
        self.first.get_or_insert(mark);
        self.decoded += 1;
        self.check_aliases()
    }

    /// Upstream's bound: of a large document, so much at most may come out of aliases.
    fn check_aliases(&self) -> Result<(), NodeFault> {
        const FEW: usize = 400_000;
        const MANY: usize = 4_000_000;
        let allowed = 990 - 890 * (self.decoded.clamp(FEW, MANY) - FEW) / (MANY - FEW);
        let excessive = self.aliased > 100
            && self.decoded > 1000
            && self.aliased.saturating_mul(1000) > allowed * self.decoded;
        if excessive { Err(NodeFault::ExcessiveAliasing) } else { Ok(()) }
    }

    /// Charges a copy, of which the section may have so many bytes.
    fn charge(&mut self, bytes: usize) -> Result<(), NodeFault> {
        self.alias_bytes = self.alias_bytes.saturating_add(bytes);
        if self.alias_bytes > self.options.max_alias_bytes {
            return Err(NodeFault::ExcessiveAliasing);
        }
        Ok(())
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
        text: String,
        style: Style,
        properties: Properties,
        mark: Mark,
    ) -> Result<(), NodeFault> {
        let plain = style == Style::Plain;
        let Properties { anchor, tag } = properties;
        let tag = tag.as_deref().map(core_name);
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
            if let (Key::Name(name), Some(anchor)) = (&key, anchor) {
                let (value, bytes) = (Value::String(name.clone()), NODE_BYTES + name.len());
                self.charge(bytes)?;
                self.anchors.insert(anchor, Anchored { value, bytes, depth: 0, nodes: 1 });
            }
            return self.key(key);
        }
        let value = match scalar::resolve(&text, tag, plain)? {
            Scalar::Text => Value::String(text),
            other => other.value(&text, self.options)?,
        };
        let bytes = NODE_BYTES + value.as_str().map_or(0, str::len);
        let node = Node { value, bytes, depth: 0, nodes: 1, aliased: false };
        self.anchor(anchor, &node)?;
        self.place(node)
    }

    fn note_repeated(&mut self, name: &str, quoted: bool, mark: Mark) {
        if self.options.duplicate_keys != DuplicateKeys::Note {
            return;
        }
        // Upstream counts what a merge brought as well.
        if let Some(Frame { collection: Collection::Map { map, .. }, .. }) = self.stack.last()
            && map.contains_key(name)
        {
            let key = if quoted { format!("{name:?}") } else { name.to_owned() };
            self.repeated.push(Repeated { line: mark.line, key });
        }
    }

    fn key(&mut self, found: Key) -> Result<(), NodeFault> {
        let Some(Frame { collection: Collection::Map { map, key, merged }, bytes, nodes, .. }) =
            self.stack.last_mut()
        else {
            return Ok(());
        };
        if let Key::Name(name) = &found {
            if self.options.duplicate_keys == DuplicateKeys::Refuse
                && map.contains_key(name)
                && !merged.contains(name)
            {
                return Err(NodeFault::RepeatedKey { key: name.clone() });
            }
            *bytes += name.len();
            *nodes += 1;
        }
        *key = Some(found);
        Ok(())
    }

    fn alias(&mut self, name: &str) -> Result<(), NodeFault> {
        let Some(anchored) = self.anchors.get(name) else {
            let open = self.stack.iter().any(|frame| frame.anchor.as_deref() == Some(name));
            let anchor = name.to_owned();
            return Err(if open {
                NodeFault::AliasOfItself { anchor }
            } else {
                NodeFault::UnknownAnchor { anchor }
            });
        };
        let (bytes, depth, nodes) = (anchored.bytes, anchored.depth, anchored.nodes);
        self.decoded = self.decoded.saturating_add(1 + nodes);
        self.aliased = self.aliased.saturating_add(nodes);
        self.check_aliases()?;
        self.charge(bytes)?;
        let Some(anchored) = self.anchors.get(name) else { return Ok(()) };
        if self.stack.len() + anchored.depth > self.options.max_depth {
            return Err(self.too_deep());
        }
        if self.expects_key() {
            let name = match &anchored.value {
                Value::String(text) => text.clone(),
                Value::Bool(flag) => flag.to_string(),
                Value::Number(number) => number.to_string(),
                Value::Null | Value::Array(_) | Value::Object(_) => {
                    return Err(NodeFault::AliasedKey { shown: shortened(&anchored.value) });
                }
            };
            return self.key(Key::Name(name));
        }
        let value = anchored.value.clone();
        self.place(Node { value, bytes, depth, nodes: 1 + nodes, aliased: true })
    }

    fn open(&mut self, collection: Collection, anchor: Option<String>) -> Result<(), NodeFault> {
        if self.expects_key() {
            return Err(NodeFault::CollectionKey);
        }
        if self.stack.len() >= self.options.max_depth {
            return Err(self.too_deep());
        }
        if let Some(anchor) = &anchor {
            self.anchors.remove(anchor);
        }
        let bytes = match collection {
            Collection::List(_) => NODE_BYTES,
            Collection::Map { .. } => MAP_BYTES,
        };
        self.stack.push(Frame { collection, anchor, bytes, depth: 1, nodes: 1 });
        Ok(())
    }

    fn close(&mut self) -> Result<(), NodeFault> {
        let Some(frame) = self.stack.pop() else { return Ok(()) };
        let value = match frame.collection {
            Collection::List(items) => Value::Array(items),
            Collection::Map { map, .. } => Value::Object(map),
        };
        let Frame { bytes, depth, nodes, .. } = frame;
        let node = Node { value, bytes, depth, nodes, aliased: false };
        self.anchor(frame.anchor, &node)?;
        self.place(node)
    }

    fn anchor(&mut self, anchor: Option<String>, node: &Node) -> Result<(), NodeFault> {
        if let Some(anchor) = anchor {
            self.charge(node.bytes)?;
            let Node { ref value, bytes, depth, nodes, .. } = *node;
            self.anchors.insert(anchor, Anchored { value: value.clone(), bytes, depth, nodes });
        }
        Ok(())
    }

    /// Puts a finished node where it belongs.
    fn place(&mut self, node: Node) -> Result<(), NodeFault> {
        let Some(frame) = self.stack.last_mut() else {
            self.root = Some(node.value);
            return Ok(());
        };
        frame.bytes += node.bytes;
        frame.nodes = frame.nodes.saturating_add(node.nodes);
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

    fn too_deep(&self) -> NodeFault {
        NodeFault::TooDeep { limit: self.options.max_depth }
    }
}

/// Takes over the fields of what stands under `<<`. They replace what the mapping has so far, and
/// fields that follow replace them: the order of the text decides, as in Go's decoder.
fn merge(
    map: &mut Map<String, Value>,
    merged: &mut Vec<String>,
    node: Node,
) -> Result<(), NodeFault> {
    let sources = match node.value {
        Value::Object(fields) => vec![Value::Object(fields)],
        Value::Array(items) if !node.aliased => items,
        _ => return Err(NodeFault::Merge),
    };
    // Earlier mappings of the list win.
    for source in sources.into_iter().rev() {
        let Value::Object(fields) = source else { return Err(NodeFault::Merge) };
        for (name, value) in fields {
            merged.push(name.clone());
            map.insert(name, value);
        }
    }
    Ok(())
}

/// The name of a tag of the YAML repertoire; empty for all other tags.
fn core_name(tag: &str) -> &str {
    tag.strip_prefix("tag:yaml.org,2002:").unwrap_or("")
}
