//! Catalogs as the templates they could have been made of.

use super::{ConvertError, DecodeError, Kind};
use crate::{
    Format, decode,
    load::LoadOptions,
    odd, read, syntax,
    write::{shape, yaml},
};
use mainstay_gocompat::json::{Html, JsonWriter, Numbers};
use mainstay_yaml::{Format as Form, documents};
use serde_json::{Map, Value, json};

/// The template that the documents of a text could have been made of, as a text: of
/// [`Kind::Basic`], bundles are reduced to their images; of [`Kind::Substitutes`], they stay, and
/// nothing is substituted yet. Documents are not looked at beyond that. There is no way back to
/// [`Kind::Semver`]; it is read as the latter.
///
/// # Errors
/// The first document that cannot be read, and what YAML cannot say.
pub fn convert(kind: Kind, text: &[u8], format: Format) -> Result<String, ConvertError> {
    let entries = entries(kind, text)?;
    let mut out = String::new();
    if format == Format::Yaml {
        let entries = match entries {
            Some(entries) => entries.into_iter().map(|fields| shape("", fields)).collect(),
            None => Value::Null,
        };
        let mut template = json!({ "schema": kind.schema(), "entries": entries });
        if kind != Kind::Basic {
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
                    Value::Object(fields) if kind == Kind::Basic && is_bundle(fields) => {
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
    if kind != Kind::Basic {
        writer.key("substitutions");
        writer.open('[');
        writer.close(']');
    }
    writer.close('}');
    out.push('\n');
    Ok(out)
}

/// The documents of a text, bundles reduced if they are to be; none at all if there are none.
fn entries(kind: Kind, text: &[u8]) -> Result<Option<Vec<Value>>, ConvertError> {
    let reading = read::reading(&LoadOptions::default(), false);
    let text = read::as_text(text.to_vec(), &reading);
    let mut entries = Vec::new();
    for document in documents(&text, &reading) {
        let document = document.map_err(|source| {
            let upstream = syntax::words(&text, entries.len(), &source);
            DecodeError::Syntax { upstream, source }
        })?;
        let value = document.value;
        if value.is_null() {
            // Upstream cannot write what holds nothing.
            if document.format == Form::Yaml {
                let words = "json: error calling MarshalJSON for type *declcfg.Meta: unexpected end of JSON input";
                let upstream = syntax::of_nothing(&text[document.bytes], words);
                return Err(ConvertError::Nothing { upstream });
            }
            entries.push(value);
            continue;
        }
        let shown = || match document.format {
            Form::Yaml => crate::golang::json(&value, true),
            Form::Json => String::from_utf8_lossy(&text[document.bytes.clone()]).into_owned(),
        };
        if let Some(error) = odd::no_document(&value, shown) {
            return Err(match document.format {
                Form::Yaml => ConvertError::Yaml(error),
                Form::Json => ConvertError::Json(error),
            });
        }
        let reduced = match &value {
            Value::Object(fields) if kind == Kind::Basic && is_bundle(fields) => {
                decode::facts("olm.bundle", fields)?;
                let image = crate::fold::get_in(fields, "image").and_then(Value::as_str);
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
