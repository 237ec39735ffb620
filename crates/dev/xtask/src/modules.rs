//! The module style: a module with parts is `foo/mod.rs`, not `foo.rs` beside `foo/`.

use anyhow::{Context, bail};
use std::path::{Path, PathBuf};

/// Fails with a list of all modules whose file lies beside their folder.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let mut beside = Vec::new();
    find(&root.join("crates"), &mut beside)?;
    if beside.is_empty() {
        return Ok(());
    }
    beside.sort();
    let list: Vec<String> = beside.iter().map(|file| file.display().to_string()).collect();
    bail!(
        "{} modules lie beside their folders (move foo.rs to foo/mod.rs):\n{}",
        list.len(),
        list.join("\n")
    )
}

fn find(folder: &Path, beside: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))?;
    for entry in entries {
        let path = entry.with_context(|| format!("list {}", folder.display()))?.path();
        if !path.is_dir() {
            continue;
        }
        let file = path.with_extension("rs");
        if file.is_file() {
            beside.push(file);
        }
        find(&path, beside)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn module_file_beside_its_folder_is_reported() {
        let root = tempfile::tempdir().unwrap();
        let source = root.path().join("crates/a/src");
        std::fs::create_dir_all(source.join("parts")).unwrap();
        std::fs::write(source.join("parts/mod.rs"), "").unwrap();
        run(root.path()).unwrap();

        std::fs::write(source.join("parts.rs"), "").unwrap();
        let error = run(root.path()).unwrap_err().to_string();
        assert!(error.contains("crates/a/src/parts.rs"), "{error}");
    }
}
