//! JSON numbers.

use super::Numbers;
use serde_json::Number;
use std::fmt::Write;

/// A float as JSON.
pub fn float(float: f64) -> String {
    let size = float.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        return float.to_string();
    }
    let text = format!("{float:e}");
    match text.split_once('e') {
        Some((digits, exponent)) if !exponent.starts_with('-') => format!("{digits}e+{exponent}"),
        _ => text,
    }
}

/// The largest range in which every whole number is a float.
const EXACT: i64 = 1 << 53;

pub(crate) fn push(out: &mut String, number: &Number, numbers: Numbers) {
    // Writing to a string cannot fail.
    let _ = match (number.as_i64(), number.as_u64()) {
        (Some(whole), _) if numbers != Numbers::Float || (-EXACT..=EXACT).contains(&whole) => {
            write!(out, "{whole}")
        }
        (None, Some(whole)) if numbers == Numbers::Whole => write!(out, "{whole}"),
        _ => {
            out.push_str(&float(number.as_f64().unwrap_or_default()));
            Ok(())
        }
    };
}

#[cfg(test)]
mod tests {
    use super::float;
    use crate::json::{Html, Numbers, value};
    use serde_json::json;

    #[test]
    fn floats_have_exponents_as_in_go() {
        for (number, text) in [
            (0.1, "0.1"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1.5e-7, "1.5e-7"),
            (1e-9, "1e-9"),
            (1e-10, "1e-10"),
            (0.000_001, "0.000001"),
            (-2.5e30, "-2.5e+30"),
            (1.0, "1"),
            (0.0, "0"),
            (-0.0, "-0"),
        ] {
            assert_eq!(float(number), text);
        }
    }

    #[test]
    fn whole_numbers_are_as_exact_as_their_go_type() {
        let numbers = json!([u64::MAX, i64::MAX, 9_007_199_254_740_993_i64, 7, -1, 1.0]);
        for (through, wide) in [
            (Numbers::Whole, "18446744073709551615,9223372036854775807,9007199254740993"),
            (Numbers::Object, "18446744073709552000,9223372036854775807,9007199254740993"),
            (Numbers::Float, "18446744073709552000,9223372036854776000,9007199254740992"),
        ] {
            let text = format!("[{wide},7,-1,1]");
            assert_eq!(value(&numbers, Html::Plain, through), text);
        }
    }
}
