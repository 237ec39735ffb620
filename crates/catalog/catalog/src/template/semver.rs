//! Semver templates: channels and updates that follow from versions.
//!
//! Three groups of bundles (candidate, fast, stable) become channels by major version, by minor
//! version, or both. In a channel only the last patch of each minor version has updates. It
//! replaces the last patch of the previous minor version, and skips all other lower versions of its
//! major version.

use super::{
    ImageBundle, SemverError, TemplateDecodeError, TemplateError, TemplateKind,
    TemplateUnmarshalError, VersionsError,
};
use crate::{
    CatalogDocuments, Rendition,
    decode::{self, BundleFacts, Facts},
    load::LoadOptions,
    read, shape, syntax,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use mainstay_gocompat::decode_base64;
use mainstay_gocompat::json::is_same_field as same;
use mainstay_gocompat::values;
use mainstay_schema::gojson::{self, DeclaredStruct, DeclaredType as Field};
use mainstay_version::Version;
use mainstay_yaml::{DocumentFormat, DuplicateKeys, Options};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

static SHAPE: DeclaredStruct = DeclaredStruct {
    name: "SemverTemplateData",
    spelled: "semver.SemverTemplateData",
    fields: &[
        ("schema", Field::Text),
        ("generateMajorChannels", Field::Bool),
        ("generateMinorChannels", Field::Bool),
        ("defaultChannelTypePreference", Field::Named("semver.StreamType")),
        ("candidate", Field::Struct(&GROUP)),
        ("fast", Field::Struct(&GROUP)),
        ("stable", Field::Struct(&GROUP)),
    ],
};

static GROUP: DeclaredStruct = DeclaredStruct {
    name: "channelBundles",
    spelled: "semver.channelBundles",
    fields: &[("bundles", Field::List(&Field::Struct(&BUNDLE)))],
};

static BUNDLE: DeclaredStruct = DeclaredStruct {
    name: "bundleEntry",
    spelled: "semver.bundleEntry",
    fields: &[("image", Field::Text)],
};

/// The groups, the least stable first.
const GROUPS: [&str; 3] = ["candidate", "fast", "stable"];

/// The type of a channel, in the order of preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stream {
    Major,
    Minor,
}

/// The settings and images of a template.
struct Template {
    major: bool,
    minor: bool,
    preference: Stream,
    /// The images of each group.
    groups: [Vec<String>; 3],
}

/// Renders a template.
pub(super) async fn render<E>(
    text: &[u8],
    images: &mut impl AsyncFnMut(&str) -> Result<ImageBundle, E>,
) -> Result<Rendition, TemplateError<E>> {
    let template = Template::read(text)?;
    let mut bundles: BTreeMap<&str, ImageBundle> = BTreeMap::new();
    let mut all = Rendition::default();
    for image in template.groups.iter().flatten() {
        if !bundles.contains_key(image.as_str()) {
            let bundled = images(image).await.map_err(TemplateError::Image)?;
            all.add(&bundled.bundle);
            bundles.insert(image, bundled);
        }
    }
    if bundles.is_empty() {
        return Err(TemplateError::NoBundles);
    }
    let mut package = None;
    let mut groups = Vec::new();
    for group in &template.groups {
        groups.push(versions(group, &bundles, &mut package)?);
    }
    let package = package.unwrap_or_default();
    let Channels { default, mut channels } = template.channels(&groups);
    set_updates(&mut channels);
    let head = channels.get(&default).and_then(|channel| channel.entries.last());
    let head =
        head.and_then(|entry| bundles.values().find(|bundled| *bundled.bundle.name == *entry.name));
    let mut documents = vec![package_document(&package, &default, head)];
    for (name, channel) in &channels {
        documents.push(channel.document(&package, name));
    }
    let documents = documents.into_iter().enumerate();
    let declared = CatalogDocuments::of(documents.map(|(at, value)| (super::origin(at), value)))
        .map_err(TemplateError::Made)?;
    all.append(Rendition::of(&declared));
    Ok(all)
}

impl Template {
    fn read(text: &[u8]) -> Result<Self, SemverError> {
        let mut value = document(text)?;
        gojson::convert_scalars_to_text(&mut value, &Field::Struct(&SHAPE));
        let fields = match value {
            Value::Object(fields) => fields,
            Value::Null => Map::new(),
            other => {
                let (found, expected) = (values::json_kind(&other), SHAPE.spelled);
                return Err(TemplateUnmarshalError::NoObject { found, expected }.into());
            }
        };
        shape::check_fields(&fields, &SHAPE, true).map_err(TemplateUnmarshalError::Shape)?;
        if super::input::text(&fields, "schema") != TemplateKind::Semver.schema() {
            return Err(SemverError::Schema);
        }
        let is_on = |field: &str| {
            let found = fields.iter().filter(|(name, _)| same(name, field));
            found.filter_map(|(_, value)| value.as_bool()).next_back().unwrap_or_default()
        };
        let (major, minor) = (is_on("generateMajorChannels"), is_on("generateMinorChannels"));
        let minor = minor || !major;
        let preference = match super::input::text(&fields, "defaultChannelTypePreference") {
            "" | "minor" if minor => Stream::Minor,
            "" => Stream::Major,
            "major" if major => Stream::Major,
            preference @ ("minor" | "major") => {
                return Err(SemverError::NotGenerated { preference: preference.to_owned() });
            }
            other => {
                return Err(SemverError::UnknownPreference { preference: other.to_owned() });
            }
        };
        let empty = Map::new();
        let images = |group: &str| -> Vec<String> {
            let found = fields.iter().filter(|(name, _)| same(name, group));
            let group =
                found.filter_map(|(_, value)| value.as_object()).next_back().unwrap_or(&empty);
            let image = |bundle: &Value| {
                let fields = bundle.as_object().unwrap_or(&empty);
                super::input::text(fields, "image").to_owned()
            };
            super::input::list(group, "bundles").iter().map(image).collect()
        };
        Ok(Self { major, minor, preference, groups: GROUPS.map(images) })
    }

    /// The channels of all groups, with entries without updates, and the name of the default
    /// channel. The most stable group wins, then the channel with the highest first version, then
    /// the preferred type.
    fn channels(&self, groups: &[BTreeMap<String, Version>]) -> Channels {
        let mut channels: BTreeMap<String, Channel> = BTreeMap::new();
        let mut best = (0, Version::new(0, 0, 0), None::<(bool, Stream)>);
        let mut default = String::new();
        for (group, bundles) in groups.iter().enumerate() {
            let mut sorted: Vec<(&String, &Version)> = bundles.iter().collect();
            sorted.sort_by(|a, b| a.1.cmp(b.1));
            for (bundle, version) in sorted {
                let streams = [(Stream::Major, self.major), (Stream::Minor, self.minor)];
                for (stream, _) in streams.into_iter().filter(|(_, wanted)| *wanted) {
                    let numbers = version.as_semver();
                    let name = match stream {
                        Stream::Major => format!("{}-v{}", GROUPS[group], numbers.major),
                        Stream::Minor => {
                            format!("{}-v{}.{}", GROUPS[group], numbers.major, numbers.minor)
                        }
                    };
                    let channel = channels.entry(name.clone()).or_insert_with(|| {
                        let preferred = (stream == self.preference, stream);
                        let rank = (group, version.clone(), Some(preferred));
                        if rank > best || mainstay_fault::is_on("the-last-channel-is-the-default") {
                            best = rank;
                            default = name;
                        }
                        Channel { group, stream, entries: Vec::new() }
                    });
                    let (name, version) = (bundle.clone(), version.clone());
                    channel.entries.push(Entry {
                        name,
                        version,
                        replaces: None,
                        skips: Vec::new(),
                    });
                }
            }
        }
        Channels { default, channels }
    }
}

/// The first document of a text, parsed strictly: repeated keys are an error.
fn document(text: &[u8]) -> Result<Value, SemverError> {
    let yaml_options = Options {
        duplicate_keys: DuplicateKeys::Note,
        ..read::yaml_options(&LoadOptions::default(), false)
    };
    let bytes = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let read = match std::str::from_utf8(bytes) {
        Ok(text) => {
            mainstay_yaml::documents_of_part(text, DocumentFormat::Yaml, 1, &yaml_options).next()
        }
        Err(_) => mainstay_yaml::documents(bytes, &yaml_options).next(),
    };
    match read {
        None => Ok(Value::Null),
        Some(Err(source)) => {
            let upstream = syntax::words(bytes, 0, &source);
            Err(TemplateDecodeError::Syntax { upstream, source }.into())
        }
        Some(Ok(document)) if document.repeated_keys.is_empty() => Ok(document.value),
        Some(Ok(document)) => Err(SemverError::RepeatedKeys(document.repeated_keys)),
    }
}

/// The versions of a group's bundles by name. All bundles of a template belong to one package.
fn versions(
    images: &[String],
    bundles: &BTreeMap<&str, ImageBundle>,
    package: &mut Option<String>,
) -> Result<BTreeMap<String, Version>, VersionsError> {
    let mut versions: BTreeMap<String, Version> = BTreeMap::new();
    for image in images {
        let Some(bundled) = bundles.get(image.as_str()) else { continue };
        let name = &bundled.bundle.name;
        let facts = facts(bundled)?;
        let (found, version) = facts.version(name)?;
        let package = package.get_or_insert_with(|| found.to_owned());
        if found != package {
            let (found, package) = (found.to_owned(), package.clone());
            return Err(VersionsError::OtherPackage { found, package });
        }
        if versions.insert(name.clone(), version).is_some() {
            return Err(VersionsError::DuplicateName { bundle: name.clone() });
        }
    }
    let mut seen = BTreeSet::new();
    let mut same: Vec<(String, String)> = Vec::new();
    for version in versions.values() {
        let plain = version.clone().without_build().to_string();
        let pair = (version.to_string(), plain.clone());
        if !seen.insert(plain) && !same.contains(&pair) {
            same.push(pair);
        }
    }
    if same.is_empty() { Ok(versions) } else { Err(VersionsError::BuildMetadata(same)) }
}

fn facts(bundled: &ImageBundle) -> Result<BundleFacts, VersionsError> {
    let value: Value = serde_json::from_str(&bundled.bundle.json())?;
    let empty = Map::new();
    match decode::facts("olm.bundle", value.as_object().unwrap_or(&empty))? {
        Facts::Bundle(facts) => Ok(facts),
        _ => Ok(BundleFacts::default()),
    }
}

struct Channels {
    default: String,
    channels: BTreeMap<String, Channel>,
}

struct Channel {
    group: usize,
    stream: Stream,
    /// In the order of their versions.
    entries: Vec<Entry>,
}

struct Entry {
    name: String,
    version: Version,
    replaces: Option<String>,
    skips: Vec<String>,
}

impl Channel {
    fn document(&self, package: &str, name: &str) -> Value {
        let entry = |entry: &Entry| {
            json!({
                "name": entry.name,
                "replaces": entry.replaces,
                "skips": entry.skips,
            })
        };
        json!({
            "schema": "olm.channel",
            "package": package,
            "name": name,
            "entries": self.entries.iter().map(entry).collect::<Vec<_>>(),
        })
    }
}

/// Sets the updates of the last patch of each minor version, within one group, channel type and
/// major version.
fn set_updates(channels: &mut BTreeMap<String, Channel>) {
    let mut all: Vec<&mut Channel> = channels.values_mut().collect();
    // A channel holds all of a minor version or of a major one, so versions do not overlap.
    let first = |channel: &Channel| channel.entries.first().map(|entry| entry.version.clone());
    all.sort_by_cached_key(|channel| (channel.group, channel.stream, first(channel)));
    let mut run = None;
    let (mut below, mut last): (BTreeSet<String>, Option<String>) = (BTreeSet::new(), None);
    for channel in all {
        let (group, stream) = (channel.group, channel.stream);
        let numbers = |entry: &Entry| {
            let version = entry.version.as_semver();
            (version.major, version.minor)
        };
        for at in 0..channel.entries.len() {
            let (major, minor) = numbers(&channel.entries[at]);
            let here = Some((group, stream, major));
            if run != here {
                (run, last) = (here, None);
                below.clear();
            }
            let next = channel.entries.get(at + 1).map(numbers);
            let is_last = next != Some((major, minor));
            let entry = &mut channel.entries[at];
            if is_last {
                let skips = below.iter().filter(|name| Some(*name) != last.as_ref());
                if !mainstay_fault::is_on("older-patches-are-not-skipped") {
                    entry.skips = skips.cloned().collect();
                }
                entry.replaces = last.replace(entry.name.clone());
            }
            below.insert(entry.name.clone());
        }
    }
}

/// The package document. Description and icon come from the ClusterServiceVersion of `head`.
fn package_document(package: &str, default: &str, head: Option<&ImageBundle>) -> Value {
    let mut document = json!({
        "schema": "olm.package",
        "name": package,
        "defaultChannel": default,
    });
    let spec = head.map_or(&Value::Null, |bundled| &bundled.csv["spec"]);
    if let Some(description) = spec["description"].as_str() {
        document["description"] = description.into();
    }
    if let Some(icon) = spec["icon"].as_array().and_then(|icons| icon(icons)) {
        document["icon"] = icon;
    }
    document
}

/// The first icon; none if any icon is malformed.
fn icon(icons: &[Value]) -> Option<Value> {
    static ICON: DeclaredStruct = DeclaredStruct {
        name: "Icon",
        spelled: "registry.Icon",
        fields: &[("mediatype", Field::Text), ("base64data", Field::Bytes)],
    };
    for icon in icons {
        shape::check(icon, Field::Struct(&ICON)).ok()?;
    }
    let first = icons.first()?;
    let data = match crate::case_fold::get(first, "base64data") {
        Some(Value::String(text)) => STANDARD.encode(decode_base64(text).ok()?).into(),
        Some(other) => other.clone(),
        None => Value::Null,
    };
    Some(json!({ "base64data": data, "mediatype": shape::text(first, "mediatype") }))
}
