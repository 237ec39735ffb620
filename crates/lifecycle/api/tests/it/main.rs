//! Integration tests of the API.

mod crds;
mod data;
mod views;
