//! `mainstay resolve`: ends of upgrade paths, and limits of the search.

use super::resolve::ResolveFolder as _;
use super::resolve::exit_code_and_output;
use mainstay_clitest::TestFolder;
use serde_json::{Value, json};
use std::fmt::Write;

/// A universe of one catalog. Packages have one channel: entries by name, version and predecessor;
/// `installed` are the bundles of their Subscriptions.
fn universe(
    packages: &[(&str, Vec<Value>)],
    bundles: &[Value],
    installed: &[(&str, &str)],
) -> String {
    let channel = |entries: &Vec<Value>| json!([{"name": "s", "entries": entries}]);
    let packages: Vec<Value> = packages
        .iter()
        .map(|(name, entries)| json!({"name": name, "defaultChannel": "s", "channels": channel(entries)}))
        .collect();
    let version = |name: &str| {
        bundles
            .iter()
            .find(|bundle| bundle["name"] == name)
            .map_or(json!(""), |bundle| bundle["version"].clone())
    };
    let subscriptions: Vec<Value> = installed
        .iter()
        .map(|(package, bundle)| json!({"name": package, "package": package, "channel": "s",
            "source": "shop", "sourceNamespace": "olm", "installedCSV": bundle, "currentCSV": bundle}))
        .collect();
    let csvs: Vec<Value> = installed
        .iter()
        .filter(|(_, bundle)| !bundle.is_empty())
        .map(
            |(_, bundle)| json!({"name": bundle, "version": version(bundle), "phase": "Succeeded"}),
        )
        .collect();
    json!({"namespace": "kitchen", "globalNamespace": "olm", "operatorGroups": [{"name": "all"}],
        "catalogs": [{"name": "shop", "namespace": "olm", "packages": packages, "bundles": bundles}],
        "subscriptions": subscriptions, "csvs": csvs})
    .to_string()
}

fn bundle(name: &str, package: &str, version: &str) -> Value {
    json!({"name": name, "package": package, "version": version,
        "properties": [{"type": "olm.package", "value": {"packageName": package, "version": version}}]})
}

/// Entries `v0`, `v1`, … that follow each other.
fn chain(package: &str, count: usize) -> (Vec<Value>, Vec<Value>) {
    let entries = (0..count).map(|at| match at {
        0 => json!({"name": format!("{package}.v0")}),
        at => json!({"name": format!("{package}.v{at}"), "replaces": format!("{package}.v{}", at - 1)}),
    });
    let bundles =
        (0..count).map(|at| bundle(&format!("{package}.v{at}"), package, &format!("1.{at}.0")));
    (entries.collect(), bundles.collect())
}

fn answer(universe: &str) -> String {
    exit_code_and_output(&TestFolder::new().file("u.json", universe).resolve("--universe u.json"))
}

#[test]
fn long_channel_resolves_up_to_its_head() {
    let (entries, bundles) = chain("tea", 1500);
    let text = answer(&universe(&[("tea", entries)], &bundles, &[("tea", "tea.v0")]));
    assert!(text.contains("→ tea.v1499"), "{text}");
    assert!(text.ends_with("end        head of channel s\n"), "{text}");
}

/// A hard failure is searched once, not again at each upgrade beside it.
#[test]
fn failure_beside_a_long_upgrade_path_is_searched_once() {
    let (entries, mut bundles) = chain("tea", 400);
    let mut packages = vec![("tea".to_owned(), entries)];
    let mut installed = vec![("tea".to_owned(), "tea.v0".to_owned())];
    // Nine guests for eight cups: each version of a guest takes another cup.
    for guest in 0..9 {
        let package = format!("guest{guest}");
        packages.push((package.clone(), Vec::new()));
        for cup in 0..8 {
            let name = format!("{package}.v{cup}");
            let kind = json!({"group": "cups", "version": "v1", "kind": format!("Cup{cup}")});
            let mut cup_bundle = bundle(&name, &package, &format!("1.{cup}.0"));
            let gives = json!({"type": "olm.gvk", "value": kind});
            cup_bundle["properties"].as_array_mut().unwrap().push(gives);
            bundles.push(cup_bundle);
        }
        installed.push((package, String::new()));
    }
    let packages: Vec<(&str, Vec<Value>)> =
        packages.iter().map(|(name, entries)| (&**name, entries.clone())).collect();
    let installed: Vec<(&str, &str)> =
        installed.iter().map(|(package, bundle)| (&**package, &**bundle)).collect();
    let mut value: Value =
        serde_json::from_str(&universe(&packages, &bundles, &installed)).unwrap();
    for guest in 1..=9 {
        let channels = (0..8).map(|cup| {
            json!({"name": format!("c{cup}"), "entries": [{"name": format!("guest{}.v{cup}", guest - 1)}]})
        });
        value["catalogs"][0]["packages"][guest]["channels"] = channels.collect();
        value["catalogs"][0]["packages"][guest]["defaultChannel"] = json!("c0");
        value["subscriptions"][guest]["channel"] = json!("");
    }
    let text = answer(&value.to_string());
    assert!(text.contains("→ tea.v399"), "{text}");
    assert_eq!(text.matches("fails").count(), 1, "{text}");
}

#[test]
fn path_ends_as_in_the_classic_update_graph() {
    let need = |mut needing: Value| {
        let needs = json!({"type": "olm.package.required",
            "value": {"packageName": "milk", "versionRange": ">=1.0.0"}});
        needing["properties"].as_array_mut().unwrap().push(needs);
        needing
    };
    let three = |needing: bool| {
        let head = bundle("tea.v3", "tea", "3.0.0");
        let middle = bundle("tea.v9", "tea", "9.0.0");
        let (middle, head) = if needing { (need(middle), need(head)) } else { (middle, head) };
        vec![bundle("tea.v1", "tea", "1.0.0"), middle, head]
    };
    let mut out = String::new();
    for (what, entries, bundles) in [
        (
            "the next one is nearest to the head, not of the highest version",
            json!([{"name": "tea.v1"}, {"name": "tea.v9", "replaces": "tea.v1"},
                {"name": "tea.v3", "replaces": "tea.v9", "skips": ["tea.v1"]}]),
            three(true),
        ),
        (
            "what is skipped is no way on",
            json!([{"name": "tea.v1"}, {"name": "tea.v9", "replaces": "tea.v1"},
                {"name": "tea.v3", "skips": ["tea.v9"]}]),
            three(false),
        ),
        (
            "nor is what is withdrawn",
            json!([{"name": "tea.v1"}, {"name": "tea.v9", "skips": ["tea.v1"]},
                {"name": "tea.v3", "replaces": "tea.v9"}]),
            {
                let mut bundles = three(false);
                let gone = json!({"type": "olm.deprecated", "value": {}});
                bundles[1]["properties"].as_array_mut().unwrap().push(gone);
                bundles
            },
        ),
    ] {
        let entries = entries.as_array().unwrap().clone();
        let world = universe(&[("tea", entries)], &bundles, &[("tea", "tea.v1")]);
        let _ = write!(out, "{what}\n{}", answer(&world));
    }
    insta::assert_snapshot!(out, @r"
    the next one is nearest to the head, not of the highest version
    0
    namespace kitchen: 1 to keep
      keep tea.v1 (Subscription tea)
        end        held at tea.v1: tea.v3 cannot be installed
                   `tea.v3` needs version `>=1.0.0` of package `milk`, which nothing offers
    what is skipped is no way on
    0
    namespace kitchen: 1 to keep
      keep tea.v1 (Subscription tea)
        end        stranded: channel s has no update from tea.v1, so the head tea.v3 is not reached; only tea.v9 replaces or skips it, which is skipped by tea.v3
    nor is what is withdrawn
    0
    namespace kitchen: 1 to keep
      keep tea.v1 (Subscription tea)
        end        stranded: channel s has no update from tea.v1, so the head tea.v3 is not reached; only tea.v9 replaces or skips it, which is withdrawn (olm.deprecated)
    ");
}

#[test]
fn number_of_explained_path_ends_is_limited() {
    let names: Vec<String> = (10..70).map(|at| format!("p{at}")).collect();
    let mut bundles = Vec::new();
    let mut packages = Vec::new();
    let held: Vec<(String, String)> =
        names.iter().map(|name| (name.clone(), format!("{name}.v0"))).collect();
    for name in &names {
        let (entries, mut chain_bundles) = chain(name, 2);
        chain_bundles[1]["properties"]
            .as_array_mut()
            .unwrap()
            .push(json!({"type": "olm.package.required",
            "value": {"packageName": "none", "versionRange": ">=1.0.0"}}));
        bundles.extend(chain_bundles);
        packages.push((&**name, entries));
    }
    let installed: Vec<(&str, &str)> = held.iter().map(|(a, b)| (&**a, &**b)).collect();
    let text = answer(&universe(&packages, &bundles, &installed));
    assert_eq!(text.matches("cannot be installed").count(), 60, "{text}");
    assert_eq!(text.matches("needs version").count(), 40, "{text}");
    assert!(
        text.ends_with("  the reasons of 20 more held operators were not searched\n"),
        "{text}"
    );
}
