//! Catalog pods: the desired objects of a catalog that runs as a pod, computed without API
//! requests.
//!
//! ```text
//! CatalogSource ─┬─ image ─────► account, policies, Pod of the image, Service
//!                └─ ConfigMap ─► account, role, binding, policies, Pod that serves it, Service
//! ```
//!
//! Names, labels, owner references, hashes and the Pod are upstream's, field by field: a cluster
//! that upstream managed keeps its pods, and label selectors of users still match. The hashes cover
//! the desired spec, so a changed spec has another hash.

use crate::follow;
use crate::mode::CatalogPods;
use mainstay_api::{CatalogSource, names};
use mainstay_controller::{
    gojson::{self, GoType},
    hash,
};
use mainstay_object::{Object, OwnerReference, Resource, builtin};
use mainstay_quantity::Quantity;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// The port of registries in pods.
pub(crate) const PORT: u16 = 50051;
/// `runAsUser` of restricted pods.
const RESTRICTED_USER: i64 = 1001;
/// Label of the pod of a ConfigMap catalog: the resource version of the ConfigMap.
const CONFIG_MAP_VERSION_LABEL: &str = "olm.configMapResourceVersion";
/// Annotation: the cluster autoscaler may evict the Pod although no workload controller recreates
/// it.
const SAFE_TO_EVICT_ANNOTATION: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict";
/// Annotation: the digest of the image that the Pod runs, if its status has none.
pub(crate) const IMAGE_ANNOTATION: &str = "mainstay.dev/catalog-image";
/// Label of namespaces: the enforced Pod Security level.
const POD_SECURITY_LABEL: &str = "pod-security.kubernetes.io/enforce";

/// The objects of a catalog pod.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CatalogObjects {
    /// Objects that must exist before the Pod.
    pub(crate) prerequisites: Vec<(Resource, Object)>,
    /// The Pod, with `generateName`.
    pub(crate) pod: Object,
    /// The Service of the Pod.
    pub(crate) service: Object,
}

/// Cached fields of a catalog pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CatalogPod {
    pub(crate) uid: String,
    /// Name of the CatalogSource.
    pub(crate) catalog: String,
    /// UID of the CatalogSource.
    pub(crate) owner: String,
    pub(crate) hash: String,
    /// The resource version of the ConfigMap that the pod serves.
    pub(crate) version: String,
    /// The pod will not serve again: its phase is final, or its node is gone.
    pub(crate) ended: bool,
    pub(crate) terminating: bool,
}

impl CatalogPod {
    /// The name of the CatalogSource.
    pub(crate) fn catalog(&self) -> &str {
        &self.catalog
    }

    pub(crate) fn of(pod: &Object) -> Self {
        let label = |key: &str| pod.label(key).unwrap_or_default().to_owned();
        let phase = pod.str(&["status", "phase"]).unwrap_or_default();
        let disrupted = pod.array(&["status", "conditions"]).iter().any(|condition| {
            condition["type"] == "DisruptionTarget" && condition["status"] == "True"
        });
        let owner = pod
            .owner_references()
            .into_iter()
            .find(|owner_reference| owner_reference.kind == "CatalogSource");
        Self {
            uid: pod.uid().to_owned(),
            catalog: label(names::CATALOG_SOURCE),
            owner: owner.map(|owner| owner.uid).unwrap_or_default(),
            hash: label(names::POD_SPEC_HASH),
            version: label(CONFIG_MAP_VERSION_LABEL),
            ended: matches!(phase, "Failed" | "Succeeded") || disrupted,
            terminating: pod.is_terminating(),
        }
    }
}

/// Cached fields of a Service or NetworkPolicy of a catalog: owners and a hash of the spec.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OwnedSpec {
    pub(crate) owners: Vec<OwnerReference>,
    spec: u64,
}

impl OwnedSpec {
    pub(crate) fn of(object: &Object) -> Self {
        let mut hash = DefaultHasher::new();
        object.get(&["spec"]).hash(&mut hash);
        Self { owners: object.owner_references(), spec: hash.finish() }
    }
}

/// Whether a catalog pod runs the image with these digests; `None` if neither status nor annotation
/// has a digest.
pub(crate) fn runs_image(pod: &Object, image: &BTreeSet<String>) -> Option<bool> {
    let statuses = |field: &str| pod.array(&["status", field]);
    // The second init container extracts the catalog image; the first one copies the tools.
    let of_image = match (statuses("initContainerStatuses"), statuses("containerStatuses")) {
        ([_, extracts], _) => extracts,
        ([], [serves]) => serves,
        _ => &Value::Null,
    };
    // `registry/repository@sha256:…`, `docker://sha256:…` or a digest alone.
    let image_id = of_image["imageID"].as_str().unwrap_or_default();
    let digest = image_id.rsplit(['@', '/']).next().filter(|digest| digest.starts_with("sha256:"));
    match digest {
        Some(digest) => Some(image.contains(digest)),
        None => pod.annotation(IMAGE_ANNOTATION).map(|digest| image.contains(digest)),
    }
}

/// The pods of a catalog to delete, and whether to create a new one.
pub(crate) fn select_pods<'p, P>(
    wanted: &Object,
    owner: &str,
    pods: &'p [(P, CatalogPod)],
) -> (Vec<&'p (P, CatalogPod)>, bool) {
    let label = |key: &str| wanted.label(key).unwrap_or_default();
    let serves = |pod: &CatalogPod| {
        !pod.ended
            && !pod.terminating
            && pod.owner == owner
            && pod.hash == label(names::POD_SPEC_HASH)
            && pod.version == label(CONFIG_MAP_VERSION_LABEL)
    };
    let keep = pods.iter().position(|(_, pod)| serves(pod));
    let gone = pods.iter().enumerate().filter(|(at, (_, pod))| {
        // A pod that terminates after its end never completes: its node is gone.
        Some(*at) != keep && (!pod.terminating || pod.ended)
    });
    (gone.map(|(_, pod)| pod).collect(), keep.is_none())
}

/// The name of the Service of a catalog.
pub(crate) fn service_name(source: &CatalogSource) -> String {
    let name = &source.metadata.name;
    if follow::is_by_image(source) { name.replace('.', "-") } else { name.clone() }
}

/// The address of the Service of a catalog.
pub(crate) fn address(source: &CatalogSource) -> String {
    format!("{}.{}.svc:{PORT}", service_name(source), source.metadata.namespace)
}

/// The objects of a catalog pod. `version` is the resource version of its ConfigMap, `labels` are
/// those of its namespace.
pub(crate) fn catalog_objects(
    source: &CatalogSource,
    version: Option<&str>,
    labels: &BTreeMap<String, String>,
    pods: &CatalogPods,
) -> Option<CatalogObjects> {
    let by_image = follow::is_by_image(source);
    let restricted = match source.spec.grpc_pod_config.as_ref() {
        Some(config) if !config.security_context_config.is_empty() => {
            config.security_context_config == "restricted"
        }
        _ => labels.get(POD_SECURITY_LABEL).map(String::as_str) == Some("restricted"),
    };
    let name = &source.metadata.name;
    let mut selected = json!({names::CATALOG_SOURCE: name, names::MANAGED: names::MANAGED_VALUE});
    if let Some(version) = version {
        selected[CONFIG_MAP_VERSION_LABEL] = version.into();
    }
    let (spec, hash) = if by_image {
        let spec = image_pod_spec(source, restricted, pods);
        let hash = hash::pod_spec(&spec);
        (spec, hash)
    } else {
        let image = &pods.config_map_image;
        let mut spec = registry_pod_spec(source, ("configmap-registry-server", image), 5, pods);
        restrict_security_context(&mut spec, restricted, pods);
        set_priority_class(source, &mut spec);
        let hash = hash::pod_spec(&spec);
        spec["serviceAccountName"] = format!("{name}-configmap-server").into();
        let command =
            ["configmap-server", "-c", &source.spec.config_map, "-n", &source.metadata.namespace];
        spec["containers"][0]["command"] = json!(command);
        (spec, hash)
    };
    let mut annotations = source.metadata.annotations.clone();
    annotations.remove(names::LAST_APPLIED);
    annotations.insert(SAFE_TO_EVICT_ANNOTATION.to_owned(), "true".to_owned());
    let mut pod_labels = selected.clone();
    pod_labels[names::POD_SPEC_HASH] = hash.into();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "generateName": format!("{name}-"), "namespace": source.metadata.namespace,
            "labels": pod_labels, "annotations": annotations,
            "ownerReferences": [owner(source, true, false)],
        },
        "spec": spec,
    });
    let mut before = if by_image {
        vec![(builtin::SERVICE_ACCOUNT, service_account(source))]
    } else {
        config_map_reader(source)
    };
    for policy in network_policies(source, by_image, &selected) {
        before.push((builtin::NETWORK_POLICY, policy));
    }
    let prerequisites: Option<Vec<(Resource, Object)>> = before
        .into_iter()
        .map(|(resource, value)| Some((resource, Object::from_value(value).ok()?)))
        .collect();
    Some(CatalogObjects {
        prerequisites: prerequisites?,
        pod: Object::from_value(pod).ok()?,
        service: Object::from_value(service(source, by_image)).ok()?,
    })
}

fn owner(source: &CatalogSource, controller: bool, block: bool) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
        "name": source.metadata.name, "uid": source.metadata.uid,
        "controller": controller, "blockOwnerDeletion": block,
    })
}

/// The metadata of an object of a catalog.
fn metadata(source: &CatalogSource, name: &str) -> Value {
    json!({
        "name": name, "namespace": source.metadata.namespace,
        "labels": {names::MANAGED: names::MANAGED_VALUE},
        "ownerReferences": [owner(source, false, false)],
    })
}

fn pull_secrets(source: &CatalogSource) -> Vec<Value> {
    let secrets = source.spec.secrets.iter().filter(|name| !name.is_empty());
    secrets.map(|name| json!({"name": name})).collect()
}

fn service_account(source: &CatalogSource) -> Value {
    let mut metadata = metadata(source, &source.metadata.name);
    metadata["ownerReferences"] = json!([owner(source, true, true)]);
    let mut account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata});
    let secrets = pull_secrets(source);
    if !secrets.is_empty() {
        account["imagePullSecrets"] = secrets.into();
    }
    account
}

/// The ServiceAccount of the pod of a ConfigMap catalog, and its permission to read the ConfigMap.
fn config_map_reader(source: &CatalogSource) -> Vec<(Resource, Value)> {
    let name = &source.metadata.name;
    let (account, role) = (format!("{name}-configmap-server"), format!("{name}-configmap-reader"));
    let rbac = "rbac.authorization.k8s.io";
    let group = format!("{rbac}/v1");
    let binding = format!("{name}-server-configmap-reader");
    vec![
        (
            builtin::SERVICE_ACCOUNT,
            json!({
                "apiVersion": "v1", "kind": "ServiceAccount",
                "metadata": metadata(source, &account),
            }),
        ),
        (
            builtin::ROLE,
            json!({
                "apiVersion": group, "kind": "Role", "metadata": metadata(source, &role),
                "rules": [{
                    "verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"],
                    "resourceNames": [source.spec.config_map],
                }],
            }),
        ),
        (
            builtin::ROLE_BINDING,
            json!({
                "apiVersion": group, "kind": "RoleBinding", "metadata": metadata(source, &binding),
                "roleRef": {"apiGroup": rbac, "kind": "Role", "name": role},
                "subjects": [{
                    "kind": "ServiceAccount", "name": account,
                    "namespace": source.metadata.namespace,
                }],
            }),
        ),
    ]
}

/// The NetworkPolicies of the registry pod and of pods that unpack bundles.
fn network_policies(source: &CatalogSource, by_image: bool, selected: &Value) -> [Value; 2] {
    let policy = |suffix: &str, spec: Value| {
        let mut metadata = metadata(source, &format!("{}-{suffix}", source.metadata.name));
        metadata["labels"][names::CATALOG_SOURCE] = source.metadata.name.as_str().into();
        json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
            "metadata": metadata, "spec": spec,
        })
    };
    let name_servers: Vec<Value> = [53, 5353]
        .iter()
        .flat_map(|port| ["TCP", "UDP"].map(|protocol| json!({"port": port, "protocol": protocol})))
        .collect();
    let outward = json!([{}, {"ports": name_servers}]);
    let both = json!(["Ingress", "Egress"]);
    // The server of a ConfigMap reads it from the API. A null removes a value of another writer.
    let server = json!({
        "podSelector": {"matchLabels": selected}, "policyTypes": both,
        "ingress": [{"ports": [{"port": PORT, "protocol": "TCP"}]}],
        "egress": if by_image { Value::Null } else { outward.clone() },
    });
    let unpack = json!({
        "podSelector": {"matchExpressions": [
            {"key": names::BUNDLE_UNPACK_REF, "operator": "Exists"},
            {"key": names::MANAGED, "operator": "In", "values": [names::MANAGED_VALUE]},
        ]},
        "policyTypes": both, "egress": outward, "ingress": null,
    });
    [policy("grpc-server", server), policy("unpack-bundles", unpack)]
}

fn service(source: &CatalogSource, by_image: bool) -> Value {
    let mut selector = json!({names::CATALOG_SOURCE: source.metadata.name});
    if by_image {
        selector[names::MANAGED] = names::MANAGED_VALUE.into();
    }
    let spec = json!({"ports": [{"name": "grpc", "port": PORT, "targetPort": PORT}], "selector": selector});
    let mut metadata = metadata(source, &service_name(source));
    metadata["labels"][names::SERVICE_SPEC_HASH] = hash::service_spec(&spec).into();
    json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
}

/// The pull policy of an image: a reference without a digest can change.
fn pull_policy(image: &str) -> &'static str {
    if image.contains('@') { "IfNotPresent" } else { "Always" }
}

/// The spec of a registry pod with the `grpcPodConfig` of the CatalogSource.
fn registry_pod_spec(
    source: &CatalogSource,
    (name, image): (&str, &str),
    liveness_delay: u32,
    pods: &CatalogPods,
) -> Value {
    let probe = || {
        json!({
            "exec": {"command": ["grpc_health_probe", format!("-addr=:{PORT}"), "-rpc-timeout=5s"]},
            "timeoutSeconds": 5,
        })
    };
    let (mut ready, mut live, mut started) = (probe(), probe(), probe());
    ready["initialDelaySeconds"] = 5.into();
    live["initialDelaySeconds"] = liveness_delay.into();
    started["failureThreshold"] = 10.into();
    started["periodSeconds"] = 10.into();
    let mut spec = json!({
        "containers": [{
            "name": name, "image": image, "imagePullPolicy": pull_policy(image),
            "ports": [{"name": "grpc", "containerPort": PORT}],
            "readinessProbe": ready, "livenessProbe": live, "startupProbe": started,
            "resources": {"requests": {"cpu": "10m", "memory": "50Mi"}},
            "securityContext": {"readOnlyRootFilesystem": false},
            "terminationMessagePolicy": "FallbackToLogsOnError",
        }],
        "nodeSelector": {"kubernetes.io/os": "linux"},
    });
    let Some(config) = &source.spec.grpc_pod_config else { return spec };
    if !config.node_selector.is_empty() {
        spec["nodeSelector"] = json!(config.node_selector);
    }
    if let Some(class) = &config.priority_class_name {
        spec["priorityClassName"] = class.as_str().into();
    }
    if !config.tolerations.is_empty() {
        spec["tolerations"] = json!(config.tolerations);
    }
    if let Some(affinity) = &config.affinity {
        spec["affinity"] = affinity.clone();
    }
    if let Some(target) = &config.memory_target {
        let container = &mut spec["containers"][0];
        container["resources"]["requests"]["memory"] = target.clone();
        container["env"] = json!([{"name": "GOMEMLIMIT", "value": binary_quantity(target) + "B"}]);
    }
    if let Some(extract) = &config.extract_content {
        add_content_extraction(&mut spec, image, (&extract.catalog_dir, &extract.cache_dir), pods);
    }
    spec
}

/// Adds init containers that extract the content of the catalog image, for the server of the opm
/// image.
fn add_content_extraction(
    spec: &mut Value,
    image: &str,
    (catalog, cache): (&str, &str),
    pods: &CatalogPods,
) {
    let mount = |name: &str, path: &str| json!({"name": name, "mountPath": path});
    let utilities = || mount("utilities", "/utilities");
    let content = || mount("catalog-content", "/extracted-catalog");
    let (catalog_to, cache_to) = ("/extracted-catalog/catalog", "/extracted-catalog/cache");
    let mut copy = vec![format!("--catalog.from={catalog}"), format!("--catalog.to={catalog_to}")];
    let mut serve = vec!["serve".to_owned(), catalog_to.to_owned()];
    let mut volumes = vec!["utilities", "catalog-content"];
    let mut mounts = Vec::new();
    if cache.is_empty() {
        // Without an extracted cache, the server writes its own there.
        volumes.push("tmpdir");
        mounts.push(mount("tmpdir", "/tmp/"));
    } else {
        copy.extend([format!("--cache.from={cache}"), format!("--cache.to={cache_to}")]);
        serve.push(format!("--cache-dir={cache_to}"));
    }
    mounts.push(content());
    let volumes = volumes.into_iter().map(|name| json!({"name": name, "emptyDir": {}}));
    spec["volumes"] = volumes.collect();
    let locked = json!({"readOnlyRootFilesystem": true});
    spec["initContainers"] = json!([
        {
            "name": "extract-utilities", "image": pods.util_image, "command": ["cp"],
            "args": ["/bin/copy-content", "/utilities/copy-content"],
            "volumeMounts": [utilities()],
            "terminationMessagePolicy": "FallbackToLogsOnError", "securityContext": locked,
        },
        {
            "name": "extract-content", "image": image, "imagePullPolicy": pull_policy(image),
            "command": ["/utilities/copy-content"], "args": copy,
            "volumeMounts": [utilities(), content()],
            "terminationMessagePolicy": "FallbackToLogsOnError", "securityContext": locked,
        },
    ]);
    let container = &mut spec["containers"][0];
    container["securityContext"] = locked.clone();
    container["image"] = pods.opm_image.as_str().into();
    container["imagePullPolicy"] = pull_policy(&pods.opm_image).into();
    container["command"] = json!(["/bin/opm"]);
    container["args"] = json!(serve);
    container["volumeMounts"] = mounts.into();
}

/// Sets the security context of the Pod Security level `restricted`.
fn restrict_security_context(spec: &mut Value, restricted: bool, pods: &CatalogPods) {
    if !restricted {
        return;
    }
    spec["securityContext"] = json!({
        "runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"},
    });
    if !pods.any_user {
        spec["securityContext"]["runAsUser"] = RESTRICTED_USER.into();
    }
    for list in ["initContainers", "containers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let context = &mut container["securityContext"];
            context["allowPrivilegeEscalation"] = false.into();
            context["capabilities"] = json!({"drop": ["ALL"]});
        }
    }
}

/// Sets the priority class of the annotation, which is older than the field and overrides it.
fn set_priority_class(source: &CatalogSource, spec: &mut Value) {
    let class = source.metadata.annotations.get(names::PRIORITY_CLASS);
    if let Some(class) = class.filter(|class| !class.is_empty()) {
        spec["priorityClassName"] = class.as_str().into();
    }
}

fn image_pod_spec(source: &CatalogSource, restricted: bool, pods: &CatalogPods) -> Value {
    let mut spec = registry_pod_spec(source, ("registry-server", &source.spec.image), 10, pods);
    spec["serviceAccountName"] = source.metadata.name.as_str().into();
    let secrets = pull_secrets(source);
    if !secrets.is_empty() {
        spec["imagePullSecrets"] = secrets.into();
    }
    restrict_security_context(&mut spec, restricted, pods);
    set_priority_class(source, &mut spec);
    // As upstream's Go types encode it: canonical quantities, no empty fields.
    let spec = gojson::normalize(GoType::PodSpec, &spec);
    match spec {
        Value::Object(mut fields) => {
            fields.retain(|_, value| !value.is_null());
            Value::Object(fields)
        }
        other => other,
    }
}

/// A quantity with the largest binary suffix that leaves it whole.
fn binary_quantity(target: &Value) -> String {
    let text = target.as_str().map_or_else(|| target.to_string(), str::to_owned);
    let Some(bytes) = Quantity::parse(&text).ok().and_then(|quantity| quantity.as_integer()) else {
        return text;
    };
    let mut whole = bytes;
    let mut suffix = "";
    for next in ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"] {
        if whole == 0 || whole % 1024 != 0 {
            break;
        }
        (whole, suffix) = (whole / 1024, next);
    }
    format!("{whole}{suffix}")
}

/// Adds the existing pull secrets of a ServiceAccount to the desired ones.
pub(crate) fn merge_pull_secrets(wanted: &mut Object, live: Option<&Object>) {
    let mut all = wanted.array(&["imagePullSecrets"]).to_vec();
    let existing = live.map(|account| account.array(&["imagePullSecrets"])).unwrap_or_default();
    let more: Vec<Value> =
        existing.iter().filter(|secret| !all.contains(secret)).cloned().collect();
    if !more.is_empty() {
        all.splice(0..0, more);
        wanted.set(&["imagePullSecrets"], all.into());
    }
}

/// The name of the CatalogSource that owns an object.
pub(crate) fn owning_catalog(owners: &[OwnerReference]) -> Option<&str> {
    owners.iter().find(|owner| owner.kind == "CatalogSource").map(|owner| &*owner.name)
}

/// The patch that adds owner reference and label to the ConfigMap of a catalog; none if it has
/// both.
pub(crate) fn ownership_patch(source: &CatalogSource, config_map: &Object) -> Option<Value> {
    let mut owners: Vec<Value> = config_map.array(&["metadata", "ownerReferences"]).to_vec();
    let owned = owners.iter().any(|owner| owner["uid"] == source.metadata.uid.as_str());
    let labelled = config_map.label(names::MANAGED).is_some();
    if owned && labelled {
        return None;
    }
    let mut metadata = Map::new();
    if !labelled {
        metadata.insert("labels".to_owned(), json!({names::MANAGED: "false"}));
    }
    if !owned {
        owners.push(owner(source, false, false));
        metadata.insert("ownerReferences".to_owned(), owners.into());
    }
    Some(json!({"metadata": metadata}))
}

#[cfg(test)]
mod tests;
