//! Properties of random catalogs: splitting, order and formatting of files have no influence.
//!
//! A seed determines each catalog, so a failure can be repeated.

use mainstay_catalog::{Catalog, Declared, Files, Format, LoadError, LoadOptions, Rendition};
use serde_json::{Value, json};
use std::{collections::BTreeSet, fmt::Write as _, sync::Arc};

/// How many random catalogs are tested.
const SEEDS: u64 = 120;

/// Random numbers from a seed (`SplitMix64`).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
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
fn catalog(dice: &mut Dice) -> Vec<Value> {
    let mut documents = Vec::new();
    for package in 0..=dice.below(3) {
        let package = format!("package-{package}");
        let versions: Vec<String> =
            (0..=dice.below(5)).map(|minor| format!("{}.{minor}.0", dice.below(2))).collect();
        let channels: Vec<String> =
            (0..=dice.below(2)).map(|number| format!("channel-{number}")).collect();
        let default =
            if dice.once_in(20) { "nowhere" } else { &channels[dice.below(channels.len())] };
        let mut blob = json!({"schema": "olm.package", "name": package, "defaultChannel": default});
        if dice.once_in(2) {
            blob["description"] = "two\nlines: \"and\" a 'quote' # ü\u{1f600}\t<&>\n".into();
        }
        if dice.once_in(4) {
            blob["icon"] = json!({"base64data": "PHN2Zy8+", "mediatype": "image/svg+xml"});
        }
        documents.push(blob);
        for channel in &channels {
            documents.push(self::channel(dice, &package, channel, &versions));
        }
        for version in &versions {
            documents.push(bundle(dice, &package, version));
        }
        if dice.once_in(3) {
            let mut entries =
                vec![json!({"reference": {"schema": "olm.package"}, "message": "end"})];
            if dice.once_in(2) {
                let name =
                    if dice.once_in(5) { "nowhere" } else { &channels[dice.below(channels.len())] };
                let reference = json!({"schema": "olm.channel", "name": name});
                entries.push(json!({"reference": reference, "message": "channel ends"}));
            }
            documents.push(
                json!({"schema": "olm.deprecations", "package": package, "entries": entries}),
            );
        }
    }
    for note in 0..dice.below(3) {
        let deep = json!([{}, [], null, 1.5, -7, 12_345_678_901_234_567_u64, {"": [true, "yes"]}]);
        documents.push(json!({
            "schema": format!("example.com.note{note}"), "package": "package-0", "x": deep,
        }));
    }
    if dice.once_in(6) {
        documents.push(documents[dice.below(documents.len())].clone());
    }
    if dice.once_in(8) {
        documents.remove(dice.below(documents.len()));
    }
    documents
}

fn name(package: &str, version: &str) -> String {
    format!("{package}.v{version}")
}

fn channel(dice: &mut Dice, package: &str, channel: &str, versions: &[String]) -> Value {
    let mut entries = Vec::new();
    let mut before: Option<&String> = None;
    for version in versions {
        let mut entry = json!({"name": name(package, version)});
        if let Some(before) = before
            && !dice.once_in(15)
        {
            entry["replaces"] = name(package, before).into();
        }
        if dice.once_in(40) {
            entry["skipRange"] = "nonsense".into();
        }
        if dice.once_in(10) {
            entry["skips"] =
                json!([name(package, "0.0.1"), name(package, dice.one(versions_of(versions)))]);
        }
        if dice.once_in(4) {
            entry["skipRange"] = dice.one(&["<1.0.0", ">=0.1.0 <1.2.0", "1.x"]).into();
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

fn bundle(dice: &mut Dice, package: &str, version: &str) -> Value {
    let said = if dice.once_in(25) { "1.0" } else { version };
    let mut properties = vec![
        json!({"type": "olm.package", "value": {"packageName": package, "version": said}}),
        json!({"type": "olm.gvk", "value": {"group": "g.example.com", "version": "v1", "kind": "K"}}),
        json!({"type": "example.com.other", "value": [1, {"b": 2.5, "a": "é"}, null]}),
    ];
    if dice.once_in(30) {
        properties.remove(0);
    }
    let mut blob = json!({
        "schema": "olm.bundle", "package": package, "name": name(package, version),
        "image": "example.com/i:v1", "properties": properties,
        "relatedImages": [{"name": "", "image": "example.com/i:v1"}],
    });
    if dice.once_in(30) {
        blob["image"] = "".into();
    }
    blob
}

/// The same documents in other files, order and formatting.
fn written(dice: &mut Dice, mut documents: Vec<Value>) -> Vec<(String, String)> {
    dice.shuffle(&mut documents);
    let files = 1 + dice.below(4);
    let mut texts = vec![(dice.once_in(2), String::new()); files];
    for document in &documents {
        let (json, text) = &mut texts[dice.below(files)];
        if *json {
            scribble(dice, document, text);
            text.push_str(dice.one(&["\n", "", " \t\n"]));
        } else {
            text.push_str("---\n");
            block(dice, document, 0, text);
        }
    }
    let named = texts.into_iter().enumerate().map(|(at, (json, text))| {
        let folder = dice.one(&["", "a/", "b/c/", ".d/"]);
        let end = dice.one(if json { &["json", "yaml"] } else { &["yaml", "txt"] });
        (format!("{folder}{at}.{end}"), text)
    });
    named.collect()
}

/// The fields of an object in random order.
fn keys<'v>(
    dice: &mut Dice,
    fields: &'v serde_json::Map<String, Value>,
) -> Vec<(&'v String, &'v Value)> {
    let mut fields: Vec<_> = fields.iter().collect();
    dice.shuffle(&mut fields);
    fields
}

/// Writes JSON with random blanks.
fn scribble(dice: &mut Dice, value: &Value, out: &mut String) {
    let gap = |dice: &mut Dice| dice.one(&["", "", " ", "\n  "]);
    match value {
        Value::Object(fields) => {
            out.push('{');
            for (at, (key, value)) in keys(dice, fields).into_iter().enumerate() {
                let comma = if at == 0 { "" } else { "," };
                write!(out, "{comma}{}{}:{}", gap(dice), Value::from(key.as_str()), gap(dice))
                    .unwrap();
                scribble(dice, value, out);
            }
            out.push_str(gap(dice));
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (at, value) in items.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                out.push_str(gap(dice));
                scribble(dice, value, out);
            }
            out.push_str(gap(dice));
            out.push(']');
        }
        other => write!(out, "{other}").unwrap(),
    }
}

/// Writes YAML in blocks, each ending its line, some values as JSON.
fn block(dice: &mut Dice, value: &Value, indent: usize, out: &mut String) {
    let blanks = |out: &mut String, count: usize| out.extend(std::iter::repeat_n(' ', count));
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (key, value) in keys(dice, fields) {
                blanks(out, indent);
                let plain = key.bytes().all(|byte| byte.is_ascii_alphanumeric()) && key.len() > 1;
                if plain && !dice.once_in(3) {
                    write!(out, "{key}:").unwrap();
                } else {
                    write!(out, "{}:", Value::from(key.as_str())).unwrap();
                }
                below(dice, value, indent + 2, out);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for value in items {
                blanks(out, indent);
                out.push('-');
                below(dice, value, indent + 2, out);
            }
        }
        other => {
            blanks(out, indent);
            writeln!(out, "{other}").unwrap();
        }
    }
}

fn below(dice: &mut Dice, value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::String(text) if text.ends_with("\t<&>\n") && dice.once_in(2) => {
            out.push_str(" |\n");
            for line in text.lines() {
                writeln!(out, "{:indent$}{line}", "").unwrap();
            }
        }
        Value::Object(fields) if !fields.is_empty() => {
            out.push('\n');
            block(dice, value, indent, out);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            block(dice, value, indent, out);
        }
        other => writeln!(out, " {other}").unwrap(),
    }
}

fn load(files: &[(String, String)]) -> Result<Arc<Catalog>, LoadError> {
    let files: Files = files.iter().cloned().collect();
    Catalog::load_from(&files, &LoadOptions::default())
}

/// The result without places: the digest, or the problems. Upstream stops at its first error, which
/// depends on the order, unless it reports the tree of all findings.
fn judged(files: &[(String, String)]) -> Result<String, (BTreeSet<String>, String)> {
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
        let mut dice = Dice(seed);
        let documents = catalog(&mut dice);
        let plain: String = documents
            .iter()
            .map(|document| format!("---\n{document}\n"))
            .collect::<Vec<_>>()
            .concat();
        let first = judged(&[("c.yaml".to_owned(), plain)]);
        match first {
            Ok(_) => sound += 1,
            Err(_) => wrong += 1,
        }
        for _ in 0..3 {
            let files = written(&mut dice, documents.clone());
            assert_eq!(judged(&files), first, "seed {seed}: {files:#?}");
        }
    }
    assert!(sound > 30 && wrong > 30, "{sound} sound, {wrong} wrong: the dice are loaded");
}

/// A whole catalog as it is written.
fn rendered(files: &[(String, String)], format: Format) -> String {
    let files: Files = files.iter().cloned().collect();
    let declared = Declared::read(&files, &LoadOptions::default()).unwrap();
    let mut out = Vec::new();
    Rendition::of(&declared).write(format, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn rendering_does_not_depend_on_formatting_and_is_stable() {
    let formats = [("json", Format::Json), ("yaml", Format::Yaml)];
    let mut sound = 0;
    for seed in 0..SEEDS {
        let mut dice = Dice(seed);
        let documents = catalog(&mut dice);
        let files = written(&mut dice, documents.clone());
        if load(&files).is_err() {
            continue;
        }
        sound += 1;
        let others = written(&mut dice, documents);
        for (_, format) in formats {
            let text = rendered(&files, format);
            assert_eq!(rendered(&others, format), text, "seed {seed}: {files:#?} {others:#?}");
            // The written catalog gives the same text again, from either format.
            for (name, first) in formats {
                let again = vec![(format!("c.{name}"), rendered(&files, first))];
                assert_eq!(rendered(&again, format), text, "seed {seed} by {name}");
            }
        }
    }
    assert!(sound > 30, "{sound} sound");
}
