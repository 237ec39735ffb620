//! What is decided about a new pod from other objects: account, token, priority, runtime.

use super::super::Context;
use super::super::fields::{Fields, each, fill, inner, text_in};
use super::{DEFAULT_ACCOUNT, mirror_account};
use mainstay_object::fnv::random_suffix;
use mainstay_object::{Object, Status, gotext};
use serde_json::{Value, json};

/// What volumes with a token are called, before a random suffix.
const TOKEN_VOLUME: &str = "kube-api-access-";
/// Where containers find the token.
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// How long a token is good: an hour, and a little, by which those of this volume are known.
const TOKEN_SECONDS: i64 = 3607;
/// Marks what a node made from a file.
const MIRROR: &str = "kubernetes.io/config.mirror";
/// What pods may do to others unless they say otherwise.
const PREEMPTION: &str = "PreemptLowerPriority";

/// Where a pod is, for what is said when it is refused.
struct Place {
    namespace: String,
    name: String,
}

impl Place {
    fn forbidden(&self, why: &str) -> Status {
        Status::forbidden("", "pods", &self.name, why)
    }
}

/// Settles everything of a new pod that follows from other objects, or refuses it.
pub(super) fn admit(object: &mut Object, context: &Context<'_>) -> Result<(), Status> {
    let place = Place { namespace: object.namespace().to_owned(), name: object.name().to_owned() };
    let mirror = object.str(&["metadata", "annotations", MIRROR]).is_some();
    let Some(spec) = inner(object.fields_mut(), "spec") else { return Ok(()) };
    if mirror {
        mirrored(spec, &place)?;
    } else {
        account(spec, &place, context)?;
    }
    priority(spec, &place, context)?;
    super::tolerate_lost_nodes(spec);
    runtime(spec, &place, context)
}

/// What a node made has no account.
fn mirrored(spec: &Fields, place: &Place) -> Result<(), Status> {
    if !text_in(spec, "serviceAccountName").is_empty() {
        return Err(place.forbidden("a mirror pod may not reference service accounts"));
    }
    let volumes = || spec.get("volumes").and_then(Value::as_array).into_iter().flatten();
    let secret = |volume: &Value| volume.get("secret").is_some_and(|source| !source.is_null());
    if volumes().any(secret) || spec.get("imagePullSecrets").is_some_and(|list| list != &json!([]))
    {
        return Err(place.forbidden("a mirror pod may not reference secrets"));
    }
    let token = |volume: &Value| {
        let sources = volume.pointer("/projected/sources").and_then(Value::as_array);
        sources.into_iter().flatten().any(|source| source.get("serviceAccountToken").is_some())
    };
    if volumes().any(token) {
        let why = "a mirror pod may not use ServiceAccountToken volume projections";
        return Err(place.forbidden(why));
    }
    Ok(())
}

/// The account, its token and its secrets for images.
fn account(spec: &mut Fields, place: &Place, context: &Context<'_>) -> Result<(), Status> {
    fill(spec, "serviceAccountName", DEFAULT_ACCOUNT);
    mirror_account(spec);
    let name = text_in(spec, "serviceAccountName");
    let account = context.objects.get("serviceaccounts", &place.namespace, name);
    // The default account of a new namespace is made a moment after it; a pod need not wait for it.
    if account.is_none() && name != DEFAULT_ACCOUNT {
        let namespace = &place.namespace;
        return Err(place.forbidden(&format!(
            "error looking up service account {namespace}/{name}: serviceaccount {} not found",
            gotext::quote(name)
        )));
    }
    let account = account.unwrap_or_default();
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

/// The number that the pod's class stands for.
fn priority(spec: &mut Fields, place: &Place, context: &Context<'_>) -> Result<(), Status> {
    const CLASSES: &str = "scheduling.k8s.io/priorityclasses";
    let of = |class: &Object| {
        let policy = class.str(&["preemptionPolicy"]).unwrap_or(PREEMPTION).to_owned();
        (class.i64(&["value"]).unwrap_or_default(), policy)
    };
    let (priority, policy) = match text_in(spec, "priorityClassName") {
        "" => {
            let classes = context.objects.list(CLASSES, None);
            let defaults =
                classes.iter().filter(|class| class.bool(&["globalDefault"]) == Some(true));
            match defaults.min_by_key(|class| class.i64(&["value"])) {
                None => (0, PREEMPTION.to_owned()),
                Some(class) => {
                    spec.insert("priorityClassName".to_owned(), class.name().into());
                    of(class)
                }
            }
        }
        "system-cluster-critical" => (2_000_000_000, PREEMPTION.to_owned()),
        "system-node-critical" => (2_000_001_000, PREEMPTION.to_owned()),
        name => match context.objects.get(CLASSES, "", name) {
            Some(class) => of(&class),
            None => {
                return Err(
                    place.forbidden(&format!("no PriorityClass with name {name} was found"))
                );
            }
        },
    };
    if let Some(given) = spec.get("priority").and_then(Value::as_i64)
        && given != priority
    {
        return Err(place.forbidden(&format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {priority} from the given PriorityClass name"
        )));
    }
    let given = text_in(spec, "preemptionPolicy");
    if spec.get("preemptionPolicy").is_some_and(|given| !given.is_null()) && given != policy {
        return Err(place.forbidden(&format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name"
        )));
    }
    spec.insert("priority".to_owned(), priority.into());
    spec.insert("preemptionPolicy".to_owned(), policy.into());
    Ok(())
}

/// What the pod's runtime adds to it.
fn runtime(spec: &mut Fields, place: &Place, context: &Context<'_>) -> Result<(), Status> {
    let present = |value: &&Value| !value.is_null();
    let empty = |value: &Value| value.as_object().is_none_or(serde_json::Map::is_empty);
    let overhead = spec.get("overhead").filter(present).cloned();
    let class = match spec.get("runtimeClassName").and_then(Value::as_str) {
        None => Object::default(),
        Some(name) => {
            context.objects.get("node.k8s.io/runtimeclasses", "", name).ok_or_else(|| {
                place.forbidden(&format!(
                    "pod rejected: RuntimeClass {} not found",
                    gotext::quote(name)
                ))
            })?
        }
    };
    match (class.get(&["overhead", "podFixed"]), overhead) {
        (None, None) => {}
        (None, Some(_)) => {
            let why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
            return Err(place.forbidden(why));
        }
        (Some(fixed), Some(given)) if !empty(&given) && &given != fixed => {
            let why = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
            return Err(place.forbidden(why));
        }
        (Some(fixed), _) => {
            spec.insert("overhead".to_owned(), fixed.clone());
        }
    }
    if let Some(wanted) = class.get(&["scheduling", "nodeSelector"]).and_then(Value::as_object) {
        fill(spec, "nodeSelector", json!({}));
        let Some(selector) = inner(spec, "nodeSelector") else { return Ok(()) };
        for (key, value) in wanted {
            let text = value.as_str().unwrap_or_default();
            let given = selector.get(key).and_then(Value::as_str).unwrap_or(text);
            if given != text {
                return Err(place.forbidden(&format!(
                    "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {text}; pod.spec.nodeSelector[{key}] = {given}"
                )));
            }
            selector.insert(key.clone(), value.clone());
        }
    }
    let more = class.array(&["scheduling", "tolerations"]);
    if let Some(tolerations) = spec.get_mut("tolerations").and_then(Value::as_array_mut) {
        for toleration in more {
            if !tolerations.contains(toleration) {
                tolerations.push(toleration.clone());
            }
        }
    }
    Ok(())
}
