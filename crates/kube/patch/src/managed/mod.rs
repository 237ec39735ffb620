//! Who owns which field: `metadata.managedFields` as a Kubernetes API keeps them.

mod name;

pub use name::{MAX_NAME, name_errors, name_of_agent};
