//! Walks of published and of generated packages.

mod bundles;
mod walks;
