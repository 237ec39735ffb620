//! Versions and ranges as catalogs and the Operator Lifecycle Manager write them.
//!
//! [`Version`] is a semantic version that compares by precedence only: build metadata distinguishes
//! neither versions nor keys of a map; where it counts as the [`Release`] of a bundle, that type
//! orders it. [`parse_strict`] and [`parse_tolerant`] read the two forms that catalogs use, [`Range`]
//! the range language of `skipRange` and version requirements, [`Constraint`] that of extensions.
//! Their errors carry the texts of the originals, because those texts end up in conditions and in
//! the output of tools.
//!
//! A range is lowered to an [`IntervalSet`] once; everything asked about it afterwards (does it
//! contain a version, do two ranges overlap, is one part of the other) is algebra on that set. The
//! algebra is exact: every semantic version has a direct successor, so each set of versions that a
//! range can describe is a unique list of half-open intervals. A constraint speaks about releases
//! and pre-releases apart, so it is lowered to two such lists, a [`VersionSet`].
//!
//! ```
//! use mainstay_version::{Constraint, Range, VersionSet, parse_strict};
//!
//! // Does the skipRange of 1.5.0 cover every version that a subscriber may have?
//! let skips = Range::parse(">=1.0.0 <1.5.0")?;
//! let installed = Range::parse("1.3.x || 1.4.x")?;
//! assert!(installed.set().is_subset(skips.set()));
//!
//! // What of it does an extension allow?
//! let allowed = Constraint::parse("~1.4")?;
//! let both = allowed.set().intersection(&VersionSet::from(skips.set().clone()));
//! assert_eq!(both.to_string(), ">=1.4.0 <1.5.0");
//!
//! // Which of these?
//! let published = ["1.3.0", "1.4.0", "1.4.1-rc.1", "1.5.0"].map(|text| parse_strict(text).unwrap());
//! let inside: Vec<_> = both.select(&published, |version| version).map(ToString::to_string).collect();
//! assert_eq!(inside, ["1.4.0"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What this does not do: read other range languages, sort lists, or know what a version
//! belongs to.

mod constraint;
mod interval;
mod range;
mod release;
mod set;
mod shown;
mod version;
mod version_release;

pub use constraint::{Constraint, ConstraintError};
pub use interval::{Interval, IntervalSet};
pub use range::{Range, RangeError};
pub use release::{Release, ReleaseError};
pub use set::VersionSet;
pub use version::{ParseError, Version, parse_strict, parse_tolerant};
pub use version_release::{VersionRelease, VersionReleaseError};
