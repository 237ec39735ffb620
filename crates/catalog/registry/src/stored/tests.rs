use super::*;
use mainstay_catalog::{KeptContent, LoadOptions, MemorySource};
use std::io::Read as _;
use std::time::Duration;

fn documents(text: &str) -> CatalogDocuments {
    let source: MemorySource = [("configs/catalog.yaml", text)].into_iter().collect();
    let options = LoadOptions { keep: KeptContent::Documents, ..LoadOptions::default() };
    CatalogDocuments::read(&source, &options).unwrap()
}

const TEXT: &str = "
schema: olm.package
name: a
---
schema: olm.channel
package: a
name: stable
---
schema: olm.bundle
package: b
name: b.v1
count: 12345678901234567890
---
schema: ''
package: a
";

fn modified() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000)
}

fn stored(folder: &Path) -> StoredCatalog {
    StoredCatalog::create(folder, &documents(TEXT), modified()).unwrap()
}

fn lines(catalog: &StoredCatalog, selector: DocumentSelector<'_>) -> String {
    let read = |range| String::from_utf8(catalog.read(range).unwrap()).unwrap();
    catalog.select(selector).into_iter().map(read).collect()
}

#[test]
fn documents_are_selected_by_their_own_schema_package_and_name() {
    let root = tempfile::tempdir().unwrap();
    let catalog = stored(&root.path().join("a"));
    let all = DocumentSelector::default();
    let package = "{\"name\":\"a\",\"schema\":\"olm.package\"}\n";
    let channel = "{\"name\":\"stable\",\"package\":\"a\",\"schema\":\"olm.channel\"}\n";
    // catalogd decodes numbers as floats.
    let bundle = "{\"count\":12345678901234567000,\"name\":\"b.v1\",\"package\":\"b\",\"schema\":\"olm.bundle\"}\n";
    let other = "{\"package\":\"a\",\"schema\":\"\"}\n";
    for (selector, expected) in [
        (all, [package, channel, bundle, other].concat()),
        (DocumentSelector { package: Some("a"), ..all }, [channel, other].concat()),
        (DocumentSelector { schema: Some("olm.package"), name: Some("a"), ..all }, package.into()),
        (DocumentSelector { package: Some(""), ..all }, package.into()),
        (DocumentSelector { schema: Some(""), ..all }, other.into()),
        (DocumentSelector { package: Some("none"), ..all }, String::new()),
        (DocumentSelector { schema: Some("olm.bundle"), package: Some("a"), ..all }, String::new()),
    ] {
        assert_eq!(lines(&catalog, selector), expected, "{selector:?}");
    }
    assert_eq!(catalog.packages().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(catalog.select(all).len(), 1, "adjacent ranges are merged");
}

#[test]
fn stored_catalog_is_opened_without_its_sources() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("a");
    let first = stored(&folder);
    let again = StoredCatalog::open(&folder).unwrap();
    assert_eq!(again.digest(), first.digest());
    assert_eq!((again.modified(), again.count()), (modified(), 4));
    let all = DocumentSelector::default();
    assert_eq!(lines(&again, all), lines(&first, all));
}

#[test]
fn damaged_folder_is_refused_and_written_again() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("a");
    let expected = lines(&stored(&folder), DocumentSelector::default());
    for (file, content) in [("index.json", ""), ("index.json", "{\"format\":0}"), (DOCUMENTS, "x")]
    {
        std::fs::write(folder.join(file), content).unwrap();
        let refused = StoredCatalog::open(&folder).unwrap_err().to_string();
        assert!(refused.contains(file), "{refused}");
        assert_eq!(lines(&stored(&folder), DocumentSelector::default()), expected);
    }
    // A process was killed while it wrote.
    std::fs::create_dir(root.path().join("b.unfinished")).unwrap();
    std::fs::write(root.path().join("b.unfinished/index.json"), "{").unwrap();
    assert_eq!(stored(&root.path().join("b")).count(), 4);
    assert!(!root.path().join("b.unfinished").exists());
}

#[test]
fn compressed_copy_is_created_once_and_has_the_same_lines() {
    let root = tempfile::tempdir().unwrap();
    let catalog = stored(&root.path().join("a"));
    assert!(catalog.existing_compressed(ContentEncoding::Gzip).is_none());
    let (file, size) = catalog.compressed(ContentEncoding::Gzip).unwrap();
    let (_, again) = catalog.compressed(ContentEncoding::Gzip).unwrap();
    assert_eq!(size, again);
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    assert_eq!(text, lines(&catalog, DocumentSelector::default()));
}
