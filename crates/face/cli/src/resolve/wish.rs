//! The small languages of the command line: what is asked for, and what is changed.

use mainstay_cause::Cause;
use mainstay_resolver::CatalogKey;
use mainstay_version::{Version, parse_tolerant, quote};
use std::fmt;
use std::str::FromStr;

/// A catalog as it is typed: `NAME`, or `NAMESPACE/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CatalogName {
    pub(super) namespace: Option<String>,
    pub(super) name: String,
}

impl CatalogName {
    /// Whether this is that catalog.
    pub(super) fn is(&self, key: &CatalogKey) -> bool {
        self.name == key.name && self.namespace.as_ref().is_none_or(|it| *it == key.namespace)
    }
}

impl FromStr for CatalogName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (namespace, name) = match text.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, text),
        };
        for part in namespace.into_iter().chain([name]) {
            let sober = |sign: char| {
                sign.is_ascii_lowercase() || sign.is_ascii_digit() || matches!(sign, '-' | '.')
            };
            if part.is_empty() || part.len() > 253 || !part.chars().all(sober) {
                return Err(format!(
                    "{} cannot name a catalog: write it as NAME or NAMESPACE/NAME, in lower case letters, digits, `-` and `.`",
                    quote(text)
                ));
            }
        }
        Ok(Self { namespace: namespace.map(str::to_owned), name: name.to_owned() })
    }
}

impl fmt::Display for Wish {
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

impl fmt::Display for CatalogName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// `[NAMESPACE/]NAME=DIR`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CatalogFolder {
    pub(super) name: CatalogName,
    pub(super) folder: String,
}

impl FromStr for CatalogFolder {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, folder) = text
            .split_once('=')
            .filter(|(_, folder)| !folder.is_empty())
            .ok_or("write it as NAME=DIR or NAMESPACE/NAME=DIR")?;
        Ok(Self { name: name.parse()?, folder: folder.to_owned() })
    }
}

/// `[NAMESPACE/]NAME=N`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Priority {
    pub(super) name: CatalogName,
    pub(super) priority: i64,
}

impl FromStr for Priority {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed =
            text.split_once('=').and_then(|(name, number)| Some((name, number.parse().ok()?)));
        let (name, priority) = parsed.ok_or("write it as NAME=NUMBER, such as mine=100")?;
        Ok(Self { name: name.parse()?, priority })
    }
}

/// `[CATALOG/]PACKAGE[:CHANNEL][@VERSION]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    pub(super) catalog: Option<CatalogName>,
    pub(super) package: String,
    pub(super) channel: Option<String>,
    /// A version, or the name of a bundle.
    pub(super) version: Option<String>,
}

impl FromStr for Wish {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{} is not [CATALOG/]PACKAGE[:CHANNEL][@VERSION]", quote(text));
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
        let blank = |part: Option<&str>| part.is_some_and(str::is_empty);
        if package.is_empty() || blank(version) || blank(channel) || blank(catalog) {
            return Err(wrong());
        }
        Ok(Self {
            catalog: catalog.map(str::parse).transpose()?,
            package: package.to_owned(),
            channel: channel.map(str::to_owned),
            version: version.map(str::to_owned),
        })
    }
}

/// Something that is supposed to be otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// As it was typed.
    pub(super) typed: String,
    pub(super) what: What,
}

/// What is supposed to be otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A package is subscribed to, or its Subscription asks for another channel, catalog, version.
    Subscribe(Wish),
    /// A Subscription does not exist; its namespace, where that was said.
    Unsubscribe(Option<String>, String),
    /// A catalog has this content.
    Catalog(CatalogFolder),
    /// A catalog cannot be reached.
    Outage(CatalogName),
    /// A bundle is what is installed of its package.
    Installed(String),
    /// A package or a bundle must not be chosen.
    Prohibit(String),
    /// The cluster has this version of Kubernetes.
    KubeVersion(Version),
}

impl FromStr for Change {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, value) = text.split_once('=').filter(|(_, value)| !value.is_empty()).ok_or(
            "write it as KIND=VALUE; kinds are subscribe, unsubscribe, catalog, outage, installed, prohibit and kube-version",
        )?;
        let what = match kind {
            "subscribe" => What::Subscribe(value.parse()?),
            "unsubscribe" => match value.split_once('/') {
                Some((namespace, name)) => {
                    What::Unsubscribe(Some(namespace.to_owned()), name.to_owned())
                }
                None => What::Unsubscribe(None, value.to_owned()),
            },
            "catalog" => What::Catalog(value.parse()?),
            "outage" => What::Outage(value.parse()?),
            "installed" => What::Installed(value.to_owned()),
            "prohibit" => What::Prohibit(value.to_owned()),
            "kube-version" => What::KubeVersion(kube_version(value)?),
            _ => {
                return Err(format!(
                    "{} is no kind of change; kinds are subscribe, unsubscribe, catalog, outage, installed, prohibit and kube-version",
                    quote(kind)
                ));
            }
        };
        Ok(Self { typed: text.to_owned(), what })
    }
}

/// The name of a namespace.
pub(super) fn namespace(text: &str) -> Result<String, String> {
    let sober = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '-';
    let ends = text.starts_with('-') || text.ends_with('-');
    if text.is_empty() || text.len() > 63 || ends || !text.chars().all(sober) {
        return Err(format!(
            "{} cannot name a namespace: write it in lower case letters, digits and `-`, up to 63 signs",
            quote(text)
        ));
    }
    Ok(text.to_owned())
}

/// A version of Kubernetes, such as `1.35`, `v1.35.2`.
pub(super) fn kube_version(text: &str) -> Result<Version, String> {
    parse_tolerant(text).map_err(|error| format!("{} is no version: {error}", quote(text)))
}

/// What was typed cannot be used here.
pub(super) fn unusable(typed: &str, why: impl Into<String>) -> Cause {
    Cause::new(format!("`{typed}` cannot be used")).because(Cause::new(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_names_catalog_package_channel_and_version() {
        let parts = |text: &str| {
            text.parse::<Wish>().map(|it| {
                let catalog = it.catalog.map(|it| it.to_string()).unwrap_or_default();
                [
                    catalog,
                    it.package,
                    it.channel.unwrap_or_default(),
                    it.version.unwrap_or_default(),
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
        }
        for text in ["", ":stable", "tea:", "tea@", "/tea", "a/b/c/tea", "Shop/tea"] {
            assert!(parts(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_change_has_a_kind() {
        assert!(matches!("catalog=shop=./dir".parse::<Change>().unwrap().what, What::Catalog(_)));
        assert!(matches!(
            "kube-version=1.30".parse::<Change>().unwrap().what,
            What::KubeVersion(_)
        ));
        for text in ["tea", "subscribe=", "buy=tea", "catalog=shop", "kube-version=new"] {
            assert!(text.parse::<Change>().is_err(), "{text}");
        }
    }
}
