//! The live set of kinds.

mod row;

pub use row::{Custom, KindRow, PrinterColumn, ScalePaths, Source, Subresource};
