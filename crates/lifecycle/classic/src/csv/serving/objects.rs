//! Desired objects around a server: its Service, Secret, RBAC objects, webhook configurations,
//! conversions and APIServices.

use super::certificate::{self, ServingCertificate};
use super::observed::{self, Conversion};
use super::required::{self, OwnedApi, Server};
use crate::permissions;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_api::{ClusterServiceVersion, OperatorGroup, WebhookDescription, names};
use mainstay_object::{Object, Resource, builtin};
use serde_json::{Map, Value, json};

/// The namespace of the Role that lets API servers read how to authenticate their callers.
pub(super) const SYSTEM: &str = "kube-system";
/// The name of that Role.
const AUTHENTICATION_READER: &str = "extension-apiserver-authentication-reader";
/// The ClusterRole that lets servers authenticate and authorize their callers.
const DELEGATOR: &str = "system:auth-delegator";
const RBAC: &str = "rbac.authorization.k8s.io";
/// Annotation of Secrets: the component that owns the certificate.
const OWNING_COMPONENT: &str = "openshift.io/owning-component";

/// The name of the binding of a server to the delegator ClusterRole.
pub(super) fn delegator(service: &str) -> String {
    format!("{service}-{DELEGATOR}")
}

/// The name of the binding of a server to the authentication reader Role.
pub(super) fn reader(service: &str) -> String {
    format!("{service}-auth-reader")
}

/// An object of a CSV in the namespace of the CSV.
fn owned(csv: &ClusterServiceVersion, resource: &Resource, name: &str) -> Object {
    let metadata = &csv.metadata;
    let mut object = Object::new(&resource.gvk(), name);
    object.set(&["metadata", "namespace"], metadata.namespace.as_str().into());
    object.set_label(names::MANAGED, names::MANAGED_VALUE);
    object.set(
        &["metadata", "ownerReferences"],
        json!([permissions::csv_owner(&metadata.name, &metadata.uid)]),
    );
    object
}

/// An object of a CSV outside of the namespace of the CSV; owner labels name the CSV.
fn labelled(csv: &ClusterServiceVersion, resource: &Resource, name: &str) -> Object {
    let mut object = Object::new(&resource.gvk(), name);
    object.set(&["metadata", "labels"], Value::Object(labels(csv)));
    object
}

fn labels(csv: &ClusterServiceVersion) -> Map<String, Value> {
    let metadata = &csv.metadata;
    let mut labels = permissions::owner_labels(&csv.kind, &metadata.namespace, &metadata.name);
    labels.insert(names::MANAGED.to_owned(), names::MANAGED_VALUE.into());
    labels
}

pub(super) fn service(csv: &ClusterServiceVersion, server: &Server) -> Object {
    let mut object = owned(csv, &builtin::SERVICE, &server.service());
    object.set(&["spec", "ports"], server.ports.clone().into());
    object.set(&["spec", "selector"], server.selector.clone());
    object
}

pub(super) fn secret(
    csv: &ClusterServiceVersion,
    server: &Server,
    serving_certificate: &ServingCertificate,
) -> Object {
    let mut object = owned(csv, &builtin::SECRET, &server.secret());
    object.set_annotation(
        names::CA_HASH,
        certificate::sha256_hex(serving_certificate.authority.as_bytes()),
    );
    object.set_annotation(OWNING_COMPONENT, "Operator Framework / operator-lifecycle-manager");
    object.set(&["type"], "kubernetes.io/tls".into());
    let encode = |text: &str| STANDARD.encode(text);
    object.set(
        &["data"],
        json!({
            certificate::CA_CERTIFICATE: encode(&serving_certificate.authority),
            certificate::CERTIFICATE: encode(&serving_certificate.certificate),
            certificate::KEY: encode(&serving_certificate.key),
        }),
    );
    object
}

/// The Role that lets the pods read the Secret, and its RoleBinding.
pub(super) fn secret_rbac(csv: &ClusterServiceVersion, server: &Server) -> [(Resource, Object); 2] {
    let name = server.secret();
    let mut role = owned(csv, &builtin::ROLE, &name);
    role.set(
        &["rules"],
        json!([{"apiGroups": [""], "resources": ["secrets"], "resourceNames": [name], "verbs": ["get"]}]),
    );
    let mut binding = owned(csv, &builtin::ROLE_BINDING, &name);
    bind(&mut binding, csv, server, "Role", &name);
    [(builtin::ROLE, role), (builtin::ROLE_BINDING, binding)]
}

/// The bindings that let the server authenticate and authorize its callers.
pub(super) fn delegation_bindings(
    csv: &ClusterServiceVersion,
    server: &Server,
) -> [(Resource, Object); 2] {
    let service = server.service();
    let mut delegation = labelled(csv, &builtin::CLUSTER_ROLE_BINDING, &delegator(&service));
    bind(&mut delegation, csv, server, "ClusterRole", DELEGATOR);
    let mut reader = labelled(csv, &builtin::ROLE_BINDING, &reader(&service));
    reader.set(&["metadata", "namespace"], SYSTEM.into());
    bind(&mut reader, csv, server, "Role", AUTHENTICATION_READER);
    [(builtin::CLUSTER_ROLE_BINDING, delegation), (builtin::ROLE_BINDING, reader)]
}

fn bind(
    binding: &mut Object,
    csv: &ClusterServiceVersion,
    server: &Server,
    kind: &str,
    role: &str,
) {
    binding.set(&["roleRef"], json!({"apiGroup": RBAC, "kind": kind, "name": role}));
    binding.set(
        &["subjects"],
        json!([{
            "kind": "ServiceAccount", "name": server.account, "namespace": csv.metadata.namespace,
        }]),
    );
}

pub(super) fn api_service(csv: &ClusterServiceVersion, api: &OwnedApi, bundle: &str) -> Object {
    let mut object = labelled(csv, &builtin::API_SERVICE, &api.name);
    object.set(
        &["spec"],
        json!({
            "group": api.group, "version": api.version,
            "groupPriorityMinimum": 2000, "versionPriority": 15,
            "caBundle": STANDARD.encode(bundle),
            "service": {
                "namespace": csv.metadata.namespace, "name": required::service(&api.deployment),
                "port": api.port,
            },
        }),
    );
    object
}

/// The namespace selector of webhooks: the target namespaces of the OperatorGroup.
pub(super) fn namespaces(group: &OperatorGroup) -> Value {
    if !group.spec.target_namespaces.is_empty() {
        let label = format!("{}{}", names::OPERATOR_GROUP_UID_PREFIX, group.metadata.uid);
        return json!({"matchLabels": {label: ""}});
    }
    let selector = serde_json::to_value(&group.spec.selector).unwrap_or_default();
    if selector.is_object() { selector } else { json!({}) }
}

/// The resource of a webhook configuration.
pub(super) const fn configuration_of(mutating: bool) -> Resource {
    if mutating {
        builtin::MUTATING_WEBHOOK_CONFIGURATION
    } else {
        builtin::VALIDATING_WEBHOOK_CONFIGURATION
    }
}

/// A webhook configuration, without a name.
pub(super) fn configuration(
    csv: &ClusterServiceVersion,
    description: &WebhookDescription,
    group: &OperatorGroup,
    bundle: &str,
) -> Object {
    let resource = configuration_of(observed::is_mutating(&description.kind));
    let mut object = labelled(csv, &resource, "");
    object.remove(&["metadata", "name"]);
    object.set(&["metadata", "generateName"], format!("{}-", description.generate_name).into());
    object.set_label(names::WEBHOOK_GENERATE_NAME, description.generate_name.as_str());
    object.set_label(names::WEBHOOK_HASH, required::webhook_hash(description));
    let webhook = webhook(csv, description, &namespaces(group), Some(bundle));
    object.set(&["webhooks"], json!([webhook]));
    object
}

/// One webhook of a configuration. The API server sets defaults for what the description leaves
/// out.
pub(super) fn webhook(
    csv: &ClusterServiceVersion,
    description: &WebhookDescription,
    namespaces: &Value,
    bundle: Option<&str>,
) -> Value {
    let mut client = client(csv, description, description.webhook_path.as_deref());
    if let Some(bundle) = bundle {
        client["caBundle"] = STANDARD.encode(bundle).into();
    }
    let mut webhook = json!({
        "name": description.generate_name,
        "admissionReviewVersions": description.admission_review_versions,
        "clientConfig": client,
        "namespaceSelector": namespaces,
        "objectSelector": {},
    });
    let mut set = |field: &str, value: Option<Value>| {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            webhook[field] = value;
        }
    };
    let text = |value: &Option<String>| value.as_deref().map(Value::from);
    set("sideEffects", text(&description.side_effects));
    set("failurePolicy", text(&description.failure_policy));
    set("matchPolicy", text(&description.match_policy));
    set("timeoutSeconds", description.timeout_seconds.map(Value::from));
    set("objectSelector", description.object_selector.clone());
    if !description.rules.is_empty() {
        set("rules", Some(description.rules.clone().into()));
    }
    if observed::is_mutating(&description.kind) {
        set("reinvocationPolicy", text(&description.reinvocation_policy));
    }
    webhook
}

fn client(csv: &ClusterServiceVersion, webhook: &WebhookDescription, path: Option<&str>) -> Value {
    let port = if webhook.container_port > 0 { webhook.container_port } else { 443 };
    let mut service = json!({
        "namespace": csv.metadata.namespace, "name": required::service(&webhook.deployment_name), "port": port,
    });
    if let Some(path) = path {
        service["path"] = path.into();
    }
    json!({"service": service})
}

/// The conversion by a webhook, as a field of a CustomResourceDefinition.
pub(super) fn conversion(
    csv: &ClusterServiceVersion,
    description: &WebhookDescription,
    bundle: &str,
) -> Value {
    let path = description.webhook_path.as_deref().unwrap_or("/");
    let mut client = client(csv, description, Some(path));
    client["caBundle"] = STANDARD.encode(bundle).into();
    json!({"strategy": "Webhook", "webhook": {
        "clientConfig": client,
        "conversionReviewVersions": description.admission_review_versions,
    }})
}

/// Whether the conversion calls this webhook, whichever CAs it trusts.
pub(super) fn is_conversion(
    csv: &ClusterServiceVersion,
    description: &WebhookDescription,
    found: &Conversion,
) -> bool {
    let service = required::service(&description.deployment_name);
    let port = if description.container_port > 0 { description.container_port } else { 443 };
    found.service == (csv.metadata.namespace.clone(), service)
        && found.path == description.webhook_path.as_deref().unwrap_or("/")
        && found.port == port
        && found.reviews == description.admission_review_versions
}
