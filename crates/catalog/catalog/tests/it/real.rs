//! Published catalogs, if they are available.

use mainstay_catalog::{Catalog, LoadOptions};
use mainstay_testdata::{ran, unpack};

#[test]
fn published_catalogs_load_without_problems() {
    let table = [
        ("catalog-certified-v4.14", "v4.14", [40, 133, 369]),
        ("catalog-community-v4.19", "v4.19", [37, 81, 757]),
    ];
    for (archive, root, counts) in table {
        let Some(folder) = unpack(archive, "the published catalogs") else { return };
        let catalog = Catalog::load(&folder.path().join(root), &LoadOptions::default()).unwrap();
        let channels: usize = catalog.packages().map(|package| package.channels().len()).sum();
        let bundles: usize = catalog.packages().map(|package| package.bundles().len()).sum();
        assert_eq!([catalog.packages().len(), channels, bundles], counts);
        // Only channel heads: all bundles take a minute without optimization.
        for package in catalog.packages() {
            let head = &package.channel(&package.default_channel).unwrap().head().name;
            let bundle = package.bundle(head).unwrap();
            let objects = bundle.objects().unwrap();
            assert_eq!(objects.len(), bundle.object_count());
            match bundle.csv().unwrap() {
                Some(csv) => assert_eq!(csv.name(), &*bundle.name),
                None => assert!(bundle.csv_metadata().unwrap().is_some(), "{}", bundle.name),
            }
        }
        // Only the smaller catalog: the larger one takes half a minute without optimization.
        if root == "v4.19" {
            let snapshot = folder.path().join("snapshot");
            catalog.save(&snapshot).unwrap();
            assert_eq!(Catalog::load_snapshot(&snapshot).unwrap().digest(), catalog.digest());
        }
        ran(&format!("{archive}, {bundles} bundles"));
    }
}
