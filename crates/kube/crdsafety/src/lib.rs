//! CRD upgrade safety: whether a CustomResourceDefinition may replace another one.
//!
//! ```text
//! old, new CRD ── Crd::from_value ─► compare ─► Finding ─┬─► preflight_lines ─► condition message
//! configuration ─────────────────────┘  (text, severity, └─► Evidence ◄── stored objects, page by page
//!                                        impact, why)          └─► "0 of 312 stored objects …"
//! ```
//!
//! Texts and severities are those of operator-controller and its library crdify, so that an upgrade
//! that upstream refuses is refused here, with the same message. The [`Impact`] says beside that what a
//! change really does: many changes that upstream refuses are safe.
//!
//! This crate reads no cluster and no files. It does not validate CRDs: the API server does.

mod checks;
mod compare;
mod config;
mod crd;
mod evidence;
mod finding;
mod flatten;
mod go;
mod godiff;
mod impact;
mod preflight;

pub use compare::compare;
pub use config::{
    Check, CheckSettings, Configuration, ConversionPolicy, Enforcement, ParseCheckError, Policy,
    ReadConfigurationError,
};
pub use crd::{Crd, CrdError};
pub use evidence::{Evidence, Usage};
pub use finding::{CrdPathStep, Finding, FindingScope, FindingSeverity, override_check};
pub use impact::Impact;
pub use preflight::{condition_message, preflight, preflight_lines};
