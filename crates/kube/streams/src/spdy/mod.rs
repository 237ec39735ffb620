//! SPDY/3.1 as far as streams of pods need it: the client opens streams over one connection, both
//! sides send data on them, each side ends its own half.
//!
//! ```text
//! connection ─► reader ─► stream ─► Input  ─► whoever serves it
//! connection ◄─ writer ◄─ queue  ◄─ Output ◄─┘
//! ```
//!
//! Memory is bounded: a frame is passed on in parts as they come; a stream whose parts nobody takes
//! holds the whole connection up for a while, and is then reset; a client that takes nothing holds
//! it up too, and is then cut. Clients of Kubernetes know no windows, so none is held against them,
//! and they are sent data as fast as the connection takes it. Clients that do know windows are given
//! room as their data is taken, and from the first sign of it their own windows count.

mod frame;
mod headers;

pub(super) use headers::Headers;

use bytes::{Bytes, BytesMut};
use frame::{Control, HEAD, Head, Out, Reset};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

/// Streams of a connection that are open at one time, at most.
const STREAMS: usize = 256;
/// Streams that wait to be looked at.
const WAITING: usize = 16;
/// Parts that wait in a stream, and frames that wait to be sent.
const PARTS: usize = 16;
/// Bytes of a part.
const PART: usize = 16 * 1024;
/// What may be sent before more room is given: that of the protocol.
const WINDOW: i64 = 64 * 1024;
/// Room is given again when so much of it is used.
const USED: u32 = 32 * 1024;
/// A stream whose data nobody takes for so long is reset, so that it does not hold up the others.
const STALL: Duration = Duration::from_secs(30);
/// How often the client is asked whether it is still there.
const PING: Duration = Duration::from_secs(20);
/// A client that says nothing, or takes nothing, for so long is gone.
const SILENCE: Duration = Duration::from_mins(1);
/// How long a client may take to end a connection that is over.
const GOODBYE: Duration = Duration::from_secs(1);

/// What breaks the protocol.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Broken(&'static str);

/// A stream that the client has opened.
#[derive(Debug)]
pub(super) struct Stream {
    /// Its number: odd, and higher than those before it.
    pub(super) id: u32,
    /// What the client said of it.
    pub(super) headers: Headers,
    /// What the client sends.
    pub(super) input: Input,
    /// What the client is sent.
    pub(super) output: Output,
}

/// The half of a stream that the client sends.
#[derive(Debug)]
pub(super) struct Input {
    id: u32,
    parts: mpsc::Receiver<Bytes>,
    taken: u32,
    shared: Arc<Shared>,
}

impl Input {
    /// The next bytes; none at the end, whether the client ended its half or reset the stream.
    pub(super) async fn read(&mut self) -> Option<Bytes> {
        if self.taken >= USED {
            // Nothing is lost if this is given up while it waits.
            let place = self.shared.out.reserve().await.ok()?;
            place.send(Out::Window { stream: self.id, more: self.taken });
            self.taken = 0;
        }
        let bytes = self.parts.recv().await?;
        self.taken = self.taken.saturating_add(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        Some(bytes)
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        self.shared.leave(self.id, |state| state.input = None, |state| state.read = false);
    }
}

/// The half of a stream that the client is sent.
#[derive(Debug)]
pub(super) struct Output {
    id: u32,
    ended: bool,
    shared: Arc<Shared>,
}

impl Output {
    /// Sends bytes; none if the client has reset the stream, ended its half or gone.
    pub(super) async fn write(&self, mut bytes: Bytes) -> Option<()> {
        while !bytes.is_empty() && !self.ended {
            let room = self.shared.room(self.id, bytes.len().min(PART)).await?;
            let bytes = bytes.split_to(room);
            self.shared.out.send(Out::Data { stream: self.id, bytes, last: false }).await.ok()?;
        }
        Some(())
    }

    /// Ends this half.
    pub(super) async fn end(&mut self) {
        if !self.ended && !self.is_reset() {
            let frame = Out::Data { stream: self.id, bytes: Bytes::new(), last: true };
            // A client that has gone knows.
            let _ = self.shared.out.send(frame).await;
        }
        self.ended = true;
    }

    /// Ends the stream at once, both halves of it.
    pub(super) async fn reset(&mut self) {
        if !self.is_reset() {
            let _ = self.shared.out.send(Out::Reset(self.id, Reset::Cancelled)).await;
        }
        self.ended = true;
    }

    /// Waits until the stream ends in the middle.
    pub(super) async fn resets(&self) {
        loop {
            let mut changed = pin!(self.shared.changed.notified());
            changed.as_mut().enable();
            if self.is_reset() {
                return;
            }
            changed.await;
        }
    }

    /// Whether the stream ended in the middle, by the client's wish or with the connection.
    pub(super) fn is_reset(&self) -> bool {
        self.shared.tables.lock().streams.get(&self.id).is_none_or(|state| state.reset)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.shared.leave(self.id, |_| {}, |state| state.written = false);
    }
}

/// What reader, writer and streams have in common.
#[derive(Debug)]
struct Shared {
    tables: Mutex<Tables>,
    out: mpsc::Sender<Out>,
    /// Told when a window grows, or a stream is reset.
    changed: Notify,
}

#[derive(Debug)]
struct Tables {
    streams: HashMap<u32, State>,
    /// The last stream that was opened.
    last: u32,
    /// What a new stream may be sent.
    initial: i64,
    /// What all together may be sent.
    window: i64,
    /// Whether the client knows windows.
    windows: bool,
}

/// A stream that is open.
#[derive(Debug)]
struct State {
    /// Where the client's data goes; none if it has ended its half, or nobody reads.
    input: Option<mpsc::Sender<Bytes>>,
    /// What it may be sent.
    window: i64,
    reset: bool,
    /// Whether somebody has the halves.
    read: bool,
    written: bool,
}

impl Shared {
    /// Waits for room for some of so many bytes; none if the stream is over.
    async fn room(&self, id: u32, wanted: usize) -> Option<usize> {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if let Some(room) = self.tables.lock().take(id, wanted)? {
                return Some(room);
            }
            changed.await;
        }
    }

    /// Ends a stream in the middle.
    fn reset(&self, id: u32) {
        if let Some(state) = self.tables.lock().streams.get_mut(&id) {
            state.input = None;
            state.reset = true;
        }
        self.changed.notify_waiters();
    }

    /// Notes that a half of a stream has nobody any more.
    fn leave(&self, id: u32, first: fn(&mut State), then: fn(&mut State)) {
        let mut tables = self.tables.lock();
        let Some(state) = tables.streams.get_mut(&id) else { return };
        first(state);
        then(state);
        if !state.read && !state.written {
            tables.streams.remove(&id);
        }
    }
}

impl Tables {
    /// Takes room for some of so many bytes, if there is any; none if the stream is over.
    #[expect(clippy::option_option, reason = "over is not the same as no room")]
    fn take(&mut self, id: u32, wanted: usize) -> Option<Option<usize>> {
        let state = self.streams.get_mut(&id).filter(|state| !state.reset)?;
        let wanted = i64::try_from(wanted).unwrap_or(i64::MAX);
        let room = if self.windows { wanted.min(state.window).min(self.window) } else { wanted };
        if room <= 0 {
            return Some(None);
        }
        state.window -= room;
        self.window -= room;
        Some(usize::try_from(room).ok())
    }

    /// Notes what streams may be sent from their beginning.
    fn begin_with(&mut self, window: u32) -> Result<(), Broken> {
        let window = i64::from(window);
        let change = window - self.initial;
        self.windows = true;
        self.initial = window;
        for state in self.streams.values_mut() {
            state.window += change;
        }
        let mut all = self.streams.values().map(|state| state.window).chain([window]);
        if all.any(|window| window > i64::from(i32::MAX)) { Err(TOO_MUCH) } else { Ok(()) }
    }

    /// Notes that more may be sent; the stream to reset is the error.
    fn grow(&mut self, stream: u32, more: u32) -> Result<(), Option<u32>> {
        self.windows = true;
        let window = match stream {
            0 => &mut self.window,
            id => match self.streams.get_mut(&id) {
                Some(state) => &mut state.window,
                // It is over.
                None => return Ok(()),
            },
        };
        *window = window.saturating_add(i64::from(more));
        if *window > i64::from(i32::MAX) {
            return Err((stream != 0).then_some(stream));
        }
        Ok(())
    }
}

/// A connection's streams, as they are opened.
#[derive(Debug)]
pub(super) struct Session {
    incoming: mpsc::Receiver<Stream>,
    shared: Arc<Shared>,
}

impl Session {
    /// The next stream; none when the connection is over.
    pub(super) async fn next(&mut self) -> Option<Stream> {
        self.incoming.recv().await
    }

    /// Ends the connection when all that is to be sent has been.
    pub(super) async fn end(self) {
        let last = self.shared.tables.lock().last;
        let _ = self.shared.out.send(Out::GoAway { last, broken: false }).await;
    }
}

/// Speaks SPDY over a connection: the streams, and the work, which has to be polled as long as it
/// lasts. Streams that `accept` does not want are reset.
pub(super) fn open<T>(
    connection: T,
    accept: impl Fn(&Headers) -> bool + Send,
) -> (Session, impl Future<Output = ()>)
where
    T: AsyncRead + AsyncWrite + Send + Unpin,
{
    let (out, queue) = mpsc::channel(PARTS);
    let (sender, incoming) = mpsc::channel(WAITING);
    let tables = Tables {
        streams: HashMap::new(),
        last: 0,
        initial: WINDOW,
        window: WINDOW,
        windows: false,
    };
    let shared = Arc::new(Shared { tables: Mutex::new(tables), out, changed: Notify::new() });
    let session = Session { incoming, shared: shared.clone() };
    (session, drive(connection, shared, queue, sender, accept))
}

/// Wakes and ends everyone when a connection ends.
struct End(Arc<Shared>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.tables.lock().streams.clear();
        self.0.changed.notify_waiters();
    }
}

async fn drive<T: AsyncRead + AsyncWrite + Send + Unpin>(
    connection: T,
    shared: Arc<Shared>,
    queue: mpsc::Receiver<Out>,
    incoming: mpsc::Sender<Stream>,
    accept: impl Fn(&Headers) -> bool + Send,
) {
    let _end = End(shared.clone());
    let (source, sink) = tokio::io::split(connection);
    let reader = Reader {
        source,
        buffer: BytesMut::new(),
        headers: headers::Reader::new(),
        shared: shared.clone(),
        incoming,
        received: 0,
        leaving: false,
    };
    let mut reading = pin!(reader.run(accept));
    let mut writing = pin!(write(sink, queue));
    let pinging = async {
        let mut id = 2_u32;
        loop {
            tokio::time::sleep(PING).await;
            if shared.out.send(Out::Ping(id)).await.is_err() {
                return;
            }
            id = id.wrapping_add(2) & 0x7fff_fffe;
        }
    };
    tokio::select! {
        read = &mut reading => {
            if let Err(Broken(why)) = read {
                tracing::debug!(why, "a client broke the protocol of its stream");
                let last = shared.tables.lock().last;
                let saying = shared.out.send(Out::GoAway { last, broken: true });
                let _ = timeout(GOODBYE, async { tokio::join!(saying, writing) }).await;
            }
        }
        written = &mut writing => {
            // What was sent arrives only if nothing is left unread when the connection is closed.
            if written.is_some() {
                let _ = timeout(GOODBYE, reading).await;
            }
        }
        () = pinging => {}
    }
}

/// Sends what is queued, up to the last frame of all; none if the client does not take it.
async fn write(mut sink: impl AsyncWrite + Unpin, mut queue: mpsc::Receiver<Out>) -> Option<()> {
    let mut buffer = BytesMut::new();
    let mut first = true;
    let mut over = false;
    while !over {
        let mut next = Some(queue.recv().await?);
        while let Some(frame) = next {
            frame.write(&mut buffer, &mut first);
            over = matches!(frame, Out::GoAway { .. });
            next = if over || buffer.len() >= PART { None } else { queue.try_recv().ok() };
        }
        let sending = async {
            sink.write_all(&buffer).await?;
            sink.flush().await
        };
        timeout(SILENCE, sending).await.ok()?.ok()?;
        buffer.clear();
    }
    timeout(GOODBYE, sink.shutdown()).await.ok()?.ok()
}

struct Reader<R> {
    source: R,
    buffer: BytesMut,
    headers: headers::Reader,
    shared: Arc<Shared>,
    incoming: mpsc::Sender<Stream>,
    /// Bytes of all streams since the last time that room was given.
    received: u32,
    /// Whether the client opens no streams any more.
    leaving: bool,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    /// Reads frames until the client ends the connection, or is silent for too long.
    async fn run(mut self, accept: impl Fn(&Headers) -> bool + Send) -> Result<(), Broken> {
        loop {
            if !self.fill(HEAD).await {
                return if self.buffer.is_empty() { Ok(()) } else { Err(CUT) };
            }
            match Head::read(&mut self.buffer)? {
                Head::Data { stream, last, length } => self.data(stream, last, length).await?,
                Head::Control { kind, flags, length } => {
                    if !self.fill(length).await {
                        return Err(CUT);
                    }
                    let payload = self.buffer.split_to(length);
                    let control = Control::read((kind, flags), &payload, &mut self.headers)?;
                    if self.control(control, &accept).await?.is_none() {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Reads until there are so many bytes; false if they do not come.
    async fn fill(&mut self, wanted: usize) -> bool {
        while self.buffer.len() < wanted {
            self.buffer.reserve(PART);
            match timeout(SILENCE, self.source.read_buf(&mut self.buffer)).await {
                Ok(Ok(0) | Err(_)) | Err(_) => return false,
                Ok(Ok(_)) => {}
            }
        }
        true
    }

    /// Passes the bytes of a frame on as they come.
    async fn data(&mut self, stream: u32, last: bool, length: usize) -> Result<(), Broken> {
        let input = |state: &State| state.input.clone();
        let mut to = self.shared.tables.lock().streams.get(&stream).and_then(input);
        let mut left = length;
        while left > 0 {
            if !self.fill(1).await {
                return Err(CUT);
            }
            let part = self.buffer.split_to(left.min(self.buffer.len()).min(PART)).freeze();
            left -= part.len();
            // A part is far smaller than that.
            self.received += u32::try_from(part.len()).unwrap_or_default();
            // What nobody wants is dropped: a stream may be over before its client knows.
            if let Some(input) = &to
                && timeout(STALL, input.send(part)).await.is_err()
            {
                to = None;
                self.shared.reset(stream);
                let _ = self.shared.out.send(Out::Reset(stream, Reset::FlowControl)).await;
            }
            if self.received >= USED {
                let more = std::mem::take(&mut self.received);
                let _ = self.shared.out.send(Out::Window { stream: 0, more }).await;
            }
        }
        if last && let Some(state) = self.shared.tables.lock().streams.get_mut(&stream) {
            state.input = None;
        }
        Ok(())
    }

    /// Does what a control frame asks; none if nobody is there to do it.
    async fn control(
        &mut self,
        control: Control,
        accept: &(impl Fn(&Headers) -> bool + Send),
    ) -> Result<Option<()>, Broken> {
        let shared = &self.shared;
        let mut answer = None;
        match control {
            Control::Open { .. } if self.leaving => {}
            Control::Open { stream, last, one_way, headers } => {
                let open = Opened { stream, last, one_way, wanted: accept(&headers) };
                match open.enter(shared)? {
                    Ok((input, output)) => {
                        if shared.out.send(Out::Reply(stream)).await.is_err() {
                            return Ok(None);
                        }
                        let stream = Stream { id: stream, headers, input, output };
                        return Ok(self.incoming.send(stream).await.ok());
                    }
                    Err(why) => answer = Some(Out::Reset(stream, why)),
                }
            }
            Control::Reset { stream } => shared.reset(stream),
            Control::Settings { window: Some(window) } => {
                shared.tables.lock().begin_with(window)?;
                shared.changed.notify_waiters();
            }
            // Those with even numbers are answers to our own.
            Control::Ping(id) if id % 2 == 1 => answer = Some(Out::Ping(id)),
            Control::GoAway => self.leaving = true,
            Control::Window { stream, more } => {
                let grown = shared.tables.lock().grow(stream, more);
                if let Err(stream) = grown {
                    let stream = stream.ok_or(TOO_MUCH)?;
                    shared.reset(stream);
                    answer = Some(Out::Reset(stream, Reset::FlowControl));
                }
                shared.changed.notify_waiters();
            }
            Control::Settings { window: None } | Control::Ping(_) | Control::Other => {}
        }
        if let Some(answer) = answer {
            return Ok(shared.out.send(answer).await.ok());
        }
        Ok(Some(()))
    }
}

const CUT: Broken = Broken("a frame is cut off");
const TOO_MUCH: Broken = Broken("a window is larger than windows can be");

/// A stream that a client wants to open.
struct Opened {
    stream: u32,
    last: bool,
    one_way: bool,
    wanted: bool,
}

impl Opened {
    /// Puts it among the others, or says why it is reset.
    fn enter(self, shared: &Arc<Shared>) -> Result<Result<(Input, Output), Reset>, Broken> {
        let Self { stream: id, last, one_way, wanted } = self;
        let mut tables = shared.tables.lock();
        if id % 2 == 0 || id <= tables.last {
            return Err(Broken("a stream has a number that it cannot have"));
        }
        tables.last = id;
        if !wanted {
            return Ok(Err(Reset::Cancelled));
        }
        if tables.streams.len() >= STREAMS {
            return Ok(Err(Reset::Refused));
        }
        let (sender, parts) = mpsc::channel(PARTS);
        let input = (!last).then_some(sender);
        let window = tables.initial;
        let state = State { input, window, reset: false, read: true, written: true };
        tables.streams.insert(id, state);
        drop(tables);
        let input = Input { id, parts, taken: 0, shared: shared.clone() };
        let output = Output { id, ended: one_way, shared: shared.clone() };
        Ok(Ok((input, output)))
    }
}
