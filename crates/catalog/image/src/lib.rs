//! Images: how operator content travels.
//!
//! ```text
//! folder, layout, archive ─► store ─► folder, layout, archive
//!                              └────► unpack ─► folder
//! ```
//!
//! Everything goes through one content-addressed [`store`] on disk, so that nothing is fetched or
//! kept twice and everything is verified where it enters. What comes from outside is believed in
//! nothing: documents, archives and names are bounded and judged before they are used.
//!
//! What this crate does not do: run images, or know what is in them.

pub mod build;
pub mod compress;
pub mod digest;
pub mod layout;
pub mod manifest;
pub mod platform;
pub mod reference;
pub mod store;
pub mod tar;
pub mod unpack;
