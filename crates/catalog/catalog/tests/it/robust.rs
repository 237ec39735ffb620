//! Robustness: nearly sound catalogs with exchanged parts do not panic.

use crate::{SOUND, load};
use proptest::prelude::*;

/// Values that are wrong in most places.
const WRONG_VALUES: &[&str] =
    &["null", "5", "yes", "[]", "{}", "''", "kiwi.v1.0.0", "x", "[[]]", "{a: b}", "-1", "\"\\0\""];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn exchanged_values_give_problems_and_no_panics(
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..WRONG_VALUES.len()), 1..4),
    ) {
        let mut lines: Vec<String> = SOUND.lines().map(str::to_owned).collect();
        for (line, odd) in changes {
            let line = line.get_mut(&mut lines);
            if let Some((key, _)) = line.split_once(": ") {
                *line = format!("{key}: {}", WRONG_VALUES[odd]);
            } else {
                *line = WRONG_VALUES[odd].to_owned();
            }
        }
        let text = lines.join("\n");
        if let Err(error) = load(&[("c.yaml", &text)]) {
            prop_assert!(!error.problems.is_empty());
            prop_assert!(!error.upstream().is_empty());
            prop_assert_eq!(error.to_string().lines().count(), error.problems.len());
        }
    }

    #[test]
    fn truncated_and_concatenated_files_do_not_panic(
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let mut text = String::new();
        for cut in cuts {
            text.push_str(&SOUND[..cut.index(SOUND.len())]);
        }
        let _ = load(&[("a.yaml", &text), ("b.yaml", SOUND)]);
    }
}
