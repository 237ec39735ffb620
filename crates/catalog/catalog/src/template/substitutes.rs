//! Substitutes templates: bundles that take the place of others in a catalog.

use super::{Bundled, Kind, input, input::Template};
use crate::{
    Declared, Rendition,
    decode::{self, BundleFacts, Facts},
    shape::{Kind as Field, Shape},
    write,
};
use mainstay_gocompat::quote;
use mainstay_version::{Release, VersionRelease, parse_strict};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

static SHAPE: Shape = Shape {
    name: "SubstitutesTemplateData",
    spelled: "substitutes.SubstitutesTemplateData",
    fields: &[("schema", Field::Text), ("substitutions", Field::Many(&SUBSTITUTE))],
};

static SUBSTITUTE: Shape = Shape {
    name: "Substitute",
    spelled: "substitutes.Substitute",
    fields: &[("name", Field::Text), ("base", Field::Text)],
};

/// The annotation of a ClusterServiceVersion that says which bundle it takes the place of.
const ANNOTATION: &str = "olm.substitutesFor";

/// The documents of a template, with its substitutions made one after the other.
pub(super) async fn render(
    text: &[u8],
    images: &mut impl AsyncFnMut(&str) -> Result<Bundled, String>,
) -> Result<Rendition, String> {
    let template = Template::read(text, Kind::Substitutes, &SHAPE)
        .map_err(|why| format!("unable to parse template: {why}"))?;
    let declared = template
        .declare()
        .map_err(|why| format!("unable to create declarative config from entries: {why}"))?;
    let mut catalog = Catalog::of(&declared)?;
    if let Some(why) = declared.build().2 {
        return Err(format!("entries are not valid FBC: {why}"));
    }
    let none = Map::new();
    let (mut bases, mut names) = (BTreeSet::new(), BTreeMap::new());
    for substitution in input::list(&template.fields, "substitutions") {
        let fields = substitution.as_object().unwrap_or(&none);
        let (name, base) = (input::text(fields, "name"), input::text(fields, "base"));
        if !bases.insert(base) {
            return Err(format!("cannot reuse the same substitution base {}", quote(base)));
        }
        if let Some(first) = names.insert(name, base) {
            return Err(format!(
                "cannot reuse the same substitution {} for different bases ({} and {})",
                quote(name),
                quote(first),
                quote(base)
            ));
        }
        catalog.substitute(name, base, images).await.map_err(|why| {
            let (base, name) = (quote(base), quote(name));
            format!("error processing substitution {base} -> {name}: {why}")
        })?;
    }
    catalog.finish()
}

/// A catalog in the making.
struct Catalog {
    /// All documents of the template, known ones in the form of their schema.
    documents: Vec<Value>,
    /// Bundles that were put in.
    added: Vec<Bundled>,
}

impl Catalog {
    fn of(declared: &Declared) -> Result<Self, String> {
        let value = |blob: crate::Blob| Ok(write::shape(blob.schema(), blob.value()?));
        let documents: Result<Vec<Value>, crate::ContentError> =
            declared.blobs().map(value).collect();
        Ok(Self { documents: documents.map_err(|error| error.to_string())?, added: Vec::new() })
    }

    /// All documents, those put in behind the others.
    fn declare(&self) -> Result<Declared, String> {
        let added = self.added.iter().map(|it| it.bundle.json());
        let added: Result<Vec<Value>, serde_json::Error> =
            added.map(|json| serde_json::from_str(&json)).collect();
        let added = added.map_err(|error| error.to_string())?;
        let all = self.documents.iter().cloned().chain(added).enumerate();
        Declared::of(all.map(|(at, value)| (super::origin(at), value)))
            .map_err(|error| error.upstream())
    }

    fn finish(self) -> Result<Rendition, String> {
        let documents = self.documents.into_iter().enumerate();
        let declared = Declared::of(documents.map(|(at, value)| (super::origin(at), value)))
            .map_err(|error| error.upstream())?;
        let mut all = Rendition::of(&declared);
        self.added.iter().for_each(|it| all.add(&it.bundle));
        Ok(all)
    }

    /// Puts the bundle of the image `name` in the place of the bundle `base`.
    async fn substitute(
        &mut self,
        name: &str,
        base: &str,
        images: &mut impl AsyncFnMut(&str) -> Result<Bundled, String>,
    ) -> Result<(), String> {
        if name.is_empty() {
            return Err("substitution name cannot be empty".to_owned());
        }
        if base.is_empty() {
            return Err("substitution base cannot be empty".to_owned());
        }
        if name == base {
            return Err("substitution name and base cannot be the same".to_owned());
        }
        let quoted = quote(name);
        let bundled = images(name)
            .await
            .map_err(|why| format!("failed to render bundle image reference {quoted}: {why}"))?;
        let no_version = |which: &str, name: &str, why: String| {
            format!("failed to get VersionRelease for {which} bundle {}: {why}", quote(name))
        };
        let value: Value =
            serde_json::from_str(&bundled.bundle.json()).map_err(|error| error.to_string())?;
        let substitute = version_release(&value, Some(&bundled.csv))
            .map_err(|why| no_version("substitute", name, why))?;
        let replaced = self
            .base(base)?
            .ok_or_else(|| format!("base bundle {} does not exist in catalog", quote(base)))?
            .map_err(|why| no_version("base", base, why))?;
        if replaced >= substitute {
            return Err(format!(
                "base bundle {} is not less than substitute bundle {quoted}",
                quote(base)
            ));
        }
        for document in &mut self.documents {
            if document["schema"] == "olm.channel"
                && let Some(Value::Array(entries)) = document.get_mut("entries")
            {
                take_place(entries, base, &bundled.bundle.name);
            }
        }
        self.added.push(bundled);
        match self.declare()?.build().2 {
            Some(why) => Err(format!("resulting config is not valid FBC: {why}")),
            None => Ok(()),
        }
    }

    /// Version and release of the first bundle of that name, if there is one.
    fn base(&self, name: &str) -> Result<Option<Result<VersionRelease, String>>, String> {
        let is_it = |document: &&Value| {
            document["schema"] == "olm.bundle" && document["name"].as_str() == Some(name)
        };
        if let Some(document) = self.documents.iter().find(is_it) {
            return Ok(Some(version_release(document, None)));
        }
        let Some(added) = self.added.iter().find(|it| it.bundle.name == name) else {
            return Ok(None);
        };
        let value: Value =
            serde_json::from_str(&added.bundle.json()).map_err(|error| error.to_string())?;
        Ok(Some(version_release(&value, Some(&added.csv))))
    }
}

/// Puts an entry for `name` behind the others that takes over the updates of `base`.
fn take_place(entries: &mut Vec<Value>, base: &str, name: &str) {
    let text = |entry: &Value, field: &str| entry[field].as_str().map(str::to_owned);
    let old = entries.len();
    let is_base = |entry: &&mut Value| entry["name"].as_str() == Some(base);
    let mut new = Vec::new();
    for entry in entries.iter_mut().filter(is_base) {
        let Value::Object(fields) = entry else { continue };
        let mut taken = fields.clone();
        taken.insert("name".to_owned(), name.into());
        if !mainstay_fault::is_on("substitutes-do-not-skip-their-base") {
            push(&mut taken, base);
        }
        fields.retain(|field, _| field == "name");
        new.push(Value::Object(taken));
    }
    entries.extend(new.into_iter().rev());
    for entry in &mut entries[..old] {
        let replaces = text(entry, "replaces");
        let Value::Object(fields) = entry else { continue };
        if replaces.as_deref() == Some(base) {
            fields.insert("replaces".to_owned(), name.into());
            push(fields, base);
        } else if let Some(Value::Array(skips)) = fields.get_mut("skips")
            && skips.iter().any(|skip| skip.as_str() == Some(base))
        {
            skips.push(name.into());
            skips.retain(|skip| skip.as_str() != Some(base));
        }
    }
}

/// Adds a name to what an entry skips.
fn push(entry: &mut Map<String, Value>, name: &str) {
    let skips = entry.entry("skips").or_insert_with(|| json!([]));
    if !skips.is_array() {
        *skips = json!([]);
    }
    if let Value::Array(skips) = skips {
        skips.push(name.into());
    }
}

/// Version and release of a bundle. `csv` is its ClusterServiceVersion, where that is known beside
/// the document.
fn version_release(document: &Value, csv: Option<&Value>) -> Result<VersionRelease, String> {
    let empty = Map::new();
    let fields = document.as_object().unwrap_or(&empty);
    let called = quote(document["name"].as_str().unwrap_or_default());
    let facts = match decode::facts("olm.bundle", fields) {
        Ok(Facts::Bundle(facts)) => facts,
        Ok(_) => BundleFacts::default(),
        Err(wrong) => return Err(wrong.message),
    };
    let [(_, [_, version, release])] = facts.packages.as_slice() else {
        return Err(if facts.packages.is_empty() {
            format!("no \"olm.package\" property found for bundle {called}")
        } else {
            "must be exactly one property of type \"olm.package\"".to_owned()
        });
    };
    let parsed = parse_strict(version).map_err(|why| {
        let version = quote(version);
        format!(
            "invalid semver version {version} in \"olm.package\" property for bundle {called}: {why}"
        )
    })?;
    if !release.is_empty()
        && let Err(why) = Release::parse(release)
    {
        let release = quote(release);
        return Err(format!(
            "invalid release {release} in \"olm.package\" property for bundle {called}: {why}"
        ));
    }
    let explicit = || VersionRelease::explicit(version, release).map_err(|why| why.to_string());
    let build = parsed.as_semver().build.as_str();
    if !release.is_empty() || build.is_empty() || !is_substitute(document, csv) {
        return explicit();
    }
    // Where a bundle says that it takes the place of another, its build metadata is its release.
    if let Err(why) = Release::parse(build) {
        return Err(format!(
            "unable to convert build metadata to release for bundle {called}: {why}"
        ));
    }
    VersionRelease::legacy(version).map_err(|why| why.to_string())
}

/// Whether a bundle says that it takes the place of another: in its ClusterServiceVersion, or else in
/// the first property that may say it.
fn is_substitute(document: &Value, csv: Option<&Value>) -> bool {
    let says = |object: &Value| {
        object["metadata"]["annotations"][ANNOTATION].as_str().is_some_and(|it| !it.is_empty())
    };
    if let Some(csv) = csv {
        return says(csv);
    }
    let properties = document["properties"].as_array().map_or(&[][..], Vec::as_slice);
    let is = |property: &&Value, kind: &str| property["type"].as_str() == Some(kind);
    let mut objects = properties.iter().filter(|it| is(it, crate::model::BUNDLE_OBJECT));
    if let Some(csv) = objects.find_map(|it| crate::migrate::csv_of(&it["value"])) {
        return says(&csv);
    }
    for property in properties {
        if is(&property, crate::model::CSV_METADATA) {
            let annotations = &property["value"]["annotations"];
            if annotations[ANNOTATION].as_str().is_some_and(|it| !it.is_empty()) {
                return true;
            }
        } else if is(&property, crate::model::BUNDLE_OBJECT) {
            let data = crate::fold::get(&property["value"], "data").and_then(Value::as_str);
            let bytes = data.and_then(|data| decode::unpack_base64(data).ok());
            if let Some(object) = bytes.and_then(|it| serde_json::from_slice::<Value>(&it).ok()) {
                return says(&object);
            }
        }
    }
    false
}
