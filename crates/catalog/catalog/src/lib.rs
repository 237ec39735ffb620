//! File-based catalogs: packages, channels and bundles declared by a folder of YAML and JSON.
//!
//! [`Catalog::load`] reads a whole folder, checks everything that can be checked without a cluster
//! and returns one immutable, shared index: package → channel → entry → bundle. If anything is
//! wrong, it returns a [`LoadError`] that names *every* problem with file, line and remedy. A
//! catalog that was loaded before stays as it is: its owner keeps serving it by keeping an `Arc`.
//!
//! ```text
//! folder ─► files (.indexignore) ─► parts ─► documents ─► blobs ─┬─► small facts ─► model + checks ─► Catalog
//!                                  (threads)         (Declared)  └─► canonical JSON, compressed ─► content
//! ```
//!
//! Files are split at document boundaries while they are read, and as many threads as there are
//! cores parse the parts. So neither a large file nor many of them are in memory at once. Only an
//! irregular or wrong file is read as a whole, so that its problems do not depend on the split.
//! [`KeptContent`] selects how much of the documents stays in memory: all, or what checks and lists need.
//!
//! The same checks report in two forms. Ours names all problems with their places;
//! [`LoadError::upstream`] is the message of upstream's `opm` for that catalog.
//!
//! Three decisions shape the crate:
//!
//! * **Content is owned, compressed, and in memory.** Nearly all bytes of a published catalog are
//!   manifests in base64 that are read once per installation. References into the files would break
//!   when the files change, and plain content would need as much memory as disk. So every blob is
//!   canonical JSON, compressed on its own after decoding its base64 (about a quarter of the YAML),
//!   and is decompressed on demand. Only what resolution needs stays decoded: names, versions,
//!   edges and the small properties.
//! * **The digest covers the meaning, not the files**: canonical blobs, sorted. Moving a blob to
//!   another file, reformatting, or converting YAML to JSON does not change it.
//! * **One function builds the model** for folders and for [snapshots](Catalog::save), so a restart
//!   cannot see another catalog than the one that was checked.
//!
//! This crate does not fetch images, render bundles, watch folders (the owner of a catalog source
//! does), or resolve dependencies.

mod case_fold;
mod check;
mod compression;
mod content;
mod declared;
mod decode;
mod document_error;
mod go_format;
mod graph;
mod indexignore;
mod lint;
mod load;
mod mermaid;
mod migrate;
mod min_kube_version;
mod model;
mod order;
mod parallel_read;
mod problem;
mod read;
mod rule;
mod shape;
mod snapshot;
mod source;
mod splitter;
mod syntax;
pub mod template;
mod upstream;
mod value;
mod write;

pub use content::{Blob, BlobError, BlobOrigin, BundleManifestError};
pub use declared::CatalogDocuments;
pub use decode::{BundleVersionError, ShapeError};
pub use document_error::CatalogDocumentError;
pub use lint::{LintReport, lint_catalog};
pub use load::{DocumentRules, KeptContent, Limits, LoadOptions, catalog_files};
pub use mainstay_formats::reference::reference_error as reference_fault;
pub use mainstay_gocompat::Base64Error;
pub use mermaid::{Diagram, DiagramError, DiagramOptions};
pub use migrate::{MigrateError, MigrationLevel, UnknownMigrationLevel};
pub use model::{
    Bundle, BundleApi, BundleProperty, Catalog, CatalogEntry, Channel, Package, PackageIcon,
    PackageRequirement, RelatedImage,
};
pub use order::ChannelOrder;
pub use problem::{BlobName, CatalogProblem, LoadError};
pub use rule::{CatalogRule, Severity};
pub use snapshot::{SnapshotDamage, SnapshotError};
pub use source::{FileSource, FolderSource, MemorySource, SourceFile, TreeError};
pub use value::{json_fault, json_stream_fault, property_fault};
pub use write::{CatalogFormat, PackageDocuments, Rendition, WriteError};
