//! Conversion of objects in memory to Go types, as Kubernetes' unstructured converter does it.
//!
//! The converter differs from the decoder of JSON texts: it stops at the first value of a wrong
//! type, names no location, and matches field names case-sensitively.

use crate::{decode_error::FromUnstructuredError, types};
use mainstay_schema::{builtin, strict};
use serde_json::Value;

/// Converts a ClusterServiceVersion to its type.
///
/// # Errors
/// The first value of a wrong type.
pub(super) fn csv(value: &mut Value) -> Result<(), FromUnstructuredError> {
    kube(value, types::CSV_V1ALPHA1)
}

/// Converts a CustomResourceDefinition to its type, which is that of `v1` for all.
///
/// # Errors
/// The first value of a wrong type.
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
