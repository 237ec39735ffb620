//! Warnings for the client and annotations for the audit log, gathered while a request is handled.

use crate::AuditAnnotations;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the client is to be warned of, whether its request is granted or refused. Shared by the
/// handler and whoever writes the answer; held for no longer than it takes to add a text.
#[derive(Clone, Debug, Default)]
pub struct Warnings(Arc<Mutex<Gathered>>);

/// What accompanies a response.
#[derive(Debug, Default)]
struct Gathered {
    warnings: Vec<String>,
    /// The same, to find them.
    known: HashSet<String>,
    annotations: AuditAnnotations,
}

impl Warnings {
    fn gathered(&self) -> MutexGuard<'_, Gathered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a text, unless it is there.
    pub fn add(&self, text: String) {
        let mut gathered = self.gathered();
        if !gathered.known.contains(&text) {
            gathered.known.insert(text.clone());
            gathered.warnings.push(text);
        }
    }

    /// Adds an annotation of the audit event, unless its name has one; clients do not see it.
    pub fn annotate(&self, name: String, value: String) {
        self.gathered().annotations.0.entry(name).or_insert(value);
    }

    /// Takes the texts.
    pub fn take(&self) -> Vec<String> {
        let mut gathered = self.gathered();
        gathered.known.clear();
        std::mem::take(&mut gathered.warnings)
    }

    /// Takes the audit annotations.
    pub fn take_annotations(&self) -> AuditAnnotations {
        std::mem::take(&mut self.gathered().annotations)
    }
}
