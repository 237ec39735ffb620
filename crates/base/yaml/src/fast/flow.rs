//! Flow collections.

use super::{Key, MAX_KEY_LENGTH, ScanResult, Scanner, Unsupported};
use crate::scalar;
use memchr::memchr;
use serde_json::{Map, Value};

impl Scanner<'_, '_> {
    /// Reads a flow sequence or mapping. Continuation lines are deeper than `parent`.
    pub(super) fn flow(&mut self, parent: Option<usize>) -> ScanResult<Value> {
        self.enter_collection()?;
        let list = self.peek() == Some(b'[');
        self.at += 1;
        let value = if list { self.flow_list(parent)? } else { self.flow_map(parent)? };
        self.depth -= 1;
        Ok(value)
    }

    fn flow_list(&mut self, parent: Option<usize>) -> ScanResult<Value> {
        let mut items = Vec::new();
        loop {
            self.skip_gap(parent)?;
            if self.peek() == Some(b']') {
                break;
            }
            items.push(self.flow_node(parent)?);
            if self.flow_collection_ends(parent, b']')? {
                break;
            }
        }
        self.at += 1;
        Ok(Value::Array(items))
    }

    fn flow_map(&mut self, parent: Option<usize>) -> ScanResult<Value> {
        let mut map = Map::new();
        loop {
            self.skip_gap(parent)?;
            if self.peek() == Some(b'}') {
                break;
            }
            let key = self.flow_key(parent)?;
            self.skip_gap(parent)?;
            let value = self.flow_node(parent)?;
            self.insert(&mut map, key, value);
            if self.flow_collection_ends(parent, b'}')? {
                break;
            }
        }
        self.at += 1;
        Ok(Value::Object(map))
    }

    /// Whether `close` ends the collection after a child. Moves past a comma.
    fn flow_collection_ends(&mut self, parent: Option<usize>, close: u8) -> ScanResult<bool> {
        self.skip_gap(parent)?;
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(false)
            }
            Some(byte) if byte == close => Ok(true),
            _ => Err(Unsupported),
        }
    }

    /// Moves past blanks and line breaks between children.
    fn skip_gap(&mut self, parent: Option<usize>) -> ScanResult<()> {
        self.skip_spaces();
        while self.peek() == Some(b'\n') {
            self.at += 1;
            let start = self.at;
            self.skip_spaces();
            let column = self.at - start;
            let inside = parent.is_some_and(|parent| column > parent);
            if !inside && self.peek() != Some(b'\n') {
                return Err(Unsupported);
            }
        }
        Ok(())
    }

    /// Reads a key with its colon.
    fn flow_key(&mut self, parent: Option<usize>) -> ScanResult<Key> {
        let start = self.at;
        let key = if let Some(quote @ (b'"' | b'\'')) = self.peek() {
            Key { name: self.quoted(quote, parent)?, is_text: true, start }
        } else {
            let end = self.flow_plain_end()?;
            self.at = end;
            if !self.blank_at(end + 1) {
                return Err(Unsupported);
            }
            self.plain_key(start, end)?
        };
        let long = self.at - start > MAX_KEY_LENGTH;
        if self.peek() != Some(b':') || long || memchr(b'\n', &self.bytes[start..self.at]).is_some()
        {
            return Err(Unsupported);
        }
        self.at += 1;
        Ok(key)
    }

    fn flow_node(&mut self, parent: Option<usize>) -> ScanResult<Value> {
        match self.peek() {
            Some(b'[' | b'{') => self.flow(parent),
            Some(quote @ (b'"' | b'\'')) => self.quoted(quote, parent).map(Value::String),
            _ => {
                let start = self.at;
                let end = self.flow_plain_end()?;
                self.at = end;
                let text = self.slice(start, end)?;
                self.check_length(text.len())?;
                let resolved = scalar::resolve(text, None, true).map_err(|_| Unsupported)?;
                resolved.value(text, self.options).map_err(|_| Unsupported)
            }
        }
    }

    /// The end of the plain scalar that begins here, without blanks after it. Scalars that readers
    /// disagree about are unsupported.
    fn flow_plain_end(&self) -> ScanResult<usize> {
        if !self.begins_plain() {
            return Err(Unsupported);
        }
        let mut end = self.at;
        for (at, &byte) in self.bytes.iter().enumerate().skip(self.at) {
            match byte {
                b' ' => {}
                b',' | b']' | b'}' | b':' | b'\n' => break,
                b'[' | b'{' | b'#' | b'?' | b'\t' => return Err(Unsupported),
                // Some readers read such a dash as an item.
                b'-' if matches!(
                    self.bytes.get(at + 1),
                    Some(b',' | b'[' | b']' | b'{' | b'}')
                ) =>
                {
                    return Err(Unsupported);
                }
                _ => end = at + 1,
            }
        }
        Ok(end)
    }
}
