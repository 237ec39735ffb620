//! Folders as they were named on the command line.

use super::Io;
use crate::{config::reason, exit::Failure};
use mainstay_bundle::Folder as BundleFolder;
use mainstay_catalog::{Catalog, Folder, Keep, LoadOptions};
use mainstay_cause::{Cause, Place};
use std::{path::PathBuf, sync::Arc};

/// A folder that is there.
pub(crate) struct Opened {
    /// As it was typed.
    pub(crate) typed: String,
    /// Where it is.
    pub(crate) path: PathBuf,
    /// It holds a bundle, not a catalog.
    pub(crate) is_bundle: bool,
}

impl Opened {
    /// The path of something in the folder, as somebody would type it.
    pub(super) fn below(&self, path: &str) -> String {
        format!("{}/{path}", self.typed.trim_end_matches('/'))
    }

    /// The catalog, as far as `keep` asks.
    ///
    /// # Errors
    /// The first thing that is wrong with it, and how to learn of all others.
    pub(super) fn load(&self, keep: Keep) -> Result<Arc<Catalog>, Failure> {
        if self.is_bundle {
            return Err(Failure::usage(
                Cause::new("the folder holds a bundle, not a catalog")
                    .at(Place::file(&self.typed))
                    .remedy("name the folder of a catalog"),
            ));
        }
        let options = LoadOptions { keep, ..LoadOptions::default() };
        Catalog::load_from(&Folder::new(&self.path), &options).map_err(|error| {
            let cause = Cause::new("the catalog cannot be used")
                .at(Place::file(&self.typed))
                .remedy(format!("see all problems with: mainstay catalog validate {}", self.typed));
            cause.because(Cause::new(super::plain(&error.headline()))).into()
        })
    }
}

/// Looks whether a folder is there.
///
/// # Errors
/// If it is not.
pub(crate) fn open(io: &Io<'_>, typed: &str) -> Result<Opened, Failure> {
    let refuse = |why: String| {
        let cause = Cause::new(why).at(Place::file(typed));
        Err(Failure::usage(cause.remedy("name the folder of a catalog or a bundle")))
    };
    if typed.is_empty() {
        return refuse("the path is empty".to_owned());
    }
    let path = io.folder.join(typed);
    match std::fs::metadata(&path) {
        Ok(found) if found.is_dir() => {
            let is_bundle = mainstay_bundle::is_bundle(&BundleFolder::new(&path));
            Ok(Opened { typed: typed.to_owned(), path, is_bundle })
        }
        Ok(_) => refuse("this is a file, not a folder".to_owned()),
        Err(error) => refuse(reason(&error)),
    }
}
