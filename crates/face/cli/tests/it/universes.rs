//! Universe files: truncated, hostile, and with published catalogs.

use super::resolve::ResolveFolder as _;
use mainstay_clitest::{SOUND_CATALOG, TestFolder};
use serde_json::{Value, json};
use std::process::Command;

/// A universe with one catalog and one ClusterServiceVersion, both published.
fn published(catalog: &str, version: &str) -> String {
    json!({
        "namespace": "tenant", "globalNamespace": "olm", "operatorGroups": [{"name": "group"}],
        "catalogs": [{"name": "a", "namespace": "olm", "realData": catalog},
                     {"name": "b", "namespace": "olm", "realData": catalog, "priority": 1}],
        "subscriptions": [{"name": "sub", "package": "foo", "installedCSV": version,
                           "source": "a", "sourceNamespace": "olm"}],
        "csvs": [{"name": version, "realData": catalog}],
    })
    .to_string()
}

#[test]
fn truncated_universe_is_refused_without_a_panic() {
    let place = TestFolder::new();
    let whole = published("x", "foo.v0.1.0");
    for end in 0..whole.len() {
        let answer = place.resolve_with("--universe - -o json", &whole[..end]);
        assert_eq!((answer.code, &*answer.out), (2, ""), "{end}: {answer:?}");
    }
    let yaml = "apiVersion: v1\nkind: List\nitems:\n- {kind: Subscription, spec: {name: [7]}}\n";
    for end in 0..=yaml.len() {
        let answer = place.resolve_with("--state - --catalog x=.", &yaml[..end]);
        assert!([0, 2, 3].contains(&answer.code), "{end}: {answer:?}");
    }
    for hostile in ["[".repeat(100_000), "{\"universe\":".repeat(10_000), "\u{0}".to_owned()] {
        assert_eq!(place.resolve_with("--universe -", &hostile).code, 2);
        assert_eq!(place.resolve_with("--state - --catalog x=.", &hostile).code, 2);
    }
}

#[test]
fn published_catalog_is_a_folder_or_an_archive() {
    let place = TestFolder::new().file("data/catalog-x/v1/foo/catalog.yaml", SOUND_CATALOG);
    let packed = place.path().join("data/catalog-packed.tar.xz");
    let folder = place.path().join("data/catalog-x");
    let tar = Command::new("tar").arg("-cJf").arg(&packed).arg("-C").arg(folder).arg("v1").status();
    assert!(tar.unwrap().success());
    let resolve = |name: &str| {
        let text = published(name, "foo.v0.1.0");
        place.resolve_with("--universe - --published data -o json", &text)
    };
    for name in ["x", "packed"] {
        let answer = resolve(name);
        let value: Value =
            serde_json::from_str(&answer.out).unwrap_or_else(|_| panic!("{answer:?}"));
        assert_eq!(value["outcome"], json!({"resolved": []}), "{name}");
    }
    std::fs::write(place.path().join("data/catalog-broken.tar.xz"), "no archive").unwrap();
    std::fs::write(place.path().join("data/catalog-empty.tar.xz"), "").unwrap();
    for (name, why) in [
        ("broken", "the archive cannot be read"),
        ("empty", "the archive cannot be read"),
        ("missing", "no such file or directory"),
        ("../data/catalog-x", "has letters, digits"),
    ] {
        let answer = resolve(name);
        assert_eq!(answer.code, 2, "{name}: {answer:?}");
        assert!(answer.err.contains(why), "{name}: {answer:?}");
    }
    let unknown = published("x", "foo.v9.9.9");
    let answer = place.resolve_with("--universe - --published data", &unknown);
    insta::assert_snapshot!(answer.err, @r#"
    error: the universe cannot be read
      because <stdin>:1:149: field `csvs[0].realData`: the published catalog "x" has no bundle "foo.v9.9.9"
        → name one of its bundles
    "#);
}
