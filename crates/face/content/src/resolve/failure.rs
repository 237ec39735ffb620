//! Failures of a resolution, with options of the command line as remedies.

use super::argument::{ChangeArgument, unusable};
use mainstay_command::io::place_of;

use mainstay_cause::{Cause, FileLocation};
use mainstay_command::exit::CommandFailure;
use mainstay_command::text::escape_controls;
use mainstay_gocompat::io_error_text;
use mainstay_resolver::CatalogKey;
use mainstay_whatif::{
    AssembleError, ChangeError, ChangeTargetError, ContentRepair, ExtensionError, FailedExtension,
    FolderError, MissingContent, MissingVersions, NotFound, PublishedError, SavedStateError,
    SnapshotContent, Suggestion, UnusableFolder, WhatIfError,
};
use std::path::Path;

/// The command that saves a state.
const SAVE_COMMAND: &str = "kubectl get sub,csv,og,catalogsource -A -o yaml";

/// A saved state that cannot be read.
pub(super) fn unreadable_state(why: Cause) -> CommandFailure {
    CommandFailure::usage(Cause::new("the state cannot be read").because(why))
}

/// An error of a saved state.
pub(super) fn saved_state(error: &SavedStateError) -> CommandFailure {
    let remedy = match error {
        SavedStateError::ParseDocument { .. } => format!("save it again with: {SAVE_COMMAND}"),
        SavedStateError::ReadObject { .. } | SavedStateError::FindObjects { .. } => {
            format!("use the output of: {SAVE_COMMAND}")
        }
        SavedStateError::ValidateObject { .. } => {
            format!("correct it, or save the state again with: {SAVE_COMMAND}")
        }
    };
    let cause = Cause::new(escape_controls(&error.to_string())).at(error.place().clone());
    unreadable_state(cause.remedy(remedy))
}

/// A state without ClusterServiceVersions.
pub(super) fn missing_versions(error: &MissingVersions) -> CommandFailure {
    CommandFailure::usage(Cause::new(error.to_string()).remedy(format!(
        "save them as well: {SAVE_COMMAND}; or name installed bundles with --installed BUNDLE"
    )))
}

/// A folder that cannot be read.
fn folder(error: &FolderError) -> CommandFailure {
    let why = match error {
        FolderError::Inspect { source, .. } => io_error_text(source),
        FolderError::Open { .. } => error.to_string(),
    };
    let remedy = "name the folder of a file-based catalog";
    CommandFailure::usage(Cause::new(why).at(FileLocation::file(error.folder())).remedy(remedy))
}

/// Catalogs that cannot be assembled.
pub(super) fn catalogs(error: &AssembleError) -> CommandFailure {
    let why = error.to_string();
    match error {
        AssembleError::ReadFolder(error) => folder(error),
        AssembleError::PlaceFolder(given) => {
            let cause = unusable(&format!("--catalog {}={}", given.name, given.folder), why);
            CommandFailure::usage(cause.remedy("write it as NAMESPACE/NAME=DIR"))
        }
        AssembleError::ChooseFolder { folder: given, .. } => {
            let cause = unusable(&format!("--catalog {}={}", given.name, given.folder), why);
            CommandFailure::usage(cause.remedy("name one of the two"))
        }
        AssembleError::SetPriority { priority: given, .. } => CommandFailure::usage(unusable(
            &format!("--priority {}={}", given.name, given.priority),
            why,
        )),
    }
}

/// A change or request that cannot be made.
pub(super) fn change(error: &ChangeError) -> Cause {
    let words = error.to_string();
    match error {
        ChangeError::FindPackage(not_found) | ChangeError::FindProhibited(not_found) => {
            unknown_name(words, not_found, "packages")
        }
        ChangeError::FindBundle(not_found) => unknown_name(words, not_found, "bundles"),
        ChangeError::FindOutage(_) => Cause::new(words),
        ChangeError::FindCatalog { request, .. }
        | ChangeError::ChooseNamedCatalog { request, .. } => unusable(request, words),
        ChangeError::ChooseCatalog { package, catalogs } => {
            let names: Vec<String> =
                catalogs.iter().map(|key| format!("{}/{package}", name_of(key))).collect();
            Cause::new(words)
                .remedy(format!("name one as {}, or give one a --priority", names.join(" or ")))
        }
        ChangeError::FindPackageInCatalog { others, .. } => {
            Cause::new(words).remedy(format!("use {}", others.join(", ")))
        }
        ChangeError::FindChannel { channels, .. } => {
            Cause::new(words).remedy(format!("name one of {}", channels.join(", ")))
        }
        ChangeError::FindVersionInChannel { channels, .. } => {
            Cause::new(words).remedy(format!("it is in {}", channels.join(", ")))
        }
        ChangeError::FindVersion { nearest, .. } => Cause::new(words)
            .remedy(did_you_mean(nearest, "list them with: mainstay catalog show DIR PACKAGE")),
        ChangeError::ReadVersion { request, .. } => unusable(&request.to_string(), words)
            .remedy("write the name of the bundle after the `@`"),
        ChangeError::FindSubscription { suggestion, .. } => {
            suggest(Cause::new(words), suggestion.as_ref())
        }
        ChangeError::InstallTwice { bundle, other } => {
            let why = format!("`--installed {other}` names another bundle of the same package");
            unusable(&format!("--installed {bundle}"), why).remedy("omit one of the two")
        }
    }
}

/// A name that no catalog has.
fn unknown_name(words: String, not_found: &NotFound, listing: &str) -> Cause {
    let unread: Vec<String> = not_found.unread.iter().map(name_of).collect();
    let unread = (!unread.is_empty())
        .then(|| Cause::new(format!("{} could not be read", unread.join(", "))));
    let otherwise = format!("list them with: mainstay catalog list {listing} DIR");
    Cause::new(words).because_all(unread).remedy(did_you_mean(&not_found.nearest, &otherwise))
}

fn did_you_mean(nearest: &[String], otherwise: &str) -> String {
    if nearest.is_empty() {
        otherwise.to_owned()
    } else {
        format!("did you mean {}?", nearest.join(", "))
    }
}

fn name_of(key: &CatalogKey) -> String {
    format!("{}/{}", key.namespace, key.name)
}

/// A cause with a suggested name as its remedy.
pub(super) fn suggest(cause: Cause, suggestion: Option<&Suggestion>) -> Cause {
    suggestion.into_iter().map(Suggestion::to_string).fold(cause, Cause::remedy)
}

/// Why a what-if resolution is not possible.
pub(super) fn what_if(error: &WhatIfError, changes: &[ChangeArgument]) -> Cause {
    match error {
        WhatIfError::Request(error) => change(error),
        WhatIfError::Suppose { change: at, source } => {
            unsupposable(change_text(changes, *at)).because(change(source))
        }
    }
}

fn unsupposable(argument: &str) -> Cause {
    Cause::new(format!("--what-if {argument} cannot be applied"))
}

fn change_text(changes: &[ChangeArgument], at: usize) -> &str {
    changes.get(at).map_or("", |change| &*change.text)
}

/// A change without a target.
pub(super) fn target(error: &ChangeTargetError, changes: &[ChangeArgument]) -> CommandFailure {
    let argument = format!("--what-if {}", change_text(changes, error.change()));
    let cause = unusable(&argument, error.to_string());
    CommandFailure::usage(match error {
        ChangeTargetError::FindNamespace { suggestion, .. }
        | ChangeTargetError::FindSubscription { suggestion, .. } => {
            suggest(cause, suggestion.as_ref())
        }
        ChangeTargetError::ChooseNamespace { .. } => choose_namespace(cause),
    })
}

/// Adds the remedy where several namespaces match.
pub(super) fn choose_namespace(cause: Cause) -> Cause {
    cause.remedy("name the namespace with -n NAMESPACE")
}

/// ClusterExtensions that cannot be resolved.
pub(super) fn extensions(error: &ExtensionError, changes: &[ChangeArgument]) -> CommandFailure {
    let why = Cause::new(error.to_string());
    match error {
        ExtensionError::ReadFolder(error) => folder(error),
        ExtensionError::SetPriority(given) | ExtensionError::ConvertPriority(given) => {
            let what = format!("--priority {}={} cannot be used", given.name, given.priority);
            CommandFailure::usage(Cause::new(what).because(why))
        }
        ExtensionError::FindOutage { change, .. } => {
            CommandFailure::usage(unsupposable(change_text(changes, *change)).because(why))
        }
    }
}

/// A published catalog that cannot be loaded.
pub(super) fn published(error: &PublishedError) -> Cause {
    match error {
        PublishedError::CheckName => Cause::new(error.to_string()).remedy("correct the name"),
        PublishedError::Unpack { archive, source } => {
            Cause::new(format!("the archive cannot be read: {}", io_error_text(source)))
                .at(FileLocation::file(archive.as_path()))
                .remedy("put the catalog there, as a folder or an archive, or name another folder with --published DIR")
        }
        PublishedError::Load { path, headline } => Cause::new(error.to_string())
            .at(FileLocation::file(path.as_path()))
            .because(Cause::new(escape_controls(headline))),
    }
}

/// The reason why a catalog has no usable content, if so.
pub(super) fn content(key: &CatalogKey, content: &SnapshotContent) -> Option<Cause> {
    match content {
        SnapshotContent::Ready(..) => None,
        SnapshotContent::Missing(MissingContent::NotGiven { connection, is_hidden, .. }) => {
            let connection = match &**connection {
                _ if *is_hidden => format!(
                    ", and your account may not read CatalogSources in namespace {}",
                    key.namespace
                ),
                "" => String::new(),
                state => format!(", and its connection is {state}"),
            };
            let why = Cause::new(format!("its content is not available{connection}"));
            Some(why.remedy(content_option(key)))
        }
        SnapshotContent::Missing(MissingContent::Registry { address, cause }) => {
            let why =
                Cause::new(format!("its registry at {address} is not reachable from this machine"));
            Some(why.because(cause.clone()).remedy(content_option(key)))
        }
        SnapshotContent::Unusable { folder, reason } => Some(unusable_folder(folder, reason)),
    }
}

/// The option that gives a catalog its content.
pub(super) fn content_option(key: &CatalogKey) -> String {
    format!("supply its content with --catalog {}/{}=DIR", key.namespace, key.name)
}

/// A folder that holds no sound catalog.
pub(super) fn unusable_folder(folder: &str, reason: &UnusableFolder) -> Cause {
    match reason {
        UnusableFolder::Empty => Cause::new("the folder holds no package")
            .at(FileLocation::file(folder))
            .remedy("name the folder of a file-based catalog"),
        UnusableFolder::Invalid(headline) => Cause::new(escape_controls(headline))
            .at(FileLocation::file(folder))
            .remedy(format!("see all problems with: mainstay catalog validate {folder}")),
    }
}

/// The reason why a ClusterExtension cannot be resolved. For unreadable catalogs, the remedies are
/// options.
pub(super) fn extension(failed: &FailedExtension) -> Cause {
    let cause = &failed.failure.cause;
    if failed.repairs.is_empty() {
        return cause.clone();
    }
    let without_remedies = Cause::new(cause.what()).because_all(cause.children().iter().cloned());
    let remedies = failed.repairs.iter().map(|repair| match repair {
        ContentRepair::CorrectFolder(folder) => format!("correct the folder {folder}"),
        ContentRepair::NameFolder(catalog) => {
            format!("supply its content with --catalog {catalog}=DIR")
        }
    });
    let others = cause.remedies().iter().filter(|_| failed.has_outage).cloned();
    others.chain(remedies).fold(without_remedies, Cause::remedy)
}

/// A file that cannot be written.
pub(super) fn universe_not_written(file: &Path, why: String) -> CommandFailure {
    Cause::new("the universe cannot be saved")
        .at(FileLocation::file(file))
        .because(Cause::new(why))
        .into()
}

/// A published catalog of a universe that is missing.
pub(super) fn missing_published_catalog(argument: &str, name: &str, why: Cause) -> CommandFailure {
    let message =
        format!("the published catalog {} is not available", mainstay_gocompat::quote(name));
    CommandFailure::usage(Cause::new(message).at(place_of(argument)).because(why))
}
