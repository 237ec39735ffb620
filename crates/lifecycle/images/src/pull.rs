//! Pulling: from an image reference to an image in a store of this machine.

use super::error::error_line;
use super::{LocalImageError, PullError, Puller, Requester, UnreadablePolicy, blocking};
use base64::Engine as _;
use mainstay_client::ObjectList;
use mainstay_image::credentials::Keyring;
use mainstay_image::fetch::Fetcher;
use mainstay_image::manifest::{Descriptor, ImageConfig, ImageDocument, ImageManifest};
use mainstay_image::mirror::{self, MirrorRules};
use mainstay_image::platform::Platform;
use mainstay_image::policy::SignaturePolicy;
use mainstay_image::reference::ImageReference;
use mainstay_image::registry::{
    ClientSettings, ImageClient, ImageSelection, PulledDescriptors, RegistryError, RetryListener,
    Security,
};
use mainstay_image::store::ImageStore;
use mainstay_object::{Gvk, Object, builtin};
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

/// Kinds of OpenShift that configure mirrors of registries.
const MIRRORS: [(&str, &str, &str); 3] = [
    ("config.openshift.io", "v1", "ImageDigestMirrorSet"),
    ("config.openshift.io", "v1", "ImageTagMirrorSet"),
    ("operator.openshift.io", "v1alpha1", "ImageContentSourcePolicy"),
];

/// An image for the platform of this machine, complete in a store.
#[derive(Clone, Debug)]
pub struct PulledImage {
    pub(crate) store: ImageStore,
    pub(crate) manifest: ImageManifest,
    pub(crate) config: ImageConfig,
    /// The digest that identifies the content: images with the same digest have the same content.
    pub digest: String,
    /// All digests that a node may report for the image: of its indexes and their entries, its manifest
    /// and its configuration.
    pub digests: BTreeSet<String>,
}

/// Settings, mirrors and policy of a pull from registries.
pub(crate) struct Connection {
    pub(crate) settings: ClientSettings,
    rules: MirrorRules,
    policy: SignaturePolicy,
}

impl Puller {
    /// Pulls an image: from the store of the cluster, else from a registry.
    ///
    /// # Errors
    /// Why it cannot be pulled, in one line that names the image.
    pub async fn pull(&self, image: &str, requester: &Requester) -> Result<PulledImage, PullError> {
        self.pull_with_retries(image, requester, |_| ()).await
    }

    /// As [`Puller::pull`]; calls `on_retry` with the error of each attempt that is repeated. Requests to
    /// a registry are repeated for a while before the pull fails.
    ///
    /// # Errors
    /// Why it cannot be pulled, in one line that names the image.
    pub async fn pull_with_retries(
        &self,
        image: &str,
        requester: &Requester,
        on_retry: impl Fn(PullError) + Send + Sync + 'static,
    ) -> Result<PulledImage, PullError> {
        let reference = ImageReference::parse(image).map_err(|error| {
            PullError::ParseReference { image: image.to_owned(), reason: error.to_string() }
        })?;
        if let Some(found) = self.find_local(&reference).await? {
            return Ok(found);
        }
        self.pull_from_registry(&reference, requester, on_retry).await
    }

    async fn pull_from_registry(
        &self,
        reference: &ImageReference,
        requester: &Requester,
        on_retry: impl Fn(PullError) + Send + Sync + 'static,
    ) -> Result<PulledImage, PullError> {
        let name = reference.to_string();
        let (mut connection, secrets) = self.connection(reference, requester).await?;
        let registry_error = move |error: &dyn std::error::Error| {
            let text = error_line(error);
            // Errors of mirrors begin with the reference already.
            let reason = if text.starts_with(&name) { text } else { format!("{name}: {text}") };
            PullError::AskRegistry { reason, secrets: secrets.clone() }
        };
        let retry_error = registry_error.clone();
        connection.settings.on_retry =
            RetryListener::new(move |error: &RegistryError| on_retry(retry_error(error)));
        let fetcher = self.fetcher(reference, connection).await?;
        let want = ImageSelection::Platform(Platform::host());
        let pulled =
            fetcher.fetch(reference, &want).await.map_err(|error| registry_error(&error))?;
        self.open_pulled(pulled).await.map_err(PullError::OpenPulled)
    }

    /// What a pull needs beside a client, and the pull secrets that do not exist.
    pub(crate) async fn connection(
        &self,
        reference: &ImageReference,
        requester: &Requester,
    ) -> Result<(Connection, Vec<String>), PullError> {
        let read_policy = Arc::clone(&self.images.policy);
        // First: without a policy, no registry is contacted and no secret is read.
        let policy = blocking(move || read_policy(), UnreadablePolicy).await;
        let image = || reference.to_string();
        let policy = policy.map_err(|reason| PullError::ReadPolicy { image: image(), reason })?;
        let (keyring, missing) = self.keyring(requester).await?;
        let secret = |name: &String| format!("{}/{name}", requester.namespace);
        let secrets: Vec<String> = missing.iter().map(secret).collect();
        let rules = self.mirrors().await?;
        let mut settings = self.images.registries.clone();
        settings.keyring = Arc::new(keyring);
        Ok((Connection { settings, rules, policy }, secrets))
    }

    /// The fetcher for the registries of a reference.
    pub(crate) async fn fetcher(
        &self,
        reference: &ImageReference,
        connection: Connection,
    ) -> Result<Fetcher, PullError> {
        let Connection { settings, rules, policy } = connection;
        let client_error = |reason: String| PullError::AskRegistry {
            reason: format!("{reference}: {reason}"),
            secrets: Vec::new(),
        };
        // Blocks: it reads the certificates of the machine.
        let client = move || ImageClient::new(settings).map_err(|error| error_line(&error));
        let client = blocking(client, |ended| ended).await.map_err(client_error)?;
        let store = self.images.pulled.clone();
        Ok(Fetcher { client, rules, policy, store, security: security(reference) })
    }

    /// Opens an image that was pulled.
    pub(crate) async fn open_pulled(
        &self,
        pulled: PulledDescriptors,
    ) -> Result<PulledImage, LocalImageError> {
        let store = self.images.pulled.clone();
        let open_pulled = move || {
            let image = pulled.image.as_ref().unwrap_or(&pulled.top);
            let mut found = open(&store, image)?;
            found.digests.insert(pulled.top.digest.to_string());
            if let Ok(ImageDocument::Index(index)) = store.document_of(&pulled.top) {
                found.digests.extend(index.manifests.iter().map(|one| one.digest.to_string()));
            }
            Ok(found)
        };
        blocking(open_pulled, LocalImageError::ReadStore).await
    }

    /// Finds an image in the store of the cluster. If the reference names the registry of the
    /// cluster, no other registry has the image.
    pub(crate) async fn find_local(
        &self,
        reference: &ImageReference,
    ) -> Result<Option<PulledImage>, PullError> {
        let local = (self.images.named)(reference);
        let (store, name) = (self.images.local.clone(), local.reference);
        let found = blocking(move || find_in_store(&store, &name), LocalImageError::ReadStore);
        match found.await? {
            None if local.only_here => {
                Err(PullError::NotInCluster { image: reference.to_string() })
            }
            found => Ok(found),
        }
    }

    /// The credentials in the pull secrets of a requester, and the names of missing secrets, which do not
    /// prevent a pull. The order is: secrets of the CatalogSource, of its ServiceAccount, and of the
    /// ServiceAccount `default`.
    async fn keyring(&self, requester: &Requester) -> Result<(Keyring, Vec<String>), PullError> {
        let namespace = &*requester.namespace;
        let read_error = |what: &str, name: &str, error: &dyn std::error::Error| {
            let why =
                format!("the {what} {namespace}/{name} cannot be read: {}", error_line(error));
            PullError::ReadCredentials(why)
        };
        let mut names = requester.secrets.clone();
        for account in [requester.name.as_str(), "default"] {
            let found =
                self.cluster.find(&builtin::SERVICE_ACCOUNT, Some(namespace), account).await;
            let found = found.map_err(|error| read_error("service account", account, &error))?;
            let secrets = found.as_ref().map(|account| account.array(&["imagePullSecrets"]));
            let secret_names =
                secrets.unwrap_or_default().iter().filter_map(|secret| secret["name"].as_str());
            names.extend(secret_names.map(str::to_owned));
        }
        let (mut keyring, mut missing, mut read_names) = (Keyring::new(), Vec::new(), Vec::new());
        for name in names {
            if read_names.contains(&name) {
                continue;
            }
            let found = self.cluster.find(&builtin::SECRET, Some(namespace), &name).await;
            match found.map_err(|error| read_error("pull secret", &name, &error))? {
                None => missing.push(name.clone()),
                Some(secret) => {
                    for bytes in credentials(&secret) {
                        let source = format!("the pull secret {namespace}/{name}");
                        let added = keyring.add_file(&source, &bytes);
                        added.map_err(|error| PullError::ReadCredentials(error.to_string()))?;
                    }
                }
            }
            read_names.push(name);
        }
        Ok((keyring, missing))
    }

    /// The mirrors that objects of the cluster configure.
    async fn mirrors(&self) -> Result<MirrorRules, PullError> {
        let read_error = |kind: &str, error: &dyn std::error::Error| {
            let why =
                format!("the mirrors in {kind} objects cannot be read: {}", error_line(error));
            PullError::ReadMirrors(why)
        };
        let mut objects: Vec<Value> = Vec::new();
        for (group, version, kind) in MIRRORS {
            let gvk = Gvk { group: group.into(), version: version.into(), kind: kind.into() };
            let resource = self.cluster.resource_of(&gvk).await;
            let Some(resource) = resource.map_err(|error| read_error(kind, &error))? else {
                continue;
            };
            let list = self.cluster.list(&resource, None, &ObjectList::default()).await;
            let list = list.map_err(|error| read_error(kind, &error))?;
            for object in list.items {
                let mut value = object.to_value();
                // Items of a list may lack their kind.
                value["kind"] = kind.into();
                objects.push(value);
            }
        }
        let rules = mirror::from_objects(&objects);
        rules.map_err(|error| PullError::ReadMirrors(error.to_string()))
    }
}

/// The credential files in a pull secret, of both types.
fn credentials(secret: &Object) -> Vec<Vec<u8>> {
    [".dockerconfigjson", ".dockercfg"]
        .iter()
        .filter_map(|key| secret.str(&["data", key]))
        .filter_map(|text| base64::engine::general_purpose::STANDARD.decode(text).ok())
        .collect()
}

/// The security of a registry without a mirror configuration. On the loopback of this machine, traffic
/// cannot be intercepted, so certificates are not verified there, as in docker.
fn security(reference: &ImageReference) -> Security {
    let domain = reference.domain();
    let host = match domain.strip_prefix('[') {
        Some(rest) => rest.split(']').next(),
        None => domain.split(':').next(),
    };
    let host = host.unwrap_or_default();
    let loopback = host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    if loopback || host == "localhost" { Security::Insecure } else { Security::Tls }
}

/// Finds the image of a reference in a store.
fn find_in_store(
    store: &ImageStore,
    reference: &ImageReference,
) -> Result<Option<PulledImage>, LocalImageError> {
    let unreadable = |error: &dyn std::error::Error| {
        LocalImageError::ReadStore(format!("{reference}: {}", error_line(error)))
    };
    let mut found = store.resolve(reference).map_err(|error| unreadable(&error))?;
    if found.is_none()
        && let Some(digest) = reference.digest()
    {
        // An image that was stored by tag is found by its digest as well.
        let tags = store.tags(&reference.repository()).map_err(|error| unreadable(&error))?;
        for tag in tags {
            let Ok(tagged) = reference.with_tag(&tag) else { continue };
            let descriptor = store.resolve(&tagged).map_err(|error| unreadable(&error))?;
            found = found.or(descriptor.filter(|descriptor| descriptor.digest == *digest));
        }
    }
    found.map(|descriptor| open(store, &descriptor)).transpose()
}

/// Opens an image; from an index, the image for this machine.
fn open(store: &ImageStore, descriptor: &Descriptor) -> Result<PulledImage, LocalImageError> {
    let unreadable = |error: &dyn std::error::Error| LocalImageError::ReadStore(error_line(error));
    let digest = descriptor.digest.to_string();
    let mut descriptor = descriptor.clone();
    let mut digests = BTreeSet::from([digest.clone()]);
    for _ in 0..=mainstay_image::manifest::DEEPEST_INDEX {
        match store.document_of(&descriptor).map_err(|error| unreadable(&error))? {
            ImageDocument::Manifest(manifest) => {
                let config = store.config(&manifest).map_err(|error| unreadable(&error))?;
                digests.insert(descriptor.digest.to_string());
                digests.insert(manifest.config.digest.to_string());
                return Ok(PulledImage { store: store.clone(), manifest, config, digest, digests });
            }
            ImageDocument::Index(index) => {
                let platform = Platform::host();
                digests.extend(index.manifests.iter().map(|one| one.digest.to_string()));
                let chosen = index.choose(&platform).cloned();
                let platform = format!("{}/{}", platform.os, platform.architecture);
                let missing = || LocalImageError::NoPlatform { digest: digest.clone(), platform };
                descriptor = chosen.ok_or_else(missing)?;
            }
        }
    }
    Err(LocalImageError::TooDeep { digest })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn registries_on_loopback_need_no_certificate() {
        for (image, expected) in [
            ("localhost/a", Security::Insecure),
            ("localhost:5000/a", Security::Insecure),
            ("127.0.0.1:5000/a", Security::Insecure),
            ("[::1]:5000/a", Security::Insecure),
            ("quay.io/a", Security::Tls),
            ("localhost.example:5000/a", Security::Tls),
            ("10.0.0.1/a", Security::Tls),
        ] {
            assert_eq!(security(&ImageReference::parse(image).unwrap()), expected, "{image}");
        }
    }

    #[test]
    fn credentials_are_read_from_both_types_of_pull_secrets() {
        let text = base64::engine::general_purpose::STANDARD.encode("{}");
        for key in [".dockerconfigjson", ".dockercfg"] {
            let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {key: text}});
            let secret = Object::from_value(secret).unwrap();
            // shows PSC-04
            assert_eq!(credentials(&secret), [b"{}".to_vec()]);
        }
    }
}
