//! Substitutes templates: bundles that take the place of others in a catalog.

use super::{
    BundleReleaseError, Bundled, Kind, Role, SubstitutesError, SubstitutionError, input,
    input::Template,
};
use crate::{
    ContentError, Declared, LoadError, Rendition,
    decode::{self, BundleFacts, Facts},
    write,
};
use mainstay_gocompat::decode_base64;
use mainstay_schema::gojson::{DeclaredStruct, DeclaredType as Field};
use mainstay_version::{BundleRelease, VersionRelease, parse_strict};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

static SHAPE: DeclaredStruct = DeclaredStruct {
    name: "SubstitutesTemplateData",
    spelled: "substitutes.SubstitutesTemplateData",
    fields: &[("schema", Field::Text), ("substitutions", Field::List(&Field::Struct(&SUBSTITUTE)))],
};

static SUBSTITUTE: DeclaredStruct = DeclaredStruct {
    name: "Substitute",
    spelled: "substitutes.Substitute",
    fields: &[("name", Field::Text), ("base", Field::Text)],
};

/// The annotation of a ClusterServiceVersion that says which bundle it takes the place of.
const ANNOTATION: &str = "olm.substitutesFor";

/// The documents of a template, with its substitutions made one after the other.
pub(super) async fn render<E>(
    text: &[u8],
    images: &mut impl AsyncFnMut(&str) -> Result<Bundled, E>,
) -> Result<Rendition, SubstitutesError<E>> {
    let template = Template::read(text, Kind::Substitutes, &SHAPE)?;
    let declared = template.declare()?;
    let mut catalog = Catalog::of(&declared)?;
    if let Some(error) = declared.fault() {
        return Err(SubstitutesError::Invalid(error));
    }
    let none = Map::new();
    let (mut bases, mut names) = (BTreeSet::new(), BTreeMap::new());
    for substitution in input::list(&template.fields, "substitutions") {
        let fields = substitution.as_object().unwrap_or(&none);
        let (name, base) = (input::text(fields, "name"), input::text(fields, "base"));
        if !bases.insert(base) {
            return Err(SubstitutesError::ReusedBase { base: base.to_owned() });
        }
        if let Some(first) = names.insert(name, base) {
            let [name, first, second] = [name, first, base].map(str::to_owned);
            return Err(SubstitutesError::ReusedName { name, first, second });
        }
        catalog.substitute(name, base, images).await.map_err(|error| {
            let [base, name] = [base, name].map(str::to_owned);
            SubstitutesError::Substitution { base, name, error }
        })?;
    }
    catalog.finish().map_err(SubstitutesError::Finish)
}

/// A catalog in the making.
struct Catalog {
    /// All documents of the template, known ones in the form of their schema.
    documents: Vec<Value>,
    /// Bundles that were put in.
    added: Vec<Bundled>,
}

impl Catalog {
    fn of(declared: &Declared) -> Result<Self, ContentError> {
        let value = |blob: crate::Blob| Ok(write::shape(blob.schema(), blob.value()?));
        let documents: Result<Vec<Value>, ContentError> = declared.blobs().map(value).collect();
        Ok(Self { documents: documents?, added: Vec::new() })
    }

    /// All documents, those put in behind the others.
    fn declare<E>(&self) -> Result<Declared, SubstitutionError<E>> {
        let added = self.added.iter().map(|added| added.bundle.json());
        let added: Result<Vec<Value>, serde_json::Error> =
            added.map(|json| serde_json::from_str(&json)).collect();
        let all = self.documents.iter().cloned().chain(added?).enumerate();
        Declared::of(all.map(|(at, value)| (super::origin(at), value)))
            .map_err(SubstitutionError::Declare)
    }

    fn finish(self) -> Result<Rendition, LoadError> {
        let documents = self.documents.into_iter().enumerate();
        let declared = Declared::of(documents.map(|(at, value)| (super::origin(at), value)))?;
        let mut all = Rendition::of(&declared);
        self.added.iter().for_each(|added| all.add(&added.bundle));
        Ok(all)
    }

    /// Puts the bundle of the image `name` in the place of the bundle `base`.
    async fn substitute<E>(
        &mut self,
        name: &str,
        base: &str,
        images: &mut impl AsyncFnMut(&str) -> Result<Bundled, E>,
    ) -> Result<(), SubstitutionError<E>> {
        if name.is_empty() {
            return Err(SubstitutionError::NoName);
        }
        if base.is_empty() {
            return Err(SubstitutionError::NoBase);
        }
        if name == base {
            return Err(SubstitutionError::Same);
        }
        let bundled = images(name)
            .await
            .map_err(|error| SubstitutionError::Image { image: name.to_owned(), error })?;
        let no_version = |role, bundle: &str, error| {
            let (bundle, source) = (bundle.to_owned(), Box::new(error));
            SubstitutionError::Version { role, bundle, source }
        };
        let value: Value = serde_json::from_str(&bundled.bundle.json())?;
        let substitute = version_release(&value, Some(&bundled.csv))
            .map_err(|error| no_version(Role::Substitute, name, error))?;
        let replaced = self
            .base(base)?
            .ok_or_else(|| SubstitutionError::UnknownBase { base: base.to_owned() })?
            .map_err(|error| no_version(Role::Base, base, error))?;
        if replaced >= substitute {
            let [base, name] = [base, name].map(str::to_owned);
            return Err(SubstitutionError::NotLess { base, name });
        }
        for document in &mut self.documents {
            if document["schema"] == "olm.channel"
                && let Some(Value::Array(entries)) = document.get_mut("entries")
            {
                take_place(entries, base, &bundled.bundle.name);
            }
        }
        self.added.push(bundled);
        match self.declare()?.fault() {
            Some(error) => Err(SubstitutionError::Invalid(error)),
            None => Ok(()),
        }
    }

    /// Version and release of the first bundle of that name, if there is one.
    fn base(
        &self,
        name: &str,
    ) -> Result<Option<Result<VersionRelease, BundleReleaseError>>, serde_json::Error> {
        let is_it = |document: &&Value| {
            document["schema"] == "olm.bundle" && document["name"].as_str() == Some(name)
        };
        if let Some(document) = self.documents.iter().find(is_it) {
            return Ok(Some(version_release(document, None)));
        }
        let Some(added) = self.added.iter().find(|added| added.bundle.name == name) else {
            return Ok(None);
        };
        let value: Value = serde_json::from_str(&added.bundle.json())?;
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
fn version_release(
    document: &Value,
    csv: Option<&Value>,
) -> Result<VersionRelease, BundleReleaseError> {
    let empty = Map::new();
    let fields = document.as_object().unwrap_or(&empty);
    let bundle = || document["name"].as_str().unwrap_or_default().to_owned();
    let facts = match decode::facts("olm.bundle", fields)? {
        Facts::Bundle(facts) => facts,
        _ => BundleFacts::default(),
    };
    let [(_, [_, version, release])] = facts.packages.as_slice() else {
        return Err(if facts.packages.is_empty() {
            BundleReleaseError::NoPackage { bundle: bundle() }
        } else {
            BundleReleaseError::SeveralPackages
        });
    };
    let parsed = parse_strict(version).map_err(|source| BundleReleaseError::Version {
        version: version.clone(),
        bundle: bundle(),
        source,
    })?;
    if !release.is_empty()
        && let Err(source) = BundleRelease::parse(release)
    {
        let (release, bundle) = (release.clone(), bundle());
        return Err(BundleReleaseError::Release { release, bundle, source });
    }
    let build = parsed.as_semver().build.as_str();
    if !release.is_empty() || build.is_empty() || !is_substitute(document, csv) {
        return Ok(VersionRelease::parse(version, release)?);
    }
    // Where a bundle says that it takes the place of another, its build metadata is its release.
    if let Err(source) = BundleRelease::parse(build) {
        return Err(BundleReleaseError::BuildMetadata { bundle: bundle(), source });
    }
    Ok(VersionRelease::parse_legacy(version)?)
}

/// Whether a bundle says that it takes the place of another: in its ClusterServiceVersion, or else in
/// the first property that may say it.
fn is_substitute(document: &Value, csv: Option<&Value>) -> bool {
    let says = |object: &Value| {
        object["metadata"]["annotations"][ANNOTATION].as_str().is_some_and(|text| !text.is_empty())
    };
    if let Some(csv) = csv {
        return says(csv);
    }
    let properties = document["properties"].as_array().map_or(&[][..], Vec::as_slice);
    let is = |property: &&Value, kind: &str| property["type"].as_str() == Some(kind);
    let mut objects =
        properties.iter().filter(|property| is(property, crate::model::BUNDLE_OBJECT));
    if let Some(csv) = objects.find_map(|object| crate::migrate::csv_of(&object["value"])) {
        return says(&csv);
    }
    for property in properties {
        if is(&property, crate::model::CSV_METADATA) {
            let annotations = &property["value"]["annotations"];
            if annotations[ANNOTATION].as_str().is_some_and(|text| !text.is_empty()) {
                return true;
            }
        } else if is(&property, crate::model::BUNDLE_OBJECT) {
            let data = crate::fold::get(&property["value"], "data").and_then(Value::as_str);
            let bytes = data.and_then(|data| decode_base64(data).ok());
            if let Some(object) = bytes.and_then(|data| serde_json::from_slice::<Value>(&data).ok())
            {
                return says(&object);
            }
        }
    }
    false
}
