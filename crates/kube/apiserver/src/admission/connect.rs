//! CONNECT: somebody wants to be connected with what an object stands for. What is judged are the
//! options, as an object of their own kind; the object itself is not shown.
//!
//! Rules: apiserver's `pkg/endpoints/handlers/rest.go` (`ConnectResource`).

use super::{Operation, Options, listens, mutate, validate};
use crate::handlers::Request;
use crate::http::query::{Query, parse_int};
use mainstay_object::{Object, Status};
use serde_json::{Map, Value};

/// How a field of options is written in a query.
#[derive(Clone, Copy)]
enum Form {
    Flag,
    Text,
    Texts,
    Numbers,
}

const STREAMS: &[(&str, Form)] = &[
    ("stdin", Form::Flag),
    ("stdout", Form::Flag),
    ("stderr", Form::Flag),
    ("tty", Form::Flag),
    ("container", Form::Text),
];

/// The fields of a subresource's options.
fn fields(subresource: &str) -> Vec<(&'static str, Form)> {
    let mut fields = match subresource {
        "exec" | "attach" => STREAMS.to_vec(),
        _ => Vec::new(),
    };
    match subresource {
        "exec" => fields.push(("command", Form::Texts)),
        "portforward" => fields.push(("ports", Form::Numbers)),
        _ => {}
    }
    fields
}

/// Both phases of a connection. What somebody makes of the options is what is done.
///
/// # Errors
/// Somebody refuses, or the options cannot be read.
pub(crate) async fn connect(request: &mut Request<'_>, subresource: &str) -> Result<(), Status> {
    let name = request.path.name.clone();
    let none = Value::Null;
    let asked = request.asked(Operation::Connect, subresource, &name, false);
    let asked = super::Asked { options: Options::Value(&none), ..asked };
    if !listens(asked) {
        return Ok(());
    }
    let sent = read(request, subresource)?;
    let kind = asked.kind();
    let object = |mut fields: Map<String, Value>| {
        fields.insert("kind".to_owned(), kind.kind.clone().into());
        fields.insert("apiVersion".to_owned(), kind.api_version().into());
        Object::from_value(Value::Object(fields)).map_err(Status::internal)
    };
    let mut options = object(sent.clone())?;
    mutate(asked, &mut options, None).await?;
    validate(asked, &mut options, None).await?;
    if options != object(sent)? {
        if subresource == "proxy" {
            // Its query is passed on, whatever it is.
            let path = options.str(&["path"]).unwrap_or_default();
            path.trim_start_matches('/').clone_into(&mut request.path.rest);
        } else {
            request.query = write(subresource, &options);
        }
    }
    Ok(())
}

/// The options of a request.
fn read(request: &Request<'_>, subresource: &str) -> Result<Map<String, Value>, Status> {
    let query = &request.query;
    let mut options = Map::new();
    for (name, form) in fields(subresource) {
        let value: Value = match form {
            Form::Flag if query.flag(name) => true.into(),
            Form::Flag => continue,
            Form::Text => match query.text(name).filter(|text| !text.is_empty()) {
                Some(text) => text.into(),
                None => continue,
            },
            Form::Texts => query.all(name).collect::<Vec<_>>().into(),
            Form::Numbers => query.all(name).map(parse_int).collect::<Result<Vec<_>, _>>()?.into(),
        };
        // The command is written even if there is none.
        match value.as_array().is_some_and(Vec::is_empty) {
            true if name == "command" => options.insert(name.to_owned(), Value::Null),
            true => None,
            false => options.insert(name.to_owned(), value),
        };
    }
    if subresource == "proxy" && !request.path.rest.is_empty() {
        options.insert("path".to_owned(), format!("/{}", request.path.rest).into());
    }
    Ok(options)
}

/// The query that says the same as options.
fn write(subresource: &str, options: &Object) -> Query {
    let mut pairs = Vec::new();
    for (name, _) in fields(subresource) {
        let values = match options.get(&[name]) {
            Some(Value::Array(all)) => all.as_slice(),
            None | Some(Value::Null) => &[],
            Some(one) => std::slice::from_ref(one),
        };
        pairs.extend(values.iter().map(|value| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            (name.to_owned(), text)
        }));
    }
    Query::of(pairs)
}
