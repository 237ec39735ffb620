//! What the verbs do, for every kind in the same way.
//!
//! A request arrives here with its row. Reading makes bytes from the store's bytes; writing goes
//! body ─► decoded object ─► stored form ─► strategy and schema ─► store ─► the same bytes back.

mod apply;
pub(crate) mod aside;
pub(crate) mod bootstrap;
mod change;
pub(crate) mod compute;
mod connect;
mod create;
mod decode;
pub(crate) mod definitions;
mod delete;
pub(crate) mod events;
pub(crate) mod evict;
pub(crate) mod health;
mod list_options;
mod meta;
mod options;
mod part;
mod patch;
mod present;
mod read;
mod reviews;
pub(crate) mod roles;
mod scale;
mod subresources;
mod token;
pub(crate) mod tokens;
mod track;
mod watch;
mod write;

use self::compute::WorkSize;
use self::part::Part;
use crate::chain;
use crate::discovery;
use crate::server::{ApiServer, text};
use crate::service::LoopbackClient;
use bytes::Bytes;
use http::header::{ACCEPT, HeaderMap};
use http::{Method, Uri};
use hyper::upgrade::OnUpgrade;
use mainstay_admission::{AdmissionRequest, Operation, Options};
use mainstay_auth::Identity;
use mainstay_auth::authz::Attributes;
use mainstay_auth::authz::escalation::Write;
use mainstay_gocompat::quote;
use mainstay_http::Warnings;
use mainstay_http::messages::MessageKind;
use mainstay_http::negotiate::{self, EndpointForms, Form, Route};
use mainstay_http::path::{ResourcePath, Special};
use mainstay_http::query::Query;
use mainstay_http::response::{ApiResponse, Encoding};
use mainstay_kinds::Context;
use mainstay_kinds::KindRow;
use mainstay_kinds::allocator::Reservations;
use mainstay_object::{Object, Reason, Status, names};
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
    pub(crate) size: WorkSize,
    /// Service IPs and node ports that it reserves until it is over.
    pub(crate) reservations: Reservations,
}

impl Request<'_> {
    /// Warns the client.
    fn warn(&self, text: String) {
        self.warnings.add(text);
    }

    /// The key of the object that the path names.
    pub(crate) fn key(&self) -> Key {
        self.key_of(&self.path.name)
    }

    /// The key of an object of the path's collection.
    fn key_of(&self, name: &str) -> Key {
        Key::new(self.row.storage.clone(), self.path.namespace.as_str(), name)
    }

    /// The form of the answer.
    fn form(&self) -> Result<Form, Status> {
        // What the route does not write was refused before.
        negotiate::choose(text(self.headers, &ACCEPT), self.offer(), Route::Bare)
    }

    /// The kind of the objects of an answer of such a form, if that is written in protobuf.
    fn message_kind(&self, form: Form) -> Option<MessageKind<Arc<str>>> {
        if self.encoding != Encoding::Protobuf {
            return None;
        }
        match form {
            Form::Plain if self.row.custom().is_some() => None,
            Form::Plain => MessageKind::of(self.row.api_version.clone(), self.row.kind.clone()),
            Form::Metadata(version) => MessageKind::metadata(version),
            Form::Table(_) | Form::Discovery(_) => None,
        }
    }

    /// The forms that answers have.
    fn offer(&self) -> EndpointForms {
        match (self.row.is_stored(), self.row.definition()) {
            (false, _) => EndpointForms::Metadata,
            (true, Some(_)) => EndpointForms::Messages,
            (true, None) => EndpointForms::Objects,
        }
    }

    /// Whether the answer is no document but another protocol.
    fn is_stream(&self) -> bool {
        let subresource = &*self.path.subresource;
        self.row.subresource(subresource).is_some() && chain::info::STREAMS.contains(&subresource)
    }

    /// How the original routes the request.
    fn route(&self, method: &Method) -> Route {
        if self.row.custom().is_some() {
            Route::Bare
        } else if self.path.name.is_empty() && *method == Method::GET {
            Route::Collection
        } else {
            Route::Table
        }
    }

    /// Refuses to create by a PUT or a PATCH what its sender may not create: that it may update was
    /// asked before.
    fn confirm_creation(&self) -> Result<(), Status> {
        let path = &self.path;
        if path.name.is_empty() {
            return Ok(());
        }
        let asked = Attributes::resource(self.identity, "create", &path.group, &path.plural);
        let asked = asked.in_namespace(path.scope()).named(&path.name);
        self.server.authorizer.require(&asked)
    }

    /// Refuses a role or binding that grants what its sender does not hold.
    fn confirm_grants(&self, object: &Object, old: Option<&Object>) -> Result<(), Status> {
        let write = Write {
            identity: self.identity,
            group: &self.row.group,
            plural: &self.row.plural,
            namespace: &self.path.namespace,
            name: &self.path.name,
        };
        if !write.matters() {
            return Ok(());
        }
        let mut object = object.clone();
        mainstay_conversion::decode::default(&self.row, &mut object);
        self.server.authorizer.confirm(write, &object, old)
    }

    /// What strategies may look at.
    fn context<'b>(&'b self, subresource: &'b str) -> Context<'b> {
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
    pub(crate) fn asked<'b>(
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
            allotted: chain::timeout(query).unwrap_or_default(),
            warnings: &self.warnings,
        }
    }

    pub(crate) fn not_found(&self) -> Status {
        Status::not_found(&self.row.group, &self.row.plural, &self.path.name)
    }

    /// Refuses new objects of a definition that is being deleted.
    fn refuse_if_terminating(&self, name: &str) -> Result<(), Status> {
        if self.row.custom().is_some_and(|custom| custom.terminating) {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(Status::forbidden(&self.row.group, &self.row.plural, name, why));
        }
        Ok(())
    }
}

/// From method and path to the handler.
pub(crate) async fn dispatch(request: Request<'_>, method: &Method) -> Result<ApiResponse, Status> {
    // Whoever accepts no form of the answer must not have changed anything.
    if !request.is_stream() {
        let accept = text(request.headers, &ACCEPT);
        negotiate::choose(accept, request.offer(), request.route(method))?;
    }
    let row = &request.row;
    let path = &request.path;
    if path.is_odd || path.special == Special::Proxy {
        return Err(Status::no_such_path());
    }
    let of_all = path.namespace.is_empty() && row.is_namespaced();
    if !path.namespace.is_empty() && !row.is_namespaced() || of_all && !path.name.is_empty() {
        return discovery::nothing_at(&request.server.registry.kinds(), &row.group);
    }
    if path.special == Special::Watch {
        return watch_path(&request, method);
    }
    if !path.subresource.is_empty() {
        return subresources::dispatch(request, method).await;
    }
    if !row.is_stored() && (of_all || !path.name.is_empty()) {
        // They are asked in their collections only.
        return Err(Status::no_such_path());
    }
    let custom = row.custom().is_some();
    let verb = match (method, path.name.is_empty()) {
        (&Method::GET, true) if request.query.flag("watch") => "watch",
        (&Method::GET, true) => "list",
        (&Method::GET, false) => "get",
        (&Method::POST, true) => "create",
        // Paths of custom kinds are not registered one by one, so that these reach a handler.
        (&Method::POST, false) if custom => "create",
        (&Method::PUT | &Method::PATCH, true) if custom => {
            return Err(Status::bad_request("name must be provided"));
        }
        (&Method::PUT, false) => "update",
        (&Method::PATCH, false) => "patch",
        (&Method::DELETE, true) => "deletecollection",
        (&Method::DELETE, false) => "delete",
        _ => "",
    };
    if verb == "watch" && row.has_verb("list") && !row.has_verb("watch") {
        return Err(Status::method_not_supported(&row.group, &row.plural, verb));
    }
    let reads_all = matches!(verb, "list" | "watch");
    if of_all && !reads_all && row.custom().is_some() {
        return Ok(ApiResponse::page_not_found());
    }
    // What keeps nothing has no objects.
    if !row.is_stored() && !path.name.is_empty() {
        return Err(Status::no_such_path());
    }
    if verb.is_empty() || !row.has_verb(verb) || (of_all && !reads_all) {
        return Err(not_allowed());
    }
    if !row.is_stored() {
        return reviews::answer(request).await;
    }
    // What cannot be part of a key is no name, and no namespace.
    if matches!(&*path.namespace, "." | "..") && reads_all {
        let key = format!("invalid key: \"/{}/{}\"", row.plural, path.namespace);
        return Err(Status::new(Reason::Unknown, key));
    }
    let problems = names::path_segment(&path.name);
    if !path.name.is_empty() && !problems.is_empty() {
        let (name, why) = (quote(&path.name), problems.join(";"));
        return Err(Status::bad_request(format!("Name parameter invalid: {name}: {why}")));
    }
    match verb {
        "watch" => watch::answer(&request),
        "list" => read::list(&request).await,
        "get" => read::get(&request).await,
        "create" => create::answer(&request).await,
        "update" => change::update(&request, Part::Main).await,
        "patch" => patch::answer(&request, Part::Main).await,
        "deletecollection" => delete::collection(&request).await,
        _ => delete::answer(&request).await,
    }
}

/// A path that asks for a watch, of a collection or of one object.
fn watch_path(request: &Request<'_>, method: &Method) -> Result<ApiResponse, Status> {
    if !request.path.subresource.is_empty() || !request.row.has_verb("watch") {
        return Err(Status::no_such_path());
    }
    if *method != Method::GET {
        return Err(not_allowed());
    }
    watch::answer(request)
}

/// 405 for a method that a path does not have.
fn not_allowed() -> Status {
    Status::no_such_method()
}
