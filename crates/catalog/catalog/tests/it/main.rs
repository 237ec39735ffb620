//! Integration tests of the catalog crate.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod diagram;
mod files;
mod hostile;
mod hostile_bytes;
mod lint;
mod model;
mod opm;
mod problems;
mod properties;
mod real;
mod robust;
mod snapshot;
mod template;
mod write;

use mainstay_catalog::{Catalog, LoadError, LoadOptions, MemorySource};
use std::sync::Arc;

/// Loads files that are given as path and content.
fn load(files: &[(&str, &str)]) -> Result<Arc<Catalog>, LoadError> {
    let files: MemorySource = files.iter().copied().collect();
    Catalog::load_from(&files, &LoadOptions::default())
}

/// A sound catalog of one package, with two channels, three bundles and all kinds of documents.
const SOUND: &str = r#"---
schema: olm.package
name: kiwi
defaultChannel: stable
description: |
  A bird.
icon:
  base64data: PHN2Zy8+
  mediatype: image/svg+xml
---
schema: olm.channel
package: kiwi
name: stable
entries:
- name: kiwi.v1.0.0
- name: kiwi.v1.1.0
  replaces: kiwi.v1.0.0
  skips: [kiwi.v1.0.1]
  skipRange: ">=1.0.0 <1.1.0"
---
schema: olm.channel
package: kiwi
name: beta
entries:
- name: kiwi.v1.1.0
- name: kiwi.v1.2.0
  replaces: kiwi.v1.1.0
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
- type: olm.gvk
  value: {group: birds.example.com, version: v1, kind: Kiwi}
- type: olm.gvk.required
  value: {group: trees.example.com, version: v1, kind: Fern}
- type: olm.package.required
  value: {packageName: fern, versionRange: ">=1.0.0"}
- type: olm.package
  value: {packageName: kiwi, version: 1.1.0}
- type: olm.bundle.object
  value:
    data: eyJhcGlWZXJzaW9uIjoidjEiLCJraW5kIjoiU2VydmljZSIsIm1ldGFkYXRhIjp7Im5hbWUiOiJraXdpIn19
- type: olm.bundle.object
  value:
    # apiVersion: operators.coreos.com/v1alpha1, kind: ClusterServiceVersion, as YAML
    data: YXBpVmVyc2lvbjogb3BlcmF0b3JzLmNvcmVvcy5jb20vdjFhbHBoYTEKa2luZDogQ2x1c3RlclNlcnZpY2VWZXJzaW9uCm1ldGFkYXRhOgogIG5hbWU6IGtpd2kudjEuMS4wCg==
relatedImages:
- name: operator
  image: example.com/kiwi/operator:v1.1.0
---
schema: olm.bundle
package: kiwi
name: kiwi.v1.2.0
image: example.com/kiwi:v1.2.0
properties:
- type: olm.package
  value: {packageName: kiwi, version: 1.2.0}
- type: olm.csv.metadata
  value: {displayName: Kiwi}
---
schema: olm.deprecations
package: kiwi
entries:
- reference: {schema: olm.channel, name: beta}
  message: beta ends
- reference: {schema: olm.bundle, name: kiwi.v1.0.0}
  message: use 1.1
- reference: {schema: olm.package}
  message: kiwis are gone
---
schema: example.com.notes
package: kiwi
text: kept as it is
"#;
