//! The PATHs of commands: folders, and ClusterCatalogs of a cluster.

use super::cluster_catalog::{self, ServedContent, names_cluster_catalog};
use mainstay_bundle::BundleFolder;
use mainstay_catalog::{Catalog, FileSource, FolderSource, KeptContent, LoadOptions};
use mainstay_cause::{Cause, FileLocation};
use mainstay_command::cluster::{ClusterHandle, ConnectionArguments};
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_gocompat::io_error_text;
use std::{path::PathBuf, sync::Arc};

/// A folder that exists.
pub struct OpenedFolder {
    /// The path as typed.
    pub argument: String,
    /// The absolute path, or one from the current folder.
    pub path: PathBuf,
    /// The files of the folder.
    files: FolderSource,
    /// Whether the folder holds a bundle, not a catalog.
    pub is_bundle: bool,
}

/// The content that a PATH names.
pub(super) enum OpenedPath {
    /// A folder with a catalog or a bundle.
    Folder(OpenedFolder),
    /// A catalog that a cluster serves.
    ClusterCatalog(ServedContent),
}

impl OpenedPath {
    /// The path as typed.
    pub(super) fn argument(&self) -> &str {
        match self {
            Self::Folder(folder) => &folder.argument,
            Self::ClusterCatalog(served) => &served.argument,
        }
    }

    /// The path of a file of the content, as the user would type it.
    pub(super) fn below(&self, path: &str) -> String {
        format!("{}/{path}", self.argument().trim_end_matches('/'))
    }

    /// The folder, if it holds a bundle.
    pub(super) fn bundle_folder(&self) -> Option<&OpenedFolder> {
        match self {
            Self::Folder(folder) if folder.is_bundle => Some(folder),
            _ => None,
        }
    }

    /// The files of the content.
    pub(super) fn source(&self) -> &dyn FileSource {
        match self {
            Self::Folder(folder) => &folder.files,
            Self::ClusterCatalog(served) => &served.files,
        }
    }

    /// Loads the catalog, with the parts that `keep` names.
    ///
    /// # Errors
    /// The first problem, with the command that lists all problems.
    pub(super) fn load(&self, keep: KeptContent) -> Result<Arc<Catalog>, CommandFailure> {
        let argument = self.argument();
        if self.bundle_folder().is_some() {
            return Err(CommandFailure::usage(
                Cause::new("the folder holds a bundle, not a catalog")
                    .at(FileLocation::file(argument))
                    .remedy("name the folder of a catalog"),
            ));
        }
        let options = LoadOptions { keep, ..LoadOptions::default() };
        Catalog::load_from(self.source(), &options).map_err(|error| {
            let cause = Cause::new("the catalog cannot be used")
                .at(FileLocation::file(argument))
                .remedy(format!("see all problems with: mainstay catalog validate {argument}"));
            cause
                .because(Cause::new(mainstay_command::text::escape_controls(&error.headline())))
                .into()
        })
    }
}

/// Opens the PATHs of a command. If one names a ClusterCatalog, connects to its cluster. Of a
/// ClusterCatalog, reads only the documents of `package`, if the catalog has it.
///
/// # Errors
/// A folder does not exist, or a ClusterCatalog cannot be read.
pub(super) async fn open_paths<C: ClusterHandle>(
    io: &CommandIo<'_>,
    arguments: &[String],
    package: Option<&str>,
    connection: &ConnectionArguments,
    connect: impl AsyncFnOnce(&ConnectionArguments) -> Result<C, CommandFailure>,
) -> Result<Vec<OpenedPath>, CommandFailure> {
    if !arguments.iter().any(|argument| names_cluster_catalog(argument)) {
        let opened = arguments.iter().map(|argument| open(io, argument).map(OpenedPath::Folder));
        return opened.collect();
    }
    let cluster = connect(connection).await?;
    let mut opened = Vec::new();
    for argument in arguments {
        opened.push(open_on_cluster(io, argument, package, &cluster).await?);
    }
    Ok(opened)
}

/// Opens the only PATH of a command.
///
/// # Errors
/// As [`open_paths`].
pub(super) async fn open_path<C: ClusterHandle>(
    io: &CommandIo<'_>,
    argument: &str,
    package: Option<&str>,
    connection: &ConnectionArguments,
    connect: impl AsyncFnOnce(&ConnectionArguments) -> Result<C, CommandFailure>,
) -> Result<OpenedPath, CommandFailure> {
    if names_cluster_catalog(argument) {
        open_on_cluster(io, argument, package, &connect(connection).await?).await
    } else {
        open(io, argument).map(OpenedPath::Folder)
    }
}

/// Opens a folder, or a ClusterCatalog of the cluster.
///
/// # Errors
/// As [`open_paths`].
pub(super) async fn open_on_cluster(
    io: &CommandIo<'_>,
    argument: &str,
    package: Option<&str>,
    cluster: &impl ClusterHandle,
) -> Result<OpenedPath, CommandFailure> {
    if names_cluster_catalog(argument) {
        let catalog = cluster_catalog::find(cluster, argument).await?;
        let served = cluster_catalog::read(cluster, &catalog, argument, package).await?;
        Ok(OpenedPath::ClusterCatalog(served))
    } else {
        open(io, argument).map(OpenedPath::Folder)
    }
}

/// Checks that a folder exists, and whether it holds a bundle.
///
/// # Errors
/// The folder does not exist.
pub fn open(io: &CommandIo<'_>, argument: &str) -> Result<OpenedFolder, CommandFailure> {
    let refuse = |why: String| {
        let cause = Cause::new(why).at(FileLocation::file(argument));
        Err(CommandFailure::usage(cause.remedy("name the folder of a catalog or a bundle")))
    };
    if argument.is_empty() {
        return refuse("the path is empty".to_owned());
    }
    let path = io.folder.join(argument);
    match std::fs::metadata(&path) {
        Ok(found) if found.is_dir() => {
            let is_bundle = mainstay_bundle::is_bundle(&BundleFolder::new(&path));
            let files = FolderSource::new(&path);
            Ok(OpenedFolder { argument: argument.to_owned(), path, files, is_bundle })
        }
        Ok(_) => refuse("this is a file, not a folder".to_owned()),
        Err(error) => refuse(io_error_text(&error)),
    }
}
