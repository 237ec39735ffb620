//! Examples in the documentation of libraries: a library with any runs them as tests, and one without does not start
//! rustdoc only to find none, which took more than a minute of each run of all tests.

use anyhow::{Context, bail};
use std::path::Path;

/// The line of a manifest that turns off the search for examples.
const OFF: &str = "doctest = false";

/// Fails with a list of all libraries that search for examples in vain, or that do not run theirs.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let mut wrong = Vec::new();
    find(&root.join("crates"), &mut wrong)?;
    if wrong.is_empty() {
        return Ok(());
    }
    wrong.sort();
    bail!("{} manifests are wrong about examples:\n{}", wrong.len(), wrong.join("\n"))
}

/// Judges the libraries below a folder.
fn find(folder: &Path, wrong: &mut Vec<String>) -> anyhow::Result<()> {
    let manifest = folder.join("Cargo.toml");
    let source = folder.join("src");
    if source.join("lib.rs").is_file() {
        let text = std::fs::read_to_string(&manifest)
            .with_context(|| format!("read {}", manifest.display()))?;
        let is_off = text.lines().any(|line| line.trim() == OFF);
        let has_examples = has_examples(&source)?;
        if is_off == has_examples {
            let advice = if has_examples {
                "the library has examples: remove"
            } else {
                "the library has no examples: add to [lib]"
            };
            wrong.push(format!("{}: {advice} `{OFF}`", manifest.display()));
        }
    }
    for entry in std::fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))? {
        let path = entry.with_context(|| format!("list {}", folder.display()))?.path();
        if path.is_dir() && path != source {
            find(&path, wrong)?;
        }
    }
    Ok(())
}

/// Whether a source file below a folder has an example.
fn has_examples(folder: &Path) -> anyhow::Result<bool> {
    for entry in std::fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))? {
        let path = entry.with_context(|| format!("list {}", folder.display()))?.path();
        let found = if path.is_dir() {
            has_examples(&path)?
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path)
                .with_context(|| format!("read {}", path.display()))?;
            has_example(&text)
        } else {
            false
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether rustdoc would run a block of a source file's documentation: one in Rust, which is what a block without a
/// language is.
fn has_example(source: &str) -> bool {
    let comments = source.lines().map(str::trim_start).filter_map(|line| {
        let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
        text.trim_start().strip_prefix("```")
    });
    let mut is_open = false;
    for fence in comments {
        is_open = !is_open;
        let runs = fence.split(',').map(str::trim).all(|word| {
            matches!(word, "" | "rust" | "no_run" | "should_panic" | "compile_fail")
                || word.starts_with("edition")
        });
        if is_open && runs {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_in_rust_are_examples() {
        let block = |language: &str| {
            format!("/// Text.\n///\n/// ```{language}\n/// x\n/// ```\nfn f() {{}}\n")
        };
        for language in ["", "rust", "no_run", "rust,should_panic"] {
            assert!(has_example(&block(language)), "{language}");
        }
        for language in ["text", "yaml", "ignore", "sh", "rust,ignore"] {
            assert!(!has_example(&block(language)), "{language}");
        }
        assert!(has_example(&(block("text") + &block(""))));
    }

    #[test]
    fn manifests_agree_with_the_sources() {
        let root = tempfile::tempdir().unwrap();
        let library = root.path().join("crates/base/a");
        std::fs::create_dir_all(library.join("src")).unwrap();
        let source = library.join("src/lib.rs");
        let manifest = library.join("Cargo.toml");
        std::fs::write(&source, "//! Text.\n").unwrap();
        std::fs::write(&manifest, "[package]\n").unwrap();
        let error = run(root.path()).unwrap_err().to_string();
        assert!(error.contains("crates/base/a/Cargo.toml: the library has no examples"), "{error}");
        std::fs::write(&manifest, format!("[package]\n[lib]\n{OFF}\n")).unwrap();
        run(root.path()).unwrap();
        std::fs::write(&source, "//! ```\n//! f();\n//! ```\n").unwrap();
        let error = run(root.path()).unwrap_err().to_string();
        assert!(error.contains("the library has examples"), "{error}");
    }
}
