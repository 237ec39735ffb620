//! Packages of published catalogs, updated from their oldest to their newest version.

use mainstay_conformance_walks::{self as walk, Item, Stock};
use mainstay_testdata::{ran, unpack};

/// The page with what became of all of them.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../docs/walks.md");

/// Packages of the published catalog: one that walks over three channels, one that stops, and one that
/// needs others. Each has a folder of its own, which is a catalog as well.
const SAMPLE: [(&str, &str); 3] = [
    ("isovalent-networking", "clife"),
    ("minio-object-store-operator", "minio-object-store-operator"),
    ("cpd-platform-operator", "cpd-platform-operator"),
];

/// What the page says of some packages is still so; `.ci/deep` looks at all of them.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_page_says_of_a_few_packages_is_what_becomes_of_them() {
    let what = "walks of packages of the published catalog";
    let Some(data) = unpack("catalog-certified-v4.14", what) else { return };
    let read = |(folder, _): (&str, &str)| {
        Stock::read("certified-v4.14", &data.path().join("v4.14").join(folder)).unwrap()
    };
    let stocks = SAMPLE.map(read);
    let items: Vec<Item> = stocks.iter().flat_map(Stock::items).collect();
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

/// Published packages: one whose group has a target of its own, one for all namespaces, one with webhooks.
const BACK: [&str; 3] = ["hulft", "ako-operator", "elasticsearch-eck-operator-certified"];

/// What may stay is judged by the walk; `.ci/deep` looks at all packages.
#[tokio::test(flavor = "multi_thread")]
async fn a_few_packages_go_and_leave_what_may_stay_or_nothing() {
    let Some(stocks) = walk::published().unwrap() else { return };
    let mut items: Vec<Item> = stocks.iter().flat_map(Stock::items).collect();
    items.retain(|item| BACK.contains(&&*item.package));
    let walks = walk::walk(&items, true, items.len(), |_| ()).await;
    assert_eq!(walk::faults(&walks, false), Vec::<String>::new());
    for walk in &walks {
        assert_eq!(walk.end, walk::End::There, "{walk:?}");
        ran(&format!("walk back: {}: {:?}", walk.package, walk.back));
    }
    assert!(walks.len() >= BACK.len());
}

/// Which of these may stay is judged by the walk.
#[tokio::test(flavor = "multi_thread")]
async fn an_operator_with_everything_goes_with_everything_but_what_people_made() {
    let folder = tempfile::tempdir().unwrap();
    crate::bundles::everything(folder.path());
    let items = Stock::read("made", folder.path()).unwrap().items();
    let walks = walk::walk(&items, true, items.len(), |_| ()).await;
    assert_eq!(walk::faults(&walks, false), Vec::<String>::new());
    for (walk, updates) in walks.iter().zip([1, 0, 0]) {
        assert_eq!((&walk.end, walk.seen.len()), (&walk::End::There, updates + 1), "{walk:?}");
        let back = walk.back.as_ref().unwrap();
        assert!(back.objects > 0, "{back:?}");
    }
}
