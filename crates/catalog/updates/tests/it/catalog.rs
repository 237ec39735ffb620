//! The update graph of a package of a catalog.

use mainstay_catalog::{Catalog, LoadOptions};
use mainstay_updates::Graph;

const CATALOG: &str = r#"---
schema: olm.package
name: kiwi
defaultChannel: stable
---
schema: olm.channel
package: kiwi
name: fast
entries:
- name: kiwi-v1.0.0-2
---
schema: olm.channel
package: kiwi
name: stable
entries:
- name: kiwi.v1.1.0
  replaces: kiwi.v1.0.0
  skips: [kiwi.v1.0.1]
  skipRange: ">=0.1.0 <1.1.0"
- name: kiwi.v1.0.0
---
schema: olm.bundle
package: kiwi
name: kiwi.v1.0.0
image: example.com/kiwi:v1.0.0
properties:
- type: olm.package
  value: {packageName: kiwi, version: 1.0.0+7}
- type: olm.deprecated
  value: {}
---
schema: olm.bundle
package: kiwi
name: kiwi-v1.0.0-2
image: example.com/kiwi:v1.0.0-2
properties:
- type: olm.package
  value: {packageName: kiwi, version: 1.0.0, release: "2"}
---
schema: olm.bundle
package: kiwi
name: kiwi.v1.1.0
image: example.com/kiwi:v1.1.0
properties:
- type: olm.package
  value: {packageName: kiwi, version: 1.1.0}
---
schema: olm.deprecations
package: kiwi
entries:
- reference: {schema: olm.package}
  message: find another bird
- reference: {schema: olm.channel, name: fast}
  message: too fast
- reference: {schema: olm.bundle, name: kiwi.v1.0.0}
  message: has a hole
"#;

#[test]
fn graph_has_the_content_of_a_catalog_package() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("kiwi.yaml"), CATALOG).unwrap();
    let catalog = Catalog::load(folder.path(), &LoadOptions::default()).unwrap();
    let graph = Graph::of(catalog.package("kiwi").unwrap());
    assert_eq!((&*graph.package, &*graph.default_channel), ("kiwi", "stable"));
    assert_eq!(graph.deprecation.as_deref(), Some("find another bird"));
    let channels: Vec<_> = graph
        .channels()
        .iter()
        .map(|channel| (&*channel.name, channel.deprecation.as_deref()))
        .collect();
    assert_eq!(channels, [("fast", Some("too fast")), ("stable", None)]);
    let bundles: Vec<_> = graph
        .bundles()
        .map(|bundle| {
            let version = bundle.version.as_ref().map(ToString::to_string).unwrap_or_default();
            let release = bundle.release.as_ref().map(ToString::to_string).unwrap_or_default();
            (
                bundle.name.to_string(),
                version,
                release,
                bundle.withdrawn,
                bundle.deprecation.is_some(),
            )
        })
        .collect();
    let row = |name: &str, version: &str, release: &str, withdrawn, deprecated| {
        (name.to_owned(), version.to_owned(), release.to_owned(), withdrawn, deprecated)
    };
    assert_eq!(
        bundles,
        [
            row("kiwi-v1.0.0-2", "1.0.0", "2", false, false),
            row("kiwi.v1.0.0", "1.0.0+7", "7", true, true),
            row("kiwi.v1.1.0", "1.1.0", "", false, false),
        ]
    );
    let head = graph.channel("stable").unwrap().head().unwrap();
    assert_eq!(&*head.name, "kiwi.v1.1.0");
    assert_eq!(head.replaces.as_deref(), Some("kiwi.v1.0.0"));
    assert_eq!(head.skips.iter().map(|name| &**name).collect::<Vec<_>>(), ["kiwi.v1.0.1"]);
    assert_eq!(head.skip_range.as_ref().map(|range| &*range.text), Some(">=0.1.0 <1.1.0"));
}
