//! Whether scripts can tell our `opm` from the real one.
//!
//! The recorded cases (`answers/opm.tar.xz`, not part of the project) say what opm 1.73 answered:
//! exit code, output, error, files written. Each runs in this process, in a copy of its folder, and
//! is compared ([`compare`]): output byte for byte, help by its flags and defaults, errors with
//! the branches of their trees sorted. Differences that are wanted are a short list ([`listed`]).

pub mod calls;
pub mod case;
pub mod compare;
pub mod listed;
mod message;
pub mod place;
mod run;
pub mod scope;
pub mod stock;

pub use run::{Judged, judge, report};

use std::path::PathBuf;

/// The folder with the lists of this crate.
pub fn home() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
