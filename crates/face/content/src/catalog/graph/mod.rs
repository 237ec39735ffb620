//! `mainstay catalog graph`: the update graph of a package, as a picture.
//!
//! ```text
//! Graph of the package ─► lanes (one for each channel: bundles, updates, the path of an installed bundle)
//!                            └─► text, SVG, Mermaid, DOT, JSON, YAML
//! ```
//!
//! Names come from the catalog's author: each format escapes them ([`names`]).

mod lanes;
mod languages;
mod names;
mod paint;
mod rails;
mod svg;
mod text;
mod value;

use super::list::no_package;
use super::open::OpenedPath;
use super::show::find_bundle;
use clap::{Args, ValueEnum};
use lanes::{Installed, Lanes};
use mainstay_catalog::KeptContent;
use mainstay_cause::{Cause, FileLocation};
use mainstay_command::cluster::ConnectionArguments;
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_gocompat::quote;
use mainstay_updates::Graph;
use mainstay_version::parse_strict;

/// Arguments of `graph`.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// The folder of the catalog, or clustercatalog/NAME.
    #[arg(value_name = "PATH")]
    pub(super) path: String,
    /// The package.
    #[arg(value_name = "PACKAGE")]
    pub(super) package: String,
    /// Show only this channel (repeatable).
    #[arg(short, long = "channel", value_name = "NAME")]
    channels: Vec<String>,
    /// Show the upgrade path from this bundle, by name or version; the catalog need not contain it any
    /// more.
    #[arg(long, value_name = "BUNDLE")]
    from: Option<String>,
    /// Output format.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = GraphFormat::Text)]
    output: GraphFormat,
    /// The cluster of ClusterCatalogs.
    #[command(flatten, next_help_heading = "Cluster")]
    pub(super) connection: ConnectionArguments,
}

/// Kinds of pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum GraphFormat {
    /// For a terminal.
    Text,
    /// A self-contained picture for a browser.
    Svg,
    /// For pages that draw Mermaid.
    Mermaid,
    /// For Graphviz.
    Dot,
    /// The graph as one JSON value.
    Json,
    /// The same as YAML.
    Yaml,
}

pub(super) fn run(
    arguments: &Arguments,
    opened: &OpenedPath,
    io: &mut CommandIo<'_>,
) -> Result<(), CommandFailure> {
    let catalog = opened.load(KeptContent::Facts)?;
    let package = catalog.package(&arguments.package).ok_or_else(|| {
        CommandFailure::usage(no_package(&arguments.package, catalog.packages(), &arguments.path))
    })?;
    let remedy = || {
        let remedy = format!("mainstay catalog show {} {}", arguments.path, package.name);
        format!("list them with: {remedy}")
    };
    let refuse = |what: &str, name: &str| {
        let message = format!("package {} has no {what} {}", quote(&package.name), quote(name));
        CommandFailure::usage(
            Cause::new(message).at(FileLocation::file(&arguments.path)).remedy(remedy()),
        )
    };
    let graph = Graph::of(package);
    if let Some(unknown) = arguments.channels.iter().find(|name| graph.channel(name).is_none()) {
        return Err(refuse("channel", unknown));
    }
    let from = match &arguments.from {
        None => None,
        Some(name_or_version) => {
            let version =
                parse_strict(name_or_version.strip_prefix('v').unwrap_or(name_or_version)).ok();
            let installed = match find_bundle(package, name_or_version) {
                Some(bundle) => Installed {
                    name: bundle.name.to_string(),
                    version: Some(bundle.version.clone()),
                },
                None if version.is_some() => Installed { name: String::new(), version },
                None => Installed { name: name_or_version.clone(), version: None },
            };
            if !installed.is_known(&graph) {
                return Err(refuse(
                    "bundle, and no update from one that is called",
                    name_or_version,
                ));
            }
            Some(installed)
        }
    };
    let lanes = Lanes::of(&graph, &arguments.channels, from.as_ref());
    io.print(&match arguments.output {
        GraphFormat::Text => text::draw(&lanes),
        GraphFormat::Svg => svg::draw(&lanes),
        GraphFormat::Mermaid => languages::mermaid(&lanes),
        GraphFormat::Dot => languages::dot(&lanes),
        GraphFormat::Json => format!("{:#}\n", value::value(&lanes)),
        GraphFormat::Yaml => mainstay_yaml::to_string(&value::value(&lanes)),
    });
    Ok(())
}
