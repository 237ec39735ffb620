//! The table of built-in kinds: which functions make up the strategy of each.

mod index;
mod table;

pub(super) use index::rules;

use super::rules::{self, Errors, walk_object};
use super::{
    Context, Metadata, api_services, check, core, groups, pods, services, signing, warnings,
    workloads,
};
use mainstay_object::{Object, Status, names};

type Default = fn(&mut Object);
type Create = fn(&mut Object, &Context<'_>) -> Result<(), Status>;
type Update = fn(&mut Object, &Object, &Context<'_>) -> Result<(), Status>;
type Check = fn(&Object, &mut Errors);
type CheckUpdate = fn(&Object, &Object, &mut Errors);
type Warn = fn(&Object, Option<&Object>) -> Vec<String>;

/// What is special about one built-in kind.
#[expect(clippy::struct_excessive_bools, reason = "columns of a table, each read on its own")]
pub(super) struct Rules {
    names: fn(&str) -> Vec<String>,
    generations: bool,
    keeps_status: bool,
    creates_on_update: bool,
    unconditional_update: bool,
    metadata: Metadata,
    fields: &'static [&'static str],
    default: Default,
    create: Create,
    update: Update,
    table: &'static [rules::Check],
    check: Check,
    /// What is checked on update; none means the same as on creation.
    check_update: Option<CheckUpdate>,
    check_status: CheckUpdate,
    warnings: Warn,
}

/// Nothing special.
const ORDINARY: Rules = Rules {
    names: names::dns1123_subdomain,
    generations: false,
    keeps_status: false,
    creates_on_update: false,
    unconditional_update: true,
    metadata: Metadata::Changes,
    fields: &[],
    default: |_| {},
    create: |_, _| Ok(()),
    update: |_, _, _| Ok(()),
    table: &[],
    check: |_, _| {},
    check_update: None,
    check_status: |_, _, _| {},
    warnings: |_, _| Vec::new(),
};

/// A kind whose changes of intent are counted.
const COUNTED: Rules = Rules { generations: true, ..ORDINARY };

/// A kind of the access group: names are path segments, and a PUT creates.
const ACCESS: Rules = Rules {
    names: names::path_segment,
    creates_on_update: true,
    metadata: Metadata::WholeThenChanges,
    ..ORDINARY
};

/// A kind that decides on what others write.
const ADMISSION: Rules =
    Rules { unconditional_update: false, metadata: Metadata::Whole, ..COUNTED };

macro_rules! rules {
    ($($name:ident = $rules:expr;)*) => { $(static $name: Rules = $rules;)* };
}

rules! {
    PLAIN = ORDINARY;
    PLAIN_COUNTED = COUNTED;
    ACCOUNT = Rules {
        metadata: Metadata::ChangesThenWhole,
        create: |object, _| {
 core::clean_account(object);
 Ok(())
 },
        update: |object, _, _| {
 core::clean_account(object);
 Ok(())
 },
        warnings: warnings::service_account,
        ..ORDINARY
    };
    NAMESPACE = Rules {
        names: names::dns1123_label,
        fields: &["status.phase"],
        metadata: Metadata::WholeThenChanges,
        default: core::default_namespace,
        create: |object, _| {
 core::create_namespace(object);
 Ok(())
 },
        table: check::NAMESPACE,
        check: check::pod_security,
        check_status: check::namespace_status,
        ..ORDINARY
    };
    NODE = Rules {
        keeps_status: true,
        fields: &["spec.unschedulable"],
        metadata: Metadata::WholeThenChanges,
        default: core::default_node,
        check: check::node,
        check_update: Some(check::node_update),
        check_status: check::node_changes,
        warnings: warnings::node,
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
        metadata: Metadata::ChangesThenWhole,
        default: pods::default_pod,
        create: pods::create_pod,
        update: pods::update_pod,
        check: check::pod,
        check_update: Some(check::pod_update),
        check_status: check::pod_status_update,
        warnings: warnings::pod,
        ..COUNTED
    };
    POD_TEMPLATE = Rules {
        default: pods::default_pod_template,
        create: |object, _| {
 pods::drop_disabled_in(object, &["template"]);
 Ok(())
 },
        update: |object, _, _| {
 pods::drop_disabled_in(object, &["template"]);
 Ok(())
 },
        table: check::POD_TEMPLATE,
        warnings: warnings::pod_template,
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
        check_update: Some(check::service_update),
        check_status: check::service_status,
        warnings: warnings::service,
        ..ORDINARY
    };
    SECRET = Rules {
        fields: &["type"],
        metadata: Metadata::ChangesThenWhole,
        default: core::default_secret,
        update: |object, old, _| {
 core::keep_type(object, old);
 Ok(())
 },
        check: check::secret,
        check_update: Some(check::secret_update),
        warnings: warnings::secret,
        ..ORDINARY
    };
    CONFIG_MAP = Rules {
        metadata: Metadata::ChangesThenWhole,
        check: check::config_map,
        check_update: Some(check::config_map_update),
        ..ORDINARY
    };
    EVENT = Rules {
        creates_on_update: true,
        metadata: Metadata::Common,
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
        ..ORDINARY
    };
    ENDPOINTS = Rules {
        creates_on_update: true,
        metadata: Metadata::ChangesThenWhole,
        default: core::default_endpoints,
        table: check::ENDPOINTS,
        check_update: Some(check::endpoints_update),
        warnings: warnings::endpoints,
        ..ORDINARY
    };
    REPLICATION_CONTROLLER = Rules {
        fields: &["status.replicas"],
        default: workloads::default_replication_controller,
        create: workloads::create_workload,
        update: workloads::update_workload,
        table: check::REPLICATION_CONTROLLER,
        check_status: check::replica_status,
        warnings: warnings::named_workload,
        ..COUNTED
    };
    VOLUME = Rules {
        metadata: Metadata::WholeTwice,
        default: core::default_volume,
        create: core::create_volume,
        table: check::VOLUME,
        check_update: Some(check::volume_update),
        warnings: warnings::volume,
        ..ORDINARY
    };
    VOLUME_CLAIM = Rules {
        metadata: Metadata::ChangesThenWhole,
        default: core::default_volume_claim,
        create: |object, _| {
 core::normalize_claim(object, None);
 Ok(())
 },
        update: |object, old, _| {
 core::normalize_claim(object, Some(old));
 Ok(())
 },
        table: check::CLAIM,
        check_update: Some(check::claim_update),
        warnings: warnings::claim,
        ..ORDINARY
    };
    QUOTA = Rules {
        default: core::default_quota,
        table: check::QUOTA,
        check_update: Some(check::quota_update),
        check_status: |object, _, errors| walk_object(object, &check::QUOTA[1..], errors),
        ..ORDINARY
    };
    LIMITS = Rules {
        creates_on_update: true,
        metadata: Metadata::Whole,
        default: core::default_limits,
        create: |object, _| {
 core::name_limits(object);
 Ok(())
 },
        table: check::LIMITS,
        ..ORDINARY
    };
    REVISION =
        Rules { table: check::REVISION, check_update: Some(check::revision_update), ..ORDINARY };

    DEPLOYMENT = Rules {
        default: workloads::default_deployment,
        create: workloads::create_workload,
        update: workloads::update_deployment,
        table: check::DEPLOYMENT,
        check_update: Some(check::deployment_update),
        check_status: check::deployment_status,
        warnings: warnings::named_workload,
        ..COUNTED
    };
    REPLICA_SET = Rules {
        default: workloads::default_replica_set,
        create: workloads::create_workload,
        update: workloads::update_workload,
        table: check::REPLICA_SET,
        check_update: Some(check::replica_set_update),
        check_status: check::replica_status,
        warnings: warnings::named_workload,
        ..COUNTED
    };
    STATEFUL_SET = Rules {
        names: names::dns1123_label,
        default: workloads::default_stateful_set,
        create: workloads::create_workload,
        update: workloads::update_workload,
        table: check::STATEFUL_SET,
        check_update: Some(check::stateful_set_update),
        check_status: check::stateful_set_status,
        warnings: warnings::stateful_set,
        ..COUNTED
    };
    DAEMON_SET = Rules {
        default: workloads::default_daemon_set,
        create: |object, context| {
 workloads::create_daemon_set(object);
 workloads::create_workload(object, context)
 },
        update: |object, old, context| {
 workloads::update_workload(object, old, context)?;
 workloads::update_daemon_set(object, old);
 Ok(())
 },
        table: check::DAEMON_SET,
        check_update: Some(check::daemon_set_update),
        check_status: check::daemon_set_status,
        warnings: warnings::workload,
        ..COUNTED
    };
    JOB = Rules {
        fields: &["status.successful"],
        metadata: Metadata::WholeThenChanges,
        default: workloads::default_job,
        create: |object, context| {
 workloads::create_job(object);
 workloads::create_workload(object, context)
 },
        update: workloads::update_workload,
        check: check::job,
        check_update: Some(|object, old, errors| {
 check::job(object, errors);
 check::job_update(object, old, errors);
 }),
        warnings: warnings::job,
        ..COUNTED
    };
    CRON_JOB = Rules {
        default: workloads::default_cron_job,
        create: workloads::create_cron_job,
        update: |object, _, context| workloads::create_cron_job(object, context),
        check: check::cron_job,
        check_update: Some(check::cron_job_update),
        warnings: warnings::cron_job,
        ..COUNTED
    };

    ROLE = Rules { default: groups::default_role, table: check::ROLE, ..ACCESS };
    CLUSTER_ROLE = Rules { default: groups::default_role, table: check::CLUSTER_ROLE, ..ACCESS };
    BINDING = Rules {
        default: groups::default_binding,
        table: check::BINDING,
        check_update: Some(check::binding_update),
        ..ACCESS
    };
    CLUSTER_BINDING = Rules {
        default: groups::default_binding,
        table: check::CLUSTER_BINDING,
        check_update: Some(check::cluster_binding_update),
        ..ACCESS
    };

    LEASE = Rules {
        creates_on_update: true,
        unconditional_update: false,
        create: core::create_lease,
        update: core::update_lease,
        table: check::LEASE,
        ..ORDINARY
    };
    DISRUPTION_BUDGET = Rules {
        names: names::path_segment,
        unconditional_update: false,
        metadata: Metadata::Common,
        default: groups::default_disruption_budget,
        table: check::DISRUPTION_BUDGET,
        check_status: check::disruption_budget_status,
        ..COUNTED
    };
    NETWORK_POLICY = Rules {
        metadata: Metadata::WholeThenChanges,
        default: groups::default_network_policy,
        table: check::NETWORK_POLICY,
        check_update: Some(|object, _, errors| {
 // As the original does: once as a new one, once as a changed one.
 walk_object(object, check::NETWORK_POLICY, errors);
 walk_object(object, check::NETWORK_POLICY, errors);
 }),
        warnings: warnings::network_policy,
        ..COUNTED
    };
    INGRESS = Rules {
        metadata: Metadata::ChangesThenWhole,
        default: groups::default_ingress,
        check: check::ingress,
        check_update: Some(|object, _, errors| walk_object(object, check::INGRESS, errors)),
        check_status: check::ingress_status,
        warnings: warnings::ingress,
        ..COUNTED
    };
    INGRESS_CLASS = Rules {
        metadata: Metadata::ChangesThenWhole,
        default: groups::default_ingress_class,
        table: check::INGRESS_CLASS,
        check_update: Some(check::ingress_class_update),
        ..COUNTED
    };
    IP_ADDRESS = Rules {
        names: rules::formats::strict_address,
        table: check::IP_ADDRESS,
        check_update: Some(check::ip_address_update),
        ..COUNTED
    };
    SERVICE_CIDR = Rules {
        table: check::SERVICE_CIDR,
        check_update: Some(check::service_cidr_update),
        ..COUNTED
    };
    PRIORITY_CLASS = Rules {
        default: groups::default_priority_class,
        create: groups::create_priority_class,
        check: check::priority_class,
        check_update: Some(check::priority_class_update),
        ..ORDINARY
    };
    VALIDATING_WEBHOOKS = Rules {
        default: groups::default_validating_webhooks,
        check: check::webhooks,
        check_update: Some(check::webhooks_update),
        ..ADMISSION
    };
    MUTATING_WEBHOOKS = Rules {
        default: groups::default_mutating_webhooks,
        check: check::webhooks,
        check_update: Some(check::webhooks_update),
        ..ADMISSION
    };
    VALIDATING_POLICY = Rules {
        default: groups::default_admission_policy,
        check: check::validating_policy,
        check_update: Some(check::validating_policy_update),
        ..ADMISSION
    };
    VALIDATING_BINDING = Rules {
        default: groups::default_policy_binding,
        table: check::POLICY_BINDING,
        check_update: Some(check::policy_binding_update),
        ..ADMISSION
    };
    MUTATING_POLICY = Rules {
        default: groups::default_admission_policy,
        check: check::mutating_policy,
        check_update: Some(check::mutating_policy_update),
        ..ADMISSION
    };
    MUTATING_BINDING = Rules {
        default: groups::default_policy_binding,
        check: check::mutating_binding,
        check_update: Some(check::mutating_binding_update),
        ..ADMISSION
    };
    STORAGE_CLASS = Rules {
        default: groups::default_storage_class,
        table: check::CLASSES,
        check_update: Some(check::class_update),
        warnings: warnings::storage_class,
        ..ORDINARY
    };
    ATTRIBUTES_CLASS = Rules {
        table: check::ATTRIBUTES_CLASS,
        check_update: Some(check::attributes_class_update),
        ..ORDINARY
    };
    STORAGE_DRIVER = Rules {
        unconditional_update: false,
        default: groups::default_storage_driver,
        table: check::DRIVER,
        check_update: Some(check::driver_update),
        warnings: groups::storage_driver_warnings,
        ..ORDINARY
    };
    STORAGE_NODE = Rules {
        unconditional_update: false,
        metadata: Metadata::Whole,
        table: check::CSI_NODE,
        ..ORDINARY
    };
    STORAGE_CAPACITY = Rules {
        unconditional_update: false,
        table: check::CAPACITY,
        check_update: Some(check::capacity_update),
        ..ORDINARY
    };
    CONDITIONAL = Rules { unconditional_update: false, ..ORDINARY };
    ENDPOINT_SLICE = Rules {
        metadata: Metadata::Whole,
        default: groups::default_endpoint_slice,
        create: groups::create_endpoint_slice,
        update: groups::update_endpoint_slice,
        check: check::slice,
        check_update: Some(check::slice_update),
        warnings: warnings::endpoint_slice,
        ..COUNTED
    };
    AUTOSCALER = Rules {
        default: groups::default_autoscaler,
        check: check::autoscaler,
        check_update: Some(check::autoscaler_update),
        check_status: check::autoscaler_status,
        ..ORDINARY
    };
    RUNTIME_CLASS = Rules {
        creates_on_update: true,
        unconditional_update: false,
        table: check::RUNTIME_CLASS,
        check_update: Some(check::runtime_class_update),
        warnings: warnings::runtime_class,
        ..ORDINARY
    };
    API_SERVICE = Rules {
        names: names::path_segment,
        unconditional_update: false,
        metadata: Metadata::ChangesThenWhole,
        default: groups::default_api_service,
        create: |object, context| {
            api_services::create(object, context);
            Ok(())
        },
        check: check::api_service,
        check_update: Some(check::api_service_update),
        check_status: check::api_service_status,
        ..ORDINARY
    };
    FLOW_SCHEMA = Rules {
        metadata: Metadata::Whole,
        default: check::default_flow_schema,
        check: check::flow_schema,
        check_update: Some(check::flow_schema_update),
        check_status: check::flow_status,
        ..COUNTED
    };
    PRIORITY_LEVEL = Rules {
        metadata: Metadata::Whole,
        default: check::default_priority_level,
        check: check::priority_level,
        check_update: Some(check::priority_level_update),
        check_status: check::flow_status,
        ..COUNTED
    };
    DEFINITION = Rules {
        unconditional_update: false,
        ..COUNTED
    };
    SIGNING_REQUEST = Rules {
        names: |_| Vec::new(),
        metadata: Metadata::WholeThenChanges,
        fields: &["spec.signerName"],
        default: groups::default_request,
        create: signing::create,
        update: signing::update,
        check: check::signing_request,
        check_update: Some(check::signing_request_update),
        check_status: check::signing_request_status,
        ..ORDINARY
    };
}
