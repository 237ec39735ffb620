//! `opm alpha list`: what a catalog holds, as tables for people.

use super::call::{Call, End};
use super::command::{Arguments, Command};
use super::{go, table};
use mainstay_catalog::{Catalog, ContentError, Declared, Folder, Keep, LoadOptions, Package};
use std::path::Path;
use std::sync::Arc;

const NOTE: &str =
    "The tables are for people and may change; programs render a catalog and read that.";

/// The command with those below it.
pub(super) fn command() -> Command {
    let children = vec![
        Command {
            long: "Lists the bundles of a catalog, or of one of its packages: a line for each channel a bundle is in.",
            arguments: Arguments::Between(1, 2),
            action: Some(bundles),
            ..Command::new("bundles <indexRef> <packageName>", "List the bundles of a catalog")
        },
        Command {
            long: "Lists the channels of a catalog, or of one of its packages.",
            arguments: Arguments::Between(1, 2),
            action: Some(channels),
            ..Command::new("channels <indexRef> [packageName]", "List the channels of a catalog")
        },
        Command {
            long: "Lists the packages of a catalog.",
            arguments: Arguments::Exactly(1),
            action: Some(packages),
            ..Command::new("packages <indexRef>", "List the packages of a catalog")
        },
    ];
    Command { long: NOTE, children, ..Command::new("list", "List what a catalog holds") }
}

fn packages(call: &mut Call<'_, '_>) -> Result<(), End> {
    let catalog = load(call, Keep::Light)?;
    let mut text = "NAME\tDISPLAY NAME\tDEFAULT CHANNEL\n".to_owned();
    for package in catalog.packages() {
        let title = title(package).map_err(|error| End::Fatal(error.to_string()))?;
        go::push(
            &mut text,
            format_args!("{}\t{title}\t{}\n", package.name, package.default_channel),
        );
    }
    call.io.print(&table::lay_out(&text));
    Ok(())
}

/// What people call a package: so says the manifest at the head of its default channel.
fn title(package: &Package) -> Result<String, ContentError> {
    let bundle = package
        .channel(&package.default_channel)
        .and_then(|channel| package.bundle(&channel.head().name));
    let Some(bundle) = bundle else { return Ok(String::new()) };
    let csv = bundle.csv()?;
    let title = csv.as_ref().and_then(|csv| csv.str(&["spec", "displayName"]));
    Ok(title.unwrap_or_default().to_owned())
}

fn channels(call: &mut Call<'_, '_>) -> Result<(), End> {
    let catalog = load(call, Keep::Facts)?;
    let mut text = "PACKAGE\tCHANNEL\tHEAD\n".to_owned();
    for package in chosen(&catalog, call.argument(1))? {
        for channel in package.channels() {
            go::push(
                &mut text,
                format_args!("{}\t{}\t{}\n", package.name, channel.name, channel.head().name),
            );
        }
    }
    call.io.print(&table::lay_out(&text));
    Ok(())
}

fn bundles(call: &mut Call<'_, '_>) -> Result<(), End> {
    let catalog = load(call, Keep::Facts)?;
    let mut text = "PACKAGE\tCHANNEL\tBUNDLE\tREPLACES\tSKIPS\tSKIP RANGE\tIMAGE\n".to_owned();
    for package in chosen(&catalog, call.argument(1))? {
        for channel in package.channels() {
            let mut entries: Vec<_> = channel.entries().iter().collect();
            entries.sort_by(|a, b| a.name.cmp(&b.name));
            for entry in entries {
                let image = package.bundle(&entry.name).map_or("", |bundle| &bundle.image);
                go::push(
                    &mut text,
                    format_args!(
                        "{}\t{}\t{}\t{}\t{}\t{}\t{image}\n",
                        package.name,
                        channel.name,
                        entry.name,
                        entry.replaces.as_deref().unwrap_or_default(),
                        entry.skips.join(","),
                        entry.skip_range.as_deref().unwrap_or_default(),
                    ),
                );
            }
        }
    }
    call.io.print(&table::lay_out(&text));
    Ok(())
}

/// The package of that name, or all of them.
fn chosen<'a>(catalog: &'a Catalog, name: &str) -> Result<Vec<&'a Package>, End> {
    if name.is_empty() {
        return Ok(catalog.packages().collect());
    }
    match catalog.package(name) {
        Some(package) => Ok(vec![package]),
        None => Err(End::Fatal(format!("package {} not found", go::quote(name)))),
    }
}

/// The catalog that the first argument names.
fn load(call: &Call<'_, '_>, keep: Keep) -> Result<Arc<Catalog>, End> {
    check_registry_flags(call)?;
    let reference = call.argument(0);
    let quoted = go::quote(reference);
    let failed = |why: String| End::Fatal(format!("render reference {quoted}: {why}"));
    match call.io.is_folder(reference) {
        Ok(true) => {}
        Ok(false) => {
            let kind = "{{  } unknown}";
            return Err(failed(format!("ref {quoted} has unsupported file type: {kind}")));
        }
        Err(_) => {
            let why = image_fault(reference);
            return Err(failed(format!("failed to pull image {quoted}: {why}")));
        }
    }
    let folder = call.io.at(reference);
    if is_bundle(&folder) {
        return Err(End::Fatal(format!("cannot list non-index {quoted}")));
    }
    let source = Folder::new(folder);
    let options = LoadOptions { keep, ..LoadOptions::default() };
    // Only what goes wrong while reading is said about the reference.
    let declared = Declared::read(&source, &options)
        .map_err(|error| failed(call.io.as_typed(&error.upstream(), reference)))?;
    declared
        .check_in(&source, &options)
        .map_err(|error| End::Fatal(call.io.as_typed(&error.upstream(), reference)))
}

/// Whether a folder is that of a bundle: both of its folders are there, and are no links.
fn is_bundle(folder: &Path) -> bool {
    let is_there =
        |name: &str| std::fs::symlink_metadata(folder.join(name)).is_ok_and(|found| found.is_dir());
    is_there("manifests") && is_there("metadata")
}

/// Why what is not there as a file cannot be had as an image either.
fn image_fault(reference: &str) -> String {
    if let Some(fault) = mainstay_catalog::reference_fault(reference) {
        return fault;
    }
    // The name must say which registry has it, and the path there, in full.
    let (registry, path) = reference.split_once('/').unwrap_or(("", reference));
    let names_registry = registry.contains(['.', ':']) || registry == "localhost";
    let in_full = match registry {
        "docker.io" => path.contains('/'),
        "index.docker.io" => false,
        _ => names_registry,
    };
    if in_full {
        "images are not pulled by this version; give a folder".to_owned()
    } else {
        "repository name must be canonical".to_owned()
    }
}

/// Flags about registries that exclude each other, even where no registry is needed.
fn check_registry_flags(call: &Call<'_, '_>) -> Result<(), End> {
    let flags = &call.flags;
    let what = if flags.has("skip-tls") && flags.has("use-http") {
        "cannot use --use-http with --skip-tls"
    } else if flags.has("skip-tls") && flags.has("skip-tls-verify") {
        "cannot use --skip-tls-verify with --skip-tls"
    } else if flags.is_on("skip-tls-verify") && flags.is_on("use-http") {
        "--use-http and --skip-tls-verify cannot both be true"
    } else {
        return Ok(());
    };
    Err(End::Fatal(format!("invalid flag combination: {what}")))
}
