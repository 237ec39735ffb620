//! Test catalogs.

use mainstay_catalog::{Catalog, LoadOptions};
use mainstay_registry::{RegistryIndex, ServedCatalog, ServedCatalogs};
use std::{
    fmt::Write,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tempfile::TempDir;

/// Two packages and a custom schema, over two files.
pub(crate) const SMALL: &[(&str, &str)] = &[
    (
        "kiwi/catalog.yaml",
        "\
---
schema: olm.package
name: kiwi
defaultChannel: stable
---
schema: olm.channel
package: kiwi
name: stable
entries:
- name: kiwi.v1.0.0
- name: kiwi.v1.1.0
  replaces: kiwi.v1.0.0
---
schema: olm.bundle
package: kiwi
name: kiwi.v1.0.0
image: example.com/kiwi:v1.0.0
properties:
- type: olm.package
  value: {packageName: kiwi, version: 1.0.0}
---
schema: olm.bundle
package: kiwi
name: kiwi.v1.1.0
image: example.com/kiwi:v1.1.0
properties:
- type: olm.package
  value: {packageName: kiwi, version: 1.1.0}
",
    ),
    (
        "plum.yaml",
        "\
schema: olm.package
name: plum
defaultChannel: stable
---
schema: olm.channel
package: plum
name: stable
entries:
- name: plum.v2.0.0
---
schema: olm.bundle
package: plum
name: plum.v2.0.0
image: example.com/plum:v2.0.0
properties:
- type: olm.package
  value: {packageName: plum, version: 2.0.0}
---
schema: example.notes
package: plum
name: a b
",
    ),
];

/// Writes a catalog into a folder.
pub(crate) fn write(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let file = folder.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
}

/// A folder with a catalog.
pub(crate) fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), files);
    folder
}

/// The index of a catalog, dated [`THEN`].
pub(crate) fn index(files: &[(&str, &str)]) -> Arc<RegistryIndex> {
    let folder = folder(files);
    let catalog = Catalog::load(folder.path(), &LoadOptions::default()).unwrap();
    Arc::new(RegistryIndex::new(catalog, then()))
}

/// The modification time of every test catalog.
pub(crate) const THEN: &str = "Fri, 02 Jan 2026 15:04:05 GMT";

fn then() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_767_366_245)
}

/// Three served catalogs: `small` with content, one that is loading, and one that is broken.
pub(crate) fn served_catalogs() -> Arc<ServedCatalogs> {
    let shelf = ServedCatalogs::default();
    shelf.add("small").put(index(SMALL));
    shelf.add("loading");
    shelf.add("broken").fail("a.yaml:3: no");
    Arc::new(shelf)
}

/// A catalog whose download has that many bundles of that many bytes.
pub(crate) fn big(bundles: usize, bytes: usize) -> Arc<ServedCatalog> {
    let mut text = "schema: olm.package\nname: big\ndefaultChannel: c\n---\n".to_owned();
    text += "schema: olm.channel\npackage: big\nname: c\nentries:\n";
    let name = |index| format!("big.v1.0.{index}");
    for index in 0..bundles {
        let _ = writeln!(text, "- name: {}", name(index));
        if index > 0 {
            let _ = writeln!(text, "  replaces: {}", name(index - 1));
        }
    }
    for index in 0..bundles {
        let _ = writeln!(
            text,
            "---\nschema: olm.bundle\npackage: big\nname: {}\nimage: x.io/y:{index}\nproperties:\n\
             - type: olm.package\n  value: {{packageName: big, version: 1.0.{index}}}\n\
             - type: example.padding\n  value: \"{}\"",
            name(index),
            "padding. ".repeat(bytes / 9),
        );
    }
    let served = ServedCatalog::new("big");
    served.put(index(&[("big.yaml", &text)]));
    Arc::new(served)
}
