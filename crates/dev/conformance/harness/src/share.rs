//! Shares of all inputs: a check that takes too long is split into several runs.

use std::str::FromStr;

/// Every `of`-th input, beginning with the `number`-th; written `NUMBER/OF`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    number: usize,
    of: usize,
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('/').and_then(|(number, of)| {
            Some(Self { number: number.parse().ok()?, of: of.parse().ok()? })
        });
        parsed
            .filter(|share| (1..=share.of).contains(&share.number))
            .ok_or_else(|| format!("a share is K/N with 1 <= K <= N, such as 1/2, not {text:?}"))
    }
}

impl Share {
    /// The inputs of this share, in their order.
    pub fn of<T>(self, all: Vec<T>) -> Vec<T> {
        all.into_iter().skip(self.number - 1).step_by(self.of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_input_is_in_exactly_one_share() {
        let mut all: Vec<usize> = ["1/3", "2/3", "3/3"]
            .iter()
            .flat_map(|share| share.parse::<Share>().unwrap().of((0..10).collect()))
            .collect();
        all.sort_unstable();
        assert_eq!(all, (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn empty_or_malformed_share_is_rejected() {
        for text in ["", "1", "0/2", "3/2", "1/0", "a/b", "-1/2", "1/2/3"] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
    }
}
