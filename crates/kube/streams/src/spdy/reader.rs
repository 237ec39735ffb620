//! The reading half of a connection: frames from the client, and the streams that it opens.

use super::frame::{ControlFrame, FrameHeader, HEADER_LENGTH, OutgoingFrame, ResetCode};
use super::headers::HeaderReader;
use super::{
    Headers, IDLE_TIMEOUT, MAX_STREAMS, PART_QUEUE, PART_SIZE, ProtocolError, STALL_TIMEOUT,
    SharedState, Stream, StreamInput, StreamOutput, StreamState, WINDOW_OVERFLOW,
    WINDOW_UPDATE_SIZE,
};
use bytes::BytesMut;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::mpsc;
use tokio::time::timeout;

const TRUNCATED_FRAME: ProtocolError = ProtocolError("a frame is cut off");

/// The reader of a connection: it passes data to the streams, and handles control frames.
pub(super) struct FrameReader<R> {
    source: R,
    buffer: BytesMut,
    headers: HeaderReader,
    shared: Arc<SharedState>,
    incoming: mpsc::Sender<Stream>,
    /// Bytes of all streams since the last increase of the connection's window.
    received: u32,
    /// Whether the client has sent `GOAWAY` and opens no more streams.
    no_new_streams: bool,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub(super) fn new(source: R, shared: Arc<SharedState>, incoming: mpsc::Sender<Stream>) -> Self {
        Self {
            source,
            buffer: BytesMut::new(),
            headers: HeaderReader::new(),
            shared,
            incoming,
            received: 0,
            no_new_streams: false,
        }
    }

    /// Reads frames until the client closes the connection, or the idle timeout.
    pub(super) async fn run(
        mut self,
        accept: impl Fn(&Headers) -> bool + Send,
    ) -> Result<(), ProtocolError> {
        loop {
            if !self.fill(HEADER_LENGTH).await {
                return if self.buffer.is_empty() { Ok(()) } else { Err(TRUNCATED_FRAME) };
            }
            match FrameHeader::read(&mut self.buffer)? {
                FrameHeader::Data { stream, last, length } => {
                    self.read_data(stream, last, length).await?;
                }
                FrameHeader::Control { kind, flags, length } => {
                    if !self.fill(length).await {
                        return Err(TRUNCATED_FRAME);
                    }
                    let payload = self.buffer.split_to(length);
                    let control = ControlFrame::read((kind, flags), &payload, &mut self.headers)?;
                    if self.handle_control(control, &accept).await?.is_none() {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Reads until the buffer has this many bytes; false if they do not arrive.
    async fn fill(&mut self, wanted: usize) -> bool {
        while self.buffer.len() < wanted {
            self.buffer.reserve(PART_SIZE);
            match timeout(IDLE_TIMEOUT, self.source.read_buf(&mut self.buffer)).await {
                Ok(Ok(0) | Err(_)) | Err(_) => return false,
                Ok(Ok(_)) => {}
            }
        }
        true
    }

    /// Passes the bytes of a data frame on as they arrive.
    async fn read_data(
        &mut self,
        stream: u32,
        last: bool,
        length: usize,
    ) -> Result<(), ProtocolError> {
        let input = |state: &StreamState| state.input.clone();
        let mut target = self.shared.table.lock().streams.get(&stream).and_then(input);
        let mut remaining = length;
        while remaining > 0 {
            if !self.fill(1).await {
                return Err(TRUNCATED_FRAME);
            }
            let part =
                self.buffer.split_to(remaining.min(self.buffer.len()).min(PART_SIZE)).freeze();
            remaining -= part.len();
            // A part is far below the limit of u32.
            self.received += u32::try_from(part.len()).unwrap_or_default();
            // Data of an ended stream is dropped: the client may not know of the end yet.
            if let Some(input) = &target
                && timeout(STALL_TIMEOUT, input.send(part)).await.is_err()
            {
                target = None;
                self.shared.reset(stream);
                let reset = OutgoingFrame::Reset(stream, ResetCode::FlowControlError);
                let _ = self.shared.frames.send(reset).await;
            }
            if self.received >= WINDOW_UPDATE_SIZE {
                let increment = std::mem::take(&mut self.received);
                let _ = self
                    .shared
                    .frames
                    .send(OutgoingFrame::WindowUpdate { stream: 0, increment })
                    .await;
            }
        }
        if last && let Some(state) = self.shared.table.lock().streams.get_mut(&stream) {
            state.input = None;
        }
        Ok(())
    }

    /// Handles a control frame; none if the handler or the writer ended.
    async fn handle_control(
        &mut self,
        control: ControlFrame,
        accept: &(impl Fn(&Headers) -> bool + Send),
    ) -> Result<Option<()>, ProtocolError> {
        let shared = &self.shared;
        let mut reply = None;
        match control {
            ControlFrame::Open { .. } if self.no_new_streams => {}
            ControlFrame::Open { stream, last, is_unidirectional, headers } => {
                let open =
                    OpenStream { stream, last, is_unidirectional, is_accepted: accept(&headers) };
                match open.register(shared)? {
                    Ok((input, output)) => {
                        if shared.frames.send(OutgoingFrame::Reply(stream)).await.is_err() {
                            return Ok(None);
                        }
                        let stream = Stream { id: stream, headers, input, output };
                        return Ok(self.incoming.send(stream).await.ok());
                    }
                    Err(code) => reply = Some(OutgoingFrame::Reset(stream, code)),
                }
            }
            ControlFrame::Reset { stream } => shared.reset(stream),
            ControlFrame::Settings { window: Some(window) } => {
                shared.table.lock().set_initial_window(window)?;
                shared.changed.notify_waiters();
            }
            // Pings with even ids are replies to those of this side.
            ControlFrame::Ping(id) if id % 2 == 1 => reply = Some(OutgoingFrame::Ping(id)),
            ControlFrame::GoAway => self.no_new_streams = true,
            ControlFrame::WindowUpdate { stream, increment } => {
                let result = shared.table.lock().increase_window(stream, increment);
                if let Err(stream) = result {
                    let stream = stream.ok_or(WINDOW_OVERFLOW)?;
                    shared.reset(stream);
                    reply = Some(OutgoingFrame::Reset(stream, ResetCode::FlowControlError));
                }
                shared.changed.notify_waiters();
            }
            ControlFrame::Settings { window: None }
            | ControlFrame::Ping(_)
            | ControlFrame::Other => {}
        }
        if let Some(reply) = reply {
            return Ok(shared.frames.send(reply).await.ok());
        }
        Ok(Some(()))
    }
}

/// A request of the client to open a stream.
struct OpenStream {
    stream: u32,
    last: bool,
    is_unidirectional: bool,
    is_accepted: bool,
}

impl OpenStream {
    /// Registers the stream and creates its halves; the inner error is the code of its reset.
    fn register(
        self,
        shared: &Arc<SharedState>,
    ) -> Result<Result<(StreamInput, StreamOutput), ResetCode>, ProtocolError> {
        let Self { stream: id, last, is_unidirectional, is_accepted } = self;
        let mut table = shared.table.lock();
        if id % 2 == 0 || id <= table.last {
            return Err(ProtocolError("a stream has an invalid id"));
        }
        table.last = id;
        if !is_accepted {
            return Ok(Err(ResetCode::Cancel));
        }
        if table.streams.len() >= MAX_STREAMS {
            return Ok(Err(ResetCode::RefusedStream));
        }
        let (sender, parts) = mpsc::channel(PART_QUEUE);
        let input = (!last).then_some(sender);
        let window = table.initial_window;
        let state =
            StreamState { input, window, is_reset: false, has_reader: true, has_writer: true };
        table.streams.insert(id, state);
        drop(table);
        let input = StreamInput { id, parts, unacknowledged: 0, shared: shared.clone() };
        let output = StreamOutput { id, ended: is_unidirectional, shared: shared.clone() };
        Ok(Ok((input, output)))
    }
}
