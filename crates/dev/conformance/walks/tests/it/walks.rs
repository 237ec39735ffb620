//! Walks of published packages, compared with docs/walks.md, and of a generated package with every
//! feature.

use mainstay_conformance_walks::{self as walk, LoadedCatalog, PackageUnderTest};
use mainstay_testdata::{ran, unpack};

/// The results page.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../docs/walks.md");

/// Packages of the published catalog: an upgrade path through three channels, one that gets stuck,
/// and one with dependencies. The folder of each is a catalog by itself.
const SAMPLE: [(&str, &str); 3] = [
    ("isovalent-networking", "clife"),
    ("minio-object-store-operator", "minio-object-store-operator"),
    ("cpd-platform-operator", "cpd-platform-operator"),
];

/// A sample of the page; `.ci/deep walks` checks all packages.
#[tokio::test(flavor = "multi_thread")]
async fn sample_of_walks_matches_the_results_page() {
    let what = "walks of packages of the published catalog";
    let Some(data) = unpack("catalog-certified-v4.14", what) else { return };
    let read = |(folder, _): (&str, &str)| {
        LoadedCatalog::read("certified-v4.14", &data.path().join("v4.14").join(folder)).unwrap()
    };
    let catalogs = SAMPLE.map(read);
    let items: Vec<PackageUnderTest> = catalogs.iter().flat_map(LoadedCatalog::packages).collect();
    let names: Vec<&str> = items.iter().map(|item| &*item.package).collect();
    assert_eq!(names, SAMPLE.map(|(_, package)| package));
    let walks = walk::walk(&items, true, items.len(), |_| ()).await;
    let found = walk::table(&items, &walks);
    let page = std::fs::read_to_string(PAGE).unwrap();
    for package in names {
        let row = |text: &str| {
            let begin = format!("| `{package}` |");
            let row = text.lines().find(|line| line.starts_with(&begin)).map(str::to_owned);
            row.unwrap_or_else(|| panic!("there is no row of {package}"))
        };
        assert_eq!(row(&found), row(&page));
        ran(&format!("walk: {}", row(&found)));
    }
}

/// Published packages: one whose OperatorGroup has a target, one for all namespaces, one with
/// webhooks.
const ROUND_TRIP_SAMPLE: [&str; 3] =
    ["hulft", "ako-operator", "elasticsearch-eck-operator-certified"];

/// The walk itself checks the leftovers; `.ci/deep walks` checks all packages.
#[tokio::test(flavor = "multi_thread")]
async fn uninstalled_sample_leaves_only_allowed_leftovers() {
    let Some(catalogs) = walk::published().unwrap() else { return };
    let mut items: Vec<PackageUnderTest> =
        catalogs.iter().flat_map(LoadedCatalog::packages).collect();
    items.retain(|item| ROUND_TRIP_SAMPLE.contains(&&*item.package));
    let walks = walk::walk(&items, true, items.len(), |_| ()).await;
    assert_eq!(walk::faults(&walks, false), Vec::<String>::new());
    for walk in &walks {
        assert_eq!(walk.end, walk::PackageWalkEnd::Completed, "{walk:?}");
        ran(&format!("walk back: {}: {:?}", walk.package, walk.uninstall_report));
    }
    assert!(walks.len() >= ROUND_TRIP_SAMPLE.len());
}

/// The walk itself checks the leftovers.
#[tokio::test(flavor = "multi_thread")]
async fn uninstalled_operator_with_every_feature_leaves_only_allowed_leftovers() {
    let folder = tempfile::tempdir().unwrap();
    crate::bundles::everything(folder.path());
    let items = LoadedCatalog::read("made", folder.path()).unwrap().packages();
    let walks = walk::walk(&items, true, items.len(), |_| ()).await;
    assert_eq!(walk::faults(&walks, false), Vec::<String>::new());
    for (walk, updates) in walks.iter().zip([1, 0, 0]) {
        assert_eq!(
            (&walk.end, walk.installed_csvs.len()),
            (&walk::PackageWalkEnd::Completed, updates + 1),
            "{walk:?}"
        );
        let report = walk.uninstall_report.as_ref().unwrap();
        assert!(report.examples > 0, "{report:?}");
    }
}
