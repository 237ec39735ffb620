//! Get and list.

use super::aside::TURN;
use super::list_options::{ListOptions, Match};
use super::present;
use super::request::Request;
use super::token::Continue;
use crate::filter::Filter;
use http::StatusCode;
use mainstay_conversion::webhook as conversion;
use mainstay_http::query::parse_uint;
use mainstay_http::response::ApiResponse;
use mainstay_object::{FieldError, FieldPath, Reason, Status};
use mainstay_store::{Expired, List, Stored};
use serde_json::{Value, json};
use std::sync::Arc;

/// Get one object. Every revision asked for is as old as the present one, or in the future.
pub(super) async fn get(request: &Request<'_>) -> Result<ApiResponse, Status> {
    check_revision(request)?;
    let stored = request.server.store.get(&request.key()).ok_or_else(|| request.not_found())?;
    let stored = conversion::convert_stored(&request.server.outbound, &request.row, stored).await?;
    present::stored(request, StatusCode::OK, &stored)
}

/// Checks the `resourceVersion` of a request for one object.
pub(super) fn check_revision(request: &Request<'_>) -> Result<(), Status> {
    let Some(text) = request.query.text("resourceVersion") else { return Ok(()) };
    let revision = parse_revision(text).map_err(|error| unreadable_revision(&error))?;
    refuse_future(request, revision)
}

/// Reads a revision; zero means any.
pub(super) fn parse_revision(text: &str) -> Result<u64, FieldError> {
    parse_uint(text).map_err(|error| {
        FieldError::invalid(&FieldPath::new("resourceVersion"), text, error.to_string())
    })
}

/// The original takes it for a fault of its own where one object, or a watch, is asked for.
pub(super) fn unreadable_revision(error: &FieldError) -> Status {
    Status::new(Reason::Unknown, error.to_string())
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

/// List a collection.
pub(super) async fn list(request: &Request<'_>) -> Result<ApiResponse, Status> {
    match page(request, &ListOptions::of_list(request)?).await? {
        Ok(listed) => present::list(request, listed.items, listed.metadata).await,
        Err(refusal) => Ok(refusal),
    }
}

/// What a list answers.
pub(super) struct Listed {
    /// The objects.
    pub(super) items: Vec<Arc<Stored>>,
    /// `metadata` of the list.
    pub(super) metadata: Value,
}

/// The objects of a list or of one page of it; or the refusal that has a token to go on with.
pub(super) async fn page(
    request: &Request<'_>,
    options: &ListOptions<'_>,
) -> Result<Result<Listed, ApiResponse>, Status> {
    let filter = &options.filter;
    let scoped = filter.namespace.is_some() || !request.row.is_namespaced();
    // One object is looked up, not listed: there is nothing to go on with.
    let single = scoped && filter.name.is_some();
    let token = match options.token {
        "" => None,
        _ if single => None,
        token => Some(Continue::parse(token)?),
    };
    let list = match &token {
        Some(_) if !matches!(options.revision, "" | "0") => {
            return Err(Status::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        Some(token) => match list_on(request, filter, token) {
            Ok(list) => list,
            Err(_) => return Ok(Err(expired_page(token, !scoped))),
        },
        None => list_at(request, options, single)?,
    };
    // A list of any revision is served whole: the original's rule.
    let limit = if single || options.revision == "0" { 0 } else { options.limit };
    let place = token.as_ref().map(|token| {
        let (namespace, name) = token.place(!scoped);
        (filter.namespace.as_deref().unwrap_or(namespace), name)
    });
    let page = Page::cut(&list, place, filter, limit).await;
    let mut metadata = json!({"resourceVersion": list.revision().to_string()});
    if let (true, Some(last)) = (page.has_more, page.items.last()) {
        request.server.store.keep(&list);
        let revision = i64::try_from(list.revision()).unwrap_or(i64::MAX);
        let namespace = if scoped { "" } else { &last.key.namespace };
        metadata["continue"] = Continue::after(revision, namespace, &last.key.name).into();
        if let Some(remaining) =
            page.remaining.filter(|_| !mainstay_fault::is_on("the-rest-is-not-counted"))
        {
            metadata["remainingItemCount"] = remaining.into();
        }
    }
    let items =
        conversion::convert_stored_list(&request.server.outbound, &request.row, page.items).await?;
    Ok(Ok(Listed { items, metadata }))
}

/// The view that a list goes on in.
fn list_on(request: &Request<'_>, filter: &Filter, token: &Continue) -> Result<List, Expired> {
    let store = &request.server.store;
    let namespace = filter.namespace.as_deref();
    match u64::try_from(token.rv) {
        Ok(revision) => store.list_at(&request.row.storage, namespace, revision),
        Err(_) => Ok(store.list(&request.row.storage, namespace)),
    }
}

/// The view that a list begins with.
fn list_at(request: &Request<'_>, options: &ListOptions<'_>, single: bool) -> Result<List, Status> {
    let store = &request.server.store;
    let (storage, namespace) = (&request.row.storage, options.filter.namespace.as_deref());
    if options.revision.is_empty() {
        return Ok(store.list(storage, namespace));
    }
    let revision = parse_revision(options.revision)
        .map_err(|error| Status::bad_request(format!("invalid resource version: {error}")))?;
    refuse_future(request, revision)?;
    // Without a match, a limit makes the revision exact: the original's rule.
    let limited = options.limit > 0 && revision > 0 && !single;
    let exact = match options.matching {
        Some(matching) => matching == Match::Exact,
        None => limited,
    };
    if !exact {
        return Ok(store.list(storage, namespace));
    }
    store
        .list_at(storage, namespace, revision)
        .map_err(|_| Status::expired("The resourceVersion for the provided list is too old."))
}

/// 410 with a token that goes on in whatever is there now.
fn expired_page(token: &Continue, of_all_namespaces: bool) -> ApiResponse {
    let status = Status::expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.",
    );
    let (namespace, name) = token.place(of_all_namespaces);
    let mut value: Value = status.to_value();
    value["metadata"]["continue"] = Continue::after(-1, namespace, name).into();
    ApiResponse::value(StatusCode::GONE, &value)
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
            Some((namespace, name)) => {
                let skipped = usize::from(mainstay_fault::is_on("pages-skip-an-object"));
                Self::of(list.after(namespace, name).skip(skipped), filter, limit).await
            }
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
            items.push(stored.clone());
            if limit > 0 && items.len() == limit {
                // Whether more of them would be selected is not known before they are looked at.
                let rest = if all { objects.count() } else { objects.take(1).count() };
                return Self { items, has_more: rest > 0, remaining: all.then_some(rest) };
            }
        }
        Self { items, has_more: false, remaining: None }
    }
}
