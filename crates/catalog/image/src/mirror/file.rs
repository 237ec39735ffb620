//! Mirror rules of a file: `registries.conf`, version 2.

use super::{Mirror, MirrorRule, MirrorRules, PullScope};
use crate::reference;
use serde::Deserialize;

/// Why a `registries.conf` is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// The file is not TOML, or a field has the wrong type.
    #[error("it is not valid: {0}")]
    Toml(String),
    /// The file is of version 1.
    #[error("it is of version 1, which is no longer supported; write [[registry]] tables")]
    Old,
    /// A location is invalid.
    #[error("{0:?} is not a location: write a registry, perhaps with a folder, without https://")]
    Location(String),
    /// A table has no prefix and no location.
    #[error("a [[registry]] has neither prefix nor location")]
    Nameless,
    /// A wildcard is in the wrong place.
    #[error("{0:?} is not a prefix: * stands for what is before a domain, as in *.example.com")]
    Wildcard(String),
    /// `pull-from-mirror` has an unknown value.
    #[error("pull-from-mirror is {0:?}, and must be all, digest-only or tag-only")]
    Pulls(String),
    /// A table has `mirror-by-digest-only` and `pull-from-mirror`.
    #[error(
        "the registry {0:?} has mirror-by-digest-only, so its mirrors cannot have pull-from-mirror"
    )]
    Twice(String),
    /// A prefix has two different tables.
    #[error("the prefix {0:?} has two [[registry]] tables that differ")]
    Conflict(String),
    /// A mirror has no location.
    #[error("a mirror of {0:?} has no location")]
    Mirror(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct File {
    #[serde(default)]
    unqualified_search_registries: Vec<String>,
    #[serde(default)]
    registry: Vec<Table>,
    registries: Option<toml::Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Table {
    #[serde(default)]
    prefix: String,
    #[serde(default)]
    location: String,
    #[serde(default)]
    insecure: bool,
    #[serde(default)]
    blocked: bool,
    #[serde(default)]
    mirror_by_digest_only: bool,
    #[serde(default)]
    mirror: Vec<MirrorTable>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct MirrorTable {
    #[serde(default)]
    location: String,
    #[serde(default)]
    insecure: bool,
    pull_from_mirror: Option<String>,
}

/// Checks that a text is a registry, with an optional path.
pub(super) fn location(text: &str) -> Result<String, FileError> {
    let text = text.trim_end_matches('/');
    let wrong = || FileError::Location(text.to_owned());
    let (domain, path) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
    let path = path.unwrap_or("a").split('@').next().unwrap_or_default();
    let path = path.split(':').next().unwrap_or_default();
    if reference::is_domain(domain) && path.split('/').all(reference::is_component) {
        Ok(text.to_owned())
    } else {
        Err(wrong())
    }
}

/// Checks a prefix: a location, or `*.` and a domain.
fn prefix(text: &str) -> Result<String, FileError> {
    match text.strip_prefix("*.") {
        Some(domain) if reference::is_domain(domain) && !domain.contains(':') => {
            Ok(text.to_owned())
        }
        Some(_) => Err(FileError::Wildcard(text.to_owned())),
        None if text.contains('*') => Err(FileError::Wildcard(text.to_owned())),
        None => location(text),
    }
}

/// Parses a file.
pub fn from_toml(text: &str) -> Result<MirrorRules, FileError> {
    let file: File =
        toml::from_str(text).map_err(|error| FileError::Toml(error.message().to_owned()))?;
    if file.registries.is_some() {
        return Err(FileError::Old);
    }
    let mut rules: Vec<MirrorRule> = Vec::new();
    for table in file.registry {
        let rule = rule(table)?;
        match rules.iter().find(|known| known.prefix == rule.prefix) {
            Some(known) if *known == rule => {}
            Some(_) => return Err(FileError::Conflict(rule.prefix)),
            None => rules.push(rule),
        }
    }
    Ok(MirrorRules { rules, search: file.unqualified_search_registries })
}

fn rule(table: Table) -> Result<MirrorRule, FileError> {
    let name = if table.prefix.is_empty() { &table.location } else { &table.prefix };
    if name.is_empty() {
        return Err(FileError::Nameless);
    }
    let prefix = prefix(name)?;
    let mut mirrors = Vec::new();
    for mirror in table.mirror {
        if mirror.location.is_empty() {
            return Err(FileError::Mirror(prefix));
        }
        let pulls = match mirror.pull_from_mirror.as_deref() {
            None | Some("" | "all") => PullScope::All,
            Some("digest-only") => PullScope::DigestOnly,
            Some("tag-only") => PullScope::TagOnly,
            Some(other) => return Err(FileError::Pulls(other.to_owned())),
        };
        if table.mirror_by_digest_only && mirror.pull_from_mirror.is_some_and(|one| !one.is_empty())
        {
            return Err(FileError::Twice(prefix));
        }
        let (location, insecure) = (location(&mirror.location)?, mirror.insecure);
        mirrors.push(Mirror { location, insecure, pulls });
    }
    // Without a location, and for a wildcard, the name stays unchanged.
    let location = match &*table.location {
        "" => String::new(),
        other if *other == prefix => String::new(),
        other => location(other)?,
    };
    Ok(MirrorRule {
        prefix,
        location,
        insecure: table.insecure,
        blocked: table.blocked,
        mirrors,
        digest_only: table.mirror_by_digest_only,
    })
}
