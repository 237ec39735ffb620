//! Dependencies of bundles, for extensions whose annotation accepts them: what the cluster provides, and what
//! is missing.
//!
//! ```text
//! ClusterExtensions with an installed bundle ─┐
//!                                             ├─► providers ─► unmet dependencies
//! established CustomResourceDefinitions ──────┘
//! ```
//!
//! CustomResourceDefinitions are watched from the first bundle on that requires an API. A change enqueues the
//! extensions that accept dependencies. Extensions for which the check has the same result send no request.

use super::failure::Failure;
use super::status::Progress;
use crate::context::Context;
use mainstay_api::ClusterExtension;
use mainstay_client::{Cache, Changed, Selection};
use mainstay_controller::{Enqueuer, KeyQueue};
use mainstay_object::{Object, builtin};
use mainstay_resolver::OperatorApi;
use mainstay_resolver::extension::{
    DEPENDENCIES_ANNOTATION, Dependency, DependencyPolicy, ExtensionChoice, Provider,
    UnmetDependencies, established_apis, owning_extension,
};
use parking_lot::Mutex;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long an attempt waits for the first list of CustomResourceDefinitions.
const FIRST_LIST: Duration = Duration::from_secs(30);

/// An established CustomResourceDefinition as the watch keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct EstablishedCrd {
    /// The kinds that it serves.
    apis: Vec<OperatorApi>,
    /// The name of the extension that has it.
    extension: Option<String>,
}

/// The CustomResourceDefinitions of the cluster.
pub(crate) struct EstablishedCrds {
    stop: CancellationToken,
    watch: Mutex<Option<Cache<EstablishedCrd>>>,
    enqueuer: Mutex<Option<Enqueuer<Context>>>,
}

impl EstablishedCrds {
    /// No watch yet.
    pub(crate) fn new(stop: CancellationToken) -> Self {
        Self { stop, watch: Mutex::new(None), enqueuer: Mutex::new(None) }
    }

    /// Sets the queue for extensions that accept dependencies.
    pub(super) fn notify(&self, enqueuer: Enqueuer<Context>) {
        *self.enqueuer.lock() = Some(enqueuer);
    }

    /// The watch, which starts if it does not run yet.
    fn watch(&self, context: &Context) -> Cache<EstablishedCrd> {
        let mut watch = self.watch.lock();
        if let Some(watch) = &*watch {
            return watch.clone();
        }
        let selection = Selection::all(builtin::CUSTOM_RESOURCE_DEFINITION);
        let enqueuer = self.enqueuer.lock().clone();
        let cache = Cache::builder(selection, established).subscribe(move |_| {
            if let Some(enqueuer) = &enqueuer {
                enqueuer.with(enqueue_accepting);
            }
        });
        let cache = cache.start(&context.cluster, self.stop.clone());
        *watch = Some(cache.clone());
        cache
    }
}

/// The projection of a CustomResourceDefinition; none of one that serves nothing.
fn established(crd: &Object) -> Option<EstablishedCrd> {
    let apis = established_apis(crd);
    let extension = owning_extension(crd).map(str::to_owned);
    (!apis.is_empty()).then_some(EstablishedCrd { apis, extension })
}

/// Adds the extensions that accept bundles with dependencies.
fn enqueue_accepting(context: &Context, queue: &KeyQueue) {
    for (key, extension) in context.extensions.list(None) {
        if policy(&extension) == DependencyPolicy::Require {
            queue.add(key);
        }
    }
}

/// Adds the extensions that may depend on an extension that provides something else now.
pub(super) fn enqueue_dependents(
    context: &Context,
    queue: &KeyQueue,
    change: &Changed<'_, ClusterExtension>,
) {
    let before = change.before.and_then(|extension| provided(extension));
    let after = change.after.and_then(|extension| provided(extension));
    if before != after {
        enqueue_accepting(context, queue);
    }
}

/// The package and the version that an extension provides; none while it is being deleted.
fn provided(extension: &ClusterExtension) -> Option<(&str, &str)> {
    if extension.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let package = extension.spec.source.catalog.as_ref()?;
    let installed = extension.status.install.as_ref()?;
    Some((&package.package_name, &installed.bundle.version))
}

/// What an extension does with bundles that have dependencies.
pub(super) fn policy(extension: &ClusterExtension) -> DependencyPolicy {
    let annotations = &extension.metadata.annotations;
    DependencyPolicy::of(annotations.get(DEPENDENCIES_ANNOTATION).map(String::as_str))
}

/// The dependencies of a chosen bundle, and what the cluster lacked of them.
#[derive(Clone, Debug)]
pub(super) struct CheckedDependencies {
    bundle: String,
    dependencies: Vec<Dependency>,
    unmet: Option<UnmetDependencies>,
}

impl CheckedDependencies {
    /// Checks the dependencies of a chosen bundle.
    ///
    /// # Errors
    /// If a dependency concerns an API, and CustomResourceDefinitions cannot be listed.
    pub(super) async fn of(
        context: &Context,
        extension: &ClusterExtension,
        choice: &ExtensionChoice,
    ) -> Result<Option<Self>, Failure> {
        if choice.dependencies.is_empty() || policy(extension) != DependencyPolicy::Require {
            return Ok(None);
        }
        let mut checked = Self {
            bundle: choice.bundle.to_string(),
            dependencies: choice.dependencies.clone(),
            unmet: None,
        };
        if checked.concerns_apis() {
            let crds = context.established_crds.watch(context);
            let listed = tokio::time::timeout(FIRST_LIST, crds.synced()).await;
            listed.map_err(|_| {
                Failure::retrying(format!(
                    "the dependencies of bundle \"{}\" cannot be checked: CustomResourceDefinitions cannot be listed",
                    checked.bundle
                ))
            })?;
        }
        checked.unmet = checked.unmet_now(context, extension);
        Ok(Some(checked))
    }

    fn concerns_apis(&self) -> bool {
        self.dependencies.iter().any(Dependency::concerns_apis)
    }

    /// Whether another check would have the same result.
    pub(super) fn is_current(&self, context: &Context, extension: &ClusterExtension) -> bool {
        self.unmet == self.unmet_now(context, extension)
    }

    /// Whether a dependency is missing.
    pub(super) const fn is_unmet(&self) -> bool {
        self.unmet.is_some()
    }

    /// The progress of an extension whose objects are as its bundle says.
    pub(super) fn progress(checked: Option<&Self>) -> Progress {
        match checked.and_then(|checked| checked.unmet.as_ref()) {
            Some(unmet) => Progress::Retrying(unmet.to_string()),
            None => Progress::Reached,
        }
    }

    fn unmet_now(
        &self,
        context: &Context,
        extension: &ClusterExtension,
    ) -> Option<UnmetDependencies> {
        let crds = if self.concerns_apis() {
            context.established_crds.watch(context).list(None)
        } else {
            Vec::new()
        };
        let others = context.extensions.list(None);
        let extensions = others.iter().filter_map(|(key, other)| {
            let name = &*key.name;
            let (package, version) = provided(other).filter(|_| name != extension.metadata.name)?;
            let own = crds.iter().filter(|(_, crd)| crd.extension.as_deref() == Some(name));
            let apis = own.flat_map(|(_, crd)| crd.apis.iter().cloned());
            Some(Provider::extension(name, package, version, apis))
        });
        let crds = crds.iter().map(|(key, crd)| Provider::crd(&key.name, crd.apis.iter().cloned()));
        let providers: Vec<Provider> = extensions.chain(crds).collect();
        UnmetDependencies::of(&self.bundle, &self.dependencies, &providers)
    }
}
