//! Conflicts in the words of the API.

use super::entry::{Identity, Operation};
use crate::apply::Conflict;
use mainstay_object::{Reason, Status};
use std::collections::BTreeMap;

/// 409: what was applied is owned by others, who and which field, each as a cause.
pub(super) fn status(conflicts: &[Conflict]) -> Status {
    let mut status = Status::new(Reason::Conflict, message(conflicts));
    for conflict in conflicts {
        let text = format!("conflict with {}", shown(&conflict.manager));
        status = status.with_cause("FieldManagerConflict", text, &conflict.path.to_string());
    }
    status
}

fn message(conflicts: &[Conflict]) -> String {
    if let [only] = conflicts {
        let manager = shown(&only.manager);
        return format!("Apply failed with 1 conflict: conflict with {manager}: {}", only.path);
    }
    let mut by_manager: BTreeMap<&str, Vec<&Conflict>> = BTreeMap::new();
    for conflict in conflicts {
        by_manager.entry(&conflict.manager).or_default().push(conflict);
    }
    let mut lines = Vec::new();
    for (manager, conflicts) in by_manager {
        lines.push(format!("conflicts with {}:", shown(manager)));
        lines.extend(conflicts.iter().map(|conflict| format!("- {}", conflict.path)));
    }
    format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
}

/// A manager as people are shown it.
fn shown(key: &str) -> String {
    let Some(identity) = Identity::parse(key) else { return format!("{key:?}") };
    let mut text = format!("{:?}", identity.manager);
    if !identity.subresource.is_empty() {
        text = format!("{text} with subresource {:?}", identity.subresource);
    }
    if identity.operation == Some(Operation::Update) {
        // Identifiers carry no time, so that none is shown.
        text = format!("{text} using {}", identity.api_version);
    }
    text
}
