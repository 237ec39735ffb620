//! Protobuf wire format: tags, varints and lengths.

use super::ProtobufError;

/// The value of a field by its wire type.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32,
    /// A group, which was skipped.
    Group,
    /// A wire type that does not exist, so the value has no known end.
    Illegal(u8),
}

impl<'a> Wire<'a> {
    const fn code(&self) -> u8 {
        match self {
            Self::Varint(_) => 0,
            Self::Fixed64(_) => 1,
            Self::Bytes(_) => 2,
            Self::Group => 3,
            Self::Fixed32 => 5,
            Self::Illegal(code) => *code,
        }
    }

    /// Ignores the value of an unknown field.
    pub(super) const fn skip(self) -> Result<(), ProtobufError> {
        match self {
            Self::Illegal(code) => Err(ProtobufError::IllegalWireType(code)),
            _ => Ok(()),
        }
    }

    pub(super) fn wrong_type(&self, field: &str) -> ProtobufError {
        ProtobufError::WrongWireType { wire: self.code(), field: go_field(field) }
    }

    pub(super) fn bytes(self, field: &str) -> Result<&'a [u8], ProtobufError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            other => Err(other.wrong_type(field)),
        }
    }

    pub(super) fn varint(self, field: &str) -> Result<u64, ProtobufError> {
        match self {
            Self::Varint(number) => Ok(number),
            other => Err(other.wrong_type(field)),
        }
    }

    pub(super) fn fixed64(self, field: &str) -> Result<u64, ProtobufError> {
        match self {
            Self::Fixed64(number) => Ok(number),
            other => Err(other.wrong_type(field)),
        }
    }
}

/// Go's name of a field.
fn go_field(name: &str) -> String {
    if name == "metadata" {
        return "ObjectMeta".to_owned();
    }
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Reads the fields of a message.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    /// The message's name, for errors.
    message: &'a str,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(data: &'a [u8], message: &'a str) -> Self {
        Self { rest: data, message }
    }

    /// The next field: its tag and its value. None at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u32, Wire<'a>)>, ProtobufError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (tag, wire) = self.head()?;
        if wire == 4 {
            return Err(ProtobufError::StrayEndGroup(self.message.to_owned()));
        }
        if tag <= 0 {
            return Err(ProtobufError::IllegalTag { message: self.message.to_owned(), tag, wire });
        }
        let value = self.value(wire)?;
        Ok(Some((tag.unsigned_abs(), value)))
    }

    fn head(&mut self) -> Result<(i32, u8), ProtobufError> {
        let key = self.number()?;
        // As in Go, the tag is the lower half of the remaining bits, signed.
        #[expect(clippy::cast_possible_truncation, reason = "as in Go")]
        let (tag, wire) = ((key >> 3) as i32, (key & 7) as u8);
        Ok((tag, wire))
    }

    fn value(&mut self, wire: u8) -> Result<Wire<'a>, ProtobufError> {
        Ok(match wire {
            0 => Wire::Varint(self.number()?),
            1 => {
                let bytes = self.take(8)?;
                Wire::Fixed64(bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
            }
            2 => Wire::Bytes(self.delimited()?),
            3 => {
                self.skip_group()?;
                Wire::Group
            }
            5 => {
                self.take(4)?;
                Wire::Fixed32
            }
            other => Wire::Illegal(other),
        })
    }

    /// Skips a group to its end. Nested groups are counted, without recursion.
    fn skip_group(&mut self) -> Result<(), ProtobufError> {
        let mut open = 1_usize;
        while open > 0 {
            let (_, wire) = self.head()?;
            match wire {
                0 => drop(self.number()?),
                1 => drop(self.take(8)?),
                2 => drop(self.delimited()?),
                3 => open += 1,
                4 => open -= 1,
                5 => drop(self.take(4)?),
                other => return Err(ProtobufError::IllegalWireType(other)),
            }
        }
        Ok(())
    }

    fn delimited(&mut self) -> Result<&'a [u8], ProtobufError> {
        let length = i64::try_from(self.number()?).map_err(|_| ProtobufError::NegativeLength)?;
        let length = usize::try_from(length).map_err(|_| ProtobufError::NegativeLength)?;
        self.take(length)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], ProtobufError> {
        let (taken, rest) =
            self.rest.split_at_checked(length).ok_or(ProtobufError::UnexpectedEnd)?;
        self.rest = rest;
        Ok(taken)
    }

    /// A varint of one to ten bytes.
    pub(super) fn number(&mut self) -> Result<u64, ProtobufError> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first().ok_or(ProtobufError::UnexpectedEnd)?;
            self.rest = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(ProtobufError::Overflow)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

/// Writes a varint.
pub(super) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    loop {
        let byte = u8::try_from(number & 0x7f).unwrap_or_default();
        number >>= 7;
        if number == 0 {
            out.push(byte);
            return;
        }
        out.push(byte | 0x80);
    }
}

/// The number of bytes of a varint.
pub(super) const fn number_length(number: u64) -> usize {
    (u64::BITS - (number | 1).leading_zeros()).div_ceil(7) as usize
}

/// Writes a varint field.
pub(super) fn put_varint(out: &mut Vec<u8>, tag: u32, number: u64) {
    put_number(out, u64::from(tag) << 3);
    put_number(out, number);
}

/// Writes a field of eight bytes.
pub(super) fn put_fixed64(out: &mut Vec<u8>, tag: u32, number: u64) {
    put_number(out, u64::from(tag) << 3 | 1);
    out.extend_from_slice(&number.to_le_bytes());
}

/// Writes a field of bytes, a string or a message.
pub(super) fn put_bytes(out: &mut Vec<u8>, tag: u32, bytes: &[u8]) {
    put_number(out, u64::from(tag) << 3 | 2);
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Writes a field that is a message.
pub(super) fn put_nested(out: &mut Vec<u8>, tag: u32, message: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    message(out);
    nest(out, tag, start);
}

/// Turns the bytes since `start` into a message field with `tag`.
pub(super) fn nest(out: &mut Vec<u8>, tag: u32, start: usize) {
    let end = out.len();
    put_number(out, u64::from(tag) << 3 | 2);
    put_number(out, (end - start) as u64);
    out[start..].rotate_left(end - start);
}
