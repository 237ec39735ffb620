//! Doubles as Go reads them: also in base 16, with underscores between digits behind a prefix.

/// Reads a double; none if the text is none, or too great for one.
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
    let clean = without_underscores(unsigned)?;
    let double = match clean.strip_prefix("0x").or_else(|| clean.strip_prefix("0X")) {
        Some(digits) => hexadecimal(digits)?,
        None if clean.starts_with(|c: char| c == '.' || c.is_ascii_digit()) => {
            clean.parse().ok()?
        }
        None => return None,
    };
    double.is_finite().then(|| signed(double))
}

/// The text without the underscores between its digits; none if one is elsewhere.
fn without_underscores(text: &str) -> Option<String> {
    if !text.contains('_') {
        return Some(text.to_owned());
    }
    let prefixed = ["0x", "0X"].iter().any(|prefix| text.starts_with(prefix));
    let is_digit = |c: char| if prefixed { c.is_ascii_hexdigit() } else { c.is_ascii_digit() };
    // The prefix counts as a digit.
    let (prefix, rest) = text.split_at(if prefixed { 2 } else { 0 });
    let mut before = prefixed;
    let mut letters = rest.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter == '_' && !(before && letters.peek().copied().is_some_and(is_digit)) {
            return None;
        }
        before = is_digit(letter);
    }
    Some(prefix.to_owned() + &rest.replace('_', ""))
}

/// `1.8p-2` without its prefix.
fn hexadecimal(text: &str) -> Option<f64> {
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
    // The leading bits; whether others follow is kept in the lowest.
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
    Some(scaled(bits, exponent))
}

/// `bits * 2^exponent`, rounded once to the nearest double, ties to even.
fn scaled(bits: u64, exponent: i64) -> f64 {
    let shift = i64::from(bits.leading_zeros());
    let (bits, exponent) = (bits << shift, exponent - shift);
    // The place of the lowest bit that a double of this size has.
    let lowest = (exponent + 11).max(-1074);
    let drop = lowest - exponent;
    let kept = match u32::try_from(drop) {
        Ok(drop @ 0..64) => {
            let kept = bits >> drop;
            let rest = bits & ((1 << drop) - 1);
            let half = 1 << (drop - 1).min(63);
            kept + u64::from(rest > half || (rest == half && kept & 1 == 1))
        }
        Ok(64) => u64::from(bits > 1 << 63),
        _ => 0,
    };
    // At most 54 bits, so exact.
    #[expect(clippy::cast_precision_loss, reason = "at most 2^53")]
    let double = kept as f64;
    let mut exponent = lowest;
    let mut result = double;
    // In steps that neither overflow early nor lose what is kept.
    while exponent > 900 {
        result *= 2f64.powi(900);
        exponent -= 900;
    }
    while exponent < -900 {
        // What is dropped was rounded away already.
        result *= 2f64.powi(-900);
        exponent += 900;
    }
    result * 2f64.powi(i32::try_from(exponent).unwrap_or(0))
}
