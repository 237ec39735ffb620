//! What the controller of Subscriptions watches. Its keys are names of namespaces: the Subscriptions of
//! a namespace are reconciled together.

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
            queue.add(enqueue::namespace_key(change.key))
        })
        .watch(&caches.plans, |_, queue, change| queue.add(enqueue::namespace_key(change.key)))
        .watch(&caches.groups, |_, queue, change| queue.add(enqueue::namespace_key(change.key)))
        .watch(&caches.csvs, |_, queue, change| {
            if enqueue::csv_changed(change) {
                queue.add(enqueue::namespace_key(change.key));
            }
        })
        // A copy stands in the place of a ClusterServiceVersion that a Subscription of its namespace
        // asks for, until it goes.
        .watch(&caches.copies, move |context, queue, change| {
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
            // Namespaces ask for the bundles of their Subscriptions, InstallPlans for their own.
            context.bundles.subscribe(move |asker| {
                if asker.namespace().is_none() {
                    enqueuer.with(|_, queue| queue.add(asker.clone()));
                }
            });
        })
        .reconcile(Controller::new(context.as_catalog_operator()));
}

/// Namespaces whose Subscriptions see a catalog.
fn enqueue_namespaces_that_see(context: &Context, queue: &KeyQueue, catalog: &NamespacedName) {
    if *catalog.namespace != *context.global {
        return queue.add(enqueue::namespace_key(catalog));
    }
    // A key that waits already is there once only.
    for (subscription, _) in context.caches.subscriptions.list(None) {
        queue.add(enqueue::namespace_key(&subscription));
    }
}
