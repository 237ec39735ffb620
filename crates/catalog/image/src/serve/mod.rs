//! Registry server: the OCI distribution API over a store.
//!
//! The registry is one request handler, which any server or test can call: docker, podman, skopeo
//! and oras push to it and pull from it. Its repositories belong to one registry name in the store,
//! or to the one that a client names in `?ns=`, as containerd does for mirrors. Images that the
//! store has of other registries are available under the registry as a path
//! ([`RegistrySettings::folders`]), as in `localhost:5000/quay.io/folder/name`.
//!
//! With an [`Account`], only its owner may change anything.
//!
//! The registry does not authenticate readers, and does not speak TLS. It is for loopback, or
//! behind a server that does both. Blobs are not deleted by request; [`ImageStore::collect`] removes
//! unreferenced ones.

mod access;
mod content;
mod response;
mod uploads;

pub use access::Account;
pub(crate) use content::stream_file;
pub use response::RegistryBody;

use crate::{
    digest::Digest,
    manifest::{self, Descriptor, ImageDocument, ImageIndex},
    reference::{self, ImageReference},
    store::{ImageStore, ImageStoreError},
};
use access::CredentialCheck;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body::Body as HttpBody;
use mainstay_clock::Clock;
use response::{ErrorCode, ErrorResponse, HandlerResult};
use std::{convert::Infallible, future::Future, pin::Pin, sync::Arc, task, time::Duration};
use uploads::Uploads;

/// Settings of a registry server.
#[derive(Clone, Debug)]
pub struct RegistrySettings {
    /// The registry that repositories belong to, such as `localhost:5000`.
    pub domain: String,
    /// Whether clients may change anything.
    pub writable: bool,
    /// The account that may change it; without one, everybody may.
    pub account: Option<Account>,
    /// The maximum size of a blob, in bytes.
    pub largest: u64,
    /// The maximum number of open uploads.
    pub uploads: usize,
    /// How long a client may send nothing. An upload expires after 60 times as long.
    pub timeout: Duration,
    /// Whether a first path component with a dot is a registry: `quay.io/folder/name` is then the
    /// store's image of `quay.io`, and not a repository of this registry.
    pub folders: bool,
}

impl RegistrySettings {
    /// A writable registry without an account.
    pub fn new(domain: &str) -> Self {
        Self {
            domain: domain.to_owned(),
            writable: true,
            account: None,
            largest: 64 << 30,
            uploads: 256,
            timeout: Duration::from_mins(1),
            folders: false,
        }
    }

    /// The store's name of a repository that a client names.
    fn repository_of(&self, domain: Option<&str>, name: &str) -> Result<String, ErrorResponse> {
        match domain {
            Some(domain) => repository(domain, name),
            None => match name.split_once('/') {
                Some((registry, rest)) if self.folders && registry.contains('.') => {
                    repository(registry, rest)
                }
                _ => repository(&self.domain, name),
            },
        }
    }

    /// The name under which the store has `reference`, if its registry is one of `addresses`, which
    /// are addresses of this registry. That is the same name in [`RegistrySettings::domain`], or in another
    /// registry ([`RegistrySettings::folders`]). Other references stay unchanged.
    pub fn stored(&self, reference: &ImageReference, addresses: &[String]) -> ImageReference {
        if !addresses.iter().any(|address| address == reference.domain()) {
            return reference.clone();
        }
        let repository = self.repository_of(None, reference.path()).ok();
        let moved = repository.and_then(|repository| reference.moved_to(&repository).ok());
        moved.unwrap_or_else(|| reference.clone())
    }
}

/// A registry server. Clones share their state.
#[derive(Clone, Debug)]
pub struct RegistryHandler {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    store: ImageStore,
    settings: RegistrySettings,
    uploads: Uploads,
}

/// The route of a path.
enum Route<'p> {
    Base,
    Catalog,
    Tags(&'p str),
    Manifest(&'p str, &'p str),
    Blob(&'p str, &'p str),
    Uploads(&'p str),
    Upload(&'p str, &'p str),
    Referrers(&'p str, &'p str),
}

/// Finds the route of a path. Repository names contain slashes, so the path is parsed from its end.
fn route(path: &str) -> Option<Route<'_>> {
    let path = path.strip_prefix("/v2")?;
    if matches!(path, "" | "/") {
        return Some(Route::Base);
    }
    let path = path.strip_prefix('/')?;
    if path == "_catalog" {
        return Some(Route::Catalog);
    }
    if let Some(name) = path.strip_suffix("/tags/list") {
        return Some(Route::Tags(name));
    }
    let (rest, last) = path.rsplit_once('/')?;
    if let Some(name) = rest.strip_suffix("/blobs/uploads") {
        return Some(if last.is_empty() {
            Route::Uploads(name)
        } else {
            Route::Upload(name, last)
        });
    }
    if last == "uploads"
        && let Some(name) = rest.strip_suffix("/blobs")
    {
        return Some(Route::Uploads(name));
    }
    let (name, kind) = rest.rsplit_once('/')?;
    match kind {
        "manifests" => Some(Route::Manifest(name, last)),
        "blobs" => Some(Route::Blob(name, last)),
        "referrers" => Some(Route::Referrers(name, last)),
        _ => None,
    }
}

/// A decoded parameter of a query.
fn parameter(query: Option<&str>, wanted: &str) -> Option<String> {
    query?.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (key == wanted).then(|| crate::url::decode(value))
    })
}

impl RegistryHandler {
    /// A registry server for a store.
    pub fn new(store: ImageStore, settings: RegistrySettings, clock: Clock) -> Self {
        let uploads = Uploads::new(store.clone(), &settings, clock);
        Self { inner: Arc::new(Inner { store, settings, uploads }) }
    }

    /// Handles a request.
    pub async fn handle<B>(&self, request: Request<B>) -> Response<RegistryBody>
    where
        B: HttpBody<Data = Bytes> + Send + Unpin,
        B::Error: std::fmt::Display,
    {
        let head = request.method() == Method::HEAD;
        let response = match self.inner.response(request).await {
            Ok(response) => response,
            Err(failure) => failure.response(),
        };
        response::finish(response, head)
    }
}

impl<B> tower::Service<Request<B>> for RegistryHandler
where
    B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
    B::Error: std::fmt::Display,
{
    type Response = Response<RegistryBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<RegistryBody>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut task::Context<'_>) -> task::Poll<Result<(), Infallible>> {
        task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let registry = self.clone();
        Box::pin(async move { Ok(registry.handle(request).await) })
    }
}

impl Inner {
    async fn response<B>(&self, request: Request<B>) -> HandlerResult
    where
        B: HttpBody<Data = Bytes> + Send + Unpin,
        B::Error: std::fmt::Display,
    {
        let (parts, body) = request.into_parts();
        let (path, query) = (parts.uri.path(), parts.uri.query());
        let reads = matches!(parts.method, Method::GET | Method::HEAD);
        let route = route(path);
        if let Some(account) = &self.settings.account {
            // Only writers may read the status of uploads, and clients probe the base to find out
            // whether to send credentials.
            let open = reads
                && !matches!(route, Some(Route::Base | Route::Uploads(_) | Route::Upload(..)));
            match account.check_credentials(&parts.headers) {
                CredentialCheck::Account => {}
                CredentialCheck::Nothing if open => {}
                check => return Err(unauthorized(check)),
            }
        }
        let Some(route) = route else {
            return Err(ErrorResponse::new(
                StatusCode::NOT_FOUND,
                ErrorCode::NameUnknown,
                "there is no such resource",
            ));
        };
        if !reads && !self.settings.writable {
            let why = "this registry is read-only";
            return Err(ErrorResponse::new(
                StatusCode::METHOD_NOT_ALLOWED,
                ErrorCode::Unsupported,
                why,
            ));
        }
        let domain = parameter(query, "ns");
        let repository = |name: &str| self.settings.repository_of(domain.as_deref(), name);
        match (route, &parts.method) {
            (Route::Base, _) if reads => Ok(response::json("{}")),
            (Route::Catalog, _) if reads => self.catalog(domain.as_deref(), query),
            (Route::Tags(name), _) if reads => self.tags(name, &repository(name)?, query),
            (Route::Manifest(name, wanted), method) => {
                let repository = repository(name)?;
                let wanted = parse_reference(&repository, wanted)?;
                match *method {
                    Method::GET | Method::HEAD => self.manifest(&wanted),
                    Method::PUT => {
                        let bytes = self.read_body(body).await?;
                        self.put_manifest(name, &wanted, &parts.headers, &bytes)
                    }
                    Method::DELETE => self.delete_manifest(&wanted),
                    _ => Err(response::not_allowed()),
                }
            }
            (Route::Blob(name, digest), _) if reads => {
                repository(name)?;
                self.blob(&parse_digest(digest)?, &parts.headers)
            }
            (Route::Blob(..), &Method::DELETE) => {
                let why = "blobs are removed when nothing names them any more";
                Err(ErrorResponse::new(StatusCode::METHOD_NOT_ALLOWED, ErrorCode::Unsupported, why))
            }
            (Route::Referrers(name, digest), _) if reads => {
                let kind = parameter(query, "artifactType");
                self.referrers(&repository(name)?, &parse_digest(digest)?, kind.as_deref())
            }
            (Route::Uploads(name), &Method::POST) => {
                repository(name)?;
                if let Some(digest) = parameter(query, "mount")
                    && let Ok(digest) = digest.parse::<Digest>()
                    && self.store.size_of(&digest)?.is_some()
                {
                    return Ok(response::created_blob(name, &digest));
                }
                match parameter(query, "digest") {
                    Some(digest) => {
                        let digest = parse_digest(&digest)?;
                        self.uploads.whole(&digest, body).await?;
                        Ok(response::created_blob(name, &digest))
                    }
                    None => self.uploads.begin(name),
                }
            }
            (Route::Upload(name, id), method) => {
                repository(name)?;
                match *method {
                    Method::GET | Method::HEAD => self.uploads.status(name, id).await,
                    Method::PATCH => self.uploads.append(name, id, &parts.headers, body).await,
                    Method::PUT => {
                        let Some(digest) = parameter(query, "digest") else {
                            let why = "the digest is missing";
                            return Err(ErrorResponse::bad(ErrorCode::DigestInvalid, why));
                        };
                        let digest = parse_digest(&digest)?;
                        self.uploads.finish(id, &parts.headers, body, &digest).await?;
                        Ok(response::created_blob(name, &digest))
                    }
                    Method::DELETE => self.uploads.cancel(id),
                    _ => Err(response::not_allowed()),
                }
            }
            _ => Err(response::not_allowed()),
        }
    }

    /// The bytes of a manifest.
    async fn read_body<B>(&self, mut body: B) -> Result<Vec<u8>, ErrorResponse>
    where
        B: HttpBody<Data = Bytes> + Send + Unpin,
        B::Error: std::fmt::Display,
    {
        let mut bytes = Vec::new();
        while let Some(frame) = uploads::frame(&mut body, self.settings.timeout).await? {
            if (bytes.len() + frame.len()) as u64 > manifest::LONGEST_MANIFEST {
                let why = "the manifest is too long";
                return Err(ErrorResponse::new(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    ErrorCode::ManifestInvalid,
                    why,
                ));
            }
            bytes.extend_from_slice(&frame);
        }
        Ok(bytes)
    }

    fn put_manifest(
        &self,
        name: &str,
        wanted: &ImageReference,
        headers: &HeaderMap,
        bytes: &[u8],
    ) -> HandlerResult {
        let sent = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let document = ImageDocument::read(bytes, sent)
            .map_err(|error| ErrorResponse::bad(ErrorCode::ManifestInvalid, &error.to_string()))?;
        let digest = match wanted.digest() {
            Some(digest) => {
                let found = digest.same_of(bytes);
                if found != *digest {
                    let why = format!("the manifest has digest {found}");
                    return Err(ErrorResponse::bad(ErrorCode::DigestInvalid, &why));
                }
                found
            }
            None => Digest::of(bytes),
        };
        for part in document.parts() {
            // Layers with URLs are stored elsewhere, and need not be pushed.
            if self.store.size_of(&part.digest)?.is_none() && part.urls.is_empty() {
                let why = format!("{} is not in the registry", part.digest);
                let code = match document {
                    ImageDocument::Index(_) => ErrorCode::ManifestUnknown,
                    ImageDocument::Manifest(_) => ErrorCode::ManifestBlobUnknown,
                };
                return Err(ErrorResponse::new(StatusCode::NOT_FOUND, code, &why));
            }
        }
        self.store.take(&mut &*bytes, &digest, Some(bytes.len() as u64))?;
        let descriptor = Descriptor::new(document.media_type(), digest.clone(), bytes.len() as u64);
        self.store.set(&wanted.with_digest(digest.clone()), &descriptor)?;
        if let Some(tag) = wanted.tag() {
            let tagged = wanted.with_tag(tag);
            let tagged = tagged
                .map_err(|error| ErrorResponse::bad(ErrorCode::TagInvalid, &error.to_string()))?;
            self.store.set(&tagged, &descriptor)?;
        }
        let mut response = response::created(&format!("/v2/{name}/manifests/{digest}"), &digest);
        if let Some(subject) = document.subject() {
            response::put(&mut response, "oci-subject", &subject.digest.to_string());
        }
        Ok(response)
    }

    fn find(&self, wanted: &ImageReference) -> Result<Descriptor, ErrorResponse> {
        if let Some(found) = self.store.resolve(wanted)? {
            return Ok(found);
        }
        if let Some(digest) = wanted.digest()
            && let Some(found) = self.find_below_tags(&wanted.repository(), digest)?
        {
            return Ok(found);
        }
        Err(ErrorResponse::manifest_unknown(wanted.wanted()))
    }

    /// A manifest below a tag of the repository. Images that were stored without a push have only a
    /// tag.
    fn find_below_tags(
        &self,
        repository: &str,
        digest: &Digest,
    ) -> Result<Option<Descriptor>, ErrorResponse> {
        let reference: Result<ImageReference, _> = repository.parse();
        let Ok(reference) = reference else { return Ok(None) };
        let mut open = Vec::new();
        for tag in self.store.tags(repository)? {
            let Ok(tagged) = reference.with_tag(&tag) else { continue };
            open.extend(self.store.resolve(&tagged)?.map(|descriptor| (descriptor, 0)));
        }
        while let Some((descriptor, depth)) = open.pop() {
            if descriptor.digest == *digest {
                return Ok(Some(descriptor));
            }
            let of_images = matches!(
                descriptor.media_type.as_str(),
                manifest::media_type::OCI_INDEX | manifest::media_type::DOCKER_LIST
            );
            if of_images
                && depth < manifest::DEEPEST_INDEX
                && let Ok(ImageDocument::Index(index)) = self.store.document(&descriptor.digest)
            {
                open.extend(index.manifests.into_iter().map(|one| (one, depth + 1)));
            }
        }
        Ok(None)
    }

    fn manifest(&self, wanted: &ImageReference) -> HandlerResult {
        let descriptor = self.find(wanted)?;
        let bytes = match self.store.bytes(&descriptor.digest, manifest::LONGEST_MANIFEST) {
            // The store may have an index without all of its images.
            Err(ImageStoreError::NoBlob(digest)) => {
                return Err(ErrorResponse::manifest_unknown(digest));
            }
            bytes => bytes?,
        };
        Ok(response::manifest(&descriptor, bytes))
    }

    fn delete_manifest(&self, wanted: &ImageReference) -> HandlerResult {
        let descriptor = self.find(wanted)?;
        if wanted.digest().is_some() {
            let repository = wanted.repository();
            for tag in self.store.tags(&repository)? {
                let Ok(tagged) = wanted.with_tag(&tag) else { continue };
                if self
                    .store
                    .resolve(&tagged)?
                    .is_some_and(|tagged| tagged.digest == descriptor.digest)
                {
                    self.store.forget(&tagged)?;
                }
            }
        }
        self.store.forget(wanted)?;
        Ok(response::accepted())
    }

    fn tags(&self, name: &str, repository: &str, query: Option<&str>) -> HandlerResult {
        let tags = self.store.tags(repository)?;
        if tags.is_empty() && self.store.digests(repository)?.is_empty() {
            let why = "the repository is not known";
            return Err(ErrorResponse::new(StatusCode::NOT_FOUND, ErrorCode::NameUnknown, why));
        }
        let (page, more) = page(tags, query)?;
        let text = serde_json::json!({"name": name, "tags": page}).to_string();
        Ok(response::page(text, &format!("/v2/{name}/tags/list"), more))
    }

    fn catalog(&self, domain: Option<&str>, query: Option<&str>) -> HandlerResult {
        let own = domain.unwrap_or(&self.settings.domain);
        let local_name = |one: String| match one.split_once('/') {
            Some((registry, name)) if registry == own => Some(name.to_owned()),
            // Only repositories that are available under that name.
            Some((registry, _)) => {
                let check = domain.is_none()
                    && self.settings.folders
                    && registry.contains('.')
                    && reference::is_component(registry);
                check.then_some(one)
            }
            None => None,
        };
        let mut names: Vec<String> =
            self.store.repositories()?.into_iter().filter_map(local_name).collect();
        names.sort_unstable();
        let (page, more) = page(names, query)?;
        let text = serde_json::json!({"repositories": page}).to_string();
        Ok(response::page(text, "/v2/_catalog", more))
    }

    fn referrers(
        &self,
        repository: &str,
        subject_digest: &Digest,
        kind: Option<&str>,
    ) -> HandlerResult {
        let mut found = Vec::new();
        for digest in self.store.digests(repository)? {
            let Ok(document) = self.store.document(&digest) else { continue };
            let refers =
                document.subject().is_some_and(|subject| subject.digest == *subject_digest);
            let artifact = document.artifact_type().map(str::to_owned);
            if !refers || kind.is_some_and(|kind| artifact.as_deref() != Some(kind)) {
                continue;
            }
            let size = self.store.size_of(&digest)?.unwrap_or_default();
            let mut descriptor = Descriptor::new(document.media_type(), digest, size);
            descriptor.artifact_type = artifact;
            descriptor.annotations.clone_from(document.annotations());
            found.push(descriptor);
        }
        let text = serde_json::to_vec(&ImageIndex::oci(found)).map_err(ErrorResponse::internal)?;
        let mut response = response::index(text);
        if kind.is_some() {
            response::put(&mut response, "oci-filters-applied", "artifactType");
        }
        Ok(response)
    }

    fn blob(&self, digest: &Digest, headers: &HeaderMap) -> HandlerResult {
        let (file, length) = self.store.blob(digest).map_err(|error| match error {
            ImageStoreError::NoBlob(_) => {
                let why = format!("{digest} is not known");
                ErrorResponse::new(StatusCode::NOT_FOUND, ErrorCode::BlobUnknown, &why)
            }
            other => other.into(),
        })?;
        content::blob(file, length, digest, headers)
    }
}

/// An error response for servers in front of a registry, in the format of the registry.
pub fn denied(status: StatusCode, why: &str) -> Response<RegistryBody> {
    response::finish(ErrorResponse::new(status, ErrorCode::Denied, why).response(), false)
}

fn unauthorized(check: CredentialCheck) -> ErrorResponse {
    let why = match check {
        CredentialCheck::Wrong => "the name or the password is not that of this registry",
        _ => "changing this registry needs its name and password",
    };
    ErrorResponse::new(StatusCode::UNAUTHORIZED, ErrorCode::Unauthorized, why)
}

/// The name of a repository in the store.
fn repository(domain: &str, name: &str) -> Result<String, ErrorResponse> {
    let is_valid = reference::is_domain(domain)
        && name.split('/').all(reference::is_component)
        && domain.len() + name.len() < 255;
    if is_valid {
        Ok(format!("{domain}/{name}"))
    } else {
        Err(ErrorResponse::bad(ErrorCode::NameInvalid, "the name of the repository is invalid"))
    }
}

fn parse_digest(text: &str) -> Result<Digest, ErrorResponse> {
    crate::url::decode(text).parse().map_err(|error: crate::digest::DigestError| {
        ErrorResponse::bad(ErrorCode::DigestInvalid, &error.to_string())
    })
}

/// The reference of a manifest: by digest or tag.
fn parse_reference(repository: &str, wanted: &str) -> Result<ImageReference, ErrorResponse> {
    let wanted = crate::url::decode(wanted);
    let text = if wanted.contains(':') {
        parse_digest(&wanted)?;
        format!("{repository}@{wanted}")
    } else {
        format!("{repository}:{wanted}")
    };
    text.parse().map_err(|_| {
        ErrorResponse::new(StatusCode::NOT_FOUND, ErrorCode::ManifestUnknown, "the tag is invalid")
    })
}

/// A page of a sorted list, and the parameters of the next page.
fn page(
    all: Vec<String>,
    query: Option<&str>,
) -> Result<(Vec<String>, Option<String>), ErrorResponse> {
    let last = parameter(query, "last");
    let after = |one: &String| last.as_ref().is_none_or(|last| one > last);
    let mut rest: Vec<String> = all.into_iter().filter(after).collect();
    let Some(most) = parameter(query, "n") else { return Ok((rest, None)) };
    let Ok(most) = most.parse::<usize>() else {
        return Err(ErrorResponse::bad(ErrorCode::PaginationNumberInvalid, "n is not a number"));
    };
    let more = rest.len() > most;
    rest.truncate(most);
    let more = rest.last().filter(|_| more).map(|last| format!("n={most}&last={last}"));
    Ok((rest, more))
}
