//! Preflight of permissions: what the account of an extension lacks, before anything is applied.
//!
//! ```text
//! objects ─► requests (get, create, list, …) ── allowed? ──────────────┐
//! roles, bindings ─► rules that they grant ── held, escalate, bind? ───┴─► MissingPermissions
//! ```
//!
//! All that is missing is reported at once. The API server would report one request at a time.

use crate::covering::{TooManyPermissions, check_limit, compact_rules, missing_rules};
use crate::granted::{AccessRequest, GrantedRules};
use crate::manifest::InstallManifest;
use crate::rbac_object::{GROUP, RbacBinding, RbacObjects, RbacRole, ReferencedRole};
use crate::report;
use crate::required::{ExtensionApplier, OBJECT_VERBS, OLM_GROUP, WATCH_VERBS};
use crate::rule::{RbacRule, ScopedRules};
use std::collections::{BTreeMap, BTreeSet};

/// What an account lacks for a manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MissingPermissions {
    /// The missing rules, sorted, by namespace; the empty namespace is the whole cluster.
    pub rules: Vec<ScopedRules>,
    /// Errors that make the rules incomplete, in upstream's words.
    pub evaluation_errors: Vec<String>,
}

impl MissingPermissions {
    /// Whether the account has all permissions.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.evaluation_errors.is_empty()
    }

    /// The message of the condition `Progressing`, in upstream's words; none if nothing is missing.
    pub fn condition_message(&self) -> Option<String> {
        let errors = (!self.evaluation_errors.is_empty()).then(|| {
            format!(
                "missing rules may be incomplete: failed to resolve or evaluate permissions: {}",
                self.evaluation_errors.join("\n")
            )
        });
        report::condition_message(&self.rules, errors.as_deref())
    }
}

/// What the account of an extension lacks to install a manifest.
///
/// `existing` are the roles of the cluster that bindings of the manifest may reference. A role of the
/// manifest replaces one of the cluster, as it is applied before the bindings.
///
/// # Errors
/// If the roles of the manifest have too many permissions to compare.
pub fn missing_permissions(
    manifest: &InstallManifest,
    extension: &str,
    applier: &ExtensionApplier,
    granted: &GrantedRules,
    existing: &RbacObjects,
) -> Result<MissingPermissions, TooManyPermissions> {
    let mut preflight =
        PermissionCheck { granted, missing: BTreeMap::new(), errors: BTreeSet::new(), parts: 0 };
    preflight.check_requests(manifest, extension, applier);
    for role in manifest.rbac.roles() {
        preflight.check_role(role)?;
    }
    for binding in manifest.rbac.bindings() {
        preflight.check_binding(binding, manifest, existing)?;
    }
    let rules = preflight
        .missing
        .into_iter()
        .map(|(namespace, rules)| ScopedRules { namespace, rules: compact_rules(rules) });
    Ok(MissingPermissions {
        rules: rules.collect(),
        evaluation_errors: preflight.errors.into_iter().collect(),
    })
}

/// The state of one check.
struct PermissionCheck<'a> {
    granted: &'a GrantedRules,
    /// The missing rules by namespace.
    missing: BTreeMap<String, Vec<RbacRule>>,
    errors: BTreeSet<String>,
    /// The number of single permissions that roles and bindings lack, which memory depends on.
    parts: usize,
}

impl PermissionCheck<'_> {
    /// Checks the requests of an applier.
    fn check_requests(
        &mut self,
        manifest: &InstallManifest,
        extension: &str,
        applier: &ExtensionApplier,
    ) {
        let mut kinds = BTreeSet::new();
        let mut namespaces = BTreeSet::new();
        for object in manifest.objects() {
            let (group, resource) = (&*object.resource.group, &*object.resource.plural);
            let (namespace, name) = (&*object.namespace, &*object.name);
            for verb in OBJECT_VERBS {
                self.check_request(&AccessRequest { verb, group, resource, namespace, name });
            }
            kinds.insert((group, resource));
            namespaces.insert((group, resource, namespace));
        }
        for (group, resource, namespace) in namespaces {
            let verb = "create";
            self.check_request(&AccessRequest { verb, group, resource, namespace, name: "" });
        }
        for (group, resource) in kinds.into_iter().filter(|_| applier.watches()) {
            for verb in WATCH_VERBS {
                let request = AccessRequest { verb, group, resource, namespace: "", name: "" };
                self.check_request(&request);
            }
        }
        let (resource, name) = applier.finalizers(extension);
        let request =
            AccessRequest { verb: "update", group: OLM_GROUP, resource, namespace: "", name };
        self.check_request(&request);
    }

    fn check_request(&mut self, request: &AccessRequest<'_>) {
        if self.granted.allow(request) {
            return;
        }
        let names = Some(request.name).filter(|name| !name.is_empty());
        let rule = RbacRule::of_resource(request.group, request.resource, &[request.verb]);
        self.add_missing(request.namespace, [rule.with_names(names)]);
    }

    fn add_missing(&mut self, namespace: &str, rules: impl IntoIterator<Item = RbacRule>) {
        self.missing.entry(namespace.to_owned()).or_default().extend(rules);
    }

    /// Checks that the account holds all that a role grants.
    fn check_role(&mut self, role: &RbacRole) -> Result<(), TooManyPermissions> {
        let resource = if role.namespace.is_empty() { "clusterroles" } else { "roles" };
        // A request to create an object has no name, so a name in the rule would not match.
        if self.granted.allow(&AccessRequest {
            verb: "escalate",
            group: GROUP,
            resource,
            namespace: &role.namespace,
            name: "",
        }) {
            return Ok(());
        }
        if role.is_aggregated {
            self.check_granted(&role.namespace, &all_permissions())?;
        }
        self.check_granted(&role.namespace, &role.rules)
    }

    /// Checks that the account holds all that the role of a binding grants.
    fn check_binding(
        &mut self,
        binding: &RbacBinding,
        manifest: &InstallManifest,
        existing: &RbacObjects,
    ) -> Result<(), TooManyPermissions> {
        let role = binding.referenced_role();
        let may_bind = self.granted.allow(&AccessRequest {
            verb: "bind",
            group: GROUP,
            resource: role.resource(),
            namespace: &binding.namespace,
            name: role.name(),
        });
        if may_bind && !matches!(role, ReferencedRole::Unsupported(_)) {
            return Ok(());
        }
        let found = manifest.rbac.find_role(&role).or_else(|| existing.find_role(&role));
        if let Some(found) = found {
            self.check_granted(&binding.namespace, &found.rules)?;
        } else {
            self.errors.insert(report::missing_role(&role));
        }
        Ok(())
    }

    /// Checks that the account holds the rules that a role or binding grants in a namespace.
    fn check_granted(
        &mut self,
        namespace: &str,
        rules: &[RbacRule],
    ) -> Result<(), TooManyPermissions> {
        let missing = missing_rules(&self.granted.in_namespace(namespace), rules)?;
        self.parts = self.parts.saturating_add(missing.len());
        check_limit(self.parts)?;
        if missing.is_empty() {
            return Ok(());
        }
        let unresolved: Vec<String> =
            self.granted.unresolved_in(namespace).map(report::missing_role).collect();
        match &*unresolved {
            [] => {}
            [one] => drop(self.errors.insert(format!("[{one}]"))),
            several => drop(self.errors.insert(format!("[[{}]]", several.join(", ")))),
        }
        self.add_missing(namespace, missing);
        Ok(())
    }
}

/// The rules that allow everything.
fn all_permissions() -> [RbacRule; 2] {
    let paths = RbacRule {
        verbs: vec!["*".to_owned()],
        non_resource_urls: vec!["*".to_owned()],
        ..RbacRule::default()
    };
    [RbacRule::of_resource("*", "*", &["*"]), paths]
}
