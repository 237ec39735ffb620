//! Bundles of the format registry+v1: one version of an operator as a folder.
//!
//! [`Bundle::read`] reads the folders `manifests` and `metadata`. A manifest file counts with its
//! first document. Metadata files are recognized by their content, not by their names.
//! [`Bundle::declare`] returns the `olm.bundle` blob of a catalog, byte for byte as `opm render`
//! prints it.
//!
//! ```text
//! tree of files ─► manifests ─┬─► Bundle ─► DeclaredBundle ─► JSON, YAML
//!                  metadata ──┘      └─► for validators and renderers: objects with file and line
//! ```
//!
//! An error has two texts: [`BundleError::upstream`] is the message of `opm`,
//! [`BundleError::problem`] names file, line and remedy. Content that upstream drops silently is in
//! [`Bundle::skipped_content`] and [`Bundle::repeated_keys`]. `unknown_fields` of [`Bundle`],
//! [`validate::LoadedBundle`] and [`BundleReader`] returns fields that no tool reads;
//! `unknown_apis` returns objects that no cluster serves.
//!
//! [`validate`] reads a folder as upstream's validation library does, and has its validators.
//! [`render`] returns the plain manifests that install a bundle as a ClusterExtension (OLM v1); it
//! reads the folder by its own rules.
//!
//! This crate does not pull images, and does not check the status of a ClusterServiceVersion, which
//! no bundle has.

mod bundle;
pub mod cel_rule;
mod csv;
mod declare;
mod decode_error;
mod error;
mod go_field;
mod image_template;
mod manifest;
mod metadata;
mod migrate;
mod pretty_unmarshal;
mod read;
mod reader;
pub mod render;
mod tree;
mod types;
mod unknown_api;
mod unknown_field;
pub mod validate;
mod write;

pub use bundle::Bundle;
pub use csv::{ApiKey, CsvManifest, RelatedImage};
pub use declare::{BundleImage, DeclaredBundle, DeclaredProperty};
pub use decode_error::{FirstDocumentError, FromUnstructuredError, ObjectError, TypeError};
pub use error::{BundleError, BundleProblem};
pub use image_template::{ImageTemplate, ImageTemplateError};
pub use mainstay_schema::builtin::{KubernetesReleaseError, ParseTextError};
pub use manifest::Manifest;
pub use metadata::{Annotations, BundleProperty};
pub use migrate::csv_metadata;
pub use read::Limits;
pub use reader::BundleReader;
pub use tree::{BundleFolder, FileEntry, FileKind, FileTree, MemoryFiles, is_bundle};
pub use unknown_api::UnknownApi;
pub use unknown_field::UnknownField;
