//! Sending one request to a registry: authentication, redirects, retries.

use super::{
    Inner, ListedError, Progress, RegistryError, RegistrySecret, Security,
    challenge::{self, Challenge, Key},
    retry::is_temporary,
    transport::Outgoing,
};
use crate::{credentials::Login, digest::Digest, store::ImageStore};
use base64::Engine as _;
use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header,
};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use std::{
    fmt::Write as _,
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// How many redirects a request follows.
const MAX_REDIRECTS: usize = 5;
/// How many stall timeouts a short response may take in total.
const MAX_STALLS: u32 = 5;
/// How many challenges a request answers: one for an expired token, and one more.
const MAX_CHALLENGES: usize = 2;

/// A repository, and how to reach it.
#[derive(Clone, Debug)]
pub(super) struct Repository {
    pub(super) host: String,
    pub(super) path: String,
    /// The name with its registry, as the key for credentials.
    pub(super) full: String,
    pub(super) security: Security,
}

impl Repository {
    pub(super) fn url(&self, rest: &str) -> String {
        let scheme = if self.security == Security::Plain { "http" } else { "https" };
        format!("{scheme}://{}/v2/{}/{rest}", self.host, self.path)
    }

    /// Whether a URL belongs to the registry itself.
    pub(super) fn is_at(&self, url: &str) -> bool {
        let Ok(uri) = url.parse::<Uri>() else { return false };
        let own = format!("{}://{}/", uri.scheme_str().unwrap_or_default(), self.host);
        own.parse().is_ok_and(|own: Uri| authority(&own) == authority(&uri))
    }
}

/// The body of a request, which can be sent again.
#[derive(Clone)]
pub(super) enum Payload {
    None,
    Bytes(Bytes),
    Blob(ImageStore, Digest),
}

/// A request.
#[derive(Clone)]
pub(super) struct RegistryRequest<'c> {
    pub(super) method: Method,
    pub(super) url: String,
    pub(super) headers: Vec<(HeaderName, String)>,
    pub(super) payload: Payload,
    /// Whether it writes, for the scope of tokens.
    pub(super) write: bool,
    /// The statuses that are not errors.
    pub(super) accepted: &'c [u16],
}

impl RegistryRequest<'_> {
    pub(super) fn get(url: String) -> Self {
        Self {
            method: Method::GET,
            url,
            headers: Vec::new(),
            payload: Payload::None,
            write: false,
            accepted: &[200],
        }
    }
}

/// A URL without the parts that may contain a secret.
pub(super) fn display_url(url: &str) -> String {
    let plain = url.split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = plain.split_once("://").unwrap_or(("", plain));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = authority.rsplit('@').next().unwrap_or_default();
    let whole = format!("{scheme}://{host}/{path}");
    whole.chars().filter(char::is_ascii_graphic).take(300).collect()
}

/// Host and port, with the default port of the scheme.
fn authority(uri: &Uri) -> (Option<String>, Option<u16>, Option<String>) {
    let default = match uri.scheme_str() {
        Some("https") => Some(443),
        Some("http") => Some(80),
        _ => None,
    };
    let host = uri.host().map(str::to_lowercase);
    (host, uri.port_u16().or(default), uri.scheme_str().map(str::to_owned))
}

/// The target of a `Location` header, if it may be followed.
pub(super) fn follow(from: &str, location: &str) -> Result<String, RegistryError> {
    let refused =
        |why| RegistryError::Redirect { url: display_url(from), to: display_url(location), why };
    let base: Uri = from.parse().map_err(|_| refused("it is not a valid URL"))?;
    let (scheme, host) = (base.scheme_str(), base.authority());
    let (Some(scheme), Some(host)) = (scheme, host) else {
        return Err(refused("it is not a valid URL"));
    };
    let target = if location.starts_with("//") {
        format!("{scheme}:{location}")
    } else if location.starts_with('/') {
        format!("{scheme}://{host}{location}")
    } else if location.starts_with('?') {
        format!("{scheme}://{host}{}{location}", base.path())
    } else if location.split(['/', '?', '#']).next().is_some_and(|first| first.contains(':')) {
        location.to_owned()
    } else {
        let folder = base.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{scheme}://{host}{folder}/{location}")
    };
    let target = target.split('#').next().unwrap_or_default().to_owned();
    let to = target.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    match (scheme, to.as_deref()) {
        (_, Some("https")) | ("http", Some("http")) => {}
        (_, Some("http")) => return Err(refused("it is not encrypted")),
        _ => return Err(refused("it is not HTTP")),
    }
    let uri: Uri = target.parse().map_err(|_| refused("it is not a valid URL"))?;
    let Some(authority) = uri.authority() else { return Err(refused("it has no host")) };
    if authority.as_str().contains('@') {
        return Err(refused("it contains credentials"));
    }
    Ok(target)
}

impl Payload {
    fn length(&self) -> Result<u64, RegistryError> {
        Ok(match self {
            Self::None => 0,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Blob(store, digest) => store.blob(digest)?.1,
        })
    }

    fn body(
        &self,
        sent: Arc<AtomicU64>,
        progress: Arc<Progress>,
    ) -> Result<Outgoing, RegistryError> {
        let whole = |bytes: Bytes| {
            Full::new(bytes).map_err(|never| -> io::Error { match never {} }).boxed()
        };
        Ok(match self {
            Self::None => whole(Bytes::new()),
            Self::Bytes(bytes) => whole(bytes.clone()),
            Self::Blob(store, digest) => {
                let (file, length) = store.blob(digest)?;
                let pieces = crate::serve::stream_file(file, 0..length);
                pieces
                    .map_frame(move |frame| {
                        sent.fetch_add(1, Ordering::Relaxed);
                        progress.moved(frame.data_ref().map_or(0, Bytes::len) as u64);
                        frame
                    })
                    .boxed()
            }
        })
    }
}

/// The error for a URL that requires other credentials than it gets.
fn unauthorized(url: &str, why: &'static str) -> RegistryError {
    RegistryError::Unauthorized { url: display_url(url), why, first: ListedError::default() }
}

impl Inner {
    /// Sends a request, with retries and authentication.
    pub(super) async fn send(
        &self,
        repository: &Repository,
        call: &RegistryRequest<'_>,
    ) -> Result<Response<Incoming>, RegistryError> {
        let mut call = call.clone();
        let (mut tries, mut challenges) = (0, 0);
        loop {
            tries += 1;
            let key: Key = (repository.host.clone(), repository.path.clone(), call.write);
            let secret = self.tokens.get(&key, self.settings.clock);
            let answer = self.send_following_redirects(repository, &call, secret.as_ref()).await;
            let (answer, url) = match answer {
                Ok(answer) => answer,
                Err(SendError::Final(error)) => return Err(error),
                Err(SendError::NoTls(error)) => {
                    match call.url.strip_prefix("https://") {
                        // An insecure registry may have no TLS, so plain HTTP is tried at once.
                        Some(rest) if repository.security == Security::Insecure => {
                            call.url = format!("http://{rest}");
                            continue;
                        }
                        _ if tries >= self.settings.attempts => return Err(error),
                        _ => self.wait(tries, &error, None).await,
                    }
                    continue;
                }
                Err(SendError::Retry(error)) => {
                    if tries >= self.settings.attempts {
                        return Err(error);
                    }
                    self.wait(tries, &error, None).await;
                    continue;
                }
            };
            let status = answer.status();
            if call.accepted.contains(&status.as_u16()) {
                let mut answer = answer;
                answer.extensions_mut().insert(ResponseUrl(url));
                return Ok(answer);
            }
            if status == StatusCode::UNAUTHORIZED && !repository.is_at(&url) {
                // A redirect target must not obtain the credentials of the registry.
                let why = "it is not the registry, so it does not get its credentials";
                let (url, first) = (display_url(&url), ListedError::default());
                return Err(RegistryError::Unauthorized { url, why, first });
            }
            if status == StatusCode::UNAUTHORIZED {
                self.tokens.forget(&key);
                challenges += 1;
                let headers = answer.headers().clone();
                let refused = self.response_error(repository, &url, answer, secret.as_ref()).await;
                let answered = if challenges > MAX_CHALLENGES {
                    Err(unauthorized(&url, "the token is not accepted"))
                } else {
                    self.answer_challenge(repository, &url, &headers, key, challenges).await
                };
                answered.map_err(|error| error.with_response(refused))?;
                tries -= 1;
                continue;
            }
            if is_temporary(status) && tries < self.settings.attempts {
                self.wait_as_requested(tries, &url, &answer).await;
                continue;
            }
            return Err(self.response_error(repository, &url, answer, secret.as_ref()).await);
        }
    }

    /// Sends a request and follows redirects.
    async fn send_following_redirects(
        &self,
        repository: &Repository,
        call: &RegistryRequest<'_>,
        secret: Option<&RegistrySecret>,
    ) -> Result<(Response<Incoming>, String), SendError> {
        let mut url = call.url.clone();
        let home: Uri = url.parse().map_err(|_| answer_error(&url, "the URL is invalid"))?;
        self.transport.prepare(&home).await.map_err(SendError::Final)?;
        // Uploads may have a URL on another host, which gets no credentials.
        let registry = repository.is_at(&url);
        for _ in 0..=MAX_REDIRECTS {
            let uri: Uri = url.parse().map_err(|_| answer_error(&url, "the URL is invalid"))?;
            let mut request = Request::builder().method(&call.method).uri(&uri);
            for (name, value) in &call.headers {
                request = request.header(name, value);
            }
            request = request.header(header::USER_AGENT, "mainstay");
            if let Some(secret) = secret
                && registry
                && authority(&uri) == authority(&home)
            {
                let mut value = HeaderValue::from_str(secret.reveal()).map_err(|_| {
                    answer_error(&url, "the credentials have characters that a header cannot have")
                })?;
                value.set_sensitive(true);
                request = request.header(header::AUTHORIZATION, value);
            }
            if !matches!(call.method, Method::GET | Method::HEAD) {
                let length = call.payload.length().map_err(SendError::Final)?;
                request = request.header(header::CONTENT_LENGTH, length);
            }
            let sent = Arc::new(AtomicU64::new(0));
            let body = call.payload.body(Arc::clone(&sent), Arc::clone(&self.settings.progress));
            let body = body.map_err(SendError::Final)?;
            let request =
                request.body(body).map_err(|_| answer_error(&url, "the request cannot be made"))?;
            let answer = self.send_once(request, repository.security, &url, &sent).await?;
            if !answer.status().is_redirection() {
                return Ok((answer, url));
            }
            let location = answer.headers().get(header::LOCATION);
            let Some(location) = location.and_then(|value| value.to_str().ok()) else {
                return Err(answer_error(&url, "the redirect has no Location"));
            };
            let target = follow(&url, location).map_err(SendError::Final)?;
            if !matches!(call.method, Method::GET | Method::HEAD) {
                let why = "only GET and HEAD requests follow redirects";
                let (url, to) = (display_url(&url), display_url(&target));
                return Err(SendError::Final(RegistryError::Redirect { url, to, why }));
            }
            url = target;
        }
        let (url, to) = (display_url(&call.url), display_url(&url));
        Err(SendError::Final(RegistryError::Redirect {
            url,
            to,
            why: "there are too many redirects",
        }))
    }

    async fn send_once(
        &self,
        request: Request<Outgoing>,
        security: Security,
        url: &str,
        sent: &AtomicU64,
    ) -> Result<Response<Incoming>, SendError> {
        let timeout = self.settings.stall;
        let mut answer = std::pin::pin!(self.transport.request(request, security));
        let mut seen = 0;
        loop {
            match tokio::time::timeout(timeout, &mut answer).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) => {
                    let url = display_url(url);
                    let failed = RegistryError::Connection { url, why: root_cause(&error) };
                    return Err(if error.is_connect() {
                        SendError::NoTls(failed)
                    } else {
                        SendError::Retry(failed)
                    });
                }
                Err(_) => {
                    let now = sent.load(Ordering::Relaxed);
                    if now == seen {
                        let url = display_url(url);
                        return Err(SendError::Retry(RegistryError::Stalled { url, timeout }));
                    }
                    seen = now;
                }
            }
        }
    }

    async fn answer_challenge(
        &self,
        repository: &Repository,
        url: &str,
        headers: &HeaderMap,
        key: Key,
        round: usize,
    ) -> Result<(), RegistryError> {
        let unauthorized = |why| unauthorized(url, why);
        let values = headers.get_all(header::WWW_AUTHENTICATE).into_iter();
        let challenge = challenge::read(values.filter_map(|value| value.to_str().ok()))
            .ok_or_else(|| {
                unauthorized("the registry names no authentication scheme, or an unknown one")
            })?;
        let login = self.settings.keyring.login(&repository.full).await?;
        let now = self.settings.clock.stamp();
        match challenge {
            Challenge::Basic => {
                let Some(login) = login else {
                    return Err(unauthorized("there are no credentials"));
                };
                if round > 1 {
                    return Err(unauthorized("the credentials are not accepted"));
                }
                let value = format!("Basic {}", basic(&login).reveal());
                self.tokens.put(key, RegistrySecret::new(value), now, Duration::from_hours(24));
            }
            Challenge::Bearer { realm, service, scope } => {
                let uri: Option<Uri> = realm.parse().ok();
                let accepted = uri.is_some_and(|uri| match uri.scheme_str() {
                    Some("https") => true,
                    // Its security is that of the registry itself.
                    Some("http") => url.starts_with("http://"),
                    _ => false,
                });
                if !accepted || realm.contains('@') {
                    return Err(unauthorized(
                        "its token service has no https URL, or one with credentials",
                    ));
                }
                let actions = if key.2 { "pull,push" } else { "pull" };
                let scope =
                    scope.unwrap_or_else(|| format!("repository:{}:{actions}", repository.path));
                let (token, good) = self
                    .token(repository, &realm, service.as_deref(), &scope, login.as_ref())
                    .await?;
                let value = RegistrySecret::new(format!("Bearer {}", token.reveal()));
                self.tokens.put(key, value, now, good);
            }
        }
        Ok(())
    }

    async fn token(
        &self,
        repository: &Repository,
        realm: &str,
        service: Option<&str>,
        scope: &str,
        login: Option<&Login>,
    ) -> Result<(RegistrySecret, Duration), RegistryError> {
        let mut query = String::new();
        for (name, value) in [("service", service), ("scope", Some(scope))] {
            if let Some(value) = value {
                query.push_str(if query.is_empty() { "" } else { "&" });
                let _ = write!(query, "{name}={}", crate::url::encode(value));
            }
        }
        let mut call = RegistryRequest::get(format!(
            "{realm}{}{query}",
            if realm.contains('?') { "&" } else { "?" }
        ));
        let mut secret = None;
        match login {
            Some(Login::Password { .. }) => {
                let basic = login.map(basic).unwrap_or_default();
                secret = Some(RegistrySecret::new(format!("Basic {}", basic.reveal())));
            }
            Some(Login::Identity(token)) => {
                let token = crate::url::encode(token.reveal());
                call.method = Method::POST;
                realm.clone_into(&mut call.url);
                call.headers
                    .push((header::CONTENT_TYPE, "application/x-www-form-urlencoded".to_owned()));
                let form = format!(
                    "grant_type=refresh_token&client_id=mainstay&refresh_token={token}&{query}"
                );
                call.payload = Payload::Bytes(form.into());
            }
            None => {}
        }
        // For the token service, the credentials are those of its own host.
        let host = call.url.split_once("://").map_or("", |(_, rest)| rest);
        let host = host.split(['/', '?']).next().unwrap_or_default().to_owned();
        let service = Repository { host, ..repository.clone() };
        let mut tries = 0;
        loop {
            tries += 1;
            let answer = match self.send_following_redirects(&service, &call, secret.as_ref()).await
            {
                Ok((answer, _)) => answer,
                Err(SendError::Final(error)) => return Err(error),
                Err(SendError::NoTls(error) | SendError::Retry(error)) => {
                    if tries >= self.settings.attempts {
                        return Err(error);
                    }
                    self.wait(tries, &error, None).await;
                    continue;
                }
            };
            let status = answer.status();
            if status == StatusCode::OK {
                let bytes = self.read_body(&call.url, answer, 1 << 20).await?;
                return challenge::token(&display_url(&call.url), &bytes);
            }
            if is_temporary(status) && tries < self.settings.attempts {
                self.wait_as_requested(tries, &call.url, &answer).await;
                continue;
            }
            if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
                let why = match login {
                    Some(_) => "the token service does not accept the credentials",
                    None => {
                        "there are no credentials, and the token service refuses anonymous tokens"
                    }
                };
                return Err(unauthorized(&call.url, why));
            }
            return Err(self.response_error(repository, &call.url, answer, secret.as_ref()).await);
        }
    }

    /// The bytes of a short response.
    pub(super) async fn read_body(
        &self,
        url: &str,
        answer: Response<Incoming>,
        limit: u64,
    ) -> Result<Vec<u8>, RegistryError> {
        let too_long = || RegistryError::Answer {
            url: display_url(url),
            why: format!("the response has more than {limit} bytes"),
        };
        let mut body = answer.into_body();
        let mut bytes = Vec::new();
        let read = async {
            while let Some(piece) = self.next_chunk(url, &mut body).await? {
                if (bytes.len() + piece.len()) as u64 > limit {
                    return Err(too_long());
                }
                bytes.extend_from_slice(&piece);
            }
            Ok(bytes)
        };
        // A slow trickle never stalls, so the whole response has a timeout, too.
        let timeout = self.settings.stall.saturating_mul(MAX_STALLS);
        let in_time = tokio::time::timeout(timeout, read).await;
        in_time.unwrap_or_else(|_| {
            let why = format!("the response was not complete after {} s", timeout.as_secs());
            Err(RegistryError::Answer { url: display_url(url), why })
        })
    }

    /// The next chunk of a response, which must arrive before the stall timeout.
    pub(super) async fn next_chunk(
        &self,
        url: &str,
        body: &mut Incoming,
    ) -> Result<Option<Bytes>, RegistryError> {
        let timeout = self.settings.stall;
        loop {
            let next = tokio::time::timeout(timeout, body.frame()).await;
            match next {
                Err(_) => return Err(RegistryError::Stalled { url: display_url(url), timeout }),
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) => {
                    let why = root_cause(&error);
                    return Err(RegistryError::Connection { url: display_url(url), why });
                }
                Ok(Some(Ok(frame))) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Ok(Some(bytes));
                    }
                }
            }
        }
    }
}

/// The URL of a response, as an extension of it.
#[derive(Clone, Debug)]
pub(super) struct ResponseUrl(pub(super) String);

/// Why there is no response.
enum SendError {
    /// A retry does not help.
    Final(RegistryError),
    /// The connection failed, perhaps because the registry has no TLS.
    NoTls(RegistryError),
    /// A retry may help.
    Retry(RegistryError),
}

fn answer_error(url: &str, why: &str) -> SendError {
    SendError::Final(RegistryError::Answer { url: display_url(url), why: why.to_owned() })
}

fn basic(login: &Login) -> RegistrySecret {
    let text = match login {
        Login::Password { name, password } => format!("{name}:{}", password.reveal()),
        Login::Identity(token) => format!("<token>:{}", token.reveal()),
    };
    RegistrySecret::new(base64::engine::general_purpose::STANDARD.encode(text))
}

/// The innermost cause of an error: the outer errors of HTTP libraries have little information.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
