//! Get and list.

use super::{Request, present};
use crate::filter::Filter;
use crate::http::answer::Answer;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::StatusCode;
use mainstay_object::{FieldError, FieldPath, Reason, Status};
use mainstay_store::{List, Stored};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

/// Get one object. Every revision asked for is as old as the present one, or in the future.
pub(super) fn get(request: &Request<'_>) -> Result<Answer, Status> {
    if let Some(revision) = revision(request)? {
        refuse_future(request, revision)?;
    }
    let stored = request.server.store.get(&request.key()).ok_or_else(|| request.not_found())?;
    present::stored(request, StatusCode::OK, &stored)
}

/// The `resourceVersion` parameter; zero means any.
pub(super) fn revision(request: &Request<'_>) -> Result<Option<u64>, Status> {
    request
        .query
        .text("resourceVersion")
        .map(|text| {
            text.parse().map_err(|_| {
                let error = FieldError::invalid(
                    &FieldPath::new("resourceVersion"),
                    text,
                    format!("strconv.ParseUint: parsing {text:?}: invalid syntax"),
                );
                Status::bad_request(format!("invalid resource version: {error}"))
            })
        })
        .transpose()
}

/// Refuses a revision that the store has not reached. With one store and one counter it was never
/// given out, so that there is nothing to wait for.
pub(super) fn refuse_future(request: &Request<'_>, revision: u64) -> Result<(), Status> {
    let current = request.server.store.revision();
    if revision <= current {
        return Ok(());
    }
    let message = format!("Timeout: Too large resource version: {revision}, current: {current}");
    Err(Status::new(Reason::Timeout, message)
        .with_cause("ResourceVersionTooLarge", "Too large resource version", "")
        .retry_after(1))
}

/// Objects that are decoded before others get their turn.
pub(super) const TURN: usize = 128;

/// How a list's revision is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Match {
    Exact,
    NotOlderThan,
}

/// `resourceVersionMatch`, checked together with what it is about.
fn revision_match(request: &Request<'_>, revision: Option<u64>) -> Result<Option<Match>, Status> {
    let query = &request.query;
    let field = FieldPath::new("resourceVersionMatch");
    let refuse = |error: FieldError| {
        Err(Status::invalid("meta.k8s.io", "ListOptions", "", std::slice::from_ref(&error)))
    };
    let given = match query.text("resourceVersionMatch") {
        None => return Ok(None),
        Some("Exact") => Match::Exact,
        Some("NotOlderThan") => Match::NotOlderThan,
        Some(other) => {
            let allowed = ["Exact", "NotOlderThan", ""];
            return refuse(FieldError::not_supported(&field, other, &allowed));
        }
    };
    if query.text("continue").is_some() {
        let why = "resourceVersionMatch is forbidden when continue is provided";
        return refuse(FieldError::forbidden(&field, why));
    }
    match (revision, given) {
        (None, _) => {
            let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            refuse(FieldError::forbidden(&field, why))
        }
        (Some(0), Match::Exact) => {
            let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            refuse(FieldError::forbidden(&field, why))
        }
        _ => Ok(Some(given)),
    }
}

/// Where a list goes on: the original's token, so that its length and look surprise nobody.
#[derive(Debug, Serialize, Deserialize)]
struct Continue {
    v: String,
    /// The revision of the list; -1 goes on in whatever is there now.
    rv: i64,
    /// `namespace/name` after which to go on, with a zero byte behind.
    start: String,
}

impl Continue {
    fn after(revision: i64, namespace: &str, name: &str) -> String {
        let token = Self {
            v: "meta.k8s.io/v1".to_owned(),
            rv: revision,
            start: format!("{namespace}/{name}\0"),
        };
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&token).unwrap_or_default())
    }

    fn parse(text: &str) -> Result<Self, Status> {
        let bad = || Status::bad_request("invalid continue token: continue key is not valid");
        let bytes = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).map_err(|_| bad())?;
        let token: Self = serde_json::from_slice(&bytes).map_err(|_| bad())?;
        if token.v != "meta.k8s.io/v1" || token.place().is_none() || token.rv == 0 {
            return Err(bad());
        }
        Ok(token)
    }

    fn place(&self) -> Option<(&str, &str)> {
        self.start.strip_suffix('\0').unwrap_or(&self.start).split_once('/')
    }
}

/// List a collection.
pub(super) async fn list(request: &Request<'_>) -> Result<Answer, Status> {
    let query = &request.query;
    let row = &request.row;
    let store = &request.server.store;
    let filter = Filter::read(row, &request.path.namespace, query)?;
    let limit = query.integer("limit")?.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(0);
    let revision = revision(request)?;
    let given = revision_match(request, revision)?;
    let namespace = filter.namespace.as_deref();

    let token = query.text("continue").map(Continue::parse).transpose()?;
    if token.is_some() && revision.is_some_and(|revision| revision > 0) {
        return Err(Status::bad_request(
            "specifying resource version is not allowed when using continue",
        ));
    }
    let list = match (&token, revision) {
        (Some(token), _) => match u64::try_from(token.rv) {
            Ok(revision) => match store.list_at(&row.storage, namespace, revision) {
                Ok(list) => list,
                Err(_) => return Ok(expired_page(token)),
            },
            Err(_) => store.list(&row.storage, namespace),
        },
        (None, Some(revision)) if revision > 0 => {
            refuse_future(request, revision)?;
            // Without a match, a limit makes the revision exact: the original's rule.
            if given == Some(Match::Exact) || (given.is_none() && limit > 0) {
                store.list_at(&row.storage, namespace, revision).map_err(|expired| {
                    Status::expired(format!(
                        "The resourceVersion for the provided list is too old: {expired}"
                    ))
                })?
            } else {
                store.list(&row.storage, namespace)
            }
        }
        _ => store.list(&row.storage, namespace),
    };
    let place = token.as_ref().and_then(Continue::place);
    let page = Page::cut(&list, place, &filter, limit).await;
    let mut metadata = json!({"resourceVersion": list.revision().to_string()});
    if let (true, Some(last)) = (page.has_more, page.items.last()) {
        store.keep(&list);
        let revision = i64::try_from(list.revision()).unwrap_or(i64::MAX);
        metadata["continue"] =
            Continue::after(revision, &last.key.namespace, &last.key.name).into();
        if let Some(remaining) = page.remaining {
            metadata["remainingItemCount"] = remaining.into();
        }
    }
    present::list(request, page.items, metadata).await
}

/// 410 with a token that goes on in whatever is there now.
fn expired_page(token: &Continue) -> Answer {
    let status = Status::expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.",
    );
    let (namespace, name) = token.place().unwrap_or_default();
    let mut value: Value = status.to_value();
    value["metadata"]["continue"] = Continue::after(-1, namespace, name).into();
    Answer::value(StatusCode::GONE, &value)
}

/// What of a list an answer carries.
struct Page {
    items: Vec<Arc<Stored>>,
    has_more: bool,
    /// How many more there are, if they can be counted without looking at them.
    remaining: Option<usize>,
}

impl Page {
    async fn cut(list: &List, after: Option<(&str, &str)>, filter: &Filter, limit: usize) -> Self {
        match after {
            Some((namespace, name)) => Self::of(list.after(namespace, name), filter, limit).await,
            None => Self::of(list.iter(), filter, limit).await,
        }
    }

    async fn of<'a>(
        mut objects: impl Iterator<Item = &'a Arc<Stored>>,
        filter: &Filter,
        limit: usize,
    ) -> Self {
        let all = filter.selects_all();
        let mut items = Vec::new();
        let mut looked_at = 0_usize;
        for stored in objects.by_ref() {
            looked_at += 1;
            if !all && looked_at.is_multiple_of(TURN) {
                // Fields are found by decoding; others must get their turn meanwhile.
                tokio::task::yield_now().await;
            }
            if !all && !filter.matches(stored) {
                continue;
            }
            if limit > 0 && items.len() == limit {
                let remaining = all.then(|| objects.count() + 1);
                return Self { items, has_more: true, remaining };
            }
            items.push(stored.clone());
        }
        Self { items, has_more: false, remaining: None }
    }
}
