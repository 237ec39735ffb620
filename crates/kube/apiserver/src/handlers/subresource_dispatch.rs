//! Dispatch of subresources.

use super::request::Request;
use super::subresource::Subresource;
use super::update;
use super::{account_tokens, binding, connect, evict, patch, read, scale};
use http::Method;
use mainstay_http::response::ApiResponse;
use mainstay_object::Status;

/// Dispatches a request by method and subresource to its handler.
pub(super) async fn dispatch(request: Request<'_>, method: &Method) -> Result<ApiResponse, Status> {
    let name = request.path.subresource.clone();
    let name = name.as_str();
    let Some(row_subresource) = request.row.subresource(name) else {
        // kube-apiserver's responses differ in the same way.
        let custom = request.row.custom().is_some();
        return Err(if custom { request.not_found() } else { Status::no_such_path() });
    };
    let verb = match *method {
        Method::GET => "get",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        // The proxy forwards every method.
        Method::HEAD | Method::OPTIONS if name == "proxy" => "get",
        _ => "",
    };
    if !row_subresource.verbs.iter().any(|allowed| &**allowed == verb) {
        return Err(Status::no_such_method());
    }
    if !request.path.rest.is_empty() && name != "proxy" {
        return Err(Status::no_such_path());
    }
    let subresource = match name {
        "status" => Subresource::Status,
        "finalize" => Subresource::Finalize,
        "approval" => Subresource::Approval,
        "ephemeralcontainers" => Subresource::Debug,
        "resize" => Subresource::Resize,
        "scale" => return scale::answer(&request, method).await,
        "token" => return account_tokens::create_token(&request).await,
        "eviction" => return evict::answer(&request).await,
        "binding" => return binding::bind(&request, &request.path.name).await,
        "log" | "exec" | "attach" | "portforward" | "proxy" => {
            return connect::answer(&request, name, method).await;
        }
        _ => return Err(mainstay_streams::no_process(name)),
    };
    match verb {
        "get" => read::get(&request).await,
        "update" => update::update(&request, subresource).await,
        _ => patch::answer(&request, subresource).await,
    }
}
