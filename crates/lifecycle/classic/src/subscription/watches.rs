//! The watches of the Subscription controller. Its keys are names of namespaces, because it
//! reconciles the Subscriptions of a namespace together.

use super::controller::Controller;
use crate::context::Context;
use crate::copied_csv::CopiedCsv;
use crate::enqueue;
use mainstay_controller::{Controllers, KeyQueue};
use mainstay_object::NamespacedName;
use std::sync::Arc;

/// Registers the controller.
pub(crate) fn register(controllers: &mut Controllers<Context>) {
    let context = controllers.context();
    let caches = &context.caches;
    let is_there = |copy: Option<&Arc<CopiedCsv>>| copy.is_some_and(|copy| !copy.deleting);
    controllers
        .add("subscription")
        .watch(&caches.subscriptions, |_, queue, change| {
            queue.add(enqueue::namespace_key(change.key));
        })
        .watch(&caches.install_plans, |_, queue, change| {
            queue.add(enqueue::namespace_key(change.key));
        })
        .watch(&caches.operator_groups, |_, queue, change| {
            queue.add(enqueue::namespace_key(change.key));
        })
        .watch(&caches.csvs, |_, queue, change| {
            if enqueue::csv_changed(change) {
                queue.add(enqueue::namespace_key(change.key));
            }
        })
        // Until it is deleted, a copied CSV occupies the name of the CSV that a Subscription of its
        // namespace wants.
        .watch(&caches.copied_csvs, move |context, queue, change| {
            let came_or_went = is_there(change.before) != is_there(change.after);
            let subscriptions = &context.caches.subscriptions;
            if came_or_went && !subscriptions.list(Some(&change.key.namespace)).is_empty() {
                queue.add(enqueue::namespace_key(change.key));
            }
        })
        .watch(&caches.catalogs.sources, |context, queue, change| {
            enqueue_namespaces_that_see(context, queue, change.key);
        })
        .watch_source(|enqueuer| {
            let changed = move |catalog: &NamespacedName| {
                enqueuer
                    .with(|context, queue| enqueue_namespaces_that_see(context, queue, catalog));
            };
            context.store.subscribe(changed);
        })
        .watch_source(|enqueuer| {
            // Namespaces request the bundles of their Subscriptions; InstallPlans request their
            // own.
            context.bundles.subscribe(move |asker| {
                if asker.namespace().is_none() {
                    enqueuer.with(|_, queue| queue.add(asker.clone()));
                }
            });
        })
        .reconcile(Controller::new(context.as_catalog_operator()));
}

/// Enqueues the namespaces whose Subscriptions see a catalog.
fn enqueue_namespaces_that_see(context: &Context, queue: &KeyQueue, catalog: &NamespacedName) {
    if *catalog.namespace != *context.global_namespace {
        return queue.add(enqueue::namespace_key(catalog));
    }
    // The queue holds a waiting key only once.
    for (subscription, _) in context.caches.subscriptions.list(None) {
        queue.add(enqueue::namespace_key(&subscription));
    }
}
