//! Images: how operator content travels.
//!
//! ```text
//! folder, layout, archive ──┐           ┌─► folder, layout, archive
//! registries, by mirrors ───┼─► store ──┼─► registries
//! what clients push ────────┘           ├─► what clients pull
//!                                       └─► unpack ─► folder
//! ```
//!
//! Everything goes through one content-addressed [`store`] on disk, so that nothing is fetched or
//! kept twice and everything is verified where it enters. What comes from outside is believed in
//! nothing: documents, archives and names are bounded and judged before they are used.
//!
//! Why no library for registries: the usual one brings a second HTTP client, has no resuming, and
//! what a stranger may do (redirects, waiting, lengths) is for us to decide. It is hyper and rustls,
//! which are here already.
//!
//! What this crate does not do: run images, or know what is in them.

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
