//! The options of a list and of a watch: `ListOptions`, read from the query.
//!
//! Everything that cannot be read is refused first (400), then what does not fit together (422,
//! all of it at once), then fields that the kind cannot select by (400): the original's order.

use super::request::Request;
use crate::filter::Filter;
use mainstay_http::query::parse_int;
use mainstay_object::selector::{FieldSelector, LabelSelector};
use mainstay_object::{FieldError, FieldPath, Status};

/// How a list's revision is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    /// The state at this revision.
    Exact,
    /// A state that is not older.
    NotOlderThan,
}

/// What a client asks of a list or a watch.
#[derive(Debug)]
pub(super) struct ListOptions<'a> {
    /// Which objects.
    pub(super) filter: Filter,
    /// Whether bookmarks are wanted.
    pub(super) bookmarks: bool,
    /// `resourceVersion` as given; empty for the newest state.
    pub(super) revision: &'a str,
    /// How the revision is meant, if the client says so.
    pub(super) matching: Option<Match>,
    /// Seconds that a watch lasts.
    pub(super) timeout: Option<i64>,
    /// The most objects of a list; zero for all.
    pub(super) limit: usize,
    /// Where a list goes on; empty at its beginning.
    pub(super) token: &'a str,
    /// Whether a watch begins with the objects there are.
    pub(super) initial: Option<bool>,
}

impl<'a> ListOptions<'a> {
    /// Reads the options of a list, or of a deletion of a collection.
    pub(super) fn of_list(request: &'a Request<'_>) -> Result<Self, Status> {
        Self::read(request, false)
    }

    /// Reads the options of a watch. One that names no revision asks for the objects there are.
    pub(super) fn of_watch(request: &'a Request<'_>) -> Result<Self, Status> {
        Self::read(request, true)
    }

    fn read(request: &'a Request<'_>, watch: bool) -> Result<Self, Status> {
        let query = &request.query;
        let text = |name: &str| query.text(name).unwrap_or_default();
        let integer = |name: &str| query.raw(name).map(parse_int).transpose();
        let unreadable =
            |error: mainstay_object::selector::SelectorError| Status::bad_request(error.0);
        let timeout = integer("timeoutSeconds")?;
        let limit = integer("limit")?.unwrap_or_default();
        let labels = LabelSelector::parse(text("labelSelector")).map_err(unreadable)?;
        let fields = FieldSelector::parse(text("fieldSelector")).map_err(unreadable)?;
        let (revision, matching, token) =
            (text("resourceVersion"), text("resourceVersionMatch"), text("continue"));
        let mut initial = query.optional_flag("sendInitialEvents");
        let errors = if watch {
            refusals_of_watch(matching, token, initial)
        } else {
            refusals_of_list(revision, matching, token, initial)
        };
        if !errors.is_empty() {
            return Err(Status::invalid("meta.k8s.io", "ListOptions", "", &errors));
        }
        if initial.is_none() && matches!(revision, "" | "0") {
            initial = Some(true);
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
            matching: match matching {
                "Exact" => Some(Match::Exact),
                "NotOlderThan" => Some(Match::NotOlderThan),
                _ => None,
            },
            timeout,
            limit: usize::try_from(limit).unwrap_or(0),
            token,
            initial,
        })
    }
}

const WITH_CONTINUE: &str = "resourceVersionMatch is forbidden when continue is provided";

fn refusals_of_list(
    revision: &str,
    matching: &str,
    token: &str,
    initial: Option<bool>,
) -> Vec<FieldError> {
    let field = FieldPath::new("resourceVersionMatch");
    let mut errors = Vec::new();
    if !matching.is_empty() {
        if revision.is_empty() {
            let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            errors.push(FieldError::forbidden(&field, why));
        }
        if !token.is_empty() {
            errors.push(FieldError::forbidden(&field, WITH_CONTINUE));
        }
        if !matches!(matching, "Exact" | "NotOlderThan") {
            let allowed = ["Exact", "NotOlderThan", ""];
            errors.push(FieldError::not_supported(&field, matching, &allowed));
        }
        if matching == "Exact" && revision == "0" {
            let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            errors.push(FieldError::forbidden(&field, why));
        }
    }
    if initial.is_some() {
        let field = FieldPath::new("sendInitialEvents");
        errors.push(FieldError::forbidden(&field, "sendInitialEvents is forbidden for list"));
    }
    errors
}

fn refusals_of_watch(matching: &str, token: &str, initial: Option<bool>) -> Vec<FieldError> {
    let field = FieldPath::new("resourceVersionMatch");
    let mut errors = Vec::new();
    if initial.is_some() && matching != "NotOlderThan" {
        let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        errors.push(FieldError::forbidden(&field, why));
    }
    if !matching.is_empty() {
        if initial.is_none() {
            let why =
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            errors.push(FieldError::forbidden(&field, why));
        }
        if matching != "NotOlderThan" {
            errors.push(FieldError::not_supported(&field, matching, &["NotOlderThan"]));
        }
        if !token.is_empty() {
            errors.push(FieldError::forbidden(&field, WITH_CONTINUE));
        }
    }
    errors
}
