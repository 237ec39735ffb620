//! Comparison of two walks of a namespace: as it is, and as it is supposed to be.

use crate::walk::{NamespaceWalk, OperatorPath, WalkEnd};
use std::fmt;

/// A row of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalkDifference {
    /// The package, the Subscription or the ClusterExtension.
    pub subject: String,
    /// Its path as it is; none if it does not exist.
    pub before: Option<String>,
    /// Its path as it is supposed to be; none if it does not exist.
    pub after: Option<String>,
}

/// The differences between two walks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WalkComparison {
    /// The paths that differ.
    pub differences: Vec<WalkDifference>,
    /// The number of paths that are the same.
    pub same: usize,
}

/// The path of an operator in a few words: the first and the last version, and the end.
pub struct PathSummary<'a>(pub &'a OperatorPath);

impl fmt::Display for PathSummary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(path) = self;
        let names: Vec<&str> = path
            .installed
            .as_deref()
            .into_iter()
            .chain(path.hops.iter().map(|hop| &*hop.bundle))
            .collect();
        match names.as_slice() {
            [] => f.write_str("nothing")?,
            [one] if path.hops.is_empty() => write!(f, "{one} stays")?,
            [one] => f.write_str(one)?,
            [first, second] => write!(f, "{first} → {second}")?,
            [first, .., last] => write!(f, "{first} → … → {last} ({} hops)", names.len() - 1)?,
        }
        f.write_str(match &path.end {
            WalkEnd::Failed => ", fails",
            WalkEnd::Held { .. } => ", held there",
            WalkEnd::Cut { .. } => ", not followed further",
            WalkEnd::Stranded { .. } | WalkEnd::Outside => ", stranded there",
            WalkEnd::Unsubscribed => ", without a Subscription",
            WalkEnd::Head | WalkEnd::Unknown => "",
        })
    }
}

/// Compares two walks of one namespace.
pub fn compare(before: &NamespaceWalk, after: &NamespaceWalk) -> WalkComparison {
    let (mut old, new) = (rows(before), rows(after));
    let mut comparison = WalkComparison::default();
    for (subject, after) in new {
        let Some(at) = old.iter().position(|(other, _)| *other == subject) else {
            comparison.differences.push(WalkDifference {
                subject,
                before: None,
                after: Some(after),
            });
            continue;
        };
        let (_, before) = old.remove(at);
        if before == after {
            comparison.same += 1;
        } else {
            let (before, after) = (Some(before), Some(after));
            comparison.differences.push(WalkDifference { subject, before, after });
        }
    }
    let removed = old.into_iter();
    comparison.differences.extend(removed.map(|(subject, before)| WalkDifference {
        subject,
        before: Some(before),
        after: None,
    }));
    comparison
}

/// The subjects of a walk, each with its path in a few words.
fn rows(walk: &NamespaceWalk) -> Vec<(String, String)> {
    let mut rows: Vec<(String, String)> = walk
        .operators
        .iter()
        .map(|path| (path.package.clone(), PathSummary(path).to_string()))
        .collect();
    for failure in &walk.outcome.failures {
        for name in &failure.subscriptions {
            let has = |path: &OperatorPath| path.subscriptions.contains(name);
            if !walk.operators.iter().any(has) {
                let state = if walk.blocks(failure) { "fails" } else { "not known" };
                rows.push((format!("Subscription {name}"), state.to_owned()));
            }
        }
    }
    rows
}
