//! Serving install: creates and updates the objects around the servers of a CSV. It may stop after
//! any request and start again.

use super::certificate::{self, CertificateSecret};
use super::observed::{self, Conversion};
use super::required::{self, OwnedApi, Server};
use super::write::{ensure_fields, update_fields};
use super::{check, objects};
use crate::context::{Caches, Context};
use crate::csv::observe::is_owner;
use crate::csv::requirements::ObservedRequirements;
use crate::error::Error;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use mainstay_api::{ClusterServiceVersion, OperatorGroup, WebhookDescription, names};
use mainstay_client::{Cluster, DeleteOptions, ObjectList};
use mainstay_controller::RequestError;
use mainstay_object::{NamespacedName, Object, Resource, builtin};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const CRD: &Resource = &builtin::CUSTOM_RESOURCE_DEFINITION;

/// Why an object of a CSV cannot be installed.
#[derive(Debug)]
pub(crate) enum InstallError {
    /// The API refused the object or is unavailable.
    Api(mainstay_client::Error),
    /// The object was deleted between reading and writing, as the garbage collector does with
    /// objects of the previous CSV. The next reconciliation creates it again.
    Removed(mainstay_client::Error),
    /// The controller must not write the object.
    Refused(String),
}

impl From<mainstay_client::Error> for InstallError {
    fn from(error: mainstay_client::Error) -> Self {
        Self::Api(error)
    }
}

impl InstallError {
    /// The error of a reconciliation.
    pub(crate) fn into_error(self, csv: &ClusterServiceVersion) -> Error {
        match self {
            Self::Api(source) | Self::Removed(source) => Error::Request(RequestError {
                operation: "installing what a version serves",
                source,
            }),
            Self::Refused(why) => {
                let metadata = &csv.metadata;
                let key = NamespacedName::new(&*metadata.namespace, &*metadata.name);
                Error::Refused(key, why)
            }
        }
    }
}

/// How far the callers of a server are configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PublishStage {
    /// Existing callers also trust the new CA.
    Announce,
    /// Webhooks and APIServices call the server; conversions do not yet.
    Install,
    /// Conversions call the server as well.
    Serve,
    /// Callers no longer trust old CAs.
    DropOldCas,
}

/// The CAs of the servers of a CSV.
#[derive(Debug, Default)]
pub(crate) struct ServingCas {
    /// The current CA certificate by Deployment, in PEM.
    ca_certificates: BTreeMap<String, String>,
    /// The CA certificate that the Secret still has, where it is about to be replaced.
    secret_ca: BTreeMap<String, String>,
    /// When the first certificate is due for replacement.
    pub(crate) rotate: Option<Timestamp>,
    /// Whether any certificate is new.
    pub(crate) renewed: bool,
}

impl ServingCas {
    /// Accounts for a certificate that is valid until then.
    fn until(&mut self, until: Timestamp) {
        let rotate = certificate::rotation(until);
        self.rotate = Some(self.rotate.map_or(rotate, |earliest| earliest.min(rotate)));
    }

    /// The CA that callers of a Deployment trust; none if it has no certificate.
    fn trusted_ca(&self, deployment: &str, stage: PublishStage) -> Option<TrustedCa<'_>> {
        let ca_certificate = self.ca_certificates.get(deployment)?;
        let secret_ca = self.secret_ca.get(deployment).map(String::as_str);
        Some(TrustedCa { ca_certificate, secret_ca, stage })
    }

    /// The hash of each current CA certificate, by Deployment.
    pub(crate) fn hashes(&self) -> BTreeMap<String, String> {
        let hash_of = |(deployment, pem): (&String, &String)| {
            (deployment.clone(), certificate::sha256_hex(pem.as_bytes()))
        };
        self.ca_certificates.iter().map(hash_of).collect()
    }
}

/// The CA certificates that callers of a server trust.
#[derive(Clone, Copy, Debug)]
struct TrustedCa<'a> {
    ca_certificate: &'a str,
    /// The CA certificate that the Secret has until it gets the new one.
    secret_ca: Option<&'a str>,
    stage: PublishStage,
}

/// Installs the objects around the servers of one CSV.
#[derive(Clone, Copy)]
pub(crate) struct ServingInstaller<'a> {
    pub(crate) context: &'a Context,
    /// The cluster client with the permissions that the CSV is installed with.
    pub(crate) cluster: &'a Cluster,
    pub(crate) csv: &'a ClusterServiceVersion,
    pub(crate) group: &'a OperatorGroup,
    pub(crate) observed: &'a ObservedRequirements,
}

impl ServingInstaller<'_> {
    /// Ensures that every server has its Service, its RBAC objects and a certificate that is not
    /// due.
    pub(crate) async fn ensure_servers(&self) -> Result<ServingCas, InstallError> {
        let now = self.context.clock.now();
        let mut all = ServingCas::default();
        for server in required::servers(self.csv) {
            let service = objects::service(self.csv, &server);
            let namespace = Some(service.namespace());
            let found = self.cluster.find(&builtin::SERVICE, namespace, service.name()).await?;
            if let Some(live) = found {
                self.adopt(&builtin::SERVICE, &live)?;
                let fields: [&[&str]; 2] = [&["spec", "ports"], &["spec", "selector"]];
                update_fields(self.cluster, &builtin::SERVICE, &live, &service, &fields).await?;
            } else {
                self.cluster.create(&builtin::SERVICE, &service).await?;
            }
            self.ensure_certificate(&server, now, &mut all).await?;
            for (resource, wanted) in objects::secret_rbac(self.csv, &server) {
                ensure_fields(self.cluster, &resource, &wanted, &[&["rules"], &["subjects"]])
                    .await?;
            }
            for (resource, wanted) in objects::delegation_bindings(self.csv, &server) {
                self.ensure_shared_binding(&server, &resource, wanted).await?;
            }
        }
        Ok(all)
    }

    /// Keeps the certificate of a server, or creates a new one.
    async fn ensure_certificate(
        &self,
        server: &Server,
        now: Timestamp,
        all: &mut ServingCas,
    ) -> Result<(), InstallError> {
        let (namespace, name) = (self.csv.metadata.namespace.as_str(), server.secret());
        let found = self.cluster.find(&builtin::SECRET, Some(namespace), &name).await?;
        if let Some(live) = &found {
            self.adopt(&builtin::SECRET, live)?;
        }
        let observed = found.as_ref().and_then(CertificateSecret::of);
        let good = observed.as_ref().filter(|certificate| {
            let due = check::rotation_is_due(self.csv, now)
                && !check::is_unrecorded(self.csv, certificate);
            !due && certificate.is_fresh(now)
                && certificate.annotated_ca_hash == certificate.ca_hash
        });
        if let (Some(secret), Some(validity)) =
            (&found, good.and_then(|certificate| certificate.validity))
        {
            let ca_certificate = certificate::decoded(secret, certificate::CA_CERTIFICATE);
            let ca_certificate = String::from_utf8_lossy(&ca_certificate).into_owned();
            all.ca_certificates.insert(server.deployment.clone(), ca_certificate);
            all.until(validity.until);
            all.renewed |=
                good.is_some_and(|certificate| check::is_unrecorded(self.csv, certificate));
            let own = self.csv.metadata.uid.as_str();
            if !secret.owner_references().iter().any(|owner| owner.uid == own) {
                let mut wanted = Object::new(&builtin::SECRET.gvk(), &name);
                let owner = objects::service(self.csv, server);
                for field in ["namespace", "ownerReferences", "labels"] {
                    let path = ["metadata", field];
                    wanted.set(&path, owner.get(&path).cloned().unwrap_or_default());
                }
                update_fields(self.cluster, &builtin::SECRET, secret, &wanted, &[]).await?;
            }
            return Ok(());
        }
        let new_certificate = certificate::make(&server.service(), namespace, now);
        let new_certificate =
            new_certificate.map_err(|error| InstallError::Refused(error.to_string()))?;
        let secret = objects::secret(self.csv, server, &new_certificate);
        // Callers must trust the new CA before a pod serves its certificate.
        let mut announced = ServingCas::default();
        announced
            .ca_certificates
            .insert(server.deployment.clone(), new_certificate.authority.clone());
        if let Some(secret) = &found {
            let secret_ca = certificate::decoded(secret, certificate::CA_CERTIFICATE);
            let secret_ca = String::from_utf8_lossy(&secret_ca).into_owned();
            announced.secret_ca.insert(server.deployment.clone(), secret_ca);
        }
        self.publish(&announced, PublishStage::Announce).await?;
        let fields: [&[&str]; 2] = [&["data"], &["type"]];
        let revision = ensure_fields(self.cluster, &builtin::SECRET, &secret, &fields).await?;
        // The next reconciliation must see the new certificate.
        self.context.caches.certificates.wait_for_revision(&revision).await;
        all.ca_certificates.insert(server.deployment.clone(), new_certificate.authority);
        let validity = CertificateSecret::of(&secret).and_then(|certificate| certificate.validity);
        if let Some(validity) = validity {
            all.until(validity.until);
        }
        all.renewed = true;
        Ok(())
    }

    /// Refuses to update an object of another owner.
    fn adopt(&self, resource: &Resource, live: &Object) -> Result<(), InstallError> {
        let owners = live.owner_references();
        let ours = |owner: &mainstay_object::OwnerReference| {
            owner.kind == self.csv.kind
                && (owner.uid == self.csv.metadata.uid || self.follows(owner))
        };
        let adoptable = match owners.as_slice() {
            [] => live.label(names::MANAGED).is_some(),
            owners => owners.iter().all(ours),
        };
        if adoptable {
            return Ok(());
        }
        Err(InstallError::Refused(format!(
            "{} {} not safe to replace: extraneous ownerreferences found",
            resource.kind.to_lowercase(),
            live.name()
        )))
    }

    /// Whether an owner is a CSV that this one replaces, directly or not, or one that was deleted.
    fn follows(&self, owner: &mainstay_object::OwnerReference) -> bool {
        let caches = &self.context.caches;
        let at = |name: &str| NamespacedName::new(&*self.csv.metadata.namespace, name);
        let known = caches.csvs.get(&at(&owner.name));
        if known.is_none_or(|csv| csv.uid != owner.uid) {
            return true;
        }
        let mut visited = BTreeSet::new();
        let mut next = self.csv.spec.replaces.clone();
        while !next.is_empty() && visited.insert(next.clone()) {
            if next == owner.name {
                return true;
            }
            next = caches.csvs.get(&at(&next)).map_or_else(String::new, |csv| csv.replaces.clone());
        }
        false
    }

    /// Binds a ServiceAccount to a role. Servers in other namespaces may share the binding by its
    /// name, so it keeps the subjects of those that still exist.
    async fn ensure_shared_binding(
        &self,
        server: &Server,
        resource: &Resource,
        mut wanted: Object,
    ) -> Result<(), InstallError> {
        let namespace = wanted.namespace().to_owned();
        let namespace = Some(namespace.as_str()).filter(|name| !name.is_empty());
        let name = wanted.name().to_owned();
        let Some(live) = self.cluster.find(resource, namespace, &name).await? else {
            self.cluster.create(resource, &wanted).await?;
            return Ok(());
        };
        if live.get(&["roleRef"]) != wanted.get(&["roleRef"]) {
            if live.label(names::MANAGED).is_none() {
                return Err(InstallError::Refused(format!(
                    "{} {name} binds another role, and is not managed; delete or rename it",
                    resource.kind
                )));
            }
            // The `roleRef` of a binding is immutable.
            let options = DeleteOptions::uid(live.uid());
            self.cluster.ensure_deleted(resource, namespace, &name, &options).await?;
            self.cluster.create(resource, &wanted).await?;
            return Ok(());
        }
        let own = self.csv.metadata.namespace.as_str();
        let caches = &self.context.caches;
        let mut subjects: Vec<Value> = live
            .array(&["subjects"])
            .iter()
            .filter(|subject| {
                let at = subject.get("namespace").and_then(Value::as_str).unwrap_or_default();
                at != own && serves(caches, at, &server.deployment)
            })
            .cloned()
            .collect();
        subjects.extend_from_slice(wanted.array(&["subjects"]));
        wanted.set(&["subjects"], subjects.into());
        if object_is_owned_elsewhere(caches, own, &live) {
            wanted.remove(&["metadata", "labels"]);
        }
        update_fields(self.cluster, resource, &live, &wanted, &[&["subjects"]]).await?;
        Ok(())
    }

    /// Configures the callers of the servers.
    pub(crate) async fn publish(
        &self,
        certificates: &ServingCas,
        stage: PublishStage,
    ) -> Result<(), InstallError> {
        for description in required::admission_webhooks(self.csv) {
            if let Some(trusted_ca) = certificates.trusted_ca(&description.deployment_name, stage) {
                self.publish_webhook(description, trusted_ca).await?;
            }
        }
        for api in required::apis(self.csv) {
            if let Some(trusted_ca) = certificates.trusted_ca(&api.deployment, stage) {
                self.publish_api_service(&api, trusted_ca).await?;
            }
        }
        if stage == PublishStage::Announce {
            return self.publish_conversions(certificates, stage).await;
        }
        for configuration in &self.observed.serving.webhook_configurations {
            let listed = required::admission_webhooks(self.csv).any(|webhook| {
                Some(&webhook.generate_name)
                    == configuration.configuration.labels.get(names::WEBHOOK_GENERATE_NAME)
                    && configuration.mutating == observed::is_mutating(&webhook.kind)
            });
            if !listed {
                let resource = objects::configuration_of(configuration.mutating);
                let options = DeleteOptions::default();
                self.cluster.ensure_deleted(&resource, None, &configuration.name, &options).await?;
            }
        }
        if stage == PublishStage::Install {
            return Ok(());
        }
        self.publish_conversions(certificates, stage).await
    }

    async fn publish_webhook(
        &self,
        description: &WebhookDescription,
        trusted_ca: TrustedCa<'_>,
    ) -> Result<(), InstallError> {
        let resource = objects::configuration_of(observed::is_mutating(&description.kind));
        // The names are generated, so only the labels identify existing configurations. The API is
        // queried, because the cache may lag behind a recent write.
        let metadata = &self.csv.metadata;
        let labels = format!(
            "{}={},{}={},{}={},{}={}",
            names::OWNER,
            metadata.name,
            names::OWNER_NAMESPACE,
            metadata.namespace,
            names::OWNER_KIND,
            self.csv.kind,
            names::WEBHOOK_GENERATE_NAME,
            description.generate_name
        );
        let found = self.cluster.list(&resource, None, &ObjectList::labels(labels)).await?;
        let mut found = found.items.into_iter();
        let Some(live) = found.next() else {
            if trusted_ca.stage != PublishStage::Announce {
                let ca_certificate = trusted_ca.ca_certificate;
                let wanted =
                    objects::configuration(self.csv, description, self.group, ca_certificate);
                self.cluster.create(&resource, &wanted).await?;
            }
            return Ok(());
        };
        let old = live.array(&["webhooks"]).first();
        let bundle =
            trusted_ca.bundle(old.and_then(|webhook| webhook.pointer("/clientConfig/caBundle")));
        let mut wanted = objects::configuration(self.csv, description, self.group, &bundle);
        wanted.remove(&["metadata", "generateName"]);
        update_fields(self.cluster, &resource, &live, &wanted, &[&["webhooks"]]).await?;
        for more in found {
            let options = DeleteOptions::uid(more.uid());
            self.cluster.ensure_deleted(&resource, None, more.name(), &options).await?;
        }
        Ok(())
    }

    async fn publish_api_service(
        &self,
        api: &OwnedApi,
        trusted_ca: TrustedCa<'_>,
    ) -> Result<(), InstallError> {
        if self.observed.serving.foreign.contains(&api.name) {
            return Err(InstallError::Refused(format!("{} is unadoptable", api.name)));
        }
        let live = self.cluster.find(&builtin::API_SERVICE, None, &api.name).await?;
        let Some(live) = live else {
            if trusted_ca.stage != PublishStage::Announce {
                let wanted = objects::api_service(self.csv, api, trusted_ca.ca_certificate);
                self.cluster.create(&builtin::API_SERVICE, &wanted).await?;
            }
            return Ok(());
        };
        let bundle = trusted_ca.bundle(live.get(&["spec", "caBundle"]));
        let wanted = objects::api_service(self.csv, api, &bundle);
        update_fields(self.cluster, &builtin::API_SERVICE, &live, &wanted, &[&["spec"]]).await?;
        Ok(())
    }

    async fn publish_conversions(
        &self,
        certificates: &ServingCas,
        stage: PublishStage,
    ) -> Result<(), InstallError> {
        for description in required::conversion_webhooks(self.csv) {
            let trusted_ca = certificates.trusted_ca(&description.deployment_name, stage);
            let Some(trusted_ca) = trusted_ca else { continue };
            for name in &description.conversion_crds {
                let Some(live) = self.cluster.find(CRD, None, name).await? else { continue };
                let is_converting = Conversion::of(&live).is_some_and(|conversion| {
                    objects::is_conversion(self.csv, description, &conversion)
                });
                if stage == PublishStage::Announce && !is_converting {
                    continue;
                }
                let path = ["spec", "conversion", "webhook", "clientConfig", "caBundle"];
                let old = live.get(&path).filter(|_| is_converting);
                let bundle = trusted_ca.bundle(old);
                let mut wanted = Object::new(&CRD.gvk(), name);
                let conversion = objects::conversion(self.csv, description, &bundle);
                wanted.set(&["spec", "conversion"], conversion);
                update_fields(self.cluster, CRD, &live, &wanted, &[&["spec", "conversion"]])
                    .await?;
            }
        }
        Ok(())
    }

    /// Whether everything around the servers of a running CSV is up to date.
    pub(crate) fn is_up_to_date(&self) -> bool {
        let (csv, caches) = (self.csv, &self.context.caches);
        let observed = &self.observed.serving;
        let uid = csv.metadata.uid.as_str();
        let namespace = csv.metadata.namespace.as_str();
        let owned = |owners: &[mainstay_object::OwnerReference]| {
            owners.iter().any(|owner| owner.uid == uid)
        };
        let server = |server: &Server| {
            let key = NamespacedName::new(namespace, server.secret());
            let service = observed.services.get(&server.service()).is_some_and(|found| {
                owned(&found.owners)
                    && check::covers(&found.selector, &server.selector)
                    && check::covers(&json!(found.ports), &json!(server.ports))
            });
            let certificate = observed.certificates.get(&server.deployment);
            service
                && certificate.is_some_and(|certificate| owned(&certificate.owners))
                && caches.roles.get(&key).is_some_and(|role| owned(&role.owners))
                && caches.role_bindings.get(&key).is_some_and(|binding| owned(&binding.owners))
                && self.is_bound(server)
        };
        required::servers(csv).iter().all(server)
            && check::is_published(csv, self.group, self.observed, true)
    }

    fn is_bound(&self, server: &Server) -> bool {
        let (caches, own) = (&self.context.caches, self.csv.metadata.namespace.as_str());
        let service = server.service();
        let asks = NamespacedName::cluster(objects::delegator(&service));
        let reads = NamespacedName::new(objects::SYSTEM, objects::reader(&service));
        [caches.cluster_role_bindings.get(&asks), caches.role_bindings.get(&reads)].into_iter().all(
            |binding| {
                binding.is_some_and(|binding| {
                    let is_subject = binding
                        .subjects
                        .iter()
                        .any(|subject| subject.name == server.account && subject.namespace == own);
                    let owner = is_owner(&binding.labels, own, &self.csv.metadata.name);
                    is_subject && (owner || is_owned_elsewhere(caches, own, &binding.labels))
                })
            },
        )
    }
}

/// Whether a CSV in a namespace has a Deployment of that name.
fn serves(caches: &Caches, namespace: &str, deployment: &str) -> bool {
    !namespace.is_empty()
        && caches.csvs.list(Some(namespace)).iter().any(|(_, csv)| {
            !csv.is_copy() && !csv.deleting && csv.deployments.iter().any(|name| name == deployment)
        })
}

/// Whether owner labels name an existing CSV of another namespace.
fn is_owned_elsewhere(caches: &Caches, own: &str, labels: &BTreeMap<String, String>) -> bool {
    let label = |key: &str| labels.get(key).map(String::as_str);
    let (Some(namespace), Some(name)) = (label(names::OWNER_NAMESPACE), label(names::OWNER)) else {
        return false;
    };
    let found = caches.csvs.get(&NamespacedName::new(namespace, name));
    namespace != own && found.is_some_and(|csv| !csv.is_copy() && !csv.deleting)
}

fn object_is_owned_elsewhere(caches: &Caches, own: &str, live: &Object) -> bool {
    let labels = live.labels().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    is_owned_elsewhere(caches, own, &labels)
}

impl TrustedCa<'_> {
    /// The trusted CA certificates: the current one, and those trusted before while old pods may
    /// still run. Repeated interruptions announce CAs that no pod ever uses. So of the old ones,
    /// that of the Secret comes first, and one other is kept beside it.
    fn bundle(self, old: Option<&Value>) -> String {
        const MAX_OLD_CAS: usize = 2;
        let mut bundle = self.ca_certificate.to_owned();
        if self.stage == PublishStage::DropOldCas {
            return bundle;
        }
        let old = old.and_then(Value::as_str).unwrap_or_default();
        let old = STANDARD.decode(old).unwrap_or_default();
        let before = observed::blocks(&String::from_utf8_lossy(&old));
        let secret_ca = observed::blocks(self.secret_ca.unwrap_or_default());
        // A CA certificate of the Secret counts only if it was trusted before.
        let (first, rest): (Vec<_>, Vec<_>) =
            before.iter().partition(|ca_certificate| secret_ca.contains(ca_certificate));
        for block in first
            .into_iter()
            .chain(rest)
            .filter(|ca_certificate| **ca_certificate != self.ca_certificate)
            .take(MAX_OLD_CAS)
        {
            bundle += block;
        }
        bundle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_cas_are_trusted_until_the_last_stage_that_of_the_secret_first() {
        let block = |text: &str| {
            format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
        };
        let [a, b, c, d] = ["QQ==", "Qg==", "Qw==", "RA=="].map(block);
        let old_bundle = Value::from(STANDARD.encode([&*a, &*b, &*c].concat()));
        let trusted_ca = |ca_certificate: &str, secret_ca: Option<&str>, stage: PublishStage| {
            TrustedCa { ca_certificate, secret_ca, stage }.bundle(Some(&old_bundle))
        };
        assert_eq!(
            TrustedCa { ca_certificate: &d, secret_ca: None, stage: PublishStage::Install }
                .bundle(None),
            d
        );
        assert_eq!(trusted_ca(&d, None, PublishStage::Announce), [&*d, &*a, &*b].concat());
        // The CA of the Secret stays, however many others were announced before it.
        assert_eq!(trusted_ca(&d, Some(&c), PublishStage::Announce), [&*d, &*c, &*a].concat());
        assert_eq!(trusted_ca(&a, Some(&c), PublishStage::Announce), [&*a, &*c, &*b].concat());
        assert_eq!(trusted_ca(&a, None, PublishStage::Serve), [&*a, &*b, &*c].concat());
        assert_eq!(trusted_ca(&a, Some(&d), PublishStage::Serve), [&*a, &*b, &*c].concat());
        assert_eq!(trusted_ca(&d, Some(&c), PublishStage::DropOldCas), d);
    }
}
