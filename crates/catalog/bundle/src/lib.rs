//! Bundles of the format registry+v1: one version of an operator as a folder.
//!
//! [`Bundle::read`] takes a folder with `manifests` and `metadata` apart: the objects (the first
//! document of each file), the ClusterServiceVersion among them, custom resource definitions of both
//! versions, and what the metadata files say, which are known by what they hold and not by their
//! names. [`Bundle::declare`] makes of it the blob that a catalog has of the bundle, in the very
//! bytes of upstream's `opm render`.
//!
//! ```text
//! tree of files ─► manifests ─┬─► Bundle ─► DeclaredBundle ─► JSON, YAML
//!                  metadata ──┘      └─► for validators and renderers: objects with file and line
//! ```
//!
//! An error has two voices: [`BundleError::upstream`] is what `opm` says, [`BundleError::problem`]
//! names file, line and remedy. What upstream drops without a word is listed by
//! [`Bundle::passed_over`] and [`Bundle::repeated_keys`]; fields that no tool reads are by
//! `unknown_fields` of [`Bundle`], [`validate::Subject`] and [`Reading`], and objects that no cluster
//! serves by `unknown_apis`.
//!
//! [`validate`] judges bundles: it reads a folder as upstream's validation library does, and has its
//! validators. [`render`] makes of a bundle the plain manifests that install it, as extensions (OLM v1)
//! do; it reads the folder by rules of its own.
//!
//! What this crate does not do: pull images, or check the status of a ClusterServiceVersion, which no
//! bundle has.

mod bundle;
mod csv;
mod declare;
mod error;
mod kinds;
mod manifest;
mod metadata;
mod migrate;
mod mismatch;
mod pretty;
mod read;
mod reading;
pub mod render;
pub mod rule;
mod shape;
mod template;
mod tree;
mod types;
mod unknown;
pub mod validate;
mod write;

pub use bundle::Bundle;
pub use csv::{ApiKey, Csv, RelatedImage};
pub use declare::{DeclaredBundle, DeclaredProperty, Image};
pub use error::{BundleError, Problem};
pub use kinds::UnknownApi;
pub use mainstay_schema::builtin::{ParseReleaseError, ParseTextError};
pub use manifest::Manifest;
pub use metadata::{Annotations, Property};
pub use migrate::csv_metadata;
pub use mismatch::{ConvertError, DocumentError, ObjectError, TypeError};
pub use read::Limits;
pub use reading::Reading;
pub use template::{ImageTemplate, TemplateError};
pub use tree::{Entry, Files, Folder, Kind, Tree, is_bundle};
pub use unknown::UnknownField;
