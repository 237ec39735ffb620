//! A request as policies see it.

use crate::Attributes;
use mainstay_auth::Identity;
use mainstay_auth::authz;
use mainstay_cel::library::kubernetes::authorizer::{
    Authorizer, Decision, Request, Resource as Checked, Target, User,
};
use mainstay_conversion::forms;
use mainstay_conversion::webhook as conversion;
use mainstay_kinds::{KindRow, Kinds};
use mainstay_object::selector::LabelSelector;
use mainstay_object::{Object, Status};
use mainstay_policy::evaluate::Asking;
use mainstay_policy::matching::{Labels, MatchError, RequestAttributes, Resource};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What rules see.
pub(crate) fn request_attributes<'a>(attributes: &'a Attributes<'_>) -> RequestAttributes<'a> {
    RequestAttributes {
        resource: resource(attributes.row),
        subresource: attributes.subresource,
        operation: attributes.operation.name(),
        namespace: attributes.namespace,
        name: attributes.name,
    }
}

pub(crate) fn resource(row: &KindRow) -> Resource<'_> {
    Resource { group: &row.group, version: &row.version, plural: &row.plural }
}

/// The other rows of the same objects, with the same subresource.
pub(crate) fn others(attributes: &Attributes<'_>, kinds: &Kinds) -> Vec<Arc<KindRow>> {
    let own = attributes.row;
    // Only events are in two groups.
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

/// Labels of a request's objects and of its namespace.
pub(crate) struct Labelled<'r, 'a>(pub &'r Attributes<'a>);

impl Labels for Labelled<'_, '_> {
    fn namespace(&self, selector: &LabelSelector) -> Result<bool, MatchError> {
        let attributes = self.0;
        let own = &*attributes.row.storage == "namespaces" && attributes.subresource.is_empty();
        if own && let Some(object) = &attributes.object {
            return Ok(selector.matches(object));
        }
        let name = attributes.namespace;
        let stored = attributes.admission.store.find("namespaces", "", name);
        let matches = stored.map(|stored| stored.matches(selector));
        matches.ok_or_else(|| MatchError::UnknownNamespace { name: name.to_owned() })
    }

    fn object(&self, selector: &LabelSelector) -> bool {
        let objects = [self.0.object.as_ref(), self.0.old];
        objects.into_iter().flatten().any(|object| selector.matches(object))
    }
}

/// The variable `request`, for the resource that a policy names.
pub(crate) fn described(attributes: &Attributes<'_>, known: &KindRow) -> Value {
    let kind = |row: &KindRow| {
        let kind = match row.subresource(attributes.subresource) {
            Some(subresource) => subresource.speaks.clone(),
            None => row.gvk(),
        };
        json!({"group": kind.group, "version": kind.version, "kind": kind.kind})
    };
    let resource = |row: &KindRow| json!({"group": &*row.group, "version": &*row.version, "resource": &*row.plural});
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    put("uid", "".into());
    put("kind", kind(known));
    put("resource", resource(known));
    put("requestKind", kind(attributes.row));
    put("requestResource", resource(attributes.row));
    put("operation", attributes.operation.name().into());
    put("userInfo", user(attributes.identity));
    put("object", Value::Null);
    put("oldObject", Value::Null);
    let told = attributes.dry_run && !mainstay_fault::is_on("dry-runs-are-not-told");
    put("dryRun", told.into());
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

/// The objects of a request in some version; null where there is none.
#[derive(Debug)]
pub(crate) struct VersionedObjects {
    /// The object that is to be.
    pub object: Value,
    /// The object that is.
    pub old: Value,
}

/// The objects of a request in the version of a row.
///
/// # Errors
/// A webhook had to convert one, and did not.
pub(crate) async fn versioned_objects(
    attributes: &Attributes<'_>,
    known: &KindRow,
) -> Result<VersionedObjects, Status> {
    let old = match attributes.old {
        None => Value::Null,
        Some(old) if !attributes.is_of_row() => old.to_value(),
        Some(old) => {
            let mut old = old.clone();
            // What was stored is read in the version that is asked for.
            if known.custom().is_some() {
                forms::from_storage(attributes.row, &mut old);
            }
            in_version(attributes, old, known).await?
        }
    };
    let object = match &attributes.object {
        None => Value::Null,
        Some(object) if !attributes.is_of_row() => object.to_value(),
        Some(object) => in_version(attributes, object.clone(), known).await?,
    };
    Ok(VersionedObjects { object, old })
}

/// An object of the request's kind in the version of a row.
async fn in_version(
    attributes: &Attributes<'_>,
    mut object: Object,
    known: &KindRow,
) -> Result<Value, Status> {
    let Some(custom) = known.custom() else {
        forms::from_storage(known, &mut object);
        return Ok(object.into_value());
    };
    if custom.is_converted {
        return conversion::between(&attributes.admission.outbound, known, object.into_value())
            .await;
    }
    // What the other version does not know goes when it is read, not before.
    object.set(&["apiVersion"], (*known.api_version).into());
    Ok(object.into_value())
}

/// The namespace of a request as expressions see it; null if it has none.
///
/// # Errors
/// It is not there.
pub(crate) fn namespace(attributes: &Attributes<'_>) -> Result<Value, Status> {
    let name = attributes.namespace;
    // That of a namespace is not itself.
    if name.is_empty() || attributes.kind().kind == "Namespace" {
        return Ok(Value::Null);
    }
    let Some(stored) = attributes.admission.store.find("namespaces", "", name) else {
        return Err(Status::not_found("", "namespaces", name));
    };
    let mut object = stored.object();
    for hidden in ["apiVersion", "kind"] {
        object.remove(&[hidden]);
    }
    for hidden in ["managedFields", "ownerReferences"] {
        object.remove(&["metadata", hidden]);
    }
    Ok(object.into_value())
}

/// Where expressions ask who may do what.
pub(crate) fn asking(attributes: &Attributes<'_>) -> Asking {
    Asking {
        authorizer: Arc::new(Asks {
            authorizer: Arc::clone(&attributes.admission.authorizer),
            identity: attributes.identity.clone(),
        }),
        resource: Checked {
            group: (*attributes.row.group).to_owned(),
            resource: (*attributes.row.plural).to_owned(),
            subresource: attributes.subresource.to_owned(),
            namespace: attributes.namespace.to_owned(),
            name: attributes.name.to_owned(),
            ..Checked::default()
        },
    }
}

struct Asks {
    authorizer: Arc<authz::Authorizer>,
    identity: Identity,
}

impl fmt::Debug for Asks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "questions of {}", self.identity.user())
    }
}

impl Authorizer for Asks {
    fn authorize(&self, request: &Request<'_>) -> Decision {
        let account = match request.user {
            User::Requester => None,
            User::ServiceAccount { namespace, name } => Some(service_account(namespace, name)),
        };
        let identity = account.as_ref().unwrap_or(&self.identity);
        let asked = match request.target {
            Target::Path(path) => authz::Attributes::path(identity, request.verb, path),
            Target::Resource(resource) => authz::Attributes::resource(
                identity,
                request.verb,
                &resource.group,
                &resource.resource,
            )
            .in_namespace(&resource.namespace)
            .with_name(&resource.name)
            .with_subresource(&resource.subresource),
        };
        let decision = self.authorizer.decide(&asked);
        Decision {
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
