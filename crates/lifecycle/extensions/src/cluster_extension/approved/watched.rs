//! What the controller watches: approvals, and the objects of the accounts that it keeps.

use crate::context::Context;
use mainstay_api::ClusterExtension;
use mainstay_api::names::olm_v1::{INSTALLER_LABEL, OWNER_NAME_LABEL};
use mainstay_client::{Cache, CacheSet, Selection};
use mainstay_controller::{ControllerBuilder, KeyQueue, either_side};
use mainstay_object::{NamespacedName, Object, Resource, builtin};
use mainstay_permissions::{
    APPROVES_EXTENSION_LABEL, APPROVES_NAMESPACE_LABEL, GrantedRules, InstallerNames, RbacRole,
};
use std::collections::BTreeMap;
use std::hash::{Hash as _, Hasher};
use std::sync::Arc;

/// The kinds of roles that approve permissions.
const APPROVALS: [Resource; 2] = [builtin::CLUSTER_ROLE, builtin::ROLE];
/// The kinds of the objects of an account, in the order in which they are created.
pub(super) static KINDS: [Resource; 5] = [
    builtin::SERVICE_ACCOUNT,
    builtin::CLUSTER_ROLE,
    builtin::ROLE,
    builtin::CLUSTER_ROLE_BINDING,
    builtin::ROLE_BINDING,
];

/// A role that approves permissions.
#[derive(Clone, Debug, PartialEq)]
struct Approval {
    extension: Arc<str>,
    /// The namespace of the extension.
    namespace: String,
    role: RbacRole,
}

impl Approval {
    /// Reads a labelled role. One that is being deleted approves nothing any more. One that is itself an object
    /// of an extension approves nothing: otherwise a bundle could outlast the approval that it came with.
    fn of(role: &Object) -> Option<Self> {
        if role.is_terminating() || role.label(OWNER_NAME_LABEL).is_some() {
            return None;
        }
        Some(Self {
            extension: role.label(APPROVES_EXTENSION_LABEL)?.into(),
            namespace: role.label(APPROVES_NAMESPACE_LABEL)?.to_owned(),
            role: RbacRole::from_value(&role.to_value()),
        })
    }
}

/// An object of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AccountObject {
    extension: Arc<str>,
    /// The uid of its controller, an extension.
    pub(super) owner: String,
    pub(super) uid: String,
    resource_version: String,
}

impl AccountObject {
    fn of(object: &Object) -> Option<Self> {
        Some(Self {
            extension: object.label(INSTALLER_LABEL)?.into(),
            owner: object.controller_owner()?.uid,
            uid: object.uid().to_owned(),
            resource_version: object.resource_version().to_owned(),
        })
    }
}

/// The resource versions of the objects of an account as an attempt left them, by their place in [`KINDS`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::cluster_extension) struct AccountState(
    pub(super) BTreeMap<(usize, NamespacedName), String>,
);

/// Approvals and accounts, kept up to date by watches.
pub(crate) struct ApprovedAccounts {
    approvals: [Cache<Approval>; 2],
    pub(super) objects: [Cache<AccountObject>; 5],
}

impl ApprovedAccounts {
    /// Starts the watches.
    pub(crate) fn start(caches: &mut CacheSet) -> Self {
        let approvals = APPROVALS.map(|kind| {
            let selection = Selection::all(kind).labels(APPROVES_EXTENSION_LABEL.to_owned());
            let cache = Cache::builder(selection, Approval::of);
            caches.start(cache.index(|approval: &Approval| vec![Arc::clone(&approval.extension)]))
        });
        let objects = KINDS.clone().map(|kind| {
            let selection = Selection::all(kind).labels(INSTALLER_LABEL.to_owned()).metadata_only();
            let cache = Cache::builder(selection, AccountObject::of);
            caches.start(cache.index(|object: &AccountObject| vec![Arc::clone(&object.extension)]))
        });
        Self { approvals, objects }
    }

    /// Lets each change enqueue its extension.
    pub(in crate::cluster_extension) fn watch_with<'c>(
        &self,
        mut controller: ControllerBuilder<'c, Context>,
    ) -> ControllerBuilder<'c, Context> {
        for cache in &self.approvals {
            controller = controller.watch(cache, |_, queue, change| {
                for approval in either_side(change) {
                    queue.add(NamespacedName::cluster(&*approval.extension));
                }
            });
        }
        self.watch_accounts_with(controller, |_, queue, extension| {
            queue.add(NamespacedName::cluster(extension));
        })
    }

    /// Calls `enqueue` with the name of the extension for each change of an object of its account.
    pub(crate) fn watch_accounts_with<'c>(
        &self,
        mut controller: ControllerBuilder<'c, Context>,
        enqueue: impl Fn(&Context, &KeyQueue, &str) + Clone + Send + Sync + 'static,
    ) -> ControllerBuilder<'c, Context> {
        for cache in &self.objects {
            let enqueue = enqueue.clone();
            controller = controller.watch(cache, move |context, queue, change| {
                either_side(change).for_each(|object| enqueue(context, queue, &object.extension));
            });
        }
        controller
    }

    /// The rules that are approved for an extension.
    pub(super) fn approved(&self, extension: &ClusterExtension) -> GrantedRules {
        let approvals = self.approvals_of(extension);
        GrantedRules::of_roles(approvals.iter().map(|approval| &approval.role))
    }

    /// Adds what is approved for an extension to a fingerprint.
    pub(in crate::cluster_extension) fn hash(
        &self,
        extension: &ClusterExtension,
        hasher: &mut impl Hasher,
    ) {
        for approval in self.approvals_of(extension) {
            let RbacRole { namespace, name, rules, .. } = &approval.role;
            (namespace, name, rules).hash(hasher);
        }
    }

    fn approvals_of(&self, extension: &ClusterExtension) -> Vec<Arc<Approval>> {
        let name = &*extension.metadata.name;
        let all = self.approvals.iter().flat_map(|cache| cache.indexed(name));
        let approvals = all.map(|(_, approval)| approval);
        approvals.filter(|approval| approval.namespace == extension.spec.namespace).collect()
    }

    /// The objects of the account of an extension, by their place in [`KINDS`]. Only objects that the extension
    /// controls, and that have the names of such an account, are among them.
    pub(super) fn objects_of(
        &self,
        extension: &ClusterExtension,
    ) -> Vec<(usize, NamespacedName, Arc<AccountObject>)> {
        let metadata = &extension.metadata;
        let names = InstallerNames::new(&metadata.name, &extension.spec.namespace);
        let expected = [
            names.service_account(),
            names.cluster_role(),
            names.role(),
            names.binding(),
            names.binding(),
        ];
        let mut found = Vec::new();
        for (place, (cache, expected)) in self.objects.iter().zip(expected).enumerate() {
            let objects = cache.indexed(&metadata.name).into_iter();
            found.extend(objects.filter_map(|(key, object)| {
                let is_ours = object.owner == metadata.uid && *key.name == *expected;
                is_ours.then_some((place, key, object))
            }));
        }
        found
    }

    /// Whether the account is as an attempt left it.
    pub(in crate::cluster_extension) fn is_untouched(
        &self,
        extension: &ClusterExtension,
        state: &AccountState,
    ) -> bool {
        let objects = self.objects_of(extension).into_iter();
        let now =
            objects.map(|(place, key, object)| ((place, key), object.resource_version.clone()));
        now.collect::<BTreeMap<_, _>>() == state.0
    }
}
