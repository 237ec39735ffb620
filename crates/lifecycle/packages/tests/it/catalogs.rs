//! Published catalogs, where they are at hand.

use crate::world::{ROOT, TABLE, World, source};
use mainstay_catalog::{Catalog, LoadOptions};
use std::time::Duration;

#[tokio::test]
async fn a_published_catalog_is_listed_quickly_and_kept_in_little_memory() {
    let what = "packages of a published catalog";
    let Some(data) = mainstay_testdata::unpack("catalog-certified-v4.14", what) else { return };
    let content = Catalog::load(data.path(), &LoadOptions::default()).unwrap();
    let count = content.packages().len();
    let world = World::new(vec![source("olm", "certified", Some(content))]);
    let path = format!("{ROOT}/namespaces/team/packagemanifests");
    let clock = mainstay_clock::Clock::system();
    let mut figures = Vec::new();
    for accept in [TABLE, TABLE, "application/json", "application/json"] {
        let begun = clock.elapsed();
        let (code, bytes) = world.bytes(&path, accept).await;
        assert_eq!(code, 200);
        figures.push((clock.elapsed().saturating_sub(begun), bytes.len()));
    }
    let listed = world.listed("/namespaces/team/packagemanifests").await;
    assert!(listed.len() <= count && listed.len() * 10 > count * 9, "{} of {count}", listed.len());
    let shown: Vec<String> =
        figures.iter().map(|(took, bytes)| format!("{took:.0?} {} KiB", bytes / 1024)).collect();
    mainstay_testdata::ran(&format!("{} {what}: {}", listed.len(), shown.join(", ")));
    // Lists again take what is kept.
    assert!(figures[1].0 < Duration::from_secs(1) && figures[3].0 < Duration::from_secs(5));
}
