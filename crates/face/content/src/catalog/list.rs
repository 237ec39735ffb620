//! `mainstay catalog list`: packages, channels or bundles, one a line.

use super::bundle_filter::BundleFilter;
use super::open::OpenedPath;
use super::rows::{self, Row};
use clap::{Args, ValueEnum};
use mainstay_catalog::{BlobError, Bundle, Channel, Package};
use mainstay_cause::{Cause, FileLocation};
use mainstay_command::cluster::ConnectionArguments;
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_command::text::{Format, escape_controls};
use serde_json::json;

/// Arguments of `list`.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// What to list.
    #[arg(value_enum)]
    what: ListedKind,
    /// The folder of the catalog, or clustercatalog/NAME.
    #[arg(value_name = "PATH")]
    pub(super) path: String,
    /// Only the content of this package.
    #[arg(value_name = "PACKAGE")]
    pub(super) package: Option<String>,
    #[command(flatten)]
    filter: BundleFilter,
    /// Output format.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    output: Format,
    /// The cluster of ClusterCatalogs.
    #[command(flatten, next_help_heading = "Cluster")]
    pub(super) connection: ConnectionArguments,
}

/// What there is to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ListedKind {
    Packages,
    Channels,
    Bundles,
}

pub(super) fn run(
    arguments: &Arguments,
    opened: &OpenedPath,
    io: &mut CommandIo<'_>,
) -> Result<(), CommandFailure> {
    let filter = &arguments.filter;
    let catalog = opened.load(filter.kept_content())?;
    let packages: Vec<&Package> = match &arguments.package {
        None => catalog.packages().collect(),
        Some(name) => vec![catalog.package(name).ok_or_else(|| {
            CommandFailure::usage(no_package(name, catalog.packages(), &arguments.path))
        })?],
    };
    let (header, list): (&[&str], ListRows) = match arguments.what {
        ListedKind::Packages => (
            &["PACKAGE", "DEFAULT CHANNEL", "HEAD", "VERSION", "CHANNELS", "BUNDLES", "DEPRECATED"],
            list_packages,
        ),
        ListedKind::Channels => (
            &["PACKAGE", "CHANNEL", "DEFAULT", "HEAD", "VERSION", "ENTRIES", "DEPRECATED"],
            list_channels,
        ),
        ListedKind::Bundles => {
            (&["PACKAGE", "BUNDLE", "VERSION", "CHANNELS", "DEPRECATED", "IMAGE"], list_bundles)
        }
    };
    let mut rows = Vec::new();
    for package in packages {
        let listed = list(package, filter);
        rows.extend(listed.map_err(|error| Cause::new(error.to_string()))?);
    }
    rows::print(io, arguments.output, header, rows);
    Ok(())
}

/// The rows of a package, as far as its bundles pass the filter.
type ListRows = fn(&Package, &BundleFilter) -> Result<Vec<Row>, BlobError>;

fn list_packages(package: &Package, filter: &BundleFilter) -> Result<Vec<Row>, BlobError> {
    let mut bundles = package.bundles().map(|bundle| &**bundle);
    let is_listed = filter.is_empty() || filter.matches_any(package, &mut bundles)?;
    Ok(if is_listed { vec![package_row(package)] } else { Vec::new() })
}

fn list_channels(package: &Package, filter: &BundleFilter) -> Result<Vec<Row>, BlobError> {
    let mut rows = Vec::new();
    for channel in package.ordered_channels() {
        let entries = channel.entries().iter();
        let mut bundles =
            entries.filter_map(|entry| package.bundle(&entry.name)).map(|bundle| &**bundle);
        let is_listed = filter.is_empty()
            || filter.has_channel(&channel.name) && filter.matches_any(package, &mut bundles)?;
        if is_listed {
            rows.push(channel_row(package, channel));
        }
    }
    Ok(rows)
}

fn list_bundles(package: &Package, filter: &BundleFilter) -> Result<Vec<Row>, BlobError> {
    let mut rows = Vec::new();
    for bundle in bundles_by_version(package) {
        if filter.matches(package, bundle)? {
            rows.push(bundle_row(package, bundle));
        }
    }
    Ok(rows)
}

/// The error of an unknown package, with packages of similar names.
pub(super) fn no_package<'p>(
    name: &str,
    packages: impl Iterator<Item = &'p Package>,
    path: &str,
) -> Cause {
    let lower = name.to_lowercase();
    let similar: Vec<&str> = packages
        .map(|package| &*package.name)
        .filter(|candidate| candidate.contains(&lower) || lower.contains(candidate))
        .take(5)
        .collect();
    let remedy = if similar.is_empty() {
        format!("list them with: mainstay catalog list packages {path}")
    } else {
        format!("did you mean {}?", similar.join(", "))
    };
    let message = format!("there is no package {}", mainstay_gocompat::quote(name));
    Cause::new(message).at(FileLocation::file(path)).remedy(remedy)
}

/// The bundles of a package, oldest first.
pub(super) fn bundles_by_version(package: &Package) -> Vec<&Bundle> {
    let mut bundles: Vec<&Bundle> = package.bundles().map(|bundle| &**bundle).collect();
    bundles
        .sort_by(|a, b| (&a.version, &a.release, &a.name).cmp(&(&b.version, &b.release, &b.name)));
    bundles
}

/// The version of a bundle, with its release.
pub(super) fn version_text(bundle: &Bundle) -> String {
    match &bundle.release {
        Some(release) => format!("{}-{release}", bundle.version),
        None => bundle.version.to_string(),
    }
}

/// The name and version of a channel's head.
pub(super) fn channel_head<'c>(package: &Package, channel: &'c Channel) -> (&'c str, String) {
    let name = &*channel.head().name;
    (name, package.bundle(name).map(|bundle| version_text(bundle)).unwrap_or_default())
}

fn deprecation_cell(deprecation: Option<&str>) -> String {
    if deprecation.is_some() { "yes".to_owned() } else { String::new() }
}

fn package_row(package: &Package) -> Row {
    let (name, version) = package
        .channel(&package.default_channel)
        .map(|channel| channel_head(package, channel))
        .unwrap_or_default();
    let (channels, bundles) = (package.channels().len(), package.bundles().len());
    Row {
        cells: vec![
            escape_controls(&package.name),
            escape_controls(&package.default_channel),
            escape_controls(name),
            version.clone(),
            channels.to_string(),
            bundles.to_string(),
            deprecation_cell(package.deprecation.as_deref()),
        ],
        value: json!({
            "package": &*package.name,
            "defaultChannel": &*package.default_channel,
            "head": name,
            "version": version,
            "channels": channels,
            "bundles": bundles,
            "deprecation": package.deprecation.as_deref(),
        }),
    }
}

fn channel_row(package: &Package, channel: &Channel) -> Row {
    let (name, version) = channel_head(package, channel);
    let is_default = channel.name == package.default_channel;
    let entries = channel.entries().len();
    Row {
        cells: vec![
            escape_controls(&package.name),
            escape_controls(&channel.name),
            if is_default { "yes".to_owned() } else { String::new() },
            escape_controls(name),
            version.clone(),
            entries.to_string(),
            deprecation_cell(channel.deprecation.as_deref()),
        ],
        value: json!({
            "package": &*package.name,
            "channel": &*channel.name,
            "default": is_default,
            "head": name,
            "version": version,
            "entries": entries,
            "deprecation": channel.deprecation.as_deref(),
        }),
    }
}

fn bundle_row(package: &Package, bundle: &Bundle) -> Row {
    let channels: Vec<&str> = package
        .ordered_channels()
        .into_iter()
        .filter(|channel| channel.entry(&bundle.name).is_some())
        .map(|channel| &*channel.name)
        .collect();
    Row {
        cells: vec![
            escape_controls(&package.name),
            escape_controls(&bundle.name),
            version_text(bundle),
            escape_controls(&channels.join(",")),
            deprecation_cell(bundle.deprecation.as_deref()),
            escape_controls(&bundle.image),
        ],
        value: json!({
            "package": &*package.name,
            "bundle": &*bundle.name,
            "version": version_text(bundle),
            "channels": channels,
            "image": &*bundle.image,
            "deprecation": bundle.deprecation.as_deref(),
        }),
    }
}
