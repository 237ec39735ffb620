//! Makes the objects around the servers of versions. Everything may be interrupted after any
//! request and begun again.

use super::certificate::{self, Certified};
use super::observed::{self, Conversion};
use super::required::{self, OwnedApi, Server};
use super::{check, objects};
use crate::context::{Caches, Context};
use crate::csv::observe::is_owner;
use crate::csv::requirements::Observed;
use crate::error::Error;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use mainstay_api::{ClusterServiceVersion, OperatorGroup, WebhookDescription, names, resources};
use mainstay_client::{Cluster, DeleteOptions, ListParams};
use mainstay_controller::RequestError;
use mainstay_object::{NamespacedName, Object, Resource, known};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

const CRD: &Resource = &known::CUSTOM_RESOURCE_DEFINITION;

/// Why something of a version is not installed.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The API refused it, or is away.
    Api(mainstay_client::Error),
    /// It was removed between reading and writing, as the garbage collector does with what the
    /// version before owned: nothing is wrong, the next reconciliation makes it anew.
    Removed(mainstay_client::Error),
    /// It must not be done.
    Text(String),
}

impl From<mainstay_client::Error> for Refusal {
    fn from(error: mainstay_client::Error) -> Self {
        Self::Api(error)
    }
}

impl Refusal {
    /// The error of a look at a version.
    pub(crate) fn into_error(self, csv: &ClusterServiceVersion) -> Error {
        match self {
            Self::Api(source) | Self::Removed(source) => Error::Request(RequestError {
                operation: "installing what a version serves",
                source,
            }),
            Self::Text(why) => {
                let metadata = &csv.metadata;
                let key = NamespacedName::new(&*metadata.namespace, &*metadata.name);
                Error::Refused(key, why)
            }
        }
    }
}

/// How much of what calls a server is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// What is there already trusts a new authority beside the old one.
    Announce,
    /// Requests and APIs are sent to the server; kinds are not converted by it yet.
    Install,
    /// Kinds are converted as well.
    Serve,
    /// Old authorities are no longer trusted.
    Settle,
}

/// The certificates of a version.
#[derive(Debug, Default)]
pub(crate) struct Certificates {
    /// The certificate of the authority, by Deployment, in PEM.
    authorities: BTreeMap<String, String>,
    /// That of the Secret, where it is about to be another one.
    shown: BTreeMap<String, String>,
    /// When the first of them is to be replaced.
    pub(crate) rotate: Option<Timestamp>,
    /// Whether any is new.
    pub(crate) renewed: bool,
}

impl Certificates {
    /// A certificate lives until then.
    fn until(&mut self, until: Timestamp) {
        let rotate = certificate::rotation(until);
        self.rotate = Some(self.rotate.map_or(rotate, |earliest| earliest.min(rotate)));
    }

    /// Whom callers of a Deployment trust; none if it has no certificate.
    fn trust(&self, deployment: &str, extent: Extent) -> Option<Trust<'_>> {
        let authority = self.authorities.get(deployment)?;
        let shown = self.shown.get(deployment).map(String::as_str);
        Some(Trust { authority, shown, extent })
    }

    /// The hash of each authority, by Deployment.
    pub(crate) fn hashes(&self) -> BTreeMap<String, String> {
        let of = |(deployment, pem): (&String, &String)| {
            (deployment.clone(), certificate::hash(pem.as_bytes()))
        };
        self.authorities.iter().map(of).collect()
    }
}

/// Whom callers of a server trust.
#[derive(Clone, Copy, Debug)]
struct Trust<'a> {
    authority: &'a str,
    /// The authority of the certificate that the Secret has until it has the new one.
    shown: Option<&'a str>,
    extent: Extent,
}

/// What the writing functions work on.
#[derive(Clone, Copy)]
pub(crate) struct Work<'a> {
    pub(crate) context: &'a Context,
    /// The cluster with the rights that the version is installed with.
    pub(crate) cluster: &'a Cluster,
    pub(crate) csv: &'a ClusterServiceVersion,
    pub(crate) group: &'a OperatorGroup,
    pub(crate) observed: &'a Observed,
}

impl Work<'_> {
    /// Sees that every server has its Service, its rights and a certificate that is not due.
    pub(crate) async fn prepare(&self) -> Result<Certificates, Refusal> {
        let now = self.context.clock.now();
        let mut all = Certificates::default();
        for server in required::servers(self.csv) {
            let service = objects::service(self.csv, &server);
            let namespace = Some(service.namespace());
            let found = self.cluster.find(&known::SERVICE, namespace, service.name()).await?;
            if let Some(live) = found {
                self.adopt(&known::SERVICE, &live)?;
                let fields: [&[&str]; 2] = [&["spec", "ports"], &["spec", "selector"]];
                replace(self.cluster, &known::SERVICE, &live, &service, &fields).await?;
            } else {
                self.cluster.create(&known::SERVICE, &service).await?;
            }
            self.certify(&server, now, &mut all).await?;
            for (resource, wanted) in objects::secret_rights(self.csv, &server) {
                place(self.cluster, &resource, &wanted, &[&["rules"], &["subjects"]]).await?;
            }
            for (resource, wanted) in objects::caller_rights(self.csv, &server) {
                self.share(&server, &resource, wanted).await?;
            }
        }
        Ok(all)
    }

    /// Keeps the certificate of a server, or makes a new one.
    async fn certify(
        &self,
        server: &Server,
        now: Timestamp,
        all: &mut Certificates,
    ) -> Result<(), Refusal> {
        let (namespace, name) = (self.csv.metadata.namespace.as_str(), server.secret());
        let found = self.cluster.find(&known::SECRET, Some(namespace), &name).await?;
        if let Some(live) = &found {
            self.adopt(&known::SECRET, live)?;
        }
        let seen = found.as_ref().and_then(Certified::of);
        let good = seen.as_ref().filter(|certificate| {
            let due = check::is_past(self.csv, now) && !check::is_untold(self.csv, certificate);
            !due && certificate.is_fresh(now) && certificate.annotated == certificate.authority
        });
        if let (Some(secret), Some((_, until))) =
            (&found, good.and_then(|certificate| certificate.life))
        {
            let authority = certificate::decoded(secret, certificate::AUTHORITY);
            let authority = String::from_utf8_lossy(&authority).into_owned();
            all.authorities.insert(server.deployment.clone(), authority);
            all.until(until);
            all.renewed |= good.is_some_and(|certificate| check::is_untold(self.csv, certificate));
            let own = self.csv.metadata.uid.as_str();
            if !secret.owner_references().iter().any(|owner| owner.uid == own) {
                let mut wanted = Object::new(&known::SECRET.gvk(), &name);
                let owner = objects::service(self.csv, server);
                for field in ["namespace", "ownerReferences", "labels"] {
                    let path = ["metadata", field];
                    wanted.set(&path, owner.get(&path).cloned().unwrap_or_default());
                }
                replace(self.cluster, &known::SECRET, secret, &wanted, &[]).await?;
            }
            return Ok(());
        }
        let made = certificate::make(&server.service(), namespace, now);
        let made = made.map_err(|error| Refusal::Text(error.to_string()))?;
        let secret = objects::secret(self.csv, server, &made);
        // Whoever calls knows the new authority before a pod can show its certificate.
        let mut news = Certificates::default();
        news.authorities.insert(server.deployment.clone(), made.authority.clone());
        if let Some(secret) = &found {
            let shown = certificate::decoded(secret, certificate::AUTHORITY);
            let shown = String::from_utf8_lossy(&shown).into_owned();
            news.shown.insert(server.deployment.clone(), shown);
        }
        self.publish(&news, Extent::Announce).await?;
        let fields: [&[&str]; 2] = [&["data"], &["type"]];
        let revision = place(self.cluster, &known::SECRET, &secret, &fields).await?;
        // The next look must not find that it is missing, or the old one.
        self.context.caches.certificates.seen(&revision).await;
        all.authorities.insert(server.deployment.clone(), made.authority);
        let until = Certified::of(&secret).and_then(|certificate| certificate.life);
        if let Some((_, until)) = until {
            all.until(until);
        }
        all.renewed = true;
        Ok(())
    }

    /// Refuses to take what belongs to others.
    fn adopt(&self, resource: &Resource, live: &Object) -> Result<(), Refusal> {
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
        Err(Refusal::Text(format!(
            "{} {} not safe to replace: extraneous ownerreferences found",
            resource.kind.to_lowercase(),
            live.name()
        )))
    }

    /// Whether an owner is a version that this one follows, or one that is gone.
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

    /// Binds an account to a role by a name that servers in other namespaces may have as well: the
    /// subjects of those that are still there stay.
    async fn share(
        &self,
        server: &Server,
        resource: &Resource,
        mut wanted: Object,
    ) -> Result<(), Refusal> {
        let namespace = wanted.namespace().to_owned();
        let namespace = Some(namespace.as_str()).filter(|name| !name.is_empty());
        let name = wanted.name().to_owned();
        let Some(live) = self.cluster.find(resource, namespace, &name).await? else {
            self.cluster.create(resource, &wanted).await?;
            return Ok(());
        };
        if live.get(&["roleRef"]) != wanted.get(&["roleRef"]) {
            if live.label(names::MANAGED).is_none() {
                return Err(Refusal::Text(format!(
                    "{} {name} binds another role, and is not managed; delete or rename it",
                    resource.kind
                )));
            }
            // What a binding binds to cannot be changed.
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
        if lives_elsewhere(caches, own, &live) {
            wanted.remove(&["metadata", "labels"]);
        }
        replace(self.cluster, resource, &live, &wanted, &[&["subjects"]]).await?;
        Ok(())
    }

    /// Writes what calls the servers.
    pub(crate) async fn publish(
        &self,
        certificates: &Certificates,
        extent: Extent,
    ) -> Result<(), Refusal> {
        for description in required::admission(self.csv) {
            if let Some(trust) = certificates.trust(&description.deployment_name, extent) {
                self.hook(description, trust).await?;
            }
        }
        for api in required::apis(self.csv) {
            if let Some(trust) = certificates.trust(&api.deployment, extent) {
                self.api(&api, trust).await?;
            }
        }
        if extent == Extent::Announce {
            return self.conversions(certificates, extent).await;
        }
        for hook in &self.observed.serving.hooks {
            let listed = required::admission(self.csv).any(|webhook| {
                Some(&webhook.generate_name) == hook.is.labels.get(names::WEBHOOK_GENERATE_NAME)
                    && hook.mutating == observed::is_mutating(&webhook.kind)
            });
            if !listed {
                let resource = objects::configuration_of(hook.mutating);
                let options = DeleteOptions::default();
                self.cluster.ensure_deleted(&resource, None, &hook.name, &options).await?;
            }
        }
        if extent == Extent::Install {
            return Ok(());
        }
        self.conversions(certificates, extent).await
    }

    async fn hook(
        &self,
        description: &WebhookDescription,
        trust: Trust<'_>,
    ) -> Result<(), Refusal> {
        let resource = objects::configuration_of(observed::is_mutating(&description.kind));
        // Their names are made up, so only their labels tell which are there already; a cache may
        // not know yet what was made a moment ago.
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
        let found = self.cluster.list(&resource, None, &ListParams::labels(labels)).await?;
        let mut found = found.items.into_iter();
        let Some(live) = found.next() else {
            if trust.extent != Extent::Announce {
                let authority = trust.authority;
                let wanted = objects::configuration(self.csv, description, self.group, authority);
                self.cluster.create(&resource, &wanted).await?;
            }
            return Ok(());
        };
        let old = live.array(&["webhooks"]).first();
        let bundle =
            trust.bundle(old.and_then(|webhook| webhook.pointer("/clientConfig/caBundle")));
        let mut wanted = objects::configuration(self.csv, description, self.group, &bundle);
        wanted.remove(&["metadata", "generateName"]);
        replace(self.cluster, &resource, &live, &wanted, &[&["webhooks"]]).await?;
        for more in found {
            let options = DeleteOptions::uid(more.uid());
            self.cluster.ensure_deleted(&resource, None, more.name(), &options).await?;
        }
        Ok(())
    }

    async fn api(&self, api: &OwnedApi, trust: Trust<'_>) -> Result<(), Refusal> {
        if self.observed.serving.foreign.contains(&api.name) {
            return Err(Refusal::Text(format!("{} is unadoptable", api.name)));
        }
        let live = self.cluster.find(&known::API_SERVICE, None, &api.name).await?;
        let Some(live) = live else {
            if trust.extent != Extent::Announce {
                let wanted = objects::api_service(self.csv, api, trust.authority);
                self.cluster.create(&known::API_SERVICE, &wanted).await?;
            }
            return Ok(());
        };
        let bundle = trust.bundle(live.get(&["spec", "caBundle"]));
        let wanted = objects::api_service(self.csv, api, &bundle);
        replace(self.cluster, &known::API_SERVICE, &live, &wanted, &[&["spec"]]).await?;
        Ok(())
    }

    async fn conversions(
        &self,
        certificates: &Certificates,
        extent: Extent,
    ) -> Result<(), Refusal> {
        for description in required::converters(self.csv) {
            let trust = certificates.trust(&description.deployment_name, extent);
            let Some(trust) = trust else { continue };
            for name in &description.conversion_crds {
                let Some(live) = self.cluster.find(CRD, None, name).await? else { continue };
                let there = Conversion::of(&live).is_some_and(|conversion| {
                    objects::is_conversion(self.csv, description, &conversion)
                });
                if extent == Extent::Announce && !there {
                    continue;
                }
                let path = ["spec", "conversion", "webhook", "clientConfig", "caBundle"];
                let old = live.get(&path).filter(|_| there);
                let bundle = trust.bundle(old);
                let mut wanted = Object::new(&CRD.gvk(), name);
                let conversion = objects::conversion(self.csv, description, &bundle);
                wanted.set(&["spec", "conversion"], conversion);
                replace(self.cluster, CRD, &live, &wanted, &[&["spec", "conversion"]]).await?;
            }
        }
        Ok(())
    }

    /// Whether everything around the servers of a version that runs is as it should be.
    pub(crate) fn is_kept(&self) -> bool {
        let (csv, caches) = (self.csv, &self.context.caches);
        let seen = &self.observed.serving;
        let uid = csv.metadata.uid.as_str();
        let namespace = csv.metadata.namespace.as_str();
        let owned = |owners: &[mainstay_object::OwnerReference]| {
            owners.iter().any(|owner| owner.uid == uid)
        };
        let server = |server: &Server| {
            let key = NamespacedName::new(namespace, server.secret());
            let service = seen.services.get(&server.service()).is_some_and(|found| {
                owned(&found.owners)
                    && check::covers(&found.selector, &server.selector)
                    && check::covers(&json!(found.ports), &json!(server.ports))
            });
            let certificate = seen.certificates.get(&server.deployment);
            service
                && certificate.is_some_and(|certificate| owned(&certificate.owners))
                && caches.roles.get(&key).is_some_and(|role| owned(&role.owners))
                && caches.bindings.get(&key).is_some_and(|binding| owned(&binding.owners))
                && self.is_bound(server)
        };
        required::servers(csv).iter().all(server)
            && check::in_place(csv, self.group, self.observed, true)
    }

    fn is_bound(&self, server: &Server) -> bool {
        let (caches, own) = (&self.context.caches, self.csv.metadata.namespace.as_str());
        let service = server.service();
        let asks = NamespacedName::cluster(objects::delegator(&service));
        let reads = NamespacedName::new(objects::SYSTEM, objects::reader(&service));
        [caches.cluster_bindings.get(&asks), caches.bindings.get(&reads)].into_iter().all(
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

/// Whether a version in a namespace has a Deployment of that name.
fn serves(caches: &Caches, namespace: &str, deployment: &str) -> bool {
    !namespace.is_empty()
        && caches.csvs.list(Some(namespace)).iter().any(|(_, csv)| {
            !csv.is_copy() && !csv.deleting && csv.deployments.iter().any(|name| name == deployment)
        })
}

/// Whether labels name a version of another namespace that is there.
fn is_owned_elsewhere(caches: &Caches, own: &str, labels: &BTreeMap<String, String>) -> bool {
    let label = |key: &str| labels.get(key).map(String::as_str);
    let (Some(namespace), Some(name)) = (label(names::OWNER_NAMESPACE), label(names::OWNER)) else {
        return false;
    };
    let found = caches.csvs.get(&NamespacedName::new(namespace, name));
    namespace != own && found.is_some_and(|csv| !csv.is_copy() && !csv.deleting)
}

fn lives_elsewhere(caches: &Caches, own: &str, live: &Object) -> bool {
    let labels = live.labels().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    is_owned_elsewhere(caches, own, &labels)
}

impl Trust<'_> {
    /// The authorities that are trusted: the present one, and, while old pods may be there, those that
    /// were trusted before. Whoever is interrupted again and again announces authorities that nobody
    /// comes to show, so that of the Secret is the first to stay, and one beside it.
    fn bundle(self, old: Option<&Value>) -> String {
        const BESIDE: usize = 2;
        let mut bundle = self.authority.to_owned();
        if self.extent == Extent::Settle {
            return bundle;
        }
        let old = old.and_then(Value::as_str).unwrap_or_default();
        let old = STANDARD.decode(old).unwrap_or_default();
        let before = observed::blocks(&String::from_utf8_lossy(&old));
        let shown = observed::blocks(self.shown.unwrap_or_default());
        // What nobody trusts so far is not trusted because a Secret has it.
        let (first, rest): (Vec<_>, Vec<_>) =
            before.iter().partition(|authority| shown.contains(authority));
        for block in first
            .into_iter()
            .chain(rest)
            .filter(|authority| **authority != self.authority)
            .take(BESIDE)
        {
            bundle += block;
        }
        bundle
    }
}

/// Makes an object exist with these fields, and says which revision of it has them.
async fn place(
    cluster: &Cluster,
    resource: &Resource,
    wanted: &Object,
    fields: &[&[&str]],
) -> Result<String, Refusal> {
    match cluster.find(resource, Some(wanted.namespace()), wanted.name()).await? {
        None => Ok(cluster.create(resource, wanted).await?.resource_version().to_owned()),
        Some(live) => replace(cluster, resource, &live, wanted, fields).await,
    }
}

/// Gives an object these fields as a whole, further labels and annotations, and the version as its owner
/// instead of others. Nothing is written if it is so.
async fn replace(
    cluster: &Cluster,
    resource: &Resource,
    live: &Object,
    wanted: &Object,
    fields: &[&[&str]],
) -> Result<String, Refusal> {
    let mut new = live.clone();
    for field in ["labels", "annotations"] {
        let path = ["metadata", field];
        let of = |object: &Object| -> Map<String, Value> {
            object.get(&path).and_then(Value::as_object).cloned().unwrap_or_default()
        };
        let mut all = of(live);
        all.extend(of(wanted));
        if !all.is_empty() {
            new.set(&path, Value::Object(all));
        }
    }
    let owners = wanted.array(&["metadata", "ownerReferences"]);
    if !owners.is_empty() {
        let version = |owner: &&Value| {
            owner.get("kind").and_then(Value::as_str)
                == Some(&*resources::CLUSTER_SERVICE_VERSION.kind)
        };
        let others =
            live.array(&["metadata", "ownerReferences"]).iter().filter(|owner| !version(owner));
        let all: Vec<Value> = others.chain(owners).cloned().collect();
        new.set(&["metadata", "ownerReferences"], all.into());
    }
    for path in fields {
        if let Some(value) = wanted.get(path) {
            new.set(path, value.clone());
        }
    }
    if new == *live {
        return Ok(live.resource_version().to_owned());
    }
    match cluster.update(resource, &new).await {
        Ok(updated) => Ok(updated.resource_version().to_owned()),
        Err(error) if error.is_not_found() => Err(Refusal::Removed(error)),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_authorities_are_trusted_until_all_is_settled_first_of_all_that_of_the_secret() {
        let block = |text: &str| {
            format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
        };
        let [a, b, c, d] = ["QQ==", "Qg==", "Qw==", "RA=="].map(block);
        let there = Value::from(STANDARD.encode([&*a, &*b, &*c].concat()));
        let trust = |authority: &str, shown: Option<&str>, extent: Extent| {
            Trust { authority, shown, extent }.bundle(Some(&there))
        };
        assert_eq!(Trust { authority: &d, shown: None, extent: Extent::Install }.bundle(None), d);
        assert_eq!(trust(&d, None, Extent::Announce), [&*d, &*a, &*b].concat());
        // That of the Secret stays, however often others were announced before it.
        assert_eq!(trust(&d, Some(&c), Extent::Announce), [&*d, &*c, &*a].concat());
        assert_eq!(trust(&a, Some(&c), Extent::Announce), [&*a, &*c, &*b].concat());
        assert_eq!(trust(&a, None, Extent::Serve), [&*a, &*b, &*c].concat());
        assert_eq!(trust(&a, Some(&d), Extent::Serve), [&*a, &*b, &*c].concat());
        assert_eq!(trust(&d, Some(&c), Extent::Settle), d);
    }
}
