use super::{FILE, IgnorePatterns, PatternLimitExceeded};
use crate::indexignore::tests::reference::Pattern;
use proptest::prelude::*;

mod reference;

#[test]
fn patterns_match_as_in_upstream() {
    let table: &[(&str, &str, bool)] = &[
        ("*.md", "d/a.md", true),
        ("/a.md", "d/a.md", false),
        ("d/", "d", false),
        ("d/", "x/d/e", true),
        ("d/e", "d/e/f", true),
        ("d/e/", "d/e", false),
        ("d/**", "d/e/f", true),
        ("**/e", "d/c/e", true),
        ("**/e/", "d/e", false),
        ("a/**/b", "a/b", true),
        ("a/**/b", "a/x/y/b", true),
        ("**b/c", "b/c", false),
        ("a[0-9].y", "a5.y", true),
        ("a[^0-9].y", "a5.y", false),
        ("a[!5].y", "a5.y", true),
        ("a[]5].y", "a5.y", false),
        ("a[5", "a5", false),
        ("a\\*", "a*", true),
        ("a\\", "a\\", false),
        ("?.y", "\u{e9}.y", true),
        ("*a*b*c", "xaxbxbxc", true),
        ("!", "a", false),
        ("/", "a", false),
    ];
    for (pattern, path, ignored) in table {
        let mut all = IgnorePatterns::default();
        all.add(FILE, pattern);
        assert_eq!(all.ignores(path), Ok(*ignored), "{pattern} {path}");
    }
}

/// How many steps a hundred files take with a number of patterns of usual kinds.
fn steps(patterns: usize) -> u64 {
    let mut all = IgnorePatterns::default();
    let line = |n: usize| {
        format!(
            "file-{n}.yaml\nd/file-{n}.yaml\n/f{n}/\n**/g{n}/x\n*-{n}.md\nprefix-{n}-*\n\
             a/**/h{n}/*.json\n!keep-{n}-*.txt\n*inner-{n}-*\n"
        )
    };
    all.add(FILE, &(0..patterns).map(line).collect::<String>());
    for n in 0..50 {
        assert_eq!(all.ignores(&format!("a/b/file-{n}.yaml")), Ok(n < patterns));
        assert_eq!(all.ignores(&format!("a/b/other-{n}.yaml")), Ok(false));
    }
    all.steps
}

#[test]
fn steps_for_a_file_do_not_grow_with_the_number_of_patterns() {
    let (few, many) = (steps(100), steps(2_000));
    assert!(many <= few * 2, "{few} steps for 100 patterns, {many} for 2,000");
}

#[test]
fn only_patterns_of_parent_folders_cost_steps() {
    let mut all = IgnorePatterns::default();
    for n in 0..1_000 {
        all.add(&format!("d{n}/{FILE}"), "*.md\n?.txt\n");
    }
    assert_eq!(all.ignores("d7/e/a.md"), Ok(true));
    assert_eq!(all.ignores("d7/e/a.json"), Ok(false));
    assert!(all.steps < 100, "{} steps", all.steps);
}

#[test]
fn slow_patterns_stop_at_the_limit_of_steps() {
    let mut all = IgnorePatterns { max_steps: 1 << 20, ..IgnorePatterns::default() };
    // Each pattern takes its own path through each name, and none matches.
    let line = |n: usize| format!("*{}{}z\n", "?".repeat(n % 20), "*a".repeat(n / 20 + 1));
    all.add(FILE, &(0..400).map(line).collect::<String>());
    let name = "a".repeat(255);
    let outcome = (0..100_000).find_map(|_| all.ignores(&name).err());
    assert_eq!(outcome, Some(PatternLimitExceeded));
    assert!(all.steps < 1 << 22, "{} steps", all.steps);
}

proptest! {
    /// Compares the prefix tree with patterns that are matched one by one.
    #[test]
    fn prefix_tree_matches_as_single_patterns_do(
        root in "(!?[ab*?/]{0,5}(\\*\\*/|/\\*\\*|\\[\\^?a-b\\]|\\\\a)?[ab*/]{0,4}\n){0,6}",
        deeper in "(!?[ab*?/]{0,6}\n){0,3}",
        path in "[ab]{1,3}(/[ab]{1,3}){0,4}",
    ) {
        let mut patterns = Vec::new();
        let mut all = IgnorePatterns::default();
        for (folder, text) in [("", &root), ("a/", &deeper)] {
            all.add(&format!("{folder}{FILE}"), text);
            let lines = text.split('\n').map(str::trim).filter(|line| !line.is_empty());
            patterns.extend(lines.map(|line| Pattern::new(folder, line)));
        }
        let found = patterns.iter().rev().find(|pattern| pattern.matches(&path));
        let expected = found.is_some_and(|pattern| !pattern.includes);
        prop_assert_eq!(all.ignores(&path), Ok(expected), "{} {}", root, deeper);
    }
}
