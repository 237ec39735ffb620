//! Container images: pulling, pushing, mirroring, verifying, storing, serving and unpacking.
//!
//! ```text
//! folder, layout, archive ──┐           ┌─► folder, layout, archive
//! registries, by mirrors ───┼─► store ──┼─► registries
//! pushes of clients ────────┘           ├─► pulls of clients
//!                                       └─► unpack ─► folder
//! ```
//!
//! Everything passes through one content-addressed [`store`] on disk, so that nothing is fetched or
//! stored twice, and all content is verified on entry. Input from outside is untrusted: documents,
//! archives and names are limited in size and checked before use.
//!
//! The crate uses hyper and rustls, which the workspace has anyway, instead of a registry library.
//! The usual library adds a second HTTP client, does not resume, and leaves limits on redirects,
//! waits and lengths to the registry.
//!
//! This crate does not run images, and does not know their content.

pub mod build;
pub mod compress;
pub mod credentials;
pub mod digest;
pub mod fetch;
pub mod layout;
pub mod manifest;
pub mod mirror;
pub mod platform;
pub mod policy;
pub mod reference;
pub mod registry;
pub mod serve;
pub mod store;
pub mod tar;
pub mod unpack;
mod url;
