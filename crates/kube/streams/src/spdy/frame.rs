//! SPDY/3.1 frames: a header of eight bytes, and a payload.
//!
//! ```text
//! control   1 | version 3 (15 bits) | kind (16) | flags (8) | length (24) | …
//! data      0 | stream (31 bits)                | flags (8) | length (24) | …
//! ```

use super::ProtocolError;
use super::headers::{self, Headers};
use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

/// The length of a frame header.
pub(super) const HEADER_LENGTH: usize = 8;
/// The last frame of its side: `FLAG_FIN`.
pub(super) const FIN: u8 = 1;
/// A stream on which the other side sends nothing: `FLAG_UNIDIRECTIONAL`.
const UNIDIRECTIONAL: u8 = 2;
/// The 31 bits of a stream id.
const STREAM_ID: u32 = 0x7fff_ffff;

const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const SETTINGS: u16 = 4;
const PING: u16 = 6;
const GOAWAY: u16 = 7;
const HEADERS: u16 = 8;
const WINDOW_UPDATE: u16 = 9;
/// `SETTINGS_INITIAL_WINDOW_SIZE`.
const INITIAL_WINDOW: u32 = 7;

/// The status code of a stream reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResetCode {
    /// `REFUSED_STREAM`: too many streams are open.
    RefusedStream = 3,
    /// `CANCEL`: the stream is not needed any more.
    Cancel = 5,
    /// `FLOW_CONTROL_ERROR`: a window exceeds its limit.
    FlowControlError = 7,
}

/// The header of a received frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FrameHeader {
    Control { kind: u16, flags: u8, length: usize },
    Data { stream: u32, last: bool, length: usize },
}

impl FrameHeader {
    pub(super) fn read(bytes: &mut BytesMut) -> Result<Self, ProtocolError> {
        let truncated = |_| ProtocolError("a frame is cut off");
        let first = bytes.try_get_u32().map_err(truncated)?;
        let second = bytes.try_get_u32().map_err(truncated)?;
        let [flags, ..] = second.to_be_bytes();
        let length = usize::try_from(second & 0x00ff_ffff).unwrap_or(usize::MAX);
        if first > STREAM_ID {
            let [high, low, kind @ ..] = first.to_be_bytes();
            if u16::from_be_bytes([high & 0x7f, low]) != 3 {
                return Err(ProtocolError("the version of a frame is not 3"));
            }
            if length > headers::MAX_BLOCK_SIZE {
                return Err(ProtocolError("a control frame is too long"));
            }
            return Ok(Self::Control { kind: u16::from_be_bytes(kind), flags, length });
        }
        if first == 0 {
            return Err(ProtocolError("a data frame has no stream"));
        }
        Ok(Self::Data { stream: first, last: flags & FIN != 0, length })
    }
}

/// A received control frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ControlFrame {
    /// Opens a stream.
    Open { stream: u32, last: bool, is_unidirectional: bool, headers: Headers },
    /// Resets a stream.
    Reset { stream: u32 },
    /// The initial window of streams, if the frame has one.
    Settings { window: Option<u32> },
    /// A ping; the receiver returns those of the other side.
    Ping(u32),
    /// No more streams are opened.
    GoAway,
    /// Increases the window of a stream, or of the connection for stream 0.
    WindowUpdate { stream: u32, increment: u32 },
    /// A frame that needs no action.
    Other,
}

impl ControlFrame {
    pub(super) fn read(
        (kind, flags): (u16, u8),
        mut payload: &[u8],
        reader: &mut headers::HeaderReader,
    ) -> Result<Self, ProtocolError> {
        let payload = &mut payload;
        let mut number =
            || payload.try_get_u32().map_err(|_| ProtocolError("a control frame is too short"));
        Ok(match kind {
            SYN_STREAM => {
                let stream = number()? & STREAM_ID;
                let _parent = number()?;
                // Priority and credential slot.
                payload.try_get_u16().map_err(|_| ProtocolError("a control frame is too short"))?;
                let (last, is_unidirectional) = (flags & FIN != 0, flags & UNIDIRECTIONAL != 0);
                Self::Open { stream, last, is_unidirectional, headers: reader.read(payload)? }
            }
            SYN_REPLY | HEADERS => {
                number()?;
                // Later header blocks refer to this one.
                reader.read(payload)?;
                Self::Other
            }
            RST_STREAM => Self::Reset { stream: number()? & STREAM_ID },
            SETTINGS => {
                let count = number()?;
                let mut window = None;
                for _ in 0..count {
                    let (name, value) = (number()?, number()?);
                    if name & 0x00ff_ffff == INITIAL_WINDOW {
                        window = Some(value);
                    }
                }
                Self::Settings { window }
            }
            PING => Self::Ping(number()?),
            GOAWAY => Self::GoAway,
            WINDOW_UPDATE => Self::WindowUpdate {
                stream: number()? & STREAM_ID,
                increment: number()? & STREAM_ID,
            },
            _ => Self::Other,
        })
    }
}

/// A frame to send.
#[derive(Debug)]
pub(super) enum OutgoingFrame {
    /// Accepts a stream.
    Reply(u32),
    /// Data of a stream, a few thousand bytes at most.
    Data {
        stream: u32,
        bytes: Bytes,
        last: bool,
    },
    Reset(u32, ResetCode),
    Ping(u32),
    /// Increases the window of a stream, or of the connection for stream 0.
    WindowUpdate {
        stream: u32,
        increment: u32,
    },
    /// Ends the connection; `last` is the last stream that was accepted.
    GoAway {
        last: u32,
        is_error: bool,
    },
}

impl OutgoingFrame {
    /// Encodes the frame. `is_first_reply` is whether no reply was encoded before.
    pub(super) fn encode(&self, out: &mut BytesMut, is_first_reply: &mut bool) {
        match self {
            Self::Reply(stream) => {
                let block = headers::empty_block(std::mem::take(is_first_reply));
                put_control_header(out, SYN_REPLY, 4 + block.len());
                out.put_u32(*stream);
                out.put_slice(block);
            }
            Self::Data { stream, bytes, last } => {
                out.put_u32(*stream);
                out.put_u32(frame_length(bytes.len()) | u32::from(*last) << 24);
                out.put_slice(bytes);
            }
            Self::Reset(stream, code) => put_two_numbers(out, RST_STREAM, *stream, *code as u32),
            Self::Ping(id) => {
                put_control_header(out, PING, 4);
                out.put_u32(*id);
            }
            Self::WindowUpdate { stream, increment } => {
                put_two_numbers(out, WINDOW_UPDATE, *stream, *increment);
            }
            Self::GoAway { last, is_error } => {
                put_two_numbers(out, GOAWAY, *last, u32::from(*is_error));
            }
        }
    }
}

/// The length field of a frame; the frames of this side are far below its limit.
fn frame_length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or_default() & 0x00ff_ffff
}

fn put_control_header(out: &mut BytesMut, kind: u16, bytes: usize) {
    out.put_u16(0x8003);
    out.put_u16(kind);
    out.put_u32(frame_length(bytes));
}

fn put_two_numbers(out: &mut BytesMut, kind: u16, first: u32, second: u32) {
    put_control_header(out, kind, 8);
    out.put_u32(first);
    out.put_u32(second);
}
