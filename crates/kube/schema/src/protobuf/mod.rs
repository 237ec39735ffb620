//! Objects of built-in kinds as protobuf, steered by the table of types.
//!
//! kubectl's `create` and controllers written in Go send built-in kinds as protobuf: four magic
//! bytes, a small envelope with `apiVersion` and `kind`, and in it the message of the kind. There is
//! no code per kind here: a field's tags are in the table ([`crate::builtin::Field::tags`]) and its
//! form on the wire follows from its type. A few types have forms of their own: times, quantities,
//! integers that may be texts, raw JSON, the schemas of definitions.
//!
//! [`decode`] gives the JSON that the message says; [`crate::strict::decode`] then makes of it what
//! it makes of JSON. [`encode`] writes the bytes that Go writes: scalars that are no pointers even if
//! they are zero, fields in order of their tags, maps in the order of their text, which is that of
//! their keys in all that is stored.
//!
//! Nothing is trusted: lengths are checked before anything is allocated, nesting is bounded by
//! [`MAX_DEPTH`], and what comes out is at most a few dozen times as large as what came in.
//!
//! ```text
//! body ─ unwrap ─► Envelope{apiVersion, kind, raw} ─ decode(type) ─► Value ─ strict::decode ─► object
//! text ─ encode(type) ─► raw ─ wrap ─► body
//! ```

mod decode;
mod encode;
mod layout;
mod wire;

use std::borrow::Cow;
use wire::{Reader, Wire};

pub use decode::decode;
pub use encode::{
    ENVELOPE_END, ITEMS_TAG, encode, envelope_start, event, item_length, put_item, wrap,
};
pub(crate) use layout::Layout;

/// The media type of bodies in this form.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// What every body begins with.
pub const MAGIC: [u8; 4] = *b"k8s\0";
/// How many messages may stand inside each other.
pub const MAX_DEPTH: usize = 100;

/// Why bytes are not an object, in the words of Go's generated decoders where they have some.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtobufError {
    /// There is nothing at all.
    #[error("empty data")]
    EmptyData,
    /// The magic bytes are missing.
    #[error(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    )]
    NoMagic,
    /// Only the magic bytes are there.
    #[error("empty body")]
    EmptyBody,
    /// A field ends behind the end of its message.
    #[error("unexpected EOF")]
    UnexpectedEnd,
    /// A number has more than ten bytes.
    #[error("proto: integer overflow")]
    Overflow,
    /// A length that no message has.
    #[error("proto: negative length found during unmarshaling")]
    NegativeLength,
    /// A way of writing fields that does not exist.
    #[error("proto: illegal wireType {0}")]
    IllegalWireType(u8),
    /// A field is written in another way than its type is.
    #[error("proto: wrong wireType = {wire} for field {field}")]
    WrongWireType {
        /// The way it is written.
        wire: u8,
        /// The field's name in Go.
        field: String,
    },
    /// A field with the tag zero.
    #[error("proto: {message}: illegal tag {tag} (wire type {wire})")]
    IllegalTag {
        /// The message.
        message: String,
        /// The tag.
        tag: i32,
        /// How it is written.
        wire: u8,
    },
    /// The end of a group that never began.
    #[error("proto: {0}: wiretype end group for non-group")]
    StrayEndGroup(String),
    /// Groups that end in the wrong place.
    #[error("proto: unexpected end of group")]
    UnexpectedEndGroup,
    /// Messages stand too deep inside each other.
    #[error("exceeded max depth")]
    TooDeep,
    /// A field with raw JSON holds something else.
    #[error("{0}")]
    NotJson(String),
    /// A time that no calendar has.
    #[error("time is out of range")]
    TimeRange,
    /// A value does not have the form that its type asks for.
    #[error("cannot be written as protobuf: {0}")]
    Unencodable(String),
}

/// What is around an object: `runtime.Unknown`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// `apiVersion`; may be empty.
    pub api_version: Cow<'a, str>,
    /// `kind`; may be empty.
    pub kind: Cow<'a, str>,
    /// The message of the kind.
    pub raw: &'a [u8],
    /// How `raw` is encoded besides; empty in all bodies.
    pub content_encoding: Cow<'a, str>,
    /// What `raw` is; empty means protobuf.
    pub content_type: Cow<'a, str>,
}

/// Opens a body.
pub fn unwrap(body: &[u8]) -> Result<Envelope<'_>, ProtobufError> {
    if body.is_empty() {
        return Err(ProtobufError::EmptyData);
    }
    let data = body.strip_prefix(&MAGIC).ok_or(ProtobufError::NoMagic)?;
    if data.is_empty() {
        return Err(ProtobufError::EmptyBody);
    }
    let mut envelope = Envelope::default();
    let mut reader = Reader::new(data, "Unknown");
    while let Some((tag, wire)) = reader.next()? {
        match tag {
            1 => type_meta(wire.bytes("TypeMeta")?, &mut envelope)?,
            2 => envelope.raw = wire.bytes("Raw")?,
            3 => envelope.content_encoding = text(wire, "ContentEncoding")?,
            4 => envelope.content_type = text(wire, "ContentType")?,
            _ => wire.skip()?,
        }
    }
    Ok(envelope)
}

fn type_meta<'a>(data: &'a [u8], envelope: &mut Envelope<'a>) -> Result<(), ProtobufError> {
    let mut reader = Reader::new(data, "TypeMeta");
    while let Some((tag, wire)) = reader.next()? {
        match tag {
            1 => envelope.api_version = text(wire, "APIVersion")?,
            2 => envelope.kind = text(wire, "Kind")?,
            _ => wire.skip()?,
        }
    }
    Ok(())
}

fn text<'a>(wire: Wire<'a>, field: &str) -> Result<Cow<'a, str>, ProtobufError> {
    Ok(String::from_utf8_lossy(wire.bytes(field)?))
}
