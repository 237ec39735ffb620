//! The frames of SPDY/3.1: eight bytes that say what follows, and what follows.
//!
//! ```text
//! control   1 | version 3 (15 bits) | kind (16) | flags (8) | length (24) | …
//! data      0 | stream (31 bits)                | flags (8) | length (24) | …
//! ```

use super::Broken;
use super::headers::{self, Headers};
use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

/// The length of a frame's head.
pub(super) const HEAD: usize = 8;
/// The last frame of its side: `FLAG_FIN`.
pub(super) const LAST: u8 = 1;
/// A stream in which the other side says nothing: `FLAG_UNIDIRECTIONAL`.
const ONE_WAY: u8 = 2;
/// Streams have 31 bits.
const STREAM: u32 = 0x7fff_ffff;

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

/// Why a stream is reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reset {
    /// There are too many.
    Refused = 3,
    /// Nobody wants it any more.
    Cancelled = 5,
    /// The other side gave more room than there can be.
    FlowControl = 7,
}

/// The head of a frame that comes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Head {
    Control { kind: u16, flags: u8, length: usize },
    Data { stream: u32, last: bool, length: usize },
}

impl Head {
    pub(super) fn read(bytes: &mut BytesMut) -> Result<Self, Broken> {
        let cut = |_| Broken("a frame is cut off");
        let first = bytes.try_get_u32().map_err(cut)?;
        let second = bytes.try_get_u32().map_err(cut)?;
        let [flags, ..] = second.to_be_bytes();
        let length = usize::try_from(second & 0x00ff_ffff).unwrap_or(usize::MAX);
        if first > STREAM {
            let [high, low, kind @ ..] = first.to_be_bytes();
            if u16::from_be_bytes([high & 0x7f, low]) != 3 {
                return Err(Broken("a frame is of another version than 3"));
            }
            if length > headers::LIMIT {
                return Err(Broken("a control frame is too long"));
            }
            return Ok(Self::Control { kind: u16::from_be_bytes(kind), flags, length });
        }
        if first == 0 {
            return Err(Broken("data is for no stream"));
        }
        Ok(Self::Data { stream: first, last: flags & LAST != 0, length })
    }
}

/// A control frame that came.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Control {
    /// A stream is opened.
    Open { stream: u32, last: bool, one_way: bool, headers: Headers },
    /// A stream is over.
    Reset { stream: u32 },
    /// How much a stream may be sent at first, if it is said.
    Settings { window: Option<u32> },
    /// To be sent back, if it is the other side's own.
    Ping(u32),
    /// No stream is opened any more.
    GoAway,
    /// More may be sent on a stream; on all, if it is 0.
    Window { stream: u32, more: u32 },
    /// Of no concern.
    Other,
}

impl Control {
    pub(super) fn read(
        (kind, flags): (u16, u8),
        mut payload: &[u8],
        reader: &mut headers::Reader,
    ) -> Result<Self, Broken> {
        let payload = &mut payload;
        let mut number =
            || payload.try_get_u32().map_err(|_| Broken("a control frame is too short"));
        Ok(match kind {
            SYN_STREAM => {
                let stream = number()? & STREAM;
                let _parent = number()?;
                // Priority and slot.
                payload.try_get_u16().map_err(|_| Broken("a control frame is too short"))?;
                let (last, one_way) = (flags & LAST != 0, flags & ONE_WAY != 0);
                Self::Open { stream, last, one_way, headers: reader.read(payload)? }
            }
            SYN_REPLY | HEADERS => {
                number()?;
                // What comes later refers to it.
                reader.read(payload)?;
                Self::Other
            }
            RST_STREAM => Self::Reset { stream: number()? & STREAM },
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
            WINDOW_UPDATE => Self::Window { stream: number()? & STREAM, more: number()? & STREAM },
            _ => Self::Other,
        })
    }
}

/// A frame to be sent.
#[derive(Debug)]
pub(super) enum Out {
    /// The stream is accepted.
    Reply(u32),
    /// Bytes of a stream, a few thousand at most.
    Data {
        stream: u32,
        bytes: Bytes,
        last: bool,
    },
    Reset(u32, Reset),
    Ping(u32),
    /// More may be sent on a stream; on all, if it is 0.
    Window {
        stream: u32,
        more: u32,
    },
    /// The end of everything, behind the last stream that was looked at.
    GoAway {
        last: u32,
        broken: bool,
    },
}

impl Out {
    /// Writes it. `first`: whether no reply has been written before.
    pub(super) fn write(&self, to: &mut BytesMut, first: &mut bool) {
        match self {
            Self::Reply(stream) => {
                let block = headers::none(std::mem::take(first));
                control(to, SYN_REPLY, 4 + block.len());
                to.put_u32(*stream);
                to.put_slice(block);
            }
            Self::Data { stream, bytes, last } => {
                to.put_u32(*stream);
                to.put_u32(length(bytes.len()) | u32::from(*last) << 24);
                to.put_slice(bytes);
            }
            Self::Reset(stream, why) => pair(to, RST_STREAM, *stream, *why as u32),
            Self::Ping(id) => {
                control(to, PING, 4);
                to.put_u32(*id);
            }
            Self::Window { stream, more } => pair(to, WINDOW_UPDATE, *stream, *more),
            Self::GoAway { last, broken } => pair(to, GOAWAY, *last, u32::from(*broken)),
        }
    }
}

/// What is sent is far shorter than lengths can say.
fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or_default() & 0x00ff_ffff
}

fn control(to: &mut BytesMut, kind: u16, bytes: usize) {
    to.put_u16(0x8003);
    to.put_u16(kind);
    to.put_u32(length(bytes));
}

fn pair(to: &mut BytesMut, kind: u16, one: u32, other: u32) {
    control(to, kind, 8);
    to.put_u32(one);
    to.put_u32(other);
}
