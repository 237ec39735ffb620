//! What hangs below an object.

use super::change;
use super::part::Part;
use super::request::Request;
use super::{binding, connect, evict, patch, read, scale, tokens};
use http::Method;
use mainstay_http::response::ApiResponse;
use mainstay_object::Status;

/// From method and subresource to the handler.
pub(super) async fn dispatch(request: Request<'_>, method: &Method) -> Result<ApiResponse, Status> {
    let name = request.path.subresource.clone();
    let name = name.as_str();
    let Some(sub) = request.row.subresource(name) else {
        // Which is how the original answers, kind by kind.
        let custom = request.row.custom().is_some();
        return Err(if custom { request.not_found() } else { Status::no_such_path() });
    };
    let verb = match *method {
        Method::GET => "get",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        // Whatever is sent, is passed on.
        Method::HEAD | Method::OPTIONS if name == "proxy" => "get",
        _ => "",
    };
    if !sub.verbs.iter().any(|one| &**one == verb) {
        return Err(Status::no_such_method());
    }
    if !request.path.rest.is_empty() && name != "proxy" {
        return Err(Status::no_such_path());
    }
    let part = match name {
        "status" => Part::Status,
        "finalize" => Part::Finalize,
        "approval" => Part::Approval,
        "ephemeralcontainers" => Part::Debug,
        "resize" => Part::Resize,
        "scale" => return scale::answer(&request, method).await,
        "token" => return tokens::request(&request).await,
        "eviction" => return evict::answer(&request).await,
        "binding" => return binding::bind(&request, &request.path.name).await,
        "log" | "exec" | "attach" | "portforward" | "proxy" => {
            return connect::answer(&request, name, method).await;
        }
        _ => return Err(mainstay_streams::no_process(name)),
    };
    match verb {
        "get" => read::get(&request).await,
        "update" => change::update(&request, part).await,
        _ => patch::answer(&request, part).await,
    }
}
