//! Seeded faults: mistakes that a test switches on, to prove that scenarios and tests find them.
//!
//! Code that could be wrong in a typical way asks [`is_on`] whether it shall be:
//!
//! ```
//! let generation = 7;
//! let next = if mainstay_fault::is_on("generation-stands-still") { generation } else { generation + 1 };
//! assert_eq!(next, 8);
//! ```
//!
//! In a release, [`is_on`] is the constant `false`, and the compiler removes the code of the faults. In a
//! build with debug assertions, as tests use it, one fault at a time can be seeded for the whole process:
//! by the environment variable `MAINSTAY_FAULT` at start, or by `seed`. A test can ask whether the code of
//! the fault was reached (`was_reached`): a fault that no scenario reaches is a different gap than one that
//! stays unnoticed.
//!
//! This is not a feature of the crate: most crates depend on it, so Cargo would compile them all a second
//! time.
//!
//! This is not a macro or an attribute either: a plain call is readable in code of any shape.

#[cfg(not(debug_assertions))]
mod disabled;
#[cfg(debug_assertions)]
mod enabled;

#[cfg(not(debug_assertions))]
pub use disabled::is_on;
#[cfg(debug_assertions)]
pub use enabled::{is_on, seed, was_reached};
