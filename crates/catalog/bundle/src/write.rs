//! Blobs of bundles as upstream prints them.

use crate::declare::DeclaredBundle;
use mainstay_gojson::quoted;
use serde_json::Value;
use std::io;

impl DeclaredBundle {
    /// The blob as one compact JSON text, fields in upstream's order.
    pub fn json(&self) -> String {
        let properties = self.properties.iter().map(|property| {
            format!("{{\"type\":{},\"value\":{}}}", quoted(&property.kind), property.value)
        });
        let images = self.related_images.iter().map(|image| {
            format!("{{\"name\":{},\"image\":{}}}", quoted(&image.name), quoted(&image.image))
        });
        let mut out = String::from("{\"schema\":\"olm.bundle\"");
        for (field, text) in [("name", &self.name), ("package", &self.package)] {
            if !text.is_empty() {
                for part in [",\"", field, "\":", &quoted(text)] {
                    out.push_str(part);
                }
            }
        }
        out.push_str(",\"image\":");
        out.push_str(&quoted(&self.image));
        list(&mut out, "properties", properties);
        list(&mut out, "relatedImages", images);
        out.push('}');
        out
    }

    /// The blob as a value.
    ///
    /// # Errors
    /// If the value of a property is no JSON, which no bundle that was read has.
    pub fn value(&self) -> Result<Value, serde_json::Error> {
        serde_json::from_str(&self.json())
    }
}

fn list(out: &mut String, name: &str, items: impl Iterator<Item = String>) {
    let items: Vec<String> = items.collect();
    if !items.is_empty() {
        for part in [",\"", name, "\":[", &items.join(","), "]"] {
            out.push_str(part);
        }
    }
}

/// Bundles in upstream's order: by package, then by name. Those without a package are left out, as
/// upstream does.
fn ordered<'b>(bundles: &[&'b DeclaredBundle]) -> Vec<&'b DeclaredBundle> {
    let mut found: Vec<&DeclaredBundle> =
        bundles.iter().copied().filter(|bundle| !bundle.package.is_empty()).collect();
    found.sort_by(|a, b| (&a.package, &a.name).cmp(&(&b.package, &b.name)));
    found
}

/// Writes blobs as JSON, each indented by four blanks.
///
/// # Errors
/// Those of the writer.
pub fn json(bundles: &[&DeclaredBundle], out: &mut dyn io::Write) -> io::Result<()> {
    for bundle in ordered(bundles) {
        let mut text = mainstay_gojson::indent(&bundle.json());
        text.push('\n');
        out.write_all(text.as_bytes())?;
    }
    Ok(())
}

/// Writes blobs as YAML documents with sorted keys.
///
/// # Errors
/// Those of the writer.
pub fn yaml(bundles: &[&DeclaredBundle], out: &mut dyn io::Write) -> io::Result<()> {
    for bundle in ordered(bundles) {
        let value = bundle.value()?;
        out.write_all(b"---\n")?;
        out.write_all(mainstay_yaml::to_string(&value).as_bytes())?;
    }
    Ok(())
}
