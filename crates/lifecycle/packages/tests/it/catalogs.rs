//! Published catalogs, where the test data has them.

use crate::test_api::{ROOT, TABLE, TestApi, source};
use mainstay_catalog::{Catalog, LoadOptions};
use std::time::Duration;

#[tokio::test]
async fn published_catalog_is_listed_within_a_time_limit() {
    let what = "packages of a published catalog";
    let Some(data) = mainstay_testdata::unpack("catalog-certified-v4.14", what) else { return };
    let content = Catalog::load(data.path(), &LoadOptions::default()).unwrap();
    let count = content.packages().len();
    let api = TestApi::new(vec![source("olm", "certified", Some(content))]);
    let path = format!("{ROOT}/namespaces/team/packagemanifests");
    let clock = mainstay_clock::Clock::system();
    let mut figures = Vec::new();
    for accept in [TABLE, TABLE, "application/json", "application/json"] {
        let start = clock.elapsed();
        let (code, bytes) = api.get_bytes(&path, accept).await;
        assert_eq!(code, 200);
        figures.push((clock.elapsed().saturating_sub(start), bytes.len()));
    }
    let packages = api.list_packages("/namespaces/team/packagemanifests").await;
    assert!(
        packages.len() <= count && packages.len() * 10 > count * 9,
        "{} of {count}",
        packages.len()
    );
    let texts: Vec<String> =
        figures.iter().map(|(took, bytes)| format!("{took:.0?} {} KiB", bytes / 1024)).collect();
    mainstay_testdata::ran(&format!("{} {what}: {}", packages.len(), texts.join(", ")));
    // The second list of each kind uses kept summaries and statuses.
    assert!(figures[1].0 < Duration::from_secs(1) && figures[3].0 < Duration::from_secs(5));
}
