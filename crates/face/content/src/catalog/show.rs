//! `mainstay catalog show`: one package or one of its bundles, with channels, updates and dependencies.

use super::bundle_filter::supported_install_modes;
use super::list::{bundles_by_version, no_package, version_text};
use super::open::OpenedPath;
use super::updates;
use clap::Args;
use mainstay_catalog::{BlobError, Bundle, BundleApi, KeptContent, Package};
use mainstay_cause::{Cause, FileLocation};
use mainstay_command::cluster::ConnectionArguments;
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_command::text::columns;
use mainstay_command::text::{Format, escape_controls};
use mainstay_gocompat::quote;
use mainstay_updates::{Graph, InstalledBundle};
use mainstay_version::parse_strict;
use serde_json::{Value, json};
use std::fmt::Write;

/// Arguments of `show`.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// The folder of the catalog, or clustercatalog/NAME.
    #[arg(value_name = "PATH")]
    pub(super) path: String,
    /// The package.
    #[arg(value_name = "PACKAGE")]
    pub(super) package: String,
    /// A bundle of the package, by name or version; the catalog need not contain it any more.
    #[arg(value_name = "BUNDLE")]
    bundle: Option<String>,
    /// Output format.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    output: Format,
    /// The cluster of ClusterCatalogs.
    #[command(flatten, next_help_heading = "Cluster")]
    pub(super) connection: ConnectionArguments,
}

pub(super) fn run(
    arguments: &Arguments,
    opened: &OpenedPath,
    io: &mut CommandIo<'_>,
) -> Result<(), CommandFailure> {
    let catalog = opened.load(KeptContent::Light)?;
    let package = catalog.package(&arguments.package).ok_or_else(|| {
        CommandFailure::usage(no_package(&arguments.package, catalog.packages(), &arguments.path))
    })?;
    let unreadable = |error: BlobError| CommandFailure::from(Cause::new(error.to_string()));
    let (value, text) = match &arguments.bundle {
        None => {
            let value = package_value(package, opened).map_err(unreadable)?;
            let text = package_text(package, &value);
            (value, text)
        }
        Some(wanted) => {
            let value = match find_bundle(package, wanted) {
                Some(bundle) => bundle_value(package, bundle, opened).map_err(unreadable)?,
                None => unshipped_value(package, wanted).ok_or_else(|| {
                    let message =
                        format!("package {} has no bundle {}", quote(&package.name), quote(wanted));
                    let see = format!(
                        "list them with: mainstay catalog show {} {}",
                        arguments.path, package.name
                    );
                    CommandFailure::usage(
                        Cause::new(message).at(FileLocation::file(&arguments.path)).remedy(see),
                    )
                })?,
            };
            let text = bundle_text(&value);
            (value, text)
        }
    };
    io.print(&match arguments.output {
        Format::Text => text,
        Format::Json => format!("{value:#}\n"),
        Format::Yaml => mainstay_yaml::to_string(&value),
    });
    Ok(())
}

/// The bundle of that name or version.
pub(super) fn find_bundle<'p>(package: &'p Package, wanted: &str) -> Option<&'p Bundle> {
    match package.bundle(wanted) {
        Some(bundle) => Some(bundle),
        None => bundles_by_version(package)
            .into_iter()
            .find(|bundle| version_text(bundle) == wanted.strip_prefix('v').unwrap_or(wanted)),
    }
}

fn package_value(package: &Package, opened: &OpenedPath) -> Result<Value, BlobError> {
    let graph = Graph::of(package);
    let ordered = package.ordered_channels();
    let channels = ordered.iter().map(|channel| {
        let head = &channel.head().name;
        json!({
            "name": &*channel.name,
            "default": channel.name == package.default_channel,
            "head": &**head,
            "version": package.bundle(head).map(|bundle| version_text(bundle)),
            "entries": channel.entries().len(),
            "deprecation": channel.deprecation.as_deref(),
            "updates": updates::channel_updates(&graph, &channel.name),
        })
    });
    let bundles = bundles_by_version(package).into_iter().map(|bundle| {
        let channels = ordered.iter().filter(|channel| channel.entry(&bundle.name).is_some());
        json!({
            "name": &*bundle.name,
            "version": version_text(bundle),
            "channels": channels.map(|channel| &*channel.name).collect::<Vec<_>>(),
            "deprecation": bundle.deprecation.as_deref(),
        })
    });
    Ok(json!({
        "package": &*package.name,
        "declaredAt": opened.below(&package.blob().origin().to_string()),
        "description": package.description()?,
        "defaultChannel": &*package.default_channel,
        "deprecation": package.deprecation.as_deref(),
        "channels": channels.collect::<Vec<_>>(),
        "bundles": bundles.collect::<Vec<_>>(),
    }))
}

fn package_text(package: &Package, value: &Value) -> String {
    let mut out = String::new();
    line(&mut out, "Package", &package.name);
    line(&mut out, "Declared at", text(value, "declaredAt"));
    line(&mut out, "Deprecated", text(value, "deprecation"));
    line(&mut out, "Description", text(value, "description").trim().lines().next().unwrap_or(""));
    let cell = |value: &Value, field| escape_controls(text(value, field));
    let rows: Vec<Vec<String>> = items(value, "channels")
        .map(|channel| {
            let is_default = channel["default"] == true;
            vec![
                format!("  {}", cell(channel, "name")),
                if is_default { "yes".to_owned() } else { String::new() },
                cell(channel, "head"),
                cell(channel, "version"),
                channel["entries"].to_string(),
                cell(channel, "deprecation"),
            ]
        })
        .collect();
    out.push_str("Channels:\n");
    let head = ["  NAME", "DEFAULT", "HEAD", "VERSION", "ENTRIES", "DEPRECATED"];
    out.push_str(&columns(&head, &rows));
    out.push_str(&updates::stranded_text(items(value, "channels")));
    let rows: Vec<Vec<String>> = items(value, "bundles")
        .map(|bundle| {
            vec![
                format!("  {}", cell(bundle, "name")),
                cell(bundle, "version"),
                escape_controls(&names(bundle, "channels")),
                cell(bundle, "deprecation"),
            ]
        })
        .collect();
    out.push_str("Bundles, oldest first:\n");
    out.push_str(&columns(&["  NAME", "VERSION", "CHANNELS", "DEPRECATED"], &rows));
    out
}

fn bundle_value(
    package: &Package,
    bundle: &Bundle,
    opened: &OpenedPath,
) -> Result<Value, BlobError> {
    let graph = Graph::of(package);
    let installed = InstalledBundle::new(&bundle.name, Some(&bundle.version));
    let installed = graph.bundle(&bundle.name).map_or(installed, InstalledBundle::from);
    let channels = package.ordered_channels().into_iter().filter_map(|channel| {
        let entry = channel.entry(&bundle.name)?;
        let mut value = updates::updates_in_channel(&graph, &channel.name, &installed);
        value["name"] = (*channel.name).into();
        value["head"] = (channel.head().name == bundle.name).into();
        value["replaces"] = entry.replaces.as_deref().into();
        value["skips"] = entry.skips.iter().map(|skip| Value::from(&**skip)).collect();
        value["skipRange"] = entry.skip_range.as_deref().into();
        value["deprecation"] = channel.deprecation.as_deref().into();
        Some(value)
    });
    let api_text = |api: BundleApi| format!("{}/{} {}", api.group, api.version, api.kind);
    let packages = bundle.required_packages();
    let images: Vec<String> =
        bundle.related_images()?.into_iter().map(|image| image.image).collect();
    Ok(json!({
        "bundle": &*bundle.name,
        "package": &*package.name,
        "version": version_text(bundle),
        "image": &*bundle.image,
        "declaredAt": opened.below(&bundle.blob().origin().to_string()),
        "deprecation": bundle.deprecation.as_deref(),
        "channels": channels.collect::<Vec<_>>(),
        "otherChannels": updates::updates_in_other_channels(&graph, &installed),
        "asExtension": updates::extension_updates(&graph, &installed),
        "provides": bundle.provided_apis().map(api_text).collect::<Vec<_>>(),
        "requires": {
            "apis": bundle.required_apis().map(api_text).collect::<Vec<_>>(),
            "packages": packages
                .map(|package| json!({ "name": package.package_name, "versionRange": package.version_range }))
                .collect::<Vec<_>>(),
            "constraints": bundle
                .properties_of("olm.constraint")
                .map(mainstay_catalog::BundleProperty::value)
                .collect::<Vec<_>>(),
        },
        "installModes": supported_install_modes(bundle)?,
        "manifests": bundle.object_count(),
        "relatedImages": images,
    }))
}

/// The update paths of a bundle that the package does not ship, or no longer, by name or version.
/// `None` if it has no updates.
fn unshipped_value(package: &Package, wanted: &str) -> Option<Value> {
    let graph = Graph::of(package);
    let version = parse_strict(wanted.strip_prefix('v').unwrap_or(wanted)).ok();
    let name = if version.is_some() { "" } else { wanted };
    let installed = InstalledBundle::new(name, version.as_ref());
    updates::is_covered_by_an_entry(&graph, &installed).then(|| {
        json!({
            "bundle": name,
            "package": &*package.name,
            "version": version.as_ref().map(ToString::to_string),
            "shipped": false,
            "otherChannels": updates::updates_in_other_channels(&graph, &installed),
            "asExtension": updates::extension_updates(&graph, &installed),
        })
    })
}

fn bundle_text(value: &Value) -> String {
    let mut out = String::new();
    for (title, field) in [
        ("Bundle", "bundle"),
        ("Package", "package"),
        ("Version", "version"),
        ("Image", "image"),
        ("Declared at", "declaredAt"),
        ("Deprecated", "deprecation"),
    ] {
        line(&mut out, title, text(value, field));
    }
    line(&mut out, "Install modes", &names(value, "installModes"));
    if value["manifests"].as_u64().is_some_and(|count| count > 0) {
        line(&mut out, "Manifests", &value["manifests"].to_string());
    }
    if value["shipped"] == false {
        line(&mut out, "In catalog", "no; an installed one is still updated");
    } else {
        out.push_str("Channels:\n");
    }
    for channel in items(value, "channels") {
        let is_head = channel["head"] == true;
        let mark = if is_head { " (head)" } else { "" };
        let _ = writeln!(out, "  {}{mark}", escape_controls(text(channel, "name")));
        for (title, words) in [
            ("deprecated", text(channel, "deprecation").to_owned()),
            ("not chosen", text(channel, "notChosen").to_owned()),
            ("updates to", names(channel, "updatesTo")),
            ("to the head", updates::updates_text(channel)),
            ("replaces", text(channel, "replaces").to_owned()),
            ("skips", names(channel, "skips")),
            ("skip range", text(channel, "skipRange").to_owned()),
        ] {
            if !words.is_empty() {
                let _ = writeln!(out, "    {:<13}{}", format!("{title}:"), escape_controls(&words));
            }
        }
    }
    block(
        &mut out,
        "Other channels with updates for it",
        items(value, "otherChannels").map(|channel| {
            format!(
                "{}: {}",
                escape_controls(text(channel, "name")),
                escape_controls(&updates::updates_text(channel))
            )
        }),
    );
    let extension = match updates::updates_text(&value["asExtension"]) {
        words if words.is_empty() => "no update: it is the best version of all channels".to_owned(),
        words => words,
    };
    line(&mut out, "As extension", &extension);
    block(
        &mut out,
        "Provides",
        items(value, "provides").filter_map(Value::as_str).map(escape_controls),
    );
    let requires = &value["requires"];
    let packages = items(requires, "packages").map(|package| {
        format!("package {} {}", text(package, "name"), text(package, "versionRange"))
    });
    let apis = items(requires, "apis").filter_map(Value::as_str).map(str::to_owned);
    let constraints =
        items(requires, "constraints").map(|constraint| format!("constraint {constraint}"));
    block(
        &mut out,
        "Requires",
        apis.chain(packages).chain(constraints).map(|requirement| escape_controls(&requirement)),
    );
    let images = items(value, "relatedImages").filter_map(Value::as_str);
    block(
        &mut out,
        "Related images",
        images.filter(|image| !image.is_empty()).map(escape_controls),
    );
    out
}

/// Writes a line with a title, unless its text is empty.
fn line(out: &mut String, title: &str, words: &str) {
    if !words.is_empty() {
        let _ = writeln!(out, "{:<17}{}", format!("{title}:"), escape_controls(words));
    }
}

fn block(out: &mut String, title: &str, lines: impl Iterator<Item = String>) {
    let mut lines = lines.peekable();
    if lines.peek().is_some() {
        let _ = writeln!(out, "{title}:");
        lines.for_each(|line| {
            let _ = writeln!(out, "  {line}");
        });
    }
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_default()
}

fn items<'v>(value: &'v Value, field: &str) -> impl Iterator<Item = &'v Value> {
    value[field].as_array().into_iter().flatten()
}

fn names(value: &Value, field: &str) -> String {
    items(value, field).filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
}
