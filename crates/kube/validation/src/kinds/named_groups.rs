//! The kinds of groups other than the core group, `apps` and `batch`.

use super::super::rules::walk_object;
use super::super::{
    MetadataChecks, ResetFields, StatusMetadata, api_services, check, core, groups, rules, signing,
    warnings,
};
use super::{ACCESS, ADMISSION, ANSWERS_OBJECT, COUNTED, ORDINARY, Rules, has_empty_list};
use mainstay_object::names;

rules! {
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
        metadata: MetadataChecks::Common,
        default: groups::default_disruption_budget,
        table: check::DISRUPTION_BUDGET,
        check_status: check::disruption_budget_status,
        ..COUNTED
    };
    NETWORK_POLICY = Rules {
        // No stored one has an empty list, and the original compares exactly.
        counts_as_change: |sent| sent.get(&["spec"]).is_some_and(has_empty_list),

        metadata: MetadataChecks::WholeThenChanges,
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
        storage_prefix: Some("ingress"),

        metadata: MetadataChecks::ChangesThenWhole,
        default: groups::default_ingress,
        check: check::ingress,
        check_update: Some(|object, _, errors| walk_object(object, check::INGRESS, errors)),
        check_status: check::ingress_status,
        warnings: warnings::ingress,
        ..COUNTED
    };
    INGRESS_CLASS = Rules {
        metadata: MetadataChecks::ChangesThenWhole,
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
        // The original's table names a group for it that does not exist.
        reset_fields: |_| None,

        status_metadata: StatusMetadata::Unlisted,

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
        status_metadata: StatusMetadata::Unlisted,

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
        deletion: ANSWERS_OBJECT,

        default: groups::default_storage_class,
        table: check::CLASSES,
        check_update: Some(check::class_update),
        warnings: warnings::storage_class,
        ..ORDINARY
    };
    ATTRIBUTES_CLASS = Rules {
        deletion: ANSWERS_OBJECT,

        table: check::ATTRIBUTES_CLASS,
        check_update: Some(check::attributes_class_update),
        ..ORDINARY
    };
    STORAGE_DRIVER = Rules {
        deletion: ANSWERS_OBJECT,

        unconditional_update: false,
        default: groups::default_storage_driver,
        table: check::DRIVER,
        check_update: Some(check::driver_update),
        warnings: groups::storage_driver_warnings,
        ..ORDINARY
    };
    STORAGE_NODE = Rules {
        deletion: ANSWERS_OBJECT,

        unconditional_update: false,
        metadata: MetadataChecks::Whole,
        table: check::CSI_NODE,
        ..ORDINARY
    };
    STORAGE_CAPACITY = Rules {
        unconditional_update: false,
        table: check::CAPACITY,
        check_update: Some(check::capacity_update),
        ..ORDINARY
    };
    VOLUME_ATTACHMENT = Rules {
        unconditional_update: false,
        status_metadata: StatusMetadata::Unlisted,
        deletion: ANSWERS_OBJECT,
        ..ORDINARY
    };
    DEVICE_CLASS = Rules { deletion: ANSWERS_OBJECT, ..COUNTED };
    RESOURCE_SLICE = Rules {
        unknown_field: Some(|row, path| {
            let (version, kind) = (&row.api_version, &row.kind);
            format!("field label not supported for {version}, Kind={kind}: {path}")
        }),
        deletion: ANSWERS_OBJECT,
        ..COUNTED
    };
    RESOURCE_CLAIM =
        Rules { status_metadata: StatusMetadata::Unlisted, deletion: ANSWERS_OBJECT, ..ORDINARY };
    CLAIM_TEMPLATE = Rules { deletion: ANSWERS_OBJECT, ..ORDINARY };
    ENDPOINT_SLICE = Rules {
        metadata: MetadataChecks::Whole,
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
        status_metadata: StatusMetadata::Unlisted,

        names: names::path_segment,
        unconditional_update: false,
        metadata: MetadataChecks::ChangesThenWhole,
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
        status_metadata: StatusMetadata::None,
        // They are asked in order of their precedence.
        sort_table: |schemas| schemas.sort_by_key(|schema| schema.i64(&["spec", "matchingPrecedence"])),

        metadata: MetadataChecks::Whole,
        default: check::default_flow_schema,
        check: check::flow_schema,
        check_update: Some(check::flow_schema_update),
        check_status: check::flow_status,
        ..COUNTED
    };
    PRIORITY_LEVEL = Rules {
        status_metadata: StatusMetadata::None,

        metadata: MetadataChecks::Whole,
        default: check::default_priority_level,
        check: check::priority_level,
        check_update: Some(check::priority_level_update),
        check_status: check::flow_status,
        ..COUNTED
    };
    DEFINITION = Rules {
        reset_fields: |_| {
            Some(ResetFields { update: &["status"], status: &["spec", "metadata"] })
        },

        unconditional_update: false,
        ..COUNTED
    };
    SIGNING_REQUEST = Rules {
        reset_fields: |_| {
            Some(ResetFields { update: &["spec", "status"], status: &["spec", "status.conditions"] })
        },

        kept_on_update: &[&["spec"]],

        names: |_| Vec::new(),
        metadata: MetadataChecks::WholeThenChanges,
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
