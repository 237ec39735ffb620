//! Connect subresources (log, exec, attach, port-forward, proxy): their options, which admission
//! reviews as the object of the request (`ConnectResource` in kube-apiserver), and their
//! authorization.

use super::request::Request;
use http::Method;
use mainstay_admission::{self as admission, AdmissionRequest, Operation, RequestOptions};
use mainstay_auth::authz::{Attributes, Decision};
use mainstay_gocompat::quote;
use mainstay_http::response::ApiResponse;
use mainstay_object::{Object, Status};
use mainstay_streams::{self as streams, StreamRequest};
use serde_json::{Map, Value, json};

/// Serves `pods/log`, `exec`, `attach` and `portforward` of pods, and `proxy` of pods, services and
/// nodes.
pub(super) async fn answer(
    request: &Request<'_>,
    subresource: &str,
    method: &Method,
) -> Result<ApiResponse, Status> {
    let stream = stream_request(request);
    match subresource {
        "log" => return streams::log(&stream),
        "proxy" => {
            let options = connect_options(request, subresource).await?;
            return streams::proxy(&stream, &options, method).await;
        }
        _ => {}
    }
    let options = connect_options(request, subresource).await?;
    // A GET of these paths needs the permission `create` as well, because it acts on the pod.
    let path = &request.path;
    let needed = Attributes::resource(request.identity, "create", "", "pods")
        .in_namespace(&path.namespace)
        .with_name(&path.name)
        .with_subresource(subresource);
    if let Decision::NoOpinion(reason) =
        request.server.authorizer.decide(&Attributes { version: "v1", ..needed })
        && !mainstay_fault::is_on("who-reads-a-path-may-connect")
    {
        // kube-apiserver returns only the reason, which is mostly empty.
        return Err(Status::forbidden("", "pods", &path.name, &reason));
    }
    match subresource {
        "exec" => streams::exec(&stream, &options, false),
        "attach" => streams::exec(&stream, &options, true),
        "portforward" => streams::port_forward(&stream, &options),
        _ => Err(streams::no_process(subresource)),
    }
}

fn stream_request<'a>(request: &'a Request<'_>) -> StreamRequest<'a> {
    let server = request.server;
    StreamRequest {
        store: &server.store,
        clock: server.clock,
        outbound: &server.outbound,
        in_process_pods: &server.in_process_pods,
        stop: &server.stop,
        row: &request.row,
        path: request.path,
        query: request.query,
        headers: request.headers,
        uri: request.uri,
        body: &request.body,
        on_upgrade: request.on_upgrade.as_ref(),
    }
}

/// The options of `exec`, `attach`, `portforward` or `proxy` after admission.
async fn connect_options(request: &Request<'_>, subresource: &str) -> Result<Object, Status> {
    if request.query.all("dryRun").next().is_some() {
        return Err(Status::bad_request("dryRun is not supported"));
    }
    let mut options = read(request, subresource)?;
    let review = AdmissionRequest {
        // The options are the object itself.
        options: RequestOptions::Value(&Value::Null),
        ..request.admission_request(Operation::Connect, subresource, &request.path.name, false)
    };
    admission::admit_unstored(review, &mut options).await?;
    Ok(options)
}

fn read(request: &Request<'_>, subresource: &str) -> Result<Object, Status> {
    let kind = request.row.subresource(subresource).map(|subresource| subresource.gvk.kind.clone());
    let mut fields = Map::new();
    fields.insert("apiVersion".to_owned(), "v1".into());
    fields.insert("kind".to_owned(), kind.unwrap_or_default().into());
    let query = &request.query;
    let mut insert = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    match subresource {
        "exec" | "attach" => {
            for name in ["stdin", "stdout", "stderr", "tty"] {
                if query.flag(name) {
                    insert(name, true.into());
                }
            }
            if let Some(container) =
                query.raw("container").filter(|container| !container.is_empty())
            {
                insert("container", container.into());
            }
            if subresource == "exec" {
                let command: Vec<&str> = query.all("command").collect();
                insert("command", if command.is_empty() { Value::Null } else { json!(command) });
            }
        }
        "portforward" => {
            let ports: Vec<u16> = query
                .all("ports")
                .flat_map(|list| list.split(','))
                .map(port)
                .collect::<Result<_, _>>()?;
            if !ports.is_empty() {
                insert("ports", json!(ports));
            }
        }
        _ => {
            let (rest, slash) = (&request.path.rest, request.uri.path().ends_with('/'));
            if !rest.is_empty() || slash {
                let end = if slash && !rest.is_empty() { "/" } else { "" };
                insert("path", format!("/{rest}{end}").into());
            }
        }
    }
    Object::from_value(fields.into()).map_err(Status::internal)
}

fn port(text: &str) -> Result<u16, Status> {
    let invalid = |why: &str| {
        let text = quote(text);
        Status::bad_request(format!(
            "cannot convert to []int32: strconv.ParseUint: parsing {text}: {why}"
        ))
    };
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(invalid("invalid syntax"));
    }
    text.parse().map_err(|_| invalid("value out of range"))
}
