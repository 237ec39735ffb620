//! Rows of the built-in kinds of Kubernetes 1.35, as discovery lists them.
//!
//! The order is that of a real server: by group priority, inside a group-version by plural. The rows
//! are written by hand and compared with a real server's aggregated discovery. The definitions of
//! the types are generated, see [`super::table`].

use mainstay_object::{Gvk, Resource, Scope};

/// A built-in kind, with all data for discovery and routing.
#[derive(Debug)]
pub struct BuiltinKind {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Version inside the group.
    pub version: &'static str,
    /// Kind in CamelCase.
    pub kind: &'static str,
    /// Plural, lower case: the segment of the URL.
    pub plural: &'static str,
    /// Singular, lower case.
    pub singular: &'static str,
    /// Short names, such as `po`.
    pub short_names: &'static [&'static str],
    /// Groups of resources that one name addresses, such as `all`.
    pub categories: &'static [&'static str],
    /// Whether objects live in namespaces.
    pub scope: Scope,
    /// Verbs, in discovery's (alphabetical) order. Without `list` nothing is stored.
    pub verbs: &'static [&'static str],
    /// Subresources, in discovery's (alphabetical) order.
    pub subresources: &'static [BuiltinSubresource],
    /// The store's name of the kind: `group/plural`, or the plural alone for the core group. Events of
    /// both groups are the same stored objects.
    pub storage: &'static str,
}

/// A subresource of a built-in kind.
#[derive(Debug)]
pub struct BuiltinSubresource {
    /// Name: the last segment of the URL.
    pub name: &'static str,
    /// Kind of its objects.
    pub kind: SubresourceKind,
    /// Verbs, in discovery's (alphabetical) order.
    pub verbs: &'static [&'static str],
}

/// The kind of a subresource's objects.
#[derive(Debug, PartialEq, Eq)]
pub enum SubresourceKind {
    /// The kind of the resource itself.
    Own,
    /// Another kind of the resource's own group-version.
    Sibling(&'static str),
    /// A kind of another group-version: group, version, kind.
    Foreign(&'static str, &'static str, &'static str),
}

impl BuiltinKind {
    /// Kind of lists: the kind and `List`, as for each built-in kind.
    pub fn list_kind(&self) -> String {
        format!("{}List", self.kind)
    }

    /// Group, version and kind.
    pub fn gvk(&self) -> Gvk {
        Gvk::new(self.group, self.version, self.kind)
    }

    /// The kind as clients address it.
    pub const fn resource(&self) -> Resource {
        match self.scope {
            Scope::Namespaced => {
                Resource::namespaced(self.group, self.version, self.kind, self.plural)
            }
            Scope::Cluster => Resource::cluster(self.group, self.version, self.kind, self.plural),
        }
    }

    /// Whether a verb is served.
    pub fn has_verb(&self, verb: &str) -> bool {
        self.verbs.contains(&verb)
    }

    /// The subresource of this name.
    pub fn subresource(&self, name: &str) -> Option<&'static BuiltinSubresource> {
        self.subresources.iter().find(|row| row.name == name)
    }

    const fn short(mut self, names: &'static [&'static str]) -> Self {
        self.short_names = names;
        self
    }

    const fn categories(mut self, names: &'static [&'static str]) -> Self {
        self.categories = names;
        self
    }

    const fn subresources(mut self, rows: &'static [BuiltinSubresource]) -> Self {
        self.subresources = rows;
        self
    }
}

impl BuiltinSubresource {
    /// Group, version and kind of the subresource of a given kind.
    pub fn gvk(&self, parent: &BuiltinKind) -> Gvk {
        match self.kind {
            SubresourceKind::Own => parent.gvk(),
            SubresourceKind::Sibling(kind) => Gvk::new(parent.group, parent.version, kind),
            SubresourceKind::Foreign(group, version, kind) => Gvk::new(group, version, kind),
        }
    }
}

const ALL: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const NO_COLLECTION_DELETE: &[&str] =
    &["create", "delete", "get", "list", "patch", "update", "watch"];
const CREATE: &[&str] = &["create"];
const READ: &[&str] = &["get", "list"];
const CHANGE: &[&str] = &["get", "patch", "update"];
const CONNECT: &[&str] = &["create", "get"];
const GET: &[&str] = &["get"];
const PROXY: &[&str] = &["create", "delete", "get", "patch", "update"];
const UPDATE: &[&str] = &["update"];

const STATUS: BuiltinSubresource = own("status", CHANGE);
const SCALE: BuiltinSubresource = foreign("scale", "autoscaling", "v1", "Scale", CHANGE);

const fn own(name: &'static str, verbs: &'static [&'static str]) -> BuiltinSubresource {
    BuiltinSubresource { name, kind: SubresourceKind::Own, verbs }
}

const fn sibling(
    name: &'static str,
    kind: &'static str,
    verbs: &'static [&'static str],
) -> BuiltinSubresource {
    BuiltinSubresource { name, kind: SubresourceKind::Sibling(kind), verbs }
}

const fn foreign(
    name: &'static str,
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    verbs: &'static [&'static str],
) -> BuiltinSubresource {
    BuiltinSubresource { name, kind: SubresourceKind::Foreign(group, version, kind), verbs }
}

#[derive(Clone, Copy)]
struct Names {
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
}

const fn names(kind: &'static str, plural: &'static str, singular: &'static str) -> Names {
    Names { kind, plural, singular }
}

const fn row(
    (group, version): (&'static str, &'static str),
    storage: &'static str,
    names: Names,
    scope: Scope,
    verbs: &'static [&'static str],
) -> BuiltinKind {
    BuiltinKind {
        group,
        version,
        kind: names.kind,
        plural: names.plural,
        singular: names.singular,
        short_names: &[],
        categories: &[],
        scope,
        verbs,
        subresources: &[],
        storage,
    }
}

const CORE: (&str, &str) = ("", "v1");
const APIREGISTRATION: (&str, &str) = ("apiregistration.k8s.io", "v1");
const APPS: (&str, &str) = ("apps", "v1");
const EVENTS: (&str, &str) = ("events.k8s.io", "v1");
const AUTHENTICATION: (&str, &str) = ("authentication.k8s.io", "v1");
const AUTHORIZATION: (&str, &str) = ("authorization.k8s.io", "v1");
const AUTOSCALING_V2: (&str, &str) = ("autoscaling", "v2");
const AUTOSCALING_V1: (&str, &str) = ("autoscaling", "v1");
const BATCH: (&str, &str) = ("batch", "v1");
const CERTIFICATES: (&str, &str) = ("certificates.k8s.io", "v1");
const NETWORKING: (&str, &str) = ("networking.k8s.io", "v1");
const POLICY: (&str, &str) = ("policy", "v1");
const RBAC: (&str, &str) = ("rbac.authorization.k8s.io", "v1");
const STORAGE: (&str, &str) = ("storage.k8s.io", "v1");
const ADMISSIONREGISTRATION: (&str, &str) = ("admissionregistration.k8s.io", "v1");
const APIEXTENSIONS: (&str, &str) = ("apiextensions.k8s.io", "v1");
const SCHEDULING: (&str, &str) = ("scheduling.k8s.io", "v1");
const COORDINATION: (&str, &str) = ("coordination.k8s.io", "v1");
const NODE: (&str, &str) = ("node.k8s.io", "v1");
const DISCOVERY: (&str, &str) = ("discovery.k8s.io", "v1");
const RESOURCE: (&str, &str) = ("resource.k8s.io", "v1");
const FLOWCONTROL: (&str, &str) = ("flowcontrol.apiserver.k8s.io", "v1");

/// All rows; see the module for their order. Not formatted by rustfmt, so that it reads as a table.
#[rustfmt::skip]
pub(super) static KINDS: &[BuiltinKind] = &[
    row(CORE, "bindings", names("Binding", "bindings", "binding"), Scope::Namespaced, CREATE),
    row(CORE, "componentstatuses", names("ComponentStatus", "componentstatuses", "componentstatus"), Scope::Cluster, READ)
        .short(&["cs"]),
    row(CORE, "configmaps", names("ConfigMap", "configmaps", "configmap"), Scope::Namespaced, ALL)
        .short(&["cm"]),
    row(CORE, "endpoints", names("Endpoints", "endpoints", "endpoints"), Scope::Namespaced, ALL)
        .short(&["ep"]),
    row(CORE, "events", names("Event", "events", "event"), Scope::Namespaced, ALL).short(&["ev"]),
    row(CORE, "limitranges", names("LimitRange", "limitranges", "limitrange"), Scope::Namespaced, ALL)
        .short(&["limits"]),
    row(CORE, "namespaces", names("Namespace", "namespaces", "namespace"), Scope::Cluster, NO_COLLECTION_DELETE)
        .short(&["ns"])
        .subresources(&[own("finalize", UPDATE), STATUS]),
    row(CORE, "nodes", names("Node", "nodes", "node"), Scope::Cluster, ALL)
        .short(&["no"])
        .subresources(&[sibling("proxy", "NodeProxyOptions", PROXY), STATUS]),
    row(CORE, "persistentvolumeclaims", names("PersistentVolumeClaim", "persistentvolumeclaims", "persistentvolumeclaim"), Scope::Namespaced, ALL)
        .short(&["pvc"])
        .subresources(&[STATUS]),
    row(CORE, "persistentvolumes", names("PersistentVolume", "persistentvolumes", "persistentvolume"), Scope::Cluster, ALL)
        .short(&["pv"])
        .subresources(&[STATUS]),
    row(CORE, "pods", names("Pod", "pods", "pod"), Scope::Namespaced, ALL)
        .short(&["po"])
        .categories(&["all"])
        .subresources(&[
            sibling("attach", "PodAttachOptions", CONNECT),
            sibling("binding", "Binding", CREATE),
            own("ephemeralcontainers", CHANGE),
            foreign("eviction", "policy", "v1", "Eviction", CREATE),
            sibling("exec", "PodExecOptions", CONNECT),
            own("log", GET),
            sibling("portforward", "PodPortForwardOptions", CONNECT),
            sibling("proxy", "PodProxyOptions", PROXY),
            own("resize", CHANGE),
            STATUS,
        ]),
    row(CORE, "podtemplates", names("PodTemplate", "podtemplates", "podtemplate"), Scope::Namespaced, ALL),
    row(CORE, "replicationcontrollers", names("ReplicationController", "replicationcontrollers", "replicationcontroller"), Scope::Namespaced, ALL)
        .short(&["rc"])
        .categories(&["all"])
        .subresources(&[SCALE, STATUS]),
    row(CORE, "resourcequotas", names("ResourceQuota", "resourcequotas", "resourcequota"), Scope::Namespaced, ALL)
        .short(&["quota"])
        .subresources(&[STATUS]),
    row(CORE, "secrets", names("Secret", "secrets", "secret"), Scope::Namespaced, ALL),
    row(CORE, "serviceaccounts", names("ServiceAccount", "serviceaccounts", "serviceaccount"), Scope::Namespaced, ALL)
        .short(&["sa"])
        .subresources(&[foreign("token", "authentication.k8s.io", "v1", "TokenRequest", CREATE)]),
    row(CORE, "services", names("Service", "services", "service"), Scope::Namespaced, ALL)
        .short(&["svc"])
        .categories(&["all"])
        .subresources(&[sibling("proxy", "ServiceProxyOptions", PROXY), STATUS]),
    row(APIREGISTRATION, "apiregistration.k8s.io/apiservices", names("APIService", "apiservices", "apiservice"), Scope::Cluster, ALL)
        .categories(&["api-extensions"])
        .subresources(&[STATUS]),
    row(APPS, "apps/controllerrevisions", names("ControllerRevision", "controllerrevisions", "controllerrevision"), Scope::Namespaced, ALL),
    row(APPS, "apps/daemonsets", names("DaemonSet", "daemonsets", "daemonset"), Scope::Namespaced, ALL)
        .short(&["ds"])
        .categories(&["all"])
        .subresources(&[STATUS]),
    row(APPS, "apps/deployments", names("Deployment", "deployments", "deployment"), Scope::Namespaced, ALL)
        .short(&["deploy"])
        .categories(&["all"])
        .subresources(&[SCALE, STATUS]),
    row(APPS, "apps/replicasets", names("ReplicaSet", "replicasets", "replicaset"), Scope::Namespaced, ALL)
        .short(&["rs"])
        .categories(&["all"])
        .subresources(&[SCALE, STATUS]),
    row(APPS, "apps/statefulsets", names("StatefulSet", "statefulsets", "statefulset"), Scope::Namespaced, ALL)
        .short(&["sts"])
        .categories(&["all"])
        .subresources(&[SCALE, STATUS]),
    row(EVENTS, "events", names("Event", "events", "event"), Scope::Namespaced, ALL).short(&["ev"]),
    row(AUTHENTICATION, "authentication.k8s.io/selfsubjectreviews", names("SelfSubjectReview", "selfsubjectreviews", "selfsubjectreview"), Scope::Cluster, CREATE),
    row(AUTHENTICATION, "authentication.k8s.io/tokenreviews", names("TokenReview", "tokenreviews", "tokenreview"), Scope::Cluster, CREATE),
    row(AUTHORIZATION, "authorization.k8s.io/localsubjectaccessreviews", names("LocalSubjectAccessReview", "localsubjectaccessreviews", "localsubjectaccessreview"), Scope::Namespaced, CREATE),
    row(AUTHORIZATION, "authorization.k8s.io/selfsubjectaccessreviews", names("SelfSubjectAccessReview", "selfsubjectaccessreviews", "selfsubjectaccessreview"), Scope::Cluster, CREATE),
    row(AUTHORIZATION, "authorization.k8s.io/selfsubjectrulesreviews", names("SelfSubjectRulesReview", "selfsubjectrulesreviews", "selfsubjectrulesreview"), Scope::Cluster, CREATE),
    row(AUTHORIZATION, "authorization.k8s.io/subjectaccessreviews", names("SubjectAccessReview", "subjectaccessreviews", "subjectaccessreview"), Scope::Cluster, CREATE),
    row(AUTOSCALING_V2, "autoscaling/horizontalpodautoscalers", names("HorizontalPodAutoscaler", "horizontalpodautoscalers", "horizontalpodautoscaler"), Scope::Namespaced, ALL)
        .short(&["hpa"])
        .categories(&["all"])
        .subresources(&[STATUS]),
    row(AUTOSCALING_V1, "autoscaling/horizontalpodautoscalers", names("HorizontalPodAutoscaler", "horizontalpodautoscalers", "horizontalpodautoscaler"), Scope::Namespaced, ALL)
        .short(&["hpa"])
        .categories(&["all"])
        .subresources(&[STATUS]),
    row(BATCH, "batch/cronjobs", names("CronJob", "cronjobs", "cronjob"), Scope::Namespaced, ALL)
        .short(&["cj"])
        .categories(&["all"])
        .subresources(&[STATUS]),
    row(BATCH, "batch/jobs", names("Job", "jobs", "job"), Scope::Namespaced, ALL)
        .categories(&["all"])
        .subresources(&[STATUS]),
    row(CERTIFICATES, "certificates.k8s.io/certificatesigningrequests", names("CertificateSigningRequest", "certificatesigningrequests", "certificatesigningrequest"), Scope::Cluster, ALL)
        .short(&["csr"])
        .subresources(&[own("approval", CHANGE), STATUS]),
    row(NETWORKING, "networking.k8s.io/ingressclasses", names("IngressClass", "ingressclasses", "ingressclass"), Scope::Cluster, ALL),
    row(NETWORKING, "networking.k8s.io/ingresses", names("Ingress", "ingresses", "ingress"), Scope::Namespaced, ALL)
        .short(&["ing"])
        .subresources(&[STATUS]),
    row(NETWORKING, "networking.k8s.io/ipaddresses", names("IPAddress", "ipaddresses", "ipaddress"), Scope::Cluster, ALL)
        .short(&["ip"]),
    row(NETWORKING, "networking.k8s.io/networkpolicies", names("NetworkPolicy", "networkpolicies", "networkpolicy"), Scope::Namespaced, ALL)
        .short(&["netpol"]),
    row(NETWORKING, "networking.k8s.io/servicecidrs", names("ServiceCIDR", "servicecidrs", "servicecidr"), Scope::Cluster, ALL)
        .subresources(&[STATUS]),
    row(POLICY, "policy/poddisruptionbudgets", names("PodDisruptionBudget", "poddisruptionbudgets", "poddisruptionbudget"), Scope::Namespaced, ALL)
        .short(&["pdb"])
        .subresources(&[STATUS]),
    row(RBAC, "rbac.authorization.k8s.io/clusterrolebindings", names("ClusterRoleBinding", "clusterrolebindings", "clusterrolebinding"), Scope::Cluster, ALL),
    row(RBAC, "rbac.authorization.k8s.io/clusterroles", names("ClusterRole", "clusterroles", "clusterrole"), Scope::Cluster, ALL),
    row(RBAC, "rbac.authorization.k8s.io/rolebindings", names("RoleBinding", "rolebindings", "rolebinding"), Scope::Namespaced, ALL),
    row(RBAC, "rbac.authorization.k8s.io/roles", names("Role", "roles", "role"), Scope::Namespaced, ALL),
    row(STORAGE, "storage.k8s.io/csidrivers", names("CSIDriver", "csidrivers", "csidriver"), Scope::Cluster, ALL),
    row(STORAGE, "storage.k8s.io/csinodes", names("CSINode", "csinodes", "csinode"), Scope::Cluster, ALL),
    row(STORAGE, "storage.k8s.io/csistoragecapacities", names("CSIStorageCapacity", "csistoragecapacities", "csistoragecapacity"), Scope::Namespaced, ALL),
    row(STORAGE, "storage.k8s.io/storageclasses", names("StorageClass", "storageclasses", "storageclass"), Scope::Cluster, ALL)
        .short(&["sc"]),
    row(STORAGE, "storage.k8s.io/volumeattachments", names("VolumeAttachment", "volumeattachments", "volumeattachment"), Scope::Cluster, ALL)
        .subresources(&[STATUS]),
    row(STORAGE, "storage.k8s.io/volumeattributesclasses", names("VolumeAttributesClass", "volumeattributesclasses", "volumeattributesclass"), Scope::Cluster, ALL)
        .short(&["vac"]),
    row(ADMISSIONREGISTRATION, "admissionregistration.k8s.io/mutatingwebhookconfigurations", names("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", "mutatingwebhookconfiguration"), Scope::Cluster, ALL)
        .categories(&["api-extensions"]),
    row(ADMISSIONREGISTRATION, "admissionregistration.k8s.io/validatingadmissionpolicies", names("ValidatingAdmissionPolicy", "validatingadmissionpolicies", "validatingadmissionpolicy"), Scope::Cluster, ALL)
        .categories(&["api-extensions"])
        .subresources(&[STATUS]),
    row(ADMISSIONREGISTRATION, "admissionregistration.k8s.io/validatingadmissionpolicybindings", names("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", "validatingadmissionpolicybinding"), Scope::Cluster, ALL)
        .categories(&["api-extensions"]),
    row(ADMISSIONREGISTRATION, "admissionregistration.k8s.io/validatingwebhookconfigurations", names("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", "validatingwebhookconfiguration"), Scope::Cluster, ALL)
        .categories(&["api-extensions"]),
    row(APIEXTENSIONS, "apiextensions.k8s.io/customresourcedefinitions", names("CustomResourceDefinition", "customresourcedefinitions", "customresourcedefinition"), Scope::Cluster, ALL)
        .short(&["crd", "crds"])
        .categories(&["api-extensions"])
        .subresources(&[STATUS]),
    row(SCHEDULING, "scheduling.k8s.io/priorityclasses", names("PriorityClass", "priorityclasses", "priorityclass"), Scope::Cluster, ALL)
        .short(&["pc"]),
    row(COORDINATION, "coordination.k8s.io/leases", names("Lease", "leases", "lease"), Scope::Namespaced, ALL),
    row(NODE, "node.k8s.io/runtimeclasses", names("RuntimeClass", "runtimeclasses", "runtimeclass"), Scope::Cluster, ALL),
    row(DISCOVERY, "discovery.k8s.io/endpointslices", names("EndpointSlice", "endpointslices", "endpointslice"), Scope::Namespaced, ALL),
    row(RESOURCE, "resource.k8s.io/deviceclasses", names("DeviceClass", "deviceclasses", "deviceclass"), Scope::Cluster, ALL),
    row(RESOURCE, "resource.k8s.io/resourceclaims", names("ResourceClaim", "resourceclaims", "resourceclaim"), Scope::Namespaced, ALL)
        .subresources(&[STATUS]),
    row(RESOURCE, "resource.k8s.io/resourceclaimtemplates", names("ResourceClaimTemplate", "resourceclaimtemplates", "resourceclaimtemplate"), Scope::Namespaced, ALL),
    row(RESOURCE, "resource.k8s.io/resourceslices", names("ResourceSlice", "resourceslices", "resourceslice"), Scope::Cluster, ALL),
    row(FLOWCONTROL, "flowcontrol.apiserver.k8s.io/flowschemas", names("FlowSchema", "flowschemas", "flowschema"), Scope::Cluster, ALL)
        .subresources(&[STATUS]),
    row(FLOWCONTROL, "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations", names("PriorityLevelConfiguration", "prioritylevelconfigurations", "prioritylevelconfiguration"), Scope::Cluster, ALL)
        .subresources(&[STATUS]),
];
