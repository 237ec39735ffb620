//! Joins both sources: adds the markers and protobuf tags of `k8s-pb` to the definitions of
//! `k8s-openapi`, and adds definitions of messages that `k8s-openapi` lacks, which are those of
//! alpha and beta versions and of requests.
//!
//! A field of a message without a JSON name is an inline embed in Go. Its fields belong to the
//! object itself in JSON, and are one message deeper on the wire. So a field has a *path* of tags.

use super::messages::{Count, Message, Messages, Scalar, TaggedField, fold_name};
use super::{Definition, Field, WirePath, leaf, package_of};
use std::collections::{BTreeMap, BTreeSet};

/// Packages whose messages are not part of a cluster's API.
const EXCLUDED_PACKAGES: [&str; 6] = [
    "metrics.",
    "apimachinery.pkg.apis.testapigroup.",
    "apimachinery.pkg.util.",
    "apimachinery.pkg.runtime.",
    "apimachinery.pkg.api.",
    "apimachinery.pkg.version.",
];
/// Go's spelling of names, by folded name.
struct Spelling {
    types: BTreeMap<String, String>,
    fields: BTreeMap<String, String>,
}

/// Joins all messages with the definitions.
pub(super) fn join_all(definitions: &mut BTreeMap<String, Definition>, messages: &Messages) {
    let spelling = Spelling::of(definitions);
    let names: BTreeMap<&str, String> =
        messages.keys().map(|key| (key.as_str(), spelling.definition(key))).collect();
    let mut embeds = BTreeSet::new();
    for (key, message) in messages {
        if let Some(definition) = definitions.get_mut(&names[key.as_str()]) {
            join(definition, message, messages, &mut embeds);
        }
    }
    for (key, message) in messages {
        let name = &names[key.as_str()];
        let foreign = EXCLUDED_PACKAGES.iter().any(|package| key.starts_with(package));
        if foreign || package_of(name).is_empty() || definitions.contains_key(name) {
            continue;
        }
        let is_embed = embeds.iter().any(|(_, embedded)| fold_name(embedded) == fold_name(key));
        if !is_embed {
            let definition =
                definition_of_message(name, message, messages, &names, &spelling, &embeds);
            definitions.insert(name.clone(), definition);
        }
    }
}

impl Spelling {
    fn of(definitions: &BTreeMap<String, Definition>) -> Self {
        let mut types = BTreeMap::new();
        let mut fields = BTreeMap::new();
        for (name, definition) in definitions {
            let short = name.rsplit('.').next().unwrap_or_default();
            types.insert(fold_name(short), short.to_owned());
            for key in definition.fields.keys() {
                fields.insert(fold_name(key), key.clone());
            }
        }
        Self { types, fields }
    }

    fn definition(&self, key: &str) -> String {
        let short = key.rsplit('.').next().unwrap_or_default();
        let short = self.types.get(&fold_name(short)).map_or(short, String::as_str);
        format!("{}.{short}", package_of(key))
    }

    fn field(&self, name: &str) -> String {
        if let Some(known) = self.fields.get(&fold_name(name)) {
            return known.clone();
        }
        let mut out = String::new();
        let mut upper = false;
        for letter in name.chars() {
            if letter == '_' {
                upper = true;
            } else if std::mem::take(&mut upper) {
                out.push(letter.to_ascii_uppercase());
            } else {
                out.push(letter);
            }
        }
        out
    }
}

/// Embedded fields: the names of the field and of its message, both without packages.
type Embeds = BTreeSet<(String, String)>;

fn short(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or_default()
}

fn join(definition: &mut Definition, message: &Message, messages: &Messages, embeds: &mut Embeds) {
    definition.atomic = message.marks.iter().any(|mark| mark == "structType=atomic");
    if definition.leaf.is_some() {
        return;
    }
    let known: BTreeSet<String> = definition.fields.keys().map(|key| fold_name(key)).collect();
    let mut found = BTreeMap::new();
    collect(message, messages, &known, &mut WirePath::default(), &mut found, embeds);
    for (key, field) in &mut definition.fields {
        if let Some((place, tagged)) = found.get(&fold_name(key)) {
            field.place.clone_from(place);
            for mark in &tagged.marks {
                super::option(field, mark);
            }
        }
    }
}

/// Collects every field with a JSON name, with its path of tags.
fn collect<'a>(
    message: &'a Message,
    messages: &'a Messages,
    known: &BTreeSet<String>,
    place: &mut WirePath,
    found: &mut BTreeMap<String, (WirePath, &'a TaggedField)>,
    embeds: &mut Embeds,
) {
    for field in &message.fields {
        place.tags.push(field.tag);
        let key = fold_name(&field.name);
        if known.contains(&key) {
            found.entry(key).or_insert_with(|| (place.clone(), field));
        } else if let Some((name, inner)) =
            field.single().and_then(|name| Some((name, messages.get(name)?)))
        {
            // An embed has a known field; otherwise it is a field that `k8s-openapi` lacks.
            let embed = inner
                .fields
                .iter()
                .any(|field| known.contains(&fold_name(&field.name)) || field.single().is_some());
            if embed && place.tags.len() < 4 {
                embeds.insert((key, short(name).to_owned()));
                place.embeds.push(short(name).to_owned());
                collect(inner, messages, known, place, found, embeds);
                place.embeds.pop();
            }
        }
        place.tags.pop();
    }
}

/// The definition of a message that `k8s-openapi` lacks.
fn definition_of_message(
    name: &str,
    message: &Message,
    messages: &Messages,
    names: &BTreeMap<&str, String>,
    spelling: &Spelling,
    embeds: &Embeds,
) -> Definition {
    let mut definition = Definition {
        leaf: leaf(name),
        atomic: message.marks.iter().any(|mark| mark == "structType=atomic"),
        unserved: true,
        ..Definition::default()
    };
    if definition.leaf.is_none() {
        let maker = Maker { owner: name, messages, names, spelling, embeds };
        maker.fields(message, &mut WirePath::default(), &mut definition.fields);
    }
    definition
}

struct Maker<'a> {
    owner: &'a str,
    messages: &'a Messages,
    names: &'a BTreeMap<&'a str, String>,
    spelling: &'a Spelling,
    embeds: &'a Embeds,
}

impl Maker<'_> {
    fn fields(&self, message: &Message, place: &mut WirePath, into: &mut BTreeMap<String, Field>) {
        for tagged in &message.fields {
            place.tags.push(tagged.tag);
            let embedded = tagged
                .single()
                .filter(|name| {
                    self.embeds.contains(&(fold_name(&tagged.name), short(name).to_owned()))
                })
                .and_then(|name| Some((name, self.messages.get(name)?)));
            if let Some((name, inner)) = embedded {
                place.embeds.push(short(name).to_owned());
                self.fields(inner, place, into);
                place.embeds.pop();
            } else {
                let mut field = Field {
                    kind: self.kind(tagged),
                    required: true,
                    place: place.clone(),
                    ..Field::default()
                };
                for mark in &tagged.marks {
                    super::option(&mut field, mark);
                }
                into.insert(self.spelling.field(&tagged.name), field);
            }
            place.tags.pop();
        }
    }

    fn kind(&self, tagged: &TaggedField) -> String {
        let plain = match &tagged.scalar {
            Scalar::Letter(letter) => letter.to_string(),
            Scalar::Message(key) => self.message_kind(key),
        };
        match tagged.count {
            Count::One => plain,
            Count::Many => format!("[{plain}"),
            Count::Map => format!("{{{plain}"),
        }
    }

    /// A definition, or a list of strings, if Go's type is that and only protobuf needs a message.
    fn message_kind(&self, key: &str) -> String {
        if matches!(short(key), "ExtraValue" | "Verbs") {
            return "[s".to_owned();
        }
        let name = self.names.get(key).map_or(key, String::as_str);
        match name.strip_prefix(package_of(self.owner)).and_then(|name| name.strip_prefix('.')) {
            Some(short) if !short.contains('.') => format!("@{short}"),
            _ => format!("@{name}"),
        }
    }
}
