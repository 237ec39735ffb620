//! Working folders of cases: copies of their recorded folders, or published catalogs and bundles.

use super::case::{self, Case};
use super::image_registry::ImageRegistry;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Inputs of cases besides their folders.
#[derive(Debug, Default)]
pub struct Archives {
    /// Published catalogs and bundles, by the name of their archive.
    inputs: BTreeMap<String, TempDir>,
    /// The registry with the images of cases.
    registry: Option<ImageRegistry>,
    /// The default `HOME`, with an image policy that accepts everything.
    home: Option<TempDir>,
}

/// The placeholder of the registry's address in cases.
const REGISTRY_PLACEHOLDER: &str = "{registry}";

/// The image policy files of the machine, which apply without a home folder too.
const POLICY_FILES: [&str; 2] =
    ["/etc/containers/policy.json", "/usr/share/containers/policy.json"];

impl Archives {
    /// Unpacks the inputs that the cases need; missing archives are reported and skipped.
    ///
    /// # Errors
    ///
    /// An archive cannot be moved to the path that the command lines use.
    pub fn unpack(cases: &[Case]) -> anyhow::Result<Self> {
        let mut archives = BTreeMap::new();
        let mut registry = None;
        for (need, case) in cases.iter().filter_map(|case| Some((case.needs.as_deref()?, case))) {
            if need == "registry" && registry.is_none() {
                let images = case.folder.with_file_name("images");
                registry = Some(ImageRegistry::open(&images)?);
            }
            let Some(name) = need.strip_suffix(".tar.xz") else { continue };
            if archives.contains_key(need) {
                continue;
            }
            if let Some(folder) = mainstay_testdata::unpack(name, name) {
                // A catalog archive has a single folder, which the command lines call `input`.
                let mut entries = fs::read_dir(folder.path())?;
                if let (Some(only), None) = (entries.next(), entries.next()) {
                    fs::rename(only?.path(), folder.path().join("input"))?;
                }
                archives.insert(need.to_owned(), folder);
            }
        }
        let home = tempfile::tempdir()?;
        let policy = home.path().join(".config/containers/policy.json");
        fs::create_dir_all(policy.parent().unwrap_or(&policy))?;
        fs::write(policy, r#"{"default":[{"type":"insecureAcceptAnything"}]}"#)?;
        Ok(Self { inputs: archives, registry, home: Some(home) })
    }

    /// An environment variable of a case.
    pub(super) fn variable(&self, case: &Case, name: &str) -> Option<String> {
        let home = || self.home.as_ref().map(|home| home.path().to_string_lossy().into_owned());
        case.environment.get(name).cloned().or_else(|| (name == "HOME").then(home).flatten())
    }

    /// Replaces the placeholder in a recorded text by the registry's address.
    pub(super) fn fill_registry(&self, text: &str) -> String {
        self.registry.as_ref().map_or_else(
            || text.to_owned(),
            |registry| text.replace(REGISTRY_PLACEHOLDER, &registry.address),
        )
    }

    /// Replaces the registry's address in our text by the placeholder.
    pub(super) fn mask_registry(&self, text: &str) -> String {
        self.registry.as_ref().map_or_else(
            || text.to_owned(),
            |registry| text.replace(&registry.address, REGISTRY_PLACEHOLDER),
        )
    }

    /// Whether the inputs of a case are available.
    pub fn has_inputs(&self, case: &Case) -> bool {
        // These cases expect that no policy file exists; one of the machine would change the
        // result.
        let no_home = case.environment.get("HOME").is_some_and(|home| home == "/nonexistent");
        if no_home && POLICY_FILES.iter().any(|path| Path::new(path).exists()) {
            return false;
        }
        match case.needs.as_deref() {
            None => true,
            Some("registry") => self.registry.is_some(),
            Some(need) => self.inputs.contains_key(need),
        }
    }
}

/// The folder in which a command line runs.
#[derive(Debug)]
pub(super) struct WorkingFolder {
    copy: Option<TempDir>,
    /// Its path.
    pub(super) root: PathBuf,
}

impl WorkingFolder {
    /// Prepares the folder of a case: the published input that it needs, or a copy of its recorded
    /// folder.
    pub(super) fn of(case: &Case, archives: &Archives) -> anyhow::Result<Self> {
        if let Some(folder) = case.needs.as_ref().and_then(|need| archives.inputs.get(need)) {
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
        if case.needs.as_deref() == Some("registry") {
            for (path, bytes) in files(&root)? {
                if let Ok(text) = String::from_utf8(bytes)
                    && text.contains(REGISTRY_PLACEHOLDER)
                {
                    fs::write(root.join(path), archives.fill_registry(&text))?;
                }
            }
        }
        Ok(Self { copy: Some(copy), root })
    }

    /// All files in a copied folder, by path; empty for published input.
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

/// All files in a folder and its subfolders, by path.
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
