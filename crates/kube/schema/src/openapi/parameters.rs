//! Path and query parameters of operations.
//!
//! `parameters.txt` has one line for each parameter of the API: name, type and description, separated
//! by blanks, with `\n` for a line break. If a name has several meanings, the kind of the options
//! precedes it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The location of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Location {
    /// In the path; such a parameter is always required.
    Path,
    /// In the query.
    Query,
}

impl Location {
    /// The value of `in`.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
        }
    }
}

/// A parameter of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) location: Location,
    /// `string`, `integer` or `boolean`.
    pub(super) kind: &'static str,
    pub(super) description: Cow<'static, str>,
}

/// Parameters of lists and watches.
pub(super) const LIST: [&str; 10] = [
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
];
/// Parameters of deletions.
pub(super) const DELETE: [&str; 5] = [
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
];
/// Parameters of create and replace.
pub(super) const WRITE: [&str; 3] = ["dryRun", "fieldManager", "fieldValidation"];
/// Parameters of patch.
pub(super) const PATCH: [&str; 4] = ["dryRun", "patch.fieldManager", "fieldValidation", "force"];

type Row = (&'static str, Cow<'static, str>);

/// The rows by the first word of the line.
static ROWS: LazyLock<BTreeMap<&'static str, Row>> = LazyLock::new(|| {
    let lines = include_str!("parameters.txt").lines();
    lines
        .filter_map(|line| {
            let (key, rest) = line.split_once(' ')?;
            let (kind, text) = rest.split_once(' ')?;
            let text = if text.contains('\\') {
                Cow::Owned(text.replace("\\n", "\n").replace("\\\\", "\\"))
            } else {
                Cow::Borrowed(text)
            };
            Some((key, (kind, text)))
        })
        .collect()
});

/// The query parameter of a row, if it exists.
pub(super) fn query(key: &str) -> Option<Parameter> {
    let (key, (kind, text)) = ROWS.get_key_value(key)?;
    Some(from_row(key, kind, text.clone()))
}

/// The query parameters of options of a kind, such as `PodLogOptions`.
pub(super) fn options(kind: &str) -> impl Iterator<Item = Parameter> {
    ROWS.iter()
        .filter(move |(key, _)| key.split_once('.').is_some_and(|(owner, _)| owner == kind))
        .map(|(key, (kind, text))| from_row(key, kind, text.clone()))
}

fn from_row(key: &'static str, kind: &'static str, description: Cow<'static, str>) -> Parameter {
    let name = key.rsplit_once('.').map_or(key, |parts| parts.1);
    Parameter { name, location: Location::Query, kind, description }
}

/// A parameter of the path.
pub(super) fn path(name: &'static str, description: impl Into<Cow<'static, str>>) -> Parameter {
    Parameter { name, location: Location::Path, kind: "string", description: description.into() }
}
