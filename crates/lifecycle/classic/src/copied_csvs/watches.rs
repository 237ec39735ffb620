//! The watches of the controllers of copied CSVs and of the OLMConfig.

use super::config;
use super::controller::{self, CopiesContext};
use super::decide::{self, Targets};
use crate::context::Context;
use crate::copied_csv::CopiedCsv;
use crate::fields;
use mainstay_api::{OlmConfig, names, resources};
use mainstay_client::{Cache, Selection};
use mainstay_controller::{Controllers, Signal, either_side};
use mainstay_object::NamespacedName;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// How long the controller waits for more changes, as namespaces are often created together.
const ENQUEUE_DELAY: Duration = Duration::from_millis(30);

/// Registers the controllers of copied CSVs and of the OLMConfig. The `protected` namespaces have
/// copied CSVs even where the OLMConfig disables them.
pub(crate) fn register(controllers: &mut Controllers<Context>, protected: BTreeSet<String>) {
    let shared = register_copies(controllers, protected);
    register_config(controllers, &shared);
}

/// Registers the controller of copied CSVs; its keys are those of the originals.
fn register_copies(
    controllers: &mut Controllers<Context>,
    protected: BTreeSet<String>,
) -> Arc<CopiesContext> {
    let context = controllers.context();
    let caches = &context.caches;
    let mut builder = controllers.add("copies");
    let configs = Cache::builder(Selection::all(resources::OLM_CONFIG), |config| {
        OlmConfig::from_object(config).ok()
    });
    let shared = Arc::new(CopiesContext {
        context: Arc::clone(&context),
        config: builder.cache(configs),
        protected,
        written: Signal::default(),
    });
    builder
        .watch(&caches.csvs, |context, queue, change| {
            for csv in either_side(change) {
                // A copied CSV that lost its label.
                if let Some(from) = csv.membership[1].as_deref().filter(|_| csv.is_copy()) {
                    queue.add(NamespacedName::new(from, Arc::clone(&change.key.name)));
                }
            }
            queue.add(change.key.clone());
            let is_own = |csv: Option<&Arc<fields::Csv>>| csv.is_some_and(|csv| !csv.is_copy());
            let is_lost = change.after.is_some_and(|csv| csv.is_copy());
            if is_lost || is_own(change.before) != is_own(change.after) {
                // The CSV occupies, or no longer occupies, the name of a copied CSV of another
                // original; or it was such a copied CSV.
                let add = |key| queue.add(key);
                enqueue_originals(context, add, |key, _| key.name == change.key.name);
            }
        })
        .watch(&caches.copied_csvs, |context, queue, change| {
            for copy in either_side(change) {
                queue.add(NamespacedName::new(Arc::clone(&copy.from), Arc::clone(&copy.name)));
            }
            let from = |copy: Option<&Arc<CopiedCsv>>| copy.map(|copy| Arc::clone(&copy.from));
            if change.before.is_some() && from(change.before) != from(change.after) {
                // Another original may wait for the name.
                let add = |key| queue.add(key);
                enqueue_originals(context, add, |key, _| key.name == change.key.name);
            }
        })
        .watch(&caches.namespaces, |context, queue, change| {
            let is_active = |namespace: Option<&Arc<fields::Namespace>>| {
                namespace.is_some_and(|namespace| !namespace.deleting)
            };
            if is_active(change.before) != is_active(change.after) {
                let add = |key| queue.add_after(key, ENQUEUE_DELAY);
                let name = &change.key.name;
                enqueue_originals(context, add, |_, csv| decide::targets(csv).contain(name));
            }
        })
        .watch(&caches.operator_groups, |context, queue, change| {
            let add = |key| queue.add(key);
            enqueue_originals(context, add, |key, _| key.namespace == change.key.namespace);
        })
        .watch(&shared.config, |context, queue, change| {
            let spec_changed =
                change.before.map(|config| &config.spec) != change.after.map(|config| &config.spec);
            if *change.key.name == *names::OLM_CONFIG && spec_changed {
                let add = |key| queue.add(key);
                enqueue_originals(context, add, |_, csv| decide::targets(csv) == Targets::All);
            }
        })
        .reconcile(controller::Controller::new(Arc::clone(&shared)));
    shared
}

/// Registers the controller of the only OLMConfig.
fn register_config(controllers: &mut Controllers<Context>, shared: &Arc<CopiesContext>) {
    let key = || NamespacedName::cluster(names::OLM_CONFIG);
    controllers
        .add("olm_config")
        .watch(&shared.config, move |_, queue, change| {
            if *change.key == key() {
                queue.add(key());
            }
        })
        // Its condition says whether all copied CSVs exist.
        .watch_source(|enqueuer| {
            shared.written.subscribe(move || enqueuer.with(|_, queue| queue.add(key())));
        })
        .reconcile(config::Controller::new(Arc::clone(shared)));
}

/// Enqueues the originals for which a condition holds.
fn enqueue_originals(
    context: &Context,
    add: impl Fn(NamespacedName),
    fits: impl Fn(&NamespacedName, &fields::Csv) -> bool,
) {
    for (key, csv) in context.caches.csvs.list(None) {
        if !csv.is_copy() && fits(&key, &csv) {
            add(key);
        }
    }
}
