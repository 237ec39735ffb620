//! Upstream's report on a catalog: the error at which opm stops, or the tree of all findings in a
//! catalog that opm could build.
//!
//! The checks fill it while they run, beside their own findings. Upstream checks kind by kind
//! (packages, channels, bundles …), and within a kind in the order of documents. Where it iterates
//! over a map its answer is random; ours is the first by name.

use std::collections::BTreeMap;

/// The stages of upstream's checks. Each stops at its first error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Packages,
    Channels,
    Bundles,
    Entries,
    Deprecations,
}

/// The report of upstream.
#[derive(Debug, Default)]
pub(crate) struct UpstreamReport {
    fatal: Option<((Stage, usize), String)>,
    tree: Node,
}

#[derive(Debug, Default)]
struct Node {
    children: BTreeMap<String, Self>,
}

impl UpstreamReport {
    /// Records that upstream stops at the document number `item`. The first error of a document
    /// counts.
    pub(crate) fn set_fatal(&mut self, stage: Stage, item: usize, text: &str) {
        let rank = (stage, item);
        if self.fatal.as_ref().is_none_or(|(first, _)| rank < *first) {
            self.fatal = Some((rank, text.to_owned()));
        }
    }

    /// Adds a line to the tree, below the named nodes.
    pub(crate) fn add_line(&mut self, below: &[&str], text: &str) {
        let mut node = &mut self.tree;
        for name in below.iter().copied().chain([text]) {
            if !node.children.contains_key(name) {
                node.children.insert(name.to_owned(), Node::default());
            }
            let Some(next) = node.children.get_mut(name) else { return };
            node = next;
        }
    }

    /// The whole report; `None` if upstream reports nothing.
    pub(crate) fn into_message(self) -> Option<String> {
        if let Some((_, text)) = self.fatal {
            return Some(text);
        }
        self.into_tree()
    }

    /// The tree alone, without an error that stops upstream before it.
    pub(crate) fn into_tree(self) -> Option<String> {
        if self.tree.children.is_empty() {
            return None;
        }
        let mut text = "invalid index:".to_owned();
        self.tree.write(&mut text, "");
        Some(text)
    }
}

impl Node {
    /// Writes three levels at most: packages, channels, bundles, and the findings of each.
    fn write(&self, text: &mut String, indent: &str) {
        let count = self.children.len();
        for (index, (name, node)) in self.children.iter().enumerate() {
            let last = index + 1 == count;
            text.push('\n');
            text.push_str(indent);
            text.push_str(if last { "└── " } else { "├── " });
            text.push_str(name);
            if !node.children.is_empty() {
                text.push(':');
                let deeper = format!("{indent}{}", if last { "    " } else { "│   " });
                node.write(text, &deeper);
            }
        }
    }
}
