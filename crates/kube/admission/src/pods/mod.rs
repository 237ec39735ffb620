//! Pod plugins: `ServiceAccount`, `Priority`, `DefaultTolerationSeconds`, `RuntimeClass` and
//! `PodTopologyLabels` complete a new pod from other objects.
//!
//! Rules and texts: the plugins of the same names in Kubernetes 1.35.

mod error;

pub(crate) use error::PodError;

use super::{ADMITTED, AdmissionAttributes, AdmissionDecision, Operation, Plugin};
use error::{MirrorUse, SecretUse};
use mainstay_object::Object;
use mainstay_object::Objects;
use mainstay_object::fnv::random_suffix;
use mainstay_validation::fields::{FieldMap, for_each_object, object_mut, set_default, text_in};
use mainstay_validation::pods::{
    DEFAULT_SERVICE_ACCOUNT, sync_service_account_fields, tolerate_unreachable_nodes,
};
use serde_json::{Value, json};
use std::collections::HashSet;

/// Name prefix of token volumes, before a random suffix.
const TOKEN_VOLUME: &str = "kube-api-access-";
/// Mount path of the token.
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Lifetime of a token: an hour and 7 seconds, which identify tokens of this volume.
const TOKEN_SECONDS: i64 = 3607;
/// The annotation of mirror pods, which a node creates from a file.
const MIRROR_ANNOTATION: &str = "kubernetes.io/config.mirror";
/// The annotation of ServiceAccounts whose pods may use only the Secrets of the ServiceAccount.
const ENFORCE_MOUNTABLE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";
/// The default preemption policy.
const DEFAULT_PREEMPTION_POLICY: &str = "PreemptLowerPriority";
/// The storage resource of `PriorityClasses`.
const PRIORITY_CLASSES: &str = "scheduling.k8s.io/priorityclasses";
/// The labels that a pod copies from its node.
const TOPOLOGY_LABELS: [&str; 2] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

/// Whether a request is one of these operations on a pod, not on a subresource.
fn is_pod_operation(attributes: &AdmissionAttributes<'_>, operations: &[Operation]) -> bool {
    &*attributes.row.storage == "pods"
        && attributes.subresource.is_empty()
        && operations.contains(&attributes.operation)
}

/// Changes the pod, or refuses it.
fn admit_pod<'a>(
    attributes: &mut AdmissionAttributes<'_>,
    change: impl FnOnce(&mut Object, &PodContext<'_>) -> Result<(), PodError>,
) -> AdmissionDecision<'a> {
    let Some(mut pod) = attributes.object.take() else { return ADMITTED };
    let context = PodContext {
        namespace: attributes.namespace,
        objects: &attributes.admission.store.clone(),
    };
    let outcome = change(&mut pod, &context);
    attributes.object = Some(pod);
    AdmissionDecision::Ready(outcome.map_err(|error| attributes.forbidden(&error.to_string())))
}

/// Checks the pod.
fn validate_pod<'a>(
    attributes: &AdmissionAttributes<'_>,
    check: impl FnOnce(&Object, &PodContext<'_>) -> Result<(), PodError>,
) -> AdmissionDecision<'a> {
    let Some(pod) = &attributes.object else { return ADMITTED };
    let context =
        PodContext { namespace: attributes.namespace, objects: &attributes.admission.store };
    AdmissionDecision::Ready(
        check(pod, &context).map_err(|error| attributes.forbidden(&error.to_string())),
    )
}

/// The namespace of a pod, and the other objects.
struct PodContext<'a> {
    namespace: &'a str,
    objects: &'a dyn Objects,
}

/// `ServiceAccount`: sets the ServiceAccount of a pod and mounts its token.
pub(super) struct ServiceAccount;

impl Plugin for ServiceAccount {
    fn handles(&self, attributes: &AdmissionAttributes<'_>) -> bool {
        let adds_ephemeral_containers = attributes.subresource == "ephemeralcontainers"
            && attributes.operation == Operation::Update
            && &*attributes.row.storage == "pods";
        adds_ephemeral_containers || is_pod_operation(attributes, &[Operation::Create])
    }

    fn admit<'a>(&'a self, attributes: &'a mut AdmissionAttributes<'_>) -> AdmissionDecision<'a> {
        if attributes.operation != Operation::Create {
            return ADMITTED;
        }
        admit_pod(attributes, |pod, context| {
            if !is_mirror(pod) {
                let Some(spec) = object_mut(pod.fields_mut(), "spec") else { return Ok(()) };
                set_service_account(spec, context)?;
            }
            validate_service_account(pod, context)
        })
    }

    fn validate<'a>(&'a self, attributes: &'a AdmissionAttributes<'_>) -> AdmissionDecision<'a> {
        if attributes.operation == Operation::Create {
            return validate_pod(attributes, validate_service_account);
        }
        validate_pod(attributes, |pod, context| {
            let account = service_account_of(pod, context)?;
            if !enforces_mountable_secrets(&account) {
                return Ok(());
            }
            let lists = [("ephemeral container", "ephemeralContainers")];
            check_container_secrets(pod, &account, &lists)
        })
    }
}

fn is_mirror(pod: &Object) -> bool {
    pod.str(&["metadata", "annotations", MIRROR_ANNOTATION]).is_some()
}

/// The ServiceAccount of a pod. A controller creates the default ServiceAccount just after its
/// namespace; a pod does not wait for it.
fn service_account_of(pod: &Object, context: &PodContext<'_>) -> Result<Object, PodError> {
    let namespace = context.namespace;
    match pod.str(&["spec", "serviceAccountName"]).unwrap_or_default() {
        "" => {
            let (namespace, pod) = (namespace.to_owned(), pod.name().to_owned());
            Err(PodError::NoServiceAccount { namespace, pod })
        }
        name => find_service_account(name, context),
    }
}

fn find_service_account(name: &str, context: &PodContext<'_>) -> Result<Object, PodError> {
    let namespace = context.namespace;
    match context.objects.get("serviceaccounts", namespace, name) {
        Some(account) => Ok(account),
        None if name == DEFAULT_SERVICE_ACCOUNT => Ok(Object::default()),
        None => {
            let (namespace, name) = (namespace.to_owned(), name.to_owned());
            Err(PodError::UnknownServiceAccount { namespace, name })
        }
    }
}

/// Sets the ServiceAccount of a pod, its token and its image pull secrets.
fn set_service_account(spec: &mut FieldMap, context: &PodContext<'_>) -> Result<(), PodError> {
    set_default(spec, "serviceAccountName", DEFAULT_SERVICE_ACCOUNT);
    sync_service_account_fields(spec);
    let account = find_service_account(text_in(spec, "serviceAccountName"), context)?;
    let of_pod = spec.get("automountServiceAccountToken").and_then(Value::as_bool);
    if of_pod.or(account.bool(&["automountServiceAccountToken"])).unwrap_or(true) {
        mount_token(spec);
    }
    let secrets = account.array(&["imagePullSecrets"]);
    let present = spec.get("imagePullSecrets").and_then(Value::as_array);
    if present.is_none_or(Vec::is_empty) && !secrets.is_empty() {
        spec.insert("imagePullSecrets".to_owned(), secrets.to_vec().into());
    }
    Ok(())
}

/// Mounts the token of the ServiceAccount into each container with a free mount path.
fn mount_token(spec: &mut FieldMap) {
    let volumes = spec.get("volumes").and_then(Value::as_array).into_iter().flatten();
    let present = volumes
        .filter_map(|volume| volume.get("name")?.as_str())
        .find(|name| name.starts_with(TOKEN_VOLUME))
        .map(ToOwned::to_owned);
    let has_volume = present.is_some();
    let name = present.unwrap_or_else(|| format!("{TOKEN_VOLUME}{}", random_suffix(5)));
    let mut is_mounted = false;
    for list in ["initContainers", "containers"] {
        for_each_object(spec, list, |container| {
            set_default(container, "volumeMounts", json!([]));
            let Some(mounts) = container.get_mut("volumeMounts").and_then(Value::as_array_mut)
            else {
                return;
            };
            let is_taken =
                |mount: &Value| mount.get("mountPath").and_then(Value::as_str) == Some(TOKEN_PATH);
            if !mounts.iter().any(is_taken) {
                mounts.push(json!({"mountPath": TOKEN_PATH, "name": name, "readOnly": true}));
                is_mounted = true;
            }
        });
    }
    if has_volume || !is_mounted {
        return;
    }
    set_default(spec, "volumes", json!([]));
    if let Some(volumes) = spec.get_mut("volumes").and_then(Value::as_array_mut) {
        let namespace = json!({"apiVersion": "v1", "fieldPath": "metadata.namespace"});
        volumes.push(json!({"name": name, "projected": {
            "defaultMode": 0o644,
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
                {"configMap": {
                    "items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt",
                }},
                {"downwardAPI": {"items": [{"fieldRef": namespace, "path": "namespace"}]}},
            ],
        }}));
    }
}

/// A mirror pod has no ServiceAccount and no Secrets; other pods have an existing ServiceAccount.
fn validate_service_account(pod: &Object, context: &PodContext<'_>) -> Result<(), PodError> {
    if !is_mirror(pod) {
        let account = service_account_of(pod, context)?;
        return if enforces_mountable_secrets(&account) {
            check_secrets(pod, &account)
        } else {
            Ok(())
        };
    }
    if !pod.str(&["spec", "serviceAccountName"]).unwrap_or_default().is_empty() {
        return Err(PodError::Mirror(MirrorUse::Account));
    }
    let Some(spec) = pod.get(&["spec"]) else { return Ok(()) };
    if references_secrets(spec) {
        return Err(PodError::Mirror(MirrorUse::Secrets));
    }
    let token = |volume: &Value| {
        let sources = volume.pointer("/projected/sources").and_then(Value::as_array);
        sources.into_iter().flatten().any(|source| source.get("serviceAccountToken").is_some())
    };
    if pod.array(&["spec", "volumes"]).iter().any(token) {
        return Err(PodError::Mirror(MirrorUse::Token));
    }
    Ok(())
}

/// Whether a pod spec refers to a Secret.
fn references_secrets(value: &Value) -> bool {
    const NAMES: [&str; 7] = [
        "secret",
        "secretRef",
        "secretKeyRef",
        "secretName",
        "nodePublishSecretRef",
        "imagePullSecrets",
        "azureFile",
    ];
    match value {
        Value::Array(list) => list.iter().any(references_secrets),
        Value::Object(fields) => fields.iter().any(|(key, value)| {
            let is_set = !value.is_null() && *value != json!([]);
            (NAMES.contains(&key.as_str()) && is_set) || references_secrets(value)
        }),
        _ => false,
    }
}

/// Whether pods of a ServiceAccount may use only its Secrets.
fn enforces_mountable_secrets(account: &Object) -> bool {
    let value = account.str(&["metadata", "annotations", ENFORCE_MOUNTABLE_SECRETS]);
    matches!(value, Some("1" | "t" | "T" | "true" | "TRUE" | "True"))
}

fn check_secrets(pod: &Object, account: &Object) -> Result<(), PodError> {
    let mounted = mountable_secrets(account);
    let refused = |by| Err(PodError::Secret { by, account: account.name().to_owned() });
    for volume in pod.array(&["spec", "volumes"]) {
        let secret = volume.pointer("/secret/secretName").and_then(Value::as_str);
        if let Some(secret) = secret.filter(|secret| !mounted.contains(secret)) {
            return refused(SecretUse::Volume { secret: secret.to_owned() });
        }
    }
    let lists = [("init container", "initContainers"), ("container", "containers")];
    check_container_secrets(pod, account, &lists)?;
    let pulls: HashSet<Option<&Value>> =
        account.array(&["imagePullSecrets"]).iter().map(|pull| pull.get("name")).collect();
    for (at, secret) in pod.array(&["spec", "imagePullSecrets"]).iter().enumerate() {
        if !pulls.contains(&secret.get("name")) {
            let secret = secret.get("name").and_then(Value::as_str).unwrap_or_default();
            return refused(SecretUse::ImagePull { at, secret: secret.to_owned() });
        }
    }
    Ok(())
}

/// The names of the Secrets that a ServiceAccount refers to.
fn mountable_secrets(account: &Object) -> HashSet<&str> {
    let secrets = account.array(&["secrets"]).iter();
    secrets.filter_map(|secret| secret.get("name").and_then(Value::as_str)).collect()
}

/// Checks the Secrets in the environment of containers. `lists`: a word for the containers of each
/// list, and its field.
fn check_container_secrets(
    pod: &Object,
    account: &Object,
    lists: &[(&'static str, &str)],
) -> Result<(), PodError> {
    let mounted = mountable_secrets(account);
    let refused = |by| Err(PodError::Secret { by, account: account.name().to_owned() });
    for &(list, field) in lists {
        for container in pod.array(&["spec", field]) {
            let text = |value: &Value, path: &str| {
                value.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
            };
            let elements =
                |field: &str| container.get(field).and_then(Value::as_array).into_iter().flatten();
            let name = || text(container, "/name");
            for variable in elements("env") {
                if variable.pointer("/valueFrom/secretKeyRef").is_some() {
                    let secret = text(variable, "/valueFrom/secretKeyRef/name");
                    if !mounted.contains(secret.as_str()) {
                        let (container, variable) = (name(), text(variable, "/name"));
                        return refused(SecretUse::Env { list, container, variable, secret });
                    }
                }
            }
            for source in elements("envFrom") {
                let secret = text(source, "/secretRef/name");
                if source.get("secretRef").is_some() && !mounted.contains(secret.as_str()) {
                    return refused(SecretUse::EnvFrom { list, container: name(), secret });
                }
            }
        }
    }
    Ok(())
}

/// `Priority`: sets the priority of a pod from its `PriorityClass`, and allows one default class.
pub(super) struct Priority;

impl Plugin for Priority {
    fn handles(&self, attributes: &AdmissionAttributes<'_>) -> bool {
        let is_write = matches!(attributes.operation, Operation::Create | Operation::Update);
        let is_class =
            &*attributes.row.storage == PRIORITY_CLASSES && attributes.subresource.is_empty();
        (is_class && is_write) || is_pod_operation(attributes, &[Operation::Create])
    }

    fn admit<'a>(&'a self, attributes: &'a mut AdmissionAttributes<'_>) -> AdmissionDecision<'a> {
        if &*attributes.row.storage == PRIORITY_CLASSES {
            return ADMITTED;
        }
        admit_pod(attributes, |pod, context| match object_mut(pod.fields_mut(), "spec") {
            Some(spec) => set_priority(spec, context),
            None => Ok(()),
        })
    }

    fn validate<'a>(&'a self, attributes: &'a AdmissionAttributes<'_>) -> AdmissionDecision<'a> {
        if &*attributes.row.storage != PRIORITY_CLASSES {
            return ADMITTED;
        }
        validate_pod(attributes, |class, context| {
            let is_default = class.bool(&["globalDefault"]) == Some(true);
            let present = default_class(context).filter(|_| is_default);
            let Some(present) = present else { return Ok(()) };
            if attributes.operation == Operation::Update && present.name() == class.name() {
                return Ok(());
            }
            Err(PodError::SecondDefaultClass { present: present.name().to_owned() })
        })
    }
}

/// The default `PriorityClass`: of several that with the lowest value.
fn default_class(context: &PodContext<'_>) -> Option<Object> {
    let classes = context.objects.list(PRIORITY_CLASSES, None).into_iter();
    let defaults = classes.filter(|class| class.bool(&["globalDefault"]) == Some(true));
    defaults.min_by_key(|class| class.i64(&["value"]))
}

fn set_priority(spec: &mut FieldMap, context: &PodContext<'_>) -> Result<(), PodError> {
    let values = |class: &Object| {
        let policy =
            class.str(&["preemptionPolicy"]).unwrap_or(DEFAULT_PREEMPTION_POLICY).to_owned();
        (class.i64(&["value"]).unwrap_or_default(), policy)
    };
    let (priority, policy) = match text_in(spec, "priorityClassName") {
        "" => match default_class(context) {
            None => (0, DEFAULT_PREEMPTION_POLICY.to_owned()),
            Some(class) => {
                spec.insert("priorityClassName".to_owned(), class.name().into());
                values(&class)
            }
        },
        "system-cluster-critical" => (2_000_000_000, DEFAULT_PREEMPTION_POLICY.to_owned()),
        "system-node-critical" => (2_000_001_000, DEFAULT_PREEMPTION_POLICY.to_owned()),
        name => match context.objects.get(PRIORITY_CLASSES, "", name) {
            Some(class) => values(&class),
            None => return Err(PodError::UnknownPriorityClass { name: name.to_owned() }),
        },
    };
    if let Some(given) = spec.get("priority").and_then(Value::as_i64)
        && given != priority
    {
        return Err(PodError::PriorityMismatch { given, computed: priority });
    }
    let given = text_in(spec, "preemptionPolicy");
    if spec.get("preemptionPolicy").is_some_and(|given| !given.is_null()) && given != policy {
        let given = given.to_owned();
        return Err(PodError::PreemptionPolicyMismatch { given, computed: policy });
    }
    spec.insert("priority".to_owned(), priority.into());
    spec.insert("preemptionPolicy".to_owned(), policy.into());
    Ok(())
}

/// `DefaultTolerationSeconds`: tolerations that limit how long a pod stays on an unreachable node.
pub(super) struct DefaultTolerationSeconds;

impl Plugin for DefaultTolerationSeconds {
    fn handles(&self, attributes: &AdmissionAttributes<'_>) -> bool {
        is_pod_operation(attributes, &[Operation::Create, Operation::Update])
            && !mainstay_fault::is_on("pods-do-not-leave-lost-nodes")
    }

    fn admit<'a>(&'a self, attributes: &'a mut AdmissionAttributes<'_>) -> AdmissionDecision<'a> {
        admit_pod(attributes, |pod, _| {
            if let Some(spec) = object_mut(pod.fields_mut(), "spec") {
                tolerate_unreachable_nodes(spec);
            }
            Ok(())
        })
    }
}

/// `RuntimeClass`: overhead, node selector and tolerations of the `RuntimeClass` of a pod.
pub(super) struct RuntimeClass;

impl Plugin for RuntimeClass {
    fn handles(&self, attributes: &AdmissionAttributes<'_>) -> bool {
        is_pod_operation(attributes, &[Operation::Create])
    }

    fn admit<'a>(&'a self, attributes: &'a mut AdmissionAttributes<'_>) -> AdmissionDecision<'a> {
        admit_pod(attributes, |pod, context| {
            let class = runtime_class(pod, context)?;
            match object_mut(pod.fields_mut(), "spec") {
                Some(spec) => apply_runtime_class(spec, &class),
                None => Ok(()),
            }
        })
    }

    fn validate<'a>(&'a self, attributes: &'a AdmissionAttributes<'_>) -> AdmissionDecision<'a> {
        validate_pod(attributes, |pod, context| {
            let given = pod.get(&["spec", "overhead"]).filter(|given| !given.is_null());
            match (runtime_class(pod, context)?.get(&["overhead", "podFixed"]), given) {
                (None, Some(_)) => Err(PodError::UndefinedOverhead),
                (Some(fixed), Some(given)) if given != fixed => Err(PodError::OverheadMismatch),
                _ => Ok(()),
            }
        })
    }
}

/// The `RuntimeClass` of a pod; an empty object if it names none.
fn runtime_class(pod: &Object, context: &PodContext<'_>) -> Result<Object, PodError> {
    let Some(name) = pod.str(&["spec", "runtimeClassName"]) else { return Ok(Object::default()) };
    let class = context.objects.get("node.k8s.io/runtimeclasses", "", name);
    class.ok_or_else(|| PodError::UnknownRuntimeClass { name: name.to_owned() })
}

fn apply_runtime_class(spec: &mut FieldMap, class: &Object) -> Result<(), PodError> {
    if let Some(fixed) = class.get(&["overhead", "podFixed"]) {
        let is_empty = |value: &Value| value.as_object().is_none_or(serde_json::Map::is_empty);
        let given = spec.get("overhead").filter(|given| !is_empty(given));
        if given.is_some_and(|given| given != fixed) {
            return Err(PodError::OverheadMismatch);
        }
        spec.insert("overhead".to_owned(), fixed.clone());
    }
    if let Some(wanted) = class.get(&["scheduling", "nodeSelector"]).and_then(Value::as_object) {
        set_default(spec, "nodeSelector", json!({}));
        let Some(selector) = object_mut(spec, "nodeSelector") else { return Ok(()) };
        for (key, value) in wanted {
            let text = value.as_str().unwrap_or_default();
            let given = selector.get(key).and_then(Value::as_str).unwrap_or(text);
            if given != text {
                let [wanted, given] = [text, given].map(str::to_owned);
                return Err(PodError::NodeSelectorConflict { key: key.clone(), wanted, given });
            }
            selector.insert(key.clone(), value.clone());
        }
    }
    let more = class.array(&["scheduling", "tolerations"]);
    if more.is_empty() {
        return Ok(());
    }
    set_default(spec, "tolerations", json!([]));
    if let Some(tolerations) = spec.get_mut("tolerations").and_then(Value::as_array_mut) {
        let mut distinct: HashSet<&Value> = tolerations.iter().collect();
        let new = more.iter().filter(|toleration| distinct.insert(toleration));
        let new: Vec<Value> = new.cloned().collect();
        tolerations.extend(new);
    }
    Ok(())
}

/// `PodTopologyLabels`: copies zone and region labels of the node to its pod.
pub(super) struct PodTopologyLabels;

impl Plugin for PodTopologyLabels {
    fn handles(&self, attributes: &AdmissionAttributes<'_>) -> bool {
        &*attributes.row.storage == "pods"
            && matches!(attributes.subresource, "" | "binding")
            && attributes.operation == Operation::Create
    }

    fn admit<'a>(&'a self, attributes: &'a mut AdmissionAttributes<'_>) -> AdmissionDecision<'a> {
        let is_binding = attributes.subresource == "binding";
        admit_pod(attributes, |object, context| {
            let node = if is_binding {
                let target = object.get(&["target"]);
                let text = |field: &str| target?.get(field)?.as_str();
                text("name").filter(|_| text("kind") == Some("Node"))
            } else {
                object.str(&["spec", "nodeName"])
            };
            let node = node.filter(|name| !name.is_empty());
            let node = node.and_then(|name| context.objects.get("nodes", "", name));
            let Some(node) = node else { return Ok(()) };
            for key in TOPOLOGY_LABELS {
                if let Some(value) = node.label(key) {
                    object.set_label(key, value);
                }
            }
            Ok(())
        })
    }
}

/// Applies the plugins of this module to a new pod, for tests of validation.
#[cfg(test)]
pub(crate) fn admit_new(pod: &mut Object, objects: &dyn Objects) -> Result<(), PodError> {
    let namespace = pod.namespace().to_owned();
    let context = PodContext { namespace: &namespace, objects };
    let Some(spec) = object_mut(pod.fields_mut(), "spec") else { return Ok(()) };
    set_service_account(spec, &context)?;
    set_priority(spec, &context)?;
    tolerate_unreachable_nodes(spec);
    let class = runtime_class(pod, &context)?;
    object_mut(pod.fields_mut(), "spec").map_or(Ok(()), |spec| apply_runtime_class(spec, &class))
}

#[cfg(test)]
mod tests;
