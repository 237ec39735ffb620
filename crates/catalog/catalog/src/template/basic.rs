//! Basic templates: catalogs whose bundles are named only by their image.

use super::{ImageBundle, TemplateError, TemplateKind, input::Template};
use crate::{Rendition, decode::Facts, write};
use mainstay_schema::gojson::{DeclaredStruct, DeclaredType as Field};
use serde_json::Value;

static SHAPE: DeclaredStruct = DeclaredStruct {
    name: "BasicTemplateData",
    spelled: "basic.BasicTemplateData",
    fields: &[("schema", Field::Text)],
};

/// Renders a template: its documents, with the bundles of its images.
pub(super) async fn render<E>(
    text: &[u8],
    images: &mut impl AsyncFnMut(&str) -> Result<ImageBundle, E>,
) -> Result<Rendition, TemplateError<E>> {
    let declared = Template::read(text, TemplateKind::Basic, &SHAPE)?.declare()?;
    let mut all = Rendition::of(&declared);
    all.retain(|document| &*document.schema != "olm.bundle");
    for (blob, facts) in declared.documents() {
        let Facts::Bundle(facts) = facts else { continue };
        let value = blob.value()?;
        let shaped = write::shape("olm.bundle", value);
        let is_set = |field: &str| shaped.get(field).is_some_and(|value| *value != Value::Null);
        let more = ["package", "properties", "relatedImages"].iter().any(|field| is_set(field));
        if facts.image.is_empty() || more {
            return Err(TemplateError::UnexpectedFields);
        }
        all.add(&images(&facts.image).await.map_err(TemplateError::Image)?.bundle);
    }
    Ok(all)
}
