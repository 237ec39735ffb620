//! JSON as Go reads and writes its types.
//!
//! The names of generated roles, the hash labels on Deployments and roles, and the manifests inside
//! InstallPlans are made from the JSON of Go structs ([`encode`]): fields in the order of their
//! declaration, empty fields left out or written as the struct tags say, fields that the type does
//! not know dropped, quantities in canonical form. Clusters that were managed by the original carry
//! these names, so they have to come out the same.
//!
//! What Go's decoder says of a value that does not have its type, and where, is [`check`]'s to say:
//! what is wrong with a catalog, a bundle or a template is told in these words.
//!
//! Types are those of the table ([`crate::builtin`]), or declared where they are used
//! ([`DeclaredType`]): those of upstream's programs that no API has.

mod declared;
mod decode;
mod encode;
mod yaml;

pub use declared::{DeclaredStruct, DeclaredType};
pub use decode::{Mismatch, Step, TypeError, check, check_fields, check_object, check_struct};
pub use encode::{Names, encode, encode_fields, encode_list};
pub use yaml::texts_where_expected;

use mainstay_gocompat::json::is_same_field;
use serde_json::{Map, Value};

/// A field as Go finds it: by its exact name, or else in any case; the last one counts. A null is
/// "not set".
pub fn field_in_any_case<'v>(fields: &'v Map<String, Value>, name: &str) -> Option<&'v Value> {
    if let Some(found) = fields.get(name).filter(|found| !found.is_null()) {
        return Some(found);
    }
    let in_any_case =
        |(key, value): &(&String, &Value)| is_same_field(key, name) && !value.is_null();
    fields.iter().rfind(in_any_case).map(|(_, value)| value)
}
