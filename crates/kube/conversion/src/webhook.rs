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
use mainstay_object::{FieldPath, Object, Reason, Status, metadata};
use mainstay_outbound::{Call, ClientConfig, Outbound, response_value};
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

/// Who converts the objects of a definition.
#[derive(Debug)]
pub struct Converter {
    client: Result<ClientConfig, String>,
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
            client: ClientConfig::read(webhook.get("clientConfig").unwrap_or(&Value::Null)),
            review: versions.find_map(known),
        }
    }

    /// Turns objects of one version into another one.
    ///
    /// # Errors
    /// What went wrong, in the original's words.
    pub async fn convert(
        &self,
        outbound: &Outbound,
        objects: &[Object],
        wanted: &str,
    ) -> Result<Vec<Object>, String> {
        let Some(first) = objects.first() else { return Ok(Vec::new()) };
        let gvk = first.gvk();
        let from = format!("{}, Kind={}", first.api_version(), gvk.kind);
        let failed = |why: &str| format!("conversion webhook for {from} failed: {why}");
        let Some(review) = self.review else {
            return Err("no supported conversion review versions".to_owned());
        };
        let client = self.client.as_ref().map_err(|why| failed(why))?;
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
        let answered = answered.and_then(|answered| response_value(&answered));
        let value = answered.map_err(|why| failed(&why))?;
        let converted = converted(value, review, &uid).map_err(|why| failed(&why))?;
        if converted.len() != objects.len() && !mainstay_fault::is_on("conversions-lose-objects") {
            return Err(format!(
                "conversion webhook for {from} returned {} objects, expected {}",
                converted.len(),
                objects.len()
            ));
        }
        let each = objects.iter().zip(converted);
        each.map(|(before, after)| checked(&from, before, after, wanted)).collect()
    }
}

/// The objects of an answer.
fn converted(mut value: Value, review: &str, uid: &str) -> Result<Vec<Value>, String> {
    if !value.is_object() {
        let found = mainstay_gocompat::values::json_kind(&value);
        return Err(format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
        ));
    }
    let text = |value: &Value, field: &str| {
        value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let (version, kind) = (text(&value, "apiVersion"), text(&value, "kind"));
    let is_v1 = review == "apiextensions.k8s.io/v1";
    if is_v1 && (version != review || kind != "ConversionReview") {
        let shown = if version.contains('/') { version } else { format!("/{version}") };
        return Err(format!(
            "expected webhook response of {review}, Kind=ConversionReview, got {shown}, Kind={kind}"
        ));
    }
    let mut response = value["response"].take();
    if response.is_null() {
        return Err("no response provided".to_owned());
    }
    let got = text(&response, "uid");
    if is_v1 && got != uid && !mainstay_fault::is_on("conversions-answer-somebody-else") {
        return Err(format!("expected response.uid={uid:?}, got {got:?}"));
    }
    let result = response.get("result").unwrap_or(&Value::Null);
    let status = text(result, "status");
    if status != "Success" {
        let message = text(result, "message");
        return Err(if message.is_empty() {
            format!("response.result.status was '{status}', not 'Success'")
        } else {
            message
        });
    }
    match response["convertedObjects"].take() {
        Value::Array(objects) => Ok(objects),
        _ => Ok(Vec::new()),
    }
}

/// A converted object with the metadata of the one that was sent.
fn checked(from: &str, before: &Object, after: Value, wanted: &str) -> Result<Object, String> {
    let invalid = |what: &str, why: String| {
        Err(format!("conversion webhook for {from} returned invalid {what}: {why}"))
    };
    let text = |field: &str| after.get(field).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    if version != wanted && !mainstay_fault::is_on("conversions-choose-the-version") {
        let why = format!("invalid groupVersion (expected {wanted}, received {version})");
        return invalid("object at index 0", why);
    }
    if kind != before.gvk().kind {
        let why = format!("invalid kind (expected {}, received {kind})", before.gvk().kind);
        return invalid("object at index 0", why);
    }
    let of = |field: &str| {
        let value = after.get("metadata").and_then(|metadata| metadata.get(field));
        value.and_then(Value::as_str).unwrap_or_default()
    };
    for (what, wanted, got) in [
        ("name", before.name(), of("name")),
        ("namespace", before.namespace(), of("namespace")),
        ("UID", before.uid(), of("uid")),
    ] {
        if wanted != got && !mainstay_fault::is_on("conversions-rename") {
            return invalid("object", format!("must have the same {what}: {wanted} != {got}"));
        }
    }
    let Some(given) = after.get("metadata") else {
        return invalid("metadata", "missing metadata in converted object".to_owned());
    };
    let Some(given) = given.as_object() else {
        let kind = mainstay_gocompat::values::json_kind(given);
        return invalid("metadata", format!("invalid metadata of type {kind} in converted object"));
    };
    let mut kept = match before.get(&["metadata"]) {
        Some(Value::Object(fields)) => fields.clone(),
        _ => Map::new(),
    };
    let path = FieldPath::new("metadata");
    let mut errors = metadata::labels(given.get("labels"), &path.child("labels"));
    errors.extend(metadata::annotations(given.get("annotations"), &path.child("annotations")));
    if let Some(error) = errors.first() {
        return invalid("metadata", error.to_string());
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
    let mut object = Object::from_value(after).map_err(|error| error.to_string())?;
    object.set(&["metadata"], Value::Object(kept));
    Ok(object)
}

/// 500, as the original: it takes these for faults of its own.
fn refusal(why: String) -> Status {
    Status::new(Reason::Unknown, why)
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
