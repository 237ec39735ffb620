//! What upstream's opm says about a catalog: one line about the first thing that stops it, or a
//! tree of everything that is wrong with a catalog that could be put together.
//!
//! The checks say it here while they run, beside their own findings. Upstream's order is that of
//! kinds first (packages, channels, bundles …) and of documents second, whatever the order of
//! files; where it goes through a map, its answer is one of several, and ours the first by name.

use std::collections::BTreeMap;

/// The steps in which upstream puts a catalog together. Each stops at the first fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Packages,
    Channels,
    Bundles,
    Entries,
    Deprecations,
}

/// What upstream would say.
#[derive(Debug, Default)]
pub(crate) struct Words {
    stop: Option<((Stage, usize), String)>,
    tree: Node,
}

#[derive(Debug, Default)]
struct Node {
    children: BTreeMap<String, Self>,
}

impl Words {
    /// Notes that upstream stops at the document number `item`. Of one document, what is said
    /// first counts.
    pub(crate) fn stop(&mut self, stage: Stage, item: usize, text: &str) {
        let rank = (stage, item);
        if self.stop.as_ref().is_none_or(|(first, _)| rank < *first) {
            self.stop = Some((rank, text.to_owned()));
        }
    }

    /// Puts a line into the tree, below the nodes named.
    pub(crate) fn line(&mut self, below: &[&str], text: &str) {
        let mut node = &mut self.tree;
        for name in below.iter().copied().chain([text]) {
            if !node.children.contains_key(name) {
                node.children.insert(name.to_owned(), Node::default());
            }
            let Some(next) = node.children.get_mut(name) else { return };
            node = next;
        }
    }

    /// The whole message; `None` if upstream has nothing to say.
    pub(crate) fn text(self) -> Option<String> {
        if let Some((_, text)) = self.stop {
            return Some(text);
        }
        self.tree()
    }

    /// The tree alone, whatever stops upstream before it would get there.
    pub(crate) fn tree(self) -> Option<String> {
        if self.tree.children.is_empty() {
            return None;
        }
        let mut text = "invalid index:".to_owned();
        self.tree.write(&mut text, "");
        Some(text)
    }
}

impl Node {
    /// Three levels at most: packages, channels, bundles, and what is wrong with each.
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
