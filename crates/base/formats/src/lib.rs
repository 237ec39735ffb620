//! Texts that have a form: names, references of images, URLs, addresses and networks, and the
//! formats of schemas.
//!
//! Each is read as Kubernetes reads it, and refused in the words of Kubernetes or of Go, which
//! become part of messages of the API. What schemas check and what rules of definitions ask for is
//! the same, so it is written once, below both. Beside them stands what a name was probably meant to
//! be ([`near`]).

pub mod address;
pub mod destination;
pub mod duration;
pub mod names;
pub mod near;
pub mod reference;
pub mod regexp;
mod text;
pub mod url;

pub use text::Format;
