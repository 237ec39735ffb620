//! Built-in kinds of Kubernetes 1.35: rows for discovery, and what their types look like inside.
//!
//! The rows are constants ([`kinds`]). The types ([`definition`]) come from one generated table
//! that lies deflated in the binary, one part for each Go package of types and one for its
//! descriptions; a part is inflated when somebody first asks for a type of it. A server that nobody
//! asks pays nothing.

mod go_name;
mod kinds;
pub(crate) mod table;
mod text;
pub(crate) mod texts;

pub use go_name::spelled_type;
pub use kinds::{BuiltinKind, Subresource, SubresourceKind};
pub use table::{
    Definition, Field, ListType, Reference, Shape, Type, Written, definition, definition_name,
};
pub use text::{ReleaseError, TextError, parse_text};

use mainstay_object::Gvk;

/// All built-in kinds, in discovery's order.
pub fn kinds() -> &'static [BuiltinKind] {
    kinds::KINDS
}

/// The row of a kind.
pub fn kind(group: &str, version: &str, kind: &str) -> Option<&'static BuiltinKind> {
    kinds().iter().find(|row| row.kind == kind && row.group == group && row.version == version)
}

/// The row of a resource, by its plural.
pub fn resource(group: &str, version: &str, plural: &str) -> Option<&'static BuiltinKind> {
    kinds().iter().find(|row| row.plural == plural && row.group == group && row.version == version)
}

/// The type of a built-in kind's objects; also of kinds that only subresources speak, such as
/// `Scale`, and of list kinds.
pub fn definition_of(gvk: &Gvk) -> Option<&'static Definition> {
    definition(&definition_name(&gvk.group, &gvk.version, &gvk.kind)?)
}
