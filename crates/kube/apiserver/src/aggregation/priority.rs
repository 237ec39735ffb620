//! Priorities of local groups and versions.

/// The priorities of a CRD's group and version.
pub(super) const CRD_PRIORITIES: (i64, i64) = (1000, 100);

/// The priorities of a built-in group and version.
pub(super) fn priorities(group: &str, version: &str) -> (i64, i64) {
    let of_group = match group {
        "" => return (18_000, 1),
        "apps" => 17_800,
        "events.k8s.io" => 17_750,
        "authentication.k8s.io" => 17_700,
        "authorization.k8s.io" => 17_600,
        "autoscaling" => 17_500,
        "batch" => 17_400,
        "certificates.k8s.io" => 17_300,
        "networking.k8s.io" => 17_200,
        "policy" => 17_100,
        "rbac.authorization.k8s.io" => 17_000,
        "storage.k8s.io" => 16_800,
        "admissionregistration.k8s.io" | "apiextensions.k8s.io" => 16_700,
        "scheduling.k8s.io" => 16_600,
        "coordination.k8s.io" => 16_500,
        "node.k8s.io" => 16_300,
        "discovery.k8s.io" | "resource.k8s.io" => 16_200,
        "flowcontrol.apiserver.k8s.io" => 16_100,
        _ => return CRD_PRIORITIES,
    };
    let of_version = match (group, version) {
        ("autoscaling", "v2") => 30,
        ("flowcontrol.apiserver.k8s.io" | "resource.k8s.io", _) => 21,
        _ => 15,
    };
    (of_group, of_version)
}
