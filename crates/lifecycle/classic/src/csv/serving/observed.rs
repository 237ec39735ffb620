//! Observed serving objects: the fields that caches keep of them, and all of them for one CSV.

use super::certificate::{self, CertificateSecret};
use super::required;
use crate::context::Caches;
use crate::csv::observe::is_owner;
use crate::fields;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use mainstay_api::{ClusterServiceVersion, WebhookKind, names};
use mainstay_client::Cache;
use mainstay_object::{NamespacedName, Object, OwnerReference};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";
/// The label of APIServices that the API server creates for CustomResourceDefinitions.
const AUTOMANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";

/// The certificates in a PEM text, each as a text of its own.
pub(crate) fn blocks(pem: &str) -> Vec<String> {
    let block = |rest: &str| {
        let inside = rest.split_once(END)?.0;
        Some(format!("{BEGIN}{inside}{END}\n"))
    };
    pem.split(BEGIN).skip(1).filter_map(block).collect()
}

/// The SHA-256 of each CA certificate in a `caBundle`.
fn ca_hashes_of(bundle: Option<&Value>) -> Vec<String> {
    let text = bundle.and_then(Value::as_str).unwrap_or_default();
    let bytes = STANDARD.decode(text).unwrap_or_default();
    let blocks = blocks(&String::from_utf8_lossy(&bytes));
    blocks.iter().map(|block| certificate::sha256_hex(block.as_bytes())).collect()
}

fn labels(object: &Object) -> BTreeMap<String, String> {
    object.labels().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The fields of an APIService that decisions read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ApiService {
    pub(crate) uid: String,
    pub(crate) labels: BTreeMap<String, String>,
    /// Whether the API server created it for a CustomResourceDefinition.
    pub(crate) automanaged: bool,
    pub(crate) available: bool,
    /// When it last became available or unavailable.
    pub(crate) since: Option<Timestamp>,
    /// Namespace and name of the Service.
    pub(crate) service: Option<(String, String)>,
    pub(crate) ca_hashes: Vec<String>,
}

impl ApiService {
    pub(crate) fn of(object: &Object) -> Self {
        let condition = object
            .array(&["status", "conditions"])
            .iter()
            .find(|condition| text(condition, "type") == "Available");
        Self {
            uid: object.uid().to_owned(),
            labels: labels(object),
            automanaged: object.label(AUTOMANAGED).is_some(),
            available: condition.is_some_and(|condition| text(condition, "status") == "True"),
            since: condition
                .and_then(|condition| text(condition, "lastTransitionTime").parse().ok()),
            service: object.get(&["spec", "service"]).map(|service| {
                (text(service, "namespace").to_owned(), text(service, "name").to_owned())
            }),
            ca_hashes: ca_hashes_of(object.get(&["spec", "caBundle"])),
        }
    }

    /// The CSV that owns it, by its labels.
    pub(crate) fn owner(&self) -> Option<NamespacedName> {
        let label = |key: &str| self.labels.get(key).map(String::as_str);
        Some(NamespacedName::new(label(names::OWNER_NAMESPACE)?, label(names::OWNER)?))
    }
}

/// The fields of a webhook configuration that decisions read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct WebhookConfiguration {
    pub(crate) labels: BTreeMap<String, String>,
    /// Its webhooks, without their `caBundle`.
    pub(crate) webhooks: Vec<Value>,
    pub(crate) ca_hashes: Vec<String>,
}

impl WebhookConfiguration {
    /// None for a configuration without the label of a CSV's webhook.
    pub(crate) fn of(object: &Object) -> Option<Self> {
        let labels = labels(object);
        labels.get(names::WEBHOOK_GENERATE_NAME)?;
        let mut webhooks = object.array(&["webhooks"]).to_vec();
        let mut all = Vec::new();
        for client in webhooks.iter_mut().filter_map(|webhook| webhook.get_mut("clientConfig")) {
            let bundle = client.as_object_mut().and_then(|config| config.remove("caBundle"));
            all.extend(ca_hashes_of(bundle.as_ref()));
        }
        Some(Self { labels, webhooks, ca_hashes: all })
    }
}

/// The conversion of a CustomResourceDefinition by a Service.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Conversion {
    /// Namespace and name of the Service.
    pub(crate) service: (String, String),
    pub(crate) path: String,
    pub(crate) port: i64,
    pub(crate) reviews: Vec<String>,
    pub(crate) ca_hashes: Vec<String>,
}

impl Conversion {
    pub(crate) fn of(crd: &Object) -> Option<Self> {
        let webhook = crd.get(&["spec", "conversion", "webhook"])?;
        let client = webhook.get("clientConfig")?;
        let service = client.get("service")?;
        let reviews = webhook.get("conversionReviewVersions").and_then(Value::as_array);
        Some(Self {
            service: (text(service, "namespace").to_owned(), text(service, "name").to_owned()),
            path: text(service, "path").to_owned(),
            port: service.get("port").and_then(Value::as_i64).unwrap_or(443),
            reviews: reviews
                .into_iter()
                .flatten()
                .filter_map(|version| version.as_str().map(str::to_owned))
                .collect(),
            ca_hashes: ca_hashes_of(client.get("caBundle")),
        })
    }
}

/// The fields of a Service that decisions read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Service {
    pub(crate) owners: Vec<OwnerReference>,
    pub(crate) ports: Vec<Value>,
    pub(crate) selector: Value,
}

impl Service {
    /// None for a Service whose name is not that of a CSV's server.
    pub(crate) fn of(object: &Object) -> Option<Self> {
        object.name().ends_with("-service").then(|| Self {
            owners: object.owner_references(),
            ports: object.array(&["spec", "ports"]).to_vec(),
            selector: object.get(&["spec", "selector"]).cloned().unwrap_or_default(),
        })
    }
}

/// Whether an admission webhook is a mutating one.
pub(crate) const fn is_mutating(kind: &WebhookKind) -> bool {
    matches!(kind, WebhookKind::Mutating)
}

/// A webhook configuration of a CSV.
#[derive(Clone, Debug)]
pub(crate) struct OwnedWebhookConfiguration {
    pub(crate) name: String,
    pub(crate) mutating: bool,
    pub(crate) configuration: Arc<WebhookConfiguration>,
}

/// The existing objects around the servers of a CSV.
#[derive(Debug, Default)]
pub(crate) struct ObservedServing {
    /// Certificates by Deployment.
    pub(crate) certificates: BTreeMap<String, Arc<CertificateSecret>>,
    /// By name.
    pub(crate) services: BTreeMap<String, Arc<Service>>,
    /// By name.
    pub(crate) apis: BTreeMap<String, Arc<ApiService>>,
    /// APIServices of another existing CSV that this one does not replace.
    pub(crate) foreign: BTreeSet<String>,
    /// Its webhook configurations, by name.
    pub(crate) webhook_configurations: Vec<OwnedWebhookConfiguration>,
}

impl ObservedServing {
    /// The hash of each existing CA certificate, by Deployment.
    pub(crate) fn ca_hashes(&self) -> BTreeMap<String, String> {
        let ca_hash = |(deployment, certificate): (&String, &Arc<CertificateSecret>)| {
            (deployment.clone(), certificate.ca_hash.clone())
        };
        self.certificates.iter().map(ca_hash).collect()
    }
}

/// The existing objects around the servers of a CSV. `siblings` are the other CSVs of its namespace.
pub(crate) fn observe(
    caches: &Caches,
    csv: &ClusterServiceVersion,
    siblings: &BTreeMap<String, Arc<fields::Csv>>,
) -> ObservedServing {
    let (namespace, name) = (csv.metadata.namespace.as_str(), csv.metadata.name.as_str());
    let mut observed = ObservedServing {
        webhook_configurations: webhook_configurations(caches, namespace, name),
        ..ObservedServing::default()
    };
    for server in required::servers(csv) {
        let at = |name: String| NamespacedName::new(namespace, name);
        if let Some(found) = caches.certificates.get(&at(server.secret())) {
            observed.certificates.insert(server.deployment.clone(), found);
        }
        if let Some(found) = caches.services.get(&at(server.service())) {
            observed.services.insert(server.service(), found);
        }
    }
    let chain = chain(csv, siblings);
    for api in required::apis(csv) {
        let key = NamespacedName::cluster(api.name.as_str());
        let Some(found) = caches.api_services.get(&key) else { continue };
        let foreign = found.owner().is_some_and(|owner| {
            let follows = *owner.namespace == *namespace && chain.contains(&*owner.name);
            !follows && caches.csvs.get(&owner).is_some_and(|csv| !csv.is_copy())
        });
        if foreign || found.automanaged {
            observed.foreign.insert(api.name.clone());
        }
        observed.apis.insert(api.name, found);
    }
    observed
}

/// The webhook configurations of a CSV.
pub(crate) fn webhook_configurations(
    caches: &Caches,
    namespace: &str,
    name: &str,
) -> Vec<OwnedWebhookConfiguration> {
    let mut all = Vec::new();
    let mut add = |cache: &Cache<WebhookConfiguration>, mutating| {
        for (key, configuration) in cache.list(None) {
            if is_owner(&configuration.labels, namespace, name) {
                all.push(OwnedWebhookConfiguration {
                    name: key.name.to_string(),
                    mutating,
                    configuration,
                });
            }
        }
    };
    add(&caches.validating_webhooks, false);
    add(&caches.mutating_webhooks, true);
    all
}

/// The CSV, and those that it replaces, directly or not.
fn chain<'a>(
    csv: &'a ClusterServiceVersion,
    siblings: &'a BTreeMap<String, Arc<fields::Csv>>,
) -> BTreeSet<&'a str> {
    let mut all: BTreeSet<&str> = [csv.metadata.name.as_str()].into();
    let mut next = csv.spec.replaces.as_str();
    while !next.is_empty() && all.insert(next) {
        next = siblings.get(next).map_or("", |csv| csv.replaces.as_str());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_ca_certificate_of_a_ca_bundle_has_its_own_hash() {
        let one = format!("{BEGIN}\nQQ==\n{END}\n");
        let two = format!("{BEGIN}\nQg==\n{END}\n");
        assert_eq!(blocks(&format!("{one}# more\n{two}")), [one.clone(), two]);
        let object = Object::from_value(json!({
            "metadata": {"name": "x", "labels": {names::WEBHOOK_GENERATE_NAME: "x"}},
            "webhooks": [{"name": "x", "clientConfig": {"caBundle": STANDARD.encode(&one)}}],
        }))
        .unwrap();
        let configuration = WebhookConfiguration::of(&object).unwrap();
        assert_eq!(configuration.ca_hashes, [certificate::sha256_hex(one.as_bytes())]);
        assert_eq!(configuration.webhooks, [json!({"name": "x", "clientConfig": {}})]);
    }
}
