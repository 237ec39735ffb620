//! The options of a request that connects, and what admission says of them: they are the object
//! that it is asked about (`ConnectResource` of the original).

use crate::handlers::Request;
use mainstay_admission::{self as admission, AdmissionRequest, Operation, Options};
use mainstay_object::gotext::quote;
use mainstay_object::{Object, Status};
use serde_json::{Map, Value, json};

/// The options of `exec`, `attach`, `portforward` or `proxy`, as admission leaves them.
pub(super) async fn options(request: &Request<'_>, subresource: &str) -> Result<Object, Status> {
    if request.query.all("dryRun").next().is_some() {
        return Err(Status::bad_request("dryRun is not supported"));
    }
    let mut options = read(request, subresource)?;
    let asked = AdmissionRequest {
        // There are none: the options are the object.
        options: Options::Value(&Value::Null),
        ..request.asked(Operation::Connect, subresource, &request.path.name, false)
    };
    admission::answered(asked, &mut options).await?;
    Ok(options)
}

fn read(request: &Request<'_>, subresource: &str) -> Result<Object, Status> {
    let kind = request.row.subresource(subresource).map(|it| it.speaks.kind.clone());
    let mut fields = Map::new();
    fields.insert("apiVersion".to_owned(), "v1".into());
    fields.insert("kind".to_owned(), kind.unwrap_or_default().into());
    let query = &request.query;
    let mut put = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    match subresource {
        "exec" | "attach" => {
            for name in ["stdin", "stdout", "stderr", "tty"] {
                if query.flag(name) {
                    put(name, true.into());
                }
            }
            if let Some(container) = query.raw("container").filter(|it| !it.is_empty()) {
                put("container", container.into());
            }
            if subresource == "exec" {
                let command: Vec<&str> = query.all("command").collect();
                put("command", if command.is_empty() { Value::Null } else { json!(command) });
            }
        }
        "portforward" => {
            let ports: Vec<u16> = query
                .all("ports")
                .flat_map(|list| list.split(','))
                .map(port)
                .collect::<Result<_, _>>()?;
            if !ports.is_empty() {
                put("ports", json!(ports));
            }
        }
        _ => {
            let (rest, slash) = (&request.path.rest, request.uri.path().ends_with('/'));
            if !rest.is_empty() || slash {
                let end = if slash && !rest.is_empty() { "/" } else { "" };
                put("path", format!("/{rest}{end}").into());
            }
        }
    }
    Object::from_value(fields.into()).map_err(Status::internal)
}

fn port(text: &str) -> Result<u16, Status> {
    let wrong = |why: &str| {
        let text = quote(text);
        Status::bad_request(format!(
            "cannot convert to []int32: strconv.ParseUint: parsing {text}: {why}"
        ))
    };
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong("invalid syntax"));
    }
    text.parse().map_err(|_| wrong("value out of range"))
}
