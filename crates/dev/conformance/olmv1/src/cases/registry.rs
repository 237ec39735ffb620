//! The registry of a case: repositories in memory, with faults.
//!
//! Bodies and error codes are those of the recordings' registry, because the original reports them.

use super::case::{FaultKind, RepositoryFault};
use super::images::{CaseImage, ImageBlob};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body_util::Full;
use parking_lot::Mutex;
use serde_json::json;
use std::collections::BTreeMap;

/// The host that requires a login.
pub(super) const PRIVATE_HOST: &str = "private.example";
/// The name and password for [`PRIVATE_HOST`].
const LOGIN: &str = "robot:open-sesame";
/// What faults say.
const ON_DEMAND: &str = "fault on demand";
/// The page that is sent instead of content.
const PAGE: &str = "<html><body>Something went wrong</body></html>";

/// The content of a repository.
#[derive(Debug, Default)]
struct Repository {
    /// Digests by tag.
    tags: BTreeMap<String, String>,
    /// Manifests and indexes by digest.
    manifests: BTreeMap<String, ImageBlob>,
    /// Configurations and layers by digest.
    blobs: BTreeMap<String, Bytes>,
}

#[derive(Debug, Default)]
struct State {
    repositories: BTreeMap<String, Repository>,
    faults: BTreeMap<String, RepositoryFault>,
}

/// All repositories of a case. All hosts serve the same ones.
#[derive(Debug, Default)]
pub(super) struct CaseRegistry {
    state: Mutex<State>,
}

/// The repository and the tag of a reference that begins with a host.
fn parts(reference: &str) -> (&str, Option<&str>) {
    let path = reference.split_once('/').map_or(reference, |(_, path)| path);
    match path.rsplit_once(':') {
        Some((repository, tag)) => (repository, Some(tag)),
        None => (path, None),
    }
}

impl CaseRegistry {
    /// Adds an image, and moves its tag.
    pub(super) fn push(&self, image: &CaseImage) {
        let (name, tag) = parts(&image.reference);
        let mut state = self.state.lock();
        let repository = state.repositories.entry(name.to_owned()).or_default();
        for manifest in &image.manifests {
            repository.manifests.insert(manifest.digest.to_string(), manifest.clone());
        }
        for blob in &image.blobs {
            repository.blobs.insert(blob.digest.to_string(), blob.bytes.clone());
        }
        if let (Some(tag), Some(digest)) = (tag, image.digest()) {
            repository.tags.insert(tag.to_owned(), digest.to_string());
        }
    }

    /// Removes a tag, or a repository if the reference has no tag.
    pub(super) fn forget(&self, reference: &str) {
        let (name, tag) = parts(reference);
        let mut state = self.state.lock();
        match tag {
            None => {
                state.repositories.remove(name);
            }
            Some(tag) => {
                if let Some(repository) = state.repositories.get_mut(name) {
                    repository.tags.remove(tag);
                }
            }
        }
    }

    /// Sets or removes the fault of a repository.
    pub(super) fn set_fault(&self, repository: &str, fault: Option<RepositoryFault>) {
        let mut state = self.state.lock();
        match fault {
            Some(fault) => {
                state.faults.insert(repository.to_owned(), fault);
            }
            None => {
                state.faults.remove(repository);
            }
        }
    }

    /// The response to a read request.
    pub(super) fn respond(
        &self,
        host: &str,
        path: &str,
        headers: &HeaderMap,
    ) -> Response<Full<Bytes>> {
        if host == PRIVATE_HOST && !has_login(headers) {
            let mut response = error(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", "");
            let challenge = HeaderValue::from_static("Basic realm=\"registry\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
            return response;
        }
        let path = path.strip_prefix("/v2/").unwrap_or_default();
        if path.is_empty() {
            return content("application/json", Bytes::from_static(b"{}"));
        }
        let split = |kind: &str| path.rsplit_once(&format!("/{kind}/"));
        let state = self.state.lock();
        if let Some((name, wanted)) = split("manifests") {
            return state.manifest(name, wanted);
        }
        match split("blobs") {
            Some((name, digest)) => state.blob(name, digest),
            None => error(StatusCode::NOT_FOUND, "NAME_UNKNOWN", ""),
        }
    }
}

impl State {
    fn manifest(&self, name: &str, wanted: &str) -> Response<Full<Bytes>> {
        let fault = self.faults.get(name).filter(|fault| fault.manifests);
        match fault.map(|fault| fault.kind) {
            Some(FaultKind::Status(status)) => return failure(status),
            Some(FaultKind::Garbage) => return page(),
            Some(FaultKind::Flip) | None => {}
        }
        let found = self.repositories.get(name).and_then(|repository| {
            let digest = repository.tags.get(wanted).map_or(wanted, String::as_str);
            repository.manifests.get(digest)
        });
        let Some(manifest) = found else {
            return error(StatusCode::NOT_FOUND, "MANIFEST_UNKNOWN", "");
        };
        let bytes = if fault.is_some() { flipped(&manifest.bytes) } else { manifest.bytes.clone() };
        let mut response = content(manifest.media_type, bytes);
        if let Ok(digest) = HeaderValue::from_str(&manifest.digest.to_string()) {
            response.headers_mut().insert("docker-content-digest", digest);
        }
        response
    }

    fn blob(&self, name: &str, digest: &str) -> Response<Full<Bytes>> {
        let found = self.repositories.get(name).and_then(|repository| repository.blobs.get(digest));
        let Some(bytes) = found else {
            return error(StatusCode::NOT_FOUND, "BLOB_UNKNOWN", "");
        };
        let fault = self.faults.get(name).filter(|fault| fault.blobs);
        match fault.map(|fault| fault.kind) {
            Some(FaultKind::Status(status)) => failure(status),
            Some(FaultKind::Garbage) => page(),
            Some(FaultKind::Flip) => content("application/octet-stream", flipped(bytes)),
            None => content("application/octet-stream", bytes.clone()),
        }
    }
}

fn has_login(headers: &HeaderMap) -> bool {
    let sent = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    sent.and_then(|text| text.split_once(' ')).is_some_and(|(scheme, rest)| {
        scheme.eq_ignore_ascii_case("basic") && rest.trim() == STANDARD.encode(LOGIN)
    })
}

/// The content with one wrong byte.
fn flipped(bytes: &Bytes) -> Bytes {
    let mut bytes = bytes.to_vec();
    let middle = bytes.len() / 2;
    if let Some(byte) = bytes.get_mut(middle) {
        *byte ^= 1;
    }
    bytes.into()
}

fn content(media_type: &'static str, bytes: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(bytes));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

fn page() -> Response<Full<Bytes>> {
    content("text/html", Bytes::from_static(PAGE.as_bytes()))
}

fn failure(status: u16) -> Response<Full<Bytes>> {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let code = match status {
        StatusCode::UNAUTHORIZED => "UNAUTHORIZED",
        StatusCode::FORBIDDEN => "DENIED",
        StatusCode::NOT_FOUND => "MANIFEST_UNKNOWN",
        StatusCode::TOO_MANY_REQUESTS => "TOOMANYREQUESTS",
        _ => "UNKNOWN",
    };
    error(status, code, ON_DEMAND)
}

/// An error of the distribution API. The recordings' registry has no messages but for faults.
fn error(status: StatusCode, code: &str, message: &str) -> Response<Full<Bytes>> {
    let body = json!({"errors": [{"code": code, "message": message}]}).to_string();
    let mut response = content("application/json", body.into());
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::placeholders::Placeholders;

    fn image(reference: &str, file: &str) -> CaseImage {
        let entry = json!({"ref": reference, "files": {"a": file}});
        CaseImage::build(&entry, &Placeholders::default()).unwrap()
    }

    fn status(registry: &CaseRegistry, path: &str) -> u16 {
        registry.respond("registry.example", path, &HeaderMap::new()).status().as_u16()
    }

    #[test]
    fn a_tag_moves_and_the_old_digest_stays() {
        let registry = CaseRegistry::default();
        let (old, new) =
            (image("registry.example/a/b:v1", "1"), image("registry.example/a/b:v1", "2"));
        registry.push(&old);
        registry.push(&new);
        let path = |wanted: &str| format!("/v2/a/b/manifests/{wanted}");
        let tagged = registry.respond("registry.example", &path("v1"), &HeaderMap::new());
        let digest = tagged.headers()["docker-content-digest"].to_str().unwrap().to_owned();
        assert_eq!(digest, new.digest().unwrap().to_string());
        assert_eq!(status(&registry, &path(&old.digest().unwrap().to_string())), 200);
        assert_eq!(status(&registry, &format!("/v2/a/b/blobs/{}", old.blobs[0].digest)), 200);
        registry.forget("registry.example/a/b:v1");
        assert_eq!(status(&registry, &path("v1")), 404);
        registry.forget("registry.example/a/b");
        assert_eq!(status(&registry, &path(&digest)), 404);
    }

    #[test]
    fn faults_concern_manifests_or_blobs_of_a_repository() {
        let registry = CaseRegistry::default();
        let image = image("registry.example/a:v1", "1");
        registry.push(&image);
        let blob = format!("/v2/a/blobs/{}", image.blobs[0].digest);
        let fault = |kind| RepositoryFault { manifests: false, blobs: true, kind };
        registry.set_fault("a", Some(fault(FaultKind::Status(503))));
        assert_eq!((status(&registry, &blob), status(&registry, "/v2/a/manifests/v1")), (503, 200));
        registry.set_fault("a", None);
        assert_eq!(status(&registry, &blob), 200);
        assert_ne!(flipped(&image.blobs[0].bytes), image.blobs[0].bytes);
    }

    #[test]
    fn the_private_host_requires_its_login() {
        let registry = CaseRegistry::default();
        let with = |login: &str| {
            let value = format!("Basic {}", STANDARD.encode(login));
            let value = HeaderValue::from_str(&value).unwrap();
            let headers = HeaderMap::from_iter([(header::AUTHORIZATION, value)]);
            registry.respond(PRIVATE_HOST, "/v2/", &headers).status().as_u16()
        };
        assert_eq!((with("robot:wrong"), with(LOGIN)), (401, 200));
    }
}
