//! Comparison with recorded answers of upstream's `opm validate` to hundreds of catalogs with one
//! fault each.

use mainstay_catalog::{Catalog, KeptContent, Limits, LoadOptions};
use mainstay_testdata::{ran, unpack};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Intended differences: a line each with the end of the case's name, what differs (`loaded` or
/// `message`), and the reason.
const DIFFERENCES: &str = include_str!("opm-differences.txt");

#[test]
fn results_and_messages_are_those_of_opm_validate() {
    let Some(folder) = unpack("answers/opm", "recorded answers of opm validate") else { return };
    let mut cases: Vec<PathBuf> = fs::read_dir(folder.path().join("opm"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().contains("-validate-"))
        .collect();
    cases.sort();
    let listed: Vec<[&str; 3]> = DIFFERENCES
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| {
            let mut parts = line.splitn(3, ' ');
            [(); 3].map(|()| parts.next().unwrap_or_else(|| panic!("three parts: {line}")))
        })
        .collect();
    let mut unused: BTreeSet<&str> = listed.iter().map(|[name, ..]| *name).collect();
    let (mut judged, mut agree, mut wrong) = (0, 0, Vec::new());
    for case in cases {
        let Some((what, has_message)) = differs(&case) else { continue };
        judged += 1;
        let Some(what) = what else {
            agree += 1;
            continue;
        };
        let name = case.file_name().unwrap().to_string_lossy().into_owned();
        let known = listed.iter().find(|[end, kind, _]| name.ends_with(end) && *kind == what);
        match known {
            Some([end, ..]) => {
                unused.remove(end);
            }
            None => wrong.push(format!("{name} ({what}): {has_message}")),
        }
    }
    assert!(judged > 700, "{judged}");
    assert!(wrong.is_empty(), "{} of {judged}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(unused.is_empty(), "entries that no case needs: {unused:?}");
    ran(&format!("opm validate: {agree} of {judged} answers agree, all others are listed"));
}

/// What differs in a case, and how; `None` for other command lines.
fn differs(case: &Path) -> Option<(Option<&'static str>, String)> {
    let recorded: Value =
        serde_json::from_slice(&fs::read(case.join("case.json")).unwrap()).unwrap();
    let argv: Vec<&str> =
        recorded["argv"].as_array().unwrap().iter().map(|part| part.as_str().unwrap()).collect();
    let ["opm", "validate", root @ ("input" | "nowhere" | "input/c.yaml")] = argv[..] else {
        return None;
    };
    let limits = Limits { depth: Limits::DEEPEST, ..Limits::default() };
    let options = LoadOptions { keep: KeptContent::Facts, limits, ..LoadOptions::default() };
    let ours = Catalog::load(&case.join(root), &options);
    // Cases were recorded with their folder as the working directory.
    let place = format!("{}/", case.display());
    let ours = ours.map(|_| ()).map_err(|error| lines(&error.upstream().replace(&place, "")));
    let exits = match &recorded["exits"] {
        Value::Array(exits) => exits.clone(),
        _ => vec![recorded["exit"].clone()],
    };
    if !exits.contains(&json!(i32::from(ours.is_err()))) {
        return Some((Some("verdict"), format!("theirs {exits:?}, ours {ours:?}")));
    }
    let Err(ours) = ours else { return Some((None, String::new())) };
    let theirs: Vec<String> = match &recorded["messages"] {
        Value::Array(messages) => messages.iter().map(|m| lines(m.as_str().unwrap())).collect(),
        _ => vec![lines(recorded["message"].as_str().unwrap_or_default())],
    };
    if theirs.contains(&ours) {
        return Some((None, String::new()));
    }
    Some((Some("message"), format!("\n  theirs {theirs:?}\n  ours    {ours:?}")))
}

/// A message without leading blanks of lines, which are not recorded.
fn lines(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join("\n").trim().to_owned()
}
