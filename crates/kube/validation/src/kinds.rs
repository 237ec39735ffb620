//! The table of built-in kinds: which functions make up the strategy of each.

macro_rules! rules {
    ($($name:ident = $rules:expr;)*) => { $(pub(super) static $name: Rules = $rules;)* };
}

mod index;
mod named_groups;
mod table;

pub(super) use index::rules;

use super::rules::{self, Errors, walk_object};
use super::{
    Context, Deletion, Dependents, KindRow, MetadataChecks, ResetFields, StatusMetadata, check,
    core, pods, services, warnings, workloads,
};
use mainstay_object::{Object, Status, names};
use serde_json::Value;

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
    metadata: MetadataChecks,
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
    /// Older names of fields, and what they are called now.
    field_aliases: &'static [(&'static str, &'static str)],
    unknown_field: Option<fn(&KindRow, &str) -> String>,
    status_metadata: StatusMetadata,
    /// None where the kind has no such rule.
    reset_fields: fn(StatusMetadata) -> Option<ResetFields>,
    kept_on_update: &'static [&'static [&'static str]],
    counts_as_change: fn(&Object) -> bool,
    defaults_after_validation: bool,
    deletion: Deletion,
    deletion_mark: Option<Default>,
    holds_deletion: fn(&Object) -> bool,
    storage_prefix: Option<&'static str>,
    sort_table: fn(&mut [Object]),
}

/// Nothing special.
const ORDINARY: Rules = Rules {
    names: names::dns1123_subdomain,
    generations: false,
    keeps_status: false,
    creates_on_update: false,
    unconditional_update: true,
    metadata: MetadataChecks::Changes,
    fields: &[],
    default: |_| {},
    create: |_, _| Ok(()),
    update: |_, _, _| Ok(()),
    table: &[],
    check: |_, _| {},
    check_update: None,
    check_status: |_, _, _| {},
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

/// The deletion of a kind that answers the object as it was.
const ANSWERS_OBJECT: Deletion = Deletion { returns_object: true, ..Deletion::ORDINARY };

/// A kind whose changes of intent are counted.
const COUNTED: Rules = Rules { generations: true, ..ORDINARY };

/// A kind of the access group: names are path segments, and a PUT creates.
const ACCESS: Rules = Rules {
    names: names::path_segment,
    creates_on_update: true,
    metadata: MetadataChecks::WholeThenChanges,
    ..ORDINARY
};

/// A kind that decides on what others write.
const ADMISSION: Rules =
    Rules { unconditional_update: false, metadata: MetadataChecks::Whole, ..COUNTED };

/// Whether an empty list stands anywhere in a value.
fn has_empty_list(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty() || items.iter().any(has_empty_list),
        Value::Object(fields) => fields.values().any(has_empty_list),
        _ => false,
    }
}

rules! {
    PLAIN = ORDINARY;
    ACCOUNT = Rules {
        deletion: ANSWERS_OBJECT,

        metadata: MetadataChecks::ChangesThenWhole,
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
        kept_on_update: &[&["spec", "finalizers"]],
        deletion_mark: Some(|object| object.set(&["status", "phase"], "Terminating".into())),
        holds_deletion: |object| !object.array(&["spec", "finalizers"]).is_empty(),

        names: names::dns1123_label,
        fields: &["status.phase"],
        metadata: MetadataChecks::WholeThenChanges,
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
        storage_prefix: Some("minions"),

        keeps_status: true,
        fields: &["spec.unschedulable"],
        metadata: MetadataChecks::WholeThenChanges,
        default: core::default_node,
        check: check::node,
        check_update: Some(check::node_update),
        check_status: check::node_changes,
        warnings: warnings::node,
        ..ORDINARY
    };
    POD = Rules {
        field_aliases: &[("spec.host", "spec.nodeName")],
        status_metadata: StatusMetadata::NotOwners,
        deletion: Deletion { has_grace_period: true, ..ANSWERS_OBJECT },

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
        metadata: MetadataChecks::ChangesThenWhole,
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
        deletion: ANSWERS_OBJECT,

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
        deletion: ANSWERS_OBJECT,
        storage_prefix: Some("services/specs"),

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
        metadata: MetadataChecks::ChangesThenWhole,
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
        metadata: MetadataChecks::ChangesThenWhole,
        check: check::config_map,
        check_update: Some(check::config_map_update),
        ..ORDINARY
    };
    EVENT = Rules {
        deletion: Deletion { dependents: Dependents::Ignored, ..Deletion::ORDINARY },

        creates_on_update: true,
        metadata: MetadataChecks::Common,
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
        storage_prefix: Some("services/endpoints"),

        creates_on_update: true,
        metadata: MetadataChecks::ChangesThenWhole,
        default: core::default_endpoints,
        table: check::ENDPOINTS,
        check_update: Some(check::endpoints_update),
        warnings: warnings::endpoints,
        ..ORDINARY
    };
    REPLICATION_CONTROLLER = Rules {
        deletion: Deletion { dependents: Dependents::Orphaned, ..Deletion::ORDINARY },
        storage_prefix: Some("controllers"),

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
        deletion: ANSWERS_OBJECT,

        metadata: MetadataChecks::WholeTwice,
        default: core::default_volume,
        create: core::create_volume,
        table: check::VOLUME,
        check_update: Some(check::volume_update),
        warnings: warnings::volume,
        ..ORDINARY
    };
    VOLUME_CLAIM = Rules {
        deletion: ANSWERS_OBJECT,

        metadata: MetadataChecks::ChangesThenWhole,
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
        deletion: ANSWERS_OBJECT,

        default: core::default_quota,
        table: check::QUOTA,
        check_update: Some(check::quota_update),
        check_status: |object, _, errors| walk_object(object, &check::QUOTA[1..], errors),
        ..ORDINARY
    };
    LIMITS = Rules {
        creates_on_update: true,
        metadata: MetadataChecks::Whole,
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
        status_metadata: StatusMetadata::NotLabels,

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
        unknown_field: Some(|_, path| format!("field label {path:?} not supported for Job")),
        // The labels that its pods were given on creation are its own too, but nobody judges them.
        defaults_after_validation: true,
        deletion: Deletion {
            dependents: Dependents::Orphaned,
            warning: "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning",
            ..Deletion::ORDINARY
        },

        fields: &["status.successful"],
        metadata: MetadataChecks::WholeThenChanges,
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
}
