//! The OperatorGroup controller: writes the status and provided APIs of OperatorGroups, and labels
//! their target namespaces.

use super::decide::{self, StatusInput};
use crate::context::Context;
use crate::enqueue::{self, LabelledOwner};
use crate::error::Error;
use crate::fields;
use crate::membership::{apis, roles, select};
use mainstay_api::{ObjectReference, OperatorGroup, Time, names, resources};
use mainstay_client::{Action, DeleteOptions, Patch, Reconciler};
use mainstay_controller::{
    Controllers, KeyQueue, WithOperation as _, decision, either_side, patch,
};
use mainstay_object::{NamespacedName, builtin};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const GROUP: &mainstay_object::Resource = &resources::OPERATOR_GROUP;

/// Reconciles OperatorGroups.
pub(crate) struct Controller(pub(crate) Arc<Context>);

impl Reconciler for Controller {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        self.reconcile_operator_group(key).await
    }
}

impl Controller {
    async fn reconcile_operator_group(&self, key: &NamespacedName) -> Result<Action, Error> {
        let context = &*self.0;
        let Some(group) = context.caches.operator_groups.get(key) else {
            return self.delete_roles(key).await;
        };
        if group.metadata.deletion_timestamp.is_some() {
            return Ok(Action::Done);
        }
        let status = decide::status(&StatusInput {
            group: &group,
            groups: context.caches.groups_in(&key.namespace).len(),
            targets: select(context, &group)?,
            account: self.account(&group).await?,
            now: Time::new(context.clock.now()),
        });
        if let Some(patch) = patch::of_view(&group, &status)? {
            context
                .cluster
                .patch_status(GROUP, Some(&key.namespace), &key.name, &patch)
                .await
                .during("writing the status of an OperatorGroup")?;
            let conditions =
                status.conditions.iter().filter(|condition| !condition.message.is_empty());
            let why: Vec<&str> = conditions.map(|condition| &*condition.message).collect();
            let targets = match &*status.namespaces {
                [all] if all.is_empty() => "all namespaces".to_owned(),
                some => format!("namespaces {}", some.join(",")),
            };
            decision::log("OperatorGroup", key, targets, &why.join("; "));
            return Ok(Action::Done);
        }
        let csvs: Vec<Arc<fields::Csv>> = context
            .caches
            .csvs
            .list(Some(&key.namespace))
            .into_iter()
            .map(|(_, csv)| csv)
            .filter(|csv| !csv.is_copy())
            .collect();
        // Without its ServiceAccount an OperatorGroup manages no namespace, so it needs no
        // ClusterRoles.
        if group.spec.service_account_name.is_empty() || status.service_account_ref.is_some() {
            self.ensure_roles(&group, &csvs).await?;
        }
        if let Some(text) = decide::pruned_annotation(&group, &csvs) {
            let body = json!({"metadata": {
                "resourceVersion": group.metadata.resource_version,
                "annotations": {names::PROVIDED_APIS: text},
            }});
            context
                .cluster
                .patch(GROUP, Some(&key.namespace), &key.name, &Patch::Merge(body))
                .await
                .during("writing the provided APIs of an OperatorGroup")?;
        }
        Ok(Action::Done)
    }

    /// A reference to the ServiceAccount of an OperatorGroup, if it exists. Its resource version is
    /// that of the first reference, so later changes of the ServiceAccount do not change the
    /// status.
    async fn account(&self, group: &OperatorGroup) -> Result<Option<ObjectReference>, Error> {
        let name = &group.spec.service_account_name;
        let namespace = &group.metadata.namespace;
        let key = NamespacedName::new(namespace.as_str(), name.as_str());
        let Some(found) = self.0.caches.service_accounts.get(&key) else { return Ok(None) };
        let known = group.status.service_account_ref.as_ref();
        if let Some(known) =
            known.filter(|reference| reference.uid == found.uid && reference.name == *name)
        {
            return Ok(Some(known.clone()));
        }
        let account = self.0.cluster.find(&builtin::SERVICE_ACCOUNT, Some(namespace), name).await;
        Ok(account
            .during("reading the ServiceAccount of an OperatorGroup")?
            .as_ref()
            .map(ObjectReference::to))
    }

    /// Ensures the three ClusterRoles of an OperatorGroup.
    async fn ensure_roles(
        &self,
        group: &OperatorGroup,
        csvs: &[Arc<fields::Csv>],
    ) -> Result<(), Error> {
        let mut apis = apis::provided(group);
        apis.extend(decide::provided(csvs));
        for (suffix, _) in roles::VERBS {
            let key = NamespacedName::cluster(roles::name(group, suffix));
            let present = self.0.caches.cluster_roles.get(&key);
            let role = roles::role(group, suffix, &apis);
            let labelled = |cluster_role: &fields::Role| {
                role.labels().all(|(key, value)| {
                    cluster_role.labels.get(key).is_some_and(|label| label == value)
                })
            };
            if present
                .is_some_and(|role| roles::is_up_to_date(&role, &apis, suffix) && labelled(&role))
            {
                continue;
            }
            self.0
                .cluster
                .ensure(&builtin::CLUSTER_ROLE, &role)
                .await
                .during("writing a ClusterRole of an OperatorGroup")?;
        }
        Ok(())
    }

    /// Deletes the ClusterRoles of a deleted OperatorGroup.
    async fn delete_roles(&self, key: &NamespacedName) -> Result<Action, Error> {
        for (name, role) in self.0.caches.cluster_roles.list(None) {
            let is = |label: &str, value: &str| {
                role.labels.get(label).map(String::as_str) == Some(value)
            };
            if is(names::OWNER_KIND, &GROUP.kind)
                && is(names::OWNER, &key.name)
                && is(names::OWNER_NAMESPACE, &key.namespace)
            {
                self.0
                    .cluster
                    .ensure_deleted(
                        &builtin::CLUSTER_ROLE,
                        None,
                        &name.name,
                        &DeleteOptions::default(),
                    )
                    .await
                    .during("deleting a ClusterRole of an OperatorGroup")?;
            }
        }
        Ok(Action::Done)
    }
}

/// Reconciles the labels of namespaces that name the OperatorGroups which target them.
pub(crate) struct Labels(pub(crate) Arc<Context>);

impl Reconciler for Labels {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        let context = &*self.0;
        let Some(namespace) =
            context.caches.namespaces.get(key).filter(|namespace| !namespace.deleting)
        else {
            return Ok(Action::Done);
        };
        let groups = context.caches.operator_groups.list(None);
        let wanted: BTreeSet<String> = groups
            .iter()
            .filter(|(_, group)| {
                let targets = &group.status.namespaces;
                targets.iter().any(|name| **name == *key.name)
                    && !targets.iter().any(String::is_empty)
            })
            .map(|(_, group)| format!("{}{}", names::OPERATOR_GROUP_UID_PREFIX, group.metadata.uid))
            .collect();
        let present = namespace
            .labels
            .keys()
            .filter(|label| label.starts_with(names::OPERATOR_GROUP_UID_PREFIX))
            .cloned()
            .collect::<BTreeSet<_>>();
        if wanted == present {
            return Ok(Action::Done);
        }
        let added = wanted.difference(&present).map(|label| (label.clone(), Value::from("")));
        let removed = present.difference(&wanted).map(|label| (label.clone(), Value::Null));
        let labels: Map<String, Value> = added.chain(removed).collect();
        let words: Vec<String> = labels
            .iter()
            .map(|(label, value)| format!("{}{label}", if value.is_null() { "-" } else { "+" }))
            .collect();
        let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
        match context.cluster.patch(&builtin::NAMESPACE, None, &key.name, &patch).await {
            Err(error) if !error.is_not_found() => {
                Err(error).during("labelling a Namespace").map_err(Error::from)
            }
            _ => {
                let why = "which groups have it as a target";
                decision::log("Namespace", &key.name, words.join(" "), why);
                Ok(Action::Done)
            }
        }
    }
}

/// Registers the controllers of OperatorGroups and of the labels of their target namespaces.
pub(crate) fn register(controllers: &mut Controllers<Context>) {
    register_groups(controllers);
    register_labels(controllers);
}

/// Registers the controller of OperatorGroups.
fn register_groups(controllers: &mut Controllers<Context>) {
    let context = controllers.context();
    let caches = &context.caches;
    controllers
        .add("operator_group")
        .watch(&caches.operator_groups, |context, queue, change| {
            queue.add(change.key.clone());
            enqueue_in_namespace(context, queue, &change.key.namespace);
        })
        .watch(&caches.csvs, |context, queue, change| {
            if enqueue::csv_changed(change) {
                enqueue_in_namespace(context, queue, &change.key.namespace);
            }
        })
        .watch(&caches.namespaces, |context, queue, _| {
            for (key, group) in context.caches.operator_groups.list(None) {
                if group.spec.selector.is_some() {
                    queue.add(key);
                }
            }
        })
        .watch(&caches.service_accounts, |context, queue, change| {
            enqueue_in_namespace(context, queue, &change.key.namespace);
        })
        .watch(&caches.roles, |_, queue, change| {
            either_side(change).for_each(|role| enqueue_labelled_owner(queue, &role.labels));
        })
        .watch(&caches.role_bindings, |_, queue, change| {
            either_side(change).for_each(|binding| enqueue_labelled_owner(queue, &binding.labels));
        })
        .watch(&caches.cluster_roles, |_, queue, change| {
            either_side(change).for_each(|role| enqueue_labelled_owner(queue, &role.labels));
        })
        .watch(&caches.cluster_role_bindings, |_, queue, change| {
            either_side(change).for_each(|binding| enqueue_labelled_owner(queue, &binding.labels));
        })
        .reconcile(Controller(Arc::clone(&context)));
}

/// Registers the controller of the labels of target namespaces.
fn register_labels(controllers: &mut Controllers<Context>) {
    let context = controllers.context();
    let caches = &context.caches;
    controllers
        .add("namespace_labels")
        .watch(&caches.namespaces, |_, queue, change| queue.add(change.key.clone()))
        .watch(&caches.operator_groups, |_, queue, change| {
            for target in either_side(change).flat_map(|group| &group.status.namespaces) {
                if !target.is_empty() {
                    queue.add(NamespacedName::cluster(target.as_str()));
                }
            }
        })
        .reconcile(Labels(Arc::clone(&context)));
}

/// Enqueues all OperatorGroups of a namespace.
fn enqueue_in_namespace(context: &Context, queue: &KeyQueue, namespace: &str) {
    for (key, _) in context.caches.operator_groups.list(Some(namespace)) {
        queue.add(key);
    }
}

/// Enqueues the OperatorGroup that owner labels name.
fn enqueue_labelled_owner(queue: &KeyQueue, labels: &BTreeMap<String, String>) {
    if let Some(LabelledOwner::OperatorGroup(key)) = LabelledOwner::of(labels) {
        queue.add(key);
    }
}
