#![expect(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "in tests a panic is the report, and tables give values away"
)]
//! Quotas and limit ranges, by tables.

mod limits;
mod quotas;

use mainstay_object::Object;
use serde_json::Value;

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}
