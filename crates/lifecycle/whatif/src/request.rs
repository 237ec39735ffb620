//! Requests and supposed changes: packages to subscribe to, names of catalogs, and what a what-if
//! input changes.

use mainstay_gocompat::quote;
use mainstay_resolver::CatalogKey;
use mainstay_version::Version;
use std::fmt;
use std::str::FromStr;

/// Why a text is not a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseChangeError {
    /// The text does not name a catalog.
    #[error(
        "{} cannot name a catalog: write it as NAME or NAMESPACE/NAME, in lower case letters, digits, `-` and `.`",
        quote(.0)
    )]
    ParseCatalogName(String),
    /// The text does not name a package.
    #[error("{} is not [CATALOG/]PACKAGE[:CHANNEL][@VERSION]", quote(.0))]
    ParsePackage(String),
}

/// The name of a catalog as users write it: `NAME`, or `NAMESPACE/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogName {
    /// The namespace, where the user wrote one.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

impl CatalogName {
    /// Whether the name means this catalog.
    pub fn matches(&self, key: &CatalogKey) -> bool {
        self.name == key.name
            && self.namespace.as_ref().is_none_or(|namespace| *namespace == key.namespace)
    }
}

impl FromStr for CatalogName {
    type Err = ParseChangeError;

    fn from_str(text: &str) -> Result<Self, ParseChangeError> {
        let (namespace, name) = match text.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, text),
        };
        for part in namespace.into_iter().chain([name]) {
            let is_allowed = |sign: char| {
                sign.is_ascii_lowercase() || sign.is_ascii_digit() || matches!(sign, '-' | '.')
            };
            if part.is_empty() || part.len() > 253 || !part.chars().all(is_allowed) {
                return Err(ParseChangeError::ParseCatalogName(text.to_owned()));
            }
        }
        Ok(Self { namespace: namespace.map(str::to_owned), name: name.to_owned() })
    }
}

impl fmt::Display for CatalogName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// A folder with the content of a catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderOverride {
    /// The catalog.
    pub name: CatalogName,
    /// The folder of a file-based catalog, relative to the base of a [`FolderCache`](crate::FolderCache).
    pub folder: String,
}

/// A priority that counts instead of the one that a CatalogSource or a ClusterCatalog has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriorityOverride {
    /// The catalog.
    pub name: CatalogName,
    /// Its priority.
    pub priority: i64,
}

/// A requested package, as a Subscription would ask for it: `[CATALOG/]PACKAGE[:CHANNEL][@VERSION]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageRequest {
    /// The catalog; none means the preferred one of those that have the package.
    pub catalog: Option<CatalogName>,
    /// The package.
    pub package: String,
    /// The channel; none means the default channel.
    pub channel: Option<String>,
    /// The first version to install, or the name of its bundle; none means the head of the channel.
    pub version: Option<String>,
}

impl FromStr for PackageRequest {
    type Err = ParseChangeError;

    fn from_str(text: &str) -> Result<Self, ParseChangeError> {
        let (rest, version) = match text.split_once('@') {
            Some((rest, version)) => (rest, Some(version)),
            None => (text, None),
        };
        let (rest, channel) = match rest.split_once(':') {
            Some((rest, channel)) => (rest, Some(channel)),
            None => (rest, None),
        };
        let (catalog, package) = match rest.rsplit_once('/') {
            Some((catalog, package)) => (Some(catalog), package),
            None => (None, rest),
        };
        let is_blank = |part: Option<&str>| part.is_some_and(str::is_empty);
        if package.is_empty() || is_blank(version) || is_blank(channel) || is_blank(catalog) {
            return Err(ParseChangeError::ParsePackage(text.to_owned()));
        }
        Ok(Self {
            catalog: catalog.map(str::parse).transpose()?,
            package: package.to_owned(),
            channel: channel.map(str::to_owned),
            version: version.map(str::to_owned),
        })
    }
}

impl fmt::Display for PackageRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(catalog) = &self.catalog {
            write!(f, "{catalog}/")?;
        }
        f.write_str(&self.package)?;
        if let Some(channel) = &self.channel {
            write!(f, ":{channel}")?;
        }
        match &self.version {
            Some(version) => write!(f, "@{version}"),
            None => Ok(()),
        }
    }
}

/// A change that a what-if supposes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhatIfChange {
    /// A Subscription asks for a package, or the existing one for another channel, catalog or version.
    Subscribe(PackageRequest),
    /// A Subscription does not exist.
    Unsubscribe {
        /// The namespace of the Subscription, where it is known.
        namespace: Option<String>,
        /// The name of the Subscription.
        name: String,
    },
    /// A catalog has the content of a folder.
    ReplaceContent(FolderOverride),
    /// A catalog cannot be reached.
    Outage(CatalogName),
    /// A bundle is the installed one of its package.
    Install(String),
    /// A package or a bundle must not be chosen.
    Prohibit(String),
    /// The cluster runs this version of Kubernetes.
    KubeVersion(Version),
}

impl WhatIfChange {
    /// Whether the change is about a catalog as such, and not about what a namespace asks for.
    pub const fn is_about_catalog(&self) -> bool {
        matches!(self, Self::ReplaceContent(_) | Self::Outage(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_request_names_catalog_package_channel_and_version() {
        let parts = |text: &str| {
            text.parse::<PackageRequest>().map(|request| {
                let catalog = request.catalog.map(|name| name.to_string()).unwrap_or_default();
                [
                    catalog,
                    request.package,
                    request.channel.unwrap_or_default(),
                    request.version.unwrap_or_default(),
                ]
                .join(" ")
            })
        };
        for (text, expected) in [
            ("tea", " tea  "),
            ("tea:stable", " tea stable "),
            ("tea@1.0.0", " tea  1.0.0"),
            ("shop/tea:stable@tea.v1", "shop tea stable tea.v1"),
            ("olm/shop/tea", "olm/shop tea  "),
        ] {
            assert_eq!(parts(text).as_deref(), Ok(expected), "{text}");
            assert_eq!(text.parse::<PackageRequest>().unwrap().to_string(), text);
        }
        for text in ["", ":stable", "tea:", "tea@", "/tea", "a/b/c/tea", "Shop/tea"] {
            assert!(parts(text).is_err(), "{text}");
        }
    }
}
