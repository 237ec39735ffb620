//! `api.ExperimentalRegistry`: documents of custom schemas.

use super::{
    api::{
        ExperimentalListPackageCustomSchemasRequest as Asked,
        experimental_registry_server::ExperimentalRegistry,
    },
    content, message,
    registry::RegistryService,
};
use futures::stream::{self, BoxStream};
use mainstay_catalog::{Blob, Catalog};
use mainstay_gocompat::quote;
use prost_types::{ListValue, Struct, Value, value::Kind};
use tonic::{Request, Response, Status};

/// The metadata key by which a client acknowledges that the API may change.
const ACKNOWLEDGED: &str = "x-acknowledge-experimental";

type Stream = BoxStream<'static, Result<Struct, Status>>;

#[tonic::async_trait]
impl ExperimentalRegistry for RegistryService {
    type ExperimentalListPackageCustomSchemasStream = Stream;

    async fn experimental_list_package_custom_schemas(
        &self,
        request: Request<Asked>,
    ) -> Result<Response<Stream>, Status> {
        // Clients without the acknowledgement get an empty stream and no error.
        if request.metadata().get(ACKNOWLEDGED).is_none_or(|value| value != "true") {
            return Ok(Response::new(Box::pin(stream::empty())));
        }
        let Asked { schema, package_name } = request.into_inner();
        if schema.is_empty() {
            return Err(Status::invalid_argument("schema is required"));
        }
        let invalid = |error: InvalidName| {
            Status::invalid_argument(format!("invalid custom schema query: {error}"))
        };
        check("schema", &schema).map_err(invalid)?;
        if !package_name.is_empty() {
            check("packageName", &package_name).map_err(invalid)?;
        }
        let index = content(&self.0)?;
        let is_requested =
            |blob: &&Blob| **blob.schema() == *schema && **blob.package() == *package_name;
        let blobs: Vec<Blob> =
            index.catalog().others().iter().filter(is_requested).cloned().collect();
        let documents = blobs.into_iter().map(|blob| {
            let value = blob.value().map_err(|error| message::content_error(&error))?;
            Ok(match of_json(value).kind {
                Some(Kind::StructValue(document)) => document,
                _ => Struct::default(),
            })
        });
        Ok(Response::new(Box::pin(stream::iter(documents))))
    }
}

/// Why upstream cannot serve a valid catalog, in upstream's words.
pub(crate) fn refusal(catalog: &Catalog) -> Option<String> {
    catalog.others().iter().find_map(refusal_of)
}

/// The same for one document of a custom schema.
pub(crate) fn refusal_of(blob: &Blob) -> Option<String> {
    let package = blob.package();
    check("schema", blob.schema())
        .and_then(|()| if package.is_empty() { Ok(()) } else { check("packageName", package) })
        .err()
        .map(|error| format!("invalid custom schema meta: {error}"))
}

/// A schema name or package name is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum InvalidName {
    /// The name is empty.
    #[error("invalid {field}: must not be empty")]
    Empty {
        /// The field with the name.
        field: &'static str,
    },
    /// The name has a character that is not allowed there.
    #[error("invalid {field} {}: must match ^[a-zA-Z0-9][a-zA-Z0-9._-]*$", quote(name))]
    Malformed {
        /// The field with the name.
        field: &'static str,
        /// The name.
        name: String,
    },
}

/// Checks a name: a letter or digit, followed by letters, digits, `.`, `_` and `-`.
fn check(field: &'static str, name: &str) -> Result<(), InvalidName> {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if name.starts_with(|sign: char| sign.is_ascii_alphanumeric()) && name.bytes().all(is_inner) {
        return Ok(());
    }
    if name.is_empty() {
        return Err(InvalidName::Empty { field });
    }
    Err(InvalidName::Malformed { field, name: name.to_owned() })
}

/// JSON as `google.protobuf.Value`, in which all numbers are floats.
fn of_json(value: serde_json::Value) -> Value {
    use serde_json::Value as Json;
    let kind = match value {
        Json::Null => Kind::NullValue(0),
        Json::Bool(flag) => Kind::BoolValue(flag),
        Json::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or_default()),
        Json::String(text) => Kind::StringValue(text),
        Json::Array(items) => {
            Kind::ListValue(ListValue { values: items.into_iter().map(of_json).collect() })
        }
        Json::Object(fields) => Kind::StructValue(Struct {
            fields: fields.into_iter().map(|(name, value)| (name, of_json(value))).collect(),
        }),
    };
    Value { kind: Some(kind) }
}
