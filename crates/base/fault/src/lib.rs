//! Faults that a test seeds, to prove that scenarios and tests would find them.
//!
//! A place that could be wrong in a typical way asks [`is_on`] whether it shall be:
//!
//! ```
//! let generation = 7;
//! let next = if mainstay_fault::is_on("generation-stands-still") { generation } else { generation + 1 };
//! assert_eq!(next, 8);
//! ```
//!
//! In a release that is the constant `false`, and the compiler removes what depends on it. In a build with
//! debug assertions, which is what tests run, one fault at a time can be seeded for the whole process: by the
//! variable `MAINSTAY_FAULT` that it is started with, or by `seed`. The test can ask whether the place was
//! come by at all (`was_met`): a fault that no scenario comes by is a gap of another kind than one that goes
//! unnoticed.
//!
//! Why not a feature of this crate: everything would be compiled a second time to hunt faults, as most
//! crates build on this one.
//!
//! Why not a macro or an attribute: a plain call reads as what it is, in places of all shapes.

#[cfg(not(debug_assertions))]
mod off;
#[cfg(debug_assertions)]
mod on;

#[cfg(not(debug_assertions))]
pub use off::is_on;
#[cfg(debug_assertions)]
pub use on::{is_on, seed, was_met};
