//! What the controller of `ClusterServiceVersions` watches: they depend on much around them.

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
                // Predecessors, successors and rivals.
                enqueue_in_namespace(context, queue, &change.key.namespace);
            }
        })
        // The settings of a Subscription change the Deployments of its ClusterServiceVersion.
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
        // A condition may hold back the ClusterServiceVersion that replaces its own.
        .watch(&caches.conditions, |context, queue, change| {
            enqueue_in_namespace(context, queue, &change.key.namespace);
        })
        .watch(&caches.groups, |context, queue, change| {
            enqueue_in_namespace(context, queue, &change.key.namespace);
            // A conflict with another OperatorGroup may be over, or begin.
            enqueue_waiting(context, queue);
        })
        .watch(&caches.namespaces, |context, queue, change| {
            for (key, group) in context.caches.groups.list(None) {
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
        .watch(&caches.accounts, |context, queue, change| {
            enqueue_in_namespace_soon(context, queue, &change.key.namespace);
        })
        .watch_source(|enqueuer| {
            context.proxies.changed.subscribe(move || enqueuer.with(enqueue_all));
        });
    let builder = watch_apis(builder, caches);
    let builder = watch_permissions(builder, caches);
    watch_serving(builder, caches).reconcile(Controller::new(Arc::clone(&context)));
}

/// The controller while it is registered.
type Builder<'c> = ControllerBuilder<'c, Context>;

/// CustomResourceDefinitions and APIServices, which ClusterServiceVersions own or require.
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

/// Roles and bindings: those of ClusterServiceVersions, and those that give them what they require.
fn watch_permissions<'c>(builder: Builder<'c>, caches: &Caches) -> Builder<'c> {
    builder
        .watch(&caches.roles, |context, queue, change| {
            enqueue_in_namespace_soon(context, queue, &change.key.namespace);
            enqueue_lacking_permissions(context, queue);
            either_side(change).for_each(|role| enqueue_labelled_owner(queue, &role.labels));
        })
        .watch(&caches.bindings, |context, queue, change| {
            enqueue_in_namespace_soon(context, queue, &change.key.namespace);
            enqueue_lacking_permissions(context, queue);
            either_side(change).for_each(|binding| enqueue_labelled_owner(queue, &binding.labels));
            // Servers of several namespaces may share it.
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
        .watch(&caches.cluster_bindings, |context, queue, change| {
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

/// What ClusterServiceVersions serve: objects of their namespace name them as owner, others by labels.
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
        .watch(&caches.validating, of_webhook)
        .watch(&caches.mutating, of_webhook)
}

/// All ClusterServiceVersions that are no copies.
fn enqueue_all(context: &Context, queue: &KeyQueue) {
    for (key, csv) in context.caches.csvs.list(None) {
        if !csv.is_copy() {
            queue.add(key);
        }
    }
}

/// All ClusterServiceVersions of a namespace that are no copies.
fn enqueue_in_namespace(context: &Context, queue: &KeyQueue, namespace: &str) {
    for (key, csv) in context.caches.csvs.list(Some(namespace)) {
        if !csv.is_copy() {
            queue.add(key);
        }
    }
}

/// As [`enqueue_in_namespace`], in a moment.
fn enqueue_in_namespace_soon(context: &Context, queue: &KeyQueue, namespace: &str) {
    for (key, csv) in context.caches.csvs.list(Some(namespace)) {
        if !csv.is_copy() {
            queue.add_after(key, ENQUEUE_DELAY);
        }
    }
}

/// ClusterServiceVersions that own or require the API of a name, in a moment.
fn enqueue_naming_api(context: &Context, queue: &KeyQueue, api: &str) {
    for (key, csv) in context.caches.csvs.indexed(api) {
        if !csv.is_copy() {
            queue.add_after(key, ENQUEUE_DELAY);
        }
    }
}

/// ClusterServiceVersions that wait for something that may be far away. What the API refused is not
/// among it: that is tried again with growing pauses, which an earlier reconciliation would cut short.
fn enqueue_waiting(context: &Context, queue: &KeyQueue) {
    for (key, csv) in context.caches.csvs.list(None) {
        let refused = csv.reason == CsvReason::ComponentFailed;
        let waits = matches!(csv.phase, CsvPhase::Pending | CsvPhase::Failed);
        if !csv.is_copy() && !refused && waits {
            queue.add_after(key, ENQUEUE_DELAY);
        }
    }
}

/// ClusterServiceVersions that lack a permission, perhaps because somebody else's object has its name:
/// nothing but the name ties that one to them.
fn enqueue_lacking_permissions(context: &Context, queue: &KeyQueue) {
    for key in context.missing_permissions.lock().keys() {
        queue.add_after(key.clone(), ENQUEUE_DELAY);
    }
}

/// The ClusterServiceVersions that own an object of their namespace.
fn enqueue_owners(queue: &KeyQueue, key: &NamespacedName, owners: &[OwnerReference]) {
    let is_csv = |owner: &&OwnerReference| owner.kind == *resources::CLUSTER_SERVICE_VERSION.kind;
    for owner in owners.iter().filter(is_csv) {
        queue.add(NamespacedName::new(Arc::clone(&key.namespace), owner.name.as_str()));
    }
}

/// The ClusterServiceVersion that labels name as owner.
fn enqueue_labelled_owner(queue: &KeyQueue, labels: &BTreeMap<String, String>) {
    if let Some(LabelledOwner::Csv(key)) = LabelledOwner::of(labels) {
        queue.add_after(key, ENQUEUE_DELAY);
    }
}

/// Whether an owner is an API that a ClusterServiceVersion may name.
fn is_api(owner: &OwnerReference) -> bool {
    let kinds = ["customresourcedefinition", "apiservice"];
    kinds.iter().any(|kind| owner.kind.eq_ignore_ascii_case(kind))
}
