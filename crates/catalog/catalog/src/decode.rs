//! From a document's value to the facts that the model is made of.
//!
//! The shapes are those of upstream's Go types, and so are the refusals: field names in any case,
//! `null` for "not set", and a message that names type and field.

use crate::{
    fold::get_in,
    model::{BUNDLE_OBJECT, CSV_METADATA},
    problem::Part,
    shape::{self, word},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use mainstay_version::quote;
use serde_json::{Map, Value};

/// What a document of a known schema says.
#[derive(Debug)]
pub(crate) enum Facts {
    Package(PackageFacts),
    Channel(ChannelFacts),
    Bundle(BundleFacts),
    Deprecations(Vec<DeprecationFacts>),
    Other,
}

#[derive(Debug)]
pub(crate) struct PackageFacts {
    pub(crate) default_channel: String,
}

#[derive(Debug)]
pub(crate) struct ChannelFacts {
    pub(crate) entries: Vec<EntryFacts>,
}

#[derive(Debug, Default)]
pub(crate) struct EntryFacts {
    pub(crate) name: String,
    pub(crate) replaces: String,
    pub(crate) skips: Vec<String>,
    pub(crate) skip_range: String,
}

#[derive(Debug)]
pub(crate) struct BundleFacts {
    pub(crate) image: String,
    /// Type and canonical JSON of the small properties, with their position in the list.
    pub(crate) properties: Vec<(usize, String, Box<str>)>,
    /// The `olm.package` properties: name, version, release.
    pub(crate) packages: Vec<(usize, [String; 3])>,
    pub(crate) objects: usize,
    pub(crate) related_images: Vec<String>,
    /// What is wrong with properties, beside which the bundle is still known by name.
    pub(crate) faults: Vec<Wrong>,
}

#[derive(Debug, Default)]
pub(crate) struct DeprecationFacts {
    pub(crate) schema: String,
    pub(crate) name: String,
    pub(crate) message: String,
}

/// A value of the wrong shape, and where it stands in the document.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub(crate) message: String,
    pub(crate) path: Vec<Part>,
}

type Fields = Map<String, Value>;

/// Reads the fields of one Go struct.
struct Reader<'v> {
    fields: &'v Fields,
    /// The struct's name, and the path of JSON fields that leads to it, as Go's messages say.
    kind: &'static str,
    prefix: &'static str,
    path: Vec<Part>,
}

impl<'v> Reader<'v> {
    fn wrong(&self, value: &Value, field: &'static str, expected: &str) -> Wrong {
        let (found, kind, prefix) = (word(value), self.kind, self.prefix);
        let mut path = self.path.clone();
        path.push(Part::Field(field));
        Wrong {
            message: format!(
                "json: cannot unmarshal {found} into Go struct field {kind}.{prefix}{field} of type {expected}"
            ),
            path,
        }
    }

    fn get(&self, field: &'static str) -> Option<&'v Value> {
        get_in(self.fields, field).filter(|value| !value.is_null())
    }

    fn text(&self, field: &'static str) -> Result<String, Wrong> {
        match self.get(field) {
            None => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(other) => Err(self.wrong(other, field, "string")),
        }
    }

    fn texts(&self, field: &'static str) -> Result<Vec<String>, Wrong> {
        let items = self.list(field, "[]string")?;
        items
            .iter()
            .map(|item| match item {
                Value::Null => Ok(String::new()),
                Value::String(text) => Ok(text.clone()),
                other => Err(self.wrong(other, field, "string")),
            })
            .collect()
    }

    fn list(&self, field: &'static str, expected: &str) -> Result<&'v [Value], Wrong> {
        match self.get(field) {
            None => Ok(&[]),
            Some(Value::Array(items)) => Ok(items),
            Some(other) => Err(self.wrong(other, field, expected)),
        }
    }

    /// The items of a list of structs; `null` stands for one with nothing set.
    fn structs(
        &self,
        field: &'static str,
        expected: &'static str,
        kind: &'static str,
        prefix: &'static str,
    ) -> Result<Vec<Option<Self>>, Wrong> {
        let list = format!("[]{expected}");
        let items = self.list(field, &list)?;
        let read = |(index, item): (usize, &'v Value)| {
            let mut path = self.path.clone();
            path.extend([Part::Field(field), Part::Item(index)]);
            match item {
                Value::Null => Ok(None),
                Value::Object(fields) => Ok(Some(Self { fields, kind, prefix, path })),
                other => Err(Wrong { path, ..self.wrong(other, field, expected) }),
            }
        };
        items.iter().enumerate().map(read).collect()
    }
}

/// Reads a document whose schema is known to be `schema`.
pub(crate) fn facts(schema: &str, fields: &Fields) -> Result<Facts, Wrong> {
    let (kind, what) = match schema {
        "olm.package" => ("Package", "package"),
        "olm.channel" => ("Channel", "channel"),
        "olm.bundle" => ("Bundle", "bundle"),
        "olm.deprecations" => ("Deprecation", "deprecation"),
        _ => return Ok(Facts::Other),
    };
    let reader = Reader { fields, kind, prefix: "", path: Vec::new() };
    let facts = match what {
        "package" => package(&reader),
        "channel" => channel(&reader),
        "bundle" => bundle(&reader),
        _ => deprecations(&reader),
    };
    facts.map_err(|wrong| Wrong { message: format!("parse {what}: {}", wrong.message), ..wrong })
}

fn package(reader: &Reader<'_>) -> Result<Facts, Wrong> {
    reader.text("description")?;
    reader.structs("properties", "property.Property", "Property", "properties.")?;
    if let Some(icon) = reader.get("icon") {
        let Value::Object(fields) = icon else {
            return Err(reader.wrong(icon, "icon", "declcfg.Icon"));
        };
        let path = vec![Part::Field("icon")];
        let icon = Reader { fields, kind: "Icon", prefix: "icon.", path };
        icon.text("mediatype")?;
        if let Some(data) = icon.get("base64data") {
            let Value::String(data) = data else {
                return Err(icon.wrong(data, "base64data", "[]uint8"));
            };
            if let Err(message) = unpack_base64(data) {
                let path = vec![Part::Field("icon"), Part::Field("base64data")];
                return Err(Wrong { message, path });
            }
        }
    }
    Ok(Facts::Package(PackageFacts { default_channel: reader.text("defaultChannel")? }))
}

fn channel(reader: &Reader<'_>) -> Result<Facts, Wrong> {
    reader.structs("properties", "property.Property", "Property", "properties.")?;
    let entries = reader.structs("entries", "declcfg.ChannelEntry", "ChannelEntry", "entries.")?;
    let entry = |entry: Option<Reader<'_>>| {
        let Some(entry) = entry else { return Ok(EntryFacts::default()) };
        Ok(EntryFacts {
            name: entry.text("name")?,
            replaces: entry.text("replaces")?,
            skips: entry.texts("skips")?,
            skip_range: entry.text("skipRange")?,
        })
    };
    let entries = entries.into_iter().map(entry).collect::<Result<_, Wrong>>()?;
    Ok(Facts::Channel(ChannelFacts { entries }))
}

fn deprecations(reader: &Reader<'_>) -> Result<Facts, Wrong> {
    let entries =
        reader.structs("entries", "declcfg.DeprecationEntry", "DeprecationEntry", "entries.")?;
    let entry = |entry: Option<Reader<'_>>| {
        let Some(entry) = entry else { return Ok(DeprecationFacts::default()) };
        let mut facts =
            DeprecationFacts { message: entry.text("message")?, ..DeprecationFacts::default() };
        match entry.get("reference") {
            None => {}
            Some(Value::Object(fields)) => {
                let mut path = entry.path.clone();
                path.push(Part::Field("reference"));
                let (kind, prefix) = ("PackageScopedReference", "entries.reference.");
                let reference = Reader { fields, kind, prefix, path };
                facts.schema = reference.text("schema")?;
                facts.name = reference.text("name")?;
            }
            Some(other) => {
                return Err(entry.wrong(other, "reference", "declcfg.PackageScopedReference"));
            }
        }
        Ok(facts)
    };
    Ok(Facts::Deprecations(entries.into_iter().map(entry).collect::<Result<_, Wrong>>()?))
}

fn bundle(reader: &Reader<'_>) -> Result<Facts, Wrong> {
    let related = reader.structs(
        "relatedImages",
        "declcfg.RelatedImage",
        "RelatedImage",
        "relatedImages.",
    )?;
    let related_images = related
        .into_iter()
        .map(|image| {
            let Some(image) = image else { return Ok(String::new()) };
            image.text("name")?;
            image.text("image")
        })
        .collect::<Result<_, Wrong>>()?;
    let mut facts = BundleFacts {
        image: reader.text("image")?,
        properties: Vec::new(),
        packages: Vec::new(),
        objects: 0,
        related_images,
        faults: Vec::new(),
    };
    let properties =
        reader.structs("properties", "property.Property", "Property", "properties.")?;
    for (index, property) in properties.into_iter().enumerate() {
        let (kind, value) = match &property {
            None => (String::new(), None),
            Some(property) => (property.text("type")?, get_in(property.fields, "value")),
        };
        if let Err(message) = read_property(&mut facts, index, kind, value) {
            let path = vec![Part::Field("properties"), Part::Item(index)];
            facts.faults.push(Wrong { message, path });
        }
    }
    Ok(Facts::Bundle(facts))
}

fn read_property(
    facts: &mut BundleFacts,
    index: usize,
    kind: String,
    value: Option<&Value>,
) -> Result<(), String> {
    let parse = |why: String| format!("parse property[{index}] of type {}: {why}", quote(&kind));
    if kind == BUNDLE_OBJECT {
        facts.objects += 1;
        return check_object(index, value);
    }
    let value = value.ok_or_else(|| parse("unexpected end of JSON input".to_owned()))?;
    if let Some(shape) = shape::of_property(&kind) {
        shape::check(value, shape).map_err(parse)?;
    }
    if kind == "olm.package" {
        let text = |field| shape::text(value, field).to_owned();
        facts.packages.push((index, [text("packageName"), text("version"), text("release")]));
    }
    if kind != CSV_METADATA {
        facts.properties.push((index, kind, value.to_string().into_boxed_str()));
    }
    Ok(())
}

/// Checks that a manifest can be read, without keeping it.
fn check_object(index: usize, value: Option<&Value>) -> Result<(), String> {
    let parse = |why: &str| format!("parse property at index {index} as bundle object: {why}");
    let fields = match value {
        None => return Err(parse("unexpected end of JSON input")),
        Some(Value::Null) => return Ok(()),
        Some(Value::Object(fields)) => fields,
        Some(other) => {
            return Err(parse(&format!(
                "json: cannot unmarshal {} into Go value of type property.BundleObject",
                word(other)
            )));
        }
    };
    let data = match get_in(fields, "data") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::String(data)) => data,
        Some(other) => {
            return Err(parse(&format!(
                "json: cannot unmarshal {} into Go struct field BundleObject.data of type []uint8",
                word(other)
            )));
        }
    };
    let bytes = unpack_base64(data).map_err(|why| parse(&why))?;
    if serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_ok() {
        return Ok(());
    }
    mainstay_yaml::documents(&bytes, &mainstay_yaml::Options::default())
        .next()
        .transpose()
        .map(|_| ())
        .map_err(|why| {
            format!("convert bundle object property at index {index} to JSON: yaml: {why}")
        })
}

/// Standard base64 with line breaks anywhere, as Go decodes it.
pub(crate) fn unpack_base64(text: &str) -> Result<Vec<u8>, String> {
    let decoded = match STANDARD.decode(text.as_bytes()) {
        Ok(bytes) => return Ok(bytes),
        Err(_) if text.contains(['\n', '\r']) => {
            let joined: Vec<u8> =
                text.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r')).collect();
            STANDARD.decode(joined)
        }
        Err(error) => Err(error),
    };
    decoded.map_err(|error| {
        let at = match error {
            base64::DecodeError::InvalidByte(at, _)
            | base64::DecodeError::InvalidLastSymbol(at, _) => at,
            // Go names the start of the group that is not complete.
            base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding => {
                text.len() / 4 * 4
            }
        };
        format!("illegal base64 data at input byte {at}")
    })
}
