//! Values and the standard library.

mod objects;
mod standard;
mod tables;
