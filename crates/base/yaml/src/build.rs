//! Values built from parser events.
//!
//! One loop with an explicit stack builds the value, without recursion. An anchored node is copied
//! beside the tree, with its size and depth, so an alias is charged for its copy before it is made.

use crate::{
    DuplicateKeys, NodeFault, Options, RepeatedKey, YamlError, YamlFault,
    error::check_length,
    parser::{Event, Mark, Parser, Properties, Style},
    scalar::{self, Scalar},
    text,
};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// The bytes that a node is charged in addition to its text.
const NODE_BYTES: usize = 32;
/// Roughly the bytes of a small mapping: one node of a B-tree.
const MAP_BYTES: usize = 600;

/// The beginning of a value, for messages.
fn truncated_text(value: &Value) -> String {
    let mut text = value.to_string();
    if let Some((end, _)) = text.char_indices().nth(200) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Reads all documents of one section that begins on `line`, each with the line of its first node.
/// A section has several documents if it has `...`.
pub(crate) fn section(
    text: &str,
    line: usize,
    options: &Options,
) -> Result<Vec<(Value, usize, Vec<RepeatedKey>)>, YamlError> {
    if let Some(at) = text::find_forbidden(text) {
        let (row, column) = text::position(&text[..at]);
        return Err(YamlError { line: line + row - 1, column, fault: YamlFault::ControlCharacter });
    }
    // A byte-order mark may begin each document, not only the first.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut builder = Builder::new(options);
    let mut documents = Vec::new();
    for event in Parser::new(text) {
        let (event, mark) = event.map_err(|fault| error(fault.place, fault.into(), line))?;
        match event {
            Event::DocumentStart => builder.start(),
            Event::DocumentEnd => {
                let row = builder.first.map_or(0, |mark| mark.line);
                let mut repeated_keys = std::mem::take(&mut builder.repeated_keys);
                for repeated_key in &mut repeated_keys {
                    repeated_key.line += line;
                }
                documents.push((builder.finish(), line + row, repeated_keys));
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

/// An error at a position of a section that begins on `line`.
fn error(mark: Mark, fault: YamlFault, line: usize) -> YamlError {
    YamlError { line: line + mark.line, column: mark.column + 1, fault }
}

/// A complete node.
struct Node {
    value: Value,
    /// Roughly the bytes it occupies.
    bytes: usize,
    /// Levels of nesting below and including it; 0 for a scalar.
    depth: usize,
    /// How many nodes upstream decodes for it.
    nodes: usize,
    /// It is a copy for an alias.
    aliased: bool,
}

struct Anchored {
    value: Value,
    bytes: usize,
    depth: usize,
    nodes: usize,
}

/// A key whose value comes next.
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
    /// Complete anchors of the current document.
    anchors: HashMap<String, Anchored>,
    /// Bytes of all copies that anchors and aliases have made in this section.
    alias_bytes: usize,
    /// The nodes of the current document that upstream decodes, and how many of them come from
    /// aliases.
    decoded: usize,
    aliased: usize,
    repeated_keys: Vec<RepeatedKey>,
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
            repeated_keys: Vec::new(),
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

    /// Checks upstream's limit: the maximum share of nodes that may come from aliases falls with
    /// the size of a document.
    fn check_aliases(&self) -> Result<(), NodeFault> {
        const FEW: usize = 400_000;
        const MANY: usize = 4_000_000;
        let allowed = 990 - 890 * (self.decoded.clamp(FEW, MANY) - FEW) / (MANY - FEW);
        let excessive = self.aliased > 100
            && self.decoded > 1000
            && self.aliased.saturating_mul(1000) > allowed * self.decoded;
        if excessive { Err(NodeFault::ExcessiveAliasing) } else { Ok(()) }
    }

    /// Charges a copy to the section.
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
                self.record_repeated_key(&name, quoted, mark);
                Key::Name(name)
            };
            if let (Key::Name(name), Some(anchor)) = (&key, anchor) {
                let (value, bytes) = (Value::String(name.clone()), NODE_BYTES + name.len());
                self.charge(bytes)?;
                self.anchors.insert(anchor, Anchored { value, bytes, depth: 0, nodes: 1 });
            }
            return self.set_key(key);
        }
        let value = match scalar::resolve(&text, tag, plain)? {
            Scalar::Text => Value::String(text),
            other => other.value(&text, self.options)?,
        };
        let bytes = NODE_BYTES + value.as_str().map_or(0, str::len);
        let node = Node { value, bytes, depth: 0, nodes: 1, aliased: false };
        self.anchor(anchor, &node)?;
        self.add_node(node)
    }

    fn record_repeated_key(&mut self, name: &str, quoted: bool, mark: Mark) {
        if self.options.duplicate_keys != DuplicateKeys::Note {
            return;
        }
        // Upstream counts keys from a merge too.
        if let Some(Frame { collection: Collection::Map { map, .. }, .. }) = self.stack.last()
            && map.contains_key(name)
        {
            let key = if quoted { format!("{name:?}") } else { name.to_owned() };
            self.repeated_keys.push(RepeatedKey { line: mark.line, key });
        }
    }

    fn set_key(&mut self, found: Key) -> Result<(), NodeFault> {
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
                    return Err(NodeFault::AliasedKey { value: truncated_text(&anchored.value) });
                }
            };
            return self.set_key(Key::Name(name));
        }
        let value = anchored.value.clone();
        self.add_node(Node { value, bytes, depth, nodes: 1 + nodes, aliased: true })
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
        self.add_node(node)
    }

    fn anchor(&mut self, anchor: Option<String>, node: &Node) -> Result<(), NodeFault> {
        if let Some(anchor) = anchor {
            self.charge(node.bytes)?;
            let Node { ref value, bytes, depth, nodes, .. } = *node;
            self.anchors.insert(anchor, Anchored { value: value.clone(), bytes, depth, nodes });
        }
        Ok(())
    }

    /// Adds a complete node to the collection around it.
    fn add_node(&mut self, node: Node) -> Result<(), NodeFault> {
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

/// Merges the fields of the value of `<<` into a mapping. They replace earlier fields of the
/// mapping, and later fields replace them: the order of the text decides, as in Go's decoder.
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
    // Earlier mappings of the sequence win.
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
