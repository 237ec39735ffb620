//! Watch.
//!
//! A watch holds a cursor into the store's ring of events and nothing else: a thousand plain watches
//! of one kind send the same encoded lines. Selectors are applied to the state before and after a
//! change, so that an object which stops matching is deleted for this client, and one which starts
//! to match is added. A client that falls behind further than the ring reaches gets 410 and lists
//! again; it never slows anybody else down.

use super::list_options::ListOptions;
use super::request::Request;
use super::{present, read};
use crate::filter::Filter;
use crate::messages::Messages;
use crate::metrics::streams::Sent;
use crate::server::ApiServer;
use bytes::Bytes;
use futures::stream;
use http::StatusCode;
use mainstay_conversion::forms;
use mainstay_conversion::webhook as conversion;
use mainstay_http::Body;
use mainstay_http::messages::{self, MessageKind};
use mainstay_http::negotiate::Representation;
use mainstay_http::response::{ApiResponse, Encoding};
use mainstay_kinds::KindRow;
use mainstay_object::{Object, Status};
use mainstay_printing::{self as printing, TableOptions};
use mainstay_store::{Event, EventKind, Stored, Watch, WatchError, watch_frame};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Sleep;

/// How often a client that wants bookmarks learns how far it has come.
const BOOKMARK_EVERY: Duration = Duration::from_mins(1);
/// How long before the end of a watch its last bookmark is sent.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);
/// How long a watch lasts that names no end: between once and twice this.
const USUAL_TIMEOUT: u64 = 30 * 60;
/// Events taken from the ring at once.
const BATCH: usize = 128;
/// What marks the bookmark behind the last initial event.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Where a watch begins.
enum Start {
    /// With the objects there are.
    Everything,
    /// After a revision.
    After(u64),
    /// Now.
    Now,
}

/// A watch of a collection.
pub(super) fn answer(request: &Request<'_>) -> Result<ApiResponse, Status> {
    let row = &request.row;
    let server = request.server;
    let options = ListOptions::of_watch(request)?;
    let (bookmarks, initial) = (options.bookmarks, options.initial);
    let form = request.form()?;
    let shape = Shape::read(request, form)?;
    let timeout = match options.timeout.and_then(|timeout| u64::try_from(timeout).ok()) {
        Some(seconds) if seconds > 0 => Duration::from_secs(seconds),
        _ => usual_timeout(),
    };
    let revision = match options.revision {
        "" => 0,
        text => read::parse_revision(text).map_err(|error| read::unreadable_revision(&error))?,
    };
    let filter = options.filter;

    let start = match (revision, initial) {
        (revision, Some(true)) => {
            if let Err(status) = read::refuse_future(request, revision) {
                return Ok(over(shape.encoding(), &status));
            }
            Start::Everything
        }
        (0, _) => Start::Now,
        (revision, _) => Start::After(revision),
    };
    let namespace = filter.namespace.as_deref();
    let mut waiting = VecDeque::new();
    let opened = match start {
        Start::Everything => {
            let list = server.store.list(&row.storage, namespace);
            for stored in list.iter().filter(|stored| filter.matches(stored)) {
                waiting.push_back(Line::Added(stored.clone()));
            }
            if initial == Some(true) && bookmarks {
                waiting.push_back(Line::InitialEnd(list.revision()));
            }
            server.store.watch(&row.storage, list.revision())
        }
        Start::After(revision) if revision > server.store.revision() => {
            // A revision that this store never gave out, from before a restart in memory: waiting
            // for it would be silence, so the client is told to list again.
            let message = format!("too old resource version: {revision}");
            return Ok(over(shape.encoding(), &Status::expired(message)));
        }
        Start::After(revision) => server.store.watch(&row.storage, revision),
        Start::Now => server.store.watch(&row.storage, server.store.revision()),
    };
    let watch = match opened {
        Ok(watch) => watch,
        Err(error) => return Ok(over(shape.encoding(), &Status::expired(error.to_string()))),
    };
    let encoding = shape.encoding();
    let lead = timeout.saturating_sub(BOOKMARK_BEFORE_END);
    let stream = Streaming {
        server: server.clone(),
        sent: server.metrics.watches.of(&row.group, &row.plural, &row.version),
        watch,
        filter,
        shape,
        waiting,
        next_bookmark: (bookmarks && !lead.is_zero())
            .then(|| Box::pin(tokio::time::sleep(BOOKMARK_EVERY.min(lead)))),
        left_before_last: lead.saturating_sub(BOOKMARK_EVERY),
        deadline: Box::pin(tokio::time::sleep(timeout)),
        ended: false,
    };
    let frames = stream::unfold(stream, |mut stream| async move {
        stream.next().await.map(|frame| (frame, stream))
    });
    Ok(watched(encoding, Body::stream(frames)))
}

/// What a watch answers.
fn watched(encoding: Encoding, body: Body) -> ApiResponse {
    if encoding == Encoding::Protobuf {
        return ApiResponse::protobuf(StatusCode::OK, messages::WATCH, body, 0);
    }
    ApiResponse::body(StatusCode::OK, body, 0).without_message()
}

/// A watch that has nothing to say but why it is over: 200 with one `ERROR` event, which is how the
/// original answers once it has begun, and what every client understands.
fn over(encoding: Encoding, status: &Status) -> ApiResponse {
    watched(encoding, Body::from(status_frame(encoding, status)))
}

fn status_frame(encoding: Encoding, status: &Status) -> Bytes {
    let text = status.to_value().to_string();
    if encoding == Encoding::Protobuf
        && let Some(kind) = MessageKind::of("v1", "Status")
        && let Some(message) = kind.message(text.as_bytes())
    {
        return kind.event("ERROR", &message);
    }
    watch_frame("ERROR", text.as_bytes())
}

/// Ends are spread, so that clients that came together do not come back together.
fn usual_timeout() -> Duration {
    let mut random = [0_u8; 8];
    // Without randomness all watches last equally long, which is no harm.
    let _ = getrandom::fill(&mut random);
    Duration::from_secs(USUAL_TIMEOUT + u64::from_le_bytes(random) % USUAL_TIMEOUT)
}

/// A line to send before the next event is looked at.
enum Line {
    Added(Arc<Stored>),
    InitialEnd(u64),
    Event(Arc<Event>),
}

struct Streaming {
    server: Arc<ApiServer>,
    sent: Arc<Sent>,
    watch: Watch,
    filter: Filter,
    shape: Shape,
    waiting: VecDeque<Line>,
    next_bookmark: Option<Pin<Box<Sleep>>>,
    /// Time between the next bookmark and the last one.
    left_before_last: Duration,
    deadline: Pin<Box<Sleep>>,
    ended: bool,
}

/// What woke a watch up.
enum Woken {
    Events(Result<Vec<Arc<Event>>, WatchError>),
    Bookmark,
    End,
}

impl Streaming {
    /// The next line; none at the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            while let Some(line) = self.waiting.pop_front() {
                let line = match self.spoken(line).await {
                    Ok(line) => line,
                    Err(status) => {
                        self.ended = true;
                        self.waiting.clear();
                        return Some(status_frame(self.shape.encoding(), &status));
                    }
                };
                if let Some(frame) = self.frame(&line) {
                    self.sent.event(frame.len());
                    return Some(frame);
                }
            }
            if self.ended {
                return None;
            }
            match self.wake().await {
                Woken::Events(Ok(events)) => {
                    self.waiting.extend(events.into_iter().map(Line::Event));
                }
                Woken::Events(Err(WatchError::Expired(expired))) => {
                    self.ended = true;
                    let status = Status::expired(expired.to_string());
                    return Some(status_frame(self.shape.encoding(), &status));
                }
                Woken::Bookmark => {
                    // Also when nothing has happened: it shows both ends that the other is there.
                    self.rearm();
                    let revision = self.watch.position();
                    return Some(self.shape.bookmark(revision, false));
                }
                Woken::Events(Err(WatchError::Closed)) | Woken::End => self.ended = true,
            }
        }
    }

    /// A line about objects of the row's version.
    async fn spoken(&self, line: Line) -> Result<Line, Status> {
        let (server, row) = (&self.server, &self.shape.row);
        if row.custom().is_none_or(|custom| !custom.is_converted) {
            return Ok(line);
        }
        Ok(match line {
            Line::Added(stored) => {
                Line::Added(conversion::spoken(&server.outbound, row, stored).await?)
            }
            Line::Event(event) => {
                let object =
                    conversion::spoken(&server.outbound, row, event.object.clone()).await?;
                let previous = match &event.previous {
                    Some(one) => {
                        Some(conversion::spoken(&server.outbound, row, one.clone()).await?)
                    }
                    None => None,
                };
                Line::Event(event.of_objects(object, previous))
            }
            other @ Line::InitialEnd(_) => other,
        })
    }

    async fn wake(&mut self) -> Woken {
        let bookmark = async {
            match &mut self.next_bookmark {
                Some(sleep) => sleep.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            events = self.watch.next_batch(BATCH) => Woken::Events(events),
            () = bookmark => Woken::Bookmark,
            () = &mut self.deadline => Woken::End,
            () = self.server.stop.cancelled() => Woken::End,
        }
    }

    /// Sets the timer for the next bookmark: once a minute, and just before the end.
    fn rearm(&mut self) {
        self.next_bookmark = (!self.left_before_last.is_zero()).then(|| {
            let wait = BOOKMARK_EVERY.min(self.left_before_last);
            self.left_before_last = self.left_before_last.saturating_sub(wait);
            Box::pin(tokio::time::sleep(wait))
        });
    }

    /// A line as this client is to see it; none if it is not.
    fn frame(&mut self, line: &Line) -> Option<Bytes> {
        match line {
            Line::Added(stored) => Some(self.shape.stored("ADDED", stored)),
            Line::InitialEnd(revision) => Some(self.shape.bookmark(*revision, true)),
            Line::Event(event) => self.event(event),
        }
    }

    fn event(&mut self, event: &Event) -> Option<Bytes> {
        if self.filter.selects_all() && self.filter.namespace.is_none() {
            return Some(self.same(event));
        }
        let before = event.previous.as_ref().filter(|one| self.filter.matches(one));
        let now = event.kind != EventKind::Deleted && self.filter.matches(&event.object);
        match (event.kind, before, now) {
            (EventKind::Deleted, Some(_), _)
            | (EventKind::Added, _, true)
            | (EventKind::Modified, Some(_), true) => Some(self.same(event)),
            (EventKind::Modified, None, true) => Some(self.shape.stored("ADDED", &event.object)),
            (EventKind::Modified, Some(before), false) => {
                let bytes = before.bytes_at(event.revision);
                let left = if mainstay_fault::is_on("what-leaves-a-selection-is-modified") {
                    "MODIFIED"
                } else {
                    "DELETED"
                };
                Some(self.shape.frame(left, &bytes, before.revision))
            }
            _ => None,
        }
    }

    /// The event as it happened: for plain watches of the stored form the line that all share.
    fn same(&mut self, event: &Event) -> Bytes {
        // A deletion shows what was written before it.
        let written = match (event.kind, &event.previous) {
            (EventKind::Deleted, Some(previous)) => previous.revision,
            _ => event.revision,
        };
        let object = &event.object;
        if self.shape.form == Representation::Plain
            && let Some(shown) = &self.shape.message_kind
            && let Some(frame) = self.shape.messages.event(&self.shape.row, shown, event)
        {
            return frame;
        }
        if self.shape.is_shared() && !forms::is_outdated(&self.shape.row, object.start(), written) {
            return event.frame();
        }
        self.shape.frame(event.kind.as_str(), &object.bytes(), written)
    }
}

/// The form in which a watch shows objects.
struct Shape {
    row: Arc<KindRow>,
    form: Representation,
    /// The kind that it shows, for a client that reads protobuf.
    message_kind: Option<MessageKind<Arc<str>>>,
    messages: Arc<Messages>,
    include: printing::IncludeObject,
    clock: mainstay_clock::Clock,
    /// Whether the columns of a table have been told.
    told: bool,
}

impl Shape {
    fn read(request: &Request<'_>, form: Representation) -> Result<Self, Status> {
        let options = present::table_options(request.server, request.query, "v1")?;
        Ok(Self {
            row: request.row.clone(),
            form,
            message_kind: request.message_kind(form),
            messages: Arc::clone(&request.server.messages),
            include: options.include,
            clock: request.server.clock,
            told: false,
        })
    }

    /// Whether the store's own lines are what this client gets.
    fn is_shared(&self) -> bool {
        self.form == Representation::Plain && forms::is_identity(&self.row)
    }

    fn encoding(&self) -> Encoding {
        if self.message_kind.is_some() { Encoding::Protobuf } else { Encoding::Json }
    }

    /// A line about a stored object.
    fn stored(&mut self, kind: &str, stored: &Stored) -> Bytes {
        if self.form == Representation::Plain
            && let Some(shown) = &self.message_kind
            && let Some(message) = self.messages.of(&self.row, shown, stored)
        {
            return shown.event(kind, &message);
        }
        self.frame(kind, &stored.bytes(), stored.revision)
    }

    /// A line about an object of the stored form that was written at a revision.
    fn frame(&mut self, kind: &str, bytes: &Bytes, written: u64) -> Bytes {
        if self.form == Representation::Plain {
            return self.line(kind, &forms::encoded(&self.row, bytes, written));
        }
        if let Representation::Metadata(version) = self.form
            && forms::has_metadata_as_stored(&self.row, bytes, written)
            && let Some(partial) = printing::partial_text(bytes, version)
        {
            return self.line(kind, partial.as_bytes());
        }
        let object = forms::decoded(&self.row, bytes, written);
        let value = self.shaped(&object);
        self.line(kind, value.to_string().as_bytes())
    }

    /// A line about an object as it is shown.
    fn line(&self, kind: &str, json: &[u8]) -> Bytes {
        let Some(shown) = &self.message_kind else { return watch_frame(kind, json) };
        match shown.message(json) {
            Some(message) => shown.event(kind, &message),
            // What was stored has the form of its kind; if not, the client lists again and sees.
            None => status_frame(Encoding::Protobuf, &Status::internal("an object has no message")),
        }
    }

    fn shaped(&mut self, object: &Object) -> Value {
        match self.form {
            Representation::Table(version) => {
                let options = TableOptions {
                    version,
                    include: self.include,
                    no_headers: std::mem::replace(&mut self.told, true),
                    now: self.clock.now(),
                };
                let metadata = json!({"resourceVersion": object.resource_version()});
                printing::table(&self.row, std::slice::from_ref(object), metadata, &options)
            }
            Representation::Metadata(version) => printing::partial(object, version),
            Representation::Plain | Representation::Discovery(_) => object.to_value(),
        }
    }

    /// A bookmark: an object of the kind with nothing but a revision.
    fn bookmark(&mut self, revision: u64, initial_end: bool) -> Bytes {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if initial_end && !mainstay_fault::is_on("initial-events-have-no-end") {
            metadata["annotations"] = json!({INITIAL_EVENTS_END: "true"});
        }
        let mut value = json!({
            "apiVersion": &*self.row.api_version,
            "kind": &*self.row.kind,
            "metadata": metadata,
        });
        match self.form {
            Representation::Metadata(version) => {
                value["apiVersion"] = format!("meta.k8s.io/{version}").into();
                value["kind"] = "PartialObjectMetadata".into();
            }
            Representation::Table(version) => {
                // A row of its own: the annotation stands in the row's object.
                let options = TableOptions {
                    version,
                    include: self.include,
                    no_headers: std::mem::replace(&mut self.told, true),
                    now: self.clock.now(),
                };
                let listed = json!({"resourceVersion": revision.to_string()});
                let object = Object::from_value(value).unwrap_or_default();
                value = printing::table(&self.row, &[object], listed, &options);
            }
            Representation::Plain | Representation::Discovery(_) => {}
        }
        self.line("BOOKMARK", value.to_string().as_bytes())
    }
}
