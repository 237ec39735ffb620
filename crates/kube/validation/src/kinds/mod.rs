//! The table of built-in kinds: the functions of the strategy of each kind.

macro_rules! strategies {
    ($($name:ident = $strategy:expr;)*) => { $(pub(super) static $name: KindStrategy = $strategy;)* };
}

mod index;
mod named_groups;
mod table;

pub(super) use index::strategy;

use super::rules::{self, Errors, walk_object};
use super::{
    Context, Deletion, Dependents, KindRow, MetadataChecks, ResetFields, StatusMetadata, check,
    core, pods, services, warnings, workloads,
};
use mainstay_object::{Object, Status, names};
use serde_json::Value;

type DefaultFn = fn(&mut Object);
type PrepareCreateFn = fn(&mut Object, &Context<'_>) -> Result<(), Status>;
type PrepareUpdateFn = fn(&mut Object, &Object, &Context<'_>) -> Result<(), Status>;
type ValidateFn = fn(&Object, &mut Errors);
type ValidateUpdateFn = fn(&Object, &Object, &mut Errors);
type WarningsFn = fn(&Object, Option<&Object>) -> Vec<String>;

/// The strategy of one built-in kind.
#[expect(clippy::struct_excessive_bools, reason = "columns of a table, each read on its own")]
pub(super) struct KindStrategy {
    validate_name: fn(&str) -> Vec<String>,
    counts_generations: bool,
    keeps_status_on_create: bool,
    creates_on_update: bool,
    unconditional_update: bool,
    metadata: MetadataChecks,
    selectable_fields: &'static [&'static str],
    default: DefaultFn,
    prepare_create: PrepareCreateFn,
    prepare_update: PrepareUpdateFn,
    field_rules: &'static [rules::FieldRule],
    validate: ValidateFn,
    /// Validation of an update; none means that of a creation.
    validate_update: Option<ValidateUpdateFn>,
    validate_status: ValidateUpdateFn,
    warnings: WarningsFn,
    /// Older names of selectable fields, with the current names.
    field_aliases: &'static [(&'static str, &'static str)],
    unknown_field: Option<fn(&KindRow, &str) -> String>,
    status_metadata: StatusMetadata,
    /// Returns none if the kind resets no fields.
    reset_fields: fn(StatusMetadata) -> Option<ResetFields>,
    kept_on_update: &'static [&'static [&'static str]],
    counts_as_change: fn(&Object) -> bool,
    defaults_after_validation: bool,
    deletion: Deletion,
    deletion_mark: Option<DefaultFn>,
    holds_deletion: fn(&Object) -> bool,
    storage_prefix: Option<&'static str>,
    sort_table: fn(&mut [Object]),
}

/// The defaults of a strategy.
const DEFAULT: KindStrategy = KindStrategy {
    validate_name: names::dns1123_subdomain,
    counts_generations: false,
    keeps_status_on_create: false,
    creates_on_update: false,
    unconditional_update: true,
    metadata: MetadataChecks::Changes,
    selectable_fields: &[],
    default: |_| {},
    prepare_create: |_, _| Ok(()),
    prepare_update: |_, _, _| Ok(()),
    field_rules: &[],
    validate: |_, _| {},
    validate_update: None,
    validate_status: |_, _, _| {},
    warnings: |_, _| Vec::new(),
    field_aliases: &[],
    unknown_field: None,
    status_metadata: StatusMetadata::Free,
    reset_fields: |metadata| Some(ResetFields::for_status_metadata(metadata)),
    kept_on_update: &[],
    counts_as_change: |_| false,
    defaults_after_validation: false,
    deletion: Deletion::ORDINARY,
    deletion_mark: None,
    holds_deletion: |_| false,
    storage_prefix: None,
    sort_table: |_| {},
};

/// The deletion of a kind whose response is the deleted object.
const RETURNS_OBJECT: Deletion = Deletion { returns_object: true, ..Deletion::ORDINARY };

/// A kind that counts changes of its spec in `metadata.generation`.
const WITH_GENERATION: KindStrategy = KindStrategy { counts_generations: true, ..DEFAULT };

/// An RBAC kind: names are path segments, and a PUT creates.
const RBAC: KindStrategy = KindStrategy {
    validate_name: names::path_segment,
    creates_on_update: true,
    metadata: MetadataChecks::WholeThenChanges,
    ..DEFAULT
};

/// A kind that configures admission.
const ADMISSION: KindStrategy = KindStrategy {
    unconditional_update: false,
    metadata: MetadataChecks::Whole,
    ..WITH_GENERATION
};

/// Whether a value contains an empty list at any depth.
fn has_empty_list(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty() || items.iter().any(has_empty_list),
        Value::Object(fields) => fields.values().any(has_empty_list),
        _ => false,
    }
}

strategies! {
    OTHER = DEFAULT;
    ACCOUNT = KindStrategy {
        deletion: RETURNS_OBJECT,

        metadata: MetadataChecks::ChangesThenWhole,
        prepare_create: |object, _| {
            core::reduce_secret_references(object);
            Ok(())
        },
        prepare_update: |object, _, _| {
            core::reduce_secret_references(object);
            Ok(())
        },
        warnings: warnings::service_account,
        ..DEFAULT
    };
    NAMESPACE = KindStrategy {
        kept_on_update: &[&["spec", "finalizers"]],
        deletion_mark: Some(|object| object.set(&["status", "phase"], "Terminating".into())),
        holds_deletion: |object| !object.array(&["spec", "finalizers"]).is_empty(),

        validate_name: names::dns1123_label,
        selectable_fields: &["status.phase"],
        metadata: MetadataChecks::WholeThenChanges,
        default: core::default_namespace,
        prepare_create: |object, _| {
            core::create_namespace(object);
            Ok(())
        },
        field_rules: check::NAMESPACE,
        validate: check::pod_security,
        validate_status: check::namespace_status,
        ..DEFAULT
    };
    NODE = KindStrategy {
        storage_prefix: Some("minions"),

        keeps_status_on_create: true,
        selectable_fields: &["spec.unschedulable"],
        metadata: MetadataChecks::WholeThenChanges,
        default: core::default_node,
        validate: check::node,
        validate_update: Some(check::node_update),
        validate_status: check::node_changes,
        warnings: warnings::node,
        ..DEFAULT
    };
    POD = KindStrategy {
        field_aliases: &[("spec.host", "spec.nodeName")],
        status_metadata: StatusMetadata::NotOwners,
        deletion: Deletion { has_grace_period: true, ..RETURNS_OBJECT },

        selectable_fields: &[
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
        metadata: MetadataChecks::ChangesThenWhole,
        default: pods::default_pod,
        prepare_create: pods::create_pod,
        prepare_update: pods::update_pod,
        validate: check::pod,
        validate_update: Some(check::pod_update),
        validate_status: check::pod_status_update,
        warnings: warnings::pod,
        ..WITH_GENERATION
    };
    POD_TEMPLATE = KindStrategy {
        deletion: RETURNS_OBJECT,

        default: pods::default_pod_template,
        prepare_create: |object, _| {
            pods::drop_disabled_template_fields(object, &["template"]);
            Ok(())
        },
        prepare_update: |object, _, _| {
            pods::drop_disabled_template_fields(object, &["template"]);
            Ok(())
        },
        field_rules: check::POD_TEMPLATE,
        warnings: warnings::pod_template,
        ..WITH_GENERATION
    };
    SERVICE = KindStrategy {
        deletion: RETURNS_OBJECT,
        storage_prefix: Some("services/specs"),

        validate_name: names::dns1035_label,
        creates_on_update: true,
        selectable_fields: &["spec.clusterIP", "spec.type"],
        default: services::default_service,
        prepare_create: services::create_service,
        prepare_update: services::update_service,
        validate: check::service,
        validate_update: Some(check::service_update),
        validate_status: check::service_status,
        warnings: warnings::service,
        ..DEFAULT
    };
    SECRET = KindStrategy {
        selectable_fields: &["type"],
        metadata: MetadataChecks::ChangesThenWhole,
        default: core::default_secret,
        prepare_update: |object, old, _| {
            core::keep_secret_type(object, old);
            Ok(())
        },
        validate: check::secret,
        validate_update: Some(check::secret_update),
        warnings: warnings::secret,
        ..DEFAULT
    };
    CONFIG_MAP = KindStrategy {
        metadata: MetadataChecks::ChangesThenWhole,
        validate: check::config_map,
        validate_update: Some(check::config_map_update),
        ..DEFAULT
    };
    EVENT = KindStrategy {
        deletion: Deletion { dependents: Dependents::Ignored, ..Deletion::ORDINARY },

        creates_on_update: true,
        metadata: MetadataChecks::Common,
        selectable_fields: &[
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
        ..DEFAULT
    };
    ENDPOINTS = KindStrategy {
        storage_prefix: Some("services/endpoints"),

        creates_on_update: true,
        metadata: MetadataChecks::ChangesThenWhole,
        default: core::default_endpoints,
        field_rules: check::ENDPOINTS,
        validate_update: Some(check::endpoints_update),
        warnings: warnings::endpoints,
        ..DEFAULT
    };
    REPLICATION_CONTROLLER = KindStrategy {
        deletion: Deletion { dependents: Dependents::Orphaned, ..Deletion::ORDINARY },
        storage_prefix: Some("controllers"),

        selectable_fields: &["status.replicas"],
        default: workloads::default_replication_controller,
        prepare_create: workloads::create_workload,
        prepare_update: workloads::update_workload,
        field_rules: check::REPLICATION_CONTROLLER,
        validate_status: check::replica_status,
        warnings: warnings::named_workload,
        ..WITH_GENERATION
    };
    VOLUME = KindStrategy {
        deletion: RETURNS_OBJECT,

        metadata: MetadataChecks::WholeTwice,
        default: core::default_volume,
        prepare_create: core::create_volume,
        field_rules: check::VOLUME,
        validate_update: Some(check::volume_update),
        warnings: warnings::volume,
        ..DEFAULT
    };
    VOLUME_CLAIM = KindStrategy {
        deletion: RETURNS_OBJECT,

        metadata: MetadataChecks::ChangesThenWhole,
        default: core::default_volume_claim,
        prepare_create: |object, _| {
            core::normalize_claim(object, None);
            Ok(())
        },
        prepare_update: |object, old, _| {
            core::normalize_claim(object, Some(old));
            Ok(())
        },
        field_rules: check::CLAIM,
        validate_update: Some(check::claim_update),
        warnings: warnings::claim,
        ..DEFAULT
    };
    QUOTA = KindStrategy {
        deletion: RETURNS_OBJECT,

        default: core::default_quota,
        field_rules: check::QUOTA,
        validate_update: Some(check::quota_update),
        validate_status: |object, _, errors| walk_object(object, &check::QUOTA[1..], errors),
        ..DEFAULT
    };
    LIMITS = KindStrategy {
        creates_on_update: true,
        metadata: MetadataChecks::Whole,
        default: core::default_limits,
        prepare_create: |object, _| {
            core::generate_limit_range_name(object);
            Ok(())
        },
        field_rules: check::LIMITS,
        ..DEFAULT
    };
    REVISION =
        KindStrategy { field_rules: check::REVISION, validate_update: Some(check::revision_update), ..DEFAULT };

    DEPLOYMENT = KindStrategy {
        status_metadata: StatusMetadata::NotLabels,

        default: workloads::default_deployment,
        prepare_create: workloads::create_workload,
        prepare_update: workloads::update_deployment,
        field_rules: check::DEPLOYMENT,
        validate_update: Some(check::deployment_update),
        validate_status: check::deployment_status,
        warnings: warnings::named_workload,
        ..WITH_GENERATION
    };
    REPLICA_SET = KindStrategy {
        default: workloads::default_replica_set,
        prepare_create: workloads::create_workload,
        prepare_update: workloads::update_workload,
        field_rules: check::REPLICA_SET,
        validate_update: Some(check::replica_set_update),
        validate_status: check::replica_status,
        warnings: warnings::named_workload,
        ..WITH_GENERATION
    };
    STATEFUL_SET = KindStrategy {
        validate_name: names::dns1123_label,
        default: workloads::default_stateful_set,
        prepare_create: workloads::create_workload,
        prepare_update: workloads::update_workload,
        field_rules: check::STATEFUL_SET,
        validate_update: Some(check::stateful_set_update),
        validate_status: check::stateful_set_status,
        warnings: warnings::stateful_set,
        ..WITH_GENERATION
    };
    DAEMON_SET = KindStrategy {
        default: workloads::default_daemon_set,
        prepare_create: |object, context| {
            workloads::create_daemon_set(object);
            workloads::create_workload(object, context)
        },
        prepare_update: |object, old, context| {
            workloads::update_workload(object, old, context)?;
            workloads::update_daemon_set(object, old);
            Ok(())
        },
        field_rules: check::DAEMON_SET,
        validate_update: Some(check::daemon_set_update),
        validate_status: check::daemon_set_status,
        warnings: warnings::workload,
        ..WITH_GENERATION
    };
    JOB = KindStrategy {
        unknown_field: Some(|_, path| format!("field label {path:?} not supported for Job")),
        // A Job also gets the labels that its pod template got on creation; they are not validated.
        defaults_after_validation: true,
        deletion: Deletion {
            dependents: Dependents::Orphaned,
            warning: "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning",
            ..Deletion::ORDINARY
        },

        selectable_fields: &["status.successful"],
        metadata: MetadataChecks::WholeThenChanges,
        default: workloads::default_job,
        prepare_create: |object, context| {
            workloads::create_job(object);
            workloads::create_workload(object, context)
        },
        prepare_update: workloads::update_workload,
        validate: check::job,
        validate_update: Some(|object, old, errors| {
            check::job(object, errors);
            check::job_update(object, old, errors);
        }),
        warnings: warnings::job,
        ..WITH_GENERATION
    };
    CRON_JOB = KindStrategy {
        default: workloads::default_cron_job,
        prepare_create: workloads::create_cron_job,
        prepare_update: |object, _, context| workloads::create_cron_job(object, context),
        validate: check::cron_job,
        validate_update: Some(check::cron_job_update),
        warnings: warnings::cron_job,
        ..WITH_GENERATION
    };
}
