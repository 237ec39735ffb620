//! What a server that starts does with the definitions that its store has.

use super::{STORAGE, settle, status};
use crate::handlers::delete::removal::start_clean_up;
use crate::server::ApiServer;
use mainstay_kinds::ClaimedNames;
use mainstay_schema::crd::CustomResourceDefinition;
use serde_json::Value;
use std::sync::Arc;

/// Serves the kinds of all stored definitions, and goes on with deletions that were under way.
pub(crate) fn restore(server: &Arc<ApiServer>) {
    let mut kinds = Vec::new();
    let mut leaving = Vec::new();
    let mut unsettled = Vec::new();
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
            leaving.push(stored.key.name.clone());
        } else if status::is_unsettled(&object) {
            unsettled.push(stored.key.name.clone());
        }
    }
    server.registry.put(kinds);
    for name in unsettled {
        let server = server.clone();
        tokio::spawn(async move { settle(&server, name, None).await });
    }
    for name in leaving {
        start_clean_up(server, &name);
    }
}
