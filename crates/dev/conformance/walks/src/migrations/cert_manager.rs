//! A stand-in for cert-manager: it keeps the Secrets of Certificates, and tells callers of webhooks the CA.
//!
//! As cert-manager does, it overwrites a Secret of another issuer, leaves the Secret when its Certificate
//! goes, and issues nothing without the Issuer.

use crate::walk_cluster::{WalkCluster, crd, delete};
use anyhow::Context;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_auth::pki::Pki;
use mainstay_client::{Cluster, ObjectList, Patch};
use mainstay_object::builtin::{self, addons};
use mainstay_object::{Object, Resource};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::task::JoinHandle;

/// The interval between two looks at the Certificates.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Annotation of Secrets: the Certificate that they are for.
pub(super) const CERTIFICATE_NAME: &str = "cert-manager.io/certificate-name";
/// Annotation of callers: the Certificate whose CA they trust.
pub(super) const INJECT_CA_FROM: &str = "cert-manager.io/inject-ca-from";
/// The kinds that call webhooks and get the CA.
const CALLERS: [Resource; 3] = [
    builtin::VALIDATING_WEBHOOK_CONFIGURATION,
    builtin::MUTATING_WEBHOOK_CONFIGURATION,
    builtin::CUSTOM_RESOURCE_DEFINITION,
];
/// Its kinds.
static KINDS: [Resource; 2] = [addons::CERTIFICATE, addons::ISSUER];

/// The running stand-in.
pub(super) struct CertManager {
    issuing: JoinHandle<()>,
}

/// Certificate and key, in base64.
struct KeyPair {
    authority: String,
    certificate: String,
    key: String,
}

impl CertManager {
    /// Creates its kinds, and starts it.
    ///
    /// # Errors
    /// The cluster refuses its kinds.
    pub(super) async fn start(cluster: &WalkCluster) -> anyhow::Result<Self> {
        let pki = Pki::ephemeral(&cluster.test()?.clock(), &[])?;
        let (certificate, key) = pki.admin_pem();
        let encode = |text: &str| STANDARD.encode(text);
        let pair = KeyPair {
            authority: encode(pki.authority_pem()),
            certificate: encode(certificate),
            key: encode(&key),
        };
        for kind in &KINDS {
            let names = (&*kind.group, &*kind.version, &*kind.kind, &*kind.plural);
            cluster.apply(crd(names).to_value()).await?;
            let name = kind.group_resource();
            let kind = &builtin::CUSTOM_RESOURCE_DEFINITION;
            cluster.test()?.wait_for_condition(kind, None, &name, "Established").await;
        }
        let (api, store) = (cluster.api.clone(), cluster.test()?.store().clone());
        let issuing = tokio::spawn(async move {
            let mut seen = None;
            loop {
                let revision = Some(store.revision());
                // What conflicts with another writer succeeds the next time.
                if seen != revision && issue(&api, &pair).await.is_ok() {
                    seen = revision;
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        });
        Ok(Self { issuing })
    }

    /// Stops it, and deletes its kinds.
    ///
    /// # Errors
    /// They do not go.
    pub(super) async fn remove(mut self, cluster: &WalkCluster) -> anyhow::Result<()> {
        self.issuing.abort();
        // It ends as aborted.
        let _ = (&mut self.issuing).await;
        for kind in &KINDS {
            let name = kind.group_resource();
            delete(&cluster.api, &builtin::CUSTOM_RESOURCE_DEFINITION, &name).await?;
        }
        Ok(())
    }
}

impl Drop for CertManager {
    fn drop(&mut self) {
        self.issuing.abort();
    }
}

/// Reports that an Issuer or a Certificate is ready: ClusterObjectSets wait for that.
async fn report_ready(cluster: &Cluster, kind: &Resource, object: &Object) -> anyhow::Result<()> {
    let ready = json!([{"type": "Ready", "status": "True", "reason": "Ready"}]);
    if object.get(&["status", "conditions"]) != Some(&ready) {
        let patch = Patch::Merge(json!({"status": {"conditions": ready}}));
        cluster.patch(kind, Some(object.namespace()), object.name(), &patch).await?;
    }
    Ok(())
}

async fn issue(cluster: &Cluster, pair: &KeyPair) -> anyhow::Result<()> {
    let all = ObjectList::default();
    for issuer in cluster.list(&addons::ISSUER, None, &all).await?.items {
        report_ready(cluster, &addons::ISSUER, &issuer).await?;
    }
    for certificate in cluster.list(&addons::CERTIFICATE, None, &all).await?.items {
        let namespace = Some(certificate.namespace());
        let issuer = certificate.str(&["spec", "issuerRef", "name"]).unwrap_or_default();
        if cluster.find(&addons::ISSUER, namespace, issuer).await?.is_none() {
            continue;
        }
        let name = certificate.str(&["spec", "secretName"]).context("a Certificate has it")?;
        let found = cluster.find(&builtin::SECRET, namespace, name).await?;
        let mut secret = found.unwrap_or_else(|| {
            let mut secret = Object::new(&builtin::SECRET.gvk(), name);
            secret.set(&["metadata", "namespace"], certificate.namespace().into());
            secret.set(&["type"], "kubernetes.io/tls".into());
            secret
        });
        let found = secret.clone();
        secret.set_annotation(CERTIFICATE_NAME, certificate.name());
        let mut data = secret.get(&["data"]).cloned().unwrap_or_else(|| json!({}));
        data["ca.crt"] = pair.authority.clone().into();
        data["tls.crt"] = pair.certificate.clone().into();
        data["tls.key"] = pair.key.clone().into();
        secret.set(&["data"], data);
        if found.uid().is_empty() {
            cluster.create(&builtin::SECRET, &secret).await?;
        } else if found != secret {
            cluster.update(&builtin::SECRET, &secret).await?;
        }
        report_ready(cluster, &addons::CERTIFICATE, &certificate).await?;
        let from = format!("{}/{}", certificate.namespace(), certificate.name());
        for kind in &CALLERS {
            for caller in cluster.list(kind, None, &all).await?.items {
                if caller.annotation(INJECT_CA_FROM) == Some(&from) {
                    trust(cluster, kind, &caller, &pair.authority).await?;
                }
            }
        }
    }
    Ok(())
}

/// Writes the CA to the clients of a caller.
async fn trust(
    cluster: &Cluster,
    kind: &Resource,
    caller: &Object,
    authority: &str,
) -> anyhow::Result<()> {
    let mut changed = caller.clone();
    let mut webhooks = caller.array(&["webhooks"]).to_vec();
    if webhooks.is_empty() {
        let client = ["spec", "conversion", "webhook", "clientConfig"];
        if caller.get(&client).is_some() {
            changed.set(&[client.as_slice(), &["caBundle"]].concat(), authority.into());
        }
    } else {
        for webhook in &mut webhooks {
            webhook["clientConfig"]["caBundle"] = authority.into();
        }
        changed.set(&["webhooks"], Value::Array(webhooks));
    }
    if changed != *caller {
        cluster.update(kind, &changed).await?;
    }
    Ok(())
}
