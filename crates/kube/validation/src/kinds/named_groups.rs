//! The kinds of groups other than the core group, `apps` and `batch`.

use super::super::rules::walk_object;
use super::super::{
    MetadataChecks, ResetFields, StatusMetadata, api_services, check, core, groups, rules, signing,
    warnings,
};
use super::{
    ADMISSION, DEFAULT, KindStrategy, RBAC, RETURNS_OBJECT, WITH_GENERATION, has_empty_list,
};
use mainstay_object::names;

strategies! {
    ROLE = KindStrategy { default: groups::default_role, field_rules: check::ROLE, ..RBAC };
    CLUSTER_ROLE = KindStrategy { default: groups::default_role, field_rules: check::CLUSTER_ROLE, ..RBAC };
    BINDING = KindStrategy {
        default: groups::default_binding,
        field_rules: check::BINDING,
        validate_update: Some(check::binding_update),
        ..RBAC
    };
    CLUSTER_BINDING = KindStrategy {
        default: groups::default_binding,
        field_rules: check::CLUSTER_BINDING,
        validate_update: Some(check::cluster_binding_update),
        ..RBAC
    };

    LEASE = KindStrategy {
        creates_on_update: true,
        unconditional_update: false,
        prepare_create: core::create_lease,
        prepare_update: core::update_lease,
        field_rules: check::LEASE,
        ..DEFAULT
    };
    DISRUPTION_BUDGET = KindStrategy {
        validate_name: names::path_segment,
        unconditional_update: false,
        metadata: MetadataChecks::Common,
        default: groups::default_disruption_budget,
        field_rules: check::DISRUPTION_BUDGET,
        validate_status: check::disruption_budget_status,
        ..WITH_GENERATION
    };
    NETWORK_POLICY = KindStrategy {
        // A stored NetworkPolicy has no empty list, and Kubernetes compares exactly.
        counts_as_change: |object| object.get(&["spec"]).is_some_and(has_empty_list),

        metadata: MetadataChecks::WholeThenChanges,
        default: groups::default_network_policy,
        field_rules: check::NETWORK_POLICY,
        validate_update: Some(|object, _, errors| {
            // Kubernetes validates an update twice: as a creation and as an update.
            walk_object(object, check::NETWORK_POLICY, errors);
            walk_object(object, check::NETWORK_POLICY, errors);
        }),
        warnings: warnings::network_policy,
        ..WITH_GENERATION
    };
    INGRESS = KindStrategy {
        storage_prefix: Some("ingress"),

        metadata: MetadataChecks::ChangesThenWhole,
        default: groups::default_ingress,
        validate: check::ingress,
        validate_update: Some(|object, _, errors| walk_object(object, check::INGRESS, errors)),
        validate_status: check::ingress_status,
        warnings: warnings::ingress,
        ..WITH_GENERATION
    };
    INGRESS_CLASS = KindStrategy {
        metadata: MetadataChecks::ChangesThenWhole,
        default: groups::default_ingress_class,
        field_rules: check::INGRESS_CLASS,
        validate_update: Some(check::ingress_class_update),
        ..WITH_GENERATION
    };
    IP_ADDRESS = KindStrategy {
        validate_name: rules::formats::strict_address,
        field_rules: check::IP_ADDRESS,
        validate_update: Some(check::ip_address_update),
        ..WITH_GENERATION
    };
    SERVICE_CIDR = KindStrategy {
        // The table of Kubernetes names a group that does not exist.
        reset_fields: |_| None,

        status_metadata: StatusMetadata::Unlisted,

        field_rules: check::SERVICE_CIDR,
        validate_update: Some(check::service_cidr_update),
        ..WITH_GENERATION
    };
    PRIORITY_CLASS = KindStrategy {
        default: groups::default_priority_class,
        prepare_create: groups::create_priority_class,
        validate: check::priority_class,
        validate_update: Some(check::priority_class_update),
        ..DEFAULT
    };
    VALIDATING_WEBHOOKS = KindStrategy {
        default: groups::default_validating_webhooks,
        validate: check::webhooks,
        validate_update: Some(check::webhooks_update),
        ..ADMISSION
    };
    MUTATING_WEBHOOKS = KindStrategy {
        default: groups::default_mutating_webhooks,
        validate: check::webhooks,
        validate_update: Some(check::webhooks_update),
        ..ADMISSION
    };
    VALIDATING_POLICY = KindStrategy {
        status_metadata: StatusMetadata::Unlisted,

        default: groups::default_admission_policy,
        validate: check::validating_policy,
        validate_update: Some(check::validating_policy_update),
        ..ADMISSION
    };
    VALIDATING_BINDING = KindStrategy {
        default: groups::default_policy_binding,
        field_rules: check::POLICY_BINDING,
        validate_update: Some(check::policy_binding_update),
        ..ADMISSION
    };
    MUTATING_POLICY = KindStrategy {
        default: groups::default_admission_policy,
        validate: check::mutating_policy,
        validate_update: Some(check::mutating_policy_update),
        ..ADMISSION
    };
    MUTATING_BINDING = KindStrategy {
        default: groups::default_policy_binding,
        validate: check::mutating_binding,
        validate_update: Some(check::mutating_binding_update),
        ..ADMISSION
    };
    STORAGE_CLASS = KindStrategy {
        deletion: RETURNS_OBJECT,

        default: groups::default_storage_class,
        field_rules: check::STORAGE_CLASS,
        validate_update: Some(check::class_update),
        warnings: warnings::storage_class,
        ..DEFAULT
    };
    ATTRIBUTES_CLASS = KindStrategy {
        deletion: RETURNS_OBJECT,

        field_rules: check::ATTRIBUTES_CLASS,
        validate_update: Some(check::attributes_class_update),
        ..DEFAULT
    };
    STORAGE_DRIVER = KindStrategy {
        deletion: RETURNS_OBJECT,

        unconditional_update: false,
        default: groups::default_storage_driver,
        field_rules: check::DRIVER,
        validate_update: Some(check::driver_update),
        warnings: groups::storage_driver_warnings,
        ..DEFAULT
    };
    STORAGE_NODE = KindStrategy {
        deletion: RETURNS_OBJECT,

        unconditional_update: false,
        metadata: MetadataChecks::Whole,
        field_rules: check::CSI_NODE,
        ..DEFAULT
    };
    STORAGE_CAPACITY = KindStrategy {
        unconditional_update: false,
        field_rules: check::CAPACITY,
        validate_update: Some(check::capacity_update),
        ..DEFAULT
    };
    VOLUME_ATTACHMENT = KindStrategy {
        unconditional_update: false,
        status_metadata: StatusMetadata::Unlisted,
        deletion: RETURNS_OBJECT,
        ..DEFAULT
    };
    DEVICE_CLASS = KindStrategy { deletion: RETURNS_OBJECT, ..WITH_GENERATION };
    RESOURCE_SLICE = KindStrategy {
        unknown_field: Some(|row, path| {
            let (version, kind) = (&row.api_version, &row.kind);
            format!("field label not supported for {version}, Kind={kind}: {path}")
        }),
        deletion: RETURNS_OBJECT,
        ..WITH_GENERATION
    };
    RESOURCE_CLAIM =
        KindStrategy { status_metadata: StatusMetadata::Unlisted, deletion: RETURNS_OBJECT, ..DEFAULT };
    CLAIM_TEMPLATE = KindStrategy { deletion: RETURNS_OBJECT, ..DEFAULT };
    ENDPOINT_SLICE = KindStrategy {
        metadata: MetadataChecks::Whole,
        default: groups::default_endpoint_slice,
        prepare_create: groups::create_endpoint_slice,
        prepare_update: groups::update_endpoint_slice,
        validate: check::slice,
        validate_update: Some(check::slice_update),
        warnings: warnings::endpoint_slice,
        ..WITH_GENERATION
    };
    AUTOSCALER = KindStrategy {
        default: groups::default_autoscaler,
        validate: check::autoscaler,
        validate_update: Some(check::autoscaler_update),
        validate_status: check::autoscaler_status,
        ..DEFAULT
    };
    RUNTIME_CLASS = KindStrategy {
        creates_on_update: true,
        unconditional_update: false,
        field_rules: check::RUNTIME_CLASS,
        validate_update: Some(check::runtime_class_update),
        warnings: warnings::runtime_class,
        ..DEFAULT
    };
    API_SERVICE = KindStrategy {
        status_metadata: StatusMetadata::Unlisted,

        validate_name: names::path_segment,
        unconditional_update: false,
        metadata: MetadataChecks::ChangesThenWhole,
        default: groups::default_api_service,
        prepare_create: |object, context| {
            api_services::prepare_create(object, context);
            Ok(())
        },
        validate: check::api_service,
        validate_update: Some(check::api_service_update),
        validate_status: check::api_service_status,
        ..DEFAULT
    };
    FLOW_SCHEMA = KindStrategy {
        status_metadata: StatusMetadata::None,
        // Tables list FlowSchemas by matching precedence.
        sort_table: |schemas| schemas.sort_by_key(|schema| schema.i64(&["spec", "matchingPrecedence"])),

        metadata: MetadataChecks::Whole,
        default: check::default_flow_schema,
        validate: check::flow_schema,
        validate_update: Some(check::flow_schema_update),
        validate_status: check::flow_status,
        ..WITH_GENERATION
    };
    PRIORITY_LEVEL = KindStrategy {
        status_metadata: StatusMetadata::None,

        metadata: MetadataChecks::Whole,
        default: check::default_priority_level,
        validate: check::priority_level,
        validate_update: Some(check::priority_level_update),
        validate_status: check::flow_status,
        ..WITH_GENERATION
    };
    DEFINITION = KindStrategy {
        reset_fields: |_| {
            Some(ResetFields { update: &["status"], status: &["spec", "metadata"] })
        },

        unconditional_update: false,
        ..WITH_GENERATION
    };
    SIGNING_REQUEST = KindStrategy {
        reset_fields: |_| {
            Some(ResetFields { update: &["spec", "status"], status: &["spec", "status.conditions"] })
        },

        kept_on_update: &[&["spec"]],

        validate_name: |_| Vec::new(),
        metadata: MetadataChecks::WholeThenChanges,
        selectable_fields: &["spec.signerName"],
        default: groups::default_request,
        prepare_create: signing::prepare_create,
        prepare_update: signing::prepare_update,
        validate: check::signing_request,
        validate_update: Some(check::signing_request_update),
        validate_status: check::signing_request_status,
        ..DEFAULT
    };
}
