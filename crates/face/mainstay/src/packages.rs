//! PackageManifests of the embedded cluster: an in-process backend of the package server's Service.

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use mainstay_apiserver::{ApiServer, NativeGroup};
use mainstay_auth::Identity;
use mainstay_clock::Clock;
use mainstay_command::profile::Profile;
use mainstay_http::Body;
use mainstay_packages::{PackageApi, ResponseBody, SERVICE};
use std::sync::Arc;

/// Registers the in-process backend before catalogs exist: a Service from an earlier start has a
/// backend at once.
pub(crate) fn serve_in_process(server: &ApiServer, profile: Profile, clock: Clock) -> PackageApi {
    let packages = PackageApi::new(profile.catalog_namespace(), clock, server.stop().clone());
    let group = Arc::new(Group(packages.clone()));
    server.put_native_group(profile.manager_namespace(), SERVICE, group);
    packages
}

/// The body of a response.
pub(crate) fn response_body(content: ResponseBody) -> Body {
    match content {
        ResponseBody::Whole(bytes) => Body::from(bytes),
        ResponseBody::Pieces(pieces) => Body::chunks(pieces),
        ResponseBody::Stream(lines) => Body::stream(lines),
    }
}

/// Packages as an in-process API group.
#[derive(Debug)]
struct Group(PackageApi);

impl NativeGroup for Group {
    fn call(&self, _: &Identity, request: Request<Bytes>) -> BoxFuture<'_, Response<Body>> {
        Box::pin(async move { self.0.answer(&request).await.map(response_body) })
    }
}
