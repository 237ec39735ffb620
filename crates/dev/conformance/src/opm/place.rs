//! Where cases run: copies of their folders, or the published catalogs and bundles.

use super::case::{self, Case};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The real inputs that are at hand, by the name of their archive.
#[derive(Debug, Default)]
pub struct Archives(BTreeMap<String, TempDir>);

impl Archives {
    /// Unpacks what the cases need, and says what is not at hand.
    ///
    /// # Errors
    ///
    /// What cannot be moved to where the command lines expect it.
    pub fn unpack(cases: &[Case]) -> anyhow::Result<Self> {
        let mut archives = BTreeMap::new();
        for need in cases.iter().filter_map(|case| case.needs.as_deref()) {
            let Some(name) = need.strip_suffix(".tar.xz") else { continue };
            if archives.contains_key(need) {
                continue;
            }
            if let Some(folder) = mainstay_testdata::unpack(name, name) {
                // A catalog lies in the one folder of its archive; the command lines call it `input`.
                let mut entries = fs::read_dir(folder.path())?;
                if let (Some(only), None) = (entries.next(), entries.next()) {
                    fs::rename(only?.path(), folder.path().join("input"))?;
                }
                archives.insert(need.to_owned(), folder);
            }
        }
        Ok(Self(archives))
    }

    /// Whether a case has what it needs.
    pub fn has(&self, case: &Case) -> bool {
        case.needs.as_ref().is_none_or(|need| self.0.contains_key(need))
    }
}

/// The folder a command line runs in.
#[derive(Debug)]
pub(super) struct Place {
    copy: Option<TempDir>,
    /// Where it is.
    pub(super) root: PathBuf,
}

impl Place {
    /// The folder of a case: the real input it needs, or a copy of its own.
    pub(super) fn of(case: &Case, archives: &Archives) -> anyhow::Result<Self> {
        if let Some(folder) = case.needs.as_ref().and_then(|need| archives.0.get(need)) {
            return Ok(Self { copy: None, root: fs::canonicalize(folder.path())? });
        }
        let copy = tempfile::tempdir()?;
        let root = fs::canonicalize(copy.path())?;
        for entry in fs::read_dir(&case.folder)? {
            let entry = entry?;
            if case::is_input(&entry.file_name().to_string_lossy()) {
                copy_to(&entry.path(), &root.join(entry.file_name()))?;
            }
        }
        Ok(Self { copy: Some(copy), root })
    }

    /// All files there by their path, without real input.
    pub(super) fn files(&self) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
        if self.copy.is_some() { files(&self.root) } else { Ok(BTreeMap::new()) }
    }
}

fn copy_to(from: &Path, to: &Path) -> anyhow::Result<()> {
    let kind = fs::symlink_metadata(from)?.file_type();
    if kind.is_symlink() {
        std::os::unix::fs::symlink(fs::read_link(from)?, to)?;
    } else if kind.is_dir() {
        fs::create_dir(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy_to(&entry.path(), &to.join(entry.file_name()))?;
        }
    } else {
        fs::copy(from, to)?;
    }
    Ok(())
}

/// All files below a folder, by their path.
pub(super) fn files(root: &Path) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let kind = fs::symlink_metadata(&path)?.file_type();
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                let name = path.strip_prefix(root)?.to_string_lossy().into_owned();
                found.insert(name, fs::read(&path)?);
            }
        }
    }
    Ok(found)
}
