//! Requests and responses, without a transport.

use crate::accept::{self, Form};
use crate::query::Query;
use crate::select::{Item, Selection};
use crate::state::Packages;
use crate::table::{self, Shape};
use crate::{API_VERSION, GROUP, KIND, PLURAL, VERSION, discovery, documents};
use bytes::Bytes;
use futures::stream::BoxStream;
use http::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use mainstay_object::{Reason, Status};
use serde_json::Value;
use std::fmt;

/// What a response carries.
pub enum Content {
    /// All of it.
    Whole(Bytes),
    /// Pieces that are made while they are sent.
    Pieces(Box<dyn Iterator<Item = Bytes> + Send>),
    /// Lines that come when something happens.
    Stream(BoxStream<'static, Bytes>),
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Whole(_) => "Content::Whole",
            Self::Pieces(_) => "Content::Pieces",
            Self::Stream(_) => "Content::Stream",
        })
    }
}

/// What a path names.
enum Place<'p> {
    Group,
    Resources,
    Index,
    Document,
    Swagger,
    Packages { namespace: Option<&'p str> },
    Package { namespace: &'p str, name: &'p str },
    Icon { namespace: &'p str, name: &'p str },
}

impl<'p> Place<'p> {
    fn read(path: &'p str) -> Option<Self> {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        Some(match parts.as_slice() {
            ["openapi", "v2"] => Self::Swagger,
            ["openapi", "v3"] => Self::Index,
            ["openapi", "v3", "apis", group, version] if is_ours(group, version) => Self::Document,
            ["apis", group] if *group == GROUP => Self::Group,
            ["apis", group, version, rest @ ..] if is_ours(group, version) => match rest {
                [] => Self::Resources,
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

impl Packages {
    /// Answers a request of somebody who may send it.
    pub async fn answer<B>(&self, request: &Request<B>) -> Response<Content> {
        let Some(place) = Place::read(request.uri().path()) else {
            return refusal(&Status::no_such_path());
        };
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut response = refusal(&Status::no_such_method());
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
            return response;
        }
        match self.at(place, request).await {
            Ok(response) => response,
            Err(status) => refusal(&status),
        }
    }

    async fn at<B>(
        &self,
        place: Place<'_>,
        request: &Request<B>,
    ) -> Result<Response<Content>, Status> {
        let query = Query::parse(request.uri().query())?;
        let of_catalogs =
            matches!(place, Place::Packages { .. } | Place::Package { .. } | Place::Icon { .. });
        if of_catalogs && !self.is_attached() {
            let why = "the catalogs are not known yet, try again in a moment";
            return Err(Status::new(Reason::ServiceUnavailable, why).retry_after(1));
        }
        let form = || {
            let accept = request.headers().get_all(ACCEPT).iter();
            let accept: Vec<&str> = accept.filter_map(|header| header.to_str().ok()).collect();
            accept::choose(Some(&accept.join(",")))
        };
        match place {
            Place::Group => Ok(value(&discovery::group())),
            Place::Resources => Ok(value(&discovery::resources())),
            Place::Index => Ok(value(&documents::index())),
            Place::Document => Ok(value(&documents::document())),
            Place::Swagger => Ok(value(&documents::swagger())),
            Place::Packages { namespace } => {
                let shape = Shape::read(form()?, &query)?;
                let selection = Selection::read(namespace, &query)?;
                if query.flag("watch") {
                    return self.watch(selection, shape, &query).await;
                }
                self.list(selection, shape, &query).await
            }
            Place::Package { namespace, name } => {
                let shape = Shape::read(form()?, &query)?;
                let selection = Selection::named(namespace, name);
                let found =
                    self.off(move |packages| packages.one(&selection, shape)).await.flatten();
                let bytes = found.ok_or_else(|| Status::not_found(GROUP, PLURAL, name))?;
                Ok(json(Content::Whole(bytes)))
            }
            Place::Icon { namespace, name } => {
                let (namespace, of, headers) =
                    (namespace.to_owned(), name.to_owned(), request.headers().clone());
                let answered =
                    self.off(move |packages| packages.icon(&namespace, &of, &headers)).await;
                answered.ok_or_else(|| Status::internal("the picture could not be read"))
            }
        }
    }

    fn one(&self, selection: &Selection, shape: Shape) -> Option<Bytes> {
        let state = self.state();
        let item = self.select(&state, selection).into_iter().next()?;
        let status = self.status_for(&item, shape)?;
        Some(shape.one(&item.seen(), &status, true, self.inner.clock.now()).into())
    }

    /// The status of a package, if the shape needs it.
    pub(crate) fn status_for(&self, item: &Item, shape: Shape) -> Option<Vec<u8>> {
        if shape.needs_status() { self.status(&item.shelf, &item.shown) } else { Some(Vec::new()) }
    }

    async fn list(
        &self,
        selection: Selection,
        shape: Shape,
        query: &Query,
    ) -> Result<Response<Content>, Status> {
        let wanted = revision(query)?;
        let exact = query.text("resourceVersionMatch") == "Exact";
        let found = self.off(move |packages| {
            let state = packages.state();
            (state.revision, packages.select(&state, &selection))
        });
        let (revision, items) =
            found.await.ok_or_else(|| Status::internal("the packages could not be listed"))?;
        if wanted > revision || exact && wanted != revision {
            return Err(too_old(wanted));
        }
        let now = self.inner.clock.now();
        match shape.form {
            Form::Table(version) => {
                let packages = self.clone();
                let made = self.off(move |_| {
                    let row = |item: &Item| {
                        let status = packages.status_for(item, shape)?;
                        Some(shape.row(&item.seen(), &status, version, now))
                    };
                    let rows: Vec<String> = items.iter().filter_map(row).collect();
                    table::table(version, revision, &rows, true)
                });
                let table =
                    made.await.ok_or_else(|| Status::internal("the table could not be made"))?;
                Ok(json(Content::Whole(table.into())))
            }
            Form::Whole | Form::Metadata(_) => {
                let (version, kind) = match shape.form {
                    Form::Metadata(version) => {
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
                    let status = packages.status_for(&item, shape)?;
                    let object = shape.one(&item.seen(), &status, true, now);
                    let piece = [before.as_bytes(), &object].concat();
                    before = ",";
                    Some(Bytes::from(piece))
                });
                let end = std::iter::once(Bytes::from_static(b"]}"));
                let pieces = std::iter::once(Bytes::from(head)).chain(objects).chain(end);
                Ok(json(Content::Pieces(Box::new(pieces))))
            }
        }
    }
}

/// The revision that a client names; 0 if it names none.
pub(crate) fn revision(query: &Query) -> Result<u64, Status> {
    let text = query.text("resourceVersion");
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| {
        Status::bad_request(format!("resourceVersion is {text:?}, and has to be a number"))
    })
}

/// The refusal of a revision that nobody knows any more.
pub(crate) fn too_old(revision: u64) -> Status {
    Status::expired(format!("too old resource version: {revision}"))
}

/// A refusal.
pub(crate) fn refusal(status: &Status) -> Response<Content> {
    let mut response = value(&status.to_value());
    *response.status_mut() =
        StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}

fn value(value: &Value) -> Response<Content> {
    json(Content::Whole(value.to_string().into()))
}

/// A response in JSON.
pub(crate) fn json(content: Content) -> Response<Content> {
    let mut response = Response::new(content);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}
