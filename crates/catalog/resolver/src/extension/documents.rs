//! Package documents: the content of a package from the documents of a served catalog.
//!
//! Unlike [`mainstay_catalog`], this reader does not validate: catalogs of OLM v1 are served unvalidated, and
//! a resolution fails only because of the package that it asks for.

use super::package_content::{PackageBundle, PackageContent, PackageProperty};
use mainstay_updates::{EntryEdges, Graph, GraphBuilder};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// A document of any schema: its fields that count for resolution.
#[derive(Deserialize)]
struct Document<'d> {
    #[serde(default, deserialize_with = "default_if_null")]
    schema: String,
    #[serde(default, deserialize_with = "default_if_null")]
    package: String,
    #[serde(default, deserialize_with = "default_if_null")]
    name: String,
    #[serde(default, deserialize_with = "default_if_null")]
    image: String,
    /// Entries of a channel, or deprecations.
    #[serde(borrow, default)]
    entries: Option<&'d RawValue>,
    #[serde(borrow, default)]
    properties: Option<&'d RawValue>,
}

/// An entry of a channel.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ChannelEntry {
    #[serde(deserialize_with = "default_if_null")]
    name: String,
    #[serde(deserialize_with = "default_if_null")]
    replaces: String,
    #[serde(deserialize_with = "default_if_null")]
    skips: Vec<Option<String>>,
    #[serde(deserialize_with = "default_if_null")]
    skip_range: String,
}

/// A deprecation.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Deprecation {
    #[serde(deserialize_with = "default_if_null")]
    reference: Reference,
    #[serde(deserialize_with = "default_if_null")]
    message: String,
}

/// What is deprecated.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Reference {
    #[serde(deserialize_with = "default_if_null")]
    schema: String,
    #[serde(deserialize_with = "default_if_null")]
    name: String,
}

/// A property of a bundle.
#[derive(Deserialize)]
struct Property<'d> {
    #[serde(rename = "type", default, deserialize_with = "default_if_null")]
    kind: String,
    #[serde(borrow)]
    value: &'d RawValue,
}

/// The value of a property `olm.package`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct VersionProperty {
    #[serde(deserialize_with = "default_if_null")]
    version: String,
    release: Option<String>,
}

/// Reads a value that Go decodes to its zero value if it is null.
fn default_if_null<'d, T: Default + Deserialize<'d>, D: Deserializer<'d>>(
    decoder: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(decoder)?.unwrap_or_default())
}

/// Reads a package from documents in JSON, one after another: the package itself, its channels, bundles and
/// deprecations. Documents of other packages have no effect. None if there are no documents of the package.
///
/// # Errors
/// Why a document cannot be read.
pub fn read_package(
    package: &str,
    documents: &[u8],
) -> Result<Option<PackageContent>, serde_json::Error> {
    let (mut builder, mut bundles) = (Graph::builder(package), Vec::new());
    let (mut found, mut deprecated) = (false, false);
    for document in serde_json::Deserializer::from_slice(documents).into_iter() {
        let document: Document<'_> = document?;
        if document.owner() != package {
            continue;
        }
        found = true;
        match document.schema.as_str() {
            "olm.channel" => builder = add_channel(builder, &document)?,
            "olm.bundle" => {
                let bundle = read_bundle(&document)?;
                builder = builder.bundle(&bundle.name, &bundle.version);
                bundles.push(bundle);
            }
            // Upstream reads only the first one.
            "olm.deprecations" if !deprecated => {
                builder = deprecate(builder, &document)?;
                deprecated = true;
            }
            _ => {}
        }
    }
    Ok(found.then(|| PackageContent::new(builder.finish(), bundles)))
}

/// Reads all packages of a catalog from its documents in JSON, one after another, as [`read_package`] reads
/// one: by name, each with its content or the reason why that cannot be read.
///
/// # Errors
/// Why a document cannot be read.
pub fn read_packages(
    documents: &[u8],
) -> Result<BTreeMap<String, Result<PackageContent, String>>, serde_json::Error> {
    let mut by_package: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for document in serde_json::Deserializer::from_slice(documents).into_iter() {
        let text: &RawValue = document?;
        let document: Document<'_> = serde_json::from_str(text.get())?;
        let lines = by_package.entry(document.owner().to_owned()).or_default();
        lines.extend_from_slice(text.get().as_bytes());
        lines.push(b'\n');
    }
    let read = by_package.into_iter().filter_map(|(package, lines)| {
        let content = read_package(&package, &lines).map_err(|error| error.to_string());
        Some((package, content.transpose()?))
    });
    Ok(read.collect())
}

impl Document<'_> {
    /// The package of the document; that of a package is its own name.
    fn owner(&self) -> &str {
        if self.schema == "olm.package" { &self.name } else { &self.package }
    }
}

/// The list in a field; an absent one is empty.
fn list<'d, T: Deserialize<'d>>(field: Option<&'d RawValue>) -> Result<Vec<T>, serde_json::Error> {
    let items: Option<Option<Vec<T>>> =
        field.map(|list| serde_json::from_str(list.get())).transpose()?;
    Ok(items.flatten().unwrap_or_default())
}

fn add_channel(
    mut builder: GraphBuilder,
    channel: &Document<'_>,
) -> Result<GraphBuilder, serde_json::Error> {
    for entry in list::<ChannelEntry>(channel.entries)? {
        let skips: Vec<&str> = entry.skips.iter().flatten().map(String::as_str).collect();
        let edges = EntryEdges {
            replaces: (!entry.replaces.is_empty()).then_some(&*entry.replaces),
            skips: &skips,
            skip_range: (!entry.skip_range.is_empty()).then_some(&*entry.skip_range),
        };
        builder = builder.entry(&channel.name, &entry.name, edges);
    }
    Ok(builder)
}

fn read_bundle(document: &Document<'_>) -> Result<PackageBundle, serde_json::Error> {
    let mut bundle = PackageBundle {
        name: document.name.as_str().into(),
        image: document.image.as_str().into(),
        ..PackageBundle::default()
    };
    let mut has_version = false;
    for property in list::<Property<'_>>(document.properties)? {
        if property.kind == "olm.package" && !has_version {
            has_version = true;
            let value: VersionProperty = serde_json::from_str(property.value.get())?;
            bundle.version = value.version.into();
            bundle.release = value.release.map(Into::into);
        }
        if PackageBundle::is_kept_property(&property.kind) {
            let json = property.value.get().into();
            bundle.properties.push(PackageProperty { kind: property.kind.into(), json });
        }
    }
    Ok(bundle)
}

fn deprecate(
    mut builder: GraphBuilder,
    document: &Document<'_>,
) -> Result<GraphBuilder, serde_json::Error> {
    for Deprecation { reference, message } in list::<Deprecation>(document.entries)? {
        builder = match reference.schema.as_str() {
            "olm.package" => builder.deprecate_package(&message),
            "olm.channel" => builder.deprecate_channel(&reference.name, &message),
            "olm.bundle" => builder.deprecate_bundle(&reference.name, &message),
            _ => builder,
        };
    }
    Ok(builder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extension::{
        ExtensionRequest, InputCatalog, InputCatalogContent, InstalledExtensionBundle, resolve,
    };

    const LINES: &str = concat!(
        r#"{"schema":"olm.package","name":"a","defaultChannel":"stable"}"#,
        "\n",
        r#"{"schema":"olm.channel","package":"a","name":"stable","entries":[{"name":"a.v1"},{"name":"a.v2","replaces":"a.v1","skips":null},{"name":"a.v3","skipRange":"<2.0.0"}]}"#,
        "\n",
        r#"{"schema":"olm.bundle","package":"a","name":"a.v1","image":"i1","properties":[{"type":"olm.package","value":{"packageName":"a","version":"1.0.0"}}]}"#,
        "\n",
        r#"{"schema":"olm.bundle","package":"a","name":"a.v2","image":"i2","properties":[{"type":"olm.package","value":{"packageName":"a","version":"2.0.0"}}]}"#,
        "\n",
        r#"{"schema":"olm.bundle","package":"a","name":"a.v3","image":"i3","properties":[{"type":"olm.package","value":{"packageName":"a","version":"3.0.0"}},{"type":"olm.gvk.required","value":{}}]}"#,
        "\n",
        r#"{"schema":"olm.deprecations","package":"a","entries":[{"reference":{"schema":"olm.package"},"message":"old"},{"reference":{"schema":"olm.bundle","package":"a","name":"a.v3"},"message":"bad"}]}"#,
        "\n",
    );

    #[test]
    fn package_is_read_with_its_edges_deprecations_and_dependencies() {
        let content = read_package("a", LINES.as_bytes()).unwrap().unwrap();
        let deprecation = content.deprecation();
        assert_eq!(deprecation.package.as_deref(), Some("old"));
        assert_eq!(deprecation.bundles.keys().map(|name| &**name).collect::<Vec<_>>(), ["a.v3"]);
        let dependencies: Vec<_> =
            content.bundles().map(|bundle| bundle.dependencies().count()).collect();
        assert_eq!(dependencies, [0, 0, 1]);
        let request = ExtensionRequest { package: "a".to_owned(), ..ExtensionRequest::default() };
        let catalogs = [InputCatalog::new("c", InputCatalogContent::Package(Some(&content)))];
        let installed = InstalledExtensionBundle {
            name: "a.v1".to_owned(),
            version: "1.0.0".to_owned(),
            release: None,
        };
        let choice = resolve(&request, Some(&installed), &catalogs).unwrap();
        // A deprecated successor counts only if there is no other.
        assert_eq!((&*choice.bundle, &*choice.image), ("a.v2", "i2"));
    }

    /// As Go decodes them.
    #[test]
    fn null_is_an_empty_field() {
        let lines = concat!(
            r#"{"schema":"olm.package","name":"a","image":null,"entries":null}"#,
            "\n",
            r#"{"schema":"olm.channel","package":"a","name":"stable","entries":[{"name":"a.v1","replaces":null,"skips":[null],"skipRange":null},{"name":"a.v2","replaces":"a.v1"}]}"#,
            "\n",
            r#"{"schema":"olm.bundle","package":"a","name":"a.v1","image":null,"properties":[{"type":"olm.package","value":{"packageName":"a","version":"1.0.0","release":null}}]}"#,
            "\n",
            r#"{"schema":"olm.deprecations","package":"a","entries":[{"reference":null,"message":null}]}"#,
            "\n",
        );
        let content = read_package("a", lines.as_bytes()).unwrap().unwrap();
        let bundles: Vec<_> = content.bundles().map(|one| (&*one.name, &*one.version)).collect();
        assert_eq!(bundles, [("a.v1", "1.0.0")]);
        assert!(content.deprecation().bundles.is_empty());
    }

    #[test]
    fn absent_package_has_no_content_and_a_wrong_type_is_an_error() {
        assert!(read_package("a", b"").unwrap().is_none());
        let wrong = br#"{"schema":"olm.channel","package":"a","name":"x","entries":[{"name":1}]}"#;
        assert!(read_package("a", wrong).is_err());
    }
}
