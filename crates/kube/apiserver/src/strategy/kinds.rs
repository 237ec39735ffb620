//! The table of built-in kinds: which functions make up the strategy of each.

use super::check::{self, Errors};
use super::{Context, Strategy, core, groups, pods, services, workloads};
use mainstay_object::{FieldError, Object, Status, names};
use std::borrow::Cow;

type Default = fn(&mut Object);
type Create = fn(&mut Object, &Context<'_>) -> Result<(), Status>;
type Update = fn(&mut Object, &Object, &Context<'_>) -> Result<(), Status>;
type Check = fn(&Object, &mut Errors);
type CheckUpdate = fn(&Object, &Object, &mut Errors);

/// What is special about one built-in kind.
#[expect(clippy::struct_excessive_bools, reason = "columns of a table, each read on its own")]
pub(super) struct Rules {
    names: fn(&str) -> Vec<String>,
    generations: bool,
    keeps_status: bool,
    creates_on_update: bool,
    unconditional_update: bool,
    fields: &'static [&'static str],
    default: Default,
    create: Create,
    update: Update,
    check: Check,
    check_update: CheckUpdate,
    warnings: fn(&Object) -> Vec<String>,
}

/// Nothing special.
const ORDINARY: Rules = Rules {
    names: names::dns1123_subdomain,
    generations: false,
    keeps_status: false,
    creates_on_update: false,
    unconditional_update: true,
    fields: &[],
    default: |_| {},
    create: |_, _| Ok(()),
    update: |_, _, _| Ok(()),
    check: |_, _| {},
    check_update: |_, _, _| {},
    warnings: |_| Vec::new(),
};

/// A kind whose changes of intent are counted.
const COUNTED: Rules = Rules { generations: true, ..ORDINARY };

/// A kind of the access group: names are path segments, and a PUT creates.
const ACCESS: Rules = Rules { names: names::path_segment, creates_on_update: true, ..ORDINARY };

macro_rules! rules {
    ($($name:ident = $rules:expr;)*) => { $(static $name: Rules = $rules;)* };
}

rules! {
    PLAIN = ORDINARY;
    PLAIN_COUNTED = COUNTED;
    CONDITIONAL_COUNTED = Rules { unconditional_update: false, ..COUNTED };

    NAMESPACE = Rules {
        names: names::dns1123_label,
        fields: &["status.phase"],
        default: core::default_namespace,
        create: |object, _| {
 core::create_namespace(object);
 Ok(())
 },
        ..ORDINARY
    };
    NODE = Rules {
        keeps_status: true,
        fields: &["spec.unschedulable"],
        default: core::default_node,
        ..ORDINARY
    };
    POD = Rules {
        fields: &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
        default: pods::default_pod,
        create: pods::create_pod,
        update: pods::update_pod,
        check: check::pod,
        ..COUNTED
    };
    SERVICE = Rules {
        names: names::dns1035_label,
        creates_on_update: true,
        fields: &["spec.clusterIP", "spec.type"],
        default: services::default_service,
        create: services::create_service,
        update: services::update_service,
        check: check::service,
        check_update: check::service_update,
        ..ORDINARY
    };
    SECRET = Rules {
        fields: &["type"],
        default: core::default_secret,
        check: check::secret,
        check_update: check::secret_update,
        ..ORDINARY
    };
    CONFIG_MAP = Rules {
        check: check::config_map,
        check_update: check::config_map_update,
        ..ORDINARY
    };
    EVENT = Rules {
        creates_on_update: true,
        fields: &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        default: core::default_event,
        check: check::event,
        ..ORDINARY
    };
    ENDPOINTS = Rules {
        creates_on_update: true,
        default: core::default_endpoints,
        ..ORDINARY
    };
    REPLICATION_CONTROLLER = Rules {
        fields: &["status.replicas"],
        default: workloads::default_replication_controller,
        ..COUNTED
    };
    VOLUME = Rules { default: core::default_volume, ..ORDINARY };
    VOLUME_CLAIM = Rules {
        default: core::default_volume_claim,
        check: check::volume_claim,
        check_update: check::volume_claim_update,
        ..ORDINARY
    };
    QUOTA = Rules { default: core::default_quota, check: check::quota, ..ORDINARY };
    LIMITS = Rules { creates_on_update: true, default: core::default_limits, ..ORDINARY };

    DEPLOYMENT = Rules {
        default: workloads::default_deployment,
        check: check::deployment,
        check_update: check::selector_update,
        ..COUNTED
    };
    REPLICA_SET = Rules {
        default: workloads::default_replica_set,
        check: check::replica_set,
        check_update: check::selector_update,
        ..COUNTED
    };
    STATEFUL_SET = Rules {
        default: workloads::default_stateful_set,
        check: check::stateful_set,
        check_update: check::stateful_set_update,
        ..COUNTED
    };
    DAEMON_SET = Rules {
        default: workloads::default_daemon_set,
        create: |object, _| {
 workloads::create_daemon_set(object);
 Ok(())
 },
        update: |object, old, _| {
 workloads::update_daemon_set(object, old);
 Ok(())
 },
        check: check::daemon_set,
        check_update: check::selector_update,
        ..COUNTED
    };
    JOB = Rules {
        fields: &["status.successful"],
        default: workloads::default_job,
        create: |object, _| {
 workloads::create_job(object);
 Ok(())
 },
        check: check::job,
        check_update: check::job_update,
        ..COUNTED
    };
    CRON_JOB = Rules {
        default: workloads::default_cron_job,
        check: check::cron_job,
        ..COUNTED
    };

    ROLE = Rules { default: groups::default_role, check: check::role, ..ACCESS };
    CLUSTER_ROLE = Rules { default: groups::default_role, check: check::cluster_role, ..ACCESS };
    BINDING = Rules {
        default: groups::default_binding,
        check: check::binding,
        check_update: check::binding_update,
        ..ACCESS
    };
    CLUSTER_BINDING = Rules {
        default: groups::default_binding,
        check: check::cluster_binding,
        check_update: check::binding_update,
        ..ACCESS
    };

    LEASE = Rules {
        creates_on_update: true,
        unconditional_update: false,
        check: check::lease,
        ..ORDINARY
    };
    DISRUPTION_BUDGET = Rules {
        unconditional_update: false,
        default: groups::default_disruption_budget,
        check: check::disruption_budget,
        ..COUNTED
    };
    NETWORK_POLICY = Rules {
        default: groups::default_network_policy,
        check: check::network_policy,
        ..COUNTED
    };
    INGRESS = Rules { default: groups::default_ingress, check: check::ingress, ..COUNTED };
    INGRESS_CLASS = Rules { default: groups::default_ingress_class, ..COUNTED };
    PRIORITY_CLASS = Rules {
        default: groups::default_priority_class,
        check: check::priority_class,
        check_update: check::priority_class_update,
        ..COUNTED
    };
    VALIDATING_WEBHOOKS = Rules {
        unconditional_update: false,
        default: groups::default_validating_webhooks,
        check: check::webhooks,
        ..COUNTED
    };
    MUTATING_WEBHOOKS = Rules {
        unconditional_update: false,
        default: groups::default_mutating_webhooks,
        check: check::webhooks,
        ..COUNTED
    };
    STORAGE_CLASS =
        Rules { default: groups::default_storage_class, check: check::storage_class, ..ORDINARY };
    STORAGE_DRIVER = Rules {
        unconditional_update: false,
        default: groups::default_storage_driver,
        ..ORDINARY
    };
    CONDITIONAL = Rules { unconditional_update: false, ..ORDINARY };
    ENDPOINT_SLICE = Rules {
        default: groups::default_endpoint_slice,
        check: check::endpoint_slice,
        ..COUNTED
    };
    AUTOSCALER =
        Rules { default: groups::default_autoscaler, check: check::autoscaler, ..ORDINARY };
    RUNTIME_CLASS = Rules {
        creates_on_update: true,
        unconditional_update: false,
        check: check::runtime_class,
        ..ORDINARY
    };
    API_SERVICE = Rules {
        unconditional_update: false,
        default: groups::default_api_service,
        check: check::api_service,
        ..ORDINARY
    };
    DEFINITION = Rules {
        unconditional_update: false,
        warnings: groups::definition_warnings,
        ..COUNTED
    };
    SIGNING_REQUEST = Rules {
        names: names::path_segment,
        fields: &["spec.signerName"],
        default: groups::default_request,
        ..ORDINARY
    };
}

/// The rules of a built-in kind.
pub(super) fn rules(group: &str, kind: &str) -> &'static Rules {
    match (group, kind) {
        ("", "Namespace") => &NAMESPACE,
        ("", "Node") => &NODE,
        ("", "Pod") => &POD,
        ("", "Service") => &SERVICE,
        ("", "Secret") => &SECRET,
        ("", "ConfigMap") => &CONFIG_MAP,
        ("" | "events.k8s.io", "Event") => &EVENT,
        ("", "Endpoints") => &ENDPOINTS,
        ("", "ReplicationController") => &REPLICATION_CONTROLLER,
        ("", "PersistentVolume") => &VOLUME,
        ("", "PersistentVolumeClaim") => &VOLUME_CLAIM,
        ("", "ResourceQuota") => &QUOTA,
        ("", "LimitRange") => &LIMITS,
        ("apps", "Deployment") => &DEPLOYMENT,
        ("apps", "ReplicaSet") => &REPLICA_SET,
        ("apps", "StatefulSet") => &STATEFUL_SET,
        ("apps", "DaemonSet") => &DAEMON_SET,
        ("batch", "Job") => &JOB,
        ("batch", "CronJob") => &CRON_JOB,
        (groups::RBAC, "Role") => &ROLE,
        (groups::RBAC, "ClusterRole") => &CLUSTER_ROLE,
        (groups::RBAC, "RoleBinding") => &BINDING,
        (groups::RBAC, "ClusterRoleBinding") => &CLUSTER_BINDING,
        ("coordination.k8s.io", "Lease") => &LEASE,
        ("policy", "PodDisruptionBudget") => &DISRUPTION_BUDGET,
        ("networking.k8s.io", "NetworkPolicy") => &NETWORK_POLICY,
        ("networking.k8s.io", "Ingress") => &INGRESS,
        ("networking.k8s.io", "IngressClass") => &INGRESS_CLASS,
        ("scheduling.k8s.io", "PriorityClass") => &PRIORITY_CLASS,
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration") => &VALIDATING_WEBHOOKS,
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration") => &MUTATING_WEBHOOKS,
        ("admissionregistration.k8s.io", _) => &CONDITIONAL_COUNTED,
        ("storage.k8s.io", "StorageClass") => &STORAGE_CLASS,
        ("storage.k8s.io", "CSIDriver") => &STORAGE_DRIVER,
        ("storage.k8s.io", "CSINode" | "CSIStorageCapacity" | "VolumeAttachment") => &CONDITIONAL,
        ("discovery.k8s.io", "EndpointSlice") => &ENDPOINT_SLICE,
        ("autoscaling", "HorizontalPodAutoscaler") => &AUTOSCALER,
        ("node.k8s.io", "RuntimeClass") => &RUNTIME_CLASS,
        ("apiregistration.k8s.io", "APIService") => &API_SERVICE,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => &DEFINITION,
        ("certificates.k8s.io", "CertificateSigningRequest") => &SIGNING_REQUEST,
        ("", "PodTemplate") | ("flowcontrol.apiserver.k8s.io" | "resource.k8s.io", _) => {
            &PLAIN_COUNTED
        }
        _ => &PLAIN,
    }
}

impl Strategy for Rules {
    fn name_problems(&self, name: &str) -> Vec<String> {
        (self.names)(name)
    }

    fn counts_generations(&self) -> bool {
        self.generations
    }

    fn keeps_status_on_create(&self) -> bool {
        self.keeps_status
    }

    fn creates_on_update(&self) -> bool {
        self.creates_on_update
    }

    fn allows_unconditional_update(&self) -> bool {
        self.unconditional_update
    }

    fn default(&self, object: &mut Object) {
        (self.default)(object);
    }

    fn prepare_create(&self, object: &mut Object, context: &Context<'_>) -> Result<(), Status> {
        (self.create)(object, context)
    }

    fn prepare_update(
        &self,
        object: &mut Object,
        old: &Object,
        context: &Context<'_>,
    ) -> Result<(), Status> {
        (self.update)(object, old, context)
    }

    fn validate(&self, object: &Object, old: Option<&Object>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        (self.check)(object, &mut errors);
        if let Some(old) = old {
            (self.check_update)(object, old, &mut errors);
        }
        errors
    }

    fn warnings(&self, object: &Object) -> Vec<String> {
        (self.warnings)(object)
    }

    fn selectable_fields(&self) -> &'static [&'static str] {
        self.fields
    }

    fn field<'a>(&self, object: &'a Object, path: &str) -> Cow<'a, str> {
        selectable(object, path)
    }
}

/// The value of a field to select by. Most are where their path says; a few are computed, and
/// numbers and booleans that are absent read as Go's zero.
fn selectable<'a>(object: &'a Object, path: &str) -> Cow<'a, str> {
    match path {
        "spec.unschedulable" | "spec.hostNetwork" => {
            let segments: Vec<&str> = path.split('.').collect();
            Cow::Borrowed(if object.bool(&segments) == Some(true) { "true" } else { "false" })
        }
        "status.replicas" => {
            Cow::Owned(object.i64(&["status", "replicas"]).unwrap_or_default().to_string())
        }
        // How many pods of a job have succeeded.
        "status.successful" => {
            Cow::Owned(object.i64(&["status", "succeeded"]).unwrap_or_default().to_string())
        }
        "status.podIPs" => {
            let addresses = object.array(&["status", "podIPs"]);
            let texts = addresses.iter().filter_map(|one| one.get("ip")?.as_str());
            Cow::Owned(texts.collect::<Vec<_>>().join(","))
        }
        // Who reported an event, in the old field or the new one.
        "source" => {
            let source = object.str(&["source", "component"]).filter(|text| !text.is_empty());
            Cow::Borrowed(source.or(object.str(&["reportingComponent"])).unwrap_or_default())
        }
        _ => {
            let segments: Vec<&str> = path.split('.').collect();
            match object.get(&segments) {
                Some(serde_json::Value::String(text)) => Cow::Borrowed(text),
                Some(serde_json::Value::Null) | None => Cow::Borrowed(""),
                Some(other) => Cow::Owned(other.to_string()),
            }
        }
    }
}
