//! Findings: what is reported, where it is in the CRD, and what else is known about it.

use crate::config::{Check, Enforcement};
use crate::crd::Crd;
use crate::evidence::Usage;
use crate::flatten::Step;
use crate::impact::Impact;

/// What a finding is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingScope {
    /// The whole CRD.
    Crd,
    /// A version that both CRDs have.
    SameVersion(String),
    /// Two served versions of the new CRD.
    ServedVersions {
        /// The older version.
        older: String,
        /// The newer version.
        newer: String,
    },
}

/// Whether a finding refuses an upgrade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingSeverity {
    /// The upgrade is refused.
    Error,
    /// The upgrade passes.
    Warning,
}

/// A change that a check reports.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The check.
    pub check: Check,
    /// What it is about.
    pub scope: FindingScope,
    /// The path of the property: `^.spec.x`.
    pub path: Option<String>,
    /// The version of a removed field, whose finding is about the whole CRD.
    pub version: Option<String>,
    /// The text of upstream.
    pub text: String,
    /// What the configuration makes of it.
    pub severity: FindingSeverity,
    /// What it does to stored objects and to clients.
    pub impact: Impact,
    /// Why, in one sentence.
    pub reason: String,
    /// What would mend it.
    pub remedy: String,
    /// Where the values of the property are in an object.
    pub(crate) steps: Vec<Step>,
    /// Whether rules in CEL changed.
    pub(crate) changes_rules: bool,
}

/// A step from a CRD to a node in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CrdPathStep {
    /// The value of a field.
    Field(String),
    /// The item of a list, from 0.
    Item(usize),
}

impl Finding {
    /// The version whose objects the finding is about: the older one of a pair. None for the whole CRD.
    pub fn object_version(&self) -> Option<&str> {
        match &self.scope {
            FindingScope::Crd => self.version.as_deref(),
            FindingScope::SameVersion(version) => Some(version),
            FindingScope::ServedVersions { older, .. } => Some(older),
        }
    }

    /// The node of the new CRD that the finding is about. Where it is gone, the deepest node on this
    /// path is the one to look at.
    pub fn position(&self, new: &Crd) -> Vec<CrdPathStep> {
        let field = |name: &str| CrdPathStep::Field(name.to_owned());
        let mut path = vec![field("spec")];
        let version = match &self.scope {
            FindingScope::Crd => self.version.as_deref(),
            FindingScope::SameVersion(version) => Some(version.as_str()),
            FindingScope::ServedVersions { newer, .. } => Some(newer.as_str()),
        };
        let at = version.and_then(|name| new.versions().position(|version| version == name));
        let Some(at) = at else {
            path.push(field(if self.check == Check::Scope { "scope" } else { "versions" }));
            return path;
        };
        path.extend([
            field("versions"),
            CrdPathStep::Item(at),
            field("schema"),
            field("openAPIV3Schema"),
        ]);
        for step in &self.steps {
            match step {
                Step::Property(name) => path.extend([field("properties"), field(name)]),
                Step::Items => path.push(field("items")),
                Step::Values => path.push(field("additionalProperties")),
                Step::Item(_) | Step::Branch | Step::Other => break,
            }
        }
        path
    }

    /// Takes evidence into account: what no stored object uses is not broken by an upgrade.
    pub fn weigh(&mut self, usage: &Usage) {
        if usage.affected == 0 && self.impact == Impact::Breaking {
            self.impact = Impact::Warning;
        }
    }
}

/// Overrides what the findings of a check are: dropped, at most warnings, or errors that break.
pub fn override_check(findings: &mut Vec<Finding>, check: Check, enforcement: Enforcement) {
    if enforcement == Enforcement::None {
        findings.retain(|finding| finding.check != check);
    }
    for finding in findings.iter_mut().filter(|finding| finding.check == check) {
        if enforcement == Enforcement::Warn {
            finding.severity = FindingSeverity::Warning;
            finding.impact = finding.impact.min(Impact::Warning);
        } else {
            finding.severity = FindingSeverity::Error;
            finding.impact = Impact::Breaking;
        }
    }
}
