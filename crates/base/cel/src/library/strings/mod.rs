//! String library (cel-go's `ext.Strings`).
//!
//! Kubernetes has version 2. Positions are counted in code points.

mod basic;
pub(crate) mod clause;
pub(crate) mod error;
mod format;
mod format_v4;
mod numbers;

use super::{FunctionLibrary, Overload, StrictFunction};
use crate::types::Type;

/// The library of a version: 1 adds `format` and `strings.quote`; 2 joins lists of any strings; 3
/// adds `reverse`; 4 formats as in the specification. Later versions are the latest.
pub fn library(version: u32) -> &'static FunctionLibrary {
    const fn of(overloads: fn() -> Vec<Overload>) -> FunctionLibrary {
        FunctionLibrary { name: "cel.lib.ext.strings", overloads, macros: &[], types: Vec::new }
    }
    static VERSIONS: [FunctionLibrary; 5] = [
        of(|| overloads(0)),
        of(|| overloads(1)),
        of(|| overloads(2)),
        of(|| overloads(3)),
        of(|| overloads(4)),
    ];
    &VERSIONS[(version as usize).min(VERSIONS.len() - 1)]
}

fn overloads(version: u32) -> Vec<Overload> {
    use Type::{Int, String};
    let strings = || Type::list(String);
    let method: fn(_, _, _, _, StrictFunction) -> _ = Overload::method;
    let mut all = vec![
        method("charAt", "string_char_at_int", vec![String, Int], String, basic::char_at),
        method("indexOf", "string_index_of_string", vec![String, String], Int, basic::index_of),
        method(
            "indexOf",
            "string_index_of_string_int",
            vec![String, String, Int],
            Int,
            basic::index_of_from,
        ),
        method(
            "lastIndexOf",
            "string_last_index_of_string",
            vec![String, String],
            Int,
            basic::last_index_of,
        ),
        method(
            "lastIndexOf",
            "string_last_index_of_string_int",
            vec![String, String, Int],
            Int,
            basic::last_index_of_from,
        ),
        method("lowerAscii", "string_lower_ascii", vec![String], String, basic::lower),
        method(
            "replace",
            "string_replace_string_string",
            vec![String, String, String],
            String,
            basic::replace,
        ),
        method(
            "replace",
            "string_replace_string_string_int",
            vec![String, String, String, Int],
            String,
            basic::replace_some,
        ),
        method("split", "string_split_string", vec![String, String], strings(), basic::split),
        method(
            "split",
            "string_split_string_int",
            vec![String, String, Int],
            strings(),
            basic::split_some,
        ),
        method("substring", "string_substring_int", vec![String, Int], String, basic::substring),
        method(
            "substring",
            "string_substring_int_int",
            vec![String, Int, Int],
            String,
            basic::substring_range,
        ),
        method("trim", "string_trim", vec![String], String, basic::trim),
        method("upperAscii", "string_upper_ascii", vec![String], String, basic::upper),
    ];
    if version >= 1 {
        all.push(Overload::function(
            "strings.quote",
            "strings_quote",
            vec![String],
            String,
            basic::quote,
        ));
    }
    if version >= 1 {
        let run = if version >= 4 { format::format_plainly } else { format::format };
        let params = vec![String, Type::list(Type::Dyn)];
        all.push(method("format", "string_format", params, String, run));
    }
    all.push(method("join", "list_join", vec![strings()], String, basic::join));
    all.push(method("join", "list_join_string", vec![strings(), String], String, basic::join));
    if version >= 3 {
        all.push(method("reverse", "string_reverse", vec![String], String, basic::reverse));
    }
    all
}
