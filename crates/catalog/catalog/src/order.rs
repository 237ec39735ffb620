//! Display order of channels.

/// The sort key of a channel among those of its package: the default channel first, the others by
/// name, with numbers in numeric order: `v2` before `v10`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChannelOrder {
    is_other: bool,
    /// A text, the length of the number behind it without leading zeros, and the number.
    parts: Vec<(String, usize, String)>,
}

impl ChannelOrder {
    /// The sort key of a channel. An empty default channel stands for an unknown one.
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
    fn default_channel_comes_first_and_numbers_sort_numerically() {
        let mut names =
            ["stable-v1.10", "alpha", "stable-v1.9", "v10", "stable", "v2", "stable-v1.09", ""];
        names.sort_by_cached_key(|name| ChannelOrder::of(name, "stable"));
        assert_eq!(
            names,
            ["stable", "", "alpha", "stable-v1.09", "stable-v1.9", "stable-v1.10", "v2", "v10"]
        );
    }
}
