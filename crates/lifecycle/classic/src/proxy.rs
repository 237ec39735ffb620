//! Proxy settings for operators: from the cluster's `Proxy` of `config.openshift.io`, or else from
//! the options of this process.
//!
//! Only some clusters define that kind, so it is watched from its first use.

use crate::context::Caches;
use mainstay_client::{Cache, Cluster, Selection};
use mainstay_controller::Signal;
use mainstay_object::{NamespacedName, Object, Resource};
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The CustomResourceDefinition of the kind.
pub(crate) const DEFINITION: &str = "proxies.config.openshift.io";
const PROXY: Resource = Resource::cluster("config.openshift.io", "v1", "Proxy", "proxies");
/// The name of the only `Proxy` that counts.
const NAME: &str = "cluster";
/// The variables belong together: an operator that sets one of them gets none of the others.
const VARIABLES: [&str; 3] = ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"];
/// How long to wait for the first list of the kind.
const SYNC_TIMEOUT: Duration = Duration::from_secs(10);

/// Proxy settings in the format of environment variables. Empty settings are unset.
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
    /// The settings in the status of a `Proxy`.
    fn of(object: &Object) -> Self {
        let text = |field| object.str(&["status", field]).unwrap_or_default().to_owned();
        Self { http: text("httpProxy"), https: text("httpsProxy"), no: text("noProxy") }
    }

    /// The environment variables for containers; none if `given` has one of them.
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

/// The current proxy settings of the cluster.
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

    /// The current settings.
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
        // The CustomResourceDefinition may be deleted meanwhile, in which case nothing is listed.
        if tokio::time::timeout(SYNC_TIMEOUT, cache.synced()).await.is_err() {
            tracing::warn!("the cluster's proxies cannot be listed, though they are defined");
        }
        cache.get(&NamespacedName::cluster(NAME)).unwrap_or_else(|| Arc::clone(&self.given))
    }
}

/// Whether the cluster defines `Proxy`. Its network operator then also injects trusted CAs.
pub(crate) fn is_defined(caches: &Caches) -> bool {
    caches.crds.get(&NamespacedName::cluster(DEFINITION)).is_some_and(|crd| crd.established)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_with_one_proxy_variable_gets_none_of_the_others() {
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
        // An empty value unsets the proxy.
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
