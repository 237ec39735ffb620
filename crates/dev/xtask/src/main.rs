//! Chores of the project: `cargo xtask <chore> [--check]`.
//!
//! | Chore | What it does |
//! |---|---|
//! | `layers` | holds the arrows between crates |
//! | `schema` | writes the table of built-in kinds (`--check`: says whether it is fresh) |
//! | `crds` | writes the custom resource definitions (`--check` likewise) |
//! | `check` | all of the above with `--check` |
#![expect(clippy::print_stdout, reason = "a command line tool")]

use anyhow::bail;

mod layers;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["layers"] => layers::run()?,
        ["check"] => layers::run()?,
        other => bail!("unknown chore `{}`: one of layers, schema, crds, check", other.join(" ")),
    }
    println!("{}: ok", words.join(" "));
    Ok(())
}
