//! Semantic versions, version ranges and version constraints of OLM and its catalogs.
//!
//! [`Version`] is a semantic version that compares by precedence only: build metadata distinguishes
//! neither versions nor keys of a map. Where it counts as the release of a bundle, [`BundleRelease`]
//! orders it. [`parse_strict`] and [`parse_tolerant`] read the two forms that catalogs use. [`Range`]
//! reads the range language of `skipRange` and version requirements, [`VersionConstraint`] that of
//! extensions. Their errors have upstream's texts, because those appear in conditions and in the output
//! of tools.
//!
//! A range is parsed into an [`IntervalSet`] once. Membership, overlap and inclusion are then set
//! operations. They are exact: every semantic version has a direct successor, so each set of versions
//! that a range can describe is a unique list of half-open intervals. A constraint treats releases and
//! pre-releases separately, so it becomes two such lists, a [`VersionSet`].
//!
//! ```
//! use mainstay_version::{VersionConstraint, Range, VersionSet, parse_strict};
//!
//! // Does the skipRange of 1.5.0 cover every version that may be installed?
//! let skips = Range::parse(">=1.0.0 <1.5.0")?;
//! let installed = Range::parse("1.3.x || 1.4.x")?;
//! assert!(installed.set().is_subset(skips.set()));
//!
//! // Which of these versions does the constraint of an extension allow?
//! let allowed = VersionConstraint::parse("~1.4")?;
//! let both = allowed.set().intersection(&VersionSet::from(skips.set().clone()));
//! assert_eq!(both.to_string(), ">=1.4.0 <1.5.0");
//!
//! // Which of the published versions are these?
//! let published = ["1.3.0", "1.4.0", "1.4.1-rc.1", "1.5.0"].map(|text| parse_strict(text).unwrap());
//! let inside: Vec<_> = both.select(&published, |version| version).map(ToString::to_string).collect();
//! assert_eq!(inside, ["1.4.0"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This crate does not read other range languages, does not sort lists, and does not know which object
//! a version belongs to.

mod constraint;
mod display;
mod interval;
mod range;
mod release;
mod set;
mod version;
mod version_release;

pub use constraint::{VersionConstraint, VersionConstraintError};
pub use interval::{Interval, IntervalSet};
pub use range::{Range, RangeError};
pub use release::{BundleRelease, ParseReleaseError};
pub use set::VersionSet;
pub use version::{ParseVersionError, Version, parse_strict, parse_tolerant};
pub use version_release::{VersionRelease, VersionReleaseError};
