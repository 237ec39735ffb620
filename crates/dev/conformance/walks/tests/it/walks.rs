//! Walks of published packages, compared with docs/walks.md, and of a generated package with every
//! feature.

use mainstay_conformance_walks::{
    self as walk, Applier, ExtensionRuns, LoadedCatalog, Obstacle, PackageUnderTest, Refusal,
};
use mainstay_extensions::TrustMode;
use mainstay_testdata::{ran, unpack};
use tempfile::TempDir;

/// The results page.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../docs/walks.md");

/// Packages of the published catalog: an upgrade path that gets stuck, and a package with dependencies. The folder
/// of each is a catalog by itself.
const SAMPLE: [(&str, &str); 2] = [
    ("minio-object-store-operator", "minio-object-store-operator"),
    ("cpd-platform-operator", "cpd-platform-operator"),
];

/// A sample of the page; `.ci/deep walks` checks all packages.
#[tokio::test(flavor = "multi_thread")]
async fn sample_of_walks_matches_the_results_page() {
    let Some((items, _data)) = sample("walks of packages of the published catalog") else { return };
    let walks = walk::walk(&items, true, items.len(), |_| ()).await;
    compare_rows(&items, &walk::table(&items, &walks), PAGE);
}

/// The packages of the sample, and their folder; none without the test data.
fn sample(what: &str) -> Option<(Vec<PackageUnderTest>, TempDir)> {
    let data = unpack("catalog-certified-v4.14", what)?;
    let read = |(folder, _): (&str, &str)| {
        LoadedCatalog::read("certified-v4.14", &data.path().join("v4.14").join(folder)).unwrap()
    };
    let catalogs = SAMPLE.map(read);
    let items: Vec<PackageUnderTest> = catalogs.iter().flat_map(LoadedCatalog::packages).collect();
    let names: Vec<&str> = items.iter().map(|item| &*item.package).collect();
    assert_eq!(names, SAMPLE.map(|(_, package)| package));
    Some((items, data))
}

/// Compares the rows of packages with those of a page in a file.
fn compare_rows(items: &[PackageUnderTest], found: &str, page: &str) {
    let page = std::fs::read_to_string(page).unwrap();
    for package in items.iter().map(|item| &*item.package) {
        let row = |text: &str| {
            let begin = format!("| `{package}` |");
            let row = text.lines().find(|line| line.starts_with(&begin)).map(str::to_owned);
            row.unwrap_or_else(|| panic!("there is no row of {package}"))
        };
        assert_eq!(row(found), row(&page));
        ran(&format!("walk: {}", row(found)));
    }
}

/// Published packages: one whose OperatorGroup has a target, and one for all namespaces.
const ROUND_TRIP_SAMPLE: [&str; 2] = ["hulft", "ako-operator"];

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

/// The results page of OLM v1.
const EXTENSION_PAGE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../docs/extension-walks.md");

fn both_modes(applier: Applier) -> ExtensionRuns {
    ExtensionRuns { trust: vec![TrustMode::ClusterAdmin, TrustMode::ServiceAccount], applier }
}

/// `.ci/deep extension-walks` checks all packages.
#[tokio::test(flavor = "multi_thread")]
async fn sample_of_extension_walks_matches_the_results_page() {
    let what = "walks of extensions of the published catalog";
    let Some((items, _data)) = sample(what) else { return };
    let runs = both_modes(Applier::HelmReleases);
    let walks = walk::walk_extensions(&items, &runs, items.len(), |_| ()).await;
    assert_eq!(walk::extension_faults(&walks), Vec::<String>::new());
    compare_rows(&items, &walk::extension_table(&items, &walks), EXTENSION_PAGE);
}

/// The walk itself checks objects, permissions and leftovers.
#[tokio::test(flavor = "multi_thread")]
async fn extension_is_upgraded_with_exact_permissions_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    crate::bundles::for_extensions(folder.path());
    let items = LoadedCatalog::read("made", folder.path()).unwrap().packages();
    let walks = walk::walk_extensions(&items, &both_modes(Applier::HelmReleases), 1, |_| ()).await;
    assert_eq!(walk::extension_faults(&walks), Vec::<String>::new());
    let walk = &walks[0];
    assert_eq!(walk.installed, ["forge.v1.0.0", "forge.v1.1.0", "forge.v1.2.0"]);
    assert_eq!(walk.path.as_ref().unwrap().next.as_deref(), Some("forge.v1.3.0"));
    assert_eq!(walk.refused, [("forge.v1.3.0".to_owned(), Refusal::Webhooks)].into());
    let updates: Vec<&str> = walk.unsafe_updates.iter().map(|update| &*update.to).collect();
    assert_eq!((updates.as_slice(), walk.examples), (&["forge.v1.2.0"][..], 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn bundles_with_dependencies_are_refused_and_the_others_are_installed() {
    let folder = tempfile::tempdir().unwrap();
    crate::bundles::everything(folder.path());
    let items = LoadedCatalog::read("made", folder.path()).unwrap().packages();
    let runs = both_modes(Applier::HelmReleases);
    let walks = walk::walk_extensions(&items, &runs, items.len(), |_| ()).await;
    assert_eq!(walk::extension_faults(&walks), Vec::<String>::new());
    let counts: Vec<_> = walks
        .iter()
        .map(|walk| (&*walk.package, walk.installed.len(), walk.refused.len()))
        .collect();
    assert_eq!(counts, [("anvil", 0, 2), ("coal", 1, 0), ("ore", 0, 1)]);
    let dependency = Refusal::Dependency("olm.package.required".to_owned());
    assert!(walks.iter().flat_map(|walk| walk.refused.values()).all(|rule| *rule == dependency));
}

/// The results page of migrations.
const MIGRATION_PAGE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../docs/migration-walks.md");

/// `.ci/deep migration-walks` moves all packages.
#[tokio::test(flavor = "multi_thread")]
async fn sample_of_migration_walks_matches_the_results_page() {
    let Some((items, _data)) = sample("migrations of packages of the published catalog") else {
        return;
    };
    let applier = Applier::HelmReleases;
    let walks = walk::walk_migrations(&items, applier, items.len(), |_| ()).await;
    assert_eq!(walk::migration_faults(&walks, false), Vec::<String>::new());
    compare_rows(&items, &walk::migration_table(&items, &walks, None), MIGRATION_PAGE);
}

/// The walk itself compares the objects after each step.
#[tokio::test(flavor = "multi_thread")]
async fn operator_with_webhooks_and_every_kind_of_object_goes_to_v1_and_back() {
    let folder = tempfile::tempdir().unwrap();
    crate::bundles::for_extensions(folder.path());
    let items = LoadedCatalog::read("made", folder.path()).unwrap().packages();
    let walks = walk::walk_migrations(&items, Applier::HelmReleases, 1, |_| ()).await;
    assert_eq!(walk::migration_faults(&walks, false), Vec::<String>::new());
    let walk = &walks[0];
    assert_eq!(walk.installed.as_deref(), Some("forge.v1.3.0"));
    assert_eq!(walk.obstacles, [Obstacle::Certificates].into());
    assert!(walk.completed_round_trip, "{walk:?}");
    assert_eq!(walk.upgraded_from.as_deref(), Some("forge.v1.2.0"));
    // The 12 further kinds, the Deployment, its ServiceAccount, the CustomResourceDefinition and the Service.
    assert_eq!((walk.objects, walk.examples), (16, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn object_sets_take_operators_over_and_those_with_dependencies_stay() {
    let folder = tempfile::tempdir().unwrap();
    crate::bundles::everything(folder.path());
    let items = LoadedCatalog::read("made", folder.path()).unwrap().packages();
    let walks = walk::walk_migrations(&items, Applier::ObjectSets, items.len(), |_| ()).await;
    assert_eq!(walk::migration_faults(&walks, false), Vec::<String>::new());
    let results: Vec<_> = walks
        .iter()
        .map(|walk| (&*walk.package, walk.completed_round_trip, walk.obstacles.clone()))
        .collect();
    let anvil = [Obstacle::Dependencies, Obstacle::ApiServices, Obstacle::Certificates];
    assert_eq!(
        results,
        [
            ("anvil", false, anvil.into()),
            ("coal", true, [].into()),
            ("ore", false, [Obstacle::Dependencies].into()),
        ]
    );
}
