//! What is decided about a new pod from other objects: its account and the token of it, its priority,
//! its runtime, how long it stays on a lost node, where its node is.
//!
//! The rules and texts are those of the original's plugins of the same names (Kubernetes 1.35).

mod error;

pub(crate) use error::PodError;

use super::{ADMITTED, Attributes, Operation, Plugin, Verdict};
use error::{MirrorUse, SecretUse};
use mainstay_object::Object;
use mainstay_object::Objects;
use mainstay_object::fnv::random_suffix;
use mainstay_validation::fields::{Fields, each, fill, inner, text_in};
use mainstay_validation::pods::{DEFAULT_ACCOUNT, mirror_account, tolerate_lost_nodes};
use serde_json::{Value, json};
use std::collections::HashSet;

/// What volumes with a token are called, before a random suffix.
const TOKEN_VOLUME: &str = "kube-api-access-";
/// Where containers find the token.
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// How long a token is good: an hour, and a little, by which those of this volume are known.
const TOKEN_SECONDS: i64 = 3607;
/// Marks what a node made from a file.
const MIRROR: &str = "kubernetes.io/config.mirror";
/// Marks accounts whose pods may name only the secrets of the account.
const MOUNTABLE: &str = "kubernetes.io/enforce-mountable-secrets";
/// What pods may do to others unless they say otherwise.
const PREEMPTION: &str = "PreemptLowerPriority";
/// Where classes of priority are stored.
const CLASSES: &str = "scheduling.k8s.io/priorityclasses";
/// What a pod has of its node's labels.
const TOPOLOGY: [&str; 2] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

/// Whether a write is about pods themselves, and is one of these.
fn is_of_pods(attributes: &Attributes<'_>, operations: &[Operation]) -> bool {
    &*attributes.row.storage == "pods"
        && attributes.subresource.is_empty()
        && operations.contains(&attributes.operation)
}

/// Settles something of the pod, or refuses it.
fn settle<'a>(
    attributes: &mut Attributes<'_>,
    settle: impl FnOnce(&mut Object, &Place<'_>) -> Result<(), PodError>,
) -> Verdict<'a> {
    let Some(mut pod) = attributes.object.take() else { return ADMITTED };
    let place =
        Place { namespace: attributes.namespace, objects: &attributes.admission.store.clone() };
    let outcome = settle(&mut pod, &place);
    attributes.object = Some(pod);
    Verdict::Now(outcome.map_err(|error| attributes.forbidden(&error.to_string())))
}

/// Holds the pod against something.
fn judge<'a>(
    attributes: &Attributes<'_>,
    judge: impl FnOnce(&Object, &Place<'_>) -> Result<(), PodError>,
) -> Verdict<'a> {
    let Some(pod) = &attributes.object else { return ADMITTED };
    let place = Place { namespace: attributes.namespace, objects: &attributes.admission.store };
    Verdict::Now(judge(pod, &place).map_err(|error| attributes.forbidden(&error.to_string())))
}

/// Where a pod is, and what else there is.
struct Place<'a> {
    namespace: &'a str,
    objects: &'a dyn Objects,
}

/// `ServiceAccount`: every pod has an account, and its token.
pub(super) struct ServiceAccount;

impl Plugin for ServiceAccount {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        let added = attributes.subresource == "ephemeralcontainers"
            && attributes.operation == Operation::Update
            && &*attributes.row.storage == "pods";
        added || is_of_pods(attributes, &[Operation::Create])
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Verdict<'a> {
        if attributes.operation != Operation::Create {
            return ADMITTED;
        }
        settle(attributes, |pod, place| {
            if !is_mirror(pod) {
                let Some(spec) = inner(pod.fields_mut(), "spec") else { return Ok(()) };
                give_account(spec, place)?;
            }
            judge_account(pod, place)
        })
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Verdict<'a> {
        if attributes.operation == Operation::Create {
            return judge(attributes, judge_account);
        }
        judge(attributes, |pod, place| {
            let account = account_of(pod, place)?;
            if !names_its_secrets(&account) {
                return Ok(());
            }
            let lists = [("ephemeral container", "ephemeralContainers")];
            secrets_of_containers(pod, &account, &lists)
        })
    }
}

fn is_mirror(pod: &Object) -> bool {
    pod.str(&["metadata", "annotations", MIRROR]).is_some()
}

/// The account of a pod. The default account of a new namespace is made a moment after it; a pod
/// need not wait for it.
fn account_of(pod: &Object, place: &Place<'_>) -> Result<Object, PodError> {
    let namespace = place.namespace;
    match pod.str(&["spec", "serviceAccountName"]).unwrap_or_default() {
        "" => {
            let (namespace, pod) = (namespace.to_owned(), pod.name().to_owned());
            Err(PodError::NoAccount { namespace, pod })
        }
        name => find_account(name, place),
    }
}

fn find_account(name: &str, place: &Place<'_>) -> Result<Object, PodError> {
    let namespace = place.namespace;
    match place.objects.get("serviceaccounts", namespace, name) {
        Some(account) => Ok(account),
        None if name == DEFAULT_ACCOUNT => Ok(Object::default()),
        None => {
            let (namespace, name) = (namespace.to_owned(), name.to_owned());
            Err(PodError::UnknownAccount { namespace, name })
        }
    }
}

/// The account, its token and its secrets for images.
fn give_account(spec: &mut Fields, place: &Place<'_>) -> Result<(), PodError> {
    fill(spec, "serviceAccountName", DEFAULT_ACCOUNT);
    mirror_account(spec);
    let account = find_account(text_in(spec, "serviceAccountName"), place)?;
    let of_pod = spec.get("automountServiceAccountToken").and_then(Value::as_bool);
    if of_pod.or(account.bool(&["automountServiceAccountToken"])).unwrap_or(true) {
        mount_token(spec);
    }
    let secrets = account.array(&["imagePullSecrets"]);
    let has_secrets = spec.get("imagePullSecrets").and_then(Value::as_array);
    if has_secrets.is_none_or(Vec::is_empty) && !secrets.is_empty() {
        spec.insert("imagePullSecrets".to_owned(), secrets.to_vec().into());
    }
    Ok(())
}

/// Gives every container that has nothing else there the token of the account.
fn mount_token(spec: &mut Fields) {
    let volumes = spec.get("volumes").and_then(Value::as_array).into_iter().flatten();
    let present = volumes
        .filter_map(|volume| volume.get("name")?.as_str())
        .find(|name| name.starts_with(TOKEN_VOLUME))
        .map(ToOwned::to_owned);
    let known = present.is_some();
    let name = present.unwrap_or_else(|| format!("{TOKEN_VOLUME}{}", random_suffix(5)));
    let mut needed = false;
    for list in ["initContainers", "containers"] {
        each(spec, list, |container| {
            fill(container, "volumeMounts", json!([]));
            let Some(mounts) = container.get_mut("volumeMounts").and_then(Value::as_array_mut)
            else {
                return;
            };
            let taken =
                |mount: &Value| mount.get("mountPath").and_then(Value::as_str) == Some(TOKEN_PATH);
            if !mounts.iter().any(taken) {
                mounts.push(json!({"mountPath": TOKEN_PATH, "name": name, "readOnly": true}));
                needed = true;
            }
        });
    }
    if known || !needed {
        return;
    }
    fill(spec, "volumes", json!([]));
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

/// What a node made has no account and no secrets; others have an account that is there.
fn judge_account(pod: &Object, place: &Place<'_>) -> Result<(), PodError> {
    if !is_mirror(pod) {
        let account = account_of(pod, place)?;
        return if names_its_secrets(&account) { secrets(pod, &account) } else { Ok(()) };
    }
    if !pod.str(&["spec", "serviceAccountName"]).unwrap_or_default().is_empty() {
        return Err(PodError::Mirror(MirrorUse::Account));
    }
    let Some(spec) = pod.get(&["spec"]) else { return Ok(()) };
    if names_secrets(spec) {
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

/// Whether anything in a pod's spec names a secret.
fn names_secrets(value: &Value) -> bool {
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
        Value::Array(list) => list.iter().any(names_secrets),
        Value::Object(fields) => fields.iter().any(|(key, value)| {
            let something = !value.is_null() && *value != json!([]);
            (NAMES.contains(&key.as_str()) && something) || names_secrets(value)
        }),
        _ => false,
    }
}

/// Whether pods of an account may name only its secrets.
fn names_its_secrets(account: &Object) -> bool {
    let says = account.str(&["metadata", "annotations", MOUNTABLE]);
    matches!(says, Some("1" | "t" | "T" | "true" | "TRUE" | "True"))
}

fn secrets(pod: &Object, account: &Object) -> Result<(), PodError> {
    let mounted = mountable(account);
    let refused = |by| Err(PodError::Secret { by, account: account.name().to_owned() });
    for volume in pod.array(&["spec", "volumes"]) {
        let secret = volume.pointer("/secret/secretName").and_then(Value::as_str);
        if let Some(secret) = secret.filter(|secret| !mounted.contains(secret)) {
            return refused(SecretUse::Volume { secret: secret.to_owned() });
        }
    }
    let lists = [("init container", "initContainers"), ("container", "containers")];
    secrets_of_containers(pod, account, &lists)?;
    let pulls: HashSet<Option<&Value>> =
        account.array(&["imagePullSecrets"]).iter().map(|pull| pull.get("name")).collect();
    for (at, secret) in pod.array(&["spec", "imagePullSecrets"]).iter().enumerate() {
        if !pulls.contains(&secret.get("name")) {
            let secret = secret.get("name").and_then(Value::as_str).unwrap_or_default();
            return refused(SecretUse::Pull { at, secret: secret.to_owned() });
        }
    }
    Ok(())
}

/// The names of the Secrets that a ServiceAccount refers to.
fn mountable(account: &Object) -> HashSet<&str> {
    let secrets = account.array(&["secrets"]).iter();
    secrets.filter_map(|secret| secret.get("name").and_then(Value::as_str)).collect()
}

/// What containers take of secrets into their environment. A list has the word for its containers.
fn secrets_of_containers(
    pod: &Object,
    account: &Object,
    lists: &[(&'static str, &str)],
) -> Result<(), PodError> {
    let mounted = mountable(account);
    let refused = |by| Err(PodError::Secret { by, account: account.name().to_owned() });
    for &(list, field) in lists {
        for container in pod.array(&["spec", field]) {
            let text = |value: &Value, path: &str| {
                value.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
            };
            let every =
                |field: &str| container.get(field).and_then(Value::as_array).into_iter().flatten();
            let name = || text(container, "/name");
            for variable in every("env") {
                if variable.pointer("/valueFrom/secretKeyRef").is_some() {
                    let secret = text(variable, "/valueFrom/secretKeyRef/name");
                    if !mounted.contains(secret.as_str()) {
                        let (container, variable) = (name(), text(variable, "/name"));
                        return refused(SecretUse::Variable { list, container, variable, secret });
                    }
                }
            }
            for source in every("envFrom") {
                let secret = text(source, "/secretRef/name");
                if source.get("secretRef").is_some() && !mounted.contains(secret.as_str()) {
                    return refused(SecretUse::Environment { list, container: name(), secret });
                }
            }
        }
    }
    Ok(())
}

/// `Priority`: the number that the pod's class stands for; one class at most is everybody's.
pub(super) struct Priority;

impl Plugin for Priority {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        let writes = matches!(attributes.operation, Operation::Create | Operation::Update);
        let class = &*attributes.row.storage == CLASSES && attributes.subresource.is_empty();
        (class && writes) || is_of_pods(attributes, &[Operation::Create])
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Verdict<'a> {
        if &*attributes.row.storage == CLASSES {
            return ADMITTED;
        }
        settle(attributes, |pod, place| match inner(pod.fields_mut(), "spec") {
            Some(spec) => prioritize(spec, place),
            None => Ok(()),
        })
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Verdict<'a> {
        if &*attributes.row.storage != CLASSES {
            return ADMITTED;
        }
        judge(attributes, |class, place| {
            let is_default = class.bool(&["globalDefault"]) == Some(true);
            let present = default_class(place).filter(|_| is_default);
            let Some(present) = present else { return Ok(()) };
            if attributes.operation == Operation::Update && present.name() == class.name() {
                return Ok(());
            }
            Err(PodError::SecondDefault { present: present.name().to_owned() })
        })
    }
}

/// The class of pods that name none: of several that of the least.
fn default_class(place: &Place<'_>) -> Option<Object> {
    let classes = place.objects.list(CLASSES, None).into_iter();
    let defaults = classes.filter(|class| class.bool(&["globalDefault"]) == Some(true));
    defaults.min_by_key(|class| class.i64(&["value"]))
}

fn prioritize(spec: &mut Fields, place: &Place<'_>) -> Result<(), PodError> {
    let of = |class: &Object| {
        let policy = class.str(&["preemptionPolicy"]).unwrap_or(PREEMPTION).to_owned();
        (class.i64(&["value"]).unwrap_or_default(), policy)
    };
    let (priority, policy) = match text_in(spec, "priorityClassName") {
        "" => match default_class(place) {
            None => (0, PREEMPTION.to_owned()),
            Some(class) => {
                spec.insert("priorityClassName".to_owned(), class.name().into());
                of(&class)
            }
        },
        "system-cluster-critical" => (2_000_000_000, PREEMPTION.to_owned()),
        "system-node-critical" => (2_000_001_000, PREEMPTION.to_owned()),
        name => match place.objects.get(CLASSES, "", name) {
            Some(class) => of(&class),
            None => return Err(PodError::UnknownPriorityClass { name: name.to_owned() }),
        },
    };
    if let Some(given) = spec.get("priority").and_then(Value::as_i64)
        && given != priority
    {
        return Err(PodError::OtherPriority { given, computed: priority });
    }
    let given = text_in(spec, "preemptionPolicy");
    if spec.get("preemptionPolicy").is_some_and(|given| !given.is_null()) && given != policy {
        let given = given.to_owned();
        return Err(PodError::OtherPreemptionPolicy { given, computed: policy });
    }
    spec.insert("priority".to_owned(), priority.into());
    spec.insert("preemptionPolicy".to_owned(), policy.into());
    Ok(())
}

/// `DefaultTolerationSeconds`: how long a pod stays on a node that is lost.
pub(super) struct DefaultTolerationSeconds;

impl Plugin for DefaultTolerationSeconds {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        is_of_pods(attributes, &[Operation::Create, Operation::Update])
            && !mainstay_fault::is_on("pods-do-not-leave-lost-nodes")
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Verdict<'a> {
        settle(attributes, |pod, _| {
            if let Some(spec) = inner(pod.fields_mut(), "spec") {
                tolerate_lost_nodes(spec);
            }
            Ok(())
        })
    }
}

/// `RuntimeClass`: what the pod's runtime adds to it.
pub(super) struct RuntimeClass;

impl Plugin for RuntimeClass {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        is_of_pods(attributes, &[Operation::Create])
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Verdict<'a> {
        settle(attributes, |pod, place| {
            let class = runtime(pod, place)?;
            match inner(pod.fields_mut(), "spec") {
                Some(spec) => prepare_runtime(spec, &class),
                None => Ok(()),
            }
        })
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Verdict<'a> {
        judge(attributes, |pod, place| {
            let given = pod.get(&["spec", "overhead"]).filter(|given| !given.is_null());
            match (runtime(pod, place)?.get(&["overhead", "podFixed"]), given) {
                (None, Some(_)) => Err(PodError::UndefinedOverhead),
                (Some(fixed), Some(given)) if given != fixed => Err(PodError::OtherOverhead),
                _ => Ok(()),
            }
        })
    }
}

/// The class of a pod's runtime; empty if it names none.
fn runtime(pod: &Object, place: &Place<'_>) -> Result<Object, PodError> {
    let Some(name) = pod.str(&["spec", "runtimeClassName"]) else { return Ok(Object::default()) };
    let class = place.objects.get("node.k8s.io/runtimeclasses", "", name);
    class.ok_or_else(|| PodError::UnknownRuntimeClass { name: name.to_owned() })
}

fn prepare_runtime(spec: &mut Fields, class: &Object) -> Result<(), PodError> {
    if let Some(fixed) = class.get(&["overhead", "podFixed"]) {
        let empty = |value: &Value| value.as_object().is_none_or(serde_json::Map::is_empty);
        let given = spec.get("overhead").filter(|given| !empty(given));
        if given.is_some_and(|given| given != fixed) {
            return Err(PodError::OtherOverhead);
        }
        spec.insert("overhead".to_owned(), fixed.clone());
    }
    if let Some(wanted) = class.get(&["scheduling", "nodeSelector"]).and_then(Value::as_object) {
        fill(spec, "nodeSelector", json!({}));
        let Some(selector) = inner(spec, "nodeSelector") else { return Ok(()) };
        for (key, value) in wanted {
            let text = value.as_str().unwrap_or_default();
            let given = selector.get(key).and_then(Value::as_str).unwrap_or(text);
            if given != text {
                let [wanted, given] = [text, given].map(str::to_owned);
                return Err(PodError::OtherNodes { key: key.clone(), wanted, given });
            }
            selector.insert(key.clone(), value.clone());
        }
    }
    let more = class.array(&["scheduling", "tolerations"]);
    if more.is_empty() {
        return Ok(());
    }
    fill(spec, "tolerations", json!([]));
    if let Some(tolerations) = spec.get_mut("tolerations").and_then(Value::as_array_mut) {
        let mut seen: HashSet<&Value> = tolerations.iter().collect();
        let new = more.iter().filter(|toleration| seen.insert(toleration));
        let new: Vec<Value> = new.cloned().collect();
        tolerations.extend(new);
    }
    Ok(())
}

/// `PodTopologyLabels`: a pod on a node says in which zone and region it is.
pub(super) struct PodTopologyLabels;

impl Plugin for PodTopologyLabels {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        &*attributes.row.storage == "pods"
            && matches!(attributes.subresource, "" | "binding")
            && attributes.operation == Operation::Create
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Verdict<'a> {
        let of_binding = attributes.subresource == "binding";
        settle(attributes, |object, place| {
            let node = if of_binding {
                let target = object.get(&["target"]);
                let text = |field: &str| target?.get(field)?.as_str();
                text("name").filter(|_| text("kind") == Some("Node"))
            } else {
                object.str(&["spec", "nodeName"])
            };
            let node = node.filter(|name| !name.is_empty());
            let node = node.and_then(|name| place.objects.get("nodes", "", name));
            let Some(node) = node else { return Ok(()) };
            for key in TOPOLOGY {
                if let Some(value) = node.label(key) {
                    object.set_label(key, value);
                }
            }
            Ok(())
        })
    }
}

/// What the plugins of this module make of a new pod, for tests of what comes after them.
#[cfg(test)]
pub(crate) fn admit_new(pod: &mut Object, objects: &dyn Objects) -> Result<(), PodError> {
    let namespace = pod.namespace().to_owned();
    let place = Place { namespace: &namespace, objects };
    let Some(spec) = inner(pod.fields_mut(), "spec") else { return Ok(()) };
    give_account(spec, &place)?;
    prioritize(spec, &place)?;
    tolerate_lost_nodes(spec);
    let class = runtime(pod, &place)?;
    inner(pod.fields_mut(), "spec").map_or(Ok(()), |spec| prepare_runtime(spec, &class))
}

#[cfg(test)]
mod tests;
