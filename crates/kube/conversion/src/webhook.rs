//! Conversion webhooks of CustomResourceDefinitions.
//!
//! Handlers of such a kind use the row's version everywhere. Objects are converted when they leave or
//! enter the store. The response is checked: a webhook may change all fields except metadata, and
//! labels and annotations of the metadata.
//!
//! Rules and messages: apiextensions-apiserver's `pkg/apiserver/conversion`.

use http::Method;
use mainstay_kinds::{CustomVersion, KindRow};
use mainstay_object::fnv::random_uid;
use mainstay_object::{FieldError, FieldPath, Object, Reason, Status, metadata};
use mainstay_outbound::{
    CallError, ClientConfig, ClientConfigError, Outbound, OutboundRequest, ResponseError,
    response_value,
};
use mainstay_store::Stored;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Timeout of a call.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The most bytes of a response: a few hundred of the largest objects.
const MAX_RESPONSE: usize = 512 << 20;
/// The most objects of one call.
const MAX_OBJECTS: usize = 500;

/// Objects cannot be converted.
#[derive(Debug, thiserror::Error)]
pub enum ConvertObjectsError {
    /// The webhook supports no known version of `ConversionReview`.
    #[error("no supported conversion review versions")]
    NoReviewVersion,
    /// The call failed, or the response is no valid `ConversionReview`.
    #[error("conversion webhook for {from} failed: {reason}")]
    Webhook {
        /// Version and kind of the objects.
        from: String,
        /// The reason.
        reason: WebhookReason,
    },
    /// The webhook returned another number of objects than it got.
    #[error("conversion webhook for {from} returned {found} objects, expected {expected}")]
    Count {
        /// Version and kind of the objects.
        from: String,
        /// The number of returned objects.
        found: usize,
        /// The number of sent objects.
        expected: usize,
    },
    /// The webhook changed an immutable field, or returned no objects.
    #[error("conversion webhook for {from} returned invalid {}: {problem}", problem.part())]
    Object {
        /// Version and kind of the objects.
        from: String,
        /// The problem of an object.
        problem: Box<ConvertedObjectError>,
    },
}

/// The reason for which a webhook returned no objects.
#[derive(Debug, thiserror::Error)]
pub enum WebhookReason {
    /// The `clientConfig` is invalid; the error is cached with the CRD.
    #[error("{0}")]
    Config(Arc<ClientConfigError>),
    /// The call failed.
    #[error(transparent)]
    OutboundRequest(#[from] CallError),
    /// The response has no value.
    #[error(transparent)]
    Response(#[from] ResponseError),
    /// The response is no JSON object.
    #[error(
        "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
    )]
    NoObject {
        /// The JSON type of the response.
        found: &'static str,
    },
    /// The response is no `ConversionReview`, or one of another version.
    #[error(
        "expected webhook response of {review}, Kind=ConversionReview, got {version}, Kind={kind}"
    )]
    OtherReview {
        /// The version of the request.
        review: String,
        /// The version of the response.
        version: String,
        /// The kind of the response.
        kind: String,
    },
    /// The `ConversionReview` has no `response`.
    #[error("no response provided")]
    NoResponse,
    /// The response has the uid of another request.
    #[error("expected response.uid={expected:?}, got {found:?}")]
    OtherUid {
        /// The uid of the request.
        expected: String,
        /// The uid of the response.
        found: String,
    },
    /// The conversion failed without a message.
    #[error("response.result.status was '{status}', not 'Success'")]
    NoSuccess {
        /// The status of the result.
        status: String,
    },
    /// The conversion failed with a message.
    #[error("{message}")]
    Failed {
        /// The message of the result.
        message: String,
    },
}

/// The problem of a converted object.
#[derive(Debug, thiserror::Error)]
pub enum ConvertedObjectError {
    /// The object has another version.
    #[error("invalid groupVersion (expected {expected}, received {found})")]
    Version {
        /// The requested version.
        expected: String,
        /// Its own.
        found: String,
    },
    /// The object has another kind.
    #[error("invalid kind (expected {expected}, received {found})")]
    Kind {
        /// What was sent.
        expected: String,
        /// Its own.
        found: String,
    },
    /// The object has another name, namespace or uid.
    #[error("must have the same {field}: {expected} != {found}")]
    Identity {
        /// The field.
        field: &'static str,
        /// What was sent.
        expected: String,
        /// Its own.
        found: String,
    },
    /// The object has no metadata.
    #[error("missing metadata in converted object")]
    NoMetadata,
    /// The metadata is no JSON object.
    #[error("invalid metadata of type {found} in converted object")]
    MetadataType {
        /// The JSON type of the metadata.
        found: &'static str,
    },
    /// A label or annotation is invalid.
    #[error("{0}")]
    Field(FieldError),
}

impl ConvertedObjectError {
    const fn part(&self) -> &'static str {
        match self {
            Self::Version { .. } | Self::Kind { .. } => "object at index 0",
            Self::Identity { .. } => "object",
            Self::NoMetadata | Self::MetadataType { .. } | Self::Field(_) => "metadata",
        }
    }
}

/// Client for the conversion webhook of a CRD.
#[derive(Debug)]
pub struct Converter {
    client: Result<ClientConfig, Arc<ClientConfigError>>,
    /// The version of `ConversionReview`; none if the webhook supports no known one.
    review: Option<&'static str>,
}

impl Converter {
    /// The converter of a CRD; none if it has no conversion webhook.
    pub fn of(custom: &CustomVersion) -> Option<Arc<Self>> {
        let read = || Self::read(&custom.definition.conversion);
        custom.is_converted.then(|| custom.derived.get_or_init(read))
    }

    /// Reads `spec.conversion`.
    fn read(conversion: &Value) -> Self {
        let webhook = conversion.get("webhook").unwrap_or(&Value::Null);
        let versions = webhook.get("conversionReviewVersions").and_then(Value::as_array);
        let mut versions = versions.into_iter().flatten().filter_map(Value::as_str);
        let api_version = |version| match version {
            "v1" => Some("apiextensions.k8s.io/v1"),
            "v1beta1" => Some("apiextensions.k8s.io/v1beta1"),
            _ => None,
        };
        Self {
            client: ClientConfig::read(webhook.get("clientConfig").unwrap_or(&Value::Null))
                .map_err(Arc::new),
            review: versions.find_map(api_version),
        }
    }

    /// Converts objects of one version into another version.
    ///
    /// # Errors
    /// If the webhook fails, or changes an immutable field.
    pub async fn convert(
        &self,
        outbound: &Outbound,
        objects: &[Object],
        wanted: &str,
    ) -> Result<Vec<Object>, ConvertObjectsError> {
        let Some(first) = objects.first() else { return Ok(Vec::new()) };
        let gvk = first.gvk();
        let from = format!("{}, Kind={}", first.api_version(), gvk.kind);
        let failed = |reason| ConvertObjectsError::Webhook { from: from.clone(), reason };
        let Some(review) = self.review else {
            return Err(ConvertObjectsError::NoReviewVersion);
        };
        let client = self.client.as_ref();
        let client = client.map_err(|error| failed(WebhookReason::Config(Arc::clone(error))))?;
        let uid = random_uid();
        let sent: Vec<Value> = objects.iter().map(Object::to_value).collect();
        let body = json!({"kind": "ConversionReview", "apiVersion": review, "request": {
            "uid": uid, "desiredAPIVersion": wanted, "objects": sent,
        }});
        let request = OutboundRequest {
            method: Method::POST,
            query: format!("?timeout={}s", TIMEOUT.as_secs()),
            body: body.to_string().into(),
            timeout: TIMEOUT,
            limit: MAX_RESPONSE,
        };
        let response = outbound.call(client, request).await;
        let response = response.map_err(|error| failed(error.into()))?;
        let value = response_value(&response).map_err(|error| failed(error.into()))?;
        let converted = converted_objects(value, review, &uid).map_err(failed)?;
        if converted.len() != objects.len() && !mainstay_fault::is_on("conversions-lose-objects") {
            let (found, expected) = (converted.len(), objects.len());
            return Err(ConvertObjectsError::Count { from, found, expected });
        }
        let pairs = objects.iter().zip(converted);
        pairs
            .map(|(before, after)| check_converted(before, after, wanted))
            .collect::<Result<_, _>>()
            .map_err(|problem| ConvertObjectsError::Object { from, problem: Box::new(problem) })
    }
}

/// The objects of a `ConversionReview`.
fn converted_objects(
    mut value: Value,
    review: &str,
    uid: &str,
) -> Result<Vec<Value>, WebhookReason> {
    if !value.is_object() {
        let found = mainstay_gocompat::values::json_kind(&value);
        return Err(WebhookReason::NoObject { found });
    }
    let text = |value: &Value, field: &str| {
        value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let (version, kind) = (text(&value, "apiVersion"), text(&value, "kind"));
    let is_v1 = review == "apiextensions.k8s.io/v1";
    if is_v1 && (version != review || kind != "ConversionReview") {
        let version = if version.contains('/') { version } else { format!("/{version}") };
        return Err(WebhookReason::OtherReview { review: review.to_owned(), version, kind });
    }
    let mut response = value["response"].take();
    if response.is_null() {
        return Err(WebhookReason::NoResponse);
    }
    let found = text(&response, "uid");
    if is_v1 && found != uid && !mainstay_fault::is_on("conversions-answer-somebody-else") {
        return Err(WebhookReason::OtherUid { expected: uid.to_owned(), found });
    }
    let result = response.get("result").unwrap_or(&Value::Null);
    let status = text(result, "status");
    if status != "Success" {
        let message = text(result, "message");
        return Err(if message.is_empty() {
            WebhookReason::NoSuccess { status }
        } else {
            WebhookReason::Failed { message }
        });
    }
    match response["convertedObjects"].take() {
        Value::Array(objects) => Ok(objects),
        _ => Ok(Vec::new()),
    }
}

/// A converted object with the immutable metadata of the sent one.
fn check_converted(
    before: &Object,
    after: Value,
    wanted: &str,
) -> Result<Object, ConvertedObjectError> {
    let text = |field: &str| after.get(field).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    if version != wanted && !mainstay_fault::is_on("conversions-choose-the-version") {
        let (expected, found) = (wanted.to_owned(), version.to_owned());
        return Err(ConvertedObjectError::Version { expected, found });
    }
    if kind != before.gvk().kind {
        return Err(ConvertedObjectError::Kind {
            expected: before.gvk().kind,
            found: kind.to_owned(),
        });
    }
    let converted = |field: &str| {
        let value = after.get("metadata").and_then(|metadata| metadata.get(field));
        value.and_then(Value::as_str).unwrap_or_default()
    };
    for (field, expected, found) in [
        ("name", before.name(), converted("name")),
        ("namespace", before.namespace(), converted("namespace")),
        ("UID", before.uid(), converted("uid")),
    ] {
        if expected != found && !mainstay_fault::is_on("conversions-rename") {
            let (expected, found) = (expected.to_owned(), found.to_owned());
            return Err(ConvertedObjectError::Identity { field, expected, found });
        }
    }
    let Some(given) = after.get("metadata") else {
        return Err(ConvertedObjectError::NoMetadata);
    };
    let Some(given) = given.as_object() else {
        let found = mainstay_gocompat::values::json_kind(given);
        return Err(ConvertedObjectError::MetadataType { found });
    };
    let mut merged = match before.get(&["metadata"]) {
        Some(Value::Object(fields)) => fields.clone(),
        _ => Map::new(),
    };
    let path = FieldPath::new("metadata");
    let mut errors = metadata::labels(given.get("labels"), &path.child("labels"));
    errors.extend(metadata::annotations(given.get("annotations"), &path.child("annotations")));
    if let Some(error) = errors.into_iter().next() {
        return Err(ConvertedObjectError::Field(error));
    }
    for field in ["labels", "annotations"] {
        if mainstay_fault::is_on("conversions-change-no-labels") {
            break;
        }
        match given.get(field).filter(|value| !value.is_null()) {
            Some(value) => merged.insert(field.to_owned(), value.clone()),
            None => merged.remove(field),
        };
    }
    // A value with metadata is an object.
    let mut object = Object::from_value(after).unwrap_or_default();
    object.set(&["metadata"], Value::Object(merged));
    Ok(object)
}

/// Status 500, as in upstream, which treats these errors as internal.
#[expect(clippy::needless_pass_by_value, reason = "the form that `map_err` takes")]
fn conversion_status(error: ConvertObjectsError) -> Status {
    Status::new(Reason::Unknown, error.to_string())
}

fn converter(row: &KindRow) -> Option<Arc<Converter>> {
    Converter::of(row.custom()?)
}

/// Whether a stored object is in the row's version.
fn has_row_version(row: &KindRow, stored: &Stored) -> bool {
    const HEAD: &[u8] = b"{\"apiVersion\":\"";
    let rest = stored.start().strip_prefix(HEAD);
    let rest = rest.and_then(|rest| rest.strip_prefix(row.api_version.as_bytes()));
    rest.is_some_and(|rest| rest.first() == Some(&b'"'))
}

/// A stored object in the row's version. The object is unchanged if no webhook converts it.
pub async fn convert_stored(
    outbound: &Outbound,
    row: &KindRow,
    stored: Arc<Stored>,
) -> Result<Arc<Stored>, Status> {
    if converter(row).is_none() || has_row_version(row, &stored) {
        return Ok(stored);
    }
    // The result has as many objects as the argument.
    let mut all = convert_stored_list(outbound, row, vec![stored.clone()]).await?;
    Ok(all.pop().unwrap_or(stored))
}

/// As [`convert_stored`], for a list.
pub async fn convert_stored_list(
    outbound: &Outbound,
    row: &KindRow,
    mut items: Vec<Arc<Stored>>,
) -> Result<Vec<Arc<Stored>>, Status> {
    let Some(converter) = converter(row) else { return Ok(items) };
    let foreign: Vec<usize> =
        (0..items.len()).filter(|at| !has_row_version(row, &items[*at])).collect();
    for chunk in foreign.chunks(MAX_OBJECTS) {
        let mut objects: Vec<Object> = chunk.iter().map(|at| items[*at].object()).collect();
        // One request has objects of one version.
        while let Some(version) = objects.first().map(|object| object.api_version().to_owned()) {
            let same = objects.iter().take_while(|object| object.api_version() == version).count();
            let rest = objects.split_off(same);
            let at = chunk.len() - same - rest.len();
            let converted = converter.convert(outbound, &objects, &row.api_version).await;
            for (at, object) in chunk[at..].iter().zip(converted.map_err(conversion_status)?) {
                let object = apply_schema(row, object);
                let stored = items[*at].with_object(&object).map_err(Status::internal)?;
                items[*at] = Arc::new(stored);
            }
            objects = rest;
        }
    }
    Ok(items)
}

/// Prunes and defaults a converted object by the schema of the row's version.
fn apply_schema(row: &KindRow, object: Object) -> Object {
    let Some(custom) = row.custom() else { return object };
    let mut value = object.into_value();
    custom.version().schema.reread(&mut value);
    // Pruning and defaulting keep an object an object.
    Object::from_value(value).unwrap_or_default()
}

/// Converts an object of the row's version to the storage version.
pub async fn convert_to_storage(
    outbound: &Outbound,
    row: &KindRow,
    object: Object,
) -> Result<Object, Status> {
    let Some(custom) = row.custom() else { return Ok(object) };
    let (Some(converter), Some(stored)) =
        (Converter::of(custom), custom.definition.storage_version())
    else {
        return Ok(object);
    };
    let wanted = custom.definition.gvk(&stored.name).api_version();
    if *row.api_version == *wanted {
        return Ok(object);
    }
    let mut value = convert_one(outbound, &converter, object, &wanted).await?.into_value();
    // Fields that the storage version does not have are lost.
    if !mainstay_fault::is_on("stored-versions-keep-what-they-do-not-know") {
        drop(stored.schema.prune(&mut value));
    }
    // Pruning keeps an object an object.
    Ok(Object::from_value(value).unwrap_or_default())
}

/// Converts an object from one version of a kind to the version of another row.
pub async fn convert_value(
    outbound: &Outbound,
    to: &KindRow,
    value: Value,
) -> Result<Value, Status> {
    let Some(converter) = converter(to) else { return Ok(value) };
    match Object::from_value(value) {
        Ok(object) => {
            let object = convert_one(outbound, &converter, object, &to.api_version).await?;
            Ok(object.into_value())
        }
        Err(_) => Ok(Value::Null),
    }
}

async fn convert_one(
    outbound: &Outbound,
    converter: &Converter,
    object: Object,
    wanted: &str,
) -> Result<Object, Status> {
    if object.api_version() == wanted {
        return Ok(object);
    }
    let mut converted = converter
        .convert(outbound, std::slice::from_ref(&object), wanted)
        .await
        .map_err(conversion_status)?;
    Ok(converted.pop().unwrap_or(object))
}
