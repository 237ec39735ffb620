//! Routes: from the target of a path to its handler.

use crate::aggregation::documents;
use crate::chain::head::RequestHead;
use crate::discovery;
use crate::discovery::cache::DiscoveryRequest;
use crate::handlers;
use crate::handlers::compute::WorkSize;
use crate::handlers::request::Request;
use crate::metrics::page;
use crate::server::ApiServer;
use crate::service::LoopbackClient;
use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, HOST, HeaderValue, IF_NONE_MATCH};
use http::{Method, StatusCode};
use hyper::upgrade::OnUpgrade;
use mainstay_auth::Identity;
use mainstay_auth::authn::openid::{CONFIGURATION_PATH, KEYS_PATH};
use mainstay_http::header_text;
use mainstay_http::path::ApiPath;
use mainstay_http::response::{ApiResponse, JSON};
use mainstay_object::Status;
use std::sync::Arc;

impl ApiServer {
    /// Routes an authorized request to its handler.
    pub(crate) async fn route(
        self: &Arc<Self>,
        identity: &Identity,
        head: &RequestHead,
        body: Bytes,
        work_size: WorkSize,
    ) -> Result<ApiResponse, Status> {
        let RequestHead { parts, target, .. } = head;
        let query = head.query.as_ref().map_err(Clone::clone)?;
        // No route begins with two slashes.
        if head.path.as_deref().is_none_or(|path| path.starts_with("//")) {
            return Ok(ApiResponse::page_not_found());
        }
        if let ApiPath::Resource(path) = target {
            let Some(row) = self.registry.find(&path.group, &path.version, &path.plural) else {
                return discovery::unknown_resource(&self.registry.kinds(), &path.group);
            };
            let headers = &parts.headers;
            let warnings = mainstay_http::Warnings::default();
            let collected = warnings.clone();
            let reservations = self.allocator.reservations();
            let server = self;
            let on_upgrade = parts.extensions.get::<OnUpgrade>().cloned();
            let request = Request {
                server,
                identity,
                row,
                path,
                query,
                headers,
                encoding: head.format.encoding,
                uri: &parts.uri,
                body,
                warnings,
                on_upgrade,
                loopback: LoopbackClient(Arc::clone(self)),
                work_size,
                reservations,
            };
            let deprecated = request.row.deprecation().map(str::to_owned);
            let outcome = handlers::dispatch(request, &parts.method).await;
            // A request without a route gets no deprecation warning.
            let has_route = !matches!(&outcome, Err(status) if *status == Status::no_such_method());
            let mut response = outcome.unwrap_or_else(|status| ApiResponse::refusal(&status));
            let deprecated = deprecated.filter(|_| has_route);
            response.audit_annotations = collected.take_annotations();
            response.warnings.splice(..0, deprecated.into_iter().chain(collected.take()));
            return Ok(response);
        }
        let request = DiscoveryRequest {
            accept: header_text(&parts.headers, &ACCEPT),
            if_none_match: header_text(&parts.headers, &IF_NONE_MATCH),
            hash: query.text("hash"),
            now: self.clock.now(),
            host: parts
                .uri
                .authority()
                .map(http::uri::Authority::as_str)
                .or_else(|| header_text(&parts.headers, &HOST)),
        };
        if parts.method != Method::GET && target.is_routed() {
            return Err(Status::no_such_method());
        }
        if let Some(document) = self.openid(parts.uri.path(), request.host) {
            return if parts.method == Method::GET {
                Ok(document)
            } else {
                Err(Status::no_such_method())
            };
        }
        let kinds = self.registry.kinds();
        match target {
            ApiPath::Root => Ok(discovery::root(&kinds)),
            ApiPath::CoreVersions => discovery::discovery_root(&kinds, true, request),
            ApiPath::Groups => discovery::groups(&kinds, &self.aggregation, request),
            ApiPath::Group(group) => {
                discovery::any_group(&kinds, &self.aggregation, group, request)
            }
            ApiPath::GroupVersion(group, version) => {
                discovery::group_version(&kinds, group, version, request)
            }
            ApiPath::Version => discovery::version(&self.version, request),
            ApiPath::OpenApiV2 => {
                let others = Arc::new(documents::Remotes(self.clone()));
                discovery::swagger(&kinds, others, request).await
            }
            ApiPath::OpenApiV3 => {
                Ok(discovery::index(&kinds, &documents::index(&self.aggregation)))
            }
            ApiPath::OpenApiV3Document(path) => discovery::document(&kinds, path, request).await,
            ApiPath::Health(path) => {
                Ok(handlers::health::answer(self, identity, path, query).await)
            }
            ApiPath::Metrics => Ok(page::answer(self)),
            ApiPath::Resource(_) | ApiPath::Unknown => Ok(ApiResponse::page_not_found()),
        }
    }

    /// The `OpenID` documents with which other systems check the tokens of this server.
    fn openid(&self, path: &str, host: Option<&str>) -> Option<ApiResponse> {
        let (content_type, text) = match path {
            KEYS_PATH => ("application/jwk-set+json", self.authenticator.openid_keys()),
            CONFIGURATION_PATH => {
                (JSON, self.authenticator.openid_configuration(host.unwrap_or_default()))
            }
            _ => return None,
        };
        let an_hour = HeaderValue::from_static("public, max-age=3600");
        let mut document = ApiResponse::bytes(StatusCode::OK, text.into());
        document.content_type = content_type;
        Some(document.unindented().header(CACHE_CONTROL, an_hour))
    }
}
