//! Trusted CAs: fills labelled ConfigMaps with the CA certificates that the cluster trusts.
//! Operators mount them to work behind a proxy that intercepts TLS.
//!
//! On clusters with a `Proxy` of `config.openshift.io` the network operator does this.

use crate::context::Context;
use crate::error::Error;
use crate::proxy;
use mainstay_client::{Action, Cache, Patch, Reconciler, Selection};
use mainstay_controller::{Controllers, WithOperation as _};
use mainstay_object::{NamespacedName, Object, builtin};
use serde_json::json;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The label of ConfigMaps to fill.
const LABEL: &str = "config.openshift.io/inject-trusted-cabundle=true";
/// The key in the ConfigMap for the certificates.
const KEY: &str = "ca-bundle.crt";

/// The CA certificates that the cluster trusts, in PEM. They are read on first use.
#[derive(Clone)]
pub struct TrustedCaCertificates {
    inner: Arc<Inner>,
}

struct Inner {
    read: Box<dyn Fn() -> String + Send + Sync>,
    text: OnceLock<String>,
}

impl TrustedCaCertificates {
    /// The certificates that `read` returns. It is called at most once, and may read files.
    pub fn new(read: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self { inner: Arc::new(Inner { read: Box::new(read), text: OnceLock::new() }) }
    }

    fn text(&self) -> &str {
        self.inner.text.get_or_init(&self.inner.read)
    }
}

impl fmt::Debug for TrustedCaCertificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trusted").finish_non_exhaustive()
    }
}

/// Whether each labelled ConfigMap is filled.
type InjectedConfigMaps = Cache<bool>;

/// Registers the controller, if there are trusted certificates.
pub(crate) fn register(
    controllers: &mut Controllers<Context>,
    trusted: Option<TrustedCaCertificates>,
) {
    let Some(trusted) = trusted else { return };
    let context = controllers.context();
    let wanted = trusted.clone();
    let is_filled = move |config_map: &Object| {
        Some(config_map.str(&["data", KEY]).is_some_and(|text| text == wanted.text()))
    };
    let mut builder = controllers.add("trusted_certificates");
    let selection = Selection::all(builtin::CONFIG_MAP).labels(LABEL);
    let config_maps: InjectedConfigMaps = builder.cache(Cache::builder(selection, is_filled));
    let all = config_maps.clone();
    builder
        .watch(&config_maps, |_, queue, change| queue.add(change.key.clone()))
        .watch(&context.caches.crds, move |_, queue, change| {
            // The network operator of the cluster may now fill the ConfigMaps, or no longer does.
            if *change.key.name == *proxy::DEFINITION {
                all.list(None).into_iter().for_each(|(key, _)| queue.add(key));
            }
        })
        .reconcile(Controller { context: Arc::clone(&context), config_maps, trusted });
}

/// Reconciles labelled ConfigMaps.
struct Controller {
    context: Arc<Context>,
    config_maps: InjectedConfigMaps,
    trusted: TrustedCaCertificates,
}

impl Reconciler for Controller {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        self.reconcile_config_map(key).await
    }
}

impl Controller {
    async fn reconcile_config_map(&self, key: &NamespacedName) -> Result<Action, Error> {
        let filled = self.config_maps.get(key).is_none_or(|is_filled| *is_filled);
        if filled || proxy::is_defined(&self.context.caches) {
            return Ok(Action::Done);
        }
        let patch = Patch::Merge(json!({"data": {KEY: self.trusted.text()}}));
        let cluster = &self.context.cluster;
        match cluster.patch(&builtin::CONFIG_MAP, key.namespace(), &key.name, &patch).await {
            Err(error) if !error.is_not_found() => Err(error)
                .during("putting trusted certificates into a ConfigMap")
                .map_err(Error::from),
            _ => Ok(Action::Done),
        }
    }
}
