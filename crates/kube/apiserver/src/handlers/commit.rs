//! Commits to the store: how often one is tried again, and the refusals that stand for its errors.

use mainstay_kinds::KindRow;
use mainstay_object::{Reason, Status};
use mainstay_store::CommitError;

/// Tries of what others overtake before the client is told: names that are generated, say.
pub(super) const ATTEMPTS: usize = 8;

/// 413: an object that would be longer than a store takes.
pub(super) fn too_large(row: &KindRow, name: &str, what: &str, limit: usize) -> Status {
    let (kind, group) = (&row.kind, &row.group);
    let of = if group.is_empty() { String::new() } else { format!(".{group}") };
    Status::new(
        Reason::RequestEntityTooLarge,
        format!(
            "Request entity too large: {kind}{of} {name:?} {what} in the store, where the limit is {limit} bytes; make it smaller, or raise the limit with mainstay up --max-object-bytes"
        ),
    )
    .about(group, kind, name)
}

/// The refusal that stands for an error of the store.
pub(super) fn commit_status(row: &KindRow, name: &str, error: &CommitError) -> Status {
    match error {
        CommitError::AlreadyExists { current } => {
            if mainstay_fault::is_on("a-taken-name-is-a-conflict") {
                return Status::stale(&row.group, &row.plural, name);
            }
            let mut status = Status::already_exists(&row.group, &row.plural, name);
            if current.terminating {
                status.message = format!("object is being deleted: {}", status.message);
            }
            status
        }
        CommitError::Missing(_) => Status::not_found(&row.group, &row.plural, name),
        CommitError::Stale { .. } => Status::stale(&row.group, &row.plural, name),
        CommitError::GuardFailed { guard, terminating } => {
            let namespace = &guard.alive.name;
            if terminating.is_none() {
                return Status::not_found("", "namespaces", namespace);
            }
            let why = format!(
                "unable to create new content in namespace {namespace} because it is being terminated"
            );
            Status::forbidden(&row.group, &row.plural, name, &why).with_cause(
                "NamespaceTerminating",
                format!("namespace {namespace} is being terminated"),
                "metadata.namespace",
            )
        }
        CommitError::TooDeep { .. } => Status::bad_request(error.to_string()),
        CommitError::TooLarge { bytes, limit } => {
            too_large(row, name, &format!("would have {bytes} bytes"), *limit)
        }
        CommitError::Closed => {
            Status::new(Reason::ServiceUnavailable, "the server is shutting down").retry_after(1)
        }
        CommitError::Encode(_) | CommitError::Engine(_) => Status::internal(error),
    }
}
