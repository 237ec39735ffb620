//! Cluster: the client for all verbs of a Kubernetes API on untyped objects.

use crate::delete::DeleteOptions;
use crate::lease::Fence;
use crate::request::{self, Target, media};
use crate::watch::{ObjectWatch, Selection};
use crate::{Error, Result, apply};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response, header};
use kube::client::Body;
use mainstay_object::{Gvk, Object, Resource};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

/// A Kubernetes API. Cheap to clone; clones share the connection.
#[derive(Clone)]
pub struct Cluster {
    client: kube::Client,
    /// The value of `User-Agent`.
    agent: Option<HeaderValue>,
    /// The value of `Impersonate-User`.
    impersonated: Option<HeaderValue>,
    /// Receives the warnings of accepted writes.
    on_warning: Option<WarningCallback>,
    /// The end of the term in which it may write.
    fence: Option<Fence>,
}

/// Receives a warning.
type WarningCallback = Arc<dyn Fn(&str) + Send + Sync>;

/// The header that names the impersonated user.
const IMPERSONATE: HeaderName = HeaderName::from_static("impersonate-user");

/// The parameters of a list.
#[derive(Clone, Debug, Default)]
pub struct ObjectList {
    /// Label selector in query form; empty for all.
    pub labels: String,
    /// Field selector in query form; empty for all.
    pub fields: String,
    /// The most objects in one page; zero for all.
    pub limit: u32,
    /// The `continue` token of the previous page.
    pub continue_token: String,
    /// Only `apiVersion`, `kind` and `metadata` of each object.
    pub metadata_only: bool,
}

impl ObjectList {
    /// Objects with labels that match a selector in query form.
    pub fn labels(selector: impl Into<String>) -> Self {
        Self { labels: selector.into(), ..Self::default() }
    }

    /// Objects with fields that match a selector in query form.
    pub fn fields(selector: impl Into<String>) -> Self {
        Self { fields: selector.into(), ..Self::default() }
    }

    fn onto(&self, target: Target) -> Target {
        let limit = if self.limit == 0 { String::new() } else { self.limit.to_string() };
        target
            .pair("labelSelector", &self.labels)
            .pair("fieldSelector", &self.fields)
            .pair("limit", &limit)
            .pair("continue", &self.continue_token)
    }
}

/// A list at one revision of the server.
#[derive(Clone, Debug, Default)]
pub struct List {
    /// The objects, in order of namespace and name. Each has `apiVersion` and `kind`.
    pub items: Vec<Object>,
    /// The revision of the list; a watch from here misses no event.
    pub resource_version: String,
    /// The token for the next page; empty if this is the last one.
    pub continue_token: String,
}

/// A change to a part of an object.
#[derive(Clone, Debug)]
pub enum Patch {
    /// RFC 7396: given fields replace, `null` removes, lists are replaced as a whole.
    Merge(Value),
    /// RFC 6902: a list of operations.
    Json(Value),
    /// Strategic merge patch: lists are merged by their keys. Only built-in kinds support it.
    Strategic(Value),
}

impl Patch {
    pub(crate) const fn parts(&self) -> (&'static str, &Value) {
        match self {
            Self::Merge(body) => (media::MERGE_PATCH, body),
            Self::Json(body) => (media::JSON_PATCH, body),
            Self::Strategic(body) => (media::STRATEGIC_PATCH, body),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawList {
    #[serde(default)]
    metadata: RawListMeta,
    #[serde(default)]
    items: Option<Vec<Object>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawListMeta {
    #[serde(default)]
    resource_version: String,
    #[serde(default, rename = "continue")]
    continue_token: String,
}

/// The namespace of an object for the URL; none if empty.
pub(crate) fn namespace_of(object: &Object) -> Option<&str> {
    Some(object.namespace()).filter(|namespace| !namespace.is_empty())
}

pub(crate) fn object_target(resource: &Resource, namespace: Option<&str>, name: &str) -> Target {
    Target::new(resource.object_path(namespace, name))
}

impl Cluster {
    /// Wraps a client. `kube::Client::new` over the embedded server's service gives one without a
    /// socket.
    pub const fn new(client: kube::Client) -> Self {
        Self { client, agent: None, impersonated: None, on_warning: None, fence: None }
    }

    /// The same API with a `User-Agent`. Its part before the first slash is the field manager of
    /// requests that name none.
    ///
    /// An agent with characters that a header cannot contain is ignored.
    #[must_use]
    pub fn with_user_agent(mut self, agent: &str) -> Self {
        self.agent = HeaderValue::from_str(agent).ok();
        self
    }

    /// The same API, bound to a term: after its end nothing is written.
    pub(crate) fn with_fence(mut self, fence: Fence) -> Self {
        self.fence = Some(fence);
        self
    }

    /// The same API with the permissions of a ServiceAccount only: requests impersonate it, which
    /// needs the permission to `impersonate` that ServiceAccount. The server adds the groups of
    /// every ServiceAccount itself.
    ///
    /// # Errors
    /// A name that a header cannot contain is not the name of a ServiceAccount.
    pub fn impersonating(mut self, namespace: &str, account: &str) -> Result<Self> {
        let user = format!("system:serviceaccount:{namespace}:{account}");
        let user =
            HeaderValue::from_str(&user).map_err(|source| Error::Transport(Box::new(source)))?;
        self.impersonated = Some(user);
        Ok(self)
    }

    /// The same API with a callback for the warnings of accepted writes, such as those of
    /// deprecated versions.
    #[must_use]
    pub fn warning(mut self, callback: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_warning = Some(Arc::new(callback));
        self
    }

    /// The underlying client, for requests that this handle does not support.
    pub const fn client(&self) -> &kube::Client {
        &self.client
    }

    /// Reads one object. `namespace` is ignored for cluster-scoped kinds here and below.
    pub async fn get(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Object> {
        let target = object_target(resource, namespace, name);
        request::fetch(&self.client, self.request(Method::GET, &target, media::JSON, None)?).await
    }

    /// Reads one object that may be absent.
    pub async fn find(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Object>> {
        match self.get(resource, namespace, name).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads any JSON document of the API, such as `/version`.
    pub async fn get_raw(&self, path: &str) -> Result<Value> {
        self.get_raw_as(path, media::JSON).await
    }

    /// The field `gitVersion` of `/version`; none if the request fails or the response has no such
    /// field.
    pub async fn server_version(&self) -> Option<String> {
        let version = self.get_raw("/version").await.ok()?;
        version.get("gitVersion").and_then(Value::as_str).map(str::to_owned)
    }

    pub(crate) async fn get_raw_as(&self, path: &str, accept: &str) -> Result<Value> {
        let target = Target::new(path.to_owned());
        request::fetch(&self.client, self.request(Method::GET, &target, accept, None)?).await
    }

    /// Reads objects of one namespace, or of all namespaces.
    pub async fn list(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        params: &ObjectList,
    ) -> Result<List> {
        let target = params.onto(Target::new(resource.collection_path(namespace)));
        let accept = if params.metadata_only { media::METADATA_LIST } else { media::JSON };
        let request = self.request(Method::GET, &target, accept, None)?;
        let raw: RawList = request::fetch(&self.client, request).await?;
        let mut items = raw.items.unwrap_or_default();
        // Items in lists of built-in kinds lack `apiVersion` and `kind`.
        for item in &mut items {
            if item.kind().is_empty() {
                item.set(&["apiVersion"], resource.api_version().into());
                item.set(&["kind"], resource.kind.as_ref().into());
            }
        }
        Ok(List {
            items,
            resource_version: raw.metadata.resource_version,
            continue_token: raw.metadata.continue_token,
        })
    }

    /// Reads all objects, page by page, each page of `params.limit` objects (500 if zero). The
    /// revision is that of the first page.
    pub async fn list_pages(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        params: &ObjectList,
    ) -> Result<List> {
        let mut params = params.clone();
        if params.limit == 0 {
            params.limit = 500;
        }
        let mut all = self.list(resource, namespace, &params).await?;
        while !all.continue_token.is_empty() {
            params.continue_token = std::mem::take(&mut all.continue_token);
            let page = self.list(resource, namespace, &params).await?;
            all.items.extend(page.items);
            all.continue_token = page.continue_token;
        }
        Ok(all)
    }

    /// Creates an object in its own namespace and returns it as stored.
    pub async fn create(&self, resource: &Resource, object: &Object) -> Result<Object> {
        let target = Target::new(resource.collection_path(namespace_of(object)));
        self.write(Method::POST, target, media::JSON, request::encode_object(object)?).await
    }

    /// Posts to a subresource such as `token`, `eviction` or `binding`.
    pub async fn create_subresource(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        subresource: &str,
        body: &Object,
    ) -> Result<Object> {
        let target = object_target(resource, namespace, name).segment(subresource);
        self.write(Method::POST, target, media::JSON, request::encode_object(body)?).await
    }

    /// Replaces an object; its `resourceVersion`, if it has one, must be the current one.
    pub async fn update(&self, resource: &Resource, object: &Object) -> Result<Object> {
        let target = object_target(resource, namespace_of(object), object.name());
        self.write(Method::PUT, target, media::JSON, request::encode_object(object)?).await
    }

    /// Replaces the status of an object only; the precondition is as in [`Cluster::update`].
    pub async fn update_status(&self, resource: &Resource, object: &Object) -> Result<Object> {
        self.update_subresource(resource, "status", object).await
    }

    /// Replaces a subresource such as `status`, `finalize` or `approval`.
    pub async fn update_subresource(
        &self,
        resource: &Resource,
        subresource: &str,
        object: &Object,
    ) -> Result<Object> {
        let target =
            object_target(resource, namespace_of(object), object.name()).segment(subresource);
        self.write(Method::PUT, target, media::JSON, request::encode_object(object)?).await
    }

    /// Patches an object. A `metadata.resourceVersion` inside the patch is a precondition.
    pub async fn patch(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        patch: &Patch,
    ) -> Result<Object> {
        let (media, body) = patch.parts();
        let target = object_target(resource, namespace, name);
        self.write(Method::PATCH, target, media, request::encode(body)?).await
    }

    /// Patches the status of an object; the precondition is as in [`Cluster::patch`].
    pub async fn patch_status(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        patch: &Patch,
    ) -> Result<Object> {
        let (media, body) = patch.parts();
        let target = object_target(resource, namespace, name).segment("status");
        self.write(Method::PATCH, target, media, request::encode(body)?).await
    }

    /// Applies an object: forced server-side apply. Afterwards the object has the given fields, and
    /// `manager` owns them. Fields that it applied earlier and leaves out now are removed, unless
    /// others own them. Returns the object as stored. Nothing is stored if nothing differs.
    ///
    /// `status`, null fields, and `metadata` fields that only the server writes are not sent. An
    /// object with a uid must be that very object: if it is gone, the result is a conflict.
    pub async fn apply(
        &self,
        resource: &Resource,
        object: &Object,
        manager: &str,
    ) -> Result<Object> {
        let target = object_target(resource, namespace_of(object), object.name())
            .pair("fieldManager", manager)
            .pair("force", "true");
        let mut wanted = apply::applicable(object);
        if !object.uid().is_empty() {
            wanted["metadata"]["uid"] = object.uid().into();
        }
        let body = request::encode(&apply::without_nulls(&wanted))?;
        self.write(Method::PATCH, target, media::APPLY_PATCH, body).await
    }

    /// Makes the object exist with at least the given fields, and returns it as stored.
    ///
    /// Reads the object and creates it, or sends a merge patch of the differences with the
    /// `resourceVersion` that was read as precondition; repeats this on conflict. Nothing is sent
    /// if nothing differs. Controllers that do not apply ([`Cluster::apply`]) write in this way:
    ///
    /// * Fields that are absent from `object` stay as they are; an explicit `null` removes a field.
    /// * Lists are replaced as a whole if they lack or differ in one given field. Values that the
    ///   server filled into list entries by default count as equal. Two lists are merged as
    ///   sets instead: `metadata.ownerReferences` (by uid) and `metadata.finalizers`.
    /// * `status`, and the `metadata` fields that only the server writes, are ignored.
    ///
    /// # Errors
    /// A conflict, but only after 64 attempts that other writers overtook.
    pub async fn ensure(&self, resource: &Resource, object: &Object) -> Result<Object> {
        // Each conflict means that another writer has finished, so a crowd of writers thins out by
        // itself.
        const ATTEMPTS: u32 = 64;
        let namespace = namespace_of(object);
        let wanted = apply::applicable(object);
        let mut attempt = 0;
        loop {
            attempt += 1;
            let outcome = match self.find(resource, namespace, object.name()).await? {
                None => {
                    let target = Target::new(resource.collection_path(namespace));
                    let body = request::encode(&apply::without_nulls(&wanted))?;
                    self.write(Method::POST, target, media::JSON, body).await
                }
                Some(live) => {
                    let Some(patch) = apply::patch(&live, &wanted) else { return Ok(live) };
                    let target = object_target(resource, namespace, object.name());
                    let body = request::encode(&patch)?;
                    self.write(Method::PATCH, target, media::MERGE_PATCH, body).await
                }
            };
            match outcome {
                Err(error)
                    if attempt < ATTEMPTS
                        && (error.is_conflict()
                            || error.is_already_exists()
                            // The object was deleted between the read and the patch.
                            || (error.is_not_found() && attempt == 1)) => {}
                other => return other,
            }
        }
    }

    /// Requests the deletion of an object. Returns the object if finalizers or a grace period hold
    /// it, and none if it is gone at once.
    pub async fn delete(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Option<Object>> {
        let target = object_target(resource, namespace, name);
        let body = request::encode(&options.to_value())?;
        let answer = self.write(Method::DELETE, target, media::JSON, body).await?;
        // A `Status` means that the object is gone; some kinds return the last state of the object
        // instead.
        Ok((answer.kind() != "Status" && answer.is_terminating()).then_some(answer))
    }

    /// Deletes an object. Success includes that it is gone already, or that another object has its
    /// name by now.
    pub async fn ensure_deleted(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<()> {
        match self.delete(resource, namespace, name, options).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() => Ok(()),
            // A uid that no longer matches means that the object is gone.
            Err(error)
                if error.is_conflict()
                    && options.preconditions.uid.is_some()
                    && options.preconditions.resource_version.is_none() =>
            {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Requests the deletion of every matching object of one namespace (or of the cluster).
    pub async fn delete_collection(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        params: &ObjectList,
        options: &DeleteOptions,
    ) -> Result<()> {
        let target = params.onto(Target::new(resource.collection_path(namespace)));
        let body = Some((media::JSON, request::encode(&options.to_value())?.into()));
        let request = self.request(Method::DELETE, &target, media::JSON, body)?;
        request::bytes(request::send(&self.client, request).await?).await?;
        Ok(())
    }

    /// Watches changes after a revision: that of a list, or of the last event. The server ends the
    /// stream after some minutes; continue from the last revision. [`crate::Cache`] does all that.
    pub async fn watch(
        &self,
        selection: &Selection,
        resource_version: &str,
    ) -> Result<ObjectWatch> {
        let target =
            Target::new(selection.resource.collection_path(selection.namespace.as_deref()))
                .pair("watch", "true")
                .pair("allowWatchBookmarks", "true")
                .pair("timeoutSeconds", &crate::watch::SERVER_TIMEOUT.as_secs().to_string())
                .pair("labelSelector", &selection.labels)
                .pair("fieldSelector", &selection.fields)
                .pair("resourceVersion", resource_version);
        let accept = if selection.metadata_only { media::METADATA } else { media::JSON };
        let mut request = self.request(Method::GET, &target, accept, None)?;
        // A compressed stream would delay events.
        request.headers_mut().insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let response = request::send(&self.client, request).await?;
        Ok(ObjectWatch::new(response.into_body()))
    }

    /// The resource that currently serves a kind; none if no such kind is served.
    pub async fn resource_of(&self, gvk: &Gvk) -> Result<Option<Resource>> {
        let path = if gvk.group.is_empty() {
            format!("/api/{}", gvk.version)
        } else {
            format!("/apis/{}/{}", gvk.group, gvk.version)
        };
        let document = match self.get_raw(&path).await {
            Ok(document) => document,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        let found = crate::discovery::group_version(&gvk.group, &gvk.version, &document);
        Ok(found.into_iter().map(|api| api.resource).find(|resource| resource.kind == gvk.kind))
    }

    fn request(
        &self,
        method: Method,
        target: &Target,
        accept: &str,
        body: Option<(&str, Bytes)>,
    ) -> Result<Request<Body>> {
        if method != Method::GET && self.fence.as_ref().is_some_and(Fence::is_over) {
            return Err(Error::Over);
        }
        let mut request = request::build(method, target, accept, body)?;
        if let Some(agent) = &self.agent {
            request.headers_mut().insert(header::USER_AGENT, agent.clone());
        }
        if let Some(user) = &self.impersonated {
            request.headers_mut().insert(IMPERSONATE, user.clone());
        }
        Ok(request)
    }

    pub(crate) async fn write(
        &self,
        method: Method,
        target: Target,
        media_type: &str,
        body: Vec<u8>,
    ) -> Result<Object, Error> {
        let body = (media_type, body.into());
        request::decode(self.write_raw(method, &target, media::JSON, body).await?).await
    }

    /// Sends a write and passes on the warnings of the API.
    pub(crate) async fn write_raw(
        &self,
        method: Method,
        target: &Target,
        accept: &str,
        body: (&str, Bytes),
    ) -> Result<Response<Body>, Error> {
        let request = self.request(method, target, accept, Some(body))?;
        let response = request::send(&self.client, request).await?;
        if let Some(callback) = &self.on_warning {
            for text in request::warnings(response.headers()) {
                callback(&text);
            }
        }
        Ok(response)
    }
}
