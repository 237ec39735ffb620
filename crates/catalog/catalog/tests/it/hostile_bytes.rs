//! Damaged published catalogs: nothing panics, and each problem has file, line and remedy.

use crate::properties::Random;
use mainstay_catalog::{Catalog, LoadOptions, MemorySource};
use mainstay_testdata::{is_deep, ran, unpack};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// How many damaged catalogs are loaded.
fn rounds() -> usize {
    if is_deep() { 20_000 } else { 250 }
}

/// Bytes with a meaning in YAML or JSON.
const TOKENS: &[&[u8]] = &[
    b"\n",
    b" ",
    b":",
    b"-",
    b"\"",
    b"'",
    b"#",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b"&a ",
    b"*a",
    b"!",
    b"|\n",
    b">\n",
    b"%",
    b"@",
    b"\t",
    b"\r",
    b"\0",
    b"? ",
    b"\\",
    b"\xc3",
    b"\xff",
    b"\xc2\x85",
    b"\xe2\x80\xa8",
    b"---\n",
    b"...\n",
    b"<<: ",
    b"null",
    b"1e999",
    b"\xef\xbb\xbf",
];

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// Some documents of a file as they are written; in half of the samples with custom schemas, so
/// that only their syntax is checked.
fn sample(random: &mut Random, file: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(file);
    let small: Vec<&str> = text
        .split("---\n")
        .filter(|document| !document.is_empty() && document.len() < 20_000)
        .collect();
    let known = random.below(2) == 0;
    let mut out = Vec::new();
    for _ in 0..3 {
        if let Some(document) = small.get(random.below(small.len())) {
            out.extend_from_slice(b"---\n");
            let schema = if known { "schema: olm." } else { "schema: x." };
            out.extend_from_slice(document.replace("schema: olm.", schema).as_bytes());
        }
    }
    out
}

fn damage(random: &mut Random, text: &mut Vec<u8>) {
    let mut at = random.below(text.len());
    if random.below(2) == 0 {
        // The beginnings of lines have the most influence.
        at += text[at..].iter().position(|&byte| byte == b'\n').unwrap_or(0);
        at = (at + random.below(6)).min(text.len() - 1);
    }
    let sign = TOKENS[random.below(TOKENS.len())];
    match random.below(6) {
        0 => text[at] ^= 1 << random.below(8),
        1 => text[at] = u8::try_from(random.below(256)).unwrap(),
        2 => text.truncate(at),
        3 => drop(text.drain(at..(at + 1 + random.below(40)).min(text.len()))),
        4 => drop(text.splice(at..at, sign.iter().copied())),
        _ => {
            let end = (at + sign.len()).min(text.len());
            text.splice(at..end, sign.iter().copied());
        }
    }
}

#[test]
fn damaged_catalogs_load_or_give_problems_with_places() {
    let mut all = Vec::new();
    let mut folders = Vec::new();
    for archive in ["catalog-certified-v4.14", "catalog-community-v4.19"] {
        let Some(folder) = unpack(archive, "damaged catalogs") else { return };
        files(folder.path(), &mut all);
        folders.push(folder);
    }
    all.sort();
    let texts: Vec<Vec<u8>> = all.iter().map(|path| fs::read(path).unwrap()).collect();
    let mut refused = 0;
    for seed in 0..rounds() {
        let mut random = Random(seed as u64);
        let mut text = sample(&mut random, &texts[seed % texts.len()]);
        for _ in 0..=random.below(3) {
            if !text.is_empty() {
                damage(&mut random, &mut text);
            }
        }
        let source: MemorySource = [("c.yaml", text.clone())].into_iter().collect();
        let Err(error) = Catalog::load_from(&source, &LoadOptions::default()) else { continue };
        refused += 1;
        let shown = String::from_utf8_lossy(&text);
        assert!(
            !error.problems.is_empty() && !error.upstream().is_empty(),
            "seed {seed}:\n{shown}"
        );
        // A problem at the end of the text is on the line behind it. Line ends are those of YAML.
        let ends = ['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'];
        let lines = shown.split(ends).count() + 1;
        for problem in &error.problems {
            let has_place =
                &*problem.file == "c.yaml" && problem.line.is_some_and(|line| line <= lines);
            let has_message = !problem.message.is_empty() && !problem.remedy.is_empty();
            assert!(has_place && has_message, "seed {seed}: {problem}\n{shown}");
        }
    }
    assert!(refused > rounds() / 4 && refused < rounds(), "{refused} refused");
    ran(&format!("{} damaged catalogs, {refused} of them refused with their places", rounds()));
}
