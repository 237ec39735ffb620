//! An operator with webhooks, an API and all install modes.

use super::installs::is_at_latest;
use crate::api_services::owned_api_services;
use crate::olm_cluster::{OlmCluster, create_namespace};
use crate::webhooks::{admission_webhook, edit_csv, webhook};
use mainstay_api::resources::CLUSTER_SERVICE_VERSION as CSV;
use mainstay_client::Selection;
use mainstay_object::builtin;
use serde_json::{Value, json};

/// The name of the published CSV.
pub(super) const NAME: &str = "anvil.v1.0.0";

/// The features of the published operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Features {
    /// One webhook, and every install mode.
    OneWebhook,
    /// Validating and mutating webhooks, and an APIService.
    Served,
    /// All of these and a conversion webhook, which requires the install mode `AllNamespaces`.
    All,
}

/// Publishes 1.0.0 of the operator.
pub(super) fn publish(olm: &OlmCluster, parts: Features) {
    let mut hooks = vec![admission_webhook("ValidatingAdmissionWebhook", "v.example.com")];
    if parts != Features::OneWebhook {
        hooks.push(admission_webhook("MutatingAdmissionWebhook", "m.example.com"));
    }
    if parts == Features::All {
        let mut converter = webhook("ConversionWebhook", "c.example.com");
        converter["conversionCRDs"] = json!(["anvils.forge.example.com"]);
        hooks.push(converter);
    }
    let modes = ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"].map(
        |mode| json!({"type": mode, "supported": parts != Features::All || mode == "AllNamespaces"}),
    );
    olm.publish_edited(&["1.0.0"], |_, bundle| {
        edit_csv(bundle, |csv| {
            let spec = &mut csv["spec"];
            spec["installModes"] = json!(modes);
            spec["webhookdefinitions"] = Value::Array(hooks.clone());
            if parts != Features::OneWebhook {
                spec["apiservicedefinitions"] = json!({"owned": owned_api_services()});
            }
            spec["install"]["spec"]["clusterPermissions"] = json!([{
                "serviceAccountName": "anvil",
                "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}],
            }]);
        });
    });
}

/// A cluster with the installed operator for these target namespaces; none means all. It has the
/// namespaces `a`, `b` and `c`, of which the first two have the label `forge=hot`.
pub(super) async fn olm_with_operator(parts: Features, targets: &[&str]) -> OlmCluster {
    let olm = olm_without_operator(parts).await;
    olm.apply_group_for("og", targets).await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded(NAME).await;
    olm.wait_for_subscription(is_at_latest).await;
    // The aggregated ClusterRoles of its APIs are created last, and only after the CSV succeeded.
    let kinds: &[(&str, &[&str])] = match parts {
        Features::OneWebhook => &[DEFINED],
        Features::Served | Features::All => &[DEFINED, ("forges", &SERVED), ("hearths", &SERVED)],
    };
    for (kind, roles) in kinds {
        for role in *roles {
            let name = format!("{kind}-v1-{role}");
            olm.cluster.wait_for(&builtin::CLUSTER_ROLE, None, &name, |_| true).await;
        }
    }
    olm
}

const SERVED: [&str; 3] = ["admin", "edit", "view"];
const DEFINED: (&str, &[&str]) =
    ("anvils.forge.example.com", &["admin", "edit", "view", "crdview"]);

/// The same cluster without OperatorGroup and Subscription.
pub(super) async fn olm_without_operator(parts: Features) -> OlmCluster {
    let olm = OlmCluster::start(&[]).await;
    for name in ["a", "b"] {
        create_namespace(&olm.cluster, name, "forge: hot").await;
    }
    create_namespace(&olm.cluster, "c", "").await;
    publish(&olm, parts);
    olm
}

/// Waits until exactly these namespaces have copied CSVs.
pub(super) async fn wait_for_copies_in(olm: &OlmCluster, namespaces: &[&str]) {
    let namespaces: Vec<String> =
        namespaces.iter().map(|namespace| (*namespace).to_owned()).collect();
    olm.cluster
        .wait_for_all(Selection::all(CSV).labels("olm.copiedFrom"), move |all| {
            let mut found: Vec<&str> = all.iter().map(|copy| copy.namespace()).collect();
            found.sort_unstable();
            found == namespaces
        })
        .await;
}

/// All namespaces except that of the operator.
pub(super) const ALL_OTHER_NAMESPACES: [&str; 8] =
    ["a", "b", "c", "default", "kube-node-lease", "kube-public", "kube-system", "olm"];
