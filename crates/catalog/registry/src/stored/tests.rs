use super::*;
use mainstay_catalog::{CatalogDocuments, DocumentRules, KeptContent, LoadOptions, MemorySource};
use std::time::Duration;

fn documents(text: &str) -> CatalogDocuments {
    let source: MemorySource = [("configs/catalog.yaml", text)].into_iter().collect();
    let (keep, rules) = (KeptContent::Light, DocumentRules::Meta);
    let options = LoadOptions { keep, rules, ..LoadOptions::default() };
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

fn stored(folder: &Path) -> ServedDocuments {
    create(folder, documents(TEXT).blobs(), modified()).unwrap()
}

fn lines(documents: &ServedDocuments, wanted: [&str; 3]) -> String {
    String::from_utf8(documents.lines(wanted).unwrap()).unwrap()
}

#[test]
fn documents_are_selected_by_their_own_schema_package_and_name() {
    let root = tempfile::tempdir().unwrap();
    let catalog = stored(&root.path().join("a"));
    let package = "{\"name\":\"a\",\"schema\":\"olm.package\"}\n";
    let channel = "{\"name\":\"stable\",\"package\":\"a\",\"schema\":\"olm.channel\"}\n";
    // Numbers are exact, where catalogd rounds them to floats.
    let bundle = "{\"count\":12345678901234567890,\"name\":\"b.v1\",\"package\":\"b\",\"schema\":\"olm.bundle\"}\n";
    let other = "{\"package\":\"a\",\"schema\":\"\"}\n";
    for (wanted, expected) in [
        (["", "", ""], [package, channel, bundle, other].concat()),
        (["", "a", ""], [channel, other].concat()),
        (["olm.package", "", "a"], package.into()),
        (["", "none", ""], String::new()),
        (["olm.bundle", "a", ""], String::new()),
    ] {
        assert_eq!(lines(&catalog, wanted), expected, "{wanted:?}");
    }
}

#[test]
fn stored_catalog_is_opened_without_its_sources() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("a");
    let first = stored(&folder);
    let again = open(&folder).unwrap();
    assert_eq!(again.digest(), first.digest());
    assert_eq!((again.modified(), again.len()), (modified(), 4));
    assert_eq!(lines(&again, [""; 3]), lines(&first, [""; 3]));
}

#[test]
fn damaged_folder_is_refused_and_written_again() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("a");
    let expected = lines(&stored(&folder), [""; 3]);
    for (file, content) in [("index.json", ""), ("index.json", "{\"format\":0}"), (DOCUMENTS, "x")]
    {
        std::fs::write(folder.join(file), content).unwrap();
        let refused = open(&folder).unwrap_err().to_string();
        assert!(refused.contains(file), "{refused}");
        assert_eq!(lines(&stored(&folder), [""; 3]), expected);
    }
    // A process was killed while it wrote.
    std::fs::create_dir(root.path().join("b.unfinished")).unwrap();
    std::fs::write(root.path().join("b.unfinished/index.json"), "{").unwrap();
    assert_eq!(stored(&root.path().join("b")).len(), 4);
    // shows OLMV1-118
    assert!(!root.path().join("b.unfinished").exists());
}
