//! Get and list.

use super::blocking::YIELD_INTERVAL;
use super::continue_token::ContinueToken;
use super::list_options::{ListOptions, RevisionMatch};
use super::request::Request;
use super::response;
use crate::filter::Filter;
use http::StatusCode;
use mainstay_conversion::webhook as conversion;
use mainstay_http::query::parse_uint;
use mainstay_http::response::ApiResponse;
use mainstay_object::{FieldError, FieldPath, Reason, Status};
use mainstay_store::{Expired, ListSnapshot, Stored};
use serde_json::{Value, json};
use std::sync::Arc;

/// Handles a GET of one object. Any valid revision is served from the current state.
pub(super) async fn get(request: &Request<'_>) -> Result<ApiResponse, Status> {
    check_revision(request)?;
    let stored = request.server.store.get(&request.key()).ok_or_else(|| request.not_found())?;
    let stored = conversion::convert_stored(&request.server.outbound, &request.row, stored).await?;
    response::stored(request, StatusCode::OK, &stored)
}

/// Checks the `resourceVersion` of a GET.
pub(super) fn check_revision(request: &Request<'_>) -> Result<(), Status> {
    let Some(text) = request.query.text("resourceVersion") else { return Ok(()) };
    let revision = parse_revision(text).map_err(|error| invalid_revision(&error))?;
    refuse_future(request, revision)
}

/// Parses a revision; zero means any.
pub(super) fn parse_revision(text: &str) -> Result<u64, FieldError> {
    parse_uint(text).map_err(|error| {
        FieldError::invalid(&FieldPath::new("resourceVersion"), text, error.to_string())
    })
}

/// kube-apiserver reports it as an internal error for a GET and a watch.
pub(super) fn invalid_revision(error: &FieldError) -> Status {
    Status::new(Reason::Unknown, error.to_string())
}

/// Refuses a revision that the store has not reached. The store has one counter, so nobody has
/// received that revision, and waiting for it would be useless.
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

/// Handles a list of a collection.
pub(super) async fn list(request: &Request<'_>) -> Result<ApiResponse, Status> {
    match page(request, &ListOptions::of_list(request)?).await? {
        Ok(page) => response::list(request, page.items, page.metadata).await,
        Err(refusal) => Ok(refusal),
    }
}

/// The content of a list response.
pub(super) struct ListPage {
    /// The objects.
    pub(super) items: Vec<Arc<Stored>>,
    /// `metadata` of the list.
    pub(super) metadata: Value,
}

/// The objects of a list or of one page of it; or a refusal that contains a new continue token.
pub(super) async fn page(
    request: &Request<'_>,
    options: &ListOptions<'_>,
) -> Result<Result<ListPage, ApiResponse>, Status> {
    let filter = &options.filter;
    let is_scoped = filter.namespace.is_some() || !request.row.is_namespaced();
    // A single object is looked up, so its list has no further page.
    let is_single = is_scoped && filter.name.is_some();
    let token = match options.continue_token {
        "" => None,
        _ if is_single => None,
        token => Some(ContinueToken::parse(token)?),
    };
    let list = match &token {
        Some(_) if !matches!(options.revision, "" | "0") => {
            return Err(Status::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        Some(token) => match continued_list(request, filter, token) {
            Ok(list) => list,
            Err(_) => return Ok(Err(expired_page(token, !is_scoped))),
        },
        None => first_list(request, options, is_single)?,
    };
    // A list at any revision is not paged, as in kube-apiserver.
    let limit = if is_single || options.revision == "0" { 0 } else { options.limit };
    let position = token.as_ref().map(|token| {
        let (namespace, name) = token.position(!is_scoped);
        (filter.namespace.as_deref().unwrap_or(namespace), name)
    });
    let page = Page::select(&list, position, filter, limit).await;
    let mut metadata = json!({"resourceVersion": list.revision().to_string()});
    if let (true, Some(last)) = (page.has_more, page.items.last()) {
        request.server.store.keep(&list);
        let revision = i64::try_from(list.revision()).unwrap_or(i64::MAX);
        let namespace = if is_scoped { "" } else { &last.key.namespace };
        metadata["continue"] =
            ContinueToken::encode_after(revision, namespace, &last.key.name).into();
        if let Some(remaining) =
            page.remaining.filter(|_| !mainstay_fault::is_on("the-rest-is-not-counted"))
        {
            metadata["remainingItemCount"] = remaining.into();
        }
    }
    let items =
        conversion::convert_stored_list(&request.server.outbound, &request.row, page.items).await?;
    Ok(Ok(ListPage { items, metadata }))
}

/// The snapshot of a continued list.
fn continued_list(
    request: &Request<'_>,
    filter: &Filter,
    token: &ContinueToken,
) -> Result<ListSnapshot, Expired> {
    let store = &request.server.store;
    let namespace = filter.namespace.as_deref();
    match u64::try_from(token.rv) {
        Ok(revision) => store.list_at(&request.row.storage, namespace, revision),
        Err(_) => Ok(store.list(&request.row.storage, namespace)),
    }
}

/// The snapshot of a new list.
fn first_list(
    request: &Request<'_>,
    options: &ListOptions<'_>,
    is_single: bool,
) -> Result<ListSnapshot, Status> {
    let store = &request.server.store;
    let (storage, namespace) = (&request.row.storage, options.filter.namespace.as_deref());
    if options.revision.is_empty() {
        return Ok(store.list(storage, namespace));
    }
    let revision = parse_revision(options.revision)
        .map_err(|error| Status::bad_request(format!("invalid resource version: {error}")))?;
    refuse_future(request, revision)?;
    // Without `resourceVersionMatch`, a limit makes the revision exact, as in kube-apiserver.
    let has_limit = options.limit > 0 && revision > 0 && !is_single;
    let is_exact = match options.revision_match {
        Some(revision_match) => revision_match == RevisionMatch::Exact,
        None => has_limit,
    };
    if !is_exact {
        return Ok(store.list(storage, namespace));
    }
    store
        .list_at(storage, namespace, revision)
        .map_err(|_| Status::expired("The resourceVersion for the provided list is too old."))
}

/// 410 with a token that continues in the current state.
fn expired_page(token: &ContinueToken, of_all_namespaces: bool) -> ApiResponse {
    let status = Status::expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.",
    );
    let (namespace, name) = token.position(of_all_namespaces);
    let mut value: Value = status.to_value();
    value["metadata"]["continue"] = ContinueToken::encode_after(-1, namespace, name).into();
    ApiResponse::value(StatusCode::GONE, &value)
}

/// One page of a list.
struct Page {
    items: Vec<Arc<Stored>>,
    has_more: bool,
    /// The number of remaining objects, if no selector makes counting expensive.
    remaining: Option<usize>,
}

impl Page {
    async fn select(
        list: &ListSnapshot,
        after: Option<(&str, &str)>,
        filter: &Filter,
        limit: usize,
    ) -> Self {
        match after {
            Some((namespace, name)) => {
                let skipped = usize::from(mainstay_fault::is_on("pages-skip-an-object"));
                Self::from_iterator(list.after(namespace, name).skip(skipped), filter, limit).await
            }
            None => Self::from_iterator(list.iter(), filter, limit).await,
        }
    }

    async fn from_iterator<'a>(
        mut objects: impl Iterator<Item = &'a Arc<Stored>>,
        filter: &Filter,
        limit: usize,
    ) -> Self {
        let selects_all = filter.selects_all();
        let mut items = Vec::new();
        let mut scanned = 0_usize;
        for stored in objects.by_ref() {
            scanned += 1;
            if !selects_all && scanned.is_multiple_of(YIELD_INTERVAL) {
                // Field selectors decode objects; other tasks run in between.
                tokio::task::yield_now().await;
            }
            if !selects_all && !filter.matches(stored) {
                continue;
            }
            items.push(stored.clone());
            if limit > 0 && items.len() == limit {
                // With a selector, only the existence of one more object is checked.
                let rest = if selects_all { objects.count() } else { objects.take(1).count() };
                return Self { items, has_more: rest > 0, remaining: selects_all.then_some(rest) };
            }
        }
        Self { items, has_more: false, remaining: None }
    }
}
