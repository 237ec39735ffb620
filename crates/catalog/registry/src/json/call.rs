//! Calls to the registry API by method name.

use super::ToJson;
use crate::grpc::api::{
    self, experimental_registry_client::ExperimentalRegistryClient, registry_client::RegistryClient,
};
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::uri::{InvalidUri, PathAndQuery};
use serde_json::Value;
use std::error::Error;
use tonic::{
    Code, Request, Response, Status, Streaming,
    body::Body,
    client::{Grpc, GrpcService},
    metadata::{
        AsciiMetadataKey, AsciiMetadataValue,
        errors::{InvalidMetadataKey, InvalidMetadataValue},
    },
};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse, health_client::HealthClient};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
};

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcCallResult {
    /// The status code by its protocol name: `OK`, `UNKNOWN`, `INVALID_ARGUMENT` …
    pub code: &'static str,
    /// The status message.
    pub message: String,
    /// The messages before the status.
    pub messages: Vec<Value>,
}

/// A call cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum RpcCallError {
    /// The method does not exist.
    #[error("there is no rpc {rpc}")]
    UnknownRpc {
        /// The method.
        rpc: String,
    },
    /// The name of a metadata entry is invalid.
    #[error(transparent)]
    ParseMetadataKey(#[from] InvalidMetadataKey),
    /// The value of a metadata entry is invalid.
    #[error(transparent)]
    ParseMetadataValue(#[from] InvalidMetadataValue),
    /// The path of an unknown method is invalid.
    #[error(transparent)]
    ParsePath(#[from] InvalidUri),
    /// The channel is not ready for a call.
    #[error("{0}")]
    Connect(Box<dyn Error + Send + Sync>),
}

/// Calls a method.
///
/// `rpc` is the name of a method of the registry, `Health.Check`, `Health.Watch` or
/// `Reflection.ListServices`. `Unknown` calls the `path` of the request. `Health.Watch` waits for
/// its first message. Absent fields of the request are empty.
///
/// # Errors
/// If `rpc` does not exist, or metadata is invalid.
pub async fn call<C>(
    channel: C,
    rpc: &str,
    request: &Value,
    metadata: &[(&str, &str)],
) -> Result<RpcCallResult, RpcCallError>
where
    C: GrpcService<Body> + Clone + Send,
    C::Error: Into<Box<dyn Error + Send + Sync>>,
    C::ResponseBody: http_body::Body<Data = Bytes> + Send + 'static,
    <C::ResponseBody as http_body::Body>::Error: Into<Box<dyn Error + Send + Sync>> + Send,
    C::Future: Send,
{
    let field = |name: &str| request[name].as_str().unwrap_or_default().to_owned();
    macro_rules! call {
        ($client:ident.$method:ident($message:expr)) => {{
            let mut call = Request::new($message);
            for (name, value) in metadata {
                let name = AsciiMetadataKey::from_bytes(name.as_bytes());
                let value = AsciiMetadataValue::try_from(*value);
                call.metadata_mut().insert(name?, value?);
            }
            let mut client = $client::new(channel).max_decoding_message_size(usize::MAX);
            client.$method(call).await
        }};
    }
    macro_rules! provided {
        ($method:ident, $message:ident, $gather:ident) => {{
            let message = api::$message {
                group: field("group"),
                version: field("version"),
                kind: field("kind"),
                plural: field("plural"),
            };
            $gather(call!(RegistryClient.$method(message)))
        }};
    }
    let (pkg_name, channel_name, csv_name) =
        (field("pkgName"), field("channelName"), field("csvName"));
    Ok(match rpc {
        "ListPackages" => {
            stream(call!(RegistryClient.list_packages(api::ListPackageRequest {}))).await
        }
        "ListBundles" => {
            stream(call!(RegistryClient.list_bundles(api::ListBundlesRequest {}))).await
        }
        "GetPackage" => {
            let message = api::GetPackageRequest { name: field("name") };
            one(call!(RegistryClient.get_package(message)))
        }
        "GetBundle" => {
            let message = api::GetBundleRequest { pkg_name, channel_name, csv_name };
            one(call!(RegistryClient.get_bundle(message)))
        }
        "GetBundleForChannel" => {
            let message = api::GetBundleInChannelRequest { pkg_name, channel_name };
            #[expect(deprecated, reason = "old, and still answered")]
            let answer = call!(RegistryClient.get_bundle_for_channel(message));
            one(answer)
        }
        "GetChannelEntriesThatReplace" => {
            let message = api::GetAllReplacementsRequest { csv_name };
            stream(call!(RegistryClient.get_channel_entries_that_replace(message))).await
        }
        "GetBundleThatReplaces" => {
            let message = api::GetReplacementRequest { csv_name, pkg_name, channel_name };
            one(call!(RegistryClient.get_bundle_that_replaces(message)))
        }
        "GetChannelEntriesThatProvide" => {
            provided!(get_channel_entries_that_provide, GetAllProvidersRequest, stream).await
        }
        "GetLatestChannelEntriesThatProvide" => {
            provided!(get_latest_channel_entries_that_provide, GetLatestProvidersRequest, stream)
                .await
        }
        "GetDefaultBundleThatProvides" => {
            provided!(get_default_bundle_that_provides, GetDefaultProviderRequest, one)
        }
        "ExperimentalListPackageCustomSchemas" => {
            let message = api::ExperimentalListPackageCustomSchemasRequest {
                schema: field("schema"),
                package_name: field("packageName"),
            };
            let method =
                call!(ExperimentalRegistryClient.experimental_list_package_custom_schemas(message));
            stream(method).await
        }
        "Health.Check" => {
            let message = HealthCheckRequest { service: field("service") };
            one(call!(HealthClient.check(message)))
        }
        "Health.Watch" => {
            let message = HealthCheckRequest { service: field("service") };
            first(call!(HealthClient.watch(message))).await
        }
        "Reflection.ListServices" => {
            let message = ServerReflectionRequest {
                host: String::new(),
                message_request: Some(MessageRequest::ListServices(String::new())),
            };
            let messages = stream::iter([message]);
            let response = call!(ServerReflectionClient.server_reflection_info(messages));
            services(response).await
        }
        "Unknown" => {
            let path = PathAndQuery::try_from(field("path"))?;
            let mut client = Grpc::new(channel);
            if let Err(error) = client.ready().await {
                return Err(RpcCallError::Connect(error.into()));
            }
            let codec = tonic_prost::ProstCodec::<(), HealthCheckResponse>::default();
            one(client.unary(Request::new(()), path, codec).await)
        }
        other => return Err(RpcCallError::UnknownRpc { rpc: other.to_owned() }),
    })
}

fn one<T: ToJson>(response: Result<Response<T>, Status>) -> RpcCallResult {
    match response {
        Ok(response) => ended(vec![response.get_ref().to_json()], None),
        Err(status) => ended(Vec::new(), Some(&status)),
    }
}

async fn stream<T: ToJson>(response: Result<Response<Streaming<T>>, Status>) -> RpcCallResult {
    let mut messages = Vec::new();
    match response {
        Ok(response) => {
            let mut stream = response.into_inner();
            loop {
                match stream.message().await {
                    Ok(Some(message)) => messages.push(message.to_json()),
                    Ok(None) => return ended(messages, None),
                    Err(status) => return ended(messages, Some(&status)),
                }
            }
        }
        Err(status) => ended(messages, Some(&status)),
    }
}

async fn first<T: ToJson>(response: Result<Response<Streaming<T>>, Status>) -> RpcCallResult {
    let next = match response {
        Ok(response) => response.into_inner().message().await,
        Err(status) => Err(status),
    };
    match next {
        Ok(message) => ended(message.iter().map(ToJson::to_json).collect(), None),
        Err(status) => ended(Vec::new(), Some(&status)),
    }
}

/// The names of services, sorted.
async fn services(
    response: Result<
        Response<Streaming<tonic_reflection::pb::v1::ServerReflectionResponse>>,
        Status,
    >,
) -> RpcCallResult {
    let mut names = Vec::new();
    match response {
        Ok(response) => {
            let mut stream = response.into_inner();
            while let Some(message) = stream.next().await {
                match message.map(|message| message.message_response) {
                    Ok(Some(MessageResponse::ListServicesResponse(found))) => {
                        names.extend(found.service.into_iter().map(|service| service.name));
                    }
                    Ok(_) => {}
                    Err(status) => return ended(Vec::new(), Some(&status)),
                }
            }
            names.sort();
            ended(names.into_iter().map(Value::from).collect(), None)
        }
        Err(status) => ended(Vec::new(), Some(&status)),
    }
}

fn ended(messages: Vec<Value>, status: Option<&Status>) -> RpcCallResult {
    match status {
        None => RpcCallResult { code: "OK", message: String::new(), messages },
        Some(status) => {
            let message = status.message().to_owned();
            RpcCallResult { code: name(status.code()), message, messages }
        }
    }
}

fn name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
