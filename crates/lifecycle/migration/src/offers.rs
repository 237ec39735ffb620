//! What ClusterCatalogs offer of a package.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What a ClusterCatalog offers of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogOffer {
    /// The name of the ClusterCatalog.
    pub catalog: String,
    /// Its priority.
    pub priority: i64,
    /// The package; none if the catalog does not have it. An error tells why the catalog cannot be read.
    pub package: Result<Option<PackageOffer>, String>,
}

/// A package of a catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackageOffer {
    /// The default channel.
    pub default_channel: String,
    /// The names of bundles by channel.
    pub channels: BTreeMap<String, BTreeSet<String>>,
    /// The bundles by name.
    pub bundles: BTreeMap<String, OfferedBundle>,
}

/// A bundle of a catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfferedBundle {
    /// The version of its property `olm.package`.
    pub version: String,
    /// The reference of its image.
    pub image: String,
}

/// The documents of a catalog are not JSON.
#[derive(Debug, thiserror::Error)]
#[error("the documents are no JSON: {0}")]
pub struct ParseOfferError(#[from] serde_json::Error);

impl PackageOffer {
    /// Finds a package in the documents of a catalog, one JSON object after another. None if the package is
    /// not there.
    ///
    /// # Errors
    /// The documents are not JSON.
    pub fn parse(package: &str, documents: &[u8]) -> Result<Option<Self>, ParseOfferError> {
        let (mut offer, mut is_there) = (Self::default(), false);
        for document in serde_json::Deserializer::from_slice(documents).into_iter::<Value>() {
            let document = document?;
            let text = |field: &str| document[field].as_str().unwrap_or_default();
            let name = text("name").to_owned();
            match text("schema") {
                "olm.package" if name == package => {
                    is_there = true;
                    text("defaultChannel").clone_into(&mut offer.default_channel);
                }
                "olm.channel" if text("package") == package => {
                    let entries = document["entries"].as_array().map(Vec::as_slice);
                    let entries = entries.unwrap_or_default().iter();
                    let names = entries.filter_map(|entry| entry["name"].as_str());
                    offer.channels.entry(name).or_default().extend(names.map(str::to_owned));
                }
                "olm.bundle" if text("package") == package => {
                    let properties = document["properties"].as_array().map(Vec::as_slice);
                    let mut properties = properties.unwrap_or_default().iter();
                    let version = properties.find(|property| property["type"] == "olm.package");
                    let version = version.and_then(|found| found["value"]["version"].as_str());
                    let version = version.unwrap_or_default().to_owned();
                    let image = text("image").to_owned();
                    offer.bundles.insert(name, OfferedBundle { version, image });
                }
                _ => {}
            }
        }
        Ok(is_there.then_some(offer))
    }

    /// The bundle of a name, if the channel has it. An empty channel means any.
    fn bundle(&self, name: &str, channel: &str) -> Option<&OfferedBundle> {
        let is_in_channel = channel.is_empty()
            || self.channels.get(channel).is_some_and(|entries| entries.contains(name));
        self.bundles.get(name).filter(|bundle| is_in_channel && !bundle.version.is_empty())
    }
}

/// The offer with a bundle: of several, that of the highest priority, then of the first name.
pub fn best_offer<'o>(
    offers: &'o [CatalogOffer],
    bundle: &str,
    channel: &str,
) -> Option<(&'o CatalogOffer, &'o PackageOffer, &'o OfferedBundle)> {
    let mut found: Vec<_> = offers
        .iter()
        .filter_map(|offer| {
            let package = offer.package.as_ref().ok()?.as_ref()?;
            Some((offer, package, package.bundle(bundle, channel)?))
        })
        .collect();
    found.sort_by_key(|(offer, ..)| (std::cmp::Reverse(offer.priority), &offer.catalog));
    found.into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENTS: &str = r#"
        {"schema": "olm.package", "name": "a", "defaultChannel": "stable"}
        {"schema": "olm.channel", "name": "stable", "package": "a", "entries": [{"name": "a.v1"}]}
        {"schema": "olm.channel", "name": "stable", "package": "b", "entries": [{"name": "a.v2"}]}
        {"schema": "olm.bundle", "name": "a.v1", "package": "a", "image": "r/a:1",
         "properties": [{"type": "olm.package", "value": {"packageName": "a", "version": "1.0.0"}}]}
        {"schema": "olm.bundle", "name": "a.v2", "package": "a", "image": "r/a:2",
         "properties": [{"type": "olm.package", "value": {"packageName": "a", "version": "2.0.0"}}]}"#;

    fn offer(catalog: &str, priority: i64) -> CatalogOffer {
        let package = PackageOffer::parse("a", DOCUMENTS.as_bytes()).unwrap();
        CatalogOffer { catalog: catalog.to_owned(), priority, package: Ok(package) }
    }

    #[test]
    fn bundle_counts_in_its_channel_only() {
        let offers = [offer("x", 0)];
        let image = |bundle, channel| {
            best_offer(&offers, bundle, channel).map(|(.., found)| found.image.as_str())
        };
        assert_eq!(image("a.v1", "stable"), Some("r/a:1"));
        assert_eq!(image("a.v2", "stable"), None);
        assert_eq!(image("a.v2", ""), Some("r/a:2"));
        assert_eq!(image("a.v1", "fast"), None);
        assert_eq!(PackageOffer::parse("c", DOCUMENTS.as_bytes()).unwrap(), None);
        assert!(PackageOffer::parse("a", b"<html>").is_err());
    }

    #[test]
    fn catalog_of_the_highest_priority_is_chosen_then_of_the_first_name() {
        let unreadable = CatalogOffer { package: Err("down".to_owned()), ..offer("a", 9) };
        let offers = [offer("z", 1), offer("c", 2), offer("b", 2), unreadable];
        assert_eq!(best_offer(&offers, "a.v1", "").map(|(offer, ..)| &*offer.catalog), Some("b"));
    }
}
