//! Catalog serving: one shared, immutable index behind every API.
//!
//! ```text
//! Catalog ─► RegistryIndex ─────┐
//!                               ├─► ServedCatalog (name, content) ─► ServedCatalogs ─┬─► gRPC registry API
//! documents ─► ServedDocuments ─┘                                                    └─► HTTP catalog API
//! ```
//!
//! HTTP also serves documents that make no index ([`ServedDocuments`]).
//!
//! A [`ServedCatalog`] exists before its content: an early request gets an error, and a reload
//! swaps one pointer. Readers keep the index they began with until they are done.

pub mod client;
mod documents;
pub mod grpc;
pub mod http;
mod index;
pub mod json;
pub mod reload;
mod served;
pub mod server;
pub mod stored;

pub use documents::{ContentError, ServedDocuments};
pub use index::{ChannelMember, RegistryIndex};
pub use served::{ServedCatalog, ServedCatalogs, ServedState};

use mainstay_catalog::{Blob, BlobError, Bundle, Catalog, Package};
use serde_json::Value;

/// The ClusterServiceVersion of a bundle as both APIs serve it: from its manifests, or synthesised
/// if the catalog has only its metadata. None if the catalog has neither.
pub fn csv(package: &Package, bundle: &Bundle) -> Result<Option<Value>, BlobError> {
    grpc::csv(package, bundle)
}

/// Why upstream does not serve a valid catalog, in upstream's words: the name of a custom schema is
/// invalid, or a bundle has several `olm.csv.metadata`. `None` if upstream serves it.
pub fn unserved_reason(catalog: &Catalog) -> Option<String> {
    grpc::refusal(catalog).or_else(|| {
        let of_package = |package: &Package| {
            let bundles = package.bundles();
            let count =
                bundles.map(|bundle| bundle.csv_metadata_count()).find(|&count| count > 1)?;
            let (name, why) = (mainstay_gocompat::quote(&package.name), grpc::too_many(count));
            Some(format!("build package index: process package {name}: {why}"))
        };
        catalog.packages().find_map(of_package)
    })
}

/// Why upstream does not serve a catalog with that document, whatever the other documents are.
/// `None` if this document is no reason.
pub fn unserved_blob_reason(blob: &Blob) -> Option<String> {
    const OWN: [&str; 4] = ["olm.package", "olm.channel", "olm.bundle", "olm.deprecations"];
    if OWN.contains(&&**blob.schema()) { None } else { grpc::refusal_of(blob) }
}
