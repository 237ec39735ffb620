//! The options of a write: `CreateOptions`, `UpdateOptions` and `PatchOptions`, read from the query.
//!
//! They are read before anything else is, all together, so that one refusal names all that is wrong
//! with them.

use super::decode::FieldValidation;
use super::request::Request;
use http::header::USER_AGENT;
use mainstay_object::{FieldError, FieldPath, Status};
use mainstay_patch::managed;

/// Which options a request has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    /// A POST.
    Create,
    /// A PUT.
    Update,
    /// A PATCH that changes a part.
    Patch,
    /// A PATCH that says what its sender wants the object to be.
    Apply,
}

impl Verb {
    /// The kind of the options.
    const fn kind(self) -> &'static str {
        match self {
            Self::Create => "CreateOptions",
            Self::Update => "UpdateOptions",
            Self::Patch | Self::Apply => "PatchOptions",
        }
    }
}

/// How a client wants its write to be done.
#[derive(Clone, Debug)]
pub(super) struct WriteOptions {
    /// Who writes: what the client says, else what its `User-Agent` says; may be empty.
    pub(super) manager: String,
    /// Whether nothing is to be stored.
    pub(super) dry_run: bool,
    /// What becomes of unknown and repeated fields.
    pub(super) validation: FieldValidation,
    /// Whether an apply takes fields from their owners.
    pub(super) force: bool,
}

impl WriteOptions {
    /// Reads them; 422 names everything that is wrong.
    pub(super) fn read(request: &Request<'_>, verb: Verb) -> Result<Self, Status> {
        let query = &request.query;
        let mut errors = Vec::new();
        let given = query.text("fieldManager").unwrap_or_default();
        let path = FieldPath::new("fieldManager");
        let force = query.optional_flag("force");
        if verb == Verb::Apply {
            if given.is_empty() {
                errors.push(FieldError::required(&path, "is required for apply patch"));
            }
        } else if force.is_some() && verb == Verb::Patch {
            let why = "may not be specified for non-apply patch";
            errors.push(FieldError::forbidden(&FieldPath::new("force"), why));
        }
        errors.extend(managed::name_errors(given, &path));
        let dry_runs: Vec<&str> = query.all("dryRun").collect();
        if dry_runs.iter().any(|value| *value != "All") {
            let path = FieldPath::new("dryRun");
            errors.push(FieldError::not_supported(&path, dry_runs.clone(), &["All"]));
        }
        let validation = match query.text("fieldValidation") {
            None | Some("Warn") => FieldValidation::Warn,
            Some("Ignore") => FieldValidation::Ignore,
            Some("Strict") => FieldValidation::Strict,
            Some(other) => {
                let allowed = ["", "Ignore", "Strict", "Warn"];
                let path = FieldPath::new("fieldValidation");
                errors.push(FieldError::not_supported(&path, other, &allowed));
                FieldValidation::Warn
            }
        };
        if !errors.is_empty() {
            return Err(Status::invalid("meta.k8s.io", verb.kind(), "", &errors));
        }
        let manager = if given.is_empty() {
            let agent = request.headers.get(USER_AGENT).map(http::HeaderValue::as_bytes);
            managed::manager_of_user_agent(&String::from_utf8_lossy(agent.unwrap_or_default()))
        } else {
            given.to_owned()
        };
        let force = force.unwrap_or_default();
        let dry_run = !dry_runs.is_empty() && !mainstay_fault::is_on("dry-runs-write");
        Ok(Self { manager, dry_run, validation, force })
    }
}
