//! `mainstay catalog graph`: who is updated to what in a package, as a picture.
//!
//! ```text
//! Graph of the package ─► lanes (a channel each: bundles, updates, the way from what is installed)
//!                            └─► text, SVG, Mermaid, DOT, JSON, YAML
//! ```
//!
//! Every name is somebody else's: each format writes it so that it stays a name ([`names`]).

mod lanes;
mod languages;
mod names;
mod paint;
mod rails;
mod svg;
mod text;
mod value;

use super::{Io, list::no_package, open::open, show::find};
use crate::exit::Failure;
use clap::{Args, ValueEnum};
use lanes::{Installed, Lanes};
use mainstay_catalog::Keep;
use mainstay_cause::{Cause, Place};
use mainstay_gocompat::quote;
use mainstay_updates::Graph;
use mainstay_version::parse_strict;

/// Arguments of `graph`.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// The folder of the catalog.
    #[arg(value_name = "PATH")]
    path: String,
    /// The package.
    #[arg(value_name = "PACKAGE")]
    package: String,
    /// Show only this channel; may be given several times.
    #[arg(short, long = "channel", value_name = "NAME")]
    channels: Vec<String>,
    /// Show the way of the updates from this bundle, given by name or version. It need not be
    /// shipped any more.
    #[arg(long, value_name = "BUNDLE")]
    from: Option<String>,
    /// How it is drawn.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Drawn::Text)]
    output: Drawn,
}

/// Kinds of pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Drawn {
    /// For a terminal.
    Text,
    /// For a browser: a picture that needs nothing else.
    Svg,
    /// For pages that draw Mermaid.
    Mermaid,
    /// For Graphviz.
    Dot,
    /// What is drawn, as one JSON value.
    Json,
    /// The same as YAML.
    Yaml,
}

pub(super) fn run(arguments: &Arguments, io: &mut Io<'_>) -> Result<(), Failure> {
    let opened = open(io, &arguments.path)?;
    let catalog = opened.load(Keep::Facts)?;
    let package = catalog.package(&arguments.package).ok_or_else(|| {
        Failure::usage(no_package(&arguments.package, catalog.packages(), &arguments.path))
    })?;
    let see = || {
        let see = format!("mainstay catalog show {} {}", arguments.path, package.name);
        format!("see which there are with: {see}")
    };
    let refuse = |what: &str, name: &str| {
        let message = format!("package {} has no {what} {}", quote(&package.name), quote(name));
        Failure::usage(Cause::new(message).at(Place::file(&arguments.path)).remedy(see()))
    };
    let graph = Graph::of(package);
    if let Some(unknown) = arguments.channels.iter().find(|name| graph.channel(name).is_none()) {
        return Err(refuse("channel", unknown));
    }
    let from = match &arguments.from {
        None => None,
        Some(wanted) => {
            let gone = parse_strict(wanted.strip_prefix('v').unwrap_or(wanted)).ok();
            let installed = match find(package, wanted) {
                Some(bundle) => Installed {
                    name: bundle.name.to_string(),
                    version: Some(bundle.version.clone()),
                },
                None if gone.is_some() => Installed { name: String::new(), version: gone },
                None => Installed { name: wanted.clone(), version: None },
            };
            if !installed.is_known(&graph) {
                return Err(refuse("bundle, and no update from one that is called", wanted));
            }
            Some(installed)
        }
    };
    let lanes = Lanes::of(&graph, &arguments.channels, from.as_ref());
    io.print(&match arguments.output {
        Drawn::Text => text::draw(&lanes),
        Drawn::Svg => svg::draw(&lanes),
        Drawn::Mermaid => languages::mermaid(&lanes),
        Drawn::Dot => languages::dot(&lanes),
        Drawn::Json => format!("{:#}\n", value::value(&lanes)),
        Drawn::Yaml => mainstay_yaml::to_string(&value::value(&lanes)),
    });
    Ok(())
}
