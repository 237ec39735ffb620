//! Request handling: endpoints and responses, without a transport.

use crate::accept::{self, Format};
use crate::query::Query;
use crate::select::{SelectedPackage, Selection};
use crate::state::PackageApi;
use crate::table::{self, Representation};
use crate::{API_VERSION, GROUP, KIND, PLURAL, VERSION, discovery, openapi};
use bytes::Bytes;
use futures::stream::BoxStream;
use http::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use mainstay_object::{Reason, Status};
use serde_json::Value;
use std::fmt;

/// The body of a response.
pub enum ResponseBody {
    /// A complete body.
    Whole(Bytes),
    /// A body whose parts are rendered while they are sent.
    Pieces(Box<dyn Iterator<Item = Bytes> + Send>),
    /// The events of a watch, one line each.
    Stream(BoxStream<'static, Bytes>),
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Whole(_) => "Content::Whole",
            Self::Pieces(_) => "Content::Pieces",
            Self::Stream(_) => "Content::Stream",
        })
    }
}

/// The endpoint that a path names.
enum Endpoint<'p> {
    ApiGroup,
    ApiResources,
    OpenApiIndex,
    OpenApiV3,
    OpenApiV2,
    Packages { namespace: Option<&'p str> },
    Package { namespace: &'p str, name: &'p str },
    Icon { namespace: &'p str, name: &'p str },
}

impl<'p> Endpoint<'p> {
    fn parse(path: &'p str) -> Option<Self> {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        Some(match parts.as_slice() {
            ["openapi", "v2"] => Self::OpenApiV2,
            ["openapi", "v3"] => Self::OpenApiIndex,
            ["openapi", "v3", "apis", group, version] if is_ours(group, version) => Self::OpenApiV3,
            ["apis", group] if *group == GROUP => Self::ApiGroup,
            ["apis", group, version, rest @ ..] if is_ours(group, version) => match rest {
                [] => Self::ApiResources,
                [plural] if *plural == PLURAL => Self::Packages { namespace: None },
                ["namespaces", namespace, plural, rest @ ..] if *plural == PLURAL => match rest {
                    [] => Self::Packages { namespace: Some(namespace) },
                    [name] => Self::Package { namespace, name },
                    [name, "icon"] => Self::Icon { namespace, name },
                    _ => return None,
                },
                _ => return None,
            },
            _ => return None,
        })
    }
}

fn is_ours(group: &str, version: &str) -> bool {
    group == GROUP && version == VERSION
}

impl PackageApi {
    /// Handles a request that the caller has authorized.
    pub async fn answer<B>(&self, request: &Request<B>) -> Response<ResponseBody> {
        let Some(endpoint) = Endpoint::parse(request.uri().path()) else {
            return error_response(&Status::no_such_path());
        };
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut response = error_response(&Status::no_such_method());
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
            return response;
        }
        match self.respond(endpoint, request).await {
            Ok(response) => response,
            Err(status) => error_response(&status),
        }
    }

    async fn respond<B>(
        &self,
        endpoint: Endpoint<'_>,
        request: &Request<B>,
    ) -> Result<Response<ResponseBody>, Status> {
        let query = Query::parse(request.uri().query())?;
        let needs_catalogs = matches!(
            endpoint,
            Endpoint::Packages { .. } | Endpoint::Package { .. } | Endpoint::Icon { .. }
        );
        if needs_catalogs && !self.is_attached() {
            let why = "the catalogs are not known yet, try again in a moment";
            return Err(Status::new(Reason::ServiceUnavailable, why).retry_after(1));
        }
        let format = || {
            let accept = request.headers().get_all(ACCEPT).iter();
            let accept: Vec<&str> = accept.filter_map(|header| header.to_str().ok()).collect();
            accept::choose(Some(&accept.join(",")))
        };
        match endpoint {
            Endpoint::ApiGroup => Ok(json_value(&discovery::group())),
            Endpoint::ApiResources => Ok(json_value(&discovery::resources())),
            Endpoint::OpenApiIndex => Ok(json_value(&openapi::index())),
            Endpoint::OpenApiV3 => Ok(json_value(&openapi::v3())),
            Endpoint::OpenApiV2 => Ok(json_value(&openapi::v2())),
            Endpoint::Packages { namespace } => {
                let representation = Representation::parse(format()?, &query)?;
                let selection = Selection::parse(namespace, &query)?;
                if query.flag("watch") {
                    return self.watch(selection, representation, &query).await;
                }
                self.list(selection, representation, &query).await
            }
            Endpoint::Package { namespace, name } => {
                let representation = Representation::parse(format()?, &query)?;
                let selection = Selection::by_name(namespace, name);
                let bytes = self
                    .run_blocking(move |packages| packages.get_one(&selection, representation))
                    .await
                    .flatten();
                let bytes = bytes.ok_or_else(|| Status::not_found(GROUP, PLURAL, name))?;
                Ok(json(ResponseBody::Whole(bytes)))
            }
            Endpoint::Icon { namespace, name } => {
                let (namespace, package, headers) =
                    (namespace.to_owned(), name.to_owned(), request.headers().clone());
                let response = self
                    .run_blocking(move |packages| packages.icon(&namespace, &package, &headers))
                    .await;
                response.ok_or_else(|| Status::internal("the picture could not be read"))
            }
        }
    }

    fn get_one(&self, selection: &Selection, representation: Representation) -> Option<Bytes> {
        let state = self.state();
        let item = self.select(&state, selection).into_iter().next()?;
        let status = self.status_for(&item, representation)?;
        Some(representation.render(&item.manifest(), &status, true, self.inner.clock.now()).into())
    }

    /// The status of a package, empty if the representation does not need it.
    pub(crate) fn status_for(
        &self,
        item: &SelectedPackage,
        representation: Representation,
    ) -> Option<Vec<u8>> {
        if representation.needs_status() {
            self.status(&item.catalog, &item.entry)
        } else {
            Some(Vec::new())
        }
    }

    async fn list(
        &self,
        selection: Selection,
        representation: Representation,
        query: &Query,
    ) -> Result<Response<ResponseBody>, Status> {
        let requested_revision = revision(query)?;
        let exact = query.text("resourceVersionMatch") == "Exact";
        let listing = self.run_blocking(move |packages| {
            let state = packages.state();
            (state.revision, packages.select(&state, &selection))
        });
        let (revision, items) =
            listing.await.ok_or_else(|| Status::internal("the packages could not be listed"))?;
        if requested_revision > revision || exact && requested_revision != revision {
            return Err(expired(requested_revision));
        }
        let now = self.inner.clock.now();
        match representation.format {
            Format::Table(version) => {
                let packages = self.clone();
                let table = self.run_blocking(move |_| {
                    let row = |item: &SelectedPackage| {
                        let status = packages.status_for(item, representation)?;
                        Some(representation.row(&item.manifest(), &status, version, now))
                    };
                    let rows: Vec<String> = items.iter().filter_map(row).collect();
                    table::table(version, revision, &rows, true)
                });
                let table =
                    table.await.ok_or_else(|| Status::internal("the table could not be made"))?;
                Ok(json(ResponseBody::Whole(table.into())))
            }
            Format::Object | Format::Metadata(_) => {
                let (version, kind) = match representation.format {
                    Format::Metadata(version) => {
                        (format!("meta.k8s.io/{version}"), "PartialObjectMetadataList".to_owned())
                    }
                    _ => (API_VERSION.to_owned(), format!("{KIND}List")),
                };
                let head = format!(
                    "{{\"kind\":\"{kind}\",\"apiVersion\":\"{version}\",\"metadata\":{{\"resourceVersion\":\"{revision}\"}},\"items\":["
                );
                let packages = self.clone();
                let mut before = "";
                let objects = items.into_iter().filter_map(move |item| {
                    let status = packages.status_for(&item, representation)?;
                    let object = representation.render(&item.manifest(), &status, true, now);
                    let piece = [before.as_bytes(), &object].concat();
                    before = ",";
                    Some(Bytes::from(piece))
                });
                let end = std::iter::once(Bytes::from_static(b"]}"));
                let pieces = std::iter::once(Bytes::from(head)).chain(objects).chain(end);
                Ok(json(ResponseBody::Pieces(Box::new(pieces))))
            }
        }
    }
}

/// The parameter `resourceVersion`; 0 if it is missing.
pub(crate) fn revision(query: &Query) -> Result<u64, Status> {
    let text = query.text("resourceVersion");
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| {
        Status::bad_request(format!("resourceVersion is {text:?}, and has to be a number"))
    })
}

/// The error for a revision that is too old or unknown.
pub(crate) fn expired(revision: u64) -> Status {
    Status::expired(format!("too old resource version: {revision}"))
}

/// A response with an error.
pub(crate) fn error_response(status: &Status) -> Response<ResponseBody> {
    let mut response = json_value(&status.to_value());
    *response.status_mut() =
        StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}

fn json_value(value: &Value) -> Response<ResponseBody> {
    json(ResponseBody::Whole(value.to_string().into()))
}

/// A response with a JSON body.
pub(crate) fn json(content: ResponseBody) -> Response<ResponseBody> {
    let mut response = Response::new(content);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}
