//! A request for a kind, with what its handler needs to answer it.

use super::compute::WorkSize;
use crate::chain::head::timeout;
use crate::chain::info::STREAMS;
use crate::server::ApiServer;
use crate::service::LoopbackClient;
use bytes::Bytes;
use http::header::{ACCEPT, HeaderMap};
use http::{Method, Uri};
use hyper::upgrade::OnUpgrade;
use mainstay_admission::{AdmissionRequest, Operation, Options};
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
    /// How the client wants objects to be written.
    pub(crate) encoding: Encoding,
    pub(crate) uri: &'a Uri,
    pub(crate) body: Bytes,
    pub(crate) warnings: Warnings,
    /// The connection, if it may speak another protocol.
    pub(crate) on_upgrade: Option<OnUpgrade>,
    /// Client for requests of the server itself.
    pub(crate) loopback: LoopbackClient,
    /// Whether its work is large.
    pub(crate) work_size: WorkSize,
    /// Service IPs and node ports that it reserves until it is over.
    pub(crate) reservations: Reservations,
}

impl Request<'_> {
    /// Warns the client.
    pub(super) fn warn(&self, text: String) {
        self.warnings.add(text);
    }

    /// The key of the object that the path names.
    pub(crate) fn key(&self) -> Key {
        self.key_of(&self.path.name)
    }

    /// The key of an object of the path's collection.
    pub(super) fn key_of(&self, name: &str) -> Key {
        Key::new(self.row.storage.clone(), self.path.namespace.as_str(), name)
    }

    /// The form of the answer.
    pub(super) fn form(&self) -> Result<Representation, Status> {
        // What the route does not write was refused before.
        negotiate::choose(header_text(self.headers, &ACCEPT), self.offer(), RouteKind::Unrouted)
    }

    /// The kind of the objects of an answer of such a form, if that is written in protobuf.
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

    /// The forms that answers have.
    pub(super) fn offer(&self) -> EndpointRepresentations {
        match (self.row.is_stored(), self.row.definition()) {
            (false, _) => EndpointRepresentations::Metadata,
            (true, Some(_)) => EndpointRepresentations::Messages,
            (true, None) => EndpointRepresentations::Objects,
        }
    }

    /// Whether the answer is no document but another protocol.
    pub(super) fn is_stream(&self) -> bool {
        let subresource = &*self.path.subresource;
        self.row.subresource(subresource).is_some() && STREAMS.contains(&subresource)
    }

    /// How the original routes the request.
    pub(super) fn route(&self, method: &Method) -> RouteKind {
        if self.row.custom().is_some() {
            RouteKind::Unrouted
        } else if self.path.name.is_empty() && *method == Method::GET {
            RouteKind::Collection
        } else {
            RouteKind::Table
        }
    }

    /// Refuses to create by a PUT or a PATCH what its sender may not create: that it may update was
    /// asked before.
    pub(super) fn confirm_creation(&self) -> Result<(), Status> {
        let path = &self.path;
        if path.name.is_empty() {
            return Ok(());
        }
        let asked = Attributes::resource(self.identity, "create", &path.group, &path.plural);
        let asked = asked.in_namespace(path.scope()).with_name(&path.name);
        self.server.authorizer.require(&asked)
    }

    /// Refuses a role or binding that grants what its sender does not hold.
    pub(super) fn confirm_grants(
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

    /// What strategies may look at.
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

    /// What admission is told of the request. `name` is empty if the object's is to be generated.
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
                Operation::Update => Options::Update(query),
                _ => Options::Create(query),
            },
            dry_run,
            // One that cannot be read was refused.
            allotted: timeout(query).unwrap_or_default(),
            warnings: &self.warnings,
        }
    }

    pub(crate) fn not_found(&self) -> Status {
        Status::not_found(&self.row.group, &self.row.plural, &self.path.name)
    }

    /// Refuses new objects of a definition that is being deleted.
    pub(super) fn refuse_if_terminating(&self, name: &str) -> Result<(), Status> {
        if self.row.custom().is_some_and(|custom| custom.terminating) {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(Status::forbidden(&self.row.group, &self.row.plural, name, why));
        }
        Ok(())
    }
}
