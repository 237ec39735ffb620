//! OpenAPI v3 documents. (being filled)
use crate::crd;
use serde_json::Value;

/// The document of one group-version: its built-in kinds and those of the CRDs given.
/// None if neither has any.
pub fn document(_group: &str, _version: &str, _crds: &[&crd::Definition]) -> Option<Value> {
    todo!()
}

/// The hash in the index of documents: changes exactly when the document may have changed, and is
/// computed without making the document.
pub fn hash(_group: &str, _version: &str, _crds: &[&crd::Definition]) -> String {
    todo!()
}
