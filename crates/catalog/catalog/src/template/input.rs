//! Reading of template documents.

use super::{
    DeclareError, TemplateDecodeError, TemplateKind, TemplateReadError, TemplateUnmarshalError,
};
use crate::{
    declared::CatalogDocuments, document_error, go_format, load::LoadOptions, read, shape, syntax,
};
use mainstay_gocompat::json::is_same_field as same;
use mainstay_gocompat::values::json_kind;
use mainstay_schema::gojson::DeclaredStruct;
use mainstay_yaml::{Document, DocumentFormat, documents};
use serde_json::{Map, Value};

/// The first document of a text.
///
/// # Errors
/// If it cannot be read, or the text has no document.
pub(super) fn first(text: &[u8]) -> Result<Document, TemplateDecodeError> {
    let yaml_options = read::yaml_options(&LoadOptions::default(), false);
    let text = read::decode_text(text.to_vec(), &yaml_options);
    match documents(&text, &yaml_options).next() {
        Some(Ok(document)) => Ok(document),
        Some(Err(source)) => {
            Err(TemplateDecodeError::Syntax { upstream: syntax::words(&text, 0, &source), source })
        }
        None => Err(TemplateDecodeError::Empty),
    }
}

/// The text of a field: of several spellings, the last one that is set. Empty without the field.
pub(super) fn text<'f>(fields: &'f Map<String, Value>, field: &str) -> &'f str {
    let found = fields.iter().filter(|(name, _)| same(name, field));
    found.filter_map(|(_, value)| value.as_str()).next_back().unwrap_or_default()
}

/// The items of a list field: of several spellings, the last one. Empty without the field.
pub(super) fn list<'f>(fields: &'f Map<String, Value>, field: &str) -> &'f [Value] {
    let mut found = fields.iter().filter(|(name, _)| same(name, field));
    found.next_back().and_then(|(_, value)| value.as_array()).map_or(&[], Vec::as_slice)
}

/// A template with documents of a catalog as its entries.
pub(super) struct Template {
    pub(super) fields: Map<String, Value>,
    pub(super) entries: Vec<Value>,
}

impl Template {
    /// Reads a template of a kind. `shape` declares its other fields and its Go name.
    ///
    /// # Errors
    /// A text that is no template of this kind.
    pub(super) fn read(
        text: &[u8],
        kind: TemplateKind,
        shape: &'static DeclaredStruct,
    ) -> Result<Self, TemplateReadError> {
        let read = first(text)?;
        let html = read.format == DocumentFormat::Yaml;
        let mut fields = match read.value {
            Value::Object(fields) => fields,
            Value::Null => return Err(TemplateUnmarshalError::Nothing.into()),
            other => {
                let (found, expected) = (json_kind(&other), shape.spelled);
                return Err(TemplateUnmarshalError::NoObject { found, expected }.into());
            }
        };
        let no_document = |item: &Value| {
            document_error::find_document_error(item, || go_format::json(item, html))
        };
        let mut wrong = None;
        let mut entries = Vec::new();
        for (_, value) in fields.iter_mut().filter(|(name, _)| same(name, "entries")) {
            match value.take() {
                Value::Null => entries.clear(),
                // An entry that is no document is the error, before all others.
                Value::Array(items) => {
                    let mut all = items.iter().filter(|item| !item.is_null());
                    if let Some(error) = all.find_map(no_document) {
                        return Err(TemplateUnmarshalError::Entry(error).into());
                    }
                    entries = items;
                }
                other => {
                    let (found, shape) = (json_kind(&other), shape.name);
                    wrong.get_or_insert(TemplateUnmarshalError::NoList { found, shape });
                }
            }
        }
        let wrong =
            wrong.or_else(|| shape::check_fields(&fields, shape, false).err().map(Into::into));
        if let Some(error) = wrong {
            return Err(error.into());
        }
        let schema = self::text(&fields, "schema");
        if schema != kind.schema() {
            return Err(TemplateReadError::Schema { found: schema.to_owned(), wanted: kind });
        }
        Ok(Self { fields, entries })
    }

    /// Declares the entries, each in the shape of its schema.
    ///
    /// # Errors
    /// The first entry without that shape. A `null` entry, at which upstream crashes, is an error.
    pub(super) fn declare(&self) -> Result<CatalogDocuments, DeclareError> {
        let null = self.entries.iter().position(Value::is_null);
        let sound = &self.entries[..null.unwrap_or(self.entries.len())];
        let documents = sound.iter().cloned().enumerate();
        let declared =
            CatalogDocuments::of(documents.map(|(at, value)| (super::origin(at), value)))?;
        match null {
            Some(at) => Err(DeclareError::Null { number: at + 1 }),
            None => Ok(declared),
        }
    }
}
