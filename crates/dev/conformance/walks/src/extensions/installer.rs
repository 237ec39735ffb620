//! The ServiceAccount of a ClusterExtension, with exactly the permissions that `mainstay extension
//! rbac` derives from bundles.

use crate::walk_cluster::{NAME, NAMESPACE, WalkCluster};
use anyhow::anyhow;
use mainstay_client::{DeleteOptions, ObjectList};
use mainstay_object::{Object, Resource, builtin};
use mainstay_permissions::{
    BundleKinds, ExtensionApplier, GrantedRules, InstallManifest, InstallerNames, InstallerObjects,
    RbacObjects, RbacSubject, exact_installer, missing_permissions,
};
use serde_json::Value;

/// The kinds of roles and bindings.
const RBAC_KINDS: [Resource; 4] =
    [builtin::ROLE, builtin::CLUSTER_ROLE, builtin::ROLE_BINDING, builtin::CLUSTER_ROLE_BINDING];

/// The installer of the walk's extension.
pub(super) struct Installer {
    names: InstallerNames,
    applier: ExtensionApplier,
    /// What it has been granted.
    granted: InstallerObjects,
}

impl Installer {
    /// An installer without permissions; nothing is created.
    pub(super) fn new(applier: ExtensionApplier) -> Self {
        let names = InstallerNames::new(NAME, NAMESPACE);
        let granted = InstallerObjects::new(&names, Vec::new());
        Self { names, applier, granted }
    }

    /// The name of the ServiceAccount.
    pub(super) fn account(&self) -> String {
        self.names.service_account()
    }

    /// Creates the ServiceAccount.
    ///
    /// # Errors
    /// It cannot be created.
    pub(super) async fn create(&mut self, cluster: &WalkCluster) -> anyhow::Result<()> {
        self.replace(cluster, InstallerObjects::new(&self.names, Vec::new())).await
    }

    /// Grants exactly what these objects need, and nothing that was granted before.
    ///
    /// # Errors
    /// An object has an unknown kind, or the roles cannot be written.
    pub(super) async fn grant(
        &mut self,
        cluster: &WalkCluster,
        objects: &[Value],
    ) -> anyhow::Result<()> {
        let manifest = InstallManifest::new(objects, &BundleKinds, NAMESPACE)?;
        let granted = exact_installer(&manifest, &self.names, &self.applier);
        self.replace(cluster, granted).await
    }

    /// Deletes the ServiceAccount and its permissions.
    ///
    /// # Errors
    /// An object cannot be deleted.
    pub(super) async fn delete(&mut self, cluster: &WalkCluster) -> anyhow::Result<()> {
        self.replace(cluster, InstallerObjects::new(&self.names, Vec::new())).await?;
        let options = DeleteOptions::default();
        let (kind, name) = (&builtin::SERVICE_ACCOUNT, self.account());
        cluster.api.ensure_deleted(kind, Some(NAMESPACE), &name, &options).await?;
        Ok(())
    }

    async fn replace(
        &mut self,
        cluster: &WalkCluster,
        granted: InstallerObjects,
    ) -> anyhow::Result<()> {
        let values = granted.to_values();
        for value in &values {
            cluster.apply(value.clone()).await?;
        }
        let key = |value: &Value| {
            let metadata = &value["metadata"];
            (value["kind"].clone(), metadata["namespace"].clone(), metadata["name"].clone())
        };
        for old in self.granted.to_values() {
            if values.iter().any(|value| key(value) == key(&old)) {
                continue;
            }
            let object = Object::from_value(old)?;
            let resource = cluster.api.resource_of(&object.gvk()).await?;
            let resource = resource.ok_or_else(|| anyhow!("there is no kind {}", object.gvk()))?;
            let namespace = resource.is_namespaced().then(|| object.namespace());
            let options = DeleteOptions::default();
            cluster.api.ensure_deleted(&resource, namespace, object.name(), &options).await?;
        }
        self.granted = granted;
        Ok(())
    }

    /// The report about the permissions that these objects need and the installer does not have; none
    /// if it has all.
    ///
    /// # Errors
    /// An object has an unknown kind, a role has too many rules, or the cluster does not respond.
    pub(super) async fn missing(
        &self,
        cluster: &WalkCluster,
        objects: &[Value],
    ) -> anyhow::Result<Option<String>> {
        let manifest = InstallManifest::new(objects, &BundleKinds, NAMESPACE)?;
        // Bundles bind roles of the cluster, too, such as `view`.
        let mut rbac = RbacObjects::default();
        for resource in &RBAC_KINDS {
            for object in cluster.api.list(resource, None, &ObjectList::default()).await?.items {
                rbac.add(&object.into_value());
            }
        }
        let subject = RbacSubject::service_account(NAMESPACE, &self.account());
        let granted = GrantedRules::new(&rbac, &subject);
        let missing = missing_permissions(&manifest, NAME, &self.applier, &granted, &rbac)?;
        Ok(missing.condition_message())
    }
}
