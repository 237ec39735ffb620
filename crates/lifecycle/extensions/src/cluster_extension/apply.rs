//! Objects of an extension on the cluster: which exist, whether the extension may have them, and writing
//! and deleting them.
//!
//! Objects are applied server-side by one field manager. So fields that users or other controllers own
//! stay, and fields that a bundle leaves out of its next version go.

use super::failure::Failure;
use crate::context::Context;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use mainstay_api::names::olm_v1::{OBJECT_FIELD_MANAGER, is_kept};
use mainstay_bundle::render::WebhookServing;
use mainstay_client::{Cluster, DeleteOptions, Patch, Propagation};
use mainstay_controller::api_message;
use mainstay_object::{Gvk, NamespacedName, Object, Resource};
use serde_json::{Value, json};

/// The label and annotations with which Helm marks the objects of a release. Upstream takes over an
/// existing object that has them.
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
const HELM: &str = "Helm";
const RELEASE_NAME: &str = "meta.helm.sh/release-name";
const RELEASE_NAMESPACE: &str = "meta.helm.sh/release-namespace";
/// The number of objects that are read at a time.
const READS: usize = 8;

/// Identifies an object of an extension.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ObjectKey {
    pub(crate) gvk: Gvk,
    pub(crate) name: NamespacedName,
}

impl ObjectKey {
    pub(crate) fn of(object: &Object) -> Self {
        Self { gvk: object.gvk(), name: object.key() }
    }
}

/// An object that an extension wants, with its resource.
#[derive(Clone, Debug)]
pub(super) struct WantedObject {
    pub(super) object: Object,
    pub(super) resource: Resource,
}

impl WantedObject {
    pub(super) fn key(&self) -> ObjectKey {
        ObjectKey::of(&self.object)
    }

    fn namespace(&self) -> Option<&str> {
        Some(self.object.namespace()).filter(|namespace| !namespace.is_empty())
    }
}

/// The release that objects belong to, as Helm names it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReleaseMarks<'a> {
    /// The uid of the extension.
    pub(super) uid: &'a str,
    /// The name of the extension.
    pub(super) name: &'a str,
    /// The namespace of the extension.
    pub(super) namespace: &'a str,
}

impl ReleaseMarks<'_> {
    /// Whether an object carries the marks.
    pub(super) fn are_on(&self, object: &Object) -> bool {
        self.faults_of(object).is_empty()
    }

    /// Marks an object as one of the release.
    pub(super) fn set_on(&self, object: &mut Object) {
        object.set_label(MANAGED_BY, HELM);
        object.set_annotation(RELEASE_NAME, self.name);
        object.set_annotation(RELEASE_NAMESPACE, self.namespace);
    }

    /// Whether an object that exists belongs to the release: by its marks, or by its owner, if people
    /// removed the marks.
    fn own(&self, object: &Object) -> bool {
        self.are_on(object) || object.is_controlled_by(self.uid)
    }

    /// Why an object does not belong to the release, in Helm's words; empty if it does.
    fn faults_of(&self, object: &Object) -> Vec<String> {
        let check = |what: &str, key: &str, found: Option<&str>, wanted: &str| match found {
            Some(found) if found == wanted => None,
            Some(found) => Some(format!(
                "{what} validation error: key \"{key}\" must equal \"{wanted}\": current value is \
                 \"{found}\""
            )),
            None => Some(format!(
                "{what} validation error: missing key \"{key}\": must be set to \"{wanted}\""
            )),
        };
        let annotation = |key, wanted| check("annotation", key, object.annotation(key), wanted);
        [
            check("label", MANAGED_BY, object.label(MANAGED_BY), HELM),
            annotation(RELEASE_NAME, self.name),
            annotation(RELEASE_NAMESPACE, self.namespace),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// What is done with objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// The first installation.
    Install,
    /// An upgrade, a change of the configuration, or another attempt after a failure.
    Upgrade,
}

impl Operation {
    const fn word(self) -> &'static str {
        match self {
            Self::Install => "install",
            Self::Upgrade => "update",
        }
    }
}

/// Finds the resources of objects.
///
/// # Errors
/// If the cluster has no such kind.
pub(super) async fn with_resources(
    context: &Context,
    objects: Vec<Object>,
) -> Result<Vec<WantedObject>, Failure> {
    let mut wanted = Vec::with_capacity(objects.len());
    for object in objects {
        let gvk = object.gvk();
        let resource = context.resources.find(&context.cluster, &gvk).await;
        let resource = resource.map_err(|error| Failure::retrying(api_message(&error)))?;
        let Some(resource) = resource else {
            return Err(Failure::retrying(format!(
                "unable to build kubernetes objects from release manifest: resource mapping not \
                 found for name: \"{}\" namespace: \"{}\" from \"\": no matches for kind \"{}\" in \
                 version \"{}\"\nensure CRDs are installed first",
                object.name(),
                object.namespace(),
                gvk.kind,
                gvk.api_version()
            )));
        };
        wanted.push(WantedObject { object, resource });
    }
    Ok(wanted)
}

/// Reads the objects that exist, in the order of `wanted`, and checks that each belongs to the release.
/// `servers` have certificates that the controller issues.
///
/// # Errors
/// The first object that cannot be read, or that belongs to something else.
pub(super) async fn find_existing(
    cluster: &Cluster,
    wanted: &[WantedObject],
    servers: &[WebhookServing],
    marks: ReleaseMarks<'_>,
    operation: Operation,
) -> Result<Vec<Option<Object>>, Failure> {
    let reads: Vec<_> = wanted.iter().map(|wanted| find(cluster, wanted, operation)).collect();
    let found: Vec<Option<Object>> = stream::iter(reads).buffered(READS).try_collect().await?;
    let is_foreign = |object: &&Object| {
        !marks.own(object) && !is_former_certificate(object, servers, &found, marks)
    };
    match found.iter().flatten().find(is_foreign) {
        Some(foreign) => Err(collision(foreign, marks, operation)),
        None => Ok(found),
    }
}

/// Whether an object is the certificate that another issuer made for a server whose Service belongs to the
/// release: cert-manager or OLM classic, before the controller issued certificates for this extension.
fn is_former_certificate(
    object: &Object,
    servers: &[WebhookServing],
    found: &[Option<Object>],
    marks: ReleaseMarks<'_>,
) -> bool {
    let server = servers.iter().find(|server| {
        server.certificate == object.name() && server.namespace == object.namespace()
    });
    let Some(server) = server.filter(|_| object.kind() == "Secret") else { return false };
    object.str(&["type"]) == Some("kubernetes.io/tls")
        && found.iter().flatten().any(|service| {
            service.kind() == "Service"
                && (service.name(), service.namespace()) == (&*server.service, &*server.namespace)
                && marks.own(service)
        })
}

/// The failure because of an object that belongs to something else.
fn collision(found: &Object, marks: ReleaseMarks<'_>, operation: Operation) -> Failure {
    Failure::retrying(match operation {
        Operation::Install => format!(
            "{} '{}' already exists in namespace '{}' and cannot be managed by \
             operator-controller",
            found.kind(),
            found.name(),
            found.namespace()
        ),
        Operation::Upgrade => format!(
            "Unable to continue with update: {} exists and cannot be imported into the current \
             release: invalid ownership metadata; {}",
            place_of(found),
            marks.faults_of(found).join("; ")
        ),
    })
}

async fn find(
    cluster: &Cluster,
    wanted: &WantedObject,
    operation: Operation,
) -> Result<Option<Object>, Failure> {
    let found = cluster.find(&wanted.resource, wanted.namespace(), wanted.object.name()).await;
    found.map_err(|error| {
        Failure::retrying(format!(
            "Unable to continue with {}: could not get information about the resource {}: {}",
            operation.word(),
            place_of(&wanted.object),
            api_message(&error)
        ))
    })
}

/// `Kind "name" in namespace "namespace"`.
fn place_of(object: &Object) -> String {
    format!("{} \"{}\" in namespace \"{}\"", object.kind(), object.name(), object.namespace())
}

/// Writes an object, and returns it as stored. One that does not exist is created, never taken over from
/// somebody who creates it meanwhile.
pub(super) async fn write(
    cluster: &Cluster,
    wanted: &WantedObject,
    existing: Option<&Object>,
) -> mainstay_client::Result<Object> {
    let WantedObject { object, resource } = wanted;
    let Some(existing) = existing else {
        return cluster
            .clone()
            .with_user_agent(OBJECT_FIELD_MANAGER)
            .create(resource, object)
            .await;
    };
    let mut object = object.clone();
    object.set(&["metadata", "uid"], existing.uid().into());
    if let Some(patch) = ownership_patch(existing, &object) {
        cluster.patch(resource, wanted.namespace(), existing.name(), &patch).await?;
    }
    match cluster.apply(resource, &object, OBJECT_FIELD_MANAGER).await {
        // A list with two entries of the same key cannot be applied, but it can be created.
        Err(error) if is_duplicate(&error) => cluster.ensure(resource, &object).await,
        written => written,
    }
}

/// A patch after which what we created counts as applied, so that fields that the next version leaves out
/// go; none if that is so already.
fn ownership_patch(existing: &Object, wanted: &Object) -> Option<Patch> {
    let mut entries = existing.array(&["metadata", "managedFields"]).to_vec();
    let is_ours = |entry: &Value, operation: &str| {
        entry["manager"] == OBJECT_FIELD_MANAGER
            && entry["operation"] == operation
            && entry.get("subresource").is_none()
    };
    let applied = entries.iter().position(|entry| is_ours(entry, "Apply"));
    let created = || entries.iter().position(|entry| is_ours(entry, "Update"));
    let entry = applied.or_else(created).and_then(|at| entries.get_mut(at))?;
    entry["operation"] = "Apply".into();
    if !own_other_strategy(entry, existing, wanted) && applied.is_some() {
        return None;
    }
    Some(Patch::Merge(json!({"metadata": {
        "uid": existing.uid(),
        "resourceVersion": existing.resource_version(),
        "managedFields": entries,
    }})))
}

/// Makes us own the settings of the stored update strategy of a Deployment that wants another one, so that
/// they go; returns whether there are some. The server set them by default, so they belong to nobody, and it
/// refuses them with the new strategy. Kubernetes marks the field with the patch strategy `retainKeys`, which
/// Helm follows.
fn own_other_strategy(entry: &mut Value, existing: &Object, wanted: &Object) -> bool {
    let kind = |object: &Object| object.str(&["spec", "strategy", "type"]).map(str::to_owned);
    if wanted.kind() != "Deployment" || kind(wanted).is_none() || kind(wanted) == kind(existing) {
        return false;
    }
    let settings = existing.get(&["spec", "strategy", "rollingUpdate"]).and_then(Value::as_object);
    let Some(settings) = settings else { return false };
    let owned = settings.keys().map(|field| (format!("f:{field}"), json!({})));
    entry["fieldsV1"]["f:spec"]["f:strategy"]["f:rollingUpdate"] = Value::Object(owned.collect());
    true
}

/// Whether an object was refused because a list has two entries with the same key.
fn is_duplicate(error: &mainstay_client::Error) -> bool {
    error.status().is_some_and(|status| status.message.contains("duplicate entries for key"))
}

/// Why an object could not be changed in an upgrade.
pub(super) fn change_error(wanted: &WantedObject, error: &mainstay_client::Error) -> String {
    let (name, kind) = (wanted.object.name(), wanted.object.kind());
    format!("cannot patch \"{name}\" with kind {kind}: {}", api_message(error))
}

/// The failure of creating an object in an upgrade.
pub(super) fn creation_failure(error: &mainstay_client::Error) -> Failure {
    Failure::retrying(format!("failed to create resource: {}", api_message(error)))
}

/// The failure of writing objects in an installation: one line for each.
pub(super) fn install_failure(errors: &[String]) -> Failure {
    let noun = if errors.len() == 1 { "error" } else { "errors" };
    let lines: Vec<String> = errors.iter().map(|error| format!("\t* {error}\n")).collect();
    Failure::retrying(format!("{} {noun} occurred:\n{}\n", errors.len(), lines.concat()))
}

/// Deletes an object that the extension does not have any more, unless its annotation
/// `helm.sh/resource-policy` keeps it, as Helm does.
pub(super) async fn delete(
    cluster: &Cluster,
    resource: &Resource,
    name: &NamespacedName,
) -> mainstay_client::Result<()> {
    let namespace = Some(&*name.namespace).filter(|namespace| !namespace.is_empty());
    let found = cluster.find(resource, namespace, &name.name).await?;
    let Some(found) = found else { return Ok(()) };
    if is_kept(&found) {
        return Ok(());
    }
    let options =
        DeleteOptions { propagation: Some(Propagation::Background), ..DeleteOptions::default() };
    cluster.ensure_deleted(resource, namespace, &name.name, &options).await.map(drop)
}

/// Whether an object as stored has all that is wanted of it: what the server and others added does not
/// count. A difference in form only (an amount of memory, the order of a list) counts as a difference.
pub(super) fn is_met(wanted: &Object, stored: &Object) -> bool {
    wanted.fields().iter().all(|(field, value)| match field.as_str() {
        "status" => true,
        field => stored.fields().get(field).is_some_and(|stored| contains(stored, value)),
    })
}

fn contains(stored: &Value, wanted: &Value) -> bool {
    match (stored, wanted) {
        (Value::Object(stored), Value::Object(wanted)) => wanted.iter().all(|(field, wanted)| {
            wanted.is_null() || stored.get(field).is_some_and(|stored| contains(stored, wanted))
        }),
        (Value::Array(stored), Value::Array(wanted)) => {
            stored.len() == wanted.len()
                && stored.iter().zip(wanted).all(|(stored, wanted)| contains(stored, wanted))
        }
        (stored, wanted) => stored == wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Object {
        Object::from_value(value).unwrap()
    }

    #[test]
    fn existing_object_must_carry_the_marks_of_its_release() {
        let marks = ReleaseMarks { uid: "u", name: "a", namespace: "n" };
        let mut config = object(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "c", "namespace": "n", "annotations": {RELEASE_NAME: "b"}},
        }));
        assert_eq!(
            marks.faults_of(&config),
            [
                "label validation error: missing key \"app.kubernetes.io/managed-by\": must be set to \"Helm\"",
                "annotation validation error: key \"meta.helm.sh/release-name\" must equal \"a\": current value is \"b\"",
                "annotation validation error: missing key \"meta.helm.sh/release-namespace\": must be set to \"n\"",
            ]
        );
        marks.set_on(&mut config);
        assert_eq!(marks.faults_of(&config), [""; 0]);
    }

    #[test]
    fn object_is_met_by_one_with_more_fields() {
        let wanted = object(json!({
            "apiVersion": "v1", "kind": "A", "metadata": {"name": "a", "labels": {"x": "1"}},
            "spec": {"list": [{"name": "b"}], "absent": null}, "status": {"ready": true},
        }));
        let more = json!({
            "apiVersion": "v1", "kind": "A",
            "metadata": {"name": "a", "uid": "u", "labels": {"x": "1", "y": "2"}},
            "spec": {"list": [{"name": "b", "default": 1}], "other": 1},
        });
        assert!(is_met(&wanted, &object(more.clone())));
        for (pointer, changed) in [
            ("/metadata/labels/x", json!("2")),
            ("/spec/list", json!([])),
            ("/spec/list/0/name", json!("c")),
        ] {
            let mut stored = more.clone();
            *stored.pointer_mut(pointer).unwrap() = changed;
            assert!(!is_met(&wanted, &object(stored)), "{pointer}");
        }
    }
}
