//! Commits to the store: the number of attempts, and the refusals for errors of the store.

use mainstay_kinds::KindRow;
use mainstay_object::{Reason, Status};
use mainstay_store::CommitError;

/// Attempts of a conflicting commit, for example with generated names, before the client gets an
/// error.
pub(super) const ATTEMPTS: usize = 8;

/// 413: an object that exceeds the size limit of the store.
pub(super) fn too_large(row: &KindRow, name: &str, reason: &str, limit: usize) -> Status {
    let (kind, group) = (&row.kind, &row.group);
    let group_suffix = if group.is_empty() { String::new() } else { format!(".{group}") };
    Status::new(
        Reason::RequestEntityTooLarge,
        format!(
            "Request entity too large: {kind}{group_suffix} {name:?} {reason} in the store, where the limit is {limit} bytes; make it smaller, or raise the limit with mainstay up --max-object-bytes"
        ),
    )
    .about(group, kind, name)
}

/// The refusal for an error of the store.
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
