//! Registration: the `APIService` by which an API server finds this API.

use crate::{GROUP, VERSION};
use mainstay_object::Object;
use serde_json::json;

/// The name of the Service that serves this API.
pub const SERVICE: &str = "packageserver-service";

/// The `APIService` of this API, for its Service in a namespace.
pub fn registration(namespace: &str) -> Object {
    let mut object = Object::default();
    let mut set = |path: &[&str], value| object.set(path, value);
    set(&["apiVersion"], "apiregistration.k8s.io/v1".into());
    set(&["kind"], "APIService".into());
    set(&["metadata", "name"], format!("{VERSION}.{GROUP}").into());
    set(
        &["spec"],
        json!({
            "group": GROUP,
            "version": VERSION,
            "groupPriorityMinimum": 2000,
            "versionPriority": 15,
            "service": {"name": SERVICE, "namespace": namespace, "port": 5443},
        }),
    );
    object
}
