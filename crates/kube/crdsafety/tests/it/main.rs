//! Tests of CRD upgrade safety.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod configuration;
mod evidence;
mod fixture;
mod impact;
mod preflight;
mod properties;
mod texts;
mod upstream_cases;
