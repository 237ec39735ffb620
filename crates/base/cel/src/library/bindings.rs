//! Bindings library (cel-go's `ext.Bindings`): `cel.bind(n, self.a.b, n > 1 && n < 5)`.

use super::FunctionLibrary;
use crate::syntax::macros;

/// The macro `cel.bind`.
pub static LIBRARY: FunctionLibrary = FunctionLibrary {
    name: "cel.lib.ext.cel.bindings",
    overloads: Vec::new,
    macros: macros::BIND,
    types: Vec::new,
};
