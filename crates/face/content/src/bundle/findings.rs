//! Findings about bundles: each one once, sorted by file and line.

use crate::validation::Finding;
use mainstay_bundle::validate::FindingLevel;
use mainstay_catalog::Severity;
use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash, Hasher},
};

/// The severity of a validator's finding.
pub(super) const fn severity(level: FindingLevel) -> Severity {
    match level {
        FindingLevel::Error => Severity::Error,
        FindingLevel::Warning => Severity::Warning,
    }
}

/// The identity of a finding: its file, line, message and severity.
fn identity(finding: &Finding) -> (&str, Option<usize>, &str, Severity) {
    (&finding.file, finding.line, &finding.message, finding.severity)
}

fn hash(finding: &Finding) -> u64 {
    let mut hasher = DefaultHasher::new();
    identity(finding).hash(&mut hasher);
    hasher.finish()
}

/// A set of findings.
#[derive(Default)]
pub(super) struct Findings {
    list: Vec<Finding>,
    /// Hashes of the findings' identities.
    hashes: HashSet<u64>,
}

impl Findings {
    /// Adds a finding.
    pub(super) fn add(&mut self, finding: Finding) {
        self.hashes.insert(hash(&finding));
        self.list.push(finding);
    }

    /// Adds a finding unless an equal one exists.
    pub(super) fn add_new(&mut self, finding: Finding) {
        let is_known = self.hashes.contains(&hash(&finding))
            && self.list.iter().any(|known| identity(known) == identity(&finding));
        if !is_known {
            self.add(finding);
        }
    }

    /// The findings, sorted by file and line.
    pub(super) fn into_sorted(mut self) -> Vec<Finding> {
        self.list.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
        self.list
    }
}
