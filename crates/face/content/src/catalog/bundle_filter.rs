//! Filters of bundles: by channel, install mode and webhooks.

use clap::{Args, ValueEnum};
use mainstay_catalog::{BlobError, Bundle, KeptContent, Package};
use serde_json::Value;

/// Which bundles count. A package or channel counts if one of its bundles does.
#[derive(Args, Debug)]
pub(super) struct BundleFilter {
    /// Only this channel, or the packages and bundles in it.
    #[arg(short, long, value_name = "NAME")]
    channel: Option<String>,
    /// Only bundles that support this install mode, and their packages and channels.
    #[arg(long, value_enum, value_name = "MODE", ignore_case = true)]
    install_mode: Option<InstallMode>,
    /// Only bundles without webhooks, and their packages and channels. A bundle whose
    /// ClusterServiceVersion is not in the catalog counts as one without webhooks.
    #[arg(long)]
    without_webhooks: bool,
}

/// Install modes of a ClusterServiceVersion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum InstallMode {
    AllNamespaces,
    MultiNamespace,
    OwnNamespace,
    SingleNamespace,
}

impl BundleFilter {
    /// Whether every bundle counts.
    pub(super) const fn is_empty(&self) -> bool {
        self.channel.is_none() && self.install_mode.is_none() && !self.without_webhooks
    }

    /// The content that the filter reads.
    pub(super) const fn kept_content(&self) -> KeptContent {
        if self.install_mode.is_some() || self.without_webhooks {
            KeptContent::Light
        } else {
            KeptContent::Facts
        }
    }

    /// Whether a channel counts by its name.
    pub(super) fn has_channel(&self, name: &str) -> bool {
        self.channel.as_ref().is_none_or(|channel| channel == name)
    }

    /// Whether a bundle counts.
    ///
    /// # Errors
    /// The stored document of the bundle cannot be read.
    pub(super) fn matches(&self, package: &Package, bundle: &Bundle) -> Result<bool, BlobError> {
        if let Some(name) = &self.channel {
            let channel = package.channel(name);
            if channel.is_none_or(|channel| channel.entry(&bundle.name).is_none()) {
                return Ok(false);
            }
        }
        if let Some(mode) = self.install_mode {
            let mode = mode.to_possible_value();
            let supported = supported_install_modes(bundle)?;
            if !mode.is_some_and(|mode| supported.iter().any(|name| name == mode.get_name())) {
                return Ok(false);
            }
        }
        Ok(!self.without_webhooks || !has_webhooks(bundle)?)
    }

    /// Whether one of the bundles counts.
    ///
    /// # Errors
    /// As [`BundleFilter::matches`].
    pub(super) fn matches_any<'b>(
        &self,
        package: &Package,
        bundles: impl Iterator<Item = &'b Bundle>,
    ) -> Result<bool, BlobError> {
        for bundle in bundles {
            if self.matches(package, bundle)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The install modes that are supported, if the catalog says anything about them.
pub(super) fn supported_install_modes(bundle: &Bundle) -> Result<Vec<String>, BlobError> {
    let modes = match bundle.csv_metadata()? {
        Some(metadata) => metadata["installModes"].clone(),
        None => match bundle.csv()? {
            Some(csv) => csv.get(&["spec", "installModes"]).cloned().unwrap_or_default(),
            None => Value::Null,
        },
    };
    let modes = modes.as_array().cloned().unwrap_or_default().into_iter();
    let supported = modes.filter(|mode| mode["supported"] == true);
    Ok(supported.map(|mode| mode["type"].as_str().unwrap_or_default().to_owned()).collect())
}

/// Whether the ClusterServiceVersion of a bundle defines webhooks.
fn has_webhooks(bundle: &Bundle) -> Result<bool, BlobError> {
    if bundle.object_count() == 0 {
        return Ok(false);
    }
    let csv = bundle.csv()?;
    Ok(csv.is_some_and(|csv| !csv.array(&["spec", "webhookdefinitions"]).is_empty()))
}
