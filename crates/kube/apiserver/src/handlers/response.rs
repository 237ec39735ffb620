//! Responses with objects and lists, in the form that the client accepts.

use super::blocking::{YIELD_INTERVAL, block_in_place};
use super::request::Request;
use crate::server::ApiServer;
use bytes::{BufMut, Bytes, BytesMut};
use http::StatusCode;
use mainstay_conversion::forms;
use mainstay_http::Body;
use mainstay_http::messages::{self, MessageKind};
use mainstay_http::negotiate::Representation;
use mainstay_http::query::Query;
use mainstay_http::response::ApiResponse;
use mainstay_kinds::KindRow;
use mainstay_object::{Object, Status};
use mainstay_printing::{self as printing, IncludeObject, TableOptions};
use mainstay_store::Stored;
use serde_json::{Value, json};
use std::sync::Arc;

/// Bytes of a list that one chunk contains.
const CHUNK: usize = 256 * 1024;

/// The response with a stored object.
pub(super) fn stored(
    request: &Request<'_>,
    code: StatusCode,
    stored: &Stored,
) -> Result<ApiResponse, Status> {
    let form = request.form()?;
    if form == Representation::Plain {
        return Ok(ApiResponse::bytes(code, forms::bytes(&request.row, stored)));
    }
    let object = forms::object(&request.row, stored);
    in_form(request, code, &object, form)
}

/// The response with an object that is not stored: the result of a dry run, or a converted object.
pub(super) fn object(
    request: &Request<'_>,
    code: StatusCode,
    object: &Object,
) -> Result<ApiResponse, Status> {
    in_form(request, code, object, request.form()?)
}

fn in_form(
    request: &Request<'_>,
    code: StatusCode,
    object: &Object,
    form: Representation,
) -> Result<ApiResponse, Status> {
    let value = match form {
        Representation::Table(version) => {
            let options = table_options(request.server, request.query, version)?;
            let metadata = json!({"resourceVersion": object.resource_version()});
            printing::table(&request.row, std::slice::from_ref(object), metadata, &options)
        }
        Representation::Metadata(version) => printing::partial(object, version),
        _ => return Ok(ApiResponse::bytes(code, encode(object))),
    };
    Ok(ApiResponse::value(code, &value))
}

/// The response with the `Scale` of an object of the request's kind.
pub(super) fn scale(request: &Request<'_>, scale: Value) -> Result<ApiResponse, Status> {
    let form = request.form()?;
    if form == Representation::Plain {
        return Ok(ApiResponse::ok(&scale));
    }
    let scale = Object::from_value(scale).map_err(Status::internal)?;
    let value = match form {
        Representation::Table(version) => {
            let options = table_options(request.server, request.query, version)?;
            printing::scale_table(&request.row, &scale, &options)
        }
        Representation::Metadata(version) => printing::partial(&scale, version),
        _ => scale.to_value(),
    };
    Ok(ApiResponse::ok(&value))
}

/// 201 without an object.
pub(super) fn created() -> ApiResponse {
    ApiResponse::value(
        StatusCode::CREATED,
        &json!({
            "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Success", "code": 201,
        }),
    )
}

/// An object as JSON.
pub(super) fn encode(object: &Object) -> Bytes {
    // An object is a map of JSON values, which always encodes.
    serde_json::to_vec(object).unwrap_or_default().into()
}

/// The options of tables for a request.
pub(super) fn table_options<'a>(
    server: &ApiServer,
    query: &Query,
    version: &'a str,
) -> Result<TableOptions<'a>, Status> {
    let include = match query.text("includeObject") {
        None | Some("Metadata") => IncludeObject::Metadata,
        Some("None") if mainstay_fault::is_on("tables-always-show-objects") => {
            IncludeObject::Metadata
        }
        Some("None") => IncludeObject::None,
        Some("Object") => IncludeObject::Object,
        Some(other) => {
            return Err(Status::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: must be 'Metadata', 'Object', 'None', or empty"
            )));
        }
    };
    Ok(TableOptions { version, include, no_headers: false, now: server.clock.now() })
}

/// The response with a page of a list.
pub(super) async fn list(
    request: &Request<'_>,
    items: Vec<Arc<Stored>>,
    metadata: Value,
) -> Result<ApiResponse, Status> {
    let row = &request.row;
    let form_accepted = request.form()?;
    if let Representation::Table(version) = form_accepted {
        let options = table_options(request.server, request.query, version)?;
        let mut objects: Vec<Object> = Vec::with_capacity(items.len());
        for batch in items.chunks(YIELD_INTERVAL) {
            objects.extend(batch.iter().map(|stored| forms::object(row, stored)));
            tokio::task::yield_now().await;
        }
        let table = || {
            row.strategy.sort_table(&mut objects);
            printing::table(row, &objects, metadata, &options)
        };
        let table = if items.len() > YIELD_INTERVAL { block_in_place(table) } else { table() };
        return Ok(ApiResponse::ok(&table));
    }
    let (kind, api_version, form) = match form_accepted {
        Representation::Metadata(version) => (
            "PartialObjectMetadataList".to_owned(),
            format!("meta.k8s.io/{version}"),
            ItemForm::Metadata(version),
        ),
        _ => ((*row.list_kind).to_owned(), (*row.api_version).to_owned(), ItemForm::Plain),
    };
    let mut metadata = metadata;
    if row.custom().is_some() && matches!(form, ItemForm::Plain) {
        // kube-apiserver's lists of custom objects always have this field.
        let fields = metadata.as_object_mut();
        fields.map(|fields| fields.entry("continue").or_insert_with(|| "".into()));
    }
    if let Some(response) = protobuf_list(request, form_accepted, &items, &metadata).await? {
        return Ok(response);
    }
    let head = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata}).to_string();
    let mut buffer = BytesMut::with_capacity(head.len() + 16);
    // The items follow in place of the head's closing brace.
    buffer.put_slice(&head.as_bytes()[..head.len() - 1]);
    buffer.put_slice(br#","items":["#);
    let size = items.iter().map(|stored| stored.size() + 1).sum::<usize>() + buffer.len();
    let mut chunks = ListChunks {
        row: row.clone(),
        items: items.into_iter(),
        form,
        buffer,
        is_first: true,
        is_finished: false,
    };
    let body = if size <= CHUNK {
        let mut body = BytesMut::with_capacity(size + 2);
        chunks.by_ref().for_each(|chunk| body.put_slice(&chunk));
        Body::from(body.freeze())
    } else {
        Body::chunks(chunks)
    };
    let response = ApiResponse::body(StatusCode::OK, body, size);
    let has_message = row.custom().is_none() || matches!(form, ItemForm::Metadata(_));
    Ok(if has_message { response } else { response.without_message() })
}

/// A page of a list in protobuf; none if the client wants JSON, or an object does not conform to
/// its kind.
async fn protobuf_list(
    request: &Request<'_>,
    form: Representation,
    items: &[Arc<Stored>],
    metadata: &Value,
) -> Result<Option<ApiResponse>, Status> {
    let Some(kind) = request.message_kind(form) else { return Ok(None) };
    let list_kind = match form {
        Representation::Metadata(version) => MessageKind::metadata_list(version),
        _ => MessageKind::of(request.row.api_version.clone(), request.row.list_kind.clone()),
    };
    let Some(list_kind) = list_kind else { return Ok(None) };
    let mut messages = Vec::with_capacity(items.len());
    for batch in items.chunks(YIELD_INTERVAL) {
        for stored in batch {
            let message = match form {
                Representation::Metadata(version) => {
                    metadata_message(&kind, version, &stored.bytes())
                }
                _ => request.server.messages.message_of(&request.row, &kind, stored),
            };
            let Some(message) = message else { return Ok(None) };
            messages.push(message);
        }
        tokio::task::yield_now().await;
    }
    let head = json!({"metadata": metadata}).to_string();
    Ok(list_kind.list(head.as_bytes(), messages).map(|list| {
        let size = list.size();
        ApiResponse::protobuf(StatusCode::OK, messages::MEDIA_TYPE, Body::chunks(list), size)
    }))
}

/// The message of an object's metadata.
pub(super) fn metadata_message(
    kind: &MessageKind<Arc<str>>,
    version: &str,
    json: &[u8],
) -> Option<Bytes> {
    kind.message(printing::partial_text(json, version)?.as_bytes())
}

#[derive(Clone, Copy)]
enum ItemForm {
    Plain,
    Metadata(&'static str),
}

/// The chunks of a list, encoded while they are sent.
struct ListChunks {
    row: Arc<KindRow>,
    items: std::vec::IntoIter<Arc<Stored>>,
    form: ItemForm,
    buffer: BytesMut,
    is_first: bool,
    is_finished: bool,
}

impl Iterator for ListChunks {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if self.is_finished {
            return None;
        }
        while self.buffer.len() < CHUNK {
            let Some(item) = self.items.next() else {
                self.buffer.put_slice(b"]}\n");
                self.is_finished = true;
                break;
            };
            if !std::mem::take(&mut self.is_first) {
                self.buffer.put_u8(b',');
            }
            match self.form {
                ItemForm::Plain => forms::put_item(&self.row, &item, &mut self.buffer),
                ItemForm::Metadata(version) => {
                    let partial = printing::partial_text(&item.bytes(), version);
                    self.buffer.put_slice(partial.unwrap_or_default().as_bytes());
                }
            }
        }
        Some(self.buffer.split().freeze())
    }
}
