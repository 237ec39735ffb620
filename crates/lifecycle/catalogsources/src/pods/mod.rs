//! The objects of a catalog that runs as a pod: what they are, without asking the cluster.
//!
//! ```text
//! CatalogSource ─┬─ image ─────► account, policies, Pod of the image, Service
//!                └─ ConfigMap ─► account, role, binding, policies, Pod that serves it, Service
//! ```
//!
//! Names, labels, owner references, hashes and the Pod itself are those of the original, field by
//! field: clusters that it managed go on with the pods that are there, and what people select by
//! label is still found. The hashes are over what is wanted, so they tell when it is something else.

use crate::follow;
use crate::mode::CatalogPods;
use mainstay_api::{CatalogSource, names};
use mainstay_controller::{
    gojson::{self, GoType},
    hash,
};
use mainstay_object::{Object, OwnerReference, Resource, known};
use mainstay_quantity::Quantity;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Where registries listen in pods.
pub(crate) const PORT: u16 = 50051;
/// Who runs restricted pods.
const USER: i64 = 1001;
/// Label of what serves a ConfigMap: which version of it.
const CONFIG_MAP_VERSION: &str = "olm.configMapResourceVersion";
/// Annotation: the node may be drained although nobody makes the Pod anew there.
const SAFE_TO_EVICT: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict";
/// Annotation: the digest of the image that the Pod runs, where its node does not say that.
pub(crate) const IMAGE: &str = "mainstay.dev/catalog-image";
/// Label of namespaces: the level of pods that they take.
const ENFORCE: &str = "pod-security.kubernetes.io/enforce";

/// What a catalog needs to run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wanted {
    /// What is there before the Pod.
    pub(crate) before: Vec<(Resource, Object)>,
    /// The Pod, which has no name yet.
    pub(crate) pod: Object,
    /// What leads to the Pod.
    pub(crate) service: Object,
}

/// What is known of a Pod of a catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CatalogPod {
    pub(crate) uid: String,
    /// Name of the CatalogSource.
    pub(crate) catalog: String,
    /// Uid of the CatalogSource.
    pub(crate) owner: String,
    pub(crate) hash: String,
    /// The version of the ConfigMap that it serves.
    pub(crate) version: String,
    /// It will not serve any more: it has ended, or its node was taken from it.
    pub(crate) dead: bool,
    pub(crate) deleting: bool,
}

impl CatalogPod {
    /// The name of its CatalogSource.
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
            version: label(CONFIG_MAP_VERSION),
            dead: matches!(phase, "Failed" | "Succeeded") || disrupted,
            deleting: pod.is_terminating(),
        }
    }
}

/// What is kept of a Service or NetworkPolicy of a catalog: its owners, and a hash of its spec.
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

/// Whether a Pod of a catalog runs the image with these digests; `None` if nobody says what it runs.
pub(crate) fn runs(pod: &Object, image: &BTreeSet<String>) -> Option<bool> {
    let statuses = |field: &str| pod.array(&["status", field]);
    // What is extracted comes second, after the tools that extract it.
    let of_image = match (statuses("initContainerStatuses"), statuses("containerStatuses")) {
        ([_, extracts], _) => extracts,
        ([], [serves]) => serves,
        _ => &Value::Null,
    };
    // `registry/repository@sha256:…`, `docker://sha256:…` or a digest alone.
    let said = of_image["imageID"].as_str().unwrap_or_default();
    let digest = said.rsplit(['@', '/']).next().filter(|digest| digest.starts_with("sha256:"));
    match digest {
        Some(digest) => Some(image.contains(digest)),
        None => pod.annotation(IMAGE).map(|digest| image.contains(digest)),
    }
}

/// Which pods of a catalog go, and whether a new one is made.
pub(crate) fn exchange<'p, P>(
    wanted: &Object,
    owner: &str,
    pods: &'p [(P, CatalogPod)],
) -> (Vec<&'p (P, CatalogPod)>, bool) {
    let label = |key: &str| wanted.label(key).unwrap_or_default();
    let serves = |pod: &CatalogPod| {
        !pod.dead
            && !pod.deleting
            && pod.owner == owner
            && pod.hash == label(names::POD_SPEC_HASH)
            && pod.version == label(CONFIG_MAP_VERSION)
    };
    let keep = pods.iter().position(|(_, pod)| serves(pod));
    let gone = pods.iter().enumerate().filter(|(at, (_, pod))| {
        // What is on its way out and dead is never heard of again: its node is gone.
        Some(*at) != keep && (!pod.deleting || pod.dead)
    });
    (gone.map(|(_, pod)| pod).collect(), keep.is_none())
}

/// The name of the Service of a catalog.
pub(crate) fn service_name(source: &CatalogSource) -> String {
    let name = &source.metadata.name;
    if follow::is_by_image(source) { name.replace('.', "-") } else { name.clone() }
}

/// Where the Service of a catalog is.
pub(crate) fn address(source: &CatalogSource) -> String {
    format!("{}.{}.svc:{PORT}", service_name(source), source.metadata.namespace)
}

/// The objects of a catalog. `version` is that of its ConfigMap, `labels` are those of its namespace.
pub(crate) fn wanted(
    source: &CatalogSource,
    version: Option<&str>,
    labels: &BTreeMap<String, String>,
    pods: &CatalogPods,
) -> Option<Wanted> {
    let by_image = follow::is_by_image(source);
    let restricted = match source.spec.grpc_pod_config.as_ref() {
        Some(config) if !config.security_context_config.is_empty() => {
            config.security_context_config == "restricted"
        }
        _ => labels.get(ENFORCE).map(String::as_str) == Some("restricted"),
    };
    let name = &source.metadata.name;
    let mut selected = json!({names::CATALOG_SOURCE: name, names::MANAGED: names::MANAGED_VALUE});
    if let Some(version) = version {
        selected[CONFIG_MAP_VERSION] = version.into();
    }
    let (spec, hash) = if by_image {
        let spec = image_pod(source, restricted, pods);
        let hash = hash::pod_spec(&spec);
        (spec, hash)
    } else {
        let image = &pods.config_map_image;
        let mut spec = pod(source, ("configmap-registry-server", image), 5, pods);
        restrict(&mut spec, restricted, pods);
        prioritise(source, &mut spec);
        let hash = hash::pod_spec(&spec);
        spec["serviceAccountName"] = format!("{name}-configmap-server").into();
        let command =
            ["configmap-server", "-c", &source.spec.config_map, "-n", &source.metadata.namespace];
        spec["containers"][0]["command"] = json!(command);
        (spec, hash)
    };
    let mut annotations = source.metadata.annotations.clone();
    annotations.remove(names::LAST_APPLIED);
    annotations.insert(SAFE_TO_EVICT.to_owned(), "true".to_owned());
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
    let mut before =
        if by_image { vec![(known::SERVICE_ACCOUNT, account(source))] } else { reader(source) };
    for policy in policies(source, by_image, &selected) {
        before.push((known::NETWORK_POLICY, policy));
    }
    let made: Option<Vec<(Resource, Object)>> = before
        .into_iter()
        .map(|(resource, value)| Some((resource, Object::from_value(value).ok()?)))
        .collect();
    Some(Wanted {
        before: made?,
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

/// The metadata of what is there for a catalog.
fn metadata(source: &CatalogSource, name: &str) -> Value {
    json!({
        "name": name, "namespace": source.metadata.namespace,
        "labels": {names::MANAGED: names::MANAGED_VALUE},
        "ownerReferences": [owner(source, false, false)],
    })
}

fn pull_secrets(source: &CatalogSource) -> Vec<Value> {
    let named = source.spec.secrets.iter().filter(|name| !name.is_empty());
    named.map(|name| json!({"name": name})).collect()
}

fn account(source: &CatalogSource) -> Value {
    let mut metadata = metadata(source, &source.metadata.name);
    metadata["ownerReferences"] = json!([owner(source, true, true)]);
    let mut account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata});
    let secrets = pull_secrets(source);
    if !secrets.is_empty() {
        account["imagePullSecrets"] = secrets.into();
    }
    account
}

/// The account of what serves a ConfigMap, and its right to read it.
fn reader(source: &CatalogSource) -> Vec<(Resource, Value)> {
    let name = &source.metadata.name;
    let (account, role) = (format!("{name}-configmap-server"), format!("{name}-configmap-reader"));
    let rbac = "rbac.authorization.k8s.io";
    let group = format!("{rbac}/v1");
    let binding = format!("{name}-server-configmap-reader");
    vec![
        (
            known::SERVICE_ACCOUNT,
            json!({
                "apiVersion": "v1", "kind": "ServiceAccount",
                "metadata": metadata(source, &account),
            }),
        ),
        (
            known::ROLE,
            json!({
                "apiVersion": group, "kind": "Role", "metadata": metadata(source, &role),
                "rules": [{
                    "verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"],
                    "resourceNames": [source.spec.config_map],
                }],
            }),
        ),
        (
            known::ROLE_BINDING,
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

/// Who may reach the registry, and what pods that unpack bundles may reach.
fn policies(source: &CatalogSource, by_image: bool, selected: &Value) -> [Value; 2] {
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
    // Whoever serves a ConfigMap reads it from the API. A null takes away what somebody else wrote.
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

/// Whether an image can change under its reference.
fn pull_policy(image: &str) -> &'static str {
    if image.contains('@') { "IfNotPresent" } else { "Always" }
}

/// A Pod with a registry, and what the CatalogSource says about it.
fn pod(
    source: &CatalogSource,
    (name, image): (&str, &str),
    alive: u32,
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
    live["initialDelaySeconds"] = alive.into();
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
        container["env"] = json!([{"name": "GOMEMLIMIT", "value": binary(target) + "B"}]);
    }
    if let Some(extract) = &config.extract_content {
        extracted(&mut spec, image, (&extract.catalog_dir, &extract.cache_dir), pods);
    }
    spec
}

/// The content is copied out of the image, and served by a server from elsewhere.
fn extracted(spec: &mut Value, image: &str, (catalog, cache): (&str, &str), pods: &CatalogPods) {
    let mount = |name: &str, path: &str| json!({"name": name, "mountPath": path});
    let utilities = || mount("utilities", "/utilities");
    let content = || mount("catalog-content", "/extracted-catalog");
    let (catalog_to, cache_to) = ("/extracted-catalog/catalog", "/extracted-catalog/cache");
    let mut copy = vec![format!("--catalog.from={catalog}"), format!("--catalog.to={catalog_to}")];
    let mut serve = vec!["serve".to_owned(), catalog_to.to_owned()];
    let mut volumes = vec!["utilities", "catalog-content"];
    let mut mounts = Vec::new();
    if cache.is_empty() {
        // Without a cache of its own, the server makes one there.
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

/// What the Pod Security level `restricted` asks for.
fn restrict(spec: &mut Value, restricted: bool, pods: &CatalogPods) {
    if !restricted {
        return;
    }
    spec["securityContext"] = json!({
        "runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"},
    });
    if !pods.any_user {
        spec["securityContext"]["runAsUser"] = USER.into();
    }
    for list in ["initContainers", "containers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let context = &mut container["securityContext"];
            context["allowPrivilegeEscalation"] = false.into();
            context["capabilities"] = json!({"drop": ["ALL"]});
        }
    }
}

/// The annotation is older than the field, and counts more.
fn prioritise(source: &CatalogSource, spec: &mut Value) {
    let class = source.metadata.annotations.get(names::PRIORITY_CLASS);
    if let Some(class) = class.filter(|class| !class.is_empty()) {
        spec["priorityClassName"] = class.as_str().into();
    }
}

fn image_pod(source: &CatalogSource, restricted: bool, pods: &CatalogPods) -> Value {
    let mut spec = pod(source, ("registry-server", &source.spec.image), 10, pods);
    spec["serviceAccountName"] = source.metadata.name.as_str().into();
    let secrets = pull_secrets(source);
    if !secrets.is_empty() {
        spec["imagePullSecrets"] = secrets.into();
    }
    restrict(&mut spec, restricted, pods);
    prioritise(source, &mut spec);
    // As the original's types write it: quantities in canonical form, what is empty left out.
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
fn binary(target: &Value) -> String {
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

/// Adds the pull secrets that an account has already to those that it should have.
pub(crate) fn keep_pull_secrets(wanted: &mut Object, live: Option<&Object>) {
    let mut all = wanted.array(&["imagePullSecrets"]).to_vec();
    let had = live.map(|account| account.array(&["imagePullSecrets"])).unwrap_or_default();
    let more: Vec<Value> = had.iter().filter(|secret| !all.contains(secret)).cloned().collect();
    if !more.is_empty() {
        all.splice(0..0, more);
        wanted.set(&["imagePullSecrets"], all.into());
    }
}

/// The owner of an object, if it is a CatalogSource.
pub(crate) fn catalog_of(owners: &[OwnerReference]) -> Option<&str> {
    owners.iter().find(|owner| owner.kind == "CatalogSource").map(|owner| &*owner.name)
}

/// The patch of a ConfigMap that a catalog is made of: whose it is, and that it is not ours.
pub(crate) fn claim(source: &CatalogSource, config_map: &Object) -> Option<Value> {
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
