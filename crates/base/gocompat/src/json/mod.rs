//! JSON encoding with the rules of Go's `encoding/json`.
//!
//! Catalogs, bundles, generated names and messages are compared and hashed by the bytes of upstream's
//! tools, so the bytes must be the same: sorted keys, floats in their shortest form with an exponent from
//! 21 digits on, escaped line separators, `<`, `>` and `&` escaped or not, and empty lists and objects on
//! one line in indented text.
//!
//! ```text
//! Value, or a JSON text ─► Writer (compact, or one item a line) ─► text
//! ```
//!
//! [`value`], [`text`] and [`indent`] are shortcuts to [`JsonWriter`]. Where the order follows only from
//! Go's sort, [`sort_slice`](crate::sort_slice) gives it.
//!
//! This module does not read JSON and does not know types. Code that writes the fields of a struct calls
//! [`JsonWriter::key`] in the order of the fields.

mod number;
mod text;
mod writer;

pub use number::float;
pub use text::{quoted, text, text_of_bytes};
pub use writer::JsonWriter;

use serde_json::Value;

/// Whether `<`, `>` and `&` are escaped, which is the default in Go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Html {
    /// As `\u003c`, `\u003e` and `\u0026`.
    Escaped,
    /// Not escaped.
    Plain,
}

/// The Go type through which numbers were decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// Whole numbers are exact, as from YAML.
    Whole,
    /// Whole numbers are exact up to 63 bits and floats beyond, as objects keep them.
    Object,
    /// All numbers are floats, as in `interface{}`.
    Float,
}

/// Whether Go matches a JSON key with a field, ignoring the case. Two characters beyond ASCII fold to
/// letters, too.
pub fn is_same_field(name: &str, field: &str) -> bool {
    name.eq_ignore_ascii_case(field)
        || (!name.is_ascii()
            && name.replace('\u{17f}', "s").replace('\u{212a}', "k").eq_ignore_ascii_case(field))
}

/// The value as compact JSON.
pub fn value(value: &Value, html: Html, numbers: Numbers) -> String {
    let mut out = String::new();
    JsonWriter::compact(&mut out, html, numbers).value(value);
    out
}

/// Indents a valid JSON text: one item per line, four blanks for each level.
pub fn indent(json: &str) -> String {
    let mut out = String::with_capacity(json.len() + json.len() / 8);
    JsonWriter::indented(&mut out, Html::Plain, Numbers::Whole).raw(json);
    out
}
