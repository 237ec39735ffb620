//! The watches of the CSV controller. A CSV depends on many objects of its namespace and of the
//! cluster.

use super::controller::Controller;
use super::serving::observed::WebhookConfiguration;
use crate::context::{Caches, Context};
use crate::enqueue::{ENQUEUE_DELAY, LabelledOwner, csv_changed};
use crate::proxy;
use mainstay_api::{CsvPhase, CsvReason, resources};
use mainstay_client::Changed;
use mainstay_controller::{ControllerBuilder, Controllers, KeyQueue, either_side};
use mainstay_object::{NamespacedName, OwnerReference};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Registers the controller.
pub(crate) fn register(controllers: &mut Controllers<Context>) {
    let context = controllers.context();
    let caches = &context.caches;
    let builder = controllers
        .add("csv")
        .watch(&caches.csvs, |context, queue, change| {
            if csv_changed(change) {
                queue.add(change.key.clone());
                // The change may concern predecessors, successors and CSVs with the same APIs.
                enqueue_in_namespace(context, queue, &change.key.namespace);
            }
        })
        // The config of a Subscription changes the Deployments of its CSV.
        .watch(&caches.subscriptions, |_, queue, change| {
            for subscription in either_side(change) {
                let status = &subscription.status;
                for name in [&status.installed_csv, &status.current_csv] {
                    if !name.is_empty() {
                        let namespace = Arc::clone(&change.key.namespace);
                        queue.add(NamespacedName::new(namespace, name.as_str()));
                    }
                }
            }
        })
        // The condition may block the upgrade from its CSV.
        .watch(&caches.operator_conditions, |context, queue, change| {
            enqueue_in_namespace(context, queue, &change.key.namespace);
        })
        .watch(&caches.operator_groups, |context, queue, change| {
            enqueue_in_namespace(context, queue, &change.key.namespace);
            // A conflict with another OperatorGroup may begin or end.
            enqueue_waiting(context, queue);
        })
        .watch(&caches.namespaces, |context, queue, change| {
            for (key, group) in context.caches.operator_groups.list(None) {
                if group.status.namespaces.iter().any(|target| **target == *change.key.name) {
                    enqueue_in_namespace(context, queue, &key.namespace);
                }
            }
        })
        .watch(&caches.deployments, |_, queue, change| {
            for owner in either_side(change).filter_map(|deployment| deployment.owner.clone()) {
                let (name, namespace) = owner;
                queue.add(NamespacedName::new(namespace, name));
            }
        })
        .watch(&caches.service_accounts, |context, queue, change| {
            enqueue_in_namespace_soon(context, queue, &change.key.namespace);
        })
        .watch_source(|enqueuer| {
            context.proxies.changed.subscribe(move || enqueuer.with(enqueue_all));
        });
    let builder = watch_apis(builder, caches);
    let builder = watch_permissions(builder, caches);
    watch_serving(builder, caches).reconcile(Controller::new(Arc::clone(&context)));
}

/// The controller builder during registration.
type Builder<'c> = ControllerBuilder<'c, Context>;

/// Watches CustomResourceDefinitions and APIServices, which CSVs own or require.
fn watch_apis<'c>(builder: Builder<'c>, caches: &Caches) -> Builder<'c> {
    builder
        .watch(&caches.crds, |context, queue, change| {
            if *change.key.name == *proxy::DEFINITION {
                enqueue_all(context, queue);
            }
            enqueue_naming_api(context, queue, &change.key.name);
        })
        .watch(&caches.api_services, |context, queue, change| {
            either_side(change).for_each(|service| enqueue_labelled_owner(queue, &service.labels));
            enqueue_naming_api(context, queue, &change.key.name);
        })
}

/// Watches RBAC objects: those of CSVs, and those that grant CSVs what they require.
fn watch_permissions<'c>(builder: Builder<'c>, caches: &Caches) -> Builder<'c> {
    builder
        .watch(&caches.roles, |context, queue, change| {
            enqueue_in_namespace_soon(context, queue, &change.key.namespace);
            enqueue_lacking_permissions(context, queue);
            either_side(change).for_each(|role| enqueue_labelled_owner(queue, &role.labels));
        })
        .watch(&caches.role_bindings, |context, queue, change| {
            enqueue_in_namespace_soon(context, queue, &change.key.namespace);
            enqueue_lacking_permissions(context, queue);
            either_side(change).for_each(|binding| enqueue_labelled_owner(queue, &binding.labels));
            // Servers in several namespaces may share this RoleBinding.
            if change.key.name.ends_with("-auth-reader") {
                for subject in either_side(change).flat_map(|binding| &binding.subjects) {
                    enqueue_in_namespace_soon(context, queue, &subject.namespace);
                }
            }
        })
        .watch(&caches.cluster_roles, |context, queue, change| {
            for role in either_side(change) {
                enqueue_labelled_owner(queue, &role.labels);
                for owner in role.owners.iter().filter(|owner| is_api(owner)) {
                    for (key, _) in context.caches.csvs.indexed(&owner.name) {
                        queue.add_after(key, ENQUEUE_DELAY);
                    }
                }
            }
            enqueue_waiting(context, queue);
            enqueue_lacking_permissions(context, queue);
        })
        .watch(&caches.cluster_role_bindings, |context, queue, change| {
            for binding in either_side(change) {
                enqueue_labelled_owner(queue, &binding.labels);
                for subject_name in &binding.subject_names {
                    let account = subject_name.strip_prefix("system:serviceaccount:");
                    if let Some((namespace, _)) = account.and_then(|name| name.split_once(':')) {
                        enqueue_in_namespace_soon(context, queue, namespace);
                    }
                }
            }
            enqueue_waiting(context, queue);
            enqueue_lacking_permissions(context, queue);
        })
}

/// Watches the objects around servers. Those in the namespace of the CSV have an owner reference,
/// others have owner labels.
fn watch_serving<'c>(builder: Builder<'c>, caches: &Caches) -> Builder<'c> {
    let of_webhook = |_: &Context, queue: &KeyQueue, change: &Changed<'_, WebhookConfiguration>| {
        either_side(change).for_each(|webhook| enqueue_labelled_owner(queue, &webhook.labels));
    };
    builder
        .watch(&caches.certificates, |_, queue, change| {
            either_side(change)
                .for_each(|secret| enqueue_owners(queue, change.key, &secret.owners));
        })
        .watch(&caches.services, |_, queue, change| {
            either_side(change)
                .for_each(|service| enqueue_owners(queue, change.key, &service.owners));
        })
        .watch(&caches.validating_webhooks, of_webhook)
        .watch(&caches.mutating_webhooks, of_webhook)
}

/// Enqueues all CSVs but copied ones.
fn enqueue_all(context: &Context, queue: &KeyQueue) {
    for (key, csv) in context.caches.csvs.list(None) {
        if !csv.is_copy() {
            queue.add(key);
        }
    }
}

/// Enqueues all CSVs of a namespace but copied ones.
fn enqueue_in_namespace(context: &Context, queue: &KeyQueue, namespace: &str) {
    for (key, csv) in context.caches.csvs.list(Some(namespace)) {
        if !csv.is_copy() {
            queue.add(key);
        }
    }
}

/// As [`enqueue_in_namespace`], after [`ENQUEUE_DELAY`].
fn enqueue_in_namespace_soon(context: &Context, queue: &KeyQueue, namespace: &str) {
    for (key, csv) in context.caches.csvs.list(Some(namespace)) {
        if !csv.is_copy() {
            queue.add_after(key, ENQUEUE_DELAY);
        }
    }
}

/// Enqueues the CSVs that own or require an API, after [`ENQUEUE_DELAY`].
fn enqueue_naming_api(context: &Context, queue: &KeyQueue, api: &str) {
    for (key, csv) in context.caches.csvs.indexed(api) {
        if !csv.is_copy() {
            queue.add_after(key, ENQUEUE_DELAY);
        }
    }
}

/// Enqueues the CSVs that wait for an object which may be in another namespace. It skips CSVs with
/// an object that the API refused: those are retried with growing pauses, which an earlier
/// reconciliation would cut short.
fn enqueue_waiting(context: &Context, queue: &KeyQueue) {
    for (key, csv) in context.caches.csvs.list(None) {
        let refused = csv.reason == CsvReason::ComponentFailed;
        let waits = matches!(csv.phase, CsvPhase::Pending | CsvPhase::Failed);
        if !csv.is_copy() && !refused && waits {
            queue.add_after(key, ENQUEUE_DELAY);
        }
    }
}

/// Enqueues the CSVs that lack a permission. The name of an object of another owner may be the
/// reason, and only the name links that object to the CSV.
fn enqueue_lacking_permissions(context: &Context, queue: &KeyQueue) {
    for key in context.missing_permissions.lock().keys() {
        queue.add_after(key.clone(), ENQUEUE_DELAY);
    }
}

/// Enqueues the CSVs that own an object of their namespace.
fn enqueue_owners(queue: &KeyQueue, key: &NamespacedName, owners: &[OwnerReference]) {
    let is_csv = |owner: &&OwnerReference| owner.kind == *resources::CLUSTER_SERVICE_VERSION.kind;
    for owner in owners.iter().filter(is_csv) {
        queue.add(NamespacedName::new(Arc::clone(&key.namespace), owner.name.as_str()));
    }
}

/// Enqueues the CSV that owner labels name.
fn enqueue_labelled_owner(queue: &KeyQueue, labels: &BTreeMap<String, String>) {
    if let Some(LabelledOwner::Csv(key)) = LabelledOwner::of(labels) {
        queue.add_after(key, ENQUEUE_DELAY);
    }
}

/// Whether an owner is an API that a CSV may name.
fn is_api(owner: &OwnerReference) -> bool {
    let kinds = ["customresourcedefinition", "apiservice"];
    kinds.iter().any(|kind| owner.kind.eq_ignore_ascii_case(kind))
}
