//! Argument parsers: the syntax of `--catalog`, `--priority` and `--what-if`.

use mainstay_cause::Cause;
use mainstay_command::cluster::EXTENSION_KINDS;
use mainstay_gocompat::quote;
use mainstay_version::{ParseVersionError, Version, parse_tolerant};
use mainstay_whatif::{
    FolderOverride, PackageRequest, ParseChangeError, PriorityOverride, WhatIfChange,
};
use std::str::FromStr;

/// An argument cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ArgumentError {
    /// The text is not `[NAMESPACE/]NAME=DIR`.
    #[error("write it as NAME=DIR or NAMESPACE/NAME=DIR")]
    SplitCatalogFolder,
    /// The text is not `[NAMESPACE/]NAME=N`.
    #[error("write it as NAME=NUMBER, such as mine=100")]
    SplitCatalogPriority,
    /// The text is not `KIND=VALUE`.
    #[error(
        "write it as KIND=VALUE; kinds are subscribe, unsubscribe, catalog, outage, installed, prohibit and kube-version"
    )]
    SplitChange,
    /// There is no such kind of change.
    #[error(
        "{} is not a kind of change; kinds are subscribe, unsubscribe, catalog, outage, installed, prohibit and kube-version",
        quote(kind)
    )]
    UnknownChange {
        /// The kind.
        kind: String,
    },
    /// The text names no catalog and no package.
    #[error(transparent)]
    ParseRequest(#[from] ParseChangeError),
    /// The text cannot name a namespace.
    #[error(
        "{} cannot name a namespace: write it in lower case letters, digits and `-`, up to 63 characters",
        quote(text)
    )]
    ParseNamespace {
        /// The text.
        text: String,
    },
    /// The text is no version of Kubernetes.
    #[error("{} is not a version: {source}", quote(text))]
    ParseKubeVersion {
        /// The text.
        text: String,
        /// Why not.
        source: ParseVersionError,
    },
}

/// Reads `[NAMESPACE/]NAME=DIR`.
pub(super) fn catalog_folder(text: &str) -> Result<FolderOverride, ArgumentError> {
    let (name, folder) = text
        .split_once('=')
        .filter(|(_, folder)| !folder.is_empty())
        .ok_or(ArgumentError::SplitCatalogFolder)?;
    Ok(FolderOverride { name: name.parse()?, folder: folder.to_owned() })
}

/// Reads `[NAMESPACE/]NAME=N`.
pub(super) fn catalog_priority(text: &str) -> Result<PriorityOverride, ArgumentError> {
    let parsed = text.split_once('=').and_then(|(name, number)| Some((name, number.parse().ok()?)));
    let (name, priority) = parsed.ok_or(ArgumentError::SplitCatalogPriority)?;
    Ok(PriorityOverride { name: name.parse()?, priority })
}

/// What is resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ResolveTarget {
    /// A package to subscribe to.
    Package(PackageRequest),
    /// The ClusterExtension of a name.
    Extension(String),
}

impl FromStr for ResolveTarget {
    type Err = ParseChangeError;

    fn from_str(text: &str) -> Result<Self, ParseChangeError> {
        match text.split_once('/') {
            Some((kind, name)) if EXTENSION_KINDS.contains(&&*kind.to_lowercase()) => {
                Ok(Self::Extension(name.to_owned()))
            }
            _ => text.parse().map(Self::Package),
        }
    }
}

/// A supposed change and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ChangeArgument {
    /// The text.
    pub(super) text: String,
    pub(super) change: WhatIfChange,
}

impl FromStr for ChangeArgument {
    type Err = ArgumentError;

    fn from_str(text: &str) -> Result<Self, ArgumentError> {
        let (kind, value) = text
            .split_once('=')
            .filter(|(_, value)| !value.is_empty())
            .ok_or(ArgumentError::SplitChange)?;
        let change = match kind {
            "subscribe" => WhatIfChange::Subscribe(value.parse()?),
            "unsubscribe" => match value.split_once('/') {
                Some((namespace, name)) => WhatIfChange::Unsubscribe {
                    namespace: Some(namespace.to_owned()),
                    name: name.to_owned(),
                },
                None => WhatIfChange::Unsubscribe { namespace: None, name: value.to_owned() },
            },
            "catalog" => WhatIfChange::ReplaceContent(catalog_folder(value)?),
            "outage" => WhatIfChange::Outage(value.parse()?),
            "installed" => WhatIfChange::Install(value.to_owned()),
            "prohibit" => WhatIfChange::Prohibit(value.to_owned()),
            "kube-version" => WhatIfChange::KubeVersion(kube_version(value)?),
            _ => return Err(ArgumentError::UnknownChange { kind: kind.to_owned() }),
        };
        Ok(Self { text: text.to_owned(), change })
    }
}

/// Reads the name of a namespace.
pub(super) fn namespace(text: &str) -> Result<String, ArgumentError> {
    let is_allowed = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '-';
    let ends = text.starts_with('-') || text.ends_with('-');
    if text.is_empty() || text.len() > 63 || ends || !text.chars().all(is_allowed) {
        return Err(ArgumentError::ParseNamespace { text: text.to_owned() });
    }
    Ok(text.to_owned())
}

/// Reads a version of Kubernetes, such as `1.35`, `v1.35.2`.
pub(super) fn kube_version(text: &str) -> Result<Version, ArgumentError> {
    parse_tolerant(text)
        .map_err(|source| ArgumentError::ParseKubeVersion { text: text.to_owned(), source })
}

/// The cause that an argument cannot be used.
pub(super) fn unusable(argument: &str, why: impl Into<String>) -> Cause {
    Cause::new(format!("`{argument}` cannot be used")).because(Cause::new(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_has_a_kind() {
        let change = |text: &str| text.parse::<ChangeArgument>().map(|argument| argument.change);
        assert!(matches!(change("catalog=shop=./dir"), Ok(WhatIfChange::ReplaceContent(_))));
        assert!(matches!(change("kube-version=1.30"), Ok(WhatIfChange::KubeVersion(_))));
        for text in ["tea", "subscribe=", "buy=tea", "catalog=shop", "kube-version=new"] {
            assert!(change(text).is_err(), "{text}");
        }
    }
}
