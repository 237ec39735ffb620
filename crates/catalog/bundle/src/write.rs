//! JSON of `olm.bundle` blobs, byte for byte as upstream prints it.

use crate::declare::DeclaredBundle;
use mainstay_gocompat::json::quoted;

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
}

fn list(out: &mut String, name: &str, items: impl Iterator<Item = String>) {
    let items: Vec<String> = items.collect();
    if !items.is_empty() {
        for part in [",\"", name, "\":[", &items.join(","), "]"] {
            out.push_str(part);
        }
    }
}
