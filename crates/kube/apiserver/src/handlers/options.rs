//! Options of a write: `CreateOptions`, `UpdateOptions` and `PatchOptions`, from the query.
//!
//! They are validated together and before the body, so that one refusal contains all their errors.

use super::decode::FieldValidation;
use super::request::Request;
use http::header::USER_AGENT;
use mainstay_object::{FieldError, FieldPath, Status};
use mainstay_patch::managed;

/// The kind of write, which determines the kind of options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    /// A POST.
    Create,
    /// A PUT.
    Update,
    /// A PATCH other than an apply.
    Patch,
    /// A PATCH that is a server-side apply.
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

/// The options of a write.
#[derive(Clone, Debug)]
pub(super) struct WriteOptions {
    /// The field manager: from the query, else from `User-Agent`; may be empty.
    pub(super) manager: String,
    /// Whether the write is a dry run.
    pub(super) dry_run: bool,
    /// The treatment of unknown and duplicate fields.
    pub(super) validation: FieldValidation,
    /// Whether an apply takes over fields of other managers.
    pub(super) force: bool,
}

impl WriteOptions {
    /// Reads the options; 422 contains all errors.
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
