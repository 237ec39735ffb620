//! The OperatorCondition controller: ensures the OperatorCondition of each CSV, and copies
//! conditions from its spec to its status.

use super::decide::{self, CsvFields};
use crate::context::Context;
use crate::enqueue;
use crate::error::Error;
use crate::fields;
use mainstay_api::{OperatorCondition, Time, resources};
use mainstay_client::{Action, Patch, Reconciler};
use mainstay_controller::{Controllers, KeyQueue, WithOperation as _, decision, either_side};
use mainstay_object::{NamespacedName, Object, OwnerReference, builtin};
use serde_json::json;
use std::sync::Arc;

const CONDITION: &mainstay_object::Resource = &resources::OPERATOR_CONDITION;

/// Reconciles OperatorConditions; a key is the name of the CSV and of its OperatorCondition.
pub(crate) struct Controller(pub(crate) Arc<Context>);

impl Reconciler for Controller {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        self.reconcile_operator_condition(key).await
    }
}

impl Controller {
    async fn reconcile_operator_condition(&self, key: &NamespacedName) -> Result<Action, Error> {
        let caches = &self.0.caches;
        let present = caches.operator_conditions.get(key);
        let csv = caches.csvs.get(key).filter(|csv| !csv.is_copy() && !csv.deleting);
        if let Some(csv) = csv {
            self.ensure_condition(key, &csv, present.as_deref()).await?;
        }
        if let Some(condition) = present {
            self.copy_conditions(key, &condition).await?;
        }
        Ok(Action::Done)
    }

    async fn ensure_condition(
        &self,
        key: &NamespacedName,
        csv: &fields::Csv,
        present: Option<&OperatorCondition>,
    ) -> Result<(), Error> {
        let Context { cluster, caches, .. } = &*self.0;
        let csv = CsvFields {
            namespace: &key.namespace,
            name: &key.name,
            uid: &csv.uid,
            deployments: &csv.deployments,
            accounts: &csv.accounts,
            components: &csv.components,
        };
        let is_right = |condition: &&OperatorCondition| {
            condition.spec.deployments == csv.deployments
                && condition.spec.service_accounts == csv.accounts
                && condition.metadata.owner_references.iter().any(|owner| owner.uid == csv.uid)
        };
        let uid = if let Some(condition) = present.filter(is_right) {
            condition.metadata.uid.clone()
        } else {
            let condition = cluster.ensure(CONDITION, &decide::condition(&csv)).await;
            condition
                .during("writing the OperatorCondition of a ClusterServiceVersion")?
                .uid()
                .to_owned()
        };
        let role = decide::role(&csv, &uid);
        let existing = caches.roles.get(key);
        if existing.is_none_or(|found| {
            let wanted = fields::Role::of(&role);
            found.rules != wanted.rules || found.owners.iter().all(|owner| owner.uid != uid)
        }) {
            cluster
                .ensure(&builtin::ROLE, &role)
                .await
                .during("writing the Role of an OperatorCondition")?;
        }
        let binding = decide::binding(&csv, &uid);
        let existing = caches.role_bindings.get(key);
        if existing.is_none_or(|found| !is_bound(&found, &binding, &uid)) {
            cluster
                .ensure(&builtin::ROLE_BINDING, &binding)
                .await
                .during("writing the RoleBinding of an OperatorCondition")?;
        }
        Ok(())
    }

    async fn copy_conditions(
        &self,
        key: &NamespacedName,
        condition: &OperatorCondition,
    ) -> Result<(), Error> {
        let wanted = decide::status(condition, Time::new(self.0.clock.now()));
        if wanted == condition.status.conditions {
            return Ok(());
        }
        let patch = Patch::Merge(json!({
            "metadata": {"resourceVersion": condition.metadata.resource_version},
            "status": {"conditions": wanted},
        }));
        self.0
            .cluster
            .patch_status(CONDITION, key.namespace(), &key.name, &patch)
            .await
            .during("writing the status of an OperatorCondition")?;
        let all = wanted
            .iter()
            .map(|condition| format!("{}={}", condition.kind, condition.status.as_str()));
        let all: Vec<String> = all.collect();
        decision::log(
            "OperatorCondition",
            key,
            all.join(" "),
            "the operator, or an override, says so",
        );
        Ok(())
    }
}

fn is_bound(existing: &fields::Binding, wanted: &Object, uid: &str) -> bool {
    let wanted = fields::Binding::of(wanted);
    existing.subjects == wanted.subjects && existing.owners.iter().any(|owner| owner.uid == uid)
}

/// Registers the controller.
pub(crate) fn register(controllers: &mut Controllers<Context>) {
    let context = controllers.context();
    let caches = &context.caches;
    controllers
        .add("operator_condition")
        .watch(&caches.operator_conditions, |_, queue, change| queue.add(change.key.clone()))
        .watch(&caches.csvs, |_, queue, change| {
            if enqueue::csv_changed(change) {
                queue.add(change.key.clone());
            }
        })
        .watch(&caches.roles, |_, queue, change| {
            enqueue_owner(queue, change.key, either_side(change).flat_map(|role| &role.owners));
        })
        .watch(&caches.role_bindings, |_, queue, change| {
            enqueue_owner(
                queue,
                change.key,
                either_side(change).flat_map(|binding| &binding.owners),
            );
        })
        .reconcile(Controller(Arc::clone(&context)));
}

/// Enqueues the OperatorCondition of the same name, if it owns the object.
fn enqueue_owner<'a>(
    queue: &KeyQueue,
    key: &NamespacedName,
    mut owners: impl Iterator<Item = &'a OwnerReference>,
) {
    if owners.any(|owner| owner.kind == *CONDITION.kind) {
        queue.add(key.clone());
    }
}
