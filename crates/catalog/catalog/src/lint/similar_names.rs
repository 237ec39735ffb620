//! Similar names for suggestions, and the digits that distinguish versions.

pub(super) use mainstay_formats::edit_distance::nearest;

/// The digits of a name, with a dot for anything between them. Names of different versions differ
/// in their digits; misspelled names rarely do.
pub(super) fn digits(name: &str) -> String {
    let mut digits = String::new();
    let mut between = false;
    for sign in name.chars() {
        if sign.is_ascii_digit() {
            if between && !digits.is_empty() {
                digits.push('.');
            }
            digits.push(sign);
        }
        between = !sign.is_ascii_digit();
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::digits;

    #[test]
    fn digits_distinguish_versions() {
        for (name, expected) in
            [("kiwi.v1.10.0", "1.10.0"), ("kiwiv1-10.0", "1.10.0"), ("s3-v1.2", "3.1.2"), ("x", "")]
        {
            assert_eq!(digits(name), expected);
        }
    }
}
