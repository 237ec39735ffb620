//! From values to upstream's types, as its converter of values in memory does it.
//!
//! It differs from the decoder of JSON texts (`shape.rs`): it stops at the first value that does not
//! fit, says no place, and takes names of fields in one case only.

use crate::{decode_error::FromUnstructuredError, types};
use mainstay_schema::{builtin, strict};
use serde_json::Value;

/// Gives a ClusterServiceVersion the form of its type.
///
/// # Errors
/// The first value that does not fit.
pub(super) fn csv(value: &mut Value) -> Result<(), FromUnstructuredError> {
    kube(value, types::CSV_V1ALPHA1)
}

/// Gives a custom resource definition the form of its type, which is that of `v1` for all.
///
/// # Errors
/// The first value that does not fit.
pub(super) fn definition(value: &mut Value) -> Result<(), FromUnstructuredError> {
    kube(value, types::CRD_V1)
}

fn kube(value: &mut Value, name: &str) -> Result<(), FromUnstructuredError> {
    match builtin::definition(name) {
        Some(definition) => strict::decode_merged(definition, value)
            .map(drop)
            .map_err(FromUnstructuredError::DecodeKubernetes),
        None => Ok(()),
    }
}
