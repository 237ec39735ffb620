//! Required permissions: all that an account needs to install and keep the objects of a manifest.
//!
//! For each object `get`, `update`, `patch` and `delete`; for each kind `create`; with the Helm applier
//! also `list` and `watch` in the whole cluster. The account grants the rules of the bundle's roles, so it
//! needs them itself. A role that is not in the bundle needs the verb `bind` only.

use crate::manifest::{InstallManifest, ManifestObject};
use crate::rbac_object::{GROUP, ReferencedRole};
use crate::rule::{RbacRule, ScopedRules};
use std::collections::{BTreeMap, BTreeSet};

/// The API group of ClusterExtensions.
pub(crate) const OLM_GROUP: &str = "olm.operatorframework.io";

/// The verbs that an account needs on each object.
pub(crate) const OBJECT_VERBS: [&str; 4] = ["get", "update", "patch", "delete"];
/// The verbs that the Helm applier needs on each kind in the whole cluster.
pub(crate) const WATCH_VERBS: [&str; 2] = ["list", "watch"];

/// How a controller applies the objects of an extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExtensionApplier {
    /// With Helm: the account watches the kinds, and owns the objects through the ClusterExtension.
    Helm,
    /// With ClusterObjectSets, which own the objects.
    ObjectSets {
        /// The ClusterObjectSet that is to be created, such as `EXTENSION-1`.
        object_set: String,
    },
    /// With ClusterObjectSets, whose objects the account also watches.
    WatchedObjectSets,
}

impl ExtensionApplier {
    /// The resource and the name of the owner, whose finalizers the account must be able to update.
    pub(crate) fn finalizers<'a>(&'a self, extension: &'a str) -> (&'static str, &'a str) {
        match self {
            Self::Helm => ("clusterextensions/finalizers", extension),
            Self::ObjectSets { object_set } => ("clusterobjectsets/finalizers", object_set),
            // Each upgrade makes another set.
            Self::WatchedObjectSets => ("clusterobjectsets/finalizers", ""),
        }
    }

    /// Whether the account watches the kinds of its objects.
    pub(crate) fn watches(&self) -> bool {
        !matches!(self, Self::ObjectSets { .. })
    }
}

/// The permissions that an account needs for a manifest, by scope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequiredPermissions {
    /// The rules in the whole cluster.
    pub cluster: Vec<RbacRule>,
    /// The further rules in namespaces.
    pub namespaces: BTreeMap<String, Vec<RbacRule>>,
}

/// Resources in the order of the documentation; others follow in the order of their names.
const ORDER: [(&str, &str); 9] = [
    (GROUP, "clusterroles"),
    (GROUP, "clusterrolebindings"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("apps", "deployments"),
    ("", "serviceaccounts"),
    ("", "services"),
    ("", "configmaps"),
    (GROUP, "roles"),
    (GROUP, "rolebindings"),
];
/// The number of resources in [`ORDER`] that come before the copied rules.
const BEFORE_COPIED: usize = 3;

/// The objects of one resource by namespace.
type Names<'m> = BTreeMap<&'m str, BTreeSet<&'m str>>;

impl RequiredPermissions {
    /// The permissions for a manifest. The rules are exact: each names its objects.
    ///
    /// The finalizers of ClusterObjectSets are not limited to one: each upgrade makes another set.
    pub fn new(manifest: &InstallManifest, extension: &str, applier: &ExtensionApplier) -> Self {
        let mut required = Self::default();
        let (finalizers, owner) = applier.finalizers(extension);
        let finalizers = RbacRule::of_resource(OLM_GROUP, finalizers, &["update"]);
        let owner = matches!(applier, ExtensionApplier::Helm).then_some(owner);
        required.cluster.push(finalizers.with_names(owner));
        let resources = group_by_resource(manifest.objects());
        for ((rank, group, plural), names) in &resources {
            if *rank < BEFORE_COPIED {
                required.add_resource(group, plural, names, applier);
            }
        }
        required.add_granted(manifest);
        for ((rank, group, plural), names) in &resources {
            if *rank >= BEFORE_COPIED {
                required.add_resource(group, plural, names, applier);
            }
        }
        required
    }

    /// Adds what the objects of one resource need.
    fn add_resource(
        &mut self,
        group: &str,
        plural: &str,
        names: &Names<'_>,
        applier: &ExtensionApplier,
    ) {
        let is_cluster_scoped = names.keys().all(|namespace| namespace.is_empty());
        if applier.watches() && !is_cluster_scoped {
            self.add("", RbacRule::of_resource(group, plural, &WATCH_VERBS));
        }
        for (namespace, names) in names {
            let mut verbs = vec!["create"];
            if applier.watches() && is_cluster_scoped {
                verbs.extend(WATCH_VERBS);
            }
            self.add(namespace, RbacRule::of_resource(group, plural, &verbs));
            let rule = RbacRule::of_resource(group, plural, &OBJECT_VERBS);
            // An object without a name gets a generated one, so no name limits the rule.
            let names = names.iter().copied().filter(|_| !names.contains(""));
            self.add(namespace, rule.with_names(names));
        }
    }

    /// Adds what the roles and bindings of the manifest grant to others.
    fn add_granted(&mut self, manifest: &InstallManifest) {
        for role in manifest.rbac.roles() {
            for rule in &role.rules {
                self.add(&role.namespace, rule.clone());
            }
            if role.is_aggregated {
                self.add("", RbacRule::of_resource(GROUP, "clusterroles", &["escalate"]));
            }
        }
        for binding in manifest.rbac.bindings() {
            let reference = binding.referenced_role();
            // The rules of a role in the manifest are required already.
            let is_in_manifest = manifest.rbac.find_role(&reference).is_some();
            if is_in_manifest || matches!(reference, ReferencedRole::Unsupported(_)) {
                continue;
            }
            let rule = RbacRule::of_resource(GROUP, reference.resource(), &["bind"]);
            self.add(&binding.namespace, rule.with_names([reference.name()]));
        }
    }

    fn add(&mut self, namespace: &str, rule: RbacRule) {
        let rules = match namespace {
            "" => &mut self.cluster,
            namespace => self.namespaces.entry(namespace.to_owned()).or_default(),
        };
        rules.push(rule);
    }

    /// The rules by scope, the whole cluster first.
    pub fn scopes(&self) -> Vec<ScopedRules> {
        let scope = |namespace: &str, rules: &[RbacRule]| ScopedRules {
            namespace: namespace.to_owned(),
            rules: rules.to_vec(),
        };
        let namespaces = self.namespaces.iter().map(|(namespace, rules)| scope(namespace, rules));
        std::iter::once(scope("", &self.cluster)).chain(namespaces).collect()
    }

    /// All rules that apply in a namespace; empty means the whole cluster.
    pub(crate) fn in_namespace(&self, namespace: &str) -> Vec<&RbacRule> {
        self.cluster.iter().chain(self.namespaces.get(namespace).into_iter().flatten()).collect()
    }
}

/// The objects by rank, group and plural.
fn group_by_resource(objects: &[ManifestObject]) -> BTreeMap<(usize, &str, &str), Names<'_>> {
    let mut resources: BTreeMap<_, Names<'_>> = BTreeMap::new();
    for object in objects {
        let (group, plural) = (&*object.resource.group, &*object.resource.plural);
        let rank = ORDER.iter().position(|entry| *entry == (group, plural)).unwrap_or(ORDER.len());
        let names = resources.entry((rank, group, plural)).or_default();
        names.entry(&*object.namespace).or_default().insert(&*object.name);
    }
    resources
}
