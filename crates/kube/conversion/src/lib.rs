//! Conversion between versions of a kind, and decoding of values into objects of a kind.
//!
//! * [`forms`] converts between the storage version and served versions, without webhooks.
//! * [`webhook`] calls the conversion webhooks of CustomResourceDefinitions.
//! * [`decode`] turns values into objects of a kind, with its defaults.

pub mod decode;
pub mod forms;
pub mod webhook;
