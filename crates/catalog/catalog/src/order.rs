//! The order of channels for people.

/// The place of a channel among those of its package wherever people see them: the default channel
/// first, the others by name, with numbers in the order of counting: `v2` before `v10`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChannelOrder {
    is_other: bool,
    /// Text, then how long the number behind it is without zeros in front, and the number.
    parts: Vec<(String, usize, String)>,
}

impl ChannelOrder {
    /// The place of a channel. The default channel is empty where none is known.
    pub fn of(name: &str, default_channel: &str) -> Self {
        Self { is_other: name != default_channel, parts: parts(name) }
    }
}

fn parts(name: &str) -> Vec<(String, usize, String)> {
    let mut parts: Vec<(String, usize, String)> = Vec::new();
    for sign in name.chars() {
        let is_digit = sign.is_ascii_digit();
        match parts.last_mut() {
            Some((_, _, number)) if is_digit => number.push(sign),
            Some((text, _, number)) if number.is_empty() => text.push(sign),
            _ if is_digit => parts.push((String::new(), 0, sign.to_string())),
            _ => parts.push((sign.to_string(), 0, String::new())),
        }
    }
    for (_, length, number) in &mut parts {
        *length = number.trim_start_matches('0').len();
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::ChannelOrder;

    #[test]
    fn the_default_channel_comes_first_and_numbers_are_counted() {
        let mut names =
            ["stable-v1.10", "alpha", "stable-v1.9", "v10", "stable", "v2", "stable-v1.09", ""];
        names.sort_by_cached_key(|name| ChannelOrder::of(name, "stable"));
        assert_eq!(
            names,
            ["stable", "", "alpha", "stable-v1.09", "stable-v1.9", "stable-v1.10", "v2", "v10"]
        );
    }
}
