//! Requests as policies and webhooks see them.

use crate::AdmissionAttributes;
use mainstay_auth::Identity;
use mainstay_auth::authz;
use mainstay_cel::library::kubernetes::authorizer::{
    AuthorizationDecision, AuthorizationRequest, AuthorizationTarget, Authorizer,
    ResourceAttributes, User,
};
use mainstay_conversion::forms;
use mainstay_conversion::webhook as conversion;
use mainstay_kinds::{KindRow, Kinds};
use mainstay_object::selector::LabelSelector;
use mainstay_object::{Object, Status};
use mainstay_policy::evaluate::RequestAuthorizer;
use mainstay_policy::matching::{
    GroupVersionResource, LabelMatcher, MatchError, RequestAttributes,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The attributes that rules match.
pub(crate) fn request_attributes<'a>(
    attributes: &'a AdmissionAttributes<'_>,
) -> RequestAttributes<'a> {
    RequestAttributes {
        resource: resource(attributes.row),
        subresource: attributes.subresource,
        operation: attributes.operation.name(),
        namespace: attributes.namespace,
        name: attributes.name,
    }
}

pub(crate) fn resource(row: &KindRow) -> GroupVersionResource<'_> {
    GroupVersionResource { group: &row.group, version: &row.version, plural: &row.plural }
}

/// The rows of the same resource in other groups or versions, with the same subresource.
pub(crate) fn equivalent_rows(
    attributes: &AdmissionAttributes<'_>,
    kinds: &Kinds,
) -> Vec<Arc<KindRow>> {
    let own = attributes.row;
    // Events are the only resource in two groups.
    if own.served_versions.len() < 2 && &*own.storage != "events" {
        return Vec::new();
    }
    let same = |row: &&Arc<KindRow>| {
        row.storage == own.storage
            && row.api_version != own.api_version
            && (attributes.subresource.is_empty()
                || row.subresource(attributes.subresource).is_some())
    };
    kinds.rows().filter(same).cloned().collect()
}

/// Labels of the objects and of the namespace of a request.
pub(crate) struct RequestLabels<'r, 'a>(pub &'r AdmissionAttributes<'a>);

impl LabelMatcher for RequestLabels<'_, '_> {
    fn matches_namespace(&self, selector: &LabelSelector) -> Result<bool, MatchError> {
        let attributes = self.0;
        let is_namespace =
            &*attributes.row.storage == "namespaces" && attributes.subresource.is_empty();
        if is_namespace && let Some(object) = &attributes.object {
            return Ok(selector.matches(object));
        }
        let name = attributes.namespace;
        let stored = attributes.admission.store.find("namespaces", "", name);
        let matches = stored.map(|stored| stored.matches(selector));
        matches.ok_or_else(|| MatchError::UnknownNamespace { name: name.to_owned() })
    }

    fn matches_object(&self, selector: &LabelSelector) -> bool {
        let objects = [self.0.object.as_ref(), self.0.old];
        objects.into_iter().flatten().any(|object| selector.matches(object))
    }
}

/// The variable `request` for the row by which rules match; also the request of an
/// `AdmissionReview`.
pub(crate) fn request_variable(attributes: &AdmissionAttributes<'_>, row: &KindRow) -> Value {
    let kind = |row: &KindRow| {
        let kind = match row.subresource(attributes.subresource) {
            Some(subresource) => subresource.gvk.clone(),
            None => row.gvk(),
        };
        json!({"group": kind.group, "version": kind.version, "kind": kind.kind})
    };
    let resource = |row: &KindRow| json!({"group": &*row.group, "version": &*row.version, "resource": &*row.plural});
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    put("uid", "".into());
    put("kind", kind(row));
    put("resource", resource(row));
    put("requestKind", kind(attributes.row));
    put("requestResource", resource(attributes.row));
    put("operation", attributes.operation.name().into());
    put("userInfo", user(attributes.identity));
    put("object", Value::Null);
    put("oldObject", Value::Null);
    let is_dry_run = attributes.dry_run && !mainstay_fault::is_on("dry-runs-are-not-told");
    put("dryRun", is_dry_run.into());
    put("options", attributes.options.to_value());
    for (name, text) in [
        ("subResource", attributes.subresource),
        ("requestSubResource", attributes.subresource),
        ("name", attributes.name),
        ("namespace", attributes.namespace),
    ] {
        if !text.is_empty() {
            put(name, text.into());
        }
    }
    Value::Object(fields)
}

fn user(identity: &Identity) -> Value {
    let mut fields = Map::new();
    for (name, text) in [("username", identity.user()), ("uid", identity.uid())] {
        if !text.is_empty() {
            fields.insert(name.to_owned(), text.into());
        }
    }
    if !identity.groups().is_empty() {
        fields.insert("groups".to_owned(), json!(identity.groups()));
    }
    if !identity.extra().is_empty() {
        fields.insert("extra".to_owned(), json!(identity.extra()));
    }
    Value::Object(fields)
}

/// The objects of a request in one version; null for a missing object.
#[derive(Debug)]
pub(crate) struct VersionedObjects {
    /// The new object.
    pub object: Value,
    /// The old object.
    pub old: Value,
}

/// The objects of a request in the version of a row.
///
/// # Errors
/// A conversion webhook failed.
pub(crate) async fn versioned_objects(
    attributes: &AdmissionAttributes<'_>,
    row: &KindRow,
) -> Result<VersionedObjects, Status> {
    let old = match attributes.old {
        None => Value::Null,
        Some(old) if !attributes.is_of_row() => old.to_value(),
        Some(old) => {
            let mut old = old.clone();
            // A stored custom object is read in the version of the request first.
            if row.custom().is_some() {
                forms::from_storage(attributes.row, &mut old);
            }
            in_version(attributes, old, row).await?
        }
    };
    let object = match &attributes.object {
        None => Value::Null,
        Some(object) if !attributes.is_of_row() => object.to_value(),
        Some(object) => in_version(attributes, object.clone(), row).await?,
    };
    Ok(VersionedObjects { object, old })
}

/// An object of the request's kind in the version of a row.
async fn in_version(
    attributes: &AdmissionAttributes<'_>,
    mut object: Object,
    row: &KindRow,
) -> Result<Value, Status> {
    let Some(custom) = row.custom() else {
        forms::from_storage(row, &mut object);
        return Ok(object.into_value());
    };
    if custom.is_converted {
        return conversion::convert_value(&attributes.admission.outbound, row, object.into_value())
            .await;
    }
    // Fields unknown to the other version are dropped when the object is read, not here.
    object.set(&["apiVersion"], (*row.api_version).into());
    Ok(object.into_value())
}

/// The variable `namespaceObject` of a request; null if it has no namespace.
///
/// # Errors
/// The namespace does not exist.
pub(crate) fn namespace_object(attributes: &AdmissionAttributes<'_>) -> Result<Value, Status> {
    let name = attributes.namespace;
    // A Namespace has no namespace here.
    if name.is_empty() || attributes.kind().kind == "Namespace" {
        return Ok(Value::Null);
    }
    let Some(stored) = attributes.admission.store.find("namespaces", "", name) else {
        return Err(Status::not_found("", "namespaces", name));
    };
    let mut object = stored.object();
    for field in ["apiVersion", "kind"] {
        object.remove(&[field]);
    }
    for field in ["managedFields", "ownerReferences"] {
        object.remove(&["metadata", field]);
    }
    Ok(object.into_value())
}

/// The authorizer of expressions for the user and the resource of a request.
pub(crate) fn request_authorizer(attributes: &AdmissionAttributes<'_>) -> RequestAuthorizer {
    RequestAuthorizer {
        authorizer: Arc::new(IdentityAuthorizer {
            authorizer: Arc::clone(&attributes.admission.authorizer),
            identity: attributes.identity.clone(),
        }),
        resource: ResourceAttributes {
            group: (*attributes.row.group).to_owned(),
            resource: (*attributes.row.plural).to_owned(),
            subresource: attributes.subresource.to_owned(),
            namespace: attributes.namespace.to_owned(),
            name: attributes.name.to_owned(),
            ..ResourceAttributes::default()
        },
    }
}

/// Checks permissions of one identity.
struct IdentityAuthorizer {
    authorizer: Arc<authz::Authorizer>,
    identity: Identity,
}

impl fmt::Debug for IdentityAuthorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "authorizer of {}", self.identity.user())
    }
}

impl Authorizer for IdentityAuthorizer {
    fn authorize(&self, request: &AuthorizationRequest<'_>) -> AuthorizationDecision {
        let account = match request.user {
            User::Requester => None,
            User::ServiceAccount { namespace, name } => Some(service_account(namespace, name)),
        };
        let identity = account.as_ref().unwrap_or(&self.identity);
        let permission = match request.target {
            AuthorizationTarget::Path(path) => {
                authz::Attributes::path(identity, request.verb, path)
            }
            AuthorizationTarget::Resource(resource) => authz::Attributes::resource(
                identity,
                request.verb,
                &resource.group,
                &resource.resource,
            )
            .in_namespace(&resource.namespace)
            .with_name(&resource.name)
            .with_subresource(&resource.subresource),
        };
        let decision = self.authorizer.decide(&permission);
        AuthorizationDecision {
            allowed: decision.is_allowed(),
            reason: decision.reason().to_owned(),
            error: None,
        }
    }
}

fn service_account(namespace: &str, name: &str) -> Identity {
    let groups =
        ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
    let user = format!("system:serviceaccount:{namespace}:{name}");
    Identity::with_details(user, "", groups, BTreeMap::new())
}
