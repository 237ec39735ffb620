//! SPDY/3.1, as far as pod streams need it. The client opens streams over one connection, both
//! sides send data on them, and each side ends its own half.
//!
//! ```text
//! connection ─► reader ─► stream ─► StreamInput  ─► handler
//! connection ◄─ writer ◄─ queue  ◄─ StreamOutput ◄─┘
//! ```
//!
//! Memory is bounded. The parts of a frame are passed on as they arrive. A stream whose handler
//! does not read blocks the whole connection for a while, and is then reset. A client that does not
//! read blocks it too; then the connection is closed.
//!
//! Kubernetes clients do not implement windows. So windows are not enforced on clients, and data is
//! sent as fast as the connection takes it. Windows are still increased as data is read, for
//! clients that implement them. From the first window frame of a client, its windows limit this
//! side.

mod frame;
mod headers;
mod reader;

pub(super) use headers::Headers;

use bytes::{Bytes, BytesMut};
use frame::{OutgoingFrame, ResetCode};
use parking_lot::Mutex;
use reader::FrameReader;
use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

/// The most open streams of a connection.
const MAX_STREAMS: usize = 256;
/// How many new streams are queued.
const NEW_STREAM_QUEUE: usize = 16;
/// How many parts are queued in a stream, and how many frames are queued for the client.
const PART_QUEUE: usize = 16;
/// The largest part in bytes.
const PART_SIZE: usize = 16 * 1024;
/// The initial window of the protocol.
const INITIAL_WINDOW: i64 = 64 * 1024;
/// The window of the client is increased after this many bytes.
const WINDOW_UPDATE_SIZE: u32 = 32 * 1024;
/// A stream whose handler does not read for this long is reset, so that it does not block the
/// others.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// The interval of pings to the client.
const PING_INTERVAL: Duration = Duration::from_secs(20);
/// The connection is closed if the client neither sends nor receives for this long.
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);
/// How long a client may take to close its side of a connection.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

const WINDOW_OVERFLOW: ProtocolError = ProtocolError("a window is larger than 2^31 - 1");

/// The client broke the protocol, in this way.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ProtocolError(&'static str);

/// A stream that the client opened.
#[derive(Debug)]
pub(super) struct Stream {
    /// The id: odd, and higher than those before it.
    pub(super) id: u32,
    /// The headers of the client.
    pub(super) headers: Headers,
    /// The data from the client.
    pub(super) input: StreamInput,
    /// The data to the client.
    pub(super) output: StreamOutput,
}

/// The receiving half of a stream.
#[derive(Debug)]
pub(super) struct StreamInput {
    id: u32,
    parts: mpsc::Receiver<Bytes>,
    unacknowledged: u32,
    shared: Arc<SharedState>,
}

impl StreamInput {
    /// The next bytes; none after the client ended its half or reset the stream.
    pub(super) async fn read(&mut self) -> Option<Bytes> {
        if self.unacknowledged >= WINDOW_UPDATE_SIZE {
            // The count stays if this future is dropped while it waits.
            let permit = self.shared.frames.reserve().await.ok()?;
            permit.send(OutgoingFrame::WindowUpdate {
                stream: self.id,
                increment: self.unacknowledged,
            });
            self.unacknowledged = 0;
        }
        let bytes = self.parts.recv().await?;
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.unacknowledged = self.unacknowledged.saturating_add(length);
        Some(bytes)
    }
}

impl Drop for StreamInput {
    fn drop(&mut self) {
        self.shared.release_half(
            self.id,
            |state| state.input = None,
            |state| state.has_reader = false,
        );
    }
}

/// The sending half of a stream.
#[derive(Debug)]
pub(super) struct StreamOutput {
    id: u32,
    ended: bool,
    shared: Arc<SharedState>,
}

impl StreamOutput {
    /// Sends bytes; none if the client reset the stream or closed the connection.
    pub(super) async fn write(&self, mut bytes: Bytes) -> Option<()> {
        while !bytes.is_empty() && !self.ended {
            let length = self.shared.wait_for_window(self.id, bytes.len().min(PART_SIZE)).await?;
            let bytes = bytes.split_to(length);
            self.shared
                .frames
                .send(OutgoingFrame::Data { stream: self.id, bytes, last: false })
                .await
                .ok()?;
        }
        Some(())
    }

    /// Ends this half.
    pub(super) async fn end(&mut self) {
        if !self.ended && !self.is_reset() {
            let frame = OutgoingFrame::Data { stream: self.id, bytes: Bytes::new(), last: true };
            // An error means that the connection is closed already.
            let _ = self.shared.frames.send(frame).await;
        }
        self.ended = true;
    }

    /// Resets the stream: both halves end at once.
    pub(super) async fn reset(&mut self) {
        if !self.is_reset() {
            let _ = self.shared.frames.send(OutgoingFrame::Reset(self.id, ResetCode::Cancel)).await;
        }
        self.ended = true;
    }

    /// Waits until the stream is reset.
    pub(super) async fn wait_for_reset(&self) {
        loop {
            let mut changed = pin!(self.shared.changed.notified());
            changed.as_mut().enable();
            if self.is_reset() {
                return;
            }
            changed.await;
        }
    }

    /// Whether the stream was reset, by the client or by the end of the connection.
    pub(super) fn is_reset(&self) -> bool {
        self.shared.table.lock().streams.get(&self.id).is_none_or(|state| state.is_reset)
    }
}

impl Drop for StreamOutput {
    fn drop(&mut self) {
        self.shared.release_half(self.id, |_| {}, |state| state.has_writer = false);
    }
}

/// The shared state of reader, writer and streams.
#[derive(Debug)]
struct SharedState {
    table: Mutex<StreamTable>,
    frames: mpsc::Sender<OutgoingFrame>,
    /// Notified when a window grows or a stream is reset.
    changed: Notify,
}

#[derive(Debug)]
struct StreamTable {
    streams: HashMap<u32, StreamState>,
    /// The id of the last opened stream.
    last: u32,
    /// The send window of a new stream.
    initial_window: i64,
    /// The send window of the connection.
    window: i64,
    /// Whether the client implements windows.
    has_windows: bool,
}

/// The state of an open stream.
#[derive(Debug)]
struct StreamState {
    /// The queue of the client's data; none after the client ended its half, or without a reader.
    input: Option<mpsc::Sender<Bytes>>,
    /// The send window.
    window: i64,
    is_reset: bool,
    /// Whether the receiving half exists.
    has_reader: bool,
    /// Whether the sending half exists.
    has_writer: bool,
}

impl SharedState {
    /// Waits for window for some of the wanted bytes; none if the stream ended.
    async fn wait_for_window(&self, id: u32, wanted: usize) -> Option<usize> {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if let Some(length) = self.table.lock().take_window(id, wanted)? {
                return Some(length);
            }
            changed.await;
        }
    }

    /// Resets a stream.
    fn reset(&self, id: u32) {
        if let Some(state) = self.table.lock().streams.get_mut(&id) {
            state.input = None;
            state.is_reset = true;
        }
        self.changed.notify_waiters();
    }

    /// Releases a half of a stream, and removes the stream without both halves.
    fn release_half(&self, id: u32, first: fn(&mut StreamState), then: fn(&mut StreamState)) {
        let mut table = self.table.lock();
        let Some(state) = table.streams.get_mut(&id) else { return };
        first(state);
        then(state);
        if !state.has_reader && !state.has_writer {
            table.streams.remove(&id);
        }
    }
}

impl StreamTable {
    /// Takes window for some of the wanted bytes, if there is any; none if the stream ended.
    #[expect(clippy::option_option, reason = "an ended stream is not an empty window")]
    fn take_window(&mut self, id: u32, wanted: usize) -> Option<Option<usize>> {
        let state = self.streams.get_mut(&id).filter(|state| !state.is_reset)?;
        let wanted = i64::try_from(wanted).unwrap_or(i64::MAX);
        let length =
            if self.has_windows { wanted.min(state.window).min(self.window) } else { wanted };
        if length <= 0 {
            return Some(None);
        }
        state.window -= length;
        self.window -= length;
        Some(usize::try_from(length).ok())
    }

    /// Sets the initial window of streams, which changes the windows of open ones.
    fn set_initial_window(&mut self, window: u32) -> Result<(), ProtocolError> {
        let window = i64::from(window);
        let change = window - self.initial_window;
        self.has_windows = true;
        self.initial_window = window;
        for state in self.streams.values_mut() {
            state.window += change;
        }
        let mut all = self.streams.values().map(|state| state.window).chain([window]);
        if all.any(|window| window > i64::from(i32::MAX)) { Err(WINDOW_OVERFLOW) } else { Ok(()) }
    }

    /// Increases a window. The error is the stream to reset, or none for the connection.
    fn increase_window(&mut self, stream: u32, increment: u32) -> Result<(), Option<u32>> {
        self.has_windows = true;
        let window = match stream {
            0 => &mut self.window,
            id => match self.streams.get_mut(&id) {
                Some(state) => &mut state.window,
                // The stream ended.
                None => return Ok(()),
            },
        };
        *window = window.saturating_add(i64::from(increment));
        if *window > i64::from(i32::MAX) {
            return Err((stream != 0).then_some(stream));
        }
        Ok(())
    }
}

/// The new streams of a connection.
#[derive(Debug)]
pub(super) struct Session {
    incoming: mpsc::Receiver<Stream>,
    shared: Arc<SharedState>,
}

impl Session {
    /// The next stream; none when the connection is closed.
    pub(super) async fn next(&mut self) -> Option<Stream> {
        self.incoming.recv().await
    }

    /// Ends the connection after the queued frames.
    pub(super) async fn end(self) {
        let last = self.shared.table.lock().last;
        let _ = self.shared.frames.send(OutgoingFrame::GoAway { last, is_error: false }).await;
    }
}

/// Starts SPDY on a connection. The result is the session and the I/O future, which the caller
/// polls until it ends. Streams that `accept` rejects are reset.
pub(super) fn open<T>(
    connection: T,
    accept: impl Fn(&Headers) -> bool + Send,
) -> (Session, impl Future<Output = ()>)
where
    T: AsyncRead + AsyncWrite + Send + Unpin,
{
    let (frames, queue) = mpsc::channel(PART_QUEUE);
    let (sender, incoming) = mpsc::channel(NEW_STREAM_QUEUE);
    let table = StreamTable {
        streams: HashMap::new(),
        last: 0,
        initial_window: INITIAL_WINDOW,
        window: INITIAL_WINDOW,
        has_windows: false,
    };
    let shared = Arc::new(SharedState { table: Mutex::new(table), frames, changed: Notify::new() });
    let session = Session { incoming, shared: shared.clone() };
    (session, run_connection(connection, shared, queue, sender, accept))
}

/// Ends all streams and wakes their tasks when the connection ends.
struct ConnectionGuard(Arc<SharedState>);

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.0.table.lock().streams.clear();
        self.0.changed.notify_waiters();
    }
}

async fn run_connection<T: AsyncRead + AsyncWrite + Send + Unpin>(
    connection: T,
    shared: Arc<SharedState>,
    queue: mpsc::Receiver<OutgoingFrame>,
    incoming: mpsc::Sender<Stream>,
    accept: impl Fn(&Headers) -> bool + Send,
) {
    let _guard = ConnectionGuard(shared.clone());
    let (source, sink) = tokio::io::split(connection);
    let reader = FrameReader::new(source, shared.clone(), incoming);
    let mut reading = pin!(reader.run(accept));
    let mut writing = pin!(write_frames(sink, queue));
    let pinging = async {
        let mut id = 2_u32;
        loop {
            tokio::time::sleep(PING_INTERVAL).await;
            if shared.frames.send(OutgoingFrame::Ping(id)).await.is_err() {
                return;
            }
            id = id.wrapping_add(2) & 0x7fff_fffe;
        }
    };
    tokio::select! {
        read = &mut reading => {
            if let Err(ProtocolError(reason)) = read {
                tracing::debug!(reason, "a client broke the SPDY protocol");
                let last = shared.table.lock().last;
                let going_away = shared.frames.send(OutgoingFrame::GoAway { last, is_error: true });
                let _ = timeout(CLOSE_TIMEOUT, async { tokio::join!(going_away, writing) }).await;
            }
        }
        written = &mut writing => {
            // Sent data arrives only if no data is left unread when the connection is closed.
            if written.is_some() {
                let _ = timeout(CLOSE_TIMEOUT, reading).await;
            }
        }
        () = pinging => {}
    }
}

/// Sends queued frames up to `GOAWAY`; none if the client does not receive them.
async fn write_frames(
    mut sink: impl AsyncWrite + Unpin,
    mut queue: mpsc::Receiver<OutgoingFrame>,
) -> Option<()> {
    let mut buffer = BytesMut::new();
    let mut is_first_reply = true;
    let mut is_finished = false;
    while !is_finished {
        let mut next = Some(queue.recv().await?);
        while let Some(frame) = next {
            frame.encode(&mut buffer, &mut is_first_reply);
            is_finished = matches!(frame, OutgoingFrame::GoAway { .. });
            next =
                if is_finished || buffer.len() >= PART_SIZE { None } else { queue.try_recv().ok() };
        }
        let sending = async {
            sink.write_all(&buffer).await?;
            sink.flush().await
        };
        timeout(IDLE_TIMEOUT, sending).await.ok()?.ok()?;
        buffer.clear();
    }
    timeout(CLOSE_TIMEOUT, sink.shutdown()).await.ok()?.ok()
}
