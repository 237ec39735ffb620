//! An operator with all that an operator can have.

use super::installs::known_latest;
use crate::apiservices::owned;
use crate::webhooks::{admission, edit_csv, hook};
use crate::world::{World, namespace};
use mainstay_api::resources::CLUSTER_SERVICE_VERSION as CSV;
use mainstay_client::Selection;
use mainstay_object::known;
use serde_json::{Value, json};

/// The version that is published.
pub(super) const NAME: &str = "anvil.v1.0.0";

/// What of it is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parts {
    /// One webhook, and every mode.
    Hook,
    /// Webhooks of both kinds of admission, and an API that it serves itself.
    Served,
    /// All of that, and a webhook that converts its kind, which only works in all namespaces.
    All,
}

/// Publishes 1.0.0 of the operator.
pub(super) fn publish(world: &World, parts: Parts) {
    let mut hooks = vec![admission("ValidatingAdmissionWebhook", "v.example.com")];
    if parts != Parts::Hook {
        hooks.push(admission("MutatingAdmissionWebhook", "m.example.com"));
    }
    if parts == Parts::All {
        let mut converter = hook("ConversionWebhook", "c.example.com");
        converter["conversionCRDs"] = json!(["anvils.forge.example.com"]);
        hooks.push(converter);
    }
    let modes = ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"].map(
        |mode| json!({"type": mode, "supported": parts != Parts::All || mode == "AllNamespaces"}),
    );
    world.publish_edited(&["1.0.0"], |_, bundle| {
        edit_csv(bundle, |csv| {
            let spec = &mut csv["spec"];
            spec["installModes"] = json!(modes);
            spec["webhookdefinitions"] = Value::Array(hooks.clone());
            if parts != Parts::Hook {
                spec["apiservicedefinitions"] = json!({"owned": owned()});
            }
            spec["install"]["spec"]["clusterPermissions"] = json!([{
                "serviceAccountName": "anvil",
                "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}],
            }]);
        });
    });
}

/// A world in which it runs for these namespaces, none of which means all, with its controllers. There
/// are the namespaces `a`, `b` and `c`, of which the first two have the label `forge=hot`.
pub(super) async fn running(parts: Parts, targets: &[&str]) -> World {
    let world = empty(parts).await;
    world.group_for("og", targets).await;
    world.subscribe(json!({})).await;
    world.succeeded(NAME).await;
    world.subscription(known_latest).await;
    // Those who use its kinds have their roles last, and only while it runs.
    let kinds: &[(&str, &[&str])] = match parts {
        Parts::Hook => &[DEFINED],
        Parts::Served | Parts::All => &[DEFINED, ("forges", &SERVED), ("hearths", &SERVED)],
    };
    for (kind, roles) in kinds {
        for role in *roles {
            let name = format!("{kind}-v1-{role}");
            world.cluster.wait_for(&known::CLUSTER_ROLE, None, &name, |_| true).await;
        }
    }
    world
}

const SERVED: [&str; 3] = ["admin", "edit", "view"];
const DEFINED: (&str, &[&str]) =
    ("anvils.forge.example.com", &["admin", "edit", "view", "crdview"]);

/// The same before anybody wants it.
pub(super) async fn empty(parts: Parts) -> World {
    let world = World::start(&[]).await;
    for name in ["a", "b"] {
        namespace(&world.cluster, name, "forge: hot").await;
    }
    namespace(&world.cluster, "c", "").await;
    publish(&world, parts);
    world
}

/// Waits until exactly these namespaces have copies.
pub(super) async fn copies_are_in(world: &World, places: &[&str]) {
    let places: Vec<String> = places.iter().map(|place| (*place).to_owned()).collect();
    world
        .cluster
        .wait_for_all(Selection::all(CSV).labels("olm.copiedFrom"), move |all| {
            let mut found: Vec<&str> = all.iter().map(|copy| copy.namespace()).collect();
            found.sort_unstable();
            found == places
        })
        .await;
}

/// The namespaces that there are besides that of the operator.
pub(super) const EVERYWHERE: [&str; 8] =
    ["a", "b", "c", "default", "kube-node-lease", "kube-public", "kube-system", "olm"];
