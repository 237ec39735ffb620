//! All gRPC services behind one HTTP service.

use super::{
    DESCRIPTION,
    api::{
        experimental_registry_server::ExperimentalRegistryServer, registry_server::RegistryServer,
    },
    health::Health,
    registry::RegistryService,
};
use crate::ServedCatalog;
use bytes::Bytes;
use http::{Request, Response};
use mainstay_gocompat::quote;
use std::{
    convert::Infallible,
    fmt,
    future::{Future, ready},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio_util::sync::CancellationToken;
use tonic::{Status, body::Body};
use tonic_health::pb::health_server::HealthServer;
use tonic_reflection::{
    pb::{v1, v1alpha},
    server::Builder,
};
use tower::{Service, ServiceExt, util::BoxCloneSyncService};

/// Requests hold a few names. A larger one is refused before it is read.
const REQUEST_BYTES: usize = 1 << 20;

/// All methods by service.
const METHODS: &[(&str, &[&str])] = &[
    (
        "api.Registry",
        &[
            "ListPackages",
            "GetPackage",
            "GetBundle",
            "GetBundleForChannel",
            "GetChannelEntriesThatReplace",
            "GetBundleThatReplaces",
            "GetChannelEntriesThatProvide",
            "GetLatestChannelEntriesThatProvide",
            "GetDefaultBundleThatProvides",
            "ListBundles",
        ],
    ),
    ("api.ExperimentalRegistry", &["ExperimentalListPackageCustomSchemas"]),
    ("grpc.health.v1.Health", &["Check", "Watch"]),
    ("grpc.reflection.v1.ServerReflection", &["ServerReflectionInfo"]),
    ("grpc.reflection.v1alpha.ServerReflection", &["ServerReflectionInfo"]),
];

type Inner = BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>;

/// The gRPC API of one served catalog: a service of HTTP/2 requests. Cheap to clone; always ready.
#[derive(Clone)]
pub struct Grpc {
    /// In the order of [`METHODS`].
    services: Arc<[Inner]>,
}

/// The gRPC API of a catalog, which may have no content yet: until then calls return `UNAVAILABLE`,
/// and health is `NOT_SERVING`.
pub fn service(served: Arc<ServedCatalog>) -> Grpc {
    service_until(served, CancellationToken::new())
}

/// Like [`service`], for a server that shuts down when `stop` is cancelled. From then on health is
/// `NOT_SERVING`; health watches receive that and end. Other calls are served as before.
pub fn service_until(served: Arc<ServedCatalog>, stop: CancellationToken) -> Grpc {
    let answers = RegistryService(Arc::clone(&served));
    let registry = RegistryServer::new(answers.clone()).max_decoding_message_size(REQUEST_BYTES);
    let experimental =
        ExperimentalRegistryServer::new(answers).max_decoding_message_size(REQUEST_BYTES);
    let health =
        HealthServer::new(Health { served, stop }).max_decoding_message_size(REQUEST_BYTES);
    let mut services = vec![
        BoxCloneSyncService::new(registry),
        BoxCloneSyncService::new(experimental),
        BoxCloneSyncService::new(health),
    ];
    // The descriptors are part of the program, and a test decodes them, so this cannot fail.
    services.extend(description().build_v1().ok().map(BoxCloneSyncService::new));
    services.extend(description().build_v1alpha().ok().map(BoxCloneSyncService::new));
    Grpc { services: services.into() }
}

fn description() -> Builder<'static> {
    Builder::configure()
        .include_reflection_service(false)
        .register_encoded_file_descriptor_set(DESCRIPTION)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(v1::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(v1alpha::FILE_DESCRIPTOR_SET)
}

impl fmt::Debug for Grpc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Grpc")
    }
}

/// A path has no method; the texts are those of upstream's server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum RouteError {
    /// The path does not consist of a service and a method.
    #[error("malformed method name: {}", quote(path))]
    Malformed {
        /// The path.
        path: String,
    },
    /// The service does not exist.
    #[error("unknown service {service}")]
    UnknownService {
        /// The service.
        service: String,
    },
    /// The service does not have the method.
    #[error("unknown method {method} for service {service}")]
    UnknownMethod {
        /// The service.
        service: String,
        /// The method.
        method: String,
    },
}

impl Grpc {
    /// The service for a path.
    fn find(&self, path: &str) -> Result<&Inner, RouteError> {
        let malformed = || RouteError::Malformed { path: path.to_owned() };
        let (service, method) =
            path.strip_prefix('/').unwrap_or(path).rsplit_once('/').ok_or_else(malformed)?;
        let at = METHODS
            .iter()
            .position(|(name, _)| *name == service)
            .ok_or_else(|| RouteError::UnknownService { service: service.to_owned() })?;
        if !METHODS[at].1.contains(&method) {
            let (service, method) = (service.to_owned(), method.to_owned());
            return Err(RouteError::UnknownMethod { service, method });
        }
        self.services.get(at).ok_or_else(malformed)
    }
}

impl<B> Service<Request<B>> for Grpc
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        match self.find(request.uri().path()) {
            Ok(service) => Box::pin(service.clone().oneshot(request.map(Body::new))),
            Err(error) => Box::pin(ready(Ok(Status::unimplemented(error.to_string()).into_http()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message as _;
    use prost_types::FileDescriptorSet;

    #[test]
    fn every_method_of_the_descriptor_has_a_route() {
        let grpc = service(Arc::new(ServedCatalog::new("a")));
        let mut methods = 0;
        for set in [
            DESCRIPTION,
            tonic_health::pb::FILE_DESCRIPTOR_SET,
            v1::FILE_DESCRIPTOR_SET,
            v1alpha::FILE_DESCRIPTOR_SET,
        ] {
            for file in FileDescriptorSet::decode(set).unwrap().file {
                for service in &file.service {
                    for method in &service.method {
                        let path =
                            format!("/{}.{}/{}", file.package(), service.name(), method.name());
                        assert!(grpc.find(&path).is_ok(), "{path}");
                        methods += 1;
                    }
                }
            }
        }
        assert_eq!(methods, METHODS.iter().map(|(_, all)| all.len()).sum::<usize>());
        assert_eq!(grpc.services.len(), METHODS.len());
    }

    #[test]
    fn unknown_methods_have_upstreams_errors() {
        let grpc = service(Arc::new(ServedCatalog::new("a")));
        for (path, words) in [
            ("/api.Registry/Nothing", "unknown method Nothing for service api.Registry"),
            ("/api.Nothing/ListPackages", "unknown service api.Nothing"),
            ("/nothing", "malformed method name: \"/nothing\""),
        ] {
            let error = grpc.find(path).err().map(|error| error.to_string());
            assert_eq!(error.as_deref(), Some(words));
        }
    }
}
