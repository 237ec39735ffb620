//! Permissions of extensions: what the installer ServiceAccount of a ClusterExtension needs, what it lacks,
//! and which roles grant it.
//!
//! ```text
//! Roles, bindings ─► RbacObjects ─► GrantedRules ─┐
//! rendered objects ─► InstallManifest ────────────┴─► missing_permissions ─► MissingPermissions ─► condition
//!                       ├─► exact_installer ─► roles and bindings ─► YAML
//!                       ├─► RequiredPermissions ─► difference(old, new)
//!                       └─► approval_roles ─► labelled roles ─► unapproved_rules, split_by_approval
//! CSV, manifests ─► documented_installer_role (the procedure of the documentation, rule by rule)
//! CRDs ─► user_access_roles
//! ```
//!
//! The report is operator-controller's, byte for byte: other software reads it. Three faults of
//! operator-controller are mended: permissions that groups have count, the verb `escalate` in a namespace
//! counts, and missing rules come from the comparison of rules and not from the text of an error.
//!
//! All functions are pure. This crate reads no cluster, and writes no objects: the caller does both.

mod access;
mod approval;
mod covering;
mod difference;
mod granted;
mod installer;
mod kinds;
mod manifest;
mod preflight;
mod rbac_object;
mod report;
mod required;
mod rule;
mod text;

pub use access::user_access_roles;
pub use approval::{
    APPROVES_EXTENSION_LABEL, APPROVES_NAMESPACE_LABEL, approval_object, approval_roles,
    split_by_approval, unapproved_message, unapproved_rules,
};
pub use covering::{TooManyPermissions, compact_rules, missing_rules};
pub use difference::{PermissionDifference, difference};
pub use granted::{AccessRequest, GrantedRules, RbacSubject};
pub use installer::{
    DocumentedBundle, InstallerNames, InstallerObjects, documented_installer_role, exact_installer,
};
pub use kinds::{BundleKinds, KindResolver};
pub use manifest::{InstallManifest, ManifestError, UnknownKind};
pub use preflight::{MissingPermissions, missing_permissions};
pub use rbac_object::{
    BindingSubject, RbacBinding, RbacObjects, RbacRole, ReferencedRole, RoleReference,
};
pub use report::report_line;
pub use required::{ExtensionApplier, RequiredPermissions};
pub use rule::{RbacRule, ScopedRules};
pub use text::{describe_rules, to_yaml};
