//! Comparison of two CRDs: the whole CRD, same versions, and served versions with each other.
//!
//! ```text
//! old, new ─┬─ scope, stored versions, removed fields ─────────────────────────┐
//!           ├─ each version that both have ── flatten ─► property pairs ─┐     │
//!           └─ served versions of the new one, older with newer ─────────┤     │
//!              (without what the old one's versions have, too)           ▼     ▼
//!                                                             checks ─► Finding (text, severity)
//!                                                             impact ─► Finding (impact, reason, remedy)
//! ```

use crate::checks::{Problem, compare_property, set_changes};
use crate::config::{Check, Configuration, ConversionPolicy, Enforcement};
use crate::crd::{Crd, CrdError, CrdVersion};
use crate::finding::{Finding, FindingScope, FindingSeverity};
use crate::flatten::{Property, flatten, own_schema};
use crate::go::{SCHEMA, Schema, field, has_address};
use crate::impact::{Assessment, Combinators, PropertyPair, assess, assess_removed_field};
use mainstay_gocompat::quote;
use mainstay_schema::crd::compare_versions;
use std::collections::{BTreeMap, BTreeSet};

/// Compares a CRD with the one that replaces it. Findings are sorted by scope, path, check and text.
///
/// # Errors
/// A version has no schema.
pub fn compare(
    old: &Crd,
    new: &Crd,
    configuration: &Configuration,
) -> Result<Vec<Finding>, CrdError> {
    let mut findings = Findings { configuration, found: Vec::new() };
    findings.compare_scope(old, new);
    findings.compare_stored_versions(old, new);
    for (old_version, new_version) in common_versions(old, new) {
        let (old, new) = (old.schema(old_version)?, new.schema(new_version)?);
        let properties = Properties::of(old, new);
        findings.add_removed_fields(&properties, &old_version.name);
        let scope = FindingScope::SameVersion(old_version.name.clone());
        for found in properties.problems(configuration) {
            findings.add_problem(&properties, &scope, found);
        }
    }
    findings.compare_served_versions(old, new)?;
    let mut found = findings.found;
    found.sort_by(|left, right| {
        let key = |finding: &Finding| (finding.scope.clone(), finding.path.clone(), finding.check);
        key(left).cmp(&key(right)).then_with(|| left.text.cmp(&right.text))
    });
    Ok(found)
}

fn common_versions<'c>(
    old: &'c Crd,
    new: &'c Crd,
) -> impl Iterator<Item = (&'c CrdVersion, &'c CrdVersion)> {
    old.versions.iter().filter_map(|version| Some((version, new.version(&version.name)?)))
}

/// The properties of two schemas.
struct Properties<'s> {
    old: BTreeMap<String, Property<'s>>,
    new: BTreeMap<String, Property<'s>>,
    combinators: Combinators,
}

/// A problem of the property with a path.
struct PropertyProblem {
    path: String,
    problem: Problem,
}

impl<'s> Properties<'s> {
    fn of(old: &'s Schema, new: &'s Schema) -> Self {
        Self { old: flatten(old), new: flatten(new), combinators: Combinators::default() }
    }

    /// The problems of all properties that the old schema has.
    fn problems(&self, configuration: &Configuration) -> Vec<PropertyProblem> {
        let mut found = Vec::new();
        for (path, property) in &self.old {
            let other = self.new.get(path).map(|other| other.view);
            let is_same = |index| other.is_some_and(|other| property.view.has_same(other, index));
            // Most properties did not change, and are not copied.
            if (0..SCHEMA.fields.len()).all(is_same) {
                continue;
            }
            let new = other.map(own_schema).unwrap_or_default();
            let problems = compare_property(&own_schema(property.view), &new, configuration);
            let with_path = |problem| PropertyProblem { path: path.clone(), problem };
            found.extend(problems.into_iter().map(with_path));
        }
        found
    }

    fn pair<'p>(&'p self, path: &'p str) -> Option<PropertyPair<'p>> {
        let old = self.old.get(path)?;
        Some(PropertyPair {
            path,
            old,
            new: self.new.get(path),
            all: (&self.old, &self.new),
            combinators: &self.combinators,
        })
    }
}

struct Findings<'a> {
    configuration: &'a Configuration,
    found: Vec<Finding>,
}

impl Findings<'_> {
    fn add(&mut self, scope: FindingScope, check: Check, text: String, assessment: Assessment) {
        let severity = match self.configuration.settings(check).enforcement {
            Enforcement::Error => FindingSeverity::Error,
            Enforcement::Warn => FindingSeverity::Warning,
            Enforcement::None => return,
        };
        let Assessment { impact, reason, remedy } = assessment;
        self.found.push(Finding {
            check,
            scope,
            path: None,
            version: None,
            text,
            severity,
            impact,
            reason,
            remedy,
            steps: Vec::new(),
            changes_rules: false,
        });
    }

    /// Adds a finding about a property.
    fn add_property(
        &mut self,
        scope: FindingScope,
        (check, text): (Check, String),
        pair: &PropertyPair<'_>,
        assessment: Assessment,
    ) {
        let count = self.found.len();
        self.add(scope, check, text, assessment);
        if let Some(finding) = self.found.get_mut(count) {
            finding.path = Some(pair.path.to_owned());
            finding.steps.clone_from(&pair.old.steps);
            finding.changes_rules =
                pair.new.is_some_and(|new| !pair.old.view.has_same(new.view, field::VALIDATIONS));
        }
    }

    fn add_problem(
        &mut self,
        properties: &Properties<'_>,
        scope: &FindingScope,
        found: PropertyProblem,
    ) {
        let PropertyProblem { path, problem: Problem { check, text } } = found;
        let Some(pair) = properties.pair(&path) else { return };
        let assessment = assess(check, &pair);
        self.add_property(scope.clone(), (check, text), &pair, assessment);
    }

    fn compare_scope(&mut self, old: &Crd, new: &Crd) {
        if old.scope == new.scope {
            return;
        }
        let text = format!("scope changed : {} -> {}", quote(&old.scope), quote(&new.scope));
        let assessment = Assessment::breaking(
            "the API server refuses the change, because stored objects cannot move into or out of namespaces",
            "keep the scope, or define a new kind with another name",
        );
        self.add(FindingScope::Crd, Check::Scope, text, assessment);
    }

    fn compare_stored_versions(&mut self, old: &Crd, new: &Crd) {
        let is_removed = |name: &&String| new.version(name).is_none();
        let removed: Vec<&str> =
            old.stored_versions.iter().filter(is_removed).map(String::as_str).collect();
        if removed.is_empty() {
            return;
        }
        let text = format!("stored versions removed : [{}]", removed.join(" "));
        let assessment = Assessment::breaking(
            "the API server refuses the change, because objects may be stored in the removed version",
            "keep the version with served: false, migrate the stored objects, and remove it from \
             status.storedVersions before the version itself",
        );
        self.add(FindingScope::Crd, Check::StoredVersionRemoval, text, assessment);
    }

    fn add_removed_fields(&mut self, properties: &Properties<'_>, version: &str) {
        let (old, new): (BTreeSet<&String>, BTreeSet<&String>) =
            (properties.old.keys().collect(), properties.new.keys().collect());
        let (removed, _) = set_changes(&old, &new);
        for path in removed {
            let Some(pair) = properties.pair(path) else { continue };
            let text = format!("removed field : {version}.{path}");
            let assessment = assess_removed_field(&pair);
            let count = self.found.len();
            self.add_property(
                FindingScope::Crd,
                (Check::ExistingFieldRemoval, text),
                &pair,
                assessment,
            );
            if let Some(finding) = self.found.get_mut(count) {
                finding.version = Some(version.to_owned());
            }
        }
    }

    fn compare_served_versions(&mut self, old: &Crd, new: &Crd) -> Result<(), CrdError> {
        if self.configuration.conversion == ConversionPolicy::Ignore && new.converts_by_webhook {
            return Ok(());
        }
        // What the old CRD's versions have, too, is not new.
        let mut known = BTreeSet::new();
        for (older, newer) in served_pairs(old) {
            let properties = Properties::of(old.schema(older)?, old.schema(newer)?);
            for PropertyProblem { path, problem } in properties.problems(self.configuration) {
                // Upstream finds a text with addresses again never.
                if has_address(&problem.text) {
                    continue;
                }
                let names = (older.name.clone(), newer.name.clone());
                known.insert((names, path, problem.check, problem.text));
            }
        }
        for (older, newer) in served_pairs(new) {
            let names = (older.name.clone(), newer.name.clone());
            let scope =
                FindingScope::ServedVersions { older: names.0.clone(), newer: names.1.clone() };
            let properties = Properties::of(new.schema(older)?, new.schema(newer)?);
            for found in properties.problems(self.configuration) {
                let Problem { check, text } = &found.problem;
                let key = (names.clone(), found.path.clone(), *check, text.clone());
                if !known.contains(&key) {
                    self.add_problem(&properties, &scope, found);
                }
            }
        }
        Ok(())
    }
}

/// The pairs of served versions, the older one first in each.
fn served_pairs(crd: &Crd) -> Vec<(&CrdVersion, &CrdVersion)> {
    let mut served: Vec<&CrdVersion> =
        crd.versions.iter().filter(|version| version.is_served).collect();
    served.sort_by(|left, right| compare_versions(&left.name, &right.name));
    let mut pairs = Vec::new();
    for (at, older) in served.iter().enumerate() {
        pairs.extend(served[at + 1..].iter().map(|newer| (*older, *newer)));
    }
    pairs
}
