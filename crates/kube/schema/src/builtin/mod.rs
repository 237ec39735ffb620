//! Built-in kinds of Kubernetes 1.35: rows for discovery, and definitions of their Go types.
//!
//! The rows are constants ([`kinds`]). The types ([`definition`]) come from one generated table. The
//! binary has it compressed, in one part for the types and one for the descriptions of each Go
//! package. The first use of a type decompresses its part, so unused packages cost nothing.

mod go_name;
mod kinds;
pub(crate) mod table;
mod text;
pub(crate) mod texts;

pub use go_name::go_type_name;
pub use kinds::{BuiltinKind, BuiltinSubresource, SubresourceKind};
pub use table::{
    FieldDefinition, FieldType, JsonForm, ListType, OmitRule, TypeDefinition, TypeReference,
    definition, definition_name,
};
pub use text::{KubernetesReleaseError, ParseTextError, parse_text};

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

/// The type of a built-in kind's objects, also of list kinds and of kinds that only subresources
/// have, such as `Scale`.
pub fn definition_of(gvk: &Gvk) -> Option<&'static TypeDefinition> {
    definition(&definition_name(&gvk.group, &gvk.version, &gvk.kind)?)
}
