//! Cluster states: all objects, without fields that differ between two clusters.

use crate::olm_cluster::OlmCluster;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use mainstay_api::resources::{
    CATALOG_SOURCE, CLUSTER_SERVICE_VERSION, INSTALL_PLAN, OPERATOR, OPERATOR_CONDITION,
    OPERATOR_GROUP, SUBSCRIPTION,
};
use mainstay_object::{Object, Resource, builtin};
use mainstay_testkit::chaos::{State, list_objects};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

/// The kinds of a cluster state.
const KINDS: [&Resource; 21] = [
    &CATALOG_SOURCE,
    &SUBSCRIPTION,
    &INSTALL_PLAN,
    &CLUSTER_SERVICE_VERSION,
    &OPERATOR_GROUP,
    &OPERATOR_CONDITION,
    &OPERATOR,
    &builtin::NAMESPACE,
    &builtin::CUSTOM_RESOURCE_DEFINITION,
    &builtin::DEPLOYMENT,
    &builtin::CONFIG_MAP,
    &builtin::SECRET,
    &builtin::SERVICE,
    &builtin::SERVICE_ACCOUNT,
    &builtin::ROLE,
    &builtin::ROLE_BINDING,
    &builtin::CLUSTER_ROLE,
    &builtin::CLUSTER_ROLE_BINDING,
    &builtin::API_SERVICE,
    &builtin::VALIDATING_WEBHOOK_CONFIGURATION,
    &builtin::MUTATING_WEBHOOK_CONFIGURATION,
];

/// The state of a cluster: all objects with normalized fields.
pub(crate) async fn cluster_state(olm: &OlmCluster) -> State {
    let mut objects = list_objects(&olm.cluster, &KINDS).await;
    objects.retain(|object| {
        // The API server serves the others itself.
        object.gvk() != builtin::API_SERVICE.gvk() || object.get(&["spec", "service"]).is_some()
    });
    let mut names = GeneratedNames::default();
    let mut all = Vec::new();
    for object in objects {
        names.record(&object);
        all.push((format!("{} {}", object.kind(), object.key()), object.to_value()));
    }
    let mut plain = State::new();
    for (mut key, mut value) in all {
        names.normalize(&mut value);
        names.replace_names(&mut key);
        // A duplicate InstallPlan, until it is garbage-collected.
        while plain.contains_key(&key) {
            key.push_str(" again");
        }
        plain.insert(key, value);
    }
    plain
}

/// Placeholders for generated names, UIDs and certificates.
#[derive(Default)]
struct GeneratedNames {
    uids: HashMap<String, String>,
    others: Vec<(String, String)>,
}

/// The length of a UID.
const UID: usize = 36;

impl GeneratedNames {
    fn record(&mut self, object: &Object) {
        let placeholder = format!("{{uid of {} {}}}", object.kind(), object.key());
        self.uids.insert(object.uid().to_owned(), placeholder);
        let mut add =
            |name: &str, placeholder: String| self.others.push((name.to_owned(), placeholder));
        match object.kind() {
            "InstallPlan" => {
                let version = &object.array(&["spec", "clusterServiceVersionNames"])[0];
                add(object.name(), format!("install-{}", version.as_str().unwrap_or_default()));
            }
            kind if kind.ends_with("WebhookConfiguration") => {
                let name = object.label("olm.webhook-description-generate-name");
                add(object.name(), format!("{}-{{chance}}", name.unwrap_or_default()));
            }
            "Secret" => {
                let Some(text) = object.str(&["data", "olmCAKey"]) else { return };
                let authority = BASE64.decode(text).unwrap();
                let sound = if is_valid_certificate(object) { "" } else { "unfit " };
                add(text, format!("{{{sound}authority of {}}}", object.key()));
                add(
                    &sha256_hex(&authority),
                    format!("{{hash of the authority of {}}}", object.key()),
                );
                for field in ["tls.crt", "tls.key"] {
                    let text = object.str(&["data", field]).unwrap();
                    add(text, format!("{{{field} of {}}}", object.key()));
                }
            }
            _ => {}
        }
    }

    fn replace_names(&self, text: &mut String) {
        if let Some(told) = self.uids.get(text.as_str()) {
            text.clone_from(told);
        } else if text.len() > UID {
            for (uid, told) in &self.uids {
                if text.contains(uid.as_str()) {
                    *text = text.replace(uid.as_str(), told);
                }
            }
        }
        for (name, told) in &self.others {
            if text.contains(name.as_str()) {
                *text = text.replace(name.as_str(), told);
            }
        }
    }

    /// Removes times, revisions and generated names, and fields about the path to the state: the
    /// history of a CSV, the number of changes, and whether a step created or found its object.
    fn normalize(&self, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for key in [
                    "resourceVersion",
                    "managedFields",
                    "uid",
                    "creationTimestamp",
                    "generation",
                    "observedGeneration",
                    "deployment.kubernetes.io/revision",
                    "clusterIP",
                    "clusterIPs",
                ] {
                    fields.remove(key);
                }
                // An OperatorGroup's ClusterRole keeps its aggregated rules if they were written
                // before its aggregation rule was removed.
                let is_role = fields.get("kind").is_some_and(|kind| kind == "ClusterRole");
                if is_role && fields.get("aggregationRule").is_none() {
                    let owner = fields
                        .get("metadata")
                        .map(|metadata| &metadata["labels"]["olm.owner.kind"]);
                    if owner.is_some_and(|owner| owner == "OperatorGroup") {
                        fields.remove("rules");
                    }
                }
                let is_version =
                    fields.get("kind").is_some_and(|kind| kind == "ClusterServiceVersion");
                if is_version && let Some(Value::Object(status)) = fields.get_mut("status") {
                    status.remove("conditions");
                }
                if let Some(status) = fields.get_mut("status")
                    && (status == "Created" || status == "Present")
                {
                    *status = "done".into();
                }
                // An InstallPlan may complete before the status of its last steps is written, and
                // says so.
                let is_plan = fields.get("kind").is_some_and(|kind| kind == "InstallPlan");
                if is_plan && let Some(Value::Object(status)) = fields.get_mut("status") {
                    status.remove("message");
                    for step in
                        status.get_mut("plan").and_then(Value::as_array_mut).into_iter().flatten()
                    {
                        step["status"] = "done".into();
                    }
                }
                // Hashes of Deployment specs depend on certificates.
                if fields.get("kind").is_some_and(|kind| kind == "Deployment") {
                    let certified = "/spec/template/metadata/annotations/olmcahash";
                    let all = Value::Object(std::mem::take(fields));
                    let certified = all.pointer(certified).is_some();
                    let Value::Object(mut all) = all else { unreachable!("it was one") };
                    if certified {
                        all["metadata"]["labels"]["olm.deployment-spec-hash"] = "{hash}".into();
                    }
                    std::mem::swap(fields, &mut all);
                }
                if fields.get("type").is_some_and(|kind| kind == "Progressing") {
                    fields.remove("message");
                    fields.remove("reason");
                }
                // The generation of an InstallPlan depends on the number of resolutions.
                if let Some(spec) = fields.get_mut("spec").and_then(Value::as_object_mut) {
                    spec.remove("generation");
                }
                fields.remove("installPlanGeneration");
                let keys: Vec<String> = fields
                    .keys()
                    .filter(|entry| entry.contains('/') && entry.len() > UID)
                    .cloned()
                    .collect();
                for key in keys {
                    let mut new_key = key.clone();
                    self.replace_names(&mut new_key);
                    if let Some(value) = fields.remove(&key) {
                        fields.insert(new_key, value);
                    }
                }
                for field in fields.values_mut() {
                    self.normalize(field);
                }
            }
            Value::Array(items) => {
                for item in items.iter_mut() {
                    self.normalize(item);
                }
                let named =
                    |entry: &Value| entry.get("kind").is_some() && entry.get("name").is_some();
                let is_condition =
                    |key: &Value| key.get("type").is_some() && key.get("status").is_some();
                if items.iter().all(|entry| named(entry) || is_condition(entry)) {
                    items.sort_by_key(ToString::to_string);
                }
            }
            Value::String(text) => {
                if text.parse::<jiff::Timestamp>().is_ok() {
                    "{time}".clone_into(text);
                }
                self.replace_names(text);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// SHA-256 in hexadecimal digits.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// Whether the certificate of a Secret is signed by its CA, valid for its Service, and matches its
/// key.
fn is_valid_certificate(secret: &Object) -> bool {
    let field =
        |name: &str| BASE64.decode(secret.str(&["data", name]).unwrap_or_default()).unwrap();
    let judge = || -> Option<()> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&field("olmCAKey")).ok()?).ok()?;
        let provider = mainstay_tls::provider();
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let leaf = CertificateDer::from_pem_slice(&field("tls.crt")).ok()?.into_owned();
        let (_, parsed) = x509_parser::parse_x509_certificate(&leaf).ok()?;
        let from = u64::try_from(parsed.validity().not_before.timestamp()).ok()?;
        let service = secret.name().strip_suffix("-cert")?;
        let host = ServerName::try_from(format!("{service}.{}.svc", secret.namespace())).ok()?;
        let at = UnixTime::since_unix_epoch(Duration::from_secs(from + 1));
        verifier.build().ok()?.verify_server_cert(&leaf, &[], &host, &[], at).ok()?;
        let key = PrivateKeyDer::from_pem_slice(&field("tls.key")).ok()?;
        CertifiedKey::from_der(vec![leaf], key, &provider).ok().map(drop)
    };
    judge().is_some()
}
