//! The Operator controller: labels the components of an Operator, and lists them in its status.

use super::components::{self, Component, ComponentCaches, ComponentKind};
use super::decide::{self, OperatorRoots};
use crate::context::Context;
use crate::error::Error;
use mainstay_api::resources;
use mainstay_client::{Action, Cache, Changed, Patch, Reconciler, Selection};
use mainstay_controller::{
    Controllers, KeyQueue, WithOperation as _, decision, either_side, patch,
};
use mainstay_formats::names;
use mainstay_object::{NamespacedName, Object, Resource, builtin};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const OPERATOR: &Resource = &resources::OPERATOR;
const SUBSCRIPTION: &Resource = &resources::SUBSCRIPTION;
const CSV: &Resource = &resources::CLUSTER_SERVICE_VERSION;
/// How long the controller waits for more changes, as components are often created together.
const ENQUEUE_DELAY: Duration = Duration::from_millis(250);

/// Reconciles Operators; a key is the name of one.
struct Controller {
    context: Arc<Context>,
    components: Arc<ComponentCaches>,
}

impl Reconciler for Controller {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        self.reconcile_operator(&key.name).await
    }
}

impl Controller {
    /// The Subscriptions, CSVs and InstallPlans of an Operator.
    fn roots(&self, operator: &str) -> OperatorRoots {
        let mut roots = OperatorRoots::default();
        for (_, subscription) in self.context.caches.subscriptions.list(None) {
            if decide::operator(&subscription) == operator {
                roots.add(&subscription);
            }
        }
        let csvs = self.components.kind(&resources::CLUSTER_SERVICE_VERSION);
        let labelled = csvs.into_iter().flat_map(|kind| kind.cache.indexed(operator));
        roots.csvs.extend(labelled.map(|(key, _)| key));
        roots
    }

    /// The objects of a kind that should be components.
    fn wanted(
        roots: &OperatorRoots,
        defined: &BTreeSet<NamespacedName>,
        kind: &ComponentKind,
    ) -> BTreeSet<NamespacedName> {
        if kind.resource == resources::SUBSCRIPTION {
            roots.subscriptions.clone()
        } else if kind.resource == resources::CLUSTER_SERVICE_VERSION {
            roots.csvs.clone()
        } else if kind.resource == resources::INSTALL_PLAN {
            roots.plans.clone()
        } else if kind.resource == builtin::CUSTOM_RESOURCE_DEFINITION {
            defined.clone()
        } else {
            let owned =
                |key: &NamespacedName| kind.cache.indexed(&components::owner_index_key(key));
            roots.csvs.iter().flat_map(owned).map(|(key, _)| key).collect()
        }
    }

    /// Adds the component label to an object, or removes it. That change triggers another
    /// reconciliation.
    async fn label(
        &self,
        resource: &Resource,
        key: &NamespacedName,
        operator: &str,
        value: Value,
    ) -> Result<(), Error> {
        let label = decide::label(operator);
        let patch = Patch::Merge(json!({"metadata": {"labels": {label: value}}}));
        match self.context.cluster.patch(resource, key.namespace(), &key.name, &patch).await {
            Err(error) if !error.is_not_found() => {
                Err(error).during("labelling a component of an Operator").map_err(Error::from)
            }
            _ => Ok(()),
        }
    }

    /// Whether one of these objects exists and is not terminating. The API is queried, because the
    /// caches may be older than the deletion of the Operator.
    async fn any_exists(&self, objects: Vec<(&Resource, NamespacedName)>) -> Result<bool, Error> {
        for (resource, key) in objects {
            let found = self.context.cluster.find(resource, key.namespace(), &key.name).await;
            let found = found.during("reading a component of an Operator")?;
            if found.is_some_and(|object| !object.is_terminating()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn reconcile_operator(&self, operator: &str) -> Result<Action, Error> {
        let Context { cluster, caches, .. } = &*self.context;
        let roots = self.roots(operator);
        let csvs = roots.csvs.iter().filter_map(|version| caches.csvs.get(version));
        let defined = csvs.flat_map(|version| version.owned_crds.clone());
        let defined = defined.map(NamespacedName::cluster).collect();
        let mut refs = Vec::new();
        // The objects that require an Operator, if it does not exist yet.
        let mut requiring: Vec<(&Resource, NamespacedName)> = roots
            .subscriptions
            .iter()
            .map(|subscription| (SUBSCRIPTION, subscription.clone()))
            .collect();
        for kind in &self.components.kinds {
            let resource = &kind.resource;
            for (key, component) in kind.cache.indexed(operator) {
                if *resource == resources::INSTALL_PLAN && roots.is_past(&key) {
                    self.label(resource, &key, operator, Value::Null).await?;
                    continue;
                }
                let requiring_object = match &component.owner {
                    None => Some((resource, key.clone())),
                    Some(owner) if caches.csvs.get(owner).is_some() => Some((CSV, owner.clone())),
                    // The objects of deleted CSVs will be deleted as well.
                    Some(_) => None,
                };
                if let Some(owner) = requiring_object.filter(|owner| !requiring.contains(owner)) {
                    requiring.push(owner);
                }
                refs.push(decide::reference(resource, &key, &component));
            }
            for key in Self::wanted(&roots, &defined, kind) {
                if kind
                    .cache
                    .get(&key)
                    .is_none_or(|component| !decide::lacks_label(&component, operator))
                {
                    continue;
                }
                self.label(resource, &key, operator, "".into()).await?;
            }
        }
        let live = cluster.find(OPERATOR, None, operator).await.during("reading an Operator")?;
        let live = match live {
            Some(live) => live,
            // An Operator that is deleted as the last object is not created again.
            None if !self.any_exists(requiring).await? => return Ok(Action::Done),
            // The package name in a ConfigMap may have capitals, which an object name cannot have.
            None if !names::dns1123_subdomain(operator).is_empty() => {
                tracing::debug!(operator, "no Operator can have that name");
                return Ok(Action::Done);
            }
            None => {
                let mut object = Object::new(&OPERATOR.gvk(), operator);
                // The spec has no fields, yet upstream writes it.
                object.set(&["spec"], json!({}));
                match cluster.create(OPERATOR, &object).await {
                    // Another client created it; its arrival triggers a reconciliation.
                    Err(error) if error.is_already_exists() => return Ok(Action::Done),
                    other => other.during("creating an Operator")?,
                }
            }
        };
        let components = refs.len();
        if let Some(patch) = patch::status(&live, &decide::status(operator, refs))? {
            cluster
                .patch_status(OPERATOR, None, operator, &patch)
                .await
                .during("writing the status of an Operator")?;
            let why = "objects with its label came, changed or went";
            decision::log("Operator", operator, format!("{components} parts"), why);
        }
        Ok(Action::Done)
    }
}

/// Registers the controller.
pub(crate) fn register(controllers: &mut Controllers<Context>) {
    let context = controllers.context();
    let caches = &context.caches;
    let mut builder = controllers.add("operator");
    // Only the existence of Operators matters.
    let operators = Cache::builder(Selection::all(OPERATOR.clone()), |_| Some(()));
    let operators = builder.cache(operators);
    let components = Arc::new(ComponentCaches::start(|cache| builder.cache(cache)));
    for kind in &components.kinds {
        let resource = kind.resource.clone();
        builder = builder.watch(&kind.cache, move |context, queue, change| {
            enqueue_operators(context, queue, &resource, change);
        });
    }
    builder
        .watch(&caches.subscriptions, |_, queue, change| {
            for subscription in either_side(change) {
                add(queue, &decide::operator(subscription));
            }
        })
        // An Operator that is deleted while components exist is created again.
        .watch(&operators, |_, queue, change| add(queue, &change.key.name))
        .reconcile(Controller { context: Arc::clone(&context), components });
}

fn add(queue: &KeyQueue, operator: &str) {
    queue.add_after(NamespacedName::cluster(operator), ENQUEUE_DELAY);
}

/// Enqueues the Operators that a change of a component concerns.
fn enqueue_operators(
    context: &Context,
    queue: &KeyQueue,
    resource: &Resource,
    change: &Changed<'_, Component>,
) {
    either_side(change)
        .flat_map(|component| &component.operators)
        .for_each(|operator| add(queue, operator));
    let owners = either_side(change).filter_map(|component| component.owner.clone());
    let mut csvs: Vec<NamespacedName> = owners.collect();
    if *resource == resources::CLUSTER_SERVICE_VERSION {
        csvs.push(change.key.clone());
    } else if *resource == builtin::CUSTOM_RESOURCE_DEFINITION {
        csvs.extend(context.caches.csvs.indexed(&change.key.name).into_iter().map(|csv| csv.0));
    }
    for key in csvs {
        for operator in context.caches.csvs.get(&key).iter().flat_map(|csv| &csv.components) {
            add(queue, operator);
        }
        for (_, subscription) in context.caches.subscriptions.list(Some(&key.namespace)) {
            if *subscription.status.installed_csv == *key.name {
                add(queue, &decide::operator(&subscription));
            }
        }
    }
}
