//! The paths that pages name: each leads to a file or folder of the repository.
//!
//! Looked at are words in backticks that begin with a folder of the root (`crates/…`) or a layer
//! (`kube/…`), and relative links. `{a,b}` stands for both. A word with a placeholder in capitals, such
//! as `AREA`, is no path.

use anyhow::{Context, bail};
use std::path::{Path, PathBuf};

/// Folders of the root.
const ROOT_FOLDERS: [&str; 4] = [".cargo", ".ci", "crates", "docs"];
/// Folders of `crates`.
const LAYERS: [&str; 6] = ["base", "catalog", "dev", "face", "kube", "lifecycle"];

/// Fails with a list of all paths that lead nowhere.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let mut pages = Vec::new();
    find(root, false, &mut pages)?;
    for folder in ["crates", "docs"] {
        find(&root.join(folder), true, &mut pages)?;
    }
    pages.sort();
    let mut missing = Vec::new();
    for page in &pages {
        let text =
            std::fs::read_to_string(page).with_context(|| format!("read {}", page.display()))?;
        let home = page.parent().context("a page lies in a folder")?;
        for (number, line) in text.lines().enumerate() {
            let named = paths(line).into_iter().map(|path| root.join(path));
            let linked = links(line).into_iter().map(|path| home.join(path));
            missing.extend(named.chain(linked).filter(|path| !path.exists()).map(|path| {
                format!("{}:{}: there is no {}", page.display(), number + 1, path.display())
            }));
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    bail!("{} paths lead nowhere:\n{}", missing.len(), missing.join("\n"))
}

/// Finds the pages of a folder, and of the folders below it if wanted.
fn find(folder: &Path, below: bool, pages: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let list = || format!("list {}", folder.display());
    for entry in std::fs::read_dir(folder).with_context(list)? {
        let path = entry.with_context(list)?.path();
        if path.is_dir() && below {
            find(&path, below, pages)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    Ok(())
}

/// The paths in backticks, from the root.
fn paths(line: &str) -> Vec<String> {
    let words = line.split('`').skip(1).step_by(2);
    let is_path = |word: &&str| {
        let allowed = |char: char| char.is_ascii_alphanumeric() || "_./{},-".contains(char);
        word.contains('/')
            && word.chars().all(allowed)
            && !word.split(['/', '.']).any(is_placeholder)
    };
    words
        .filter(is_path)
        .filter_map(|word| {
            let first = word.split('/').next()?;
            if ROOT_FOLDERS.contains(&first) {
                return Some(word.to_owned());
            }
            LAYERS.contains(&first).then(|| format!("crates/{word}"))
        })
        .flat_map(|word| alternatives(&word))
        .collect()
}

/// Whether a part of a path stands for others.
fn is_placeholder(part: &str) -> bool {
    part.len() > 1 && part != "README" && part.chars().all(|char| char.is_ascii_uppercase())
}

/// The paths that `{a,b}` in a path stands for.
fn alternatives(path: &str) -> Vec<String> {
    let parts = path.split_once('{').and_then(|(before, rest)| {
        rest.split_once('}').map(|(inside, after)| (before, inside, after))
    });
    let Some((before, inside, after)) = parts else { return vec![path.to_owned()] };
    inside.split(',').map(|part| format!("{before}{part}{after}")).collect()
}

/// The relative links, without their anchors.
fn links(line: &str) -> Vec<&str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets
        .filter(|target| !target.contains("://") && !target.starts_with('#'))
        .filter_map(|target| target.split('#').next())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_in_backticks_and_links_are_found() {
        let line = "`kube/client/src/{cache,queue}.rs`, `docs/a.md`, `crates/x/AREA.yaml`, `a/b`";
        assert_eq!(
            paths(line),
            ["crates/kube/client/src/cache.rs", "crates/kube/client/src/queue.rs", "docs/a.md"]
        );
        assert_eq!(links("[a](b.md#c), [d](#e), [f](https://g.example/h)"), ["b.md"]);
    }

    #[test]
    fn path_that_leads_nowhere_is_reported_with_its_line() {
        let root = tempfile::tempdir().unwrap();
        for folder in ["crates", "docs"] {
            std::fs::create_dir(root.path().join(folder)).unwrap();
        }
        let page = root.path().join("README.md");
        std::fs::write(&page, "See `docs`.\n`crates/` has the code.\n").unwrap();
        run(root.path()).unwrap();

        std::fs::write(&page, "See `docs`.\n`crates/none.rs` has the code.\n").unwrap();
        let error = run(root.path()).unwrap_err().to_string();
        assert!(error.contains("README.md:2: there is no "), "{error}");
        assert!(error.contains("crates/none.rs"), "{error}");
    }
}
