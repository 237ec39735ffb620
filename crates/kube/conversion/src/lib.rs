//! Conversion between versions of a kind, and decoding of values into objects of a kind.
//!
//! [`forms`] converts between the stored form and the versions that clients speak, as far as no
//! webhook is needed; [`webhook`] calls the conversion webhooks of CustomResourceDefinitions;
//! [`decode`] makes values objects of a kind, with its defaults.

pub mod decode;
pub mod forms;
pub mod webhook;
