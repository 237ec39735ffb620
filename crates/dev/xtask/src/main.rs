//! Chores of the project: `cargo xtask <chore> [--check]`.
//!
//! | Chore | What it does |
//! |---|---|
//! | `layers` | holds the arrows between crates |
//! | `schema` | writes the table of built-in kinds |
//! | `crds` | writes the custom resource definitions |
//! | `sample` | writes the sample catalog |
//! | `registry` | writes the code of the registry API |
//! | `coverage` | holds scenarios against the rows of the specification that they must show |
//! | `words` | holds names in the code to the words of the house |
//! | `pages` | holds the paths in the pages to the files |
//! | `check` | `layers`, `coverage`, `words`, `pages`, the module style, and says whether everything that is generated is fresh |
//!
//! With `--check` nothing is written; a stale file is an error.
#![expect(clippy::print_stdout, reason = "a command line tool")]

use anyhow::{Context, bail};
use std::path::Path;

mod coverage;
mod crds;
mod layers;
mod modules;
mod pages;
mod registry;
mod sample;
mod schema;
mod words;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let check = arguments.iter().any(|word| word == "--check");
    let chores: Vec<&str> =
        arguments.iter().map(String::as_str).filter(|word| *word != "--check").collect();
    let [chore] = chores.as_slice() else {
        bail!(
            "name one chore: layers, schema, crds, sample, registry, coverage, words, pages or check"
        );
    };
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = manifest.ancestors().nth(3).context("xtask lies three folders below the root")?;
    match *chore {
        "layers" => layers::run()?,
        "sample" => sample::run(root, check)?,
        "schema" => schema::run(root, check)?,
        "crds" => crds::run(root, check)?,
        "registry" => registry::run(root, check)?,
        "coverage" => coverage::run(root)?,
        "words" => words::run(root, check)?,
        "pages" => pages::run(root)?,
        "check" => {
            layers::run()?;
            modules::run(root)?;
            words::run(root, true)?;
            pages::run(root)?;
            coverage::run(root)?;
            sample::run(root, true)?;
            schema::run(root, true)?;
            crds::run(root, true)?;
            registry::run(root, true)?;
        }
        other => {
            bail!(
                "unknown chore `{other}`: one of layers, schema, crds, sample, registry, \
                 coverage, words, pages, check"
            )
        }
    }
    println!("{chore}: ok");
    Ok(())
}
