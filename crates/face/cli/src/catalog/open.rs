//! Folders that are named on the command line.

use super::CatalogCommandIo;
use crate::exit::CommandFailure;
use mainstay_bundle::BundleFolder;
use mainstay_catalog::{Catalog, FolderSource, KeptContent, LoadOptions};
use mainstay_cause::{Cause, FileLocation};
use mainstay_gocompat::io_error_text;
use std::{path::PathBuf, sync::Arc};

/// A folder that exists.
pub(crate) struct OpenedFolder {
    /// The path as typed.
    pub(crate) argument: String,
    /// The absolute path, or one from the current folder.
    pub(crate) path: PathBuf,
    /// Whether the folder holds a bundle, not a catalog.
    pub(crate) is_bundle: bool,
}

impl OpenedFolder {
    /// The path of an entry of the folder, as the user would type it.
    pub(super) fn below(&self, path: &str) -> String {
        format!("{}/{path}", self.argument.trim_end_matches('/'))
    }

    /// Loads the catalog, with the parts that `keep` names.
    ///
    /// # Errors
    /// The first problem, with the command that lists all problems.
    pub(super) fn load(&self, keep: KeptContent) -> Result<Arc<Catalog>, CommandFailure> {
        if self.is_bundle {
            return Err(CommandFailure::usage(
                Cause::new("the folder holds a bundle, not a catalog")
                    .at(FileLocation::file(&self.argument))
                    .remedy("name the folder of a catalog"),
            ));
        }
        let options = LoadOptions { keep, ..LoadOptions::default() };
        Catalog::load_from(&FolderSource::new(&self.path), &options).map_err(|error| {
            let cause = Cause::new("the catalog cannot be used")
                .at(FileLocation::file(&self.argument))
                .remedy(format!(
                    "see all problems with: mainstay catalog validate {}",
                    self.argument
                ));
            cause.because(Cause::new(super::escape_controls(&error.headline()))).into()
        })
    }
}

/// Checks that a folder exists, and whether it holds a bundle.
///
/// # Errors
/// The folder does not exist.
pub(crate) fn open(
    io: &CatalogCommandIo<'_>,
    argument: &str,
) -> Result<OpenedFolder, CommandFailure> {
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
            Ok(OpenedFolder { argument: argument.to_owned(), path, is_bundle })
        }
        Ok(_) => refuse("this is a file, not a folder".to_owned()),
        Err(error) => refuse(io_error_text(&error)),
    }
}
