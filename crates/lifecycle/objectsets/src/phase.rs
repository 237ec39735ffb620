//! Phases of a ClusterObjectSet: which kinds are applied together, and in which order.
//!
//! The kind of an object decides its phase. A phase waits for the probes of the phase before, so
//! ServiceAccounts, configuration and CustomResourceDefinitions come before the Deployments that need them.
//! The order inside a phase is fixed, because the phases of two revisions are compared.

use mainstay_object::Object;

/// How many objects the API allows in a phase.
const MAX_PHASE_OBJECTS: usize = 50;

/// Phases in the order of their rollout, with the groups and kinds of their objects.
const PHASES: &[(&str, &[(&str, &str)])] = &[
    ("namespaces", &[("", "Namespace")]),
    (
        "policies",
        &[
            ("networking.k8s.io", "NetworkPolicy"),
            ("policy", "PodDisruptionBudget"),
            ("scheduling.k8s.io", "PriorityClass"),
        ],
    ),
    ("identity", &[("", "ServiceAccount")]),
    ("configuration", &[("", "Secret"), ("", "ConfigMap")]),
    (
        "storage",
        &[
            ("", "PersistentVolume"),
            ("", "PersistentVolumeClaim"),
            ("storage.k8s.io", "StorageClass"),
        ],
    ),
    ("crds", &[("apiextensions.k8s.io", "CustomResourceDefinition")]),
    (
        "roles",
        &[("rbac.authorization.k8s.io", "ClusterRole"), ("rbac.authorization.k8s.io", "Role")],
    ),
    (
        "bindings",
        &[
            ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
            ("rbac.authorization.k8s.io", "RoleBinding"),
        ],
    ),
    (
        "infrastructure",
        &[("", "Service"), ("cert-manager.io", "Issuer"), ("cert-manager.io", "Certificate")],
    ),
    (DEFAULT_PHASE, &[("apps", "Deployment")]),
    ("scaling", &[("autoscaling.k8s.io", "VerticalPodAutoscaler")]),
    (
        "publish",
        &[
            ("monitoring.coreos.com", "PrometheusRule"),
            ("monitoring.coreos.com", "ServiceMonitor"),
            ("monitoring.coreos.com", "PodMonitor"),
            ("networking.k8s.io", "Ingress"),
            ("route.openshift.io", "Route"),
            ("console.openshift.io", "ConsoleYAMLSample"),
            ("console.openshift.io", "ConsoleQuickStart"),
            ("console.openshift.io", "ConsoleCLIDownload"),
            ("console.openshift.io", "ConsoleLink"),
            ("console.openshift.io", "ConsolePlugin"),
        ],
    ),
    (
        "admission",
        &[
            ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
            ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
        ],
    ),
];

/// The phase of all kinds without one of their own.
const DEFAULT_PHASE: &str = "deploy";

/// A phase with its objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObjectPhase {
    /// Name.
    pub name: String,
    /// The objects, in the order in which they are applied.
    pub objects: Vec<Object>,
}

/// Whether a phase with more objects than the API allows is split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PhaseSplit {
    /// Never: the API refuses the ClusterObjectSet. Upstream behaves so.
    #[default]
    Never,
    /// Into `deploy`, `deploy-2` and so on, of at most 50 objects each. A later part waits for
    /// the probes of an earlier one.
    AtLimit,
}

/// The name of the phase for objects of a kind.
fn phase_of_kind(group: &str, kind: &str) -> &'static str {
    PHASES
        .iter()
        .find(|(_, kinds)| kinds.contains(&(group, kind)))
        .map_or(DEFAULT_PHASE, |(name, _)| name)
}

/// Objects in phases, without empty ones. The order of objects in a phase is that of group, version, kind,
/// namespace and name. Of equal objects one is left: a bundle may have the ServiceAccount of its Deployment also as
/// a manifest. Objects of the same name that differ stay, and the ClusterObjectSet is refused.
pub(crate) fn sort_into_phases(objects: Vec<Object>, split: PhaseSplit) -> Vec<ObjectPhase> {
    let mut phases: Vec<ObjectPhase> = PHASES
        .iter()
        .map(|(name, _)| ObjectPhase { name: (*name).to_owned(), objects: Vec::new() })
        .collect();
    for object in objects {
        let gvk = object.gvk();
        let name = phase_of_kind(&gvk.group, &gvk.kind);
        if let Some(phase) = phases.iter_mut().find(|phase| phase.name == name) {
            phase.objects.push(object);
        }
    }
    phases.retain(|phase| !phase.objects.is_empty());
    for phase in &mut phases {
        phase.objects.sort_by_cached_key(|object| {
            let gvk = object.gvk();
            let (namespace, name) = (object.namespace().to_owned(), object.name().to_owned());
            (gvk.group, gvk.version, gvk.kind, namespace, name)
        });
        phase.objects.dedup();
    }
    match split {
        PhaseSplit::Never => phases,
        PhaseSplit::AtLimit => phases.iter().flat_map(parts).collect(),
    }
}

fn parts(phase: &ObjectPhase) -> Vec<ObjectPhase> {
    let part = |(at, objects): (usize, &[Object])| ObjectPhase {
        name: match at {
            0 => phase.name.clone(),
            _ => format!("{}-{}", phase.name, at + 1),
        },
        objects: objects.to_vec(),
    };
    phase.objects.chunks(MAX_PHASE_OBJECTS).enumerate().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_object::Gvk;

    fn object(api_version: &str, kind: &str, namespace: &str, name: &str) -> Object {
        let mut object = Object::new(&Gvk::from_api_version(api_version, kind), name);
        if !namespace.is_empty() {
            object.set(&["metadata", "namespace"], namespace.into());
        }
        object
    }

    fn names(phases: &[ObjectPhase]) -> Vec<(&str, Vec<&str>)> {
        phases
            .iter()
            .map(|phase| (phase.name.as_str(), phase.objects.iter().map(Object::name).collect()))
            .collect()
    }

    #[test]
    fn kinds_come_in_the_order_of_their_phases_and_unknown_kinds_with_deployments() {
        let objects = vec![
            object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "m"),
            object("apps/v1", "Deployment", "n", "j"),
            object("example.com/v1", "Thing", "n", "k"),
            object("v1", "Service", "n", "i"),
            object("cert-manager.io/v1", "Certificate", "n", "h"),
            object("rbac.authorization.k8s.io/v1", "RoleBinding", "n", "g"),
            object("rbac.authorization.k8s.io/v1", "ClusterRole", "", "f"),
            object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "e"),
            object("v1", "ConfigMap", "n", "d"),
            object("v1", "ServiceAccount", "n", "c"),
            object("policy/v1", "PodDisruptionBudget", "n", "b"),
            object("v1", "Namespace", "", "a"),
            object("monitoring.coreos.com/v1", "ServiceMonitor", "n", "l"),
        ];
        let phases = sort_into_phases(objects, PhaseSplit::Never);
        // shows OLMV1-139
        assert_eq!(
            names(&phases),
            [
                ("namespaces", vec!["a"]),
                ("policies", vec!["b"]),
                ("identity", vec!["c"]),
                ("configuration", vec!["d"]),
                ("crds", vec!["e"]),
                ("roles", vec!["f"]),
                ("bindings", vec!["g"]),
                ("infrastructure", vec!["i", "h"]),
                ("deploy", vec!["j", "k"]),
                ("publish", vec!["l"]),
                ("admission", vec!["m"]),
            ]
        );
    }

    #[test]
    fn equal_objects_are_left_once_and_another_of_the_same_name_stays() {
        let account = object("v1", "ServiceAccount", "n", "a");
        let mut other = account.clone();
        other.set(&["automountServiceAccountToken"], false.into());
        let phases = sort_into_phases(vec![account.clone(), account.clone()], PhaseSplit::Never);
        assert_eq!(names(&phases), [("identity", vec!["a"])]);
        let phases = sort_into_phases(vec![account, other], PhaseSplit::Never);
        assert_eq!(names(&phases), [("identity", vec!["a", "a"])]);
    }

    #[test]
    fn objects_of_a_phase_are_sorted_by_group_version_kind_namespace_and_name() {
        let objects = vec![
            object("batch/v1beta1", "CronJob", "n", "g"),
            object("batch/v1", "Job", "n", "f"),
            object("v1", "Pod", "z", "d"),
            object("v1", "Pod", "a", "c"),
            object("v1", "Pod", "a", "b"),
            object("v1", "Endpoints", "z", "a"),
            object("apps/v1", "Deployment", "n", "e"),
        ];
        let phases = sort_into_phases(objects, PhaseSplit::Never);
        // shows OLMV1-139
        assert_eq!(names(&phases), [("deploy", vec!["a", "b", "c", "d", "e", "f", "g"])]);
    }

    #[test]
    fn a_phase_is_split_at_the_limit_of_the_api_only_if_wanted() {
        let maps: Vec<Object> =
            (0..101).map(|at| object("v1", "ConfigMap", "n", &format!("c{at:03}"))).collect();
        let sizes = |split| -> Vec<(String, usize)> {
            let phases = sort_into_phases(maps.clone(), split);
            phases.into_iter().map(|phase| (phase.name, phase.objects.len())).collect()
        };
        assert_eq!(sizes(PhaseSplit::Never), [("configuration".to_owned(), 101)]);
        let parts = [("configuration", 50), ("configuration-2", 50), ("configuration-3", 1)];
        assert_eq!(sizes(PhaseSplit::AtLimit), parts.map(|(name, size)| (name.to_owned(), size)));
        assert_eq!(sort_into_phases(Vec::new(), PhaseSplit::AtLimit), []);
    }
}
