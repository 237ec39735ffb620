//! `ConfigMaps` that ask for the certificates which the cluster trusts: they are filled, so that
//! operators behind a proxy that looks into their traffic can mount them.
//!
//! On clusters with a `Proxy` of `config.openshift.io` the network operator does this.

use crate::context::Context;
use crate::error::{Doing, Error, settle};
use crate::proxy;
use mainstay_client::{Action, Cache, Cluster, Patch, Reconciler, Selection};
use mainstay_object::{NamespacedName, known};
use serde_json::json;
use std::fmt;
use std::sync::{Arc, OnceLock};
use tokio_util::sync::CancellationToken;

/// Asks for certificates.
const LABEL: &str = "config.openshift.io/inject-trusted-cabundle=true";
/// Where they are put.
const KEY: &str = "ca-bundle.crt";

/// The certificates that the cluster trusts, in PEM. They are read when somebody asks for them.
#[derive(Clone)]
pub struct Trusted {
    inner: Arc<Inner>,
}

struct Inner {
    read: Box<dyn Fn() -> String + Send + Sync>,
    text: OnceLock<String>,
}

impl Trusted {
    /// Those that `read` gives. It is called once at most, and may look into files.
    pub fn new(read: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self { inner: Arc::new(Inner { read: Box::new(read), text: OnceLock::new() }) }
    }

    fn text(&self) -> &str {
        self.inner.text.get_or_init(&self.inner.read)
    }
}

impl fmt::Debug for Trusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trusted").finish_non_exhaustive()
    }
}

/// Whether each of the `ConfigMaps` that ask is filled.
pub(crate) type Asking = Cache<bool>;

/// Starts to follow the `ConfigMaps` that ask.
pub(crate) fn follow(cluster: &Cluster, trusted: Trusted, stop: CancellationToken) -> Asking {
    let is_filled = move |it: &mainstay_object::Object| {
        Some(it.str(&["data", KEY]).is_some_and(|it| it == trusted.text()))
    };
    Cache::start(cluster, Selection::all(known::CONFIG_MAP).labels(LABEL), is_filled, stop)
}

/// Fills `ConfigMaps`.
pub(crate) struct Controller {
    pub(crate) context: Arc<Context>,
    pub(crate) asking: Asking,
    pub(crate) trusted: Trusted,
}

impl Reconciler for Controller {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        settle(self.look(key).await)
    }
}

impl Controller {
    async fn look(&self, key: &NamespacedName) -> Result<Action, Error> {
        let filled = self.asking.get(key).is_none_or(|it| *it);
        if filled || proxy::is_defined(&self.context.caches) {
            return Ok(Action::Done);
        }
        let patch = Patch::Merge(json!({"data": {KEY: self.trusted.text()}}));
        let cluster = &self.context.cluster;
        match cluster.patch(&known::CONFIG_MAP, key.namespace(), &key.name, &patch).await {
            Err(error) if !error.is_not_found() => {
                Err(error).doing("putting trusted certificates into a ConfigMap")
            }
            _ => Ok(Action::Done),
        }
    }
}
