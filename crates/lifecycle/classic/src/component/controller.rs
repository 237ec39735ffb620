//! Labels the parts of operators and writes what each consists of.

use super::decide::{self, Roots};
use super::parts::{self, Kind, Part, Parts};
use crate::context::Context;
use crate::error::{Doing, Error, settle};
use crate::patch;
use crate::told;
use mainstay_api::resources;
use mainstay_client::{Action, Changed, Patch, Queue, Reconciler};
use mainstay_formats::names;
use mainstay_object::{NamespacedName, Object, Resource, known};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

const OPERATOR: &Resource = &resources::OPERATOR;
const SUBSCRIPTION: &Resource = &resources::SUBSCRIPTION;
const CSV: &Resource = &resources::CLUSTER_SERVICE_VERSION;
/// Parts come and change together: they are told of together.
const TOGETHER: Duration = Duration::from_millis(250);

/// Reconciles operators; a key is the name of one.
pub(crate) struct Controller {
    pub(crate) context: Arc<Context>,
    pub(crate) parts: Arc<Parts>,
}

impl Reconciler for Controller {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        settle(self.look(&key.name).await)
    }
}

impl Controller {
    /// The Subscriptions, versions and plans of an operator.
    fn roots(&self, operator: &str) -> Roots {
        let mut roots = Roots::default();
        for (_, it) in self.context.caches.subscriptions.list(None) {
            if decide::operator(&it) == operator {
                roots.add(&it);
            }
        }
        let versions = self.parts.kind(&resources::CLUSTER_SERVICE_VERSION);
        let labelled = versions.into_iter().flat_map(|it| it.cache.indexed(operator));
        roots.versions.extend(labelled.map(|(key, _)| key));
        roots
    }

    /// The objects of a kind that should be parts.
    fn wanted(
        roots: &Roots,
        defined: &BTreeSet<NamespacedName>,
        kind: &Kind,
    ) -> BTreeSet<NamespacedName> {
        if kind.resource == resources::SUBSCRIPTION {
            roots.subscriptions.clone()
        } else if kind.resource == resources::CLUSTER_SERVICE_VERSION {
            roots.versions.clone()
        } else if kind.resource == resources::INSTALL_PLAN {
            roots.plans.clone()
        } else if kind.resource == known::CUSTOM_RESOURCE_DEFINITION {
            defined.clone()
        } else {
            let owned = |it: &NamespacedName| kind.cache.indexed(&parts::owner_index(it));
            roots.versions.iter().flat_map(owned).map(|(key, _)| key).collect()
        }
    }

    /// Gives an object the label of an operator, or takes it away. Its change brings us back.
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
                Err(error).doing("labelling a part of an operator")
            }
            _ => Ok(()),
        }
    }

    /// Whether one of these objects is there, and is to stay. What was heard of them may be older than
    /// that their Operator was deleted: the API itself is asked.
    async fn one_stays(&self, objects: Vec<(&Resource, NamespacedName)>) -> Result<bool, Error> {
        for (resource, key) in objects {
            let found = self.context.cluster.find(resource, key.namespace(), &key.name).await;
            let found = found.doing("reading a part of an operator")?;
            if found.is_some_and(|it| !it.is_terminating()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn look(&self, operator: &str) -> Result<Action, Error> {
        let Context { cluster, caches, .. } = &*self.context;
        let roots = self.roots(operator);
        let versions = roots.versions.iter().filter_map(|it| caches.csvs.get(it));
        let defined = versions.flat_map(|it| it.owned_crds.clone());
        let defined = defined.map(NamespacedName::cluster).collect();
        let mut refs = Vec::new();
        // What an Operator is there for, if there is none yet.
        let mut lasting: Vec<(&Resource, NamespacedName)> =
            roots.subscriptions.iter().map(|it| (SUBSCRIPTION, it.clone())).collect();
        for kind in &self.parts.kinds {
            let resource = &kind.resource;
            for (key, part) in kind.cache.indexed(operator) {
                if *resource == resources::INSTALL_PLAN && roots.is_past(&key) {
                    self.label(resource, &key, operator, Value::Null).await?;
                    continue;
                }
                let stays = match &part.owner {
                    None => Some((resource, key.clone())),
                    Some(owner) if caches.csvs.get(owner).is_some() => Some((CSV, owner.clone())),
                    // What is owned by versions that are gone is about to go as well.
                    Some(_) => None,
                };
                if let Some(it) = stays.filter(|it| !lasting.contains(it)) {
                    lasting.push(it);
                }
                refs.push(decide::reference(resource, &key, &part));
            }
            for key in Self::wanted(&roots, &defined, kind) {
                if kind.cache.get(&key).is_none_or(|part| !decide::lacks(&part, operator)) {
                    continue;
                }
                self.label(resource, &key, operator, "".into()).await?;
            }
        }
        let live = cluster.find(OPERATOR, None, operator).await.doing("reading an Operator")?;
        let live = match live {
            Some(live) => live,
            // Who deletes the Operator behind all that stays is rid of it.
            None if !self.one_stays(lasting).await? => return Ok(Action::Done),
            // A package of a ConfigMap may have a name with capitals, of which no object can be made.
            None if !names::dns1123_subdomain(operator).is_empty() => {
                tracing::debug!(operator, "no Operator can have that name");
                return Ok(Action::Done);
            }
            None => {
                let mut object = Object::new(&OPERATOR.gvk(), operator);
                // There is nothing to ask for; the original writes it all the same.
                object.set(&["spec"], json!({}));
                match cluster.create(OPERATOR, &object).await {
                    // Somebody was quicker; its arrival brings us back.
                    Err(error) if error.is_already_exists() => return Ok(Action::Done),
                    other => other.doing("creating an Operator")?,
                }
            }
        };
        let parts = refs.len();
        if let Some(patch) = patch::status(&live, &decide::status(operator, refs))? {
            cluster
                .patch_status(OPERATOR, None, operator, &patch)
                .await
                .doing("writing the status of an Operator")?;
            let why = "objects with its label came, changed or went";
            told::decided("Operator", operator, format!("{parts} parts"), why);
        }
        Ok(Action::Done)
    }
}

/// Connects parts and the caches that lead to them with the queue.
pub(crate) fn connect(context: &Arc<Context>, parts: &Parts, queue: &Queue<NamespacedName>) {
    for kind in &parts.kinds {
        let (context, queue) = (Arc::downgrade(context), queue.clone());
        let resource = kind.resource.clone();
        kind.cache.subscribe(move |change| heard(&context, &queue, &resource, change));
    }
    let later = queue.clone();
    context.caches.subscriptions.subscribe(move |change| {
        for it in change.before.into_iter().chain(change.after) {
            add(&later, &decide::operator(it));
        }
    });
    let later = queue.clone();
    // Who deletes an Operator whose parts are still there gets it again.
    context.caches.operators.subscribe(move |change| add(&later, &change.key.name));
}

fn add(queue: &Queue<NamespacedName>, operator: &str) {
    queue.add_after(NamespacedName::cluster(operator), TOGETHER);
}

fn heard(
    context: &Weak<Context>,
    queue: &Queue<NamespacedName>,
    resource: &Resource,
    change: &Changed<'_, Part>,
) {
    let sides = || change.before.into_iter().chain(change.after);
    sides().flat_map(|it| &it.of).for_each(|it| add(queue, it));
    let Some(context) = context.upgrade() else { return };
    let mut versions: Vec<NamespacedName> = sides().filter_map(|it| it.owner.clone()).collect();
    if *resource == resources::CLUSTER_SERVICE_VERSION {
        versions.push(change.key.clone());
    } else if *resource == known::CUSTOM_RESOURCE_DEFINITION {
        versions.extend(context.caches.csvs.indexed(&change.key.name).into_iter().map(|it| it.0));
    }
    for version in versions {
        for operator in context.caches.csvs.get(&version).iter().flat_map(|it| &it.components) {
            add(queue, operator);
        }
        for (_, it) in context.caches.subscriptions.list(Some(&version.namespace)) {
            if *it.status.installed_csv == *version.name {
                add(queue, &decide::operator(&it));
            }
        }
    }
}
