//! Cause tree builder: shortens a tree of reasons so that it fits on a screen.

use mainstay_cause::Cause;

/// How many lines a tree has at most, without remedies.
const MAX_LINES: usize = 24;

/// How many reasons of one node are shown.
const MAX_REASONS: usize = 6;

/// The maximal length of a chain of single reasons, and how much of a longer chain is shown.
const MAX_CHAIN: usize = 9;
const HEAD: usize = 5;
const TAIL: usize = 2;

/// A node of a tree that has not been shortened yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    what: String,
    because: Vec<Self>,
}

impl Node {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), because: Vec::new() }
    }

    pub(super) fn because(mut self, nodes: impl IntoIterator<Item = Self>) -> Self {
        self.because.extend(nodes);
        self
    }

    /// The cause tree, without the middle of long chains, and without the deepest levels that do
    /// not fit on a screen.
    pub(super) fn into_cause(self) -> Cause {
        self.shorten_chains().limit_lines()
    }

    /// Removes the middle of long chains: the end matters most.
    fn shorten_chains(mut self) -> Self {
        let mut chain = Vec::new();
        let below = loop {
            chain.push(self.what);
            match self.because.pop() {
                Some(next) if self.because.is_empty() => self = next,
                last => {
                    self.because.extend(last);
                    break self.because;
                }
            }
        };
        if chain.len() > MAX_CHAIN {
            let more = chain.len() - HEAD - TAIL;
            let text = format!("the same goes on for {more} more requirements, at last");
            chain.splice(HEAD..HEAD + more, [text]);
        }
        let end = chain.pop().unwrap_or_default();
        let end = Self::new(end).because(below.into_iter().map(Self::shorten_chains));
        chain.into_iter().rfold(end, |below, what| Self::new(what).because([below]))
    }

    fn limit_lines(self) -> Cause {
        let mut reasons = MAX_REASONS;
        while reasons > 1 && self.lines(2, reasons) > MAX_LINES {
            reasons -= 1;
        }
        let mut depth = 2;
        while depth < MAX_LINES && self.lines(depth + 1, reasons) <= MAX_LINES {
            depth += 1;
        }
        self.cause(depth, reasons)
    }

    /// How many of its reasons are shown.
    fn visible(&self, reasons: usize) -> usize {
        // A line for "one more reason" would be no shorter than that reason.
        let all = self.because.len();
        if all > reasons + 1 { reasons } else { all }
    }

    fn lines(&self, depth: usize, reasons: usize) -> usize {
        if depth == 0 {
            return 1;
        }
        let visible = self.visible(reasons);
        let below = self.because.iter().take(visible).map(|node| node.lines(depth - 1, reasons));
        1 + below.sum::<usize>() + usize::from(visible < self.because.len())
    }

    fn cause(self, depth: usize, reasons: usize) -> Cause {
        let visible = self.visible(reasons);
        let cause = Cause::new(self.what);
        if depth == 0 {
            return cause;
        }
        let more = self.because.len() - visible;
        let because = self.because.into_iter().take(visible);
        let cause = cause.because_all(because.map(|node| node.cause(depth - 1, reasons)));
        if more == 0 { cause } else { cause.because(Cause::new(format!("of {more} more reasons"))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wide(children: usize, depth: usize) -> Node {
        let below = (0..if depth == 0 { 0 } else { children }).map(|_| wide(children, depth - 1));
        Node::new("it").because(below)
    }

    #[test]
    fn cause_tree_has_a_bounded_number_of_lines() {
        for (children, depth) in [(1, 100), (2, 10), (3, 5), (6, 4), (20, 3)] {
            let lines = wide(children, depth).into_cause().render().lines().count();
            assert!(lines <= MAX_LINES, "{children} {depth}: {lines}");
        }
        let chain = wide(1, 100).into_cause().render();
        assert_eq!(chain.lines().count(), HEAD + 1 + TAIL, "{chain}");
        assert!(chain.contains("the same goes on for 94 more requirements"), "{chain}");
        let lines = wide(20, 1).into_cause().render();
        assert!(lines.ends_with("because of 14 more reasons\n"), "{lines}");
    }
}
