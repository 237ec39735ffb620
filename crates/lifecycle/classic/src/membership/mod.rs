//! OperatorGroup membership: the target namespaces of an OperatorGroup, the install modes that
//! support them, its provided APIs, and the ClusterRoles that aggregate these.
//!
//! The controllers of OperatorGroups, ClusterServiceVersions and InstallPlans share these rules.

pub(crate) mod apis;
pub(crate) mod modes;
pub(crate) mod roles;
pub(crate) mod targets;

use crate::context::Context;
use crate::error::Error;
use mainstay_api::{OperatorGroup, names};

/// The namespaces that the spec of an OperatorGroup selects now.
pub(crate) fn select(context: &Context, group: &OperatorGroup) -> Result<Vec<String>, Error> {
    let namespaces = context.caches.namespaces.list(None);
    targets::select(group, namespaces.iter().map(|(key, namespace)| (&*key.name, &**namespace)))
        .map_err(|error| Error::Targets(group.key(), error))
}

/// The annotations of a CSV that is a member of an OperatorGroup.
pub(crate) fn annotations(group: &OperatorGroup) -> [(&'static str, Option<String>); 3] {
    let namespaces = &group.status.namespaces;
    [
        (names::OPERATOR_GROUP, Some(group.metadata.name.clone())),
        (names::OPERATOR_NAMESPACE, Some(group.metadata.namespace.clone())),
        (
            names::TARGET_NAMESPACES,
            (!namespaces.is_empty()).then(|| targets::annotation(namespaces)),
        ),
    ]
}
