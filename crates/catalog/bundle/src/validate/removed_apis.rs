//! The validator `alpha-deprecated-apis`: APIs that Kubernetes 1.22, 1.25 and 1.26 removed.

use super::{
    LibraryVersion, ValidatorSettings,
    csv_fields::{gvk_of, items, texts},
    finding::{BadValue, ValidationFinding, field_path},
    load::LoadedBundle,
    object::permissions,
};
use crate::{go_field, manifest::Manifest};
use mainstay_gocompat::quote;
use mainstay_schema::gojson::ValuePathStep;
use mainstay_version::{Version, parse_tolerant};
use serde_json::Value;
use std::{collections::BTreeMap, fmt::Write};

/// Names of objects of removed APIs by kind, and the location of the first.
#[derive(Default)]
pub(crate) struct Uses {
    names: BTreeMap<String, Vec<String>>,
    first: Option<(usize, Vec<ValuePathStep>)>,
}

impl Uses {
    fn add(
        &mut self,
        kind: &str,
        name: impl Into<String>,
        manifest: usize,
        path: &[ValuePathStep],
    ) {
        self.names.entry(kind.to_owned()).or_default().push(name.into());
        self.first.get_or_insert_with(|| (manifest, path.to_vec()));
    }

    /// Whether there are no uses.
    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// `FileKind: (["name" "name"])`; of several, each has a comma behind it. Upstream has them in
    /// random order.
    pub(crate) fn text(&self) -> String {
        let comma = if self.names.len() > 1 { "," } else { "" };
        let kind = |(kind, names): (&String, &Vec<String>)| {
            format!("{kind}: ({}){comma}", quote_ascii_list(names))
        };
        self.names.iter().map(kind).collect()
    }

    /// Sets the location of a finding to that of the first use.
    pub(crate) fn locate(&self, finding: ValidationFinding) -> ValidationFinding {
        match &self.first {
            Some((manifest, path)) => finding.at(*manifest, path),
            None => finding,
        }
    }
}

/// A list of texts as `%+q` prints it: in quotes, in ASCII.
pub(crate) fn quote_ascii_list<T: AsRef<str>>(texts: &[T]) -> String {
    let one = |text: &T| {
        let mut out = String::new();
        for c in quote(text.as_ref()).chars() {
            match u32::from(c) {
                0..0x80 => out.push(c),
                // Writing to a text does not fail.
                code @ 0x80..0x1_0000 => _ = write!(out, "\\u{code:04x}"),
                code => _ = write!(out, "\\U{code:08x}"),
            }
        }
        out
    };
    format!("[{}]", texts.iter().map(one).collect::<Vec<_>>().join(" "))
}

/// Kinds that Kubernetes 1.22 removed.
const REMOVED_IN_22: &[(&str, &[&str])] = &[
    ("scheduling.k8s.io/v1beta1", &["PriorityClass"]),
    (
        "rbac.authorization.k8s.io/v1beta1",
        &["Role", "ClusterRoleBinding", "RoleBinding", "ClusterRole"],
    ),
    ("apiregistration.k8s.io/v1beta1", &["APIService"]),
    ("authentication.k8s.io/v1beta1", &["TokenReview"]),
    (
        "authorization.k8s.io/v1beta1",
        &["LocalSubjectAccessReview", "SelfSubjectAccessReview", "SubjectAccessReview"],
    ),
    (
        "admissionregistration.k8s.io/v1beta1",
        &["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"],
    ),
    ("coordination.k8s.io/v1beta1", &["Lease"]),
    ("extensions/v1beta1", &["Ingress"]),
    ("networking.k8s.io/v1beta1", &["Ingress", "IngressClass"]),
    ("storage.k8s.io/v1beta1", &["CSIDriver", "CSINode", "StorageClass", "VolumeAttachment"]),
    ("certificates.k8s.io/v1beta1", &["CertificateSigningRequest"]),
];

/// Kinds that Kubernetes 1.25 removed.
const REMOVED_IN_25: &[(&str, &[&str])] = &[
    ("batch/v1beta1", &["CronJob"]),
    ("discovery.k8s.io/v1beta1", &["EndpointSlice"]),
    ("events.k8s.io/v1beta1", &["Event"]),
    ("autoscaling/v2beta1", &["HorizontalPodAutoscaler"]),
    ("policy/v1beta1", &["PodDisruptionBudget", "PodSecurityPolicy"]),
    ("node.k8s.io/v1beta1", &["RuntimeClass"]),
];

/// Kinds that Kubernetes 1.26 removed.
const REMOVED_IN_26: &[(&str, &[&str])] = &[("autoscaling/v2beta2", &["HorizontalPodAutoscaler"])];

/// Resources, by group, whose permissions may concern removed APIs. Only the last is gone from its
/// group. The others have newer versions, and permissions name no version.
const POSSIBLY_REMOVED: &[(&str, &str)] = &[
    ("batch", "cronjobs"),
    ("discovery.k8s.io", "endpointslices"),
    ("events.k8s.io", "events"),
    ("autoscaling", "horizontalpodautoscalers"),
    ("policy", "poddisruptionbudgets"),
    ("node.k8s.io", "runtimeclasses"),
    ("policy", "podsecuritypolicies"),
];

fn lists(table: &[(&str, &[&str])], api_version: &str, kind: &str) -> bool {
    table.iter().any(|(version, kinds)| *version == api_version && kinds.contains(&kind))
}

/// Whether this validator lists the kind as removed.
pub(crate) fn is_removed(api_version: &str, kind: &str) -> bool {
    [REMOVED_IN_22, REMOVED_IN_25, REMOVED_IN_26]
        .iter()
        .any(|table| lists(table, api_version, kind))
}

/// Uses of APIs that Kubernetes 1.22 removed.
pub(crate) fn removed_in_22(subject: &LoadedBundle) -> Uses {
    let mut uses = Uses::default();
    for crd in subject.crds.iter().filter(|crd| !crd.v1) {
        let metadata = crd.value.get("metadata").unwrap_or(&Value::Null);
        uses.add("CRD", go_field::text(metadata, "name"), crd.manifest, &[]);
    }
    objects(subject, REMOVED_IN_22, &mut uses);
    uses
}

fn objects(subject: &LoadedBundle, table: &[(&str, &[&str])], uses: &mut Uses) {
    for (at, manifest) in subject.manifests.iter().enumerate() {
        if lists(table, manifest.api_version(), manifest.kind()) {
            uses.add(manifest.kind(), manifest.name(), at, &[]);
        }
    }
}

/// Uses of APIs that Kubernetes 1.25 removed, and permissions that may concern such APIs.
fn removed_in_25(subject: &LoadedBundle, library: LibraryVersion) -> (Uses, Uses) {
    let mut uses = Uses::default();
    let csv = subject.csv.0;
    let read = gvk_of(subject.manifests.get(csv).map_or(&Value::Null, Manifest::value));
    // The ClusterServiceVersion counts at the position of its file among the others.
    let is_v1alpha1 = read.group == "operators.coreos.com" && read.version == "v1alpha1";
    let mut csv_resources = Vec::new();
    for (at, manifest) in subject.manifests.iter().enumerate() {
        if at == csv && is_v1alpha1 {
            for (title, field) in [("Owned", "owned"), ("Required", "required")] {
                for (i, crd) in subject.resources(field).iter().enumerate() {
                    for (j, resource) in items(crd, "resources").iter().enumerate() {
                        let kind = go_field::text(resource, "kind");
                        csv_resources.push(format!("{}s", kind.to_lowercase()));
                        if lists(REMOVED_IN_25, go_field::text(resource, "version"), kind) {
                            let name = format!(
                                "ClusterServiceVersion.Spec.CustomResourceDefinitions.{title}[{i}].\
                                 Resource[{j}]"
                            );
                            let mut path =
                                field_path(&["spec", "customresourcedefinitions", field]);
                            path.push(ValuePathStep::Item(i));
                            uses.add(kind, name, at, &path);
                        }
                    }
                }
            }
        } else if lists(REMOVED_IN_25, manifest.api_version(), manifest.kind()) {
            uses.add(manifest.kind(), manifest.name(), at, &[]);
        }
    }
    let mut possible = Uses::default();
    let doubted = match library {
        LibraryVersion::V034 => POSSIBLY_REMOVED,
        LibraryVersion::V045 => &POSSIBLY_REMOVED[POSSIBLY_REMOVED.len() - 1..],
    };
    let titles = [("ClusterPermissions", "clusterPermissions"), ("Permissions", "permissions")];
    for (title, field) in titles.into_iter().filter(|_| is_v1alpha1) {
        for (i, j, rule) in permissions(subject, field) {
            for group in texts(rule, "apiGroups") {
                for resource in texts(rule, "resources") {
                    let pair = (group, resource);
                    if !doubted.contains(&pair)
                        || csv_resources.iter().any(|listed| listed == resource)
                    {
                        continue;
                    }
                    let name = format!(
                        "ClusterServiceVersion.Spec.InstallStrategy.StrategySpec.{title}[{i}].Rules[{j}]"
                    );
                    let mut path = field_path(&["spec", "install", "spec", field]);
                    path.push(ValuePathStep::Item(i));
                    possible.add(resource, name, csv, &path);
                }
            }
        }
    }
    (uses, possible)
}

/// The findings about removed APIs.
pub(crate) fn findings(
    subject: &LoadedBundle,
    settings: &ValidatorSettings,
) -> Vec<ValidationFinding> {
    let bad = || BadValue::Text(subject.csv_name().to_owned());
    let error = |detail: String| ValidationFinding::error("ValidationFailed", bad(), detail);
    let mut found = Vec::new();
    let wanted = settings.kubernetes.as_deref().unwrap_or_default();
    let minimum = go_field::text(subject.spec(), "minKubeVersion");
    let mut versions: Vec<Version> = Vec::new();
    if !wanted.is_empty() {
        if let Ok(version) = parse_tolerant(wanted) {
            versions.push(version);
        } else {
            let detail = format!("invalid value informed via the k8s key option : {wanted}");
            found.push(error(detail).with_remedy("give a version such as 1.25"));
        }
    }
    if !minimum.is_empty() {
        if let Ok(version) = parse_tolerant(minimum) {
            versions.push(version);
        } else {
            let detail = format!(
                "unable to use csv.Spec.MinKubeVersion to verify the CRD/Webhook apis because it has an \
                 invalid value: {minimum}"
            );
            let location = field_path(&["spec", "minKubeVersion"]);
            let finding = error(detail).at(subject.csv.0, &location);
            found.push(finding.with_remedy("write a version such as 1.25.0"));
        }
    }
    let (removed_in_25, possible) = removed_in_25(subject, settings.library);
    let mut in_26 = Uses::default();
    objects(subject, REMOVED_IN_26, &mut in_26);
    for (minor, uses, doubt) in [
        (22, removed_in_22(subject), false),
        (25, removed_in_25, false),
        (25, possible, true),
        (26, in_26, false),
    ] {
        if uses.is_empty() {
            continue;
        }
        let detail = format!(
            "this bundle is using APIs which were deprecated and removed in v1.{minor}. More info: \
             https://kubernetes.io/docs/reference/using-api/deprecation-guide/#v1-{minor}. Migrate the \
             API(s) for {}",
            uses.text()
        );
        let is_required = versions.iter().any(|version| *version >= Version::new(1, minor, 0));
        let finding = if is_required && !doubt {
            error(detail)
        } else {
            ValidationFinding::warning("ValidationFailed", bad(), detail)
        };
        found.push(uses.locate(finding).with_remedy("use the version of the API that followed"));
    }
    found
}
