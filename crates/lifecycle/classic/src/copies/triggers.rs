//! Whose copies a change concerns.

use super::decide::{self, Targets};
use crate::context::Context;
use crate::facts;
use mainstay_api::names;
use mainstay_client::Queue;
use mainstay_object::NamespacedName;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How long copies wait for more of the same: namespaces mostly come in crowds.
const TOGETHER: Duration = Duration::from_millis(30);

type Keys = Queue<NamespacedName>;

/// Adds the originals for which a condition holds.
fn originals(
    context: &Context,
    add: impl Fn(NamespacedName),
    fits: impl Fn(&NamespacedName, &facts::Csv) -> bool,
) {
    for (key, csv) in context.caches.csvs.list(None) {
        if !csv.is_copy() && fits(&key, &csv) {
            add(key);
        }
    }
}

/// Runs `wake` unless everything is being taken down: caches hold their subscribers, and the context
/// holds the caches.
fn with(context: &Weak<Context>, wake: impl FnOnce(&Context)) {
    if let Some(context) = context.upgrade() {
        wake(&context);
    }
}

/// Connects the caches with the queues of copies and of the `OLMConfig`.
pub(crate) fn connect(context: &Arc<Context>, copies: &Keys, config: &Keys) {
    versions(context, copies.clone());
    copied(context, copies.clone());
    places(context, copies.clone());
    settings(context, copies.clone(), config.clone());
}

fn versions(context: &Arc<Context>, queue: Keys) {
    let weak = Arc::downgrade(context);
    context.caches.csvs.subscribe(move |change| {
        for side in change.before.into_iter().chain(change.after) {
            // A copy that lost its mark.
            if let Some(from) = side.membership[1].as_deref().filter(|_| side.is_copy()) {
                queue.add(NamespacedName::new(from, Arc::clone(&change.key.name)));
            }
        }
        queue.add(change.key.clone());
        let is_own = |it: Option<&Arc<facts::Csv>>| it.is_some_and(|it| !it.is_copy());
        let is_lost = change.after.is_some_and(|it| it.is_copy());
        if is_lost || is_own(change.before) != is_own(change.after) {
            // It is in the way of copies of another one, or no longer is, or was such a copy.
            with(&weak, |context| {
                originals(context, |it| queue.add(it), |key, _| key.name == change.key.name);
            });
        }
    });
}

fn copied(context: &Arc<Context>, queue: Keys) {
    let weak = Arc::downgrade(context);
    context.caches.copies.subscribe(move |change| {
        for side in change.before.into_iter().chain(change.after) {
            queue.add(NamespacedName::new(Arc::clone(&side.from), Arc::clone(&side.name)));
        }
        let from = |it: Option<&Arc<super::model::Copied>>| it.map(|it| Arc::clone(&it.from));
        if change.before.is_some() && from(change.before) != from(change.after) {
            // Another one may have been waiting for the place.
            with(&weak, |context| {
                originals(context, |it| queue.add(it), |key, _| key.name == change.key.name);
            });
        }
    });
}

fn places(context: &Arc<Context>, queue: Keys) {
    let (weak, soon) = (Arc::downgrade(context), queue.clone());
    context.caches.namespaces.subscribe(move |change| {
        let stays = |it: Option<&Arc<facts::Namespace>>| it.is_some_and(|it| !it.deleting);
        if stays(change.before) == stays(change.after) {
            return;
        }
        with(&weak, |context| {
            let add = |it| soon.add_after(it, TOGETHER);
            originals(context, add, |_, it| decide::targets(it).contain(&change.key.name));
        });
    });
    let weak = Arc::downgrade(context);
    context.caches.groups.subscribe(move |change| {
        with(&weak, |context| {
            let add = |it| queue.add(it);
            originals(context, add, |key, _| key.namespace == change.key.namespace);
        });
    });
}

fn settings(context: &Arc<Context>, copies: Keys, config: Keys) {
    let weak = Arc::downgrade(context);
    context.caches.config.subscribe(move |change| {
        if *change.key.name != *names::OLM_CONFIG {
            return;
        }
        config.add(change.key.clone());
        if change.before.map(|it| &it.spec) == change.after.map(|it| &it.spec) {
            return;
        }
        with(&weak, |context| {
            let add = |it| copies.add(it);
            originals(context, add, |_, it| decide::targets(it) == Targets::All);
        });
    });
}
