//! JSON as Go's `encoding/json` writes it.
//!
//! Catalogs, bundles, generated names and messages are compared and hashed by the bytes that
//! upstream's tools write, so the bytes have to be the same: keys sorted, floats in their shortest
//! form with an exponent from 21 digits on, line separators escaped, `<`, `>` and `&` escaped or not
//! depending on who writes, empty lists and objects in one piece when everything else is laid out.
//!
//! ```text
//! Value, or a JSON text ─► Writer (compact, or one item a line) ─► text
//! ```
//!
//! [`JsonWriter`] is the one piece of code; [`value`], [`text`] and [`indent`] are short ways to it.
//! What Go writes in an order that its sorting alone decides is put into that order by
//! [`sort_slice`](crate::sort_slice).
//!
//! What this module does not do: read JSON, or know types; who writes the fields of a struct in
//! their order calls [`JsonWriter::key`] in that order.

mod number;
mod text;
mod writer;

pub use number::float;
pub use text::{quoted, text, text_of_bytes};
pub use writer::JsonWriter;

use serde_json::Value;

/// Whether `<`, `>` and `&` are escaped, as they are unless a Go program asks for the contrary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Html {
    /// As `\u003c`, `\u003e` and `\u0026`.
    Escaped,
    /// As they are.
    Plain,
}

/// Through which of Go's types numbers have gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// Whole numbers are exact, as those that come from YAML.
    Whole,
    /// Whole numbers are exact up to 63 bits and floats beyond, as objects keep them.
    Object,
    /// All are floats, as in a value that was read without a type.
    Float,
}

/// Whether Go takes a name in a text for that of a field, whatever the case: of letters, and of the two signs beyond ASCII that
/// are other forms of letters.
pub fn is_same_field(name: &str, field: &str) -> bool {
    name.eq_ignore_ascii_case(field)
        || (!name.is_ascii()
            && name.replace('\u{17f}', "s").replace('\u{212a}', "k").eq_ignore_ascii_case(field))
}

/// The value, compact.
pub fn value(value: &Value, html: Html, numbers: Numbers) -> String {
    let mut out = String::new();
    JsonWriter::compact(&mut out, html, numbers).value(value);
    out
}

/// A JSON text (which is known to be sound) with every item on a line of its own, four blanks for
/// each level.
pub fn indent(json: &str) -> String {
    let mut out = String::with_capacity(json.len() + json.len() / 8);
    JsonWriter::indented(&mut out, Html::Plain, Numbers::Whole).raw(json);
    out
}
