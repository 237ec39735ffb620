//! Installer roles: the ServiceAccount of an extension, and the roles that allow it to install the bundle.
//!
//! [`documented_installer_role`] follows the documentation rule by rule. [`exact_installer`] grants no more
//! than the bundle needs: it knows the names that the renderer generates, and keeps to namespaces.

mod documented;
mod exact;

pub use documented::{DocumentedBundle, documented_installer_role};
pub use exact::exact_installer;

use crate::rbac_object::{
    API_VERSION, BindingSubject, GROUP, RbacBinding, RbacObjects, RbacRole, RoleReference,
};
use crate::rule::RbacRule;
use serde_json::{Map, Value, json};

/// The names of an extension and of its installer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstallerNames {
    /// The name of the ClusterExtension.
    pub extension: String,
    /// The first part of the names of the installer's objects, usually the name of the ClusterExtension.
    pub prefix: String,
    /// The namespace of the extension and of its ServiceAccount.
    pub namespace: String,
}

impl InstallerNames {
    /// The names for a ClusterExtension.
    pub fn new(extension: &str, namespace: &str) -> Self {
        Self {
            extension: extension.to_owned(),
            prefix: extension.to_owned(),
            namespace: namespace.to_owned(),
        }
    }

    /// The name of the ServiceAccount.
    pub fn service_account(&self) -> String {
        format!("{}-installer", self.prefix)
    }

    /// The name of the ClusterRole.
    pub fn cluster_role(&self) -> String {
        format!("{}-installer-clusterrole", self.prefix)
    }

    /// The name of the Role in each namespace.
    pub fn role(&self) -> String {
        format!("{}-installer-role", self.prefix)
    }

    /// The name of the ClusterRoleBinding, and of the RoleBinding in each namespace.
    pub fn binding(&self) -> String {
        format!("{}-installer-binding", self.prefix)
    }

    /// The name of the ClusterRole, and of the Role in each namespace, with the approved permissions.
    pub fn approval(&self) -> String {
        format!("{}-approved-permissions", self.prefix)
    }

    /// The binding of the ServiceAccount to the ClusterRole, or to the Role of a namespace.
    pub fn role_binding(&self, namespace: &str) -> RbacBinding {
        let (kind, name) = match namespace {
            "" => ("ClusterRole", self.cluster_role()),
            _ => ("Role", self.role()),
        };
        RbacBinding {
            namespace: namespace.to_owned(),
            name: self.binding(),
            role: RoleReference { kind: kind.to_owned(), name },
            subjects: vec![BindingSubject {
                kind: "ServiceAccount".to_owned(),
                name: self.service_account(),
                namespace: self.namespace.clone(),
            }],
        }
    }

    /// The ServiceAccount as an object.
    pub fn service_account_object(&self) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": self.service_account(), "namespace": self.namespace},
        })
    }
}

/// A ServiceAccount, its roles and their bindings.
#[derive(Clone, Debug, PartialEq)]
pub struct InstallerObjects {
    /// The ServiceAccount.
    pub service_account: Value,
    /// The ClusterRole, then the Roles by namespace.
    pub roles: Vec<RbacRole>,
    /// Their bindings, in the same order.
    pub bindings: Vec<RbacBinding>,
}

impl InstallerObjects {
    /// A ServiceAccount with some roles.
    pub fn new(names: &InstallerNames, roles: Vec<RbacRole>) -> Self {
        let bindings = roles.iter().map(|role| names.role_binding(&role.namespace)).collect();
        Self { service_account: names.service_account_object(), roles, bindings }
    }

    /// The objects in the order in which they are applied.
    pub fn to_values(&self) -> Vec<Value> {
        let roles = self.roles.iter().zip(&self.bindings);
        let pairs = roles.flat_map(|(role, binding)| [role.to_value(), binding.to_value()]);
        std::iter::once(self.service_account.clone()).chain(pairs).collect()
    }

    /// The roles and bindings as a cluster would have them.
    pub fn rbac_objects(&self) -> RbacObjects {
        let mut objects = RbacObjects::default();
        self.roles.iter().for_each(|role| objects.add_role(role.clone()));
        self.bindings.iter().for_each(|binding| objects.add_binding(binding.clone()));
        objects
    }
}

impl RbacRole {
    /// The role as an object. The selectors of an aggregated ClusterRole are not part of it.
    pub fn to_value(&self) -> Value {
        let rules: Vec<Value> = self.rules.iter().map(RbacRule::to_value).collect();
        json!({
            "apiVersion": API_VERSION,
            "kind": kind("Role", &self.namespace),
            "metadata": metadata(&self.name, &self.namespace),
            "rules": rules,
        })
    }
}

impl RbacBinding {
    /// The binding as an object.
    pub fn to_value(&self) -> Value {
        let subjects: Vec<Value> = self.subjects.iter().map(BindingSubject::to_value).collect();
        json!({
            "apiVersion": API_VERSION,
            "kind": kind("RoleBinding", &self.namespace),
            "metadata": metadata(&self.name, &self.namespace),
            "roleRef": {"apiGroup": GROUP, "kind": self.role.kind, "name": self.role.name},
            "subjects": subjects,
        })
    }
}

impl BindingSubject {
    fn to_value(&self) -> Value {
        let mut fields = Map::new();
        fields.insert("kind".to_owned(), self.kind.clone().into());
        fields.insert("name".to_owned(), self.name.clone().into());
        if self.kind == "ServiceAccount" {
            fields.insert("namespace".to_owned(), self.namespace.clone().into());
        } else {
            fields.insert("apiGroup".to_owned(), GROUP.into());
        }
        Value::Object(fields)
    }
}

fn kind(kind: &str, namespace: &str) -> String {
    if namespace.is_empty() { format!("Cluster{kind}") } else { kind.to_owned() }
}

fn metadata(name: &str, namespace: &str) -> Value {
    match namespace {
        "" => json!({"name": name}),
        _ => json!({"name": name, "namespace": namespace}),
    }
}
