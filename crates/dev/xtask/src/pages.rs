//! The paths that pages name: each leads to a file or folder of the repository, and its anchor, if it
//! has one, to a heading of a page.
//!
//! Looked at are words in backticks that begin with a folder of the root (`crates/…`) or a layer
//! (`kube/…`), and relative links. `{a,b}` stands for both. A word with a placeholder in capitals, such
//! as `AREA`, is no path.

use anyhow::{Context, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Folders of the root.
const ROOT_FOLDERS: [&str; 4] = [".cargo", ".ci", "crates", "docs"];
/// Folders of `crates`.
const LAYERS: [&str; 6] = ["base", "catalog", "dev", "face", "kube", "lifecycle"];

/// Fails with a list of all paths and anchors that lead nowhere.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let mut pages = Vec::new();
    find(root, false, &mut pages)?;
    for folder in ["crates", "docs"] {
        find(&root.join(folder), true, &mut pages)?;
    }
    pages.sort();
    let (mut texts, mut headings) = (Vec::new(), BTreeMap::new());
    for page in pages {
        let read = || format!("read {}", page.display());
        let text = std::fs::read_to_string(&page).with_context(read)?;
        headings.insert(page.canonicalize().with_context(read)?, anchors(&text));
        texts.push((page, text));
    }
    let mut missing = Vec::new();
    for (page, text) in &texts {
        for (number, line) in text.lines().enumerate() {
            let dead = dead_ends(root, page, line, &headings)?;
            let place = format!("{}:{}", page.display(), number + 1);
            missing.extend(dead.into_iter().map(|end| format!("{place}: there is no {end}")));
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    bail!("{} paths lead nowhere:\n{}", missing.len(), missing.join("\n"))
}

/// The paths and links of a line that lead nowhere. `headings` has the anchors of each page, by its
/// canonical path.
fn dead_ends(
    root: &Path,
    page: &Path,
    line: &str,
    headings: &BTreeMap<PathBuf, BTreeSet<String>>,
) -> anyhow::Result<Vec<String>> {
    let home = page.parent().context("a page lies in a folder")?;
    let named = paths(line).into_iter().map(|path| root.join(path));
    let mut dead: Vec<String> =
        named.filter(|path| !path.exists()).map(|path| path.display().to_string()).collect();
    for Link { path, anchor } in links(line) {
        let target = if path.is_empty() { page.to_owned() } else { home.join(path) };
        let Ok(found) = target.canonicalize() else {
            dead.push(target.display().to_string());
            continue;
        };
        let of_page = headings.get(&found);
        let is_dead = |anchor: &&str| of_page.is_some_and(|anchors| !anchors.contains(*anchor));
        if let Some(anchor) = anchor.filter(is_dead) {
            dead.push(format!("heading for the link {path}#{anchor}"));
        }
    }
    Ok(dead)
}

/// The anchors of the headings of a page, as code hosts make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut is_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        let Some(heading) = line.strip_prefix('#').filter(|_| !is_code) else { continue };
        let slug: String = heading
            .trim_start_matches('#')
            .trim()
            .to_lowercase()
            .chars()
            .filter(|char| char.is_alphanumeric() || " -_".contains(*char))
            .map(|char| if char == ' ' { '-' } else { char })
            .collect();
        // A heading that repeats an earlier one gets a number.
        let mut unique = slug.clone();
        for number in 1.. {
            if found.insert(unique) {
                break;
            }
            unique = format!("{slug}-{number}");
        }
    }
    found
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

/// A relative link.
#[derive(Debug, PartialEq, Eq)]
struct Link<'a> {
    /// The path; empty for a link within the page.
    path: &'a str,
    /// The heading.
    anchor: Option<&'a str>,
}

/// The relative links of a line.
fn links(line: &str) -> Vec<Link<'_>> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets
        .filter(|target| !target.contains("://"))
        .map(|target| match target.split_once('#') {
            Some((path, anchor)) => Link { path, anchor: Some(anchor) },
            None => Link { path: target, anchor: None },
        })
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
        let link = |path, anchor| Link { path, anchor };
        assert_eq!(
            links("[a](b.md#c), [d](#e), [f](https://g.example/h), [i](j)"),
            [link("b.md", Some("c")), link("", Some("e")), link("j", None)]
        );
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

    #[test]
    fn anchor_without_a_heading_is_reported() {
        let root = tempfile::tempdir().unwrap();
        for folder in ["crates", "docs"] {
            std::fs::create_dir(root.path().join(folder)).unwrap();
        }
        let write = |name: &str, text: &str| std::fs::write(root.path().join(name), text).unwrap();
        write(
            "docs/a.md",
            "# Go on: `up`\n```\n# no heading\n```\n## Go on: up\nSee [b](../README.md#b).\n",
        );
        write(
            "README.md",
            "# B\n[a](docs/a.md#go-on-up), [b](#b), [twice](docs/a.md#go-on-up-1)\n",
        );
        run(root.path()).unwrap();

        write("README.md", "# B\n[a](docs/a.md#no-heading), [b](#c)\n");
        let error = run(root.path()).unwrap_err().to_string();
        for anchor in ["docs/a.md#no-heading", "#c"] {
            assert!(
                error.contains(&format!("README.md:2: there is no heading for the link {anchor}"))
            );
        }
        assert!(error.starts_with("2 paths lead nowhere"), "{error}");
    }
}
