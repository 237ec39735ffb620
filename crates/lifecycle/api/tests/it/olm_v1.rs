//! OLM v1: views.

use mainstay_api::{AvailabilityMode, ClusterCatalog, ClusterCatalogSourceType};
use mainstay_object::Object;
use serde_json::json;

#[test]
fn cluster_catalogs_survive_a_round_trip() {
    let catalog = Object::from_value(json!({
        "apiVersion": "olm.operatorframework.io/v1",
        "kind": "ClusterCatalog",
        "metadata": {"name": "a"},
        "spec": {
            "source": {"type": "Image", "image": {"ref": "q.io/a:b", "pollIntervalMinutes": 5}},
            "priority": -1,
            "availabilityMode": "Unavailable",
        },
        "status": {
            "lastUnpacked": "2024-05-06T07:08:09Z",
            "resolvedSource": {"type": "Image", "image": {"ref": "q.io/a@sha256:0"}},
            "urls": {"base": "https://a.b/catalogs/a"},
        },
    }))
    .unwrap();
    let view = ClusterCatalog::from_object(&catalog).unwrap();
    assert_eq!(view.spec.source.kind, ClusterCatalogSourceType::Image);
    assert!(!view.spec.is_available());
    assert_eq!(view.to_object().unwrap(), catalog);

    let mut empty = ClusterCatalog::new("", "a");
    assert_eq!(empty.spec.availability_mode, AvailabilityMode::default());
    assert!(empty.spec.is_available());
    empty.spec.source.kind = ClusterCatalogSourceType::Image;
    assert_eq!(
        empty.to_object().unwrap().get(&["spec"]),
        Some(&json!({"source": {"type": "Image"}}))
    );
}
