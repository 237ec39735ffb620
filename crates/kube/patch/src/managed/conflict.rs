//! Apply conflicts as a `Status`.

use super::entry::{ManagerIdentity, ManagerOperation};
use crate::apply::FieldConflict;
use mainstay_object::{Reason, Status};
use std::collections::BTreeMap;

/// Status 409 with each conflicting manager and field as a cause.
pub(super) fn status(conflicts: &[FieldConflict]) -> Status {
    let mut status = Status::new(Reason::Conflict, message(conflicts));
    for conflict in conflicts {
        let text = format!("conflict with {}", describe_manager(&conflict.manager));
        status = status.with_cause("FieldManagerConflict", text, &conflict.path.to_string());
    }
    status
}

fn message(conflicts: &[FieldConflict]) -> String {
    if let [only] = conflicts {
        let manager = describe_manager(&only.manager);
        return format!("Apply failed with 1 conflict: conflict with {manager}: {}", only.path);
    }
    let mut by_manager: BTreeMap<&str, Vec<&FieldConflict>> = BTreeMap::new();
    for conflict in conflicts {
        by_manager.entry(&conflict.manager).or_default().push(conflict);
    }
    let mut lines = Vec::new();
    for (manager, conflicts) in by_manager {
        lines.push(format!("conflicts with {}:", describe_manager(manager)));
        lines.extend(conflicts.iter().map(|conflict| format!("- {}", conflict.path)));
    }
    format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
}

/// The description of a manager in messages.
fn describe_manager(key: &str) -> String {
    let Some(identity) = ManagerIdentity::parse(key) else { return format!("{key:?}") };
    let mut text = format!("{:?}", identity.manager);
    if !identity.subresource.is_empty() {
        text = format!("{text} with subresource {:?}", identity.subresource);
    }
    if identity.operation == Some(ManagerOperation::Update) {
        // Kubernetes adds a time at this position; identifiers have none.
        text = format!("{text} using {}", identity.api_version);
    }
    text
}
