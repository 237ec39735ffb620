//! Whether scripts can tell our `opm` from the real one.
//!
//! The recorded cases (`answers/opm.tar.xz`, not part of the project) say what opm 1.73 answered:
//! exit code, output, error, files written. Each runs in this process, in a copy of its folder, and
//! is compared ([`compare`]): output byte for byte, help by its flags and defaults, errors with
//! the branches of their trees sorted. Differences that are wanted are a short list ([`listed`]).

pub mod case;
pub mod compare;
pub mod listed;
mod message;
mod run;

pub use run::{Judged, judge, report};

use case::Case;

/// The areas in which cases are run.
pub const AREAS: [&str; 5] = ["cli", "dockerfile", "init", "list", "validate"];

/// Commands of upstream that are not built.
const ABSENT: [&str; 9] = [
    "bundle",
    "convert-template",
    "index",
    "migrate",
    "registry",
    "render",
    "render-graph",
    "render-template",
    "serve",
];

/// Whether a case is about something that is built.
pub fn is_built(case: &Case) -> bool {
    let absent = |word: &String| case.area == "cli" && ABSENT.contains(&word.as_str());
    AREAS.contains(&case.area.as_str())
        && case.needs.is_none()
        && !case.arguments.iter().any(absent)
}
