//! Options of a list and of a watch: `ListOptions`, from the query.
//!
//! Refusals follow kube-apiserver's order: malformed values (400), invalid combinations (422, all
//! at once), and unsupported field selectors (400).

use super::request::Request;
use crate::filter::Filter;
use mainstay_http::query::parse_int;
use mainstay_object::selector::{FieldSelector, LabelSelector};
use mainstay_object::{FieldError, FieldPath, Status};

/// `resourceVersionMatch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RevisionMatch {
    /// The state at this revision.
    Exact,
    /// A state that is not older.
    NotOlderThan,
}

/// The options of a list or a watch.
#[derive(Debug)]
pub(super) struct ListOptions<'a> {
    /// The selected objects.
    pub(super) filter: Filter,
    /// Whether the client wants bookmarks.
    pub(super) bookmarks: bool,
    /// `resourceVersion` as sent; empty for the newest state.
    pub(super) revision: &'a str,
    /// `resourceVersionMatch`, if the client sent it.
    pub(super) revision_match: Option<RevisionMatch>,
    /// Seconds that a watch lasts.
    pub(super) timeout: Option<i64>,
    /// Maximum number of objects of a list; zero for all.
    pub(super) limit: usize,
    /// The continue token; empty for the first page.
    pub(super) continue_token: &'a str,
    /// Whether a watch begins with the existing objects.
    pub(super) send_initial_events: Option<bool>,
}

impl<'a> ListOptions<'a> {
    /// Reads the options of a list, or of a deletion of a collection.
    pub(super) fn of_list(request: &'a Request<'_>) -> Result<Self, Status> {
        Self::read(request, false)
    }

    /// Reads the options of a watch. Without a revision it begins with the existing objects.
    pub(super) fn of_watch(request: &'a Request<'_>) -> Result<Self, Status> {
        Self::read(request, true)
    }

    fn read(request: &'a Request<'_>, watch: bool) -> Result<Self, Status> {
        let query = &request.query;
        let text = |name: &str| query.text(name).unwrap_or_default();
        let integer = |name: &str| query.raw(name).map(parse_int).transpose();
        let bad_request =
            |error: mainstay_object::selector::SelectorError| Status::bad_request(error.0);
        let timeout = integer("timeoutSeconds")?;
        let limit = integer("limit")?.unwrap_or_default();
        let labels = LabelSelector::parse(text("labelSelector")).map_err(bad_request)?;
        let fields = FieldSelector::parse(text("fieldSelector")).map_err(bad_request)?;
        let (revision, revision_match, token) =
            (text("resourceVersion"), text("resourceVersionMatch"), text("continue"));
        let mut send_initial_events = query.optional_flag("sendInitialEvents");
        let errors = if watch {
            watch_errors(revision_match, token, send_initial_events)
        } else {
            list_errors(revision, revision_match, token, send_initial_events)
        };
        if !errors.is_empty() {
            return Err(Status::invalid("meta.k8s.io", "ListOptions", "", &errors));
        }
        if send_initial_events.is_none() && matches!(revision, "" | "0") {
            send_initial_events = Some(true);
        }
        let (namespace, name) = (&request.path.namespace, request.path.name.as_str());
        let mut filter = Filter::new(&request.row, namespace, labels, &fields)?;
        if !name.is_empty() {
            if !fields.is_everything() && filter.name.as_deref() != Some(name) {
                let why = "fieldSelector metadata.name doesn't match requested name";
                return Err(Status::bad_request(why));
            }
            filter.name = Some(name.to_owned());
        }
        Ok(Self {
            filter,
            bookmarks: query.flag("allowWatchBookmarks"),
            revision,
            revision_match: match revision_match {
                "Exact" => Some(RevisionMatch::Exact),
                "NotOlderThan" => Some(RevisionMatch::NotOlderThan),
                _ => None,
            },
            timeout,
            limit: usize::try_from(limit).unwrap_or(0),
            continue_token: token,
            send_initial_events,
        })
    }
}

const MATCH_WITH_CONTINUE: &str = "resourceVersionMatch is forbidden when continue is provided";

fn list_errors(
    revision: &str,
    revision_match: &str,
    token: &str,
    send_initial_events: Option<bool>,
) -> Vec<FieldError> {
    let field = FieldPath::new("resourceVersionMatch");
    let mut errors = Vec::new();
    if !revision_match.is_empty() {
        if revision.is_empty() {
            let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            errors.push(FieldError::forbidden(&field, why));
        }
        if !token.is_empty() {
            errors.push(FieldError::forbidden(&field, MATCH_WITH_CONTINUE));
        }
        if !matches!(revision_match, "Exact" | "NotOlderThan") {
            let allowed = ["Exact", "NotOlderThan", ""];
            errors.push(FieldError::not_supported(&field, revision_match, &allowed));
        }
        if revision_match == "Exact" && revision == "0" {
            let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            errors.push(FieldError::forbidden(&field, why));
        }
    }
    if send_initial_events.is_some() {
        let field = FieldPath::new("sendInitialEvents");
        errors.push(FieldError::forbidden(&field, "sendInitialEvents is forbidden for list"));
    }
    errors
}

fn watch_errors(
    revision_match: &str,
    token: &str,
    send_initial_events: Option<bool>,
) -> Vec<FieldError> {
    let field = FieldPath::new("resourceVersionMatch");
    let mut errors = Vec::new();
    if send_initial_events.is_some() && revision_match != "NotOlderThan" {
        let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        errors.push(FieldError::forbidden(&field, why));
    }
    if !revision_match.is_empty() {
        if send_initial_events.is_none() {
            let why =
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            errors.push(FieldError::forbidden(&field, why));
        }
        if revision_match != "NotOlderThan" {
            errors.push(FieldError::not_supported(&field, revision_match, &["NotOlderThan"]));
        }
        if !token.is_empty() {
            errors.push(FieldError::forbidden(&field, MATCH_WITH_CONTINUE));
        }
    }
    errors
}
