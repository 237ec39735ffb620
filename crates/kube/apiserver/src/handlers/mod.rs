//! Handlers of the verbs, the same for every kind.
//!
//! A request arrives here with its row. A read makes its response from stored bytes. A write goes
//! body ─► decoded object ─► stored form ─► strategy and schema ─► store ─► response.

pub(crate) mod account_tokens;
mod apply;
mod binding;
pub(crate) mod blocking;
pub(crate) mod bootstrap;
mod commit;
pub(crate) mod compute;
mod connect;
mod continue_token;
pub(crate) mod crds;
mod create;
mod decode;
mod delete;
pub(crate) mod events;
pub(crate) mod evict;
pub(crate) mod health;
mod list_options;
mod managed_fields;
mod meta;
mod options;
mod patch;
mod read;
pub(crate) mod request;
mod response;
mod reviews;
pub(crate) mod roles;
mod scale;
mod subresource;
mod subresource_dispatch;
mod update;
mod updated_object;
mod watch;
mod write;

use self::request::Request;
use self::subresource::Subresource;
use crate::discovery;
use http::Method;
use http::header::ACCEPT;
use mainstay_gocompat::quote;
use mainstay_http::header_text;
use mainstay_http::negotiate;
use mainstay_http::path::SpecialVerb;
use mainstay_http::response::ApiResponse;
use mainstay_object::{Reason, Status, names};

/// Dispatches a request by method and path to its handler.
pub(crate) async fn dispatch(request: Request<'_>, method: &Method) -> Result<ApiResponse, Status> {
    // A request whose `Accept` no form matches must not change anything.
    if !request.is_stream() {
        let accept = header_text(request.headers, &ACCEPT);
        negotiate::choose(accept, request.endpoint_forms(), request.route(method))?;
    }
    let row = &request.row;
    let path = &request.path;
    if path.has_empty_segment || path.special_verb == SpecialVerb::Proxy {
        return Err(Status::no_such_path());
    }
    let of_all = path.namespace.is_empty() && row.is_namespaced();
    if !path.namespace.is_empty() && !row.is_namespaced() || of_all && !path.name.is_empty() {
        return discovery::unknown_resource(&request.server.registry.kinds(), &row.group);
    }
    if path.special_verb == SpecialVerb::Watch {
        return watch_path(&request, method);
    }
    if !path.subresource.is_empty() {
        return subresource_dispatch::dispatch(request, method).await;
    }
    if !row.is_stored() && (of_all || !path.name.is_empty()) {
        // Kinds without storage, such as reviews, are served at their collections only.
        return Err(Status::no_such_path());
    }
    let custom = row.custom().is_some();
    let verb = match (method, path.name.is_empty()) {
        (&Method::GET, true) if request.query.flag("watch") => "watch",
        (&Method::GET, true) => "list",
        (&Method::GET, false) => "get",
        (&Method::POST, true) => "create",
        // kube-apiserver registers no single paths for custom kinds, so these requests reach a
        // handler.
        (&Method::POST, false) if custom => "create",
        (&Method::PUT | &Method::PATCH, true) if custom => {
            return Err(Status::bad_request("name must be provided"));
        }
        (&Method::PUT, false) => "update",
        (&Method::PATCH, false) => "patch",
        (&Method::DELETE, true) => "deletecollection",
        (&Method::DELETE, false) => "delete",
        _ => "",
    };
    if verb == "watch" && row.has_verb("list") && !row.has_verb("watch") {
        return Err(Status::method_not_supported(&row.group, &row.plural, verb));
    }
    let reads_all = matches!(verb, "list" | "watch");
    if of_all && !reads_all && row.custom().is_some() {
        return Ok(ApiResponse::page_not_found());
    }
    // A kind without storage has no objects.
    if !row.is_stored() && !path.name.is_empty() {
        return Err(Status::no_such_path());
    }
    if verb.is_empty() || !row.has_verb(verb) || (of_all && !reads_all) {
        return Err(Status::no_such_method());
    }
    if !row.is_stored() {
        return reviews::answer(request).await;
    }
    // A namespace that cannot be part of a storage key is invalid.
    if matches!(&*path.namespace, "." | "..") && reads_all {
        let key = format!("invalid key: \"/{}/{}\"", row.plural, path.namespace);
        return Err(Status::new(Reason::Unknown, key));
    }
    let problems = names::path_segment(&path.name);
    if !path.name.is_empty() && !problems.is_empty() {
        let (name, why) = (quote(&path.name), problems.join(";"));
        return Err(Status::bad_request(format!("Name parameter invalid: {name}: {why}")));
    }
    match verb {
        "watch" => watch::answer(&request),
        "list" => read::list(&request).await,
        "get" => read::get(&request).await,
        "create" => create::answer(&request).await,
        "update" => update::update(&request, Subresource::Main).await,
        "patch" => patch::answer(&request, Subresource::Main).await,
        "deletecollection" => delete::collection(&request).await,
        _ => delete::answer(&request).await,
    }
}

/// A legacy watch path (`/api/v1/watch/…`), of a collection or of one object.
fn watch_path(request: &Request<'_>, method: &Method) -> Result<ApiResponse, Status> {
    if !request.path.subresource.is_empty() || !request.row.has_verb("watch") {
        return Err(Status::no_such_path());
    }
    if *method != Method::GET {
        return Err(Status::no_such_method());
    }
    watch::answer(request)
}
