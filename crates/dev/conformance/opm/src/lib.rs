//! Conformance of `opm`: replays recorded cases of upstream's opm.
//!
//! The recorded cases (`answers/opm.tar.xz`, not part of the project) hold the results of opm 1.73:
//! exit code, output, error and written files. Each case runs in this process, in a copy of its
//! folder. [`compare`] compares outputs byte for byte, help texts by flags and defaults, and errors
//! with the branches of their trees sorted. Expected differences are listed ([`differences`]).

pub mod calls;
pub mod case;
pub mod compare;
pub mod differences;
pub mod image_registry;
mod message;
mod run;
pub mod scope;
pub mod working_folder;

pub use run::{CaseResult, report, run_cases};

use std::path::PathBuf;

/// The folder with the lists of this crate.
pub fn home() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
