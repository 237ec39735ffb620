//! Request for a kind, with the context that its handler needs.

use super::compute::WorkSize;
use crate::chain::head::timeout;
use crate::chain::info::STREAMS;
use crate::server::ApiServer;
use crate::service::LoopbackClient;
use bytes::Bytes;
use http::header::{ACCEPT, HeaderMap};
use http::{Method, Uri};
use hyper::upgrade::OnUpgrade;
use mainstay_admission::{AdmissionRequest, Operation, RequestOptions};
use mainstay_auth::Identity;
use mainstay_auth::authz::Attributes;
use mainstay_auth::authz::escalation::RbacWrite;
use mainstay_http::messages::MessageKind;
use mainstay_http::negotiate::{self, EndpointRepresentations, Representation, RouteKind};
use mainstay_http::path::ResourcePath;
use mainstay_http::query::Query;
use mainstay_http::response::Encoding;
use mainstay_http::{Warnings, header_text};
use mainstay_kinds::Context;
use mainstay_kinds::KindRow;
use mainstay_kinds::allocator::Reservations;
use mainstay_object::{Object, Status};
use mainstay_store::Key;
use std::sync::Arc;

/// A request for a kind.
pub(crate) struct Request<'a> {
    pub(crate) server: &'a Arc<ApiServer>,
    pub(crate) identity: &'a Identity,
    pub(crate) row: Arc<KindRow>,
    pub(crate) path: &'a ResourcePath,
    pub(crate) query: &'a Query,
    pub(crate) headers: &'a HeaderMap,
    /// The encoding of objects in the response.
    pub(crate) encoding: Encoding,
    pub(crate) uri: &'a Uri,
    pub(crate) body: Bytes,
    pub(crate) warnings: Warnings,
    /// The upgradable connection, if there is one.
    pub(crate) on_upgrade: Option<OnUpgrade>,
    /// Client for requests of the server itself.
    pub(crate) loopback: LoopbackClient,
    /// Whether the work of the request is large.
    pub(crate) work_size: WorkSize,
    /// Service IPs and node ports that the request reserves until it ends.
    pub(crate) reservations: Reservations,
}

impl Request<'_> {
    /// Adds a warning to the response.
    pub(super) fn warn(&self, text: String) {
        self.warnings.add(text);
    }

    /// The key of the object in the path.
    pub(crate) fn key(&self) -> Key {
        self.key_of(&self.path.name)
    }

    /// The key of an object in the path's collection.
    pub(super) fn key_of(&self, name: &str) -> Key {
        Key::new(self.row.storage.clone(), self.path.namespace.as_str(), name)
    }

    /// The form of the response.
    pub(super) fn form(&self) -> Result<Representation, Status> {
        // [`super::dispatch`] has refused forms that the route does not have.
        negotiate::choose(
            header_text(self.headers, &ACCEPT),
            self.endpoint_forms(),
            RouteKind::Unrouted,
        )
    }

    /// The protobuf kind of a response in this form; none if the encoding is not protobuf.
    pub(super) fn message_kind(&self, form: Representation) -> Option<MessageKind<Arc<str>>> {
        if self.encoding != Encoding::Protobuf {
            return None;
        }
        match form {
            Representation::Plain if self.row.custom().is_some() => None,
            Representation::Plain => {
                MessageKind::of(self.row.api_version.clone(), self.row.kind.clone())
            }
            Representation::Metadata(version) => MessageKind::metadata(version),
            Representation::Table(_) | Representation::Discovery(_) => None,
        }
    }

    /// The forms in which the endpoint responds.
    pub(super) fn endpoint_forms(&self) -> EndpointRepresentations {
        match (self.row.is_stored(), self.row.definition()) {
            (false, _) => EndpointRepresentations::Metadata,
            (true, Some(_)) => EndpointRepresentations::Messages,
            (true, None) => EndpointRepresentations::Objects,
        }
    }

    /// Whether the response is a stream of another protocol.
    pub(super) fn is_stream(&self) -> bool {
        let subresource = &*self.path.subresource;
        self.row.subresource(subresource).is_some() && STREAMS.contains(&subresource)
    }

    /// The kind of route that kube-apiserver has for the request.
    pub(super) fn route(&self, method: &Method) -> RouteKind {
        if self.row.custom().is_some() {
            RouteKind::Unrouted
        } else if self.path.name.is_empty() && *method == Method::GET {
            RouteKind::Collection
        } else {
            RouteKind::Table
        }
    }

    /// Authorizes the creation of an object by a PUT or PATCH; so far only the update was
    /// authorized.
    pub(super) fn authorize_creation(&self) -> Result<(), Status> {
        let path = &self.path;
        if path.name.is_empty() {
            return Ok(());
        }
        let attributes = Attributes::resource(self.identity, "create", &path.group, &path.plural);
        let attributes = attributes.in_namespace(path.scope()).with_name(&path.name);
        self.server.authorizer.require(&attributes)
    }

    /// Refuses a role or binding that grants permissions which its sender lacks.
    pub(super) fn check_escalation(
        &self,
        object: &Object,
        old: Option<&Object>,
    ) -> Result<(), Status> {
        let write = RbacWrite {
            identity: self.identity,
            group: &self.row.group,
            plural: &self.row.plural,
            namespace: &self.path.namespace,
            name: &self.path.name,
        };
        if !write.needs_check() {
            return Ok(());
        }
        let mut object = object.clone();
        mainstay_conversion::decode::default(&self.row, &mut object);
        self.server.authorizer.check_escalation(write, &object, old)
    }

    /// The context of strategies.
    pub(super) fn context<'b>(&'b self, subresource: &'b str) -> Context<'b> {
        Context {
            identity: self.identity,
            clock: &self.server.clock,
            objects: &self.server.store,
            reservations: &self.reservations,
            row: &self.row,
            subresource,
        }
    }

    /// The admission request. `name` is empty for a generated name.
    pub(crate) fn admission_request<'b>(
        &'b self,
        operation: Operation,
        subresource: &'b str,
        name: &'b str,
        dry_run: bool,
    ) -> AdmissionRequest<'b> {
        let query = &self.query;
        let is_namespace = &*self.row.storage == "namespaces";
        AdmissionRequest {
            admission: &self.server.admission,
            loopback: &self.loopback,
            identity: self.identity,
            operation,
            row: &self.row,
            subresource,
            namespace: if is_namespace { name } else { &self.path.namespace },
            name,
            options: match operation {
                Operation::Update => RequestOptions::Update(query),
                _ => RequestOptions::Create(query),
            },
            dry_run,
            // An invalid timeout was refused earlier.
            timeout: timeout(query).unwrap_or_default(),
            warnings: &self.warnings,
        }
    }

    pub(crate) fn not_found(&self) -> Status {
        Status::not_found(&self.row.group, &self.row.plural, &self.path.name)
    }

    /// Refuses new objects of a CRD that is being deleted.
    pub(super) fn refuse_if_terminating(&self, name: &str) -> Result<(), Status> {
        if self.row.custom().is_some_and(|custom| custom.terminating) {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(Status::forbidden(&self.row.group, &self.row.plural, name, why));
        }
        Ok(())
    }
}
