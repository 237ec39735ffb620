//! Parser of the schemas that `k8s-openapi` writes with the macro `json_schema!`.

use super::dotted;
use anyhow::{Context, bail};
use serde_json::Value;

/// The text of a `json_schema!` macro: JSON with function calls in it.
pub(super) struct MacroText<'a> {
    rest: &'a str,
}

impl<'a> MacroText<'a> {
    /// Begins after the macro's opening parenthesis.
    pub(super) const fn new(rest: &'a str) -> Self {
        Self { rest }
    }

    /// Parses the next value. A type becomes a reference to its definition.
    pub(super) fn value(&mut self) -> anyhow::Result<Value> {
        self.space();
        if self.take("(") {
            let inner = self.value()?;
            self.expect(")")?;
            return Ok(inner);
        }
        if self.take("__gen.subschema_for::<crate::") {
            return self.reference();
        }
        if self.take("[") {
            let mut items = Vec::new();
            while !self.take("]") {
                items.push(self.value()?);
                self.take(",");
            }
            return Ok(Value::Array(items));
        }
        if self.take("{") {
            if self.take("let mut schema_obj = __gen.subschema_for::<crate::") {
                let mut reference = self.reference()?;
                self.expect(";")?;
                self.expect("schema_obj.ensure_object().insert(")?;
                let key = self.value()?;
                self.expect(".into(),")?;
                reference[key.as_str().context("a key")?] = self.value()?;
                self.expect(".into()")?;
                self.take(",");
                self.expect(")")?;
                self.expect(";")?;
                self.expect("schema_obj")?;
                self.expect("}")?;
                return Ok(reference);
            }
            let mut fields = serde_json::Map::new();
            while !self.take("}") {
                let key = self.value()?;
                self.expect(":")?;
                fields.insert(key.as_str().context("a key")?.to_owned(), self.value()?);
                self.take(",");
            }
            return Ok(Value::Object(fields));
        }
        self.scalar()
    }

    /// Parses a type's path after `subschema_for::<crate::`.
    fn reference(&mut self) -> anyhow::Result<Value> {
        let (path, rest) = self.rest.split_once(">()").context("the end of a call")?;
        self.rest = rest;
        Ok(serde_json::json!({"$ref": dotted(&path.replace("::", "/"))}))
    }

    fn scalar(&mut self) -> anyhow::Result<Value> {
        if self.rest.starts_with('"') {
            // The Rust escapes in these strings are valid in JSON too.
            let mut stream = serde_json::Deserializer::from_str(self.rest).into_iter::<String>();
            let text = stream.next().context("a text")??;
            let length = stream.byte_offset();
            self.rest = &self.rest[length..];
            return Ok(text.into());
        }
        let end = self.rest.find([',', '}', ']', ')', '\n']).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        serde_json::from_str(word.trim()).with_context(|| format!("a value at `{word}`"))
    }

    fn space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, mark: &str) -> bool {
        self.space();
        let Some(rest) = self.rest.strip_prefix(mark) else { return false };
        self.rest = rest;
        true
    }

    fn expect(&mut self, mark: &str) -> anyhow::Result<()> {
        if self.take(mark) {
            return Ok(());
        }
        let found: String = self.rest.chars().take(40).collect();
        bail!("expected `{mark}`, found `{found}`")
    }
}
