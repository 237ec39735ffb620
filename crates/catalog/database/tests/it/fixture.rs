//! A database with a small catalog.

use mainstay_catalog::CatalogDocuments;
use mainstay_database::fixture::{TABLES, create_database};
use mainstay_database::{DatabaseError, read};
use serde_json::Value;
use std::path::PathBuf;
use tempfile::TempDir;

/// One package, one channel and two bundles.
const ROWS: &str = r#"
INSERT INTO package VALUES ('kiwi', 'stable');
INSERT INTO channel VALUES ('stable', 'kiwi', 'kiwi.v2');
INSERT INTO channel_entry VALUES (1, 'stable', 'kiwi', 'kiwi.v2', 2, 0), (2, 'stable', 'kiwi', 'kiwi.v1', NULL, 1);
INSERT INTO operatorbundle(name, csv, bundle, bundlepath, version, skiprange) VALUES
    ('kiwi.v1', NULL, NULL, 'example.com/kiwi:v1', '1.0.0', ''),
    ('kiwi.v2',
     '{"kind":"ClusterServiceVersion","metadata":{"name":"kiwi.v2"},"spec":{"icon":[{"base64data":"aGk=","mediatype":"image/png"}]}}',
     '{"kind":"CustomResourceDefinition"}{"kind":"ClusterServiceVersion","metadata":{"name":"kiwi.v2"},"spec":{}}',
     'example.com/kiwi:v2', '2.0.0', '<2.0.0');
INSERT INTO api VALUES ('fruit.io', 'v1', 'Kiwi', 'kiwis');
INSERT INTO api_provider VALUES ('fruit.io', 'v1', 'Kiwi', 'kiwi.v2', '2.0.0', 'example.com/kiwi:v2');
INSERT INTO api_requirer VALUES ('nut.io', 'v1', 'Nut', 'kiwi.v2', '2.0.0', 'example.com/kiwi:v2');
INSERT INTO properties(type, value, operatorbundle_name) VALUES
    ('olm.gvk', '{"group":"fruit.io","version":"v1","kind":"Kiwi"}', 'kiwi.v2'),
    ('my.type', '{ "b": 1 }', 'kiwi.v2'), ('my.type', '{ "b": 1 }', 'kiwi.v2');
INSERT INTO dependencies(type, value, operatorbundle_name) VALUES
    ('olm.gvk', '{"group":"nut.io","version":"v1","kind":"Nut"}', 'kiwi.v2'),
    ('olm.package', '{"packageName":"other","version":">=1.0.0"}', 'kiwi.v2');
INSERT INTO related_image VALUES ('example.com/z:1', 'kiwi.v2'), ('example.com/a:1', 'kiwi.v2');
"#;

/// A database in its own folder.
pub(crate) struct Fixture {
    pub(crate) folder: TempDir,
    pub(crate) path: PathBuf,
}

impl Fixture {
    /// A path without a file.
    pub(crate) fn without_file() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index ?#%.db");
        Self { folder, path }
    }

    /// The small catalog, changed by statements.
    pub(crate) fn with_changes(changes: &str) -> Self {
        let fixture = Self::without_file();
        create_database(&fixture.path, &format!("{TABLES} {ROWS} {changes}")).unwrap();
        fixture
    }

    /// A file with these bytes.
    pub(crate) fn with_bytes(bytes: &[u8]) -> Self {
        let fixture = Self::without_file();
        std::fs::write(&fixture.path, bytes).unwrap();
        fixture
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        std::fs::read(&self.path).unwrap()
    }

    /// Reads the database, and asserts that no file changed.
    pub(crate) fn read(&self) -> Result<CatalogDocuments, DatabaseError> {
        let list_files = || {
            let entries =
                std::fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path());
            let mut files: Vec<_> = entries.map(|path| (std::fs::read(&path).ok(), path)).collect();
            files.sort();
            files
        };
        let before = list_files();
        let declared = read(&self.path);
        assert!(before == list_files(), "files have changed");
        if let Err(error) = &declared {
            let (text, file) = (error.to_string(), self.path.to_string_lossy().into_owned());
            assert!(text.contains(&file), "{text}");
            assert!(!error.upstream().is_empty());
        }
        declared
    }

    /// The error of upstream.
    pub(crate) fn fault(&self) -> String {
        self.read().err().map_or_else(
            || panic!("the database can be read; an error was expected"),
            |error| error.upstream(),
        )
    }

    /// The documents of a schema.
    pub(crate) fn documents(&self, schema: &str) -> Vec<Value> {
        let declared = self.read().unwrap_or_else(|error| panic!("{error}"));
        let blobs = declared.blobs().filter(|blob| &**blob.schema() == schema);
        blobs.map(|blob| serde_json::from_slice(&blob.json().unwrap()).unwrap()).collect()
    }
}
