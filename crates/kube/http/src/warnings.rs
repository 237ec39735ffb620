//! Warnings for the client and annotations for the audit log, collected while a request is handled.

use crate::AuditAnnotations;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The warnings of a response, for a successful or failed request. The handler and the code that
/// writes the response share them; the lock is held only while a text is added.
#[derive(Clone, Debug, Default)]
pub struct Warnings(Arc<Mutex<WarningsAndAnnotations>>);

/// The warnings and audit annotations of a response.
#[derive(Debug, Default)]
struct WarningsAndAnnotations {
    warnings: Vec<String>,
    /// The same warnings, to find duplicates.
    unique: HashSet<String>,
    annotations: AuditAnnotations,
}

impl Warnings {
    fn lock(&self) -> MutexGuard<'_, WarningsAndAnnotations> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a warning, unless it is present.
    pub fn add(&self, text: String) {
        let mut collected = self.lock();
        if !collected.unique.contains(&text) {
            collected.unique.insert(text.clone());
            collected.warnings.push(text);
        }
    }

    /// Adds an annotation of the audit event, unless one has its name; clients do not see it.
    pub fn annotate(&self, name: String, value: String) {
        self.lock().annotations.0.entry(name).or_insert(value);
    }

    /// Takes the warnings.
    pub fn take(&self) -> Vec<String> {
        let mut collected = self.lock();
        collected.unique.clear();
        std::mem::take(&mut collected.warnings)
    }

    /// Takes the audit annotations.
    pub fn take_annotations(&self) -> AuditAnnotations {
        std::mem::take(&mut self.lock().annotations)
    }
}
