//! Collections in brackets.

use super::{Key, LONGEST_KEY, Read, Scanner, Unusual};
use crate::scalar;
use memchr::memchr;
use serde_json::{Map, Value};

impl Scanner<'_, '_> {
    /// A sequence or mapping in brackets, to behind its end. Lines that continue it stand deeper
    /// than `parent`.
    pub(super) fn flow(&mut self, parent: Option<usize>) -> Read<Value> {
        self.deeper()?;
        let list = self.peek() == Some(b'[');
        self.at += 1;
        let value = if list { self.flow_list(parent)? } else { self.flow_map(parent)? };
        self.depth -= 1;
        Ok(value)
    }

    fn flow_list(&mut self, parent: Option<usize>) -> Read<Value> {
        let mut items = Vec::new();
        loop {
            self.gap(parent)?;
            if self.peek() == Some(b']') {
                break;
            }
            items.push(self.flow_node(parent)?);
            if self.flow_ends(parent, b']')? {
                break;
            }
        }
        self.at += 1;
        Ok(Value::Array(items))
    }

    fn flow_map(&mut self, parent: Option<usize>) -> Read<Value> {
        let mut map = Map::new();
        loop {
            self.gap(parent)?;
            if self.peek() == Some(b'}') {
                break;
            }
            let key = self.flow_key(parent)?;
            self.gap(parent)?;
            let value = self.flow_node(parent)?;
            self.put(&mut map, key, value);
            if self.flow_ends(parent, b'}')? {
                break;
            }
        }
        self.at += 1;
        Ok(Value::Object(map))
    }

    /// Behind a part of a collection: whether `close` ends it. A comma is passed.
    fn flow_ends(&mut self, parent: Option<usize>, close: u8) -> Read<bool> {
        self.gap(parent)?;
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(false)
            }
            Some(byte) if byte == close => Ok(true),
            _ => Err(Unusual),
        }
    }

    /// Passes blanks and line breaks between parts.
    fn gap(&mut self, parent: Option<usize>) -> Read<()> {
        self.spaces();
        while self.peek() == Some(b'\n') {
            self.at += 1;
            let start = self.at;
            self.spaces();
            let column = self.at - start;
            let inside = parent.is_some_and(|parent| column > parent);
            if !inside && self.peek() != Some(b'\n') {
                return Err(Unusual);
            }
        }
        Ok(())
    }

    /// A key with its colon.
    fn flow_key(&mut self, parent: Option<usize>) -> Read<Key> {
        let start = self.at;
        let key = if let Some(quote @ (b'"' | b'\'')) = self.peek() {
            Key { name: self.quoted(quote, parent)?, is_text: true, start }
        } else {
            let end = self.flow_plain_end()?;
            self.at = end;
            if !self.blank_at(end + 1) {
                return Err(Unusual);
            }
            self.plain_key(start, end)?
        };
        let long = self.at - start > LONGEST_KEY;
        if self.peek() != Some(b':') || long || memchr(b'\n', &self.bytes[start..self.at]).is_some()
        {
            return Err(Unusual);
        }
        self.at += 1;
        Ok(key)
    }

    fn flow_node(&mut self, parent: Option<usize>) -> Read<Value> {
        match self.peek() {
            Some(b'[' | b'{') => self.flow(parent),
            Some(quote @ (b'"' | b'\'')) => self.quoted(quote, parent).map(Value::String),
            _ => {
                let start = self.at;
                let end = self.flow_plain_end()?;
                self.at = end;
                let text = self.slice(start, end)?;
                self.check_length(text.len())?;
                let resolved = scalar::resolve(text, None, true).map_err(|_| Unusual)?;
                resolved.value(text, self.options).map_err(|_| Unusual)
            }
        }
    }

    /// The end of the plain scalar that begins here, without blanks behind it. Only those that
    /// every reader understands.
    fn flow_plain_end(&self) -> Read<usize> {
        if !self.begins_plain() {
            return Err(Unusual);
        }
        let mut end = self.at;
        for (at, &byte) in self.bytes.iter().enumerate().skip(self.at) {
            match byte {
                b' ' => {}
                b',' | b']' | b'}' | b':' | b'\n' => break,
                b'[' | b'{' | b'#' | b'?' | b'\t' => return Err(Unusual),
                // Some readers take such a dash for an item.
                b'-' if matches!(
                    self.bytes.get(at + 1),
                    Some(b',' | b'[' | b']' | b'{' | b'}')
                ) =>
                {
                    return Err(Unusual);
                }
                _ => end = at + 1,
            }
        }
        Ok(end)
    }
}
