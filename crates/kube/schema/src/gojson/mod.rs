//! Go's `encoding/json` for Go types: encoding, and type errors of decoding.
//!
//! OLM hashes the JSON of Go structs for the names of generated roles and the hash labels of
//! Deployments and roles, and stores it in InstallPlans. [`encode`] must write the same bytes, because
//! clusters that upstream managed have these names. Fields are in the order of declaration, the struct
//! tags decide on empty fields, unknown fields are dropped, and quantities are canonical.
//!
//! [`check`] returns Go's error for a value of a wrong type. Errors of catalogs, bundles and templates
//! have these messages.
//!
//! Types are those of the table ([`crate::builtin`]), or declared where they are used
//! ([`DeclaredType`]): types of upstream's programs that are not part of an API.

mod declared;
mod decode;
mod encode;
mod yaml;

pub use declared::{DeclaredStruct, DeclaredType};
pub use decode::{
    Mismatch, TypeError, ValuePathStep, check, check_fields, check_object, check_struct,
};
pub use encode::{NameMatching, encode, encode_fields, encode_list};
pub use yaml::convert_scalars_to_text;

use mainstay_gocompat::json::is_same_field;
use serde_json::{Map, Value};

/// A field as Go finds it: by its exact name, or else the last one in any case. A null counts as
/// absent.
pub fn field_in_any_case<'v>(fields: &'v Map<String, Value>, name: &str) -> Option<&'v Value> {
    if let Some(found) = fields.get(name).filter(|found| !found.is_null()) {
        return Some(found);
    }
    let in_any_case =
        |(key, value): &(&String, &Value)| is_same_field(key, name) && !value.is_null();
    fields.iter().rfind(in_any_case).map(|(_, value)| value)
}
