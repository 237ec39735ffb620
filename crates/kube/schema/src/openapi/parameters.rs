//! What operations take in path and query.
//!
//! Names, types and descriptions are those of the API: `parameters.txt` has one line for each, the
//! name before a blank, the type before another, then the text with `\n` for a line break. Where a
//! name means different things, the kind of the options stands before it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Where a parameter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the path; then it is always required.
    Path,
    /// Behind the question mark.
    Query,
}

impl Place {
    /// The word in documents.
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
    pub(super) place: Place,
    /// `string`, `integer` or `boolean`.
    pub(super) kind: &'static str,
    pub(super) description: Cow<'static, str>,
}

/// Of lists and watches.
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
/// Of deletions.
pub(super) const DELETE: [&str; 5] = [
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
];
/// Of creating and replacing.
pub(super) const WRITE: [&str; 3] = ["dryRun", "fieldManager", "fieldValidation"];
/// Of patching.
pub(super) const PATCH: [&str; 4] = ["dryRun", "patch.fieldManager", "fieldValidation", "force"];

type Row = (&'static str, Cow<'static, str>);

/// By the first word of the line.
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

/// The query parameter of a line; none if there is no such line.
pub(super) fn query(key: &str) -> Option<Parameter> {
    let (key, (kind, text)) = ROWS.get_key_value(key)?;
    Some(of_row(key, kind, text.clone()))
}

/// The query parameters of options of a kind, such as `PodLogOptions`.
pub(super) fn options(kind: &str) -> impl Iterator<Item = Parameter> {
    ROWS.iter()
        .filter(move |(key, _)| key.split_once('.').is_some_and(|(owner, _)| owner == kind))
        .map(|(key, (kind, text))| of_row(key, kind, text.clone()))
}

fn of_row(key: &'static str, kind: &'static str, description: Cow<'static, str>) -> Parameter {
    let name = key.rsplit_once('.').map_or(key, |parts| parts.1);
    Parameter { name, place: Place::Query, kind, description }
}

/// A parameter of the path.
pub(super) fn path(name: &'static str, description: impl Into<Cow<'static, str>>) -> Parameter {
    Parameter { name, place: Place::Path, kind: "string", description: description.into() }
}
