//! The ClusterExtension that replaces a Subscription.

use crate::checks::Acknowledgements;
use crate::freeze::original_spec;
use crate::installed::{ClassicOperator, reference};
use crate::names::{
    ACKNOWLEDGED_PREFIX, MIGRATED_FROM_CSV, MIGRATED_FROM_SUBSCRIPTION, OPERATOR_GROUP_BACKUP,
    SUBSCRIPTION_BACKUP, UNFINISHED,
};
use crate::offers::{CatalogOffer, OfferedBundle, PackageOffer};
use mainstay_api::names::olm_v1::CATALOG_NAME_LABEL;
use mainstay_api::resources::CLUSTER_EXTENSION;
use mainstay_object::Object;
use serde_json::{Value, json};

/// What a ClusterExtension is made from.
#[derive(Clone, Copy, Debug)]
pub struct ExtensionInput<'a> {
    /// The operator.
    pub operator: ClassicOperator<'a>,
    /// The OperatorGroup of its namespace.
    pub group: Option<&'a Object>,
    /// The catalog that has the installed bundle, its package and the bundle.
    pub offer: (&'a CatalogOffer, &'a PackageOffer, &'a OfferedBundle),
    /// The name of the ClusterExtension.
    pub name: &'a str,
    /// The ServiceAccount, for versions of OLM v1 that demand one; else empty.
    pub service_account: &'a str,
    /// What was acknowledged.
    pub acknowledged: &'a Acknowledgements,
}

/// The ClusterExtension of an operator, pinned to the installed version, so that nothing moves.
///
/// The channel is that of the Subscription, or the default channel of the package, because OLM v1 has none.
/// Annotations have what a rollback needs.
pub fn extension(input: &ExtensionInput<'_>) -> Object {
    let ExtensionInput { operator, group, offer: (catalog, package, bundle), .. } = *input;
    let subscription = operator.subscription;
    let mut extension = Object::new(&CLUSTER_EXTENSION.gvk(), input.name);
    extension.set_annotation(MIGRATED_FROM_SUBSCRIPTION, reference(subscription));
    extension.set_annotation(MIGRATED_FROM_CSV, operator.csv.name());
    extension.set_annotation(UNFINISHED, "true");
    let spec = original_spec(subscription);
    extension.set_annotation(SUBSCRIPTION_BACKUP, spec.to_string());
    if let Some(group) = group {
        let spec = group.get(&["spec"]).cloned().unwrap_or_else(|| json!({}));
        let backup = json!({"name": group.name(), "spec": spec});
        extension.set_annotation(OPERATOR_GROUP_BACKUP, backup.to_string());
    }
    for flag in input.acknowledged {
        extension.set_annotation(&format!("{ACKNOWLEDGED_PREFIX}{}", flag.name()), "true");
    }
    let channel = match subscription.str(&["spec", "channel"]).unwrap_or_default() {
        "" => &*package.default_channel,
        channel => channel,
    };
    let mut source = json!({
        "packageName": operator.package(),
        "version": bundle.version,
        "selector": {"matchLabels": {CATALOG_NAME_LABEL: catalog.catalog}},
    });
    if !channel.is_empty() {
        source["channels"] = json!([channel]);
    }
    let mut spec = json!({
        "namespace": operator.namespace(),
        "source": {"sourceType": "Catalog", "catalog": source},
    });
    if !input.service_account.is_empty() {
        spec["serviceAccount"] = json!({"name": input.service_account});
    }
    if let Some(config) = deployment_config(subscription) {
        let inline = json!({"deploymentConfig": config});
        spec["config"] = json!({"configType": "Inline", "inline": inline});
    }
    extension.set(&["spec"], spec);
    extension
}

/// `spec.config` of a Subscription as `deploymentConfig`; none if it is empty. OLM v1 has no `selector`, and
/// OLM classic never read it.
pub(crate) fn deployment_config(subscription: &Object) -> Option<Value> {
    let mut config = subscription.get(&["spec", "config"])?.as_object()?.clone();
    config.remove("selector");
    (!config.is_empty()).then_some(Value::Object(config))
}

/// Whether the conversion to a ClusterExtension has begun and not ended.
pub fn is_unfinished(extension: &Object) -> bool {
    extension.annotation(UNFINISHED).is_some()
}

/// Whether a ClusterExtension loses its pin at the end of its conversion: the upgrades of its Subscription needed no
/// approval.
pub fn loses_pin(extension: &Object) -> bool {
    let backup = extension.annotation(SUBSCRIPTION_BACKUP).unwrap_or_default();
    let backup = serde_json::from_str::<Value>(backup);
    let is_free = |backup: &Value| backup["installPlanApproval"] != "Manual";
    is_unfinished(extension) && backup.is_ok_and(|backup| is_free(&backup))
}

/// The ClusterExtension after the end of its conversion; none if that has ended.
pub fn finished(extension: &Object) -> Option<Object> {
    let mut finished = extension.clone();
    finished.remove(&["metadata", "annotations", UNFINISHED])?;
    if loses_pin(extension) {
        finished.remove(&["spec", "source", "catalog", "version"]);
    }
    Some(finished)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::Acknowledgement;

    fn object(value: Value) -> Object {
        Object::from_value(value).unwrap()
    }

    fn made(spec: &Value, service_account: &str) -> Object {
        let subscription = object(json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
            "metadata": {"name": "sub", "namespace": "ns"}, "spec": spec,
        }));
        let csv = object(json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": {"name": "tea.v1", "namespace": "ns"}, "spec": {"version": "1.0.0"},
        }));
        let bundle = OfferedBundle { version: "1.0.0".to_owned(), image: "r/tea:1".to_owned() };
        let package =
            PackageOffer { default_channel: "stable".to_owned(), ..PackageOffer::default() };
        let catalog = CatalogOffer { catalog: "cat".to_owned(), priority: 0, package: Ok(None) };
        extension(&ExtensionInput {
            operator: ClassicOperator { subscription: &subscription, csv: &csv },
            group: None,
            offer: (&catalog, &package, &bundle),
            name: "tea",
            service_account,
            acknowledged: &[Acknowledgement::OperatorCondition].into(),
        })
    }

    #[test]
    fn extension_is_pinned_to_the_catalog_the_channel_and_the_version() {
        let made = made(&json!({"name": "tea", "channel": "fast"}), "");
        assert_eq!(
            made.get(&["spec"]).unwrap(),
            &json!({
                "namespace": "ns",
                "source": {"sourceType": "Catalog", "catalog": {
                    "packageName": "tea", "version": "1.0.0", "channels": ["fast"],
                    "selector": {"matchLabels": {CATALOG_NAME_LABEL: "cat"}},
                }},
            })
        );
        assert_eq!(made.annotation(MIGRATED_FROM_SUBSCRIPTION), Some("ns/sub"));
        let acknowledged = "olm.operatorframework.io/acknowledged-operator-condition";
        assert_eq!(made.annotation(acknowledged), Some("true"));
    }

    #[test]
    fn subscription_without_a_channel_gets_the_default_one_and_its_config_is_kept() {
        let spec = json!({"name": "tea", "config": {"selector": {}, "env": [{"name": "A"}]}});
        let made = made(&spec, "installer");
        assert_eq!(made.get(&["spec", "source", "catalog", "channels"]), Some(&json!(["stable"])));
        assert_eq!(made.get(&["spec", "serviceAccount"]), Some(&json!({"name": "installer"})));
        let config = json!({"deploymentConfig": {"env": [{"name": "A"}]}});
        assert_eq!(made.get(&["spec", "config", "inline"]), Some(&config));
    }

    #[test]
    fn pin_stays_where_upgrades_needed_an_approval() {
        let version = ["spec", "source", "catalog", "version"];
        let manual = made(&json!({"name": "tea", "installPlanApproval": "Manual"}), "");
        let manual = finished(&manual).unwrap();
        assert!(!is_unfinished(&manual));
        assert_eq!(manual.str(&version), Some("1.0.0"));
        let mut free = finished(&made(&json!({"name": "tea"}), "")).unwrap();
        assert_eq!(free.get(&version), None);
        // Of a user.
        free.set(&version, "1.x".into());
        assert_eq!(finished(&free), None);
    }
}
