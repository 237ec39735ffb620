//! Watch.
//!
//! A watch holds only a cursor into the store's ring of events: a thousand plain watches of one
//! kind send the same encoded frames. Selectors are applied to the states before and after a
//! change. An object that stops matching is deleted for the client, and one that starts matching is
//! added. A client that falls behind the ring gets 410 and lists again; it never slows other
//! clients down.

use super::list_options::ListOptions;
use super::request::Request;
use super::{read, response};
use crate::filter::Filter;
use crate::messages::Messages;
use crate::metrics::streams::WatchCounts;
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
use mainstay_store::{Event, EventKind, Stored, WatchCursor, WatchError, watch_frame};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Sleep;

/// Interval of bookmarks.
const BOOKMARK_INTERVAL: Duration = Duration::from_mins(1);
/// Time between the last bookmark and the end of a watch.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);
/// Default duration of a watch in seconds: between once and twice this.
const MIN_TIMEOUT: u64 = 30 * 60;
/// Maximum number of events taken from the ring at once.
const BATCH: usize = 128;
/// Annotation of the bookmark after the last initial event.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// The start of a watch.
enum WatchStart {
    /// With the existing objects.
    Everything,
    /// After a revision.
    After(u64),
    /// With the next change.
    Now,
}

/// Handles a watch of a collection.
pub(super) fn answer(request: &Request<'_>) -> Result<ApiResponse, Status> {
    let row = &request.row;
    let server = request.server;
    let options = ListOptions::of_watch(request)?;
    let (bookmarks, send_initial_events) = (options.bookmarks, options.send_initial_events);
    let form = request.form()?;
    let encoder = ObjectEncoder::read(request, form)?;
    let timeout = match options.timeout.and_then(|timeout| u64::try_from(timeout).ok()) {
        Some(seconds) if seconds > 0 => Duration::from_secs(seconds),
        _ => default_timeout(),
    };
    let revision = match options.revision {
        "" => 0,
        text => read::parse_revision(text).map_err(|error| read::invalid_revision(&error))?,
    };
    let filter = options.filter;

    let start = match (revision, send_initial_events) {
        (revision, Some(true)) => {
            if let Err(status) = read::refuse_future(request, revision) {
                return Ok(error_response(encoder.encoding(), &status));
            }
            WatchStart::Everything
        }
        (0, _) => WatchStart::Now,
        (revision, _) => WatchStart::After(revision),
    };
    let namespace = filter.namespace.as_deref();
    let mut pending = VecDeque::new();
    let watch = match start {
        WatchStart::Everything => {
            let list = server.store.list(&row.storage, namespace);
            for stored in list.iter().filter(|stored| filter.matches(stored)) {
                pending.push_back(WatchItem::Added(stored.clone()));
            }
            if send_initial_events == Some(true) && bookmarks {
                pending.push_back(WatchItem::InitialEnd(list.revision()));
            }
            server.store.watch(&row.storage, list.revision())
        }
        WatchStart::After(revision) if revision > server.store.revision() => {
            // The store never assigned this revision; it dates from before a restart in memory. The
            // client has to list again, because no event would arrive.
            let message = format!("too old resource version: {revision}");
            return Ok(error_response(encoder.encoding(), &Status::expired(message)));
        }
        WatchStart::After(revision) => server.store.watch(&row.storage, revision),
        WatchStart::Now => server.store.watch(&row.storage, server.store.revision()),
    };
    let watch = match watch {
        Ok(watch) => watch,
        Err(error) => {
            return Ok(error_response(encoder.encoding(), &Status::expired(error.to_string())));
        }
    };
    let encoding = encoder.encoding();
    let lead = timeout.saturating_sub(BOOKMARK_BEFORE_END);
    let stream = WatchStream {
        server: server.clone(),
        sent: server.metrics.watches.counts_of(&row.group, &row.plural, &row.version),
        watch,
        filter,
        encoder,
        pending,
        next_bookmark: (bookmarks && !lead.is_zero())
            .then(|| Box::pin(tokio::time::sleep(BOOKMARK_INTERVAL.min(lead)))),
        time_before_last: lead.saturating_sub(BOOKMARK_INTERVAL),
        deadline: Box::pin(tokio::time::sleep(timeout)),
        is_finished: false,
    };
    let frames = stream::unfold(stream, |mut stream| async move {
        stream.next().await.map(|frame| (frame, stream))
    });
    Ok(watch_response(encoding, Body::stream(frames)))
}

/// The response of a watch.
fn watch_response(encoding: Encoding, body: Body) -> ApiResponse {
    if encoding == Encoding::Protobuf {
        return ApiResponse::protobuf(StatusCode::OK, messages::WATCH, body, 0);
    }
    ApiResponse::body(StatusCode::OK, body, 0).without_message()
}

/// The response of a watch that ends at once: 200 with one `ERROR` event, as kube-apiserver
/// responds during a watch.
fn error_response(encoding: Encoding, status: &Status) -> ApiResponse {
    watch_response(encoding, Body::from(status_frame(encoding, status)))
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

/// Durations are random, so that clients do not reconnect at the same time.
fn default_timeout() -> Duration {
    let mut random = [0_u8; 8];
    // Without randomness all watches have the same duration, which is harmless.
    let _ = getrandom::fill(&mut random);
    Duration::from_secs(MIN_TIMEOUT + u64::from_le_bytes(random) % MIN_TIMEOUT)
}

/// An item to send before the next event.
enum WatchItem {
    Added(Arc<Stored>),
    InitialEnd(u64),
    Event(Arc<Event>),
}

struct WatchStream {
    server: Arc<ApiServer>,
    sent: Arc<WatchCounts>,
    watch: WatchCursor,
    filter: Filter,
    encoder: ObjectEncoder,
    pending: VecDeque<WatchItem>,
    next_bookmark: Option<Pin<Box<Sleep>>>,
    /// Time between the next bookmark and the last one.
    time_before_last: Duration,
    deadline: Pin<Box<Sleep>>,
    is_finished: bool,
}

/// The reason why a watch wakes up.
enum WakeReason {
    Events(Result<Vec<Arc<Event>>, WatchError>),
    Bookmark,
    End,
}

impl WatchStream {
    /// The next frame; none at the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            while let Some(item) = self.pending.pop_front() {
                let item = match self.convert(item).await {
                    Ok(item) => item,
                    Err(status) => {
                        self.is_finished = true;
                        self.pending.clear();
                        return Some(status_frame(self.encoder.encoding(), &status));
                    }
                };
                if let Some(frame) = self.frame(&item) {
                    self.sent.add_event(frame.len());
                    return Some(frame);
                }
            }
            if self.is_finished {
                return None;
            }
            match self.wake().await {
                WakeReason::Events(Ok(events)) => {
                    self.pending.extend(events.into_iter().map(WatchItem::Event));
                }
                WakeReason::Events(Err(WatchError::Expired(expired))) => {
                    self.is_finished = true;
                    let status = Status::expired(expired.to_string());
                    return Some(status_frame(self.encoder.encoding(), &status));
                }
                WakeReason::Bookmark => {
                    // Sent without a change, too, so that both ends notice a broken connection.
                    self.rearm();
                    let revision = self.watch.position();
                    return Some(self.encoder.bookmark(revision, false));
                }
                WakeReason::Events(Err(WatchError::Closed)) | WakeReason::End => {
                    self.is_finished = true;
                }
            }
        }
    }

    /// Converts the objects of an item to the row's version.
    async fn convert(&self, item: WatchItem) -> Result<WatchItem, Status> {
        let (server, row) = (&self.server, &self.encoder.row);
        if row.custom().is_none_or(|custom| !custom.is_converted) {
            return Ok(item);
        }
        Ok(match item {
            WatchItem::Added(stored) => {
                WatchItem::Added(conversion::convert_stored(&server.outbound, row, stored).await?)
            }
            WatchItem::Event(event) => {
                let object =
                    conversion::convert_stored(&server.outbound, row, event.object.clone()).await?;
                let previous = match &event.previous {
                    Some(previous) => Some(
                        conversion::convert_stored(&server.outbound, row, previous.clone()).await?,
                    ),
                    None => None,
                };
                WatchItem::Event(event.of_objects(object, previous))
            }
            other @ WatchItem::InitialEnd(_) => other,
        })
    }

    async fn wake(&mut self) -> WakeReason {
        let bookmark = async {
            match &mut self.next_bookmark {
                Some(sleep) => sleep.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            events = self.watch.next_batch(BATCH) => WakeReason::Events(events),
            () = bookmark => WakeReason::Bookmark,
            () = &mut self.deadline => WakeReason::End,
            () = self.server.stop.cancelled() => WakeReason::End,
        }
    }

    /// Sets the timer for the next bookmark: once a minute, and just before the end.
    fn rearm(&mut self) {
        self.next_bookmark = (!self.time_before_last.is_zero()).then(|| {
            let wait = BOOKMARK_INTERVAL.min(self.time_before_last);
            self.time_before_last = self.time_before_last.saturating_sub(wait);
            Box::pin(tokio::time::sleep(wait))
        });
    }

    /// The frame of an item for this client; none if its filter does not select it.
    fn frame(&mut self, item: &WatchItem) -> Option<Bytes> {
        match item {
            WatchItem::Added(stored) => Some(self.encoder.stored("ADDED", stored)),
            WatchItem::InitialEnd(revision) => Some(self.encoder.bookmark(*revision, true)),
            WatchItem::Event(event) => self.event(event),
        }
    }

    fn event(&mut self, event: &Event) -> Option<Bytes> {
        if self.filter.selects_all() && self.filter.namespace.is_none() {
            return Some(self.shared_frame(event));
        }
        let before = event.previous.as_ref().filter(|previous| self.filter.matches(previous));
        let now = event.kind != EventKind::Deleted && self.filter.matches(&event.object);
        match (event.kind, before, now) {
            (EventKind::Deleted, Some(_), _)
            | (EventKind::Added, _, true)
            | (EventKind::Modified, Some(_), true) => Some(self.shared_frame(event)),
            (EventKind::Modified, None, true) => Some(self.encoder.stored("ADDED", &event.object)),
            (EventKind::Modified, Some(before), false) => {
                let bytes = before.bytes_at(event.revision);
                let event_type = if mainstay_fault::is_on("what-leaves-a-selection-is-modified") {
                    "MODIFIED"
                } else {
                    "DELETED"
                };
                Some(self.encoder.frame(event_type, &bytes, before.revision))
            }
            _ => None,
        }
    }

    /// The frame of an unfiltered event; plain watches of the stored form share it.
    fn shared_frame(&mut self, event: &Event) -> Bytes {
        // A deletion shows the state that the previous write stored.
        let written = match (event.kind, &event.previous) {
            (EventKind::Deleted, Some(previous)) => previous.revision,
            _ => event.revision,
        };
        let object = &event.object;
        if self.encoder.form == Representation::Plain
            && let Some(kind) = &self.encoder.message_kind
            && let Some(frame) = self.encoder.messages.event_frame(&self.encoder.row, kind, event)
        {
            return frame;
        }
        if self.encoder.is_shared()
            && !forms::is_outdated(&self.encoder.row, object.start(), written)
        {
            return event.frame();
        }
        self.encoder.frame(event.kind.as_str(), &object.bytes(), written)
    }
}

/// Encodes objects in the form of a watch.
struct ObjectEncoder {
    row: Arc<KindRow>,
    form: Representation,
    /// The protobuf kind, for a client that accepts protobuf.
    message_kind: Option<MessageKind<Arc<str>>>,
    messages: Arc<Messages>,
    include: printing::IncludeObject,
    clock: mainstay_clock::Clock,
    /// Whether the columns of a table were sent.
    columns_sent: bool,
}

impl ObjectEncoder {
    fn read(request: &Request<'_>, form: Representation) -> Result<Self, Status> {
        let options = response::table_options(request.server, request.query, "v1")?;
        Ok(Self {
            row: request.row.clone(),
            form,
            message_kind: request.message_kind(form),
            messages: Arc::clone(&request.server.messages),
            include: options.include,
            clock: request.server.clock,
            columns_sent: false,
        })
    }

    /// Whether the client gets the frames of the store.
    fn is_shared(&self) -> bool {
        self.form == Representation::Plain && forms::is_identity(&self.row)
    }

    fn encoding(&self) -> Encoding {
        if self.message_kind.is_some() { Encoding::Protobuf } else { Encoding::Json }
    }

    /// The frame of a stored object.
    fn stored(&mut self, kind: &str, stored: &Stored) -> Bytes {
        if self.form == Representation::Plain
            && let Some(message_kind) = &self.message_kind
            && let Some(message) = self.messages.message_of(&self.row, message_kind, stored)
        {
            return message_kind.event(kind, &message);
        }
        self.frame(kind, &stored.bytes(), stored.revision)
    }

    /// The frame of an object in the stored form that was written at a revision.
    fn frame(&mut self, kind: &str, bytes: &Bytes, written: u64) -> Bytes {
        if self.form == Representation::Plain {
            return self.encoded_frame(kind, &forms::encode(&self.row, bytes, written));
        }
        if let Representation::Metadata(version) = self.form
            && forms::has_metadata_as_stored(&self.row, bytes, written)
            && let Some(partial) = printing::partial_text(bytes, version)
        {
            return self.encoded_frame(kind, partial.as_bytes());
        }
        let object = forms::decode(&self.row, bytes, written);
        let value = self.in_form(&object);
        self.encoded_frame(kind, value.to_string().as_bytes())
    }

    /// The frame of an encoded object.
    fn encoded_frame(&self, kind: &str, json: &[u8]) -> Bytes {
        let Some(message_kind) = &self.message_kind else { return watch_frame(kind, json) };
        match message_kind.message(json) {
            Some(message) => message_kind.event(kind, &message),
            // Stored objects conform to their kind. If one does not, the client lists again and
            // gets the error.
            None => status_frame(Encoding::Protobuf, &Status::internal("an object has no message")),
        }
    }

    fn in_form(&mut self, object: &Object) -> Value {
        match self.form {
            Representation::Table(version) => {
                let options = TableOptions {
                    version,
                    include: self.include,
                    no_headers: std::mem::replace(&mut self.columns_sent, true),
                    now: self.clock.now(),
                };
                let metadata = json!({"resourceVersion": object.resource_version()});
                printing::table(&self.row, std::slice::from_ref(object), metadata, &options)
            }
            Representation::Metadata(version) => printing::partial(object, version),
            Representation::Plain | Representation::Discovery(_) => object.to_value(),
        }
    }

    /// A bookmark: an object of the kind with only a revision.
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
                // The annotation is in the object of the table row.
                let options = TableOptions {
                    version,
                    include: self.include,
                    no_headers: std::mem::replace(&mut self.columns_sent, true),
                    now: self.clock.now(),
                };
                let list_metadata = json!({"resourceVersion": revision.to_string()});
                let object = Object::from_value(value).unwrap_or_default();
                value = printing::table(&self.row, &[object], list_metadata, &options);
            }
            Representation::Plain | Representation::Discovery(_) => {}
        }
        self.encoded_frame("BOOKMARK", value.to_string().as_bytes())
    }
}
