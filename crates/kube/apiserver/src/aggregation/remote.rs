//! Remote group-versions, as their `APIService` objects describe them.

use mainstay_object::Object;
use mainstay_outbound::ca_bundle_pem;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::sync::Arc;

/// Storage name of `APIService` objects.
pub(crate) const STORAGE: &str = "apiregistration.k8s.io/apiservices";
/// Storage name of `EndpointSlice` objects.
pub(super) const SLICES: &str = "discovery.k8s.io/endpointslices";

/// A group-version of another API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Remote {
    pub(super) name: Arc<str>,
    pub(super) group: String,
    pub(super) version: String,
    pub(super) namespace: String,
    pub(super) service: String,
    pub(super) port: u16,
    /// CA certificates of the server in PEM; empty for none.
    pub(super) ca: Arc<str>,
    pub(super) insecure: bool,
    /// Whether the condition `Available` is true.
    pub(super) available: bool,
    pub(super) group_priority: i64,
    pub(super) version_priority: i64,
}

impl Remote {
    /// The group-version of an `APIService`; none if the object names no Service.
    pub(super) fn read(object: &Object) -> Option<Self> {
        let service = object.get(&["spec", "service"]).filter(|service| service.is_object())?;
        let text = |value: &Value, field: &str| {
            value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let spec = object.get(&["spec"])?;
        let port = service.get("port").and_then(Value::as_u64).unwrap_or(443);
        Some(Self {
            name: object.name().into(),
            group: text(spec, "group"),
            version: text(spec, "version"),
            namespace: text(service, "namespace"),
            service: text(service, "name"),
            port: u16::try_from(port).ok()?,
            ca: ca_bundle_pem(&text(spec, "caBundle")),
            insecure: spec.get("insecureSkipTLSVerify") == Some(&Value::Bool(true)),
            available: condition(object).is_some_and(|condition| condition["status"] == "True"),
            group_priority: object.i64(&["spec", "groupPriorityMinimum"]).unwrap_or_default(),
            version_priority: object.i64(&["spec", "versionPriority"]).unwrap_or_default(),
        })
    }

    /// The path of its discovery document.
    pub(super) fn path(&self) -> String {
        if self.group.is_empty() {
            format!("/api/{}", self.version)
        } else {
            format!("/apis/{}/{}", self.group, self.version)
        }
    }
}

/// The condition `Available` of an `APIService`.
pub(super) fn condition(object: &Object) -> Option<&Value> {
    object
        .array(&["status", "conditions"])
        .iter()
        .find(|condition| condition["type"] == "Available")
}

/// Whether an `APIService` names a Service; an unreadable one does not.
pub(super) fn has_service(bytes: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct ServiceReference {
        spec: ServiceReferenceSpec,
    }
    #[derive(Deserialize)]
    struct ServiceReferenceSpec {
        service: Option<IgnoredAny>,
    }
    serde_json::from_slice(bytes).is_ok_and(|ServiceReference { spec }| spec.service.is_some())
}
