//! Properties of random catalogs: splitting, order and formatting of files have no influence.
//!
//! A seed determines each catalog, so a failure can be repeated.

use mainstay_catalog::{
    Catalog, CatalogDocuments, CatalogFormat, LoadError, LoadOptions, MemorySource, Rendition,
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, fmt::Write as _, sync::Arc};

/// How many random catalogs are tested.
const SEEDS: u64 = 120;

/// Random numbers from a seed (`SplitMix64`).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap()
    }

    /// Returns true once in so many times.
    fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }

    fn one<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }
}

/// The documents of a random catalog, some with a fault.
fn catalog(random: &mut Random) -> Vec<Value> {
    let mut documents = Vec::new();
    for package in 0..=random.below(3) {
        let package = format!("package-{package}");
        let versions: Vec<String> =
            (0..=random.below(5)).map(|minor| format!("{}.{minor}.0", random.below(2))).collect();
        let channels: Vec<String> =
            (0..=random.below(2)).map(|number| format!("channel-{number}")).collect();
        let default =
            if random.once_in(20) { "nowhere" } else { &channels[random.below(channels.len())] };
        let mut blob = json!({"schema": "olm.package", "name": package, "defaultChannel": default});
        if random.once_in(2) {
            blob["description"] = "two\nlines: \"and\" a 'quote' # ü\u{1f600}\t<&>\n".into();
        }
        if random.once_in(4) {
            blob["icon"] = json!({"base64data": "PHN2Zy8+", "mediatype": "image/svg+xml"});
        }
        documents.push(blob);
        for channel in &channels {
            documents.push(self::channel(random, &package, channel, &versions));
        }
        for version in &versions {
            documents.push(bundle(random, &package, version));
        }
        if random.once_in(3) {
            let mut entries =
                vec![json!({"reference": {"schema": "olm.package"}, "message": "end"})];
            if random.once_in(2) {
                let name = if random.once_in(5) {
                    "nowhere"
                } else {
                    &channels[random.below(channels.len())]
                };
                let reference = json!({"schema": "olm.channel", "name": name});
                entries.push(json!({"reference": reference, "message": "channel ends"}));
            }
            documents.push(
                json!({"schema": "olm.deprecations", "package": package, "entries": entries}),
            );
        }
    }
    for note in 0..random.below(3) {
        let deep = json!([{}, [], null, 1.5, -7, 12_345_678_901_234_567_u64, {"": [true, "yes"]}]);
        documents.push(json!({
            "schema": format!("example.com.note{note}"), "package": "package-0", "x": deep,
        }));
    }
    if random.once_in(6) {
        documents.push(documents[random.below(documents.len())].clone());
    }
    if random.once_in(8) {
        documents.remove(random.below(documents.len()));
    }
    documents
}

fn name(package: &str, version: &str) -> String {
    format!("{package}.v{version}")
}

fn channel(random: &mut Random, package: &str, channel: &str, versions: &[String]) -> Value {
    let mut entries = Vec::new();
    let mut before: Option<&String> = None;
    for version in versions {
        let mut entry = json!({"name": name(package, version)});
        if let Some(before) = before
            && !random.once_in(15)
        {
            entry["replaces"] = name(package, before).into();
        }
        if random.once_in(40) {
            entry["skipRange"] = "nonsense".into();
        }
        if random.once_in(10) {
            entry["skips"] =
                json!([name(package, "0.0.1"), name(package, random.one(versions_of(versions)))]);
        }
        if random.once_in(4) {
            entry["skipRange"] = random.one(&["<1.0.0", ">=0.1.0 <1.2.0", "1.x"]).into();
        }
        entries.push(entry);
        before = Some(version);
    }
    json!({"schema": "olm.channel", "package": package, "name": channel, "entries": entries})
}

fn versions_of(versions: &[String]) -> &[&str] {
    // Some of them exist, and some do not.
    const SOME: &[&str] = &["0.0.0", "0.1.0", "1.0.0", "1.1.0"];
    &SOME[..versions.len().min(SOME.len())]
}

fn bundle(random: &mut Random, package: &str, version: &str) -> Value {
    let said = if random.once_in(25) { "1.0" } else { version };
    let mut properties = vec![
        json!({"type": "olm.package", "value": {"packageName": package, "version": said}}),
        json!({"type": "olm.gvk", "value": {"group": "g.example.com", "version": "v1", "kind": "K"}}),
        json!({"type": "example.com.other", "value": [1, {"b": 2.5, "a": "é"}, null]}),
    ];
    if random.once_in(30) {
        properties.remove(0);
    }
    let mut blob = json!({
        "schema": "olm.bundle", "package": package, "name": name(package, version),
        "image": "example.com/i:v1", "properties": properties,
        "relatedImages": [{"name": "", "image": "example.com/i:v1"}],
    });
    if random.once_in(30) {
        blob["image"] = "".into();
    }
    blob
}

/// The same documents in other files, order and formatting.
fn render(random: &mut Random, mut documents: Vec<Value>) -> Vec<(String, String)> {
    random.shuffle(&mut documents);
    let files = 1 + random.below(4);
    let mut texts = vec![(random.once_in(2), String::new()); files];
    for document in &documents {
        let (json, text) = &mut texts[random.below(files)];
        if *json {
            write_json(random, document, text);
            text.push_str(random.one(&["\n", "", " \t\n"]));
        } else {
            text.push_str("---\n");
            block(random, document, 0, text);
        }
    }
    let named = texts.into_iter().enumerate().map(|(at, (json, text))| {
        let folder = random.one(&["", "a/", "b/c/", ".d/"]);
        let end = random.one(if json { &["json", "yaml"] } else { &["yaml", "txt"] });
        (format!("{folder}{at}.{end}"), text)
    });
    named.collect()
}

/// The fields of an object in random order.
fn keys<'v>(
    random: &mut Random,
    fields: &'v serde_json::Map<String, Value>,
) -> Vec<(&'v String, &'v Value)> {
    let mut fields: Vec<_> = fields.iter().collect();
    random.shuffle(&mut fields);
    fields
}

/// Writes JSON with random blanks.
fn write_json(random: &mut Random, value: &Value, out: &mut String) {
    let gap = |random: &mut Random| random.one(&["", "", " ", "\n  "]);
    match value {
        Value::Object(fields) => {
            out.push('{');
            for (at, (key, value)) in keys(random, fields).into_iter().enumerate() {
                let comma = if at == 0 { "" } else { "," };
                write!(out, "{comma}{}{}:{}", gap(random), Value::from(key.as_str()), gap(random))
                    .unwrap();
                write_json(random, value, out);
            }
            out.push_str(gap(random));
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (at, value) in items.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                out.push_str(gap(random));
                write_json(random, value, out);
            }
            out.push_str(gap(random));
            out.push(']');
        }
        other => write!(out, "{other}").unwrap(),
    }
}

/// Writes YAML in blocks, each ending its line, some values as JSON.
fn block(random: &mut Random, value: &Value, indent: usize, out: &mut String) {
    let blanks = |out: &mut String, count: usize| out.extend(std::iter::repeat_n(' ', count));
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (key, value) in keys(random, fields) {
                blanks(out, indent);
                let plain = key.bytes().all(|byte| byte.is_ascii_alphanumeric()) && key.len() > 1;
                if plain && !random.once_in(3) {
                    write!(out, "{key}:").unwrap();
                } else {
                    write!(out, "{}:", Value::from(key.as_str())).unwrap();
                }
                below(random, value, indent + 2, out);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for value in items {
                blanks(out, indent);
                out.push('-');
                below(random, value, indent + 2, out);
            }
        }
        other => {
            blanks(out, indent);
            writeln!(out, "{other}").unwrap();
        }
    }
}

fn below(random: &mut Random, value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::String(text) if text.ends_with("\t<&>\n") && random.once_in(2) => {
            out.push_str(" |\n");
            for line in text.lines() {
                writeln!(out, "{:indent$}{line}", "").unwrap();
            }
        }
        Value::Object(fields) if !fields.is_empty() => {
            out.push('\n');
            block(random, value, indent, out);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            block(random, value, indent, out);
        }
        other => writeln!(out, " {other}").unwrap(),
    }
}

fn load(files: &[(String, String)]) -> Result<Arc<Catalog>, LoadError> {
    let files: MemorySource = files.iter().cloned().collect();
    Catalog::load_from(&files, &LoadOptions::default())
}

/// The result without places: the digest, or the problems. Upstream stops at its first error, which
/// depends on the order, unless it reports the tree of all findings.
fn load_digest(files: &[(String, String)]) -> Result<String, (BTreeSet<String>, String)> {
    load(files).map(|catalog| catalog.digest().to_owned()).map_err(|error| {
        let problems =
            error.problems.iter().map(|problem| format!("{:?}: {}", problem.rule, problem.message));
        let upstream = Some(error.upstream()).filter(|words| words.starts_with("invalid index"));
        (problems.collect(), upstream.unwrap_or_default())
    })
}

#[test]
fn result_does_not_depend_on_files_order_and_formatting() {
    let (mut sound, mut wrong) = (0, 0);
    for seed in 0..SEEDS {
        let mut random = Random(seed);
        let documents = catalog(&mut random);
        let plain: String = documents
            .iter()
            .map(|document| format!("---\n{document}\n"))
            .collect::<Vec<_>>()
            .concat();
        let first = load_digest(&[("c.yaml".to_owned(), plain)]);
        match first {
            Ok(_) => sound += 1,
            Err(_) => wrong += 1,
        }
        for _ in 0..3 {
            let files = render(&mut random, documents.clone());
            assert_eq!(load_digest(&files), first, "seed {seed}: {files:#?}");
        }
    }
    assert!(sound > 30 && wrong > 30, "{sound} sound, {wrong} wrong: the dice are loaded");
}

/// A whole catalog as it is written.
fn render_catalog(files: &[(String, String)], format: CatalogFormat) -> String {
    let files: MemorySource = files.iter().cloned().collect();
    let declared = CatalogDocuments::read(&files, &LoadOptions::default()).unwrap();
    let mut out = Vec::new();
    Rendition::of(&declared).write(format, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn rendering_does_not_depend_on_formatting_and_is_stable() {
    let formats = [("json", CatalogFormat::Json), ("yaml", CatalogFormat::Yaml)];
    let mut sound = 0;
    for seed in 0..SEEDS {
        let mut random = Random(seed);
        let documents = catalog(&mut random);
        let files = render(&mut random, documents.clone());
        if load(&files).is_err() {
            continue;
        }
        sound += 1;
        let others = render(&mut random, documents);
        for (_, format) in formats {
            let text = render_catalog(&files, format);
            assert_eq!(
                render_catalog(&others, format),
                text,
                "seed {seed}: {files:#?} {others:#?}"
            );
            // The written catalog gives the same text again, from either format.
            for (name, first) in formats {
                let again = vec![(format!("c.{name}"), render_catalog(&files, first))];
                assert_eq!(render_catalog(&again, format), text, "seed {seed} by {name}");
            }
        }
    }
    assert!(sound > 30, "{sound} sound");
}
