//! Restoration of the stored CRDs at the start of a server.

use super::{STORAGE, status, update_status};
use crate::handlers::delete::removal::start_clean_up;
use crate::server::ApiServer;
use mainstay_kinds::ClaimedNames;
use mainstay_schema::crd::CustomResourceDefinition;
use serde_json::Value;
use std::sync::Arc;

/// Serves the kinds of all stored CRDs, and continues pending deletions.
pub(crate) fn restore(server: &Arc<ApiServer>) {
    let mut kinds = Vec::new();
    let mut terminating = Vec::new();
    let mut incomplete = Vec::new();
    for stored in server.store.list(STORAGE, None).iter() {
        let object = stored.object();
        let accepted = object.condition("NamesAccepted") != Some("False");
        let claims =
            ClaimedNames::of(object.get(&["status", "acceptedNames"]).unwrap_or(&Value::Null));
        let definition = CustomResourceDefinition::read(&object);
        kinds.push(mainstay_kinds::custom_kind(
            &object,
            definition,
            accepted,
            claims,
            stored.revision,
        ));
        if stored.terminating {
            terminating.push(stored.key.name.clone());
        } else if status::is_incomplete(&object) {
            incomplete.push(stored.key.name.clone());
        }
    }
    server.registry.put(kinds);
    for name in incomplete {
        let server = server.clone();
        tokio::spawn(async move { update_status(&server, name, None).await });
    }
    for name in terminating {
        start_clean_up(server, &name);
    }
}
