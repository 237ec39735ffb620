//! Substitutes templates: bundles that substitute other bundles in the channels of a catalog.

use super::{
    BundleReleaseError, ImageBundle, SubstitutesError, SubstitutionError, SubstitutionRole,
    TemplateKind, input, input::Template,
};
use crate::{
    BlobError, CatalogDocuments, LoadError, Rendition,
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

/// The annotation of a ClusterServiceVersion that names the bundle it substitutes.
const ANNOTATION: &str = "olm.substitutesFor";

/// Renders a template: its documents, with the substitutions applied in order.
pub(super) async fn render<E>(
    text: &[u8],
    images: &mut impl AsyncFnMut(&str) -> Result<ImageBundle, E>,
) -> Result<Rendition, SubstitutesError<E>> {
    let template = Template::read(text, TemplateKind::Substitutes, &SHAPE)?;
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

/// A catalog under construction.
struct Catalog {
    /// All documents of the template, in the form of their schema.
    documents: Vec<Value>,
    /// The substitutes.
    added: Vec<ImageBundle>,
}

impl Catalog {
    fn of(declared: &CatalogDocuments) -> Result<Self, BlobError> {
        let value = |blob: crate::Blob| Ok(write::shape(blob.schema(), blob.value()?));
        let documents: Result<Vec<Value>, BlobError> = declared.blobs().map(value).collect();
        Ok(Self { documents: documents?, added: Vec::new() })
    }

    /// All documents, with the substitutes at the end.
    fn declare<E>(&self) -> Result<CatalogDocuments, SubstitutionError<E>> {
        let added = self.added.iter().map(|addition| addition.bundle.json());
        let added: Result<Vec<Value>, serde_json::Error> =
            added.map(|json| serde_json::from_str(&json)).collect();
        let all = self.documents.iter().cloned().chain(added?).enumerate();
        CatalogDocuments::of(all.map(|(at, value)| (super::origin(at), value)))
            .map_err(SubstitutionError::Declare)
    }

    fn finish(self) -> Result<Rendition, LoadError> {
        let documents = self.documents.into_iter().enumerate();
        let declared =
            CatalogDocuments::of(documents.map(|(at, value)| (super::origin(at), value)))?;
        let mut all = Rendition::of(&declared);
        self.added.iter().for_each(|addition| all.add(&addition.bundle));
        Ok(all)
    }

    /// Substitutes the bundle `base` by the bundle of the image `name`.
    async fn substitute<E>(
        &mut self,
        name: &str,
        base: &str,
        images: &mut impl AsyncFnMut(&str) -> Result<ImageBundle, E>,
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
        let version_error = |role, bundle: &str, error| {
            let (bundle, source) = (bundle.to_owned(), Box::new(error));
            SubstitutionError::Version { role, bundle, source }
        };
        let value: Value = serde_json::from_str(&bundled.bundle.json())?;
        let substitute = version_release(&value, Some(&bundled.csv))
            .map_err(|error| version_error(SubstitutionRole::Substitute, name, error))?;
        let replaced = self
            .base(base)?
            .ok_or_else(|| SubstitutionError::UnknownBase { base: base.to_owned() })?
            .map_err(|error| version_error(SubstitutionRole::Base, base, error))?;
        if replaced >= substitute {
            let [base, name] = [base, name].map(str::to_owned);
            return Err(SubstitutionError::NotLess { base, name });
        }
        for document in &mut self.documents {
            if document["schema"] == "olm.channel"
                && let Some(Value::Array(entries)) = document.get_mut("entries")
            {
                substitute_entries(entries, base, &bundled.bundle.name);
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
        let has_name = |document: &&Value| {
            document["schema"] == "olm.bundle" && document["name"].as_str() == Some(name)
        };
        if let Some(document) = self.documents.iter().find(has_name) {
            return Ok(Some(version_release(document, None)));
        }
        let Some(added) = self.added.iter().find(|addition| addition.bundle.name == name) else {
            return Ok(None);
        };
        let value: Value = serde_json::from_str(&added.bundle.json())?;
        Ok(Some(version_release(&value, Some(&added.csv))))
    }
}

/// Appends an entry for `name` that takes over the updates of `base`.
fn substitute_entries(entries: &mut Vec<Value>, base: &str, name: &str) {
    let text = |entry: &Value, field: &str| entry[field].as_str().map(str::to_owned);
    let old = entries.len();
    let is_base = |entry: &&mut Value| entry["name"].as_str() == Some(base);
    let mut new = Vec::new();
    for entry in entries.iter_mut().filter(is_base) {
        let Value::Object(fields) = entry else { continue };
        let mut substitute = fields.clone();
        substitute.insert("name".to_owned(), name.into());
        if !mainstay_fault::is_on("substitutes-do-not-skip-their-base") {
            add_skip(&mut substitute, base);
        }
        fields.retain(|field, _| field == "name");
        new.push(Value::Object(substitute));
    }
    entries.extend(new.into_iter().rev());
    for entry in &mut entries[..old] {
        let replaces = text(entry, "replaces");
        let Value::Object(fields) = entry else { continue };
        if replaces.as_deref() == Some(base) {
            fields.insert("replaces".to_owned(), name.into());
            add_skip(fields, base);
        } else if let Some(Value::Array(skips)) = fields.get_mut("skips")
            && skips.iter().any(|skip| skip.as_str() == Some(base))
        {
            skips.push(name.into());
            skips.retain(|skip| skip.as_str() != Some(base));
        }
    }
}

/// Adds a name to the `skips` of an entry.
fn add_skip(entry: &mut Map<String, Value>, name: &str) {
    let skips = entry.entry("skips").or_insert_with(|| json!([]));
    if !skips.is_array() {
        *skips = json!([]);
    }
    if let Value::Array(skips) = skips {
        skips.push(name.into());
    }
}

/// Version and release of a bundle. `csv` is its ClusterServiceVersion, if it is known.
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
    // The build metadata of a substitute is its release.
    if let Err(source) = BundleRelease::parse(build) {
        return Err(BundleReleaseError::BuildMetadata { bundle: bundle(), source });
    }
    Ok(VersionRelease::parse_legacy(version)?)
}

/// Whether a bundle names a bundle that it substitutes, in its ClusterServiceVersion or else in the
/// first property that may name it.
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
    if let Some(csv) = objects.find_map(|object| crate::migrate::find_csv(&object["value"])) {
        return says(&csv);
    }
    for property in properties {
        if is(&property, crate::model::CSV_METADATA) {
            let annotations = &property["value"]["annotations"];
            if annotations[ANNOTATION].as_str().is_some_and(|text| !text.is_empty()) {
                return true;
            }
        } else if is(&property, crate::model::BUNDLE_OBJECT) {
            let data = crate::case_fold::get(&property["value"], "data").and_then(Value::as_str);
            let bytes = data.and_then(|data| decode_base64(data).ok());
            if let Some(object) = bytes.and_then(|data| serde_json::from_slice::<Value>(&data).ok())
            {
                return says(&object);
            }
        }
    }
    false
}
