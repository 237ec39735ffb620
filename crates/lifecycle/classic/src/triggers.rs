//! Which change is whose business: changes of objects become keys in the queues of controllers.
//!
//! A key too many costs one look that finds nothing to do; a key too few costs an operator that is
//! stuck until somebody touches it. In doubt a key is added.

use crate::catalog::pods::catalog_of;
use crate::context::Context;
use crate::copies::{self, model::Copied};
use crate::facts::{Binding, Role};
use crate::proxy;
use crate::subscription::controller::watchers;
use mainstay_api::{CsvPhase, CsvReason, InstallPlanPhase, names, resources};
use mainstay_client::{Changed, Queue};
use mainstay_object::{NamespacedName, OwnerReference};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

type Keys = Queue<NamespacedName>;

/// How long a version waits after a change around it for further changes, which often come together.
const TOGETHER: Duration = Duration::from_millis(30);

/// The queues of all controllers.
#[derive(Clone)]
pub(crate) struct Queues {
    pub(crate) sources: Keys,
    /// Subscriptions; keys are names of namespaces.
    pub(crate) namespaces: Keys,
    pub(crate) plans: Keys,
    pub(crate) csvs: Keys,
    pub(crate) groups: Keys,
    /// Labels of namespaces.
    pub(crate) labels: Keys,
    /// Conditions of versions.
    pub(crate) conditions: Keys,
    /// Copies of versions; keys are those of the originals.
    pub(crate) copies: Keys,
    /// The settings.
    pub(crate) config: Keys,
}

/// What a subscriber needs. Caches hold their subscribers and the context holds the caches, so the
/// way back is weak.
struct Wires {
    context: Weak<Context>,
    queues: Queues,
}

impl Wires {
    /// Runs `wake` unless everything is being taken down.
    fn with(&self, wake: impl FnOnce(&Context, &Queues)) {
        if let Some(context) = self.context.upgrade() {
            wake(&context, &self.queues);
        }
    }
}

/// Connects every cache with the queues.
pub(crate) fn connect(context: &Arc<Context>, queues: &Queues) {
    let wires = || Wires { context: Arc::downgrade(context), queues: queues.clone() };
    catalogs(context, &wires);
    subscriptions(context, wires(), wires());
    versions(context, wires());
    copied_versions(context, wires());
    conditions(context, wires());
    groups(context, wires(), wires());
    requirements(context, wires(), wires(), wires());
    rights(context, &wires);
    copies::triggers::connect(context, &queues.copies, &queues.config);
    served(context, &wires);
    let proxied = wires();
    context.proxies.subscribe(move || proxied.with(all_versions));
}

/// The name of a namespace as a key.
fn namespace(key: &NamespacedName) -> NamespacedName {
    NamespacedName::cluster(Arc::clone(&key.namespace))
}

/// Both sides of a change.
fn sides<'a, T>(change: &Changed<'a, T>) -> impl Iterator<Item = &'a Arc<T>> {
    change.before.into_iter().chain(change.after)
}

fn catalogs(context: &Arc<Context>, wires: &impl Fn() -> Wires) {
    let (seen, loaded, unpacked) = (wires(), wires(), wires());
    let wake = |context: &Context, queues: &Queues, key: &NamespacedName| {
        queues.sources.add(key.clone());
        for namespace in watchers(context, key) {
            queues.namespaces.add(namespace);
        }
        let visible = if *key.namespace == *context.global { None } else { Some(&*key.namespace) };
        unresolved_plans(context, queues, visible);
    };
    context.caches.sources.subscribe(move |change| {
        seen.with(|context, queues| wake(context, queues, change.key));
    });
    context.store.subscribe(move |key| loaded.with(|context, queues| wake(context, queues, key)));
    running(context, wires);
    context.bundles.subscribe(move |asker| {
        // Namespaces ask for their Subscriptions, plans for themselves.
        unpacked.with(|_, queues| match asker.namespace() {
            None => queues.namespaces.add(asker.clone()),
            Some(_) => queues.plans.add(asker.clone()),
        });
    });
}

/// What catalogs need to run: whatever becomes of it is the business of its CatalogSource.
fn running(context: &Arc<Context>, wires: &impl Fn() -> Wires) {
    let caches = &context.caches;
    if let Some(pods) = &caches.catalog_pods {
        let it = wires();
        pods.subscribe(move |change| {
            it.with(|_, queues| {
                for pod in sides(change) {
                    let at = Arc::clone(&change.key.namespace);
                    queues.sources.add(NamespacedName::new(at, pod.catalog()));
                }
            });
        });
    }
    for cache in [&caches.catalog_services, &caches.catalog_policies].into_iter().flatten() {
        let it = wires();
        cache.subscribe(move |change| {
            it.with(|_, queues| {
                sides(change).for_each(|it| of_catalog(queues, change.key, &it.owners));
            });
        });
    }
    if caches.catalog_pods.is_none() {
        return;
    }
    let it = wires();
    caches.accounts.subscribe(move |change| {
        it.with(|_, queues| {
            sides(change).for_each(|it| of_catalog(queues, change.key, &it.owners));
        });
    });
    let it = wires();
    caches.roles.subscribe(move |change| {
        it.with(|_, queues| {
            sides(change).for_each(|it| of_catalog(queues, change.key, &it.owners));
        });
    });
    let it = wires();
    caches.bindings.subscribe(move |change| {
        it.with(|_, queues| {
            sides(change).for_each(|it| of_catalog(queues, change.key, &it.owners));
        });
    });
}

/// The CatalogSource that owns something.
fn of_catalog(queues: &Queues, key: &NamespacedName, owners: &[OwnerReference]) {
    if let Some(name) = catalog_of(owners) {
        queues.sources.add(NamespacedName::new(Arc::clone(&key.namespace), name));
    }
}

fn subscriptions(context: &Arc<Context>, asked: Wires, planned: Wires) {
    context.caches.subscriptions.subscribe(move |change| {
        asked.with(|_, queues| {
            queues.namespaces.add(namespace(change.key));
            // Its settings change the Deployments of its version.
            for side in sides(change) {
                for name in [&side.status.installed_csv, &side.status.current_csv] {
                    if !name.is_empty() {
                        let at = Arc::clone(&change.key.namespace);
                        queues.csvs.add(NamespacedName::new(at, name.as_str()));
                    }
                }
            }
        });
    });
    context.caches.plans.subscribe(move |change| {
        planned.with(|_, queues| {
            queues.plans.add(change.key.clone());
            queues.namespaces.add(namespace(change.key));
        });
    });
}

/// All versions of a namespace that are no copies.
fn versions_of(context: &Context, queues: &Queues, namespace: &str) {
    for (key, it) in context.caches.csvs.list(Some(namespace)) {
        if !it.is_copy() {
            queues.csvs.add(key);
        }
    }
}

/// The versions of a namespace, in a moment.
fn versions_soon(context: &Context, queues: &Queues, namespace: &str) {
    for (key, it) in context.caches.csvs.list(Some(namespace)) {
        if !it.is_copy() {
            queues.csvs.add_after(key, TOGETHER);
        }
    }
}

/// All versions that are no copies.
fn all_versions(context: &Context, queues: &Queues) {
    for (key, it) in context.caches.csvs.list(None) {
        if !it.is_copy() {
            queues.csvs.add(key);
        }
    }
}

/// All groups of a namespace.
fn groups_of(context: &Context, queues: &Queues, namespace: &str) {
    for (key, _) in context.caches.groups.list(Some(namespace)) {
        queues.groups.add(key);
    }
}

/// Versions that wait for something that may be far away. What the API refused is not among it: that
/// is tried again with growing pauses, which a look in between would cut short.
fn waiting_versions(context: &Context, queues: &Queues) {
    for (key, it) in context.caches.csvs.list(None) {
        let refused = it.reason == CsvReason::ComponentFailed;
        if !it.is_copy() && !refused && matches!(it.phase, CsvPhase::Pending | CsvPhase::Failed) {
            queues.csvs.add_after(key, TOGETHER);
        }
    }
}

/// `ClusterServiceVersions` that lack a permission, perhaps because somebody else's object has its name:
/// nothing but the name ties that one to them.
fn lacking_permissions(context: &Context, queues: &Queues) {
    for key in context.missing_permissions.lock().keys() {
        queues.csvs.add_after(key.clone(), TOGETHER);
    }
}

/// Plans whose steps were refused for want of rights, in a namespace or everywhere.
fn refused_plans(context: &Context, queues: &Queues, namespace: Option<&str>) {
    for (key, plan) in context.caches.plans.list(namespace) {
        if plan.refused && plan.phase == InstallPlanPhase::Installing {
            queues.plans.add(key);
        }
    }
}

/// Plans that people wrote and whose steps have yet to be found, in a namespace or everywhere.
fn unresolved_plans(context: &Context, queues: &Queues, namespace: Option<&str>) {
    for (key, plan) in context.caches.plans.list(namespace) {
        if plan.unresolved {
            queues.plans.add(key);
        }
    }
}

fn versions(context: &Arc<Context>, wires: Wires) {
    context.caches.csvs.subscribe(move |change| {
        if sides(change).all(|it| it.is_copy()) {
            return;
        }
        let both = change.before.zip(change.after);
        if both.is_some_and(|(before, after)| !after.is_news_after(before)) {
            return;
        }
        wires.with(|context, queues| {
            queues.csvs.add(change.key.clone());
            unresolved_plans(context, queues, Some(&change.key.namespace));
            queues.conditions.add(change.key.clone());
            // Predecessors, successors and rivals.
            versions_of(context, queues, &change.key.namespace);
            groups_of(context, queues, &change.key.namespace);
            queues.namespaces.add(namespace(change.key));
        });
    });
}

/// A copy stands in the place of a version that a Subscription of its namespace asks for, until it goes.
fn copied_versions(context: &Arc<Context>, wires: Wires) {
    let is_there = |it: Option<&Arc<Copied>>| it.is_some_and(|it| !it.deleting);
    context.caches.copies.subscribe(move |change| {
        if is_there(change.before) == is_there(change.after) {
            return;
        }
        wires.with(|context, queues| {
            if !context.caches.subscriptions.list(Some(&change.key.namespace)).is_empty() {
                queues.namespaces.add(namespace(change.key));
            }
        });
    });
}

/// A condition may hold back the version that replaces its own.
fn conditions(context: &Arc<Context>, wires: Wires) {
    context.caches.conditions.subscribe(move |change| {
        wires.with(|context, queues| {
            queues.conditions.add(change.key.clone());
            versions_of(context, queues, &change.key.namespace);
        });
    });
}

fn groups(context: &Arc<Context>, changed: Wires, places: Wires) {
    context.caches.groups.subscribe(move |change| {
        changed.with(|context, queues| {
            queues.groups.add(change.key.clone());
            groups_of(context, queues, &change.key.namespace);
            versions_of(context, queues, &change.key.namespace);
            // A conflict with another group may be over, or begin.
            waiting_versions(context, queues);
            queues.namespaces.add(namespace(change.key));
            for (key, plan) in context.caches.plans.list(Some(&change.key.namespace)) {
                if !matches!(plan.phase, InstallPlanPhase::Complete | InstallPlanPhase::Failed) {
                    queues.plans.add(key);
                }
            }
            for target in sides(change).flat_map(|it| &it.status.namespaces) {
                if !target.is_empty() {
                    queues.labels.add(NamespacedName::cluster(target.as_str()));
                }
            }
        });
    });
    context.caches.namespaces.subscribe(move |change| {
        places.with(|context, queues| {
            queues.labels.add(change.key.clone());
            for (key, group) in context.caches.groups.list(None) {
                if group.spec.selector.is_some() {
                    queues.groups.add(key.clone());
                }
                if group.status.namespaces.iter().any(|it| **it == *change.key.name) {
                    versions_of(context, queues, &key.namespace);
                }
            }
        });
    });
}

fn requirements(context: &Arc<Context>, defined: Wires, accounts: Wires, deployed: Wires) {
    context.caches.crds.subscribe(move |change| {
        defined.with(|context, queues| {
            if *change.key.name == *proxy::DEFINITION {
                all_versions(context, queues);
            }
            for (key, it) in context.caches.csvs.indexed(&change.key.name) {
                if !it.is_copy() {
                    queues.csvs.add_after(key, TOGETHER);
                }
            }
            for (key, _) in context.caches.plans.indexed(&change.key.name) {
                queues.plans.add(key);
            }
        });
    });
    context.caches.accounts.subscribe(move |change| {
        accounts.with(|context, queues| {
            versions_soon(context, queues, &change.key.namespace);
            groups_of(context, queues, &change.key.namespace);
        });
    });
    context.caches.deployments.subscribe(move |change| {
        deployed.with(|_, queues| {
            for (name, namespace) in sides(change).filter_map(|it| it.owner.clone()) {
                queues.csvs.add(NamespacedName::new(namespace, name));
            }
        });
    });
}

fn rights(context: &Arc<Context>, wires: &impl Fn() -> Wires) {
    let caches = &context.caches;
    let it = wires();
    caches.roles.subscribe(move |change| {
        it.with(|context, queues| {
            versions_soon(context, queues, &change.key.namespace);
            refused_plans(context, queues, Some(&change.key.namespace));
            lacking_permissions(context, queues);
            sides(change).for_each(|role| owners(queues, &role.labels));
            of_condition(queues, change.key, sides(change).flat_map(|it| &it.owners));
        });
    });
    let it = wires();
    caches.bindings.subscribe(move |change| {
        it.with(|context, queues| {
            versions_soon(context, queues, &change.key.namespace);
            refused_plans(context, queues, Some(&change.key.namespace));
            lacking_permissions(context, queues);
            sides(change).for_each(|binding| owners(queues, &binding.labels));
            of_condition(queues, change.key, sides(change).flat_map(|it| &it.owners));
        });
    });
    let it = wires();
    caches.cluster_roles.subscribe(move |change: &Changed<'_, Role>| {
        it.with(|context, queues| {
            for role in sides(change) {
                owners(queues, &role.labels);
                let is_api = |it: &&OwnerReference| {
                    ["customresourcedefinition", "apiservice"]
                        .iter()
                        .any(|kind| it.kind.eq_ignore_ascii_case(kind))
                };
                for owner in role.owners.iter().filter(is_api) {
                    for (key, _) in context.caches.csvs.indexed(&owner.name) {
                        queues.csvs.add_after(key, TOGETHER);
                    }
                }
            }
            waiting_versions(context, queues);
            refused_plans(context, queues, None);
            lacking_permissions(context, queues);
        });
    });
    let it = wires();
    caches.cluster_bindings.subscribe(move |change: &Changed<'_, Binding>| {
        it.with(|context, queues| {
            for binding in sides(change) {
                owners(queues, &binding.labels);
                for word in &binding.words {
                    let account = word.strip_prefix("system:serviceaccount:");
                    if let Some((namespace, _)) = account.and_then(|it| it.split_once(':')) {
                        versions_soon(context, queues, namespace);
                    }
                }
            }
            waiting_versions(context, queues);
            refused_plans(context, queues, None);
            lacking_permissions(context, queues);
        });
    });
}

/// What versions serve: objects of their own namespace name them as their owner, others by labels.
fn served(context: &Arc<Context>, wires: &impl Fn() -> Wires) {
    let caches = &context.caches;
    let of_owners = |queues: &Queues, key: &NamespacedName, owners: &[OwnerReference]| {
        for it in owners.iter().filter(|it| it.kind == *resources::CLUSTER_SERVICE_VERSION.kind) {
            let at = Arc::clone(&key.namespace);
            queues.csvs.add(NamespacedName::new(at, it.name.as_str()));
        }
    };
    let it = wires();
    caches.certificates.subscribe(move |change| {
        it.with(|_, queues| {
            sides(change).for_each(|it| of_owners(queues, change.key, &it.owners));
        });
    });
    let it = wires();
    caches.services.subscribe(move |change| {
        it.with(|_, queues| {
            sides(change).for_each(|it| of_owners(queues, change.key, &it.owners));
        });
    });
    let it = wires();
    caches.api_services.subscribe(move |change| {
        it.with(|context, queues| {
            sides(change).for_each(|it| owners(queues, &it.labels));
            for (key, it) in context.caches.csvs.indexed(&change.key.name) {
                if !it.is_copy() {
                    queues.csvs.add_after(key, TOGETHER);
                }
            }
        });
    });
    for cache in [&caches.validating, &caches.mutating] {
        let it = wires();
        cache.subscribe(move |change| {
            it.with(|_, queues| sides(change).for_each(|it| owners(queues, &it.labels)));
        });
    }
    let it = wires();
    caches.bindings.subscribe(move |change| {
        // Servers of several namespaces may share it.
        it.with(|context, queues| {
            if change.key.name.ends_with("-auth-reader") {
                for subject in sides(change).flat_map(|it| &it.subjects) {
                    versions_soon(context, queues, &subject.namespace);
                }
            }
        });
    });
}

/// The condition of the same name, if that owns what changed.
fn of_condition<'a>(
    queues: &Queues,
    key: &NamespacedName,
    mut owners: impl Iterator<Item = &'a OwnerReference>,
) {
    if owners.any(|it| it.kind == *resources::OPERATOR_CONDITION.kind) {
        queues.conditions.add(key.clone());
    }
}

/// The owner that labels name: a version, where its original is if this belongs to a copy, or a
/// group.
fn owners(queues: &Queues, labels: &BTreeMap<String, String>) {
    let label = |key: &str| labels.get(key).map(String::as_str);
    let (Some(name), Some(namespace)) = (label(names::OWNER), label(names::OWNER_NAMESPACE)) else {
        return;
    };
    let at = label(names::COPIED_FROM).unwrap_or(namespace);
    let key = NamespacedName::new(at, name);
    match label(names::OWNER_KIND) {
        Some("OperatorGroup") => queues.groups.add(key),
        _ => queues.csvs.add_after(key, TOGETHER),
    }
}
