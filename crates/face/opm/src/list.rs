//! `opm alpha list`: packages, channels and bundles of a catalog as tables.

use super::call::{Call, CommandIo, Failure};
use super::command::{Action, Arguments, Command};
use super::pull::{ImageContent, ImagePuller};
use super::reference::{self, ReferenceKind};
use super::{database, go, table};
use mainstay_catalog::{
    BlobError, Catalog, CatalogDocuments, FolderSource, KeptContent, LoadOptions, Package,
};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

const NOTE: &str =
    "The tables are for people and may change; programs should use the output of render.";

/// The command with its sub-commands.
pub(super) fn command() -> Command {
    let children = vec![
        Command {
            long: "Lists the bundles of a catalog, or of one of its packages: a line for each channel a bundle is in.",
            arguments: Arguments::Between(1, 2),
            action: Some(Action::Async(|call| Box::pin(bundles(call)))),
            ..Command::new("bundles <indexRef> <packageName>", "List the bundles of a catalog")
        },
        Command {
            long: "Lists the channels of a catalog, or of one of its packages.",
            arguments: Arguments::Between(1, 2),
            action: Some(Action::Async(|call| Box::pin(channels(call)))),
            ..Command::new("channels <indexRef> [packageName]", "List the channels of a catalog")
        },
        Command {
            long: "Lists the packages of a catalog.",
            arguments: Arguments::Exactly(1),
            action: Some(Action::Async(|call| Box::pin(packages(call)))),
            ..Command::new("packages <indexRef>", "List the packages of a catalog")
        },
    ];
    Command { long: NOTE, children, ..Command::new("list", "List the content of a catalog") }
}

async fn packages(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let catalog = load(call, KeptContent::Light).await?;
    let mut text = "NAME\tDISPLAY NAME\tDEFAULT CHANNEL\n".to_owned();
    for package in catalog.packages() {
        let title = title(package).map_err(Failure::fatal)?;
        go::push(
            &mut text,
            format_args!("{}\t{title}\t{}\n", package.name, package.default_channel),
        );
    }
    call.io.print(&table::format_table(&text));
    Ok(())
}

/// The display name of a package, from the CSV at the head of its default channel.
fn title(package: &Package) -> Result<String, BlobError> {
    let bundle = package
        .channel(&package.default_channel)
        .and_then(|channel| package.bundle(&channel.head().name));
    let Some(bundle) = bundle else { return Ok(String::new()) };
    let csv = bundle.csv()?;
    let title = csv.as_ref().and_then(|csv| csv.str(&["spec", "displayName"]));
    Ok(title.unwrap_or_default().to_owned())
}

async fn channels(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let catalog = load(call, KeptContent::Facts).await?;
    let mut text = "PACKAGE\tCHANNEL\tHEAD\n".to_owned();
    for package in select_packages(&catalog, call.argument(1))? {
        for channel in package.channels() {
            go::push(
                &mut text,
                format_args!("{}\t{}\t{}\n", package.name, channel.name, channel.head().name),
            );
        }
    }
    call.io.print(&table::format_table(&text));
    Ok(())
}

async fn bundles(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let catalog = load(call, KeptContent::Facts).await?;
    let mut text = "PACKAGE\tCHANNEL\tBUNDLE\tREPLACES\tSKIPS\tSKIP RANGE\tIMAGE\n".to_owned();
    for package in select_packages(&catalog, call.argument(1))? {
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
    call.io.print(&table::format_table(&text));
    Ok(())
}

/// The package of a name, or all packages.
fn select_packages<'a>(catalog: &'a Catalog, name: &str) -> Result<Vec<&'a Package>, Failure> {
    if name.is_empty() {
        return Ok(catalog.packages().collect());
    }
    match catalog.package(name) {
        Some(package) => Ok(vec![package]),
        None => Err(Failure::Fatal(format!("package {} not found", go::quote(name)))),
    }
}

/// Loads the catalog of the first argument.
async fn load(call: &mut Call<'_, '_>, keep: KeptContent) -> Result<Arc<Catalog>, Failure> {
    let access = reference::registry_access(call).map_err(Failure::fatal)?;
    let reference = &*call.argument(0).to_owned();
    let quoted = go::quote(reference);
    let failed =
        |why: &dyn fmt::Display| Failure::Fatal(format!("render reference {quoted}: {why}"));
    let no_index = || Failure::Fatal(format!("cannot list non-index {quoted}"));
    match reference::find(call.io, reference).map_err(|error| failed(&error))? {
        ReferenceKind::Catalog => {
            let typed = |message: String| call.io.with_typed_path(&message, reference);
            return load_folder(&call.io.resolve_path(reference), keep, &failed, &typed);
        }
        ReferenceKind::Bundle => return Err(no_index()),
        ReferenceKind::Database => {
            let path = call.io.resolve_path(reference);
            return load_database(call.io, &path, &failed);
        }
        ReferenceKind::Image => {}
    }
    let images = ImagePuller::containers(access.containers());
    match images.content(call.io, reference).await.map_err(|error| failed(&error))? {
        ImageContent::Catalog(unpacked) => {
            let inside = |message: String| unpacked.as_in_image(&message);
            if !unpacked.path.exists() {
                return Err(failed(&"stat .: no such file or directory"));
            }
            load_folder(&unpacked.path, keep, &failed, &inside)
        }
        ImageContent::Bundle(_) => Err(no_index()),
        ImageContent::Database(unpacked) => load_database(call.io, &unpacked.path, &failed),
    }
}

/// Loads the catalog of a database. `failed` adds the reference to an error.
fn load_database(
    io: &mut CommandIo<'_>,
    path: &Path,
    failed: &dyn Fn(&dyn fmt::Display) -> Failure,
) -> Result<Arc<Catalog>, Failure> {
    let declared = database::read(io, path).map_err(|error| failed(&error))?;
    declared.check().map_err(|error| Failure::Fatal(error.upstream()))
}

/// Loads the catalog of a folder. `failed` adds the reference to an error, `with_known_paths` replaces
/// paths in it.
fn load_folder(
    folder: &Path,
    keep: KeptContent,
    failed: &dyn Fn(&dyn fmt::Display) -> Failure,
    with_known_paths: &dyn Fn(String) -> String,
) -> Result<Arc<Catalog>, Failure> {
    let source = FolderSource::new(folder);
    let options = LoadOptions { keep, ..LoadOptions::default() };
    // Only errors while reading have the reference.
    let declared = CatalogDocuments::read(&source, &options)
        .map_err(|error| failed(&with_known_paths(error.upstream())))?;
    declared
        .check_in(&source, &options)
        .map_err(|error| Failure::Fatal(with_known_paths(error.upstream())))
}
