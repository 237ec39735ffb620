//! The namespace controller: creates the default objects of a namespace, and empties a deleted one.
//!
//! An active namespace gets the ServiceAccount `default` and, if there is a certificate authority,
//! the ConfigMap `kube-root-ca.crt`. From a deleted namespace the controller deletes the objects of
//! every kind that discovery lists, then removes the finalizer `kubernetes`; until then its
//! conditions say what remains.

use crate::Started;
use crate::collector::Collector;
use crate::common::Context;
use mainstay_client::conditions::{self, Condition};
use mainstay_client::{
    Action, Cache, Controller, DeleteOptions, Error, ObjectList, Propagation, Queue, Reconciler,
    Selection,
};
use mainstay_object::{NamespacedName, Object, Resource, builtin};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

const ROOT_CA: &str = "kube-root-ca.crt";
const ROOT_CA_NOTE: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";
const FINALIZER: &str = "kubernetes";
/// Finalizers of other clients may take long; another check costs little.
const REQUEUE_DELAY: std::time::Duration = std::time::Duration::from_secs(15);

/// Starts the controller of namespaces.
pub(crate) fn start(
    context: &Context,
    root_ca: Option<&str>,
    collector: &Collector,
    started: &mut Started,
) {
    let controller = Controller::new("namespaces");
    let queue = controller.queue();
    let subscriber_queue = queue.clone();
    let namespaces = Cache::builder(Selection::all(builtin::NAMESPACE), |namespace| {
        let finalizer =
            namespace.array(&["spec", "finalizers"]).iter().any(|finalizer| finalizer == FINALIZER);
        Some((namespace.is_terminating(), finalizer))
    })
    .subscribe(move |change| {
        subscriber_queue.add(NamespacedName::cluster(change.key.name.as_ref()));
    })
    .start(&context.cluster, context.stop.clone());

    let terminating = namespaces.clone();
    let subscriber_queue = queue.clone();
    collector.on_removal(move |namespace| {
        let key = NamespacedName::cluster(namespace);
        if terminating.get(&key).is_some_and(|namespace| namespace.0) {
            subscriber_queue.add(key);
        }
    });
    let accounts = defaults(context, &builtin::SERVICE_ACCOUNT, "default", &queue);
    let certificates = root_ca
        .map(|pem| (pem.to_owned(), defaults(context, &builtin::CONFIG_MAP, ROOT_CA, &queue)));
    let mut controller = controller.reads(&namespaces).reads(&accounts);
    if let Some((_, cache)) = &certificates {
        controller = controller.reads(cache);
    }
    let reconciler = Reconcile { context: context.clone(), namespaces, accounts, certificates };
    started.controller(controller.start(reconciler, context.stop.clone()));
}

/// A cache of the objects with one name; its changes enqueue their namespaces.
fn defaults(
    context: &Context,
    resource: &Resource,
    name: &str,
    queue: &Queue<NamespacedName>,
) -> Cache<Option<String>> {
    let queue = queue.clone();
    Cache::builder(
        Selection::all(resource.clone()).fields(format!("metadata.name={name}")),
        |object| Some(object.str(&["data", "ca.crt"]).map(ToOwned::to_owned)),
    )
    .subscribe(move |change| queue.add(NamespacedName::cluster(change.key.namespace.as_ref())))
    .start(&context.cluster, context.stop.clone())
}

struct Reconcile {
    context: Context,
    namespaces: Cache<(bool, bool)>,
    accounts: Cache<Option<String>>,
    certificates: Option<(String, Cache<Option<String>>)>,
}

impl Reconciler for Reconcile {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        let outcome = match self.namespaces.get(key).as_deref() {
            Some((false, _)) => self.create_defaults(&key.name).await,
            Some((true, true)) => self.delete_contents(&key.name).await,
            Some((true, false)) | None => return Ok(Action::Done),
        };
        match outcome {
            // The namespace was deleted meanwhile: that event brings the key back.
            Err(error) if error.is_not_found() || error.is_namespace_terminating() => {
                Ok(Action::Done)
            }
            other => other,
        }
    }
}

impl Reconcile {
    async fn create_defaults(&self, namespace: &str) -> Result<Action, Error> {
        let cluster = &self.context.cluster;
        if self.accounts.get(&NamespacedName::new(namespace, "default")).is_none() {
            let mut account = Object::new(&builtin::SERVICE_ACCOUNT.gvk(), "default");
            account.set(&["metadata", "namespace"], namespace.into());
            ignore_existing(cluster.create(&builtin::SERVICE_ACCOUNT, &account).await)?;
        }
        if let Some((pem, cache)) = &self.certificates {
            let present = cache.get(&NamespacedName::new(namespace, ROOT_CA));
            if present.as_deref().and_then(Option::as_deref) != Some(pem) {
                let mut map = Object::new(&builtin::CONFIG_MAP.gvk(), ROOT_CA);
                map.set(&["metadata", "namespace"], namespace.into());
                map.set_annotation("kubernetes.io/description", ROOT_CA_NOTE);
                map.set(&["data", "ca.crt"], pem.clone().into());
                cluster.ensure(&builtin::CONFIG_MAP, &map).await?;
            }
        }
        Ok(Action::Done)
    }

    async fn delete_contents(&self, name: &str) -> Result<Action, Error> {
        let cluster = &self.context.cluster;
        let live = cluster.get(&builtin::NAMESPACE, None, name).await?;
        if !live.is_terminating() {
            return Ok(Action::Done);
        }
        let found = cluster.resources().await?;
        let mut contents =
            NamespaceContents { complete: found.complete, ..NamespaceContents::default() };
        // Pods go first: while one runs, its dependencies (network policies, Secrets) stay.
        let (pods, others): (Vec<_>, Vec<_>) =
            found.resources.into_iter().partition(|api| is_pods(&api.resource));
        let first = pods.len();
        for (at, api) in pods.into_iter().chain(others).enumerate() {
            if at == first && !contents.is_without_pods() {
                break;
            }
            let emptied = api.preferred && api.resource.is_namespaced();
            if !emptied || !api.can("list") || !api.can("delete") {
                continue;
            }
            if let Err(error) = self
                .delete_kind(&api.resource, name, api.can("deletecollection"), &mut contents)
                .await
            {
                // A kind that is no longer served has no objects.
                if !error.is_not_found() {
                    contents.failures.push(format!("{}: {error}", api.resource.group_resource()));
                }
            }
        }
        let now = self.context.clock.now_rfc3339();
        let mut list = live.array(&["status", "conditions"]).to_vec();
        for condition in contents.conditions() {
            conditions::set(&mut list, &condition, &now);
        }
        let mut status = live.get(&["status"]).cloned().unwrap_or_else(|| json!({}));
        status["phase"] = "Terminating".into();
        status["conditions"] = Value::Array(list);
        self.context.write_status(&builtin::NAMESPACE, &live, status).await?;
        if contents.is_empty() {
            let mut done = cluster.get(&builtin::NAMESPACE, None, name).await?;
            let finalizers: Vec<Value> = done
                .array(&["spec", "finalizers"])
                .iter()
                .filter(|finalizer| *finalizer != FINALIZER)
                .cloned()
                .collect();
            done.set(&["spec", "finalizers"], Value::Array(finalizers));
            cluster.update_subresource(&builtin::NAMESPACE, "finalize", &done).await?;
            return Ok(Action::Done);
        }
        if contents.failures.is_empty() {
            Ok(Action::After(REQUEUE_DELAY))
        } else {
            Ok(Action::After(std::time::Duration::from_secs(1)))
        }
    }

    /// Deletes every object of a kind in a namespace and counts the remaining ones.
    async fn delete_kind(
        &self,
        resource: &Resource,
        namespace: &str,
        as_collection: bool,
        contents: &mut NamespaceContents,
    ) -> Result<(), Error> {
        let cluster = &self.context.cluster;
        let metadata = ObjectList { metadata_only: true, ..ObjectList::default() };
        let mut objects = cluster.list_pages(resource, Some(namespace), &metadata).await?.items;
        if objects.is_empty() {
            return Ok(());
        }
        let options = DeleteOptions::default().propagation(Propagation::Background);
        if objects.iter().any(|object| !object.is_terminating()) {
            if as_collection {
                let all = ObjectList::default();
                cluster.delete_collection(resource, Some(namespace), &all, &options).await?;
            } else {
                for object in objects.iter().filter(|object| !object.is_terminating()) {
                    let options = DeleteOptions::uid(object.uid());
                    cluster
                        .ensure_deleted(resource, Some(namespace), object.name(), &options)
                        .await?;
                }
            }
            objects = cluster.list_pages(resource, Some(namespace), &metadata).await?.items;
        }
        contents.count(resource, &objects);
        Ok(())
    }
}

fn is_pods(resource: &Resource) -> bool {
    resource.group.is_empty() && &*resource.plural == "pods"
}

fn ignore_existing(outcome: Result<Object, Error>) -> Result<(), Error> {
    match outcome {
        Err(error) if error.is_already_exists() => Ok(()),
        other => other.map(|_| ()),
    }
}

/// What keeps a namespace from going away: failures, remaining objects and finalizers.
#[derive(Debug, Default)]
struct NamespaceContents {
    complete: bool,
    failures: Vec<String>,
    /// The number of objects by resource, formatted as `plural.group`.
    remaining: BTreeMap<String, usize>,
    finalizers: BTreeMap<String, usize>,
}

impl NamespaceContents {
    fn is_empty(&self) -> bool {
        self.complete && self.failures.is_empty() && self.remaining.is_empty()
    }

    /// Whether no Pod remains, if all of them could be listed.
    fn is_without_pods(&self) -> bool {
        self.failures.is_empty() && !self.remaining.contains_key("pods.")
    }

    fn count(&mut self, resource: &Resource, objects: &[Object]) {
        if objects.is_empty() {
            return;
        }
        // kube-controller-manager always writes the dot, also for the core group.
        let name = format!("{}.{}", resource.plural, resource.group);
        *self.remaining.entry(name).or_default() += objects.len();
        for finalizer in objects.iter().flat_map(Object::finalizers) {
            *self.finalizers.entry(finalizer.to_owned()).or_default() += 1;
        }
    }

    fn conditions(&self) -> Vec<Condition> {
        let list = |entries: &BTreeMap<String, usize>, verb: &str| {
            let mut text = String::new();
            for (at, (name, count)) in entries.iter().enumerate() {
                let comma = if at > 0 { ", " } else { "" };
                // Writing into a String does not fail.
                let _ = write!(text, "{comma}{name} {verb} {count} resource instances");
            }
            text
        };
        let mut all = vec![
            if self.complete {
                Condition::new(
                    "NamespaceDeletionDiscoveryFailure",
                    false,
                    "ResourcesDiscovered",
                    "All resources successfully discovered",
                )
            } else {
                Condition::new(
                    "NamespaceDeletionDiscoveryFailure",
                    true,
                    "DiscoveryFailed",
                    "Discovery failed for some groups",
                )
            },
            Condition::new(
                "NamespaceDeletionGroupVersionParsingFailure",
                false,
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
        ];
        all.push(if self.failures.is_empty() {
            Condition::new(
                "NamespaceDeletionContentFailure",
                false,
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            )
        } else {
            let failures = self.failures.join(", ");
            Condition::new(
                "NamespaceDeletionContentFailure",
                true,
                "ContentDeletionFailed",
                format!(
                    "Failed to delete all resource types, {} remaining: {failures}",
                    self.failures.len()
                ),
            )
        });
        all.push(if self.remaining.is_empty() {
            Condition::new(
                "NamespaceContentRemaining",
                false,
                "ContentRemoved",
                "All content successfully removed",
            )
        } else {
            let list = list(&self.remaining, "has");
            Condition::new(
                "NamespaceContentRemaining",
                true,
                "SomeResourcesRemain",
                format!("Some resources are remaining: {list}"),
            )
        });
        all.push(if self.finalizers.is_empty() {
            Condition::new(
                "NamespaceFinalizersRemaining",
                false,
                "ContentHasNoFinalizers",
                "All content-preserving finalizers finished",
            )
        } else {
            let list = list(&self.finalizers, "in");
            Condition::new(
                "NamespaceFinalizersRemaining",
                true,
                "SomeFinalizersRemain",
                format!("Some content in the namespace has finalizers remaining: {list}"),
            )
        });
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespace_conditions_list_remaining_objects() {
        let mut contents = NamespaceContents { complete: true, ..NamespaceContents::default() };
        assert!(contents.is_empty());
        let finalizer = Object::from_value(json!({"metadata": {"finalizers": ["a/b"]}})).unwrap();
        contents.count(&builtin::POD, &[finalizer.clone(), finalizer]);
        contents.count(&builtin::DEPLOYMENT, &[Object::default()]);
        contents.count(&builtin::SECRET, &[]);
        assert!(!contents.is_empty());
        let messages: Vec<String> = contents
            .conditions()
            .into_iter()
            .map(|condition| format!("{}: {}", condition.status.as_str(), condition.message))
            .collect();
        assert_eq!(
            messages,
            [
                "False: All resources successfully discovered",
                "False: All legacy kube types successfully parsed",
                "False: All content successfully deleted, may be waiting on finalization",
                "True: Some resources are remaining: deployments.apps has 1 resource instances, pods. has 2 resource instances",
                "True: Some content in the namespace has finalizers remaining: a/b in 2 resource instances",
            ]
        );
    }
}
