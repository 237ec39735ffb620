//! Where cases run: copies of their folders, or the published catalogs and bundles.

use super::case::{self, Case};
use super::stock::Stock;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// What cases need besides their folders and is at hand.
#[derive(Debug, Default)]
pub struct Archives {
    /// The real inputs, by the name of their archive.
    inputs: BTreeMap<String, TempDir>,
    /// The images.
    stock: Option<Stock>,
    /// The home that command lines have unless they name another.
    home: Option<TempDir>,
}

/// What a case calls the registry with the images.
const REGISTRY: &str = "{registry}";

/// Where containers' tools look for their policy, whatever the home.
const POLICY: [&str; 2] = ["/etc/containers/policy.json", "/usr/share/containers/policy.json"];

impl Archives {
    /// Unpacks what the cases need, and says what is not at hand.
    ///
    /// # Errors
    ///
    /// What cannot be moved to where the command lines expect it.
    pub fn unpack(cases: &[Case]) -> anyhow::Result<Self> {
        let mut archives = BTreeMap::new();
        let mut stock = None;
        for (need, case) in cases.iter().filter_map(|case| Some((case.needs.as_deref()?, case))) {
            if need == "registry" && stock.is_none() {
                let images = case.folder.with_file_name("images");
                stock = Some(Stock::open(&images)?);
            }
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
        let home = tempfile::tempdir()?;
        let policy = home.path().join(".config/containers/policy.json");
        fs::create_dir_all(policy.parent().unwrap_or(&policy))?;
        fs::write(policy, r#"{"default":[{"type":"insecureAcceptAnything"}]}"#)?;
        Ok(Self { inputs: archives, stock, home: Some(home) })
    }

    /// A variable of the environment, as a case has it.
    pub(super) fn variable(&self, case: &Case, name: &str) -> Option<String> {
        let home = || self.home.as_ref().map(|home| home.path().to_string_lossy().into_owned());
        case.environment.get(name).cloned().or_else(|| (name == "HOME").then(home).flatten())
    }

    /// A recorded text as it reads with the registry that is at hand.
    pub(super) fn named(&self, text: &str) -> String {
        self.stock
            .as_ref()
            .map_or_else(|| text.to_owned(), |stock| text.replace(REGISTRY, &stock.address))
    }

    /// One of our texts as it would have been recorded.
    pub(super) fn unnamed(&self, text: &str) -> String {
        self.stock
            .as_ref()
            .map_or_else(|| text.to_owned(), |stock| text.replace(&stock.address, REGISTRY))
    }

    /// Whether a case has what it needs.
    pub fn has(&self, case: &Case) -> bool {
        // Without a home only the machine has a policy, if anybody.
        let bare = case.environment.get("HOME").is_some_and(|home| home == "/nonexistent");
        if bare && POLICY.iter().any(|path| Path::new(path).exists()) {
            return false;
        }
        match case.needs.as_deref() {
            None => true,
            Some("registry") => self.stock.is_some(),
            Some(need) => self.inputs.contains_key(need),
        }
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
                    && text.contains(REGISTRY)
                {
                    fs::write(root.join(path), archives.named(&text))?;
                }
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
