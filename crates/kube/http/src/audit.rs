//! Audit annotations: what handlers add to the audit event of their request.

use std::collections::BTreeMap;

/// The annotations of a request's audit events, by name. A response carries them to the audit log
/// as an extension; clients do not see them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditAnnotations(pub BTreeMap<String, String>);
