//! Commands about the content of operators: catalogs, bundles, images and CRDs, and what they resolve to.
//!
//! [`catalog`] works on file-based catalogs and ClusterCatalogs, [`bundle`] on bundle folders, [`image`] on
//! images. [`crd`] compares CustomResourceDefinitions, [`resolve`] shows what would be installed. Each module
//! has arguments, calls of the libraries below, and text.

pub mod bundle;
pub mod catalog;
pub mod crd;
mod examples;
pub mod image;
pub mod resolve;
mod validation;
