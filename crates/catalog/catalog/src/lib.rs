//! File-based catalogs: what a folder of YAML and JSON says about packages, channels and bundles.
//!
//! [`Catalog::load`] reads a whole folder, checks everything that can be checked without a cluster
//! and hands out one immutable, shared index: package → channel → entry → bundle. Either all of
//! it is sound or the caller gets a [`LoadError`] that names *every* problem with file, line and
//! what to do; the catalog that was loaded before stays untouched, so serving the last good
//! content is nothing more than keeping an `Arc`.
//!
//! ```text
//! folder ─► files (.indexignore) ─► parts ─► documents ─► blobs ─┬─► small facts ─► model + checks ─► Catalog
//!                                  (threads)             (Declared) └─► canonical JSON, packed ─► content
//! ```
//!
//! Files are cut at document boundaries while they stream by, and the parts are parsed by as many
//! threads as there are cores: neither a large file nor many of them are in memory at once. Only a
//! file that is unusual or wrong is read as a whole, so that all of its problems have their words
//! and places whatever the cut. [`Keep`] says how much of the documents stays: all of them, or only
//! what checks and lists need.
//!
//! What is wrong is said in two voices, found by the same checks: ours names all problems with
//! their places, and [`LoadError::upstream`] says what upstream's `opm` says to that catalog.
//!
//! Three decisions shape the crate:
//!
//! * **Content is owned, compressed, and in memory.** Nearly all bytes of a published catalog are
//!   manifests in base64 that are looked at once per installation. Pointing into the files would
//!   break when they are edited or deleted, and keeping them plain would cost what they weigh on
//!   disk. So every blob is kept as canonical JSON, compressed one by one with its base64 opened
//!   (about a quarter of the YAML), and is unpacked when somebody asks. Only what resolution needs
//!   stays decoded: names, versions, edges and the small properties.
//! * **The digest is over meaning, not over files**: canonical blobs, sorted. Moving a blob to
//!   another file, reformatting, or converting YAML to JSON does not change it.
//! * **The model is built by one piece of code** for folders and for [snapshots](Catalog::save),
//!   so a restart cannot see another catalog than the one that was checked.
//!
//! What this crate does not do: fetch images, render bundles, watch folders (the owner of a
//! catalog source does), or resolve dependencies.

mod check;
mod content;
mod cut;
mod declared;
mod decode;
mod fold;
mod golang;
mod graph;
mod ignored;
mod least;
mod lint;
mod load;
mod mermaid;
mod migrate;
mod model;
mod odd;
mod order;
mod pack;
mod problem;
mod read;
mod rule;
mod shape;
mod snapshot;
mod source;
mod syntax;
pub mod template;
mod upstream;
mod value;
mod work;
mod write;

pub use content::{Blob, ContentError, ManifestError, Origin};
pub use declared::Declared;
pub use decode::{BundleVersionError, ShapeError};
pub use lint::{Inspection, inspect};
pub use load::{Keep, Limits, LoadOptions, catalog_files};
pub use mainstay_formats::reference::reference_error as reference_fault;
pub use mainstay_gocompat::Base64Error;
pub use mermaid::{Diagram, DiagramError, DiagramOptions};
pub use migrate::{Level, MigrateError, UnknownLevel};
pub use model::{
    Api, Bundle, Catalog, Channel, Entry, Icon, Package, PackageRequirement, Property, RelatedImage,
};
pub use odd::DocumentError;
pub use order::ChannelOrder;
pub use problem::{BlobName, LoadError, Problem};
pub use rule::{Rule, Severity};
pub use snapshot::{Damage, SnapshotError};
pub use source::{Files, Folder, Source, SourceFile, TreeError};
pub use value::{json_fault, json_stream_fault, property_fault};
pub use write::{Format, Part, Rendition, WriteError};
