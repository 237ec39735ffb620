//! The proxies that operators are to use: what the cluster's own `Proxy` of `config.openshift.io`
//! says, and where there is no such thing, what this process was told.
//!
//! The kind is defined on some clusters only, so it is followed from the moment at which somebody
//! needs it there.

use crate::context::Caches;
use mainstay_client::{Cache, Cluster, Selection};
use mainstay_controller::Signal;
use mainstay_object::{NamespacedName, Object, Resource};
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The definition of the kind.
pub(crate) const DEFINITION: &str = "proxies.config.openshift.io";
const PROXY: Resource = Resource::cluster("config.openshift.io", "v1", "Proxy", "proxies");
/// The only one that counts.
const NAME: &str = "cluster";
/// The variables are a unit: who sets one of them has decided about all.
const VARIABLES: [&str; 3] = ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"];
/// How long to wait for the first look at the kind.
const SYNC_TIMEOUT: Duration = Duration::from_secs(10);

/// Proxies, as processes are told of them. Empty texts say nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxySettings {
    /// For requests over HTTP: `HTTP_PROXY`.
    pub http: String,
    /// For requests over HTTPS: `HTTPS_PROXY`.
    pub https: String,
    /// Hosts that are reached without a proxy: `NO_PROXY`.
    pub no: String,
}

impl ProxySettings {
    /// What a `Proxy` came to.
    fn of(object: &Object) -> Self {
        let text = |field| object.str(&["status", field]).unwrap_or_default().to_owned();
        Self { http: text("httpProxy"), https: text("httpsProxy"), no: text("noProxy") }
    }

    /// The variables for containers, unless `given` has one of them.
    pub(crate) fn variables(&self, given: &[Value]) -> Vec<Value> {
        let is_ours = |variable: &Value| {
            variable
                .get("name")
                .and_then(Value::as_str)
                .is_some_and(|name| VARIABLES.contains(&name))
        };
        if given.iter().any(is_ours) {
            return Vec::new();
        }
        VARIABLES
            .into_iter()
            .zip([&self.http, &self.https, &self.no])
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| json!({"name": name, "value": value}))
            .collect()
    }
}

/// Knows the proxies of the cluster.
pub(crate) struct Proxies {
    given: Arc<ProxySettings>,
    cluster: Cluster,
    stop: CancellationToken,
    live: OnceLock<Cache<ProxySettings>>,
    /// Sent whenever the settings of the cluster change.
    pub(crate) changed: Signal,
}

impl Proxies {
    pub(crate) fn new(given: ProxySettings, cluster: Cluster, stop: CancellationToken) -> Self {
        let (live, changed) = (OnceLock::new(), Signal::default());
        Self { given: Arc::new(given), cluster, stop, live, changed }
    }

    /// The settings as they are now.
    pub(crate) async fn settings(self: &Arc<Self>, caches: &Caches) -> Arc<ProxySettings> {
        if !is_defined(caches) {
            return Arc::clone(&self.given);
        }
        let cache = self.live.get_or_init(|| {
            let changed = self.changed.clone();
            Cache::builder(Selection::all(PROXY), |proxy| Some(ProxySettings::of(proxy)))
                .subscribe(move |_| changed.send())
                .start(&self.cluster, self.stop.clone())
        });
        // The definition may go in this moment; then there is nothing to be seen.
        if tokio::time::timeout(SYNC_TIMEOUT, cache.synced()).await.is_err() {
            tracing::warn!("the cluster's proxies cannot be listed, though they are defined");
        }
        cache.get(&NamespacedName::cluster(NAME)).unwrap_or_else(|| Arc::clone(&self.given))
    }
}

/// Whether the cluster has proxies of its own; then it also gives certificates to who asks for them.
pub(crate) fn is_defined(caches: &Caches) -> bool {
    caches.crds.get(&NamespacedName::cluster(DEFINITION)).is_some_and(|crd| crd.established)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sets_one_variable_has_decided_about_all() {
        let settings =
            ProxySettings { http: "http://p".into(), no: "a,b".into(), ..Default::default() };
        let given = [json!({"name": "OTHER", "value": "x"})];
        assert_eq!(
            settings.variables(&given),
            [
                json!({"name": "HTTP_PROXY", "value": "http://p"}),
                json!({"name": "NO_PROXY", "value": "a,b"})
            ]
        );
        // An empty value says that there shall be none.
        for name in VARIABLES {
            // shows PRX-03 PRX-04
            assert_eq!(
                settings.variables(&[json!({"name": name, "value": ""})]),
                Vec::<Value>::new()
            );
        }
        assert_eq!(ProxySettings::default().variables(&[]), Vec::<Value>::new());
    }
}
