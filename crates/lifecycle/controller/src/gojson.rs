//! Go JSON: values as the Go types of upstream encode them. Names of generated roles, hash labels and the
//! manifests inside InstallPlans derive from it. The types are those of [`mainstay_schema::builtin`].

use mainstay_schema::builtin::{self, TypeDefinition};
use serde_json::Value;

/// A Go type whose JSON form is part of names and hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoType {
    /// `operators.v1alpha1.ClusterServiceVersion`.
    ClusterServiceVersion,
    /// `apps.v1.DeploymentSpec`.
    DeploymentSpec,
    /// `core.v1.PodSpec`.
    PodSpec,
    /// `core.v1.ServiceSpec`.
    ServiceSpec,
    /// `core.v1.ServiceAccount`.
    ServiceAccount,
    /// `rbac.v1.Role`, which is also the form of `ClusterRole` without an aggregation rule.
    Role,
    /// `rbac.v1.RoleBinding`, which is also the form of `ClusterRoleBinding`.
    RoleBinding,
    /// `rbac.v1.PolicyRule`.
    PolicyRule,
    /// A list of `rbac.v1.PolicyRule`.
    PolicyRules,
    /// `rbac.v1.RoleRef`.
    RoleRef,
    /// A list of `rbac.v1.Subject`.
    Subjects,
    /// One entry of a strategy's permissions.
    Permission,
    /// `operators.v1alpha1.WebhookDescription`.
    WebhookDescription,
}

impl GoType {
    /// The name of the type, or of the items of the list, in [`builtin`].
    const fn name(self) -> &'static str {
        match self {
            Self::ClusterServiceVersion => {
                "operator-framework.api.pkg.operators.v1alpha1.ClusterServiceVersion"
            }
            Self::DeploymentSpec => "api.apps.v1.DeploymentSpec",
            Self::PodSpec => "api.core.v1.PodSpec",
            Self::ServiceSpec => "api.core.v1.ServiceSpec",
            Self::ServiceAccount => "api.core.v1.ServiceAccount",
            Self::Role => "api.rbac.v1.Role",
            Self::RoleBinding => "api.rbac.v1.RoleBinding",
            Self::PolicyRule | Self::PolicyRules => "api.rbac.v1.PolicyRule",
            Self::RoleRef => "api.rbac.v1.RoleRef",
            Self::Subjects => "api.rbac.v1.Subject",
            Self::Permission => {
                "operator-framework.api.pkg.operators.v1alpha1.StrategyDeploymentPermissions"
            }
            Self::WebhookDescription => {
                "operator-framework.api.pkg.operators.v1alpha1.WebhookDescription"
            }
        }
    }

    const fn is_list(self) -> bool {
        matches!(self, Self::PolicyRules | Self::Subjects)
    }

    /// The definition of the type in [`builtin`]. A test checks that each type has one.
    fn definition(self) -> Option<&'static TypeDefinition> {
        builtin::definition(self.name())
    }
}

/// The value as `json.Marshal` of Go encodes it for a type.
pub fn encode(ty: GoType, value: &Value) -> String {
    match ty.definition() {
        Some(definition) if ty.is_list() => mainstay_schema::gojson::encode_list(definition, value),
        Some(definition) => mainstay_schema::gojson::encode(definition, value),
        None => value.to_string(),
    }
}

/// The value after a round trip through the Go type: without unknown fields, with empty fields as Go
/// encodes them, and with canonical quantities.
pub fn normalize(ty: GoType, value: &Value) -> Value {
    serde_json::from_str(&encode(ty, value)).unwrap_or_else(|_| value.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use GoType::*;

    #[test]
    fn every_go_type_has_a_definition() {
        let all = [
            ClusterServiceVersion,
            DeploymentSpec,
            PodSpec,
            ServiceSpec,
            ServiceAccount,
            Role,
            RoleBinding,
            PolicyRule,
            PolicyRules,
            RoleRef,
            Subjects,
            Permission,
            WebhookDescription,
        ];
        for ty in all {
            assert!(ty.definition().is_some(), "{ty:?}");
        }
    }
}
