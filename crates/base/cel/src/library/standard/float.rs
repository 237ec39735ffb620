//! Parsing of doubles as in Go: also hexadecimal, with underscores between digits after a prefix.

/// Parses a double; none if the text is invalid or the number is too large.
pub(super) fn parse(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let negative = text.starts_with('-');
    let signed = |double: f64| if negative { -double } else { double };
    if unsigned.eq_ignore_ascii_case("inf") || unsigned.eq_ignore_ascii_case("infinity") {
        return Some(signed(f64::INFINITY));
    }
    if text.eq_ignore_ascii_case("nan") {
        return Some(f64::NAN);
    }
    let clean = remove_underscores(unsigned)?;
    let double = match clean.strip_prefix("0x").or_else(|| clean.strip_prefix("0X")) {
        Some(digits) => parse_hexadecimal(digits)?,
        None if clean.starts_with(|c: char| c == '.' || c.is_ascii_digit()) => {
            clean.parse().ok()?
        }
        None => return None,
    };
    double.is_finite().then(|| signed(double))
}

/// The text without underscores between digits; none if an underscore is elsewhere.
fn remove_underscores(text: &str) -> Option<String> {
    if !text.contains('_') {
        return Some(text.to_owned());
    }
    let prefixed = ["0x", "0X"].iter().any(|prefix| text.starts_with(prefix));
    let is_digit = |c: char| if prefixed { c.is_ascii_hexdigit() } else { c.is_ascii_digit() };
    // The prefix counts as a digit.
    let (prefix, rest) = text.split_at(if prefixed { 2 } else { 0 });
    let mut after_digit = prefixed;
    let mut characters = rest.chars().peekable();
    while let Some(character) = characters.next() {
        if character == '_' && !(after_digit && characters.peek().copied().is_some_and(is_digit)) {
            return None;
        }
        after_digit = is_digit(character);
    }
    Some(prefix.to_owned() + &rest.replace('_', ""))
}

/// Parses `1.8p-2` without its prefix.
fn parse_hexadecimal(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once(['p', 'P'])?;
    let exponent: i64 = if let Ok(exponent) = exponent.parse::<i64>() {
        exponent
    } else {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        if exponent.starts_with('-') { i64::MIN / 4 } else { i64::MAX / 4 }
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    // The leading bits; the lowest one is set if any later bit is.
    let (mut bits, mut scale) = (0_u64, 0_i64);
    for (at, digit) in whole.chars().chain(fraction.chars()).enumerate() {
        let digit = u64::from(digit.to_digit(16)?);
        if bits >> 60 == 0 {
            bits = bits << 4 | digit;
        } else {
            bits |= u64::from(digit != 0);
            scale += 4;
        }
        if at >= whole.len() {
            scale -= 4;
        }
    }
    if bits == 0 {
        return Some(0.0);
    }
    let exponent = exponent.saturating_add(scale).clamp(-5000, 5000);
    Some(scale_to_double(bits, exponent))
}

/// `bits * 2^exponent`, rounded once to the nearest double, ties to even.
fn scale_to_double(bits: u64, exponent: i64) -> f64 {
    let shift = i64::from(bits.leading_zeros());
    let (bits, exponent) = (bits << shift, exponent - shift);
    // The exponent of the lowest bit of a double of this size.
    let lowest = (exponent + 11).max(-1074);
    let drop = lowest - exponent;
    let rounded_bits = match u32::try_from(drop) {
        Ok(drop @ 0..64) => {
            let rounded_bits = bits >> drop;
            let rest = bits & ((1 << drop) - 1);
            let half = 1 << (drop - 1).min(63);
            rounded_bits + u64::from(rest > half || (rest == half && rounded_bits & 1 == 1))
        }
        Ok(64) => u64::from(bits > 1 << 63),
        _ => 0,
    };
    // The number has at most 54 bits, so it is exact.
    #[expect(clippy::cast_precision_loss, reason = "at most 2^53")]
    let double = rounded_bits as f64;
    let mut exponent = lowest;
    let mut result = double;
    // The steps neither overflow early nor lose bits.
    while exponent > 900 {
        result *= 2f64.powi(900);
        exponent -= 900;
    }
    while exponent < -900 {
        // The dropped bits are already rounded.
        result *= 2f64.powi(-900);
        exponent += 900;
    }
    result * 2f64.powi(i32::try_from(exponent).unwrap_or(0))
}
