//! Protobuf encoding of built-in objects, driven by the table of types.
//!
//! kubectl's `create` and Go controllers send built-in kinds as protobuf: four magic bytes, and an
//! envelope with `apiVersion`, `kind` and the message of the kind. No kind has its own code: the table
//! has a field's tags ([`crate::builtin::FieldDefinition::tags`]), and its type determines the wire
//! format. A few types are special: times, quantities, int-or-string, raw JSON, schemas of CRDs.
//!
//! [`decode`] returns the JSON of a message, for [`crate::strict::decode`]. [`encode`] writes the bytes
//! that Go writes: zero scalars that are no pointers, fields in order of their tags, maps in the order
//! of the text, which stored objects have sorted by key.
//!
//! The input is not trusted: lengths are checked before an allocation, [`MAX_DEPTH`] limits nesting,
//! and the result is at most a few dozen times as large as the input.
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
/// The first bytes of each body.
pub const MAGIC: [u8; 4] = *b"k8s\0";
/// The deepest nesting of messages.
pub const MAX_DEPTH: usize = 100;

/// Bytes cannot be decoded, or an object cannot be encoded. Messages are those of Go's generated
/// decoders, if they have one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtobufError {
    /// The body is empty.
    #[error("empty data")]
    EmptyData,
    /// The magic bytes are missing.
    #[error(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    )]
    NoMagic,
    /// The body has only the magic bytes.
    #[error("empty body")]
    EmptyBody,
    /// A field ends after the end of its message.
    #[error("unexpected EOF")]
    UnexpectedEnd,
    /// A number has more than ten bytes.
    #[error("proto: integer overflow")]
    Overflow,
    /// A length is negative.
    #[error("proto: negative length found during unmarshaling")]
    NegativeLength,
    /// A wire type does not exist.
    #[error("proto: illegal wireType {0}")]
    IllegalWireType(u8),
    /// A field does not have the wire type of its type.
    #[error("proto: wrong wireType = {wire} for field {field}")]
    WrongWireType {
        /// The wire type.
        wire: u8,
        /// The field's name in Go.
        field: String,
    },
    /// A field has the tag zero.
    #[error("proto: {message}: illegal tag {tag} (wire type {wire})")]
    IllegalTag {
        /// The message.
        message: String,
        /// The tag.
        tag: i32,
        /// The wire type.
        wire: u8,
    },
    /// A group ends that did not begin.
    #[error("proto: {0}: wiretype end group for non-group")]
    StrayEndGroup(String),
    /// A group ends at the wrong position.
    #[error("proto: unexpected end of group")]
    UnexpectedEndGroup,
    /// Messages are nested too deeply.
    #[error("exceeded max depth")]
    TooDeep,
    /// A field with raw JSON is malformed.
    #[error("{0}")]
    NotJson(String),
    /// A time is out of range.
    #[error("time is out of range")]
    TimeRange,
    /// A value does not have the JSON form of its type.
    #[error("cannot be written as protobuf: {0}")]
    Unencodable(String),
}

/// The envelope of an object: `runtime.Unknown`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// `apiVersion`; may be empty.
    pub api_version: Cow<'a, str>,
    /// `kind`; may be empty.
    pub kind: Cow<'a, str>,
    /// The message of the kind.
    pub raw: &'a [u8],
    /// Content encoding of `raw`; empty in all bodies.
    pub content_encoding: Cow<'a, str>,
    /// Content type of `raw`; empty means protobuf.
    pub content_type: Cow<'a, str>,
}

/// Parses the envelope of a body.
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
