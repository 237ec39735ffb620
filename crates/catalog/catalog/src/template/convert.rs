//! Conversion of catalogs to templates.

use super::{TemplateConvertError, TemplateDecodeError, TemplateKind};
use crate::{
    CatalogFormat, decode, document_error,
    load::LoadOptions,
    read, syntax,
    write::{shape, yaml},
};
use mainstay_gocompat::json::{Html, JsonWriter, Numbers};
use mainstay_yaml::{DocumentFormat, documents};
use serde_json::{Map, Value, json};

/// Converts the documents of a text to a template that renders to them. For [`TemplateKind::Basic`],
/// bundles are reduced to their images. For [`TemplateKind::Substitutes`], bundles stay complete, without
/// substitutions. A conversion to [`TemplateKind::Semver`] is impossible; it gives the same as the latter.
/// The documents are not checked otherwise.
///
/// # Errors
/// The first unreadable document, or a value that YAML cannot express.
pub fn convert(
    kind: TemplateKind,
    text: &[u8],
    format: CatalogFormat,
) -> Result<String, TemplateConvertError> {
    let entries = entries(kind, text)?;
    let mut out = String::new();
    if format == CatalogFormat::Yaml {
        let entries = match entries {
            Some(entries) => entries.into_iter().map(|fields| shape("", fields)).collect(),
            None => Value::Null,
        };
        let mut template = json!({ "schema": kind.schema(), "entries": entries });
        if kind != TemplateKind::Basic {
            template["substitutions"] = json!([]);
        }
        yaml(template, &mut out)?;
        out.push('\n');
        return Ok(out);
    }
    let mut writer = JsonWriter::indented(&mut out, Html::Escaped, Numbers::Float);
    writer.open('{');
    writer.key("schema");
    writer.text(kind.schema());
    writer.key("entries");
    match entries {
        None => writer.null(),
        Some(entries) => {
            writer.open('[');
            for entry in &entries {
                match entry {
                    Value::Object(fields) if kind == TemplateKind::Basic && is_bundle(fields) => {
                        writer.open('{');
                        for name in ["schema", "image"] {
                            writer.key(name);
                            writer.value(&entry[name]);
                        }
                        writer.close('}');
                    }
                    other => writer.value(other),
                }
            }
            writer.close(']');
        }
    }
    if kind != TemplateKind::Basic {
        writer.key("substitutions");
        writer.open('[');
        writer.close(']');
    }
    writer.close('}');
    out.push('\n');
    Ok(out)
}

/// The documents of a text, with reduced bundles for a basic template; `None` without documents.
fn entries(kind: TemplateKind, text: &[u8]) -> Result<Option<Vec<Value>>, TemplateConvertError> {
    let yaml_options = read::yaml_options(&LoadOptions::default(), false);
    let text = read::decode_text(text.to_vec(), &yaml_options);
    let mut entries = Vec::new();
    for document in documents(&text, &yaml_options) {
        let document = document.map_err(|source| {
            let upstream = syntax::words(&text, entries.len(), &source);
            TemplateDecodeError::Syntax { upstream, source }
        })?;
        let value = document.value;
        if value.is_null() {
            // Upstream cannot write an empty document.
            if document.format == DocumentFormat::Yaml {
                let words = "json: error calling MarshalJSON for type *declcfg.Meta: unexpected end of JSON input";
                let upstream = syntax::of_nothing(&text[document.bytes], words);
                return Err(TemplateConvertError::Nothing { upstream });
            }
            entries.push(value);
            continue;
        }
        let shown = || match document.format {
            DocumentFormat::Yaml => crate::go_format::json(&value, true),
            DocumentFormat::Json => {
                String::from_utf8_lossy(&text[document.bytes.clone()]).into_owned()
            }
        };
        if let Some(error) = document_error::find_document_error(&value, shown) {
            return Err(match document.format {
                DocumentFormat::Yaml => TemplateConvertError::Yaml(error),
                DocumentFormat::Json => TemplateConvertError::Json(error),
            });
        }
        let reduced = match &value {
            Value::Object(fields) if kind == TemplateKind::Basic && is_bundle(fields) => {
                decode::facts("olm.bundle", fields)?;
                let image = crate::case_fold::get_in(fields, "image").and_then(Value::as_str);
                json!({ "schema": "olm.bundle", "image": image.unwrap_or_default() })
            }
            _ => value,
        };
        entries.push(reduced);
    }
    Ok((!entries.is_empty()).then_some(entries))
}

fn is_bundle(fields: &Map<String, Value>) -> bool {
    super::input::text(fields, "schema") == "olm.bundle"
}
