//! Conversion webhooks of CustomResourceDefinitions.
//!
//! Rows of such a kind speak their own version everywhere; objects are converted where they come
//! from the store and where they go there. What comes back of a webhook is checked: it may change
//! everything but metadata, and of that labels and annotations.
//!
//! Rules and texts: apiextensions-apiserver's `pkg/apiserver/conversion`.

use http::Method;
use mainstay_kinds::{Custom, KindRow};
use mainstay_object::fnv::random_uid;
use mainstay_object::{FieldError, FieldPath, Object, Reason, Status, metadata};
use mainstay_outbound::{
    Call, CallError, ClientConfig, ClientConfigError, Outbound, ResponseError, response_value,
};
use mainstay_store::Stored;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// How long a call may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of an answer: a few hundred of the largest objects.
const LIMIT: usize = 512 << 20;
/// Objects of one call.
const TOGETHER: usize = 500;

/// Objects cannot be converted.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// The webhook speaks no version of reviews that is known.
    #[error("no supported conversion review versions")]
    NoReviewVersion,
    /// The webhook cannot be called, or has an answer that is none.
    #[error("conversion webhook for {from} failed: {reason}")]
    Webhook {
        /// Version and kind of the objects.
        from: String,
        /// Why not.
        reason: WebhookReason,
    },
    /// The webhook makes more objects or less of those that it is sent.
    #[error("conversion webhook for {from} returned {found} objects, expected {expected}")]
    Count {
        /// Version and kind of the objects.
        from: String,
        /// How many it made.
        found: usize,
        /// How many it was sent.
        expected: usize,
    },
    /// The webhook changes what it may not, or makes no objects.
    #[error("conversion webhook for {from} returned invalid {}: {fault}", fault.place())]
    Object {
        /// Version and kind of the objects.
        from: String,
        /// What is wrong with an object.
        fault: Box<ObjectFault>,
    },
}

/// Why a webhook gave no objects.
#[derive(Debug, thiserror::Error)]
pub enum WebhookReason {
    /// It leads nowhere; why is kept with the definition.
    #[error("{0}")]
    Config(Arc<ClientConfigError>),
    /// It was not reached.
    #[error(transparent)]
    Call(#[from] CallError),
    /// Its answer has no value.
    #[error(transparent)]
    Response(#[from] ResponseError),
    /// Its answer is no object.
    #[error(
        "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
    )]
    NoObject {
        /// What it is.
        found: &'static str,
    },
    /// Its answer is a review of another version, or none.
    #[error(
        "expected webhook response of {review}, Kind=ConversionReview, got {version}, Kind={kind}"
    )]
    OtherReview {
        /// The version of the question.
        review: String,
        /// That of the answer.
        version: String,
        /// The kind of the answer.
        kind: String,
    },
    /// Its answer has no response.
    #[error("no response provided")]
    NoResponse,
    /// It answers another question.
    #[error("expected response.uid={expected:?}, got {found:?}")]
    OtherUid {
        /// The uid of the question.
        expected: String,
        /// That of the answer.
        found: String,
    },
    /// It did not succeed, and does not say why.
    #[error("response.result.status was '{status}', not 'Success'")]
    NoSuccess {
        /// What it says instead.
        status: String,
    },
    /// It did not succeed; what it says.
    #[error("{message}")]
    Refused {
        /// Its message.
        message: String,
    },
}

/// What is wrong with a converted object.
#[derive(Debug, thiserror::Error)]
pub enum ObjectFault {
    /// It is of another version.
    #[error("invalid groupVersion (expected {expected}, received {found})")]
    Version {
        /// What was asked for.
        expected: String,
        /// Its own.
        found: String,
    },
    /// It is of another kind.
    #[error("invalid kind (expected {expected}, received {found})")]
    Kind {
        /// What was sent.
        expected: String,
        /// Its own.
        found: String,
    },
    /// It is another one.
    #[error("must have the same {field}: {expected} != {found}")]
    Identity {
        /// By which field.
        field: &'static str,
        /// What was sent.
        expected: String,
        /// Its own.
        found: String,
    },
    /// It has no metadata.
    #[error("missing metadata in converted object")]
    NoMetadata,
    /// Its metadata is no object.
    #[error("invalid metadata of type {found} in converted object")]
    MetadataType {
        /// What it is.
        found: &'static str,
    },
    /// Its labels or annotations are not valid.
    #[error("{0}")]
    Field(FieldError),
}

impl ObjectFault {
    const fn place(&self) -> &'static str {
        match self {
            Self::Version { .. } | Self::Kind { .. } => "object at index 0",
            Self::Identity { .. } => "object",
            Self::NoMetadata | Self::MetadataType { .. } | Self::Field(_) => "metadata",
        }
    }
}

/// Who converts the objects of a definition.
#[derive(Debug)]
pub struct Converter {
    client: Result<ClientConfig, Arc<ClientConfigError>>,
    /// The version of reviews; none if the webhook speaks none that is known.
    review: Option<&'static str>,
}

impl Converter {
    /// The converter of a definition; none if no webhook converts.
    pub fn of(custom: &Custom) -> Option<Arc<Self>> {
        let read = || Self::read(&custom.definition.conversion);
        custom.is_converted.then(|| custom.derived.get_or_init(read))
    }

    /// Reads `spec.conversion`.
    fn read(conversion: &Value) -> Self {
        let webhook = conversion.get("webhook").unwrap_or(&Value::Null);
        let versions = webhook.get("conversionReviewVersions").and_then(Value::as_array);
        let mut versions = versions.into_iter().flatten().filter_map(Value::as_str);
        let known = |version| match version {
            "v1" => Some("apiextensions.k8s.io/v1"),
            "v1beta1" => Some("apiextensions.k8s.io/v1beta1"),
            _ => None,
        };
        Self {
            client: ClientConfig::read(webhook.get("clientConfig").unwrap_or(&Value::Null))
                .map_err(Arc::new),
            review: versions.find_map(known),
        }
    }

    /// Turns objects of one version into another one.
    ///
    /// # Errors
    /// If the webhook does not, or changes what it may not.
    pub async fn convert(
        &self,
        outbound: &Outbound,
        objects: &[Object],
        wanted: &str,
    ) -> Result<Vec<Object>, ConvertError> {
        let Some(first) = objects.first() else { return Ok(Vec::new()) };
        let gvk = first.gvk();
        let from = format!("{}, Kind={}", first.api_version(), gvk.kind);
        let failed = |reason| ConvertError::Webhook { from: from.clone(), reason };
        let Some(review) = self.review else {
            return Err(ConvertError::NoReviewVersion);
        };
        let client = self.client.as_ref();
        let client = client.map_err(|error| failed(WebhookReason::Config(Arc::clone(error))))?;
        let uid = random_uid();
        let sent: Vec<Value> = objects.iter().map(Object::to_value).collect();
        let body = json!({"kind": "ConversionReview", "apiVersion": review, "request": {
            "uid": uid, "desiredAPIVersion": wanted, "objects": sent,
        }});
        let call = Call {
            method: Method::POST,
            query: format!("?timeout={}s", TIMEOUT.as_secs()),
            body: body.to_string().into(),
            timeout: TIMEOUT,
            limit: LIMIT,
        };
        let answered = outbound.call(client, call).await;
        let answered = answered.map_err(|error| failed(error.into()))?;
        let value = response_value(&answered).map_err(|error| failed(error.into()))?;
        let converted = converted(value, review, &uid).map_err(failed)?;
        if converted.len() != objects.len() && !mainstay_fault::is_on("conversions-lose-objects") {
            let (found, expected) = (converted.len(), objects.len());
            return Err(ConvertError::Count { from, found, expected });
        }
        let each = objects.iter().zip(converted);
        each.map(|(before, after)| checked(before, after, wanted))
            .collect::<Result<_, _>>()
            .map_err(|fault| ConvertError::Object { from, fault: Box::new(fault) })
    }
}

/// The objects of an answer.
fn converted(mut value: Value, review: &str, uid: &str) -> Result<Vec<Value>, WebhookReason> {
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
    let got = text(&response, "uid");
    if is_v1 && got != uid && !mainstay_fault::is_on("conversions-answer-somebody-else") {
        return Err(WebhookReason::OtherUid { expected: uid.to_owned(), found: got });
    }
    let result = response.get("result").unwrap_or(&Value::Null);
    let status = text(result, "status");
    if status != "Success" {
        let message = text(result, "message");
        return Err(if message.is_empty() {
            WebhookReason::NoSuccess { status }
        } else {
            WebhookReason::Refused { message }
        });
    }
    match response["convertedObjects"].take() {
        Value::Array(objects) => Ok(objects),
        _ => Ok(Vec::new()),
    }
}

/// A converted object with the metadata of the one that was sent.
fn checked(before: &Object, after: Value, wanted: &str) -> Result<Object, ObjectFault> {
    let text = |field: &str| after.get(field).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    if version != wanted && !mainstay_fault::is_on("conversions-choose-the-version") {
        let (expected, found) = (wanted.to_owned(), version.to_owned());
        return Err(ObjectFault::Version { expected, found });
    }
    if kind != before.gvk().kind {
        return Err(ObjectFault::Kind { expected: before.gvk().kind, found: kind.to_owned() });
    }
    let of = |field: &str| {
        let value = after.get("metadata").and_then(|metadata| metadata.get(field));
        value.and_then(Value::as_str).unwrap_or_default()
    };
    for (field, expected, found) in [
        ("name", before.name(), of("name")),
        ("namespace", before.namespace(), of("namespace")),
        ("UID", before.uid(), of("uid")),
    ] {
        if expected != found && !mainstay_fault::is_on("conversions-rename") {
            let (expected, found) = (expected.to_owned(), found.to_owned());
            return Err(ObjectFault::Identity { field, expected, found });
        }
    }
    let Some(given) = after.get("metadata") else {
        return Err(ObjectFault::NoMetadata);
    };
    let Some(given) = given.as_object() else {
        let found = mainstay_gocompat::values::json_kind(given);
        return Err(ObjectFault::MetadataType { found });
    };
    let mut kept = match before.get(&["metadata"]) {
        Some(Value::Object(fields)) => fields.clone(),
        _ => Map::new(),
    };
    let path = FieldPath::new("metadata");
    let mut errors = metadata::labels(given.get("labels"), &path.child("labels"));
    errors.extend(metadata::annotations(given.get("annotations"), &path.child("annotations")));
    if let Some(error) = errors.into_iter().next() {
        return Err(ObjectFault::Field(error));
    }
    for field in ["labels", "annotations"] {
        if mainstay_fault::is_on("conversions-change-no-labels") {
            break;
        }
        match given.get(field).filter(|value| !value.is_null()) {
            Some(value) => kept.insert(field.to_owned(), value.clone()),
            None => kept.remove(field),
        };
    }
    // What has metadata is an object.
    let mut object = Object::from_value(after).unwrap_or_default();
    object.set(&["metadata"], Value::Object(kept));
    Ok(object)
}

/// 500, as the original: it takes these for faults of its own.
#[expect(clippy::needless_pass_by_value, reason = "the form that `map_err` takes")]
fn refusal(error: ConvertError) -> Status {
    Status::new(Reason::Unknown, error.to_string())
}

fn converter(row: &KindRow) -> Option<Arc<Converter>> {
    Converter::of(row.custom()?)
}

/// Whether a stored object is in the row's version.
fn is_spoken(row: &KindRow, stored: &Stored) -> bool {
    const HEAD: &[u8] = b"{\"apiVersion\":\"";
    let rest = stored.start().strip_prefix(HEAD);
    let rest = rest.and_then(|rest| rest.strip_prefix(row.api_version.as_bytes()));
    rest.is_some_and(|rest| rest.first() == Some(&b'"'))
}

/// A stored object in the row's version, if a webhook has to convert it; else as it is.
pub async fn spoken(
    outbound: &Outbound,
    row: &KindRow,
    stored: Arc<Stored>,
) -> Result<Arc<Stored>, Status> {
    if converter(row).is_none() || is_spoken(row, &stored) {
        return Ok(stored);
    }
    // One goes in, and one comes out.
    let mut all = spoken_all(outbound, row, vec![stored.clone()]).await?;
    Ok(all.pop().unwrap_or(stored))
}

/// The same of many.
pub async fn spoken_all(
    outbound: &Outbound,
    row: &KindRow,
    mut items: Vec<Arc<Stored>>,
) -> Result<Vec<Arc<Stored>>, Status> {
    let Some(converter) = converter(row) else { return Ok(items) };
    let foreign: Vec<usize> = (0..items.len()).filter(|at| !is_spoken(row, &items[*at])).collect();
    for turn in foreign.chunks(TOGETHER) {
        let mut objects: Vec<Object> = turn.iter().map(|at| items[*at].object()).collect();
        // Those of different versions are asked for apart.
        while let Some(version) = objects.first().map(|one| one.api_version().to_owned()) {
            let same = objects.iter().take_while(|one| one.api_version() == version).count();
            let rest = objects.split_off(same);
            let at = turn.len() - same - rest.len();
            let made = converter.convert(outbound, &objects, &row.api_version).await;
            for (at, object) in turn[at..].iter().zip(made.map_err(refusal)?) {
                let object = fitted(row, object);
                let stored = items[*at].with_object(&object).map_err(Status::internal)?;
                items[*at] = Arc::new(stored);
            }
            objects = rest;
        }
    }
    Ok(items)
}

/// What a webhook made, as readers of the version get it: without what it does not know, and with
/// what is missing.
fn fitted(row: &KindRow, object: Object) -> Object {
    let Some(custom) = row.custom() else { return object };
    let mut value = object.into_value();
    custom.version().schema.reread(&mut value);
    // What went in as an object comes out as one.
    Object::from_value(value).unwrap_or_default()
}

/// Turns an object of the row's version into the one that is stored.
pub async fn to_storage(
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
    let mut value = converted_to(outbound, &converter, object, &wanted).await?.into_value();
    // What the stored version does not know is lost.
    if !mainstay_fault::is_on("stored-versions-keep-what-they-do-not-know") {
        drop(stored.schema.prune(&mut value));
    }
    // What went in as an object comes out as one.
    Ok(Object::from_value(value).unwrap_or_default())
}

/// An object of one row of a kind as another row shows it.
pub async fn between(outbound: &Outbound, to: &KindRow, value: Value) -> Result<Value, Status> {
    let Some(converter) = converter(to) else { return Ok(value) };
    match Object::from_value(value) {
        Ok(object) => {
            let object = converted_to(outbound, &converter, object, &to.api_version).await?;
            Ok(object.into_value())
        }
        Err(_) => Ok(Value::Null),
    }
}

async fn converted_to(
    outbound: &Outbound,
    converter: &Converter,
    object: Object,
    wanted: &str,
) -> Result<Object, Status> {
    if object.api_version() == wanted {
        return Ok(object);
    }
    let mut made = converter
        .convert(outbound, std::slice::from_ref(&object), wanted)
        .await
        .map_err(refusal)?;
    Ok(made.pop().unwrap_or(object))
}
