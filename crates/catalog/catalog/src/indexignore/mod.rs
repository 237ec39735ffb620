//! `.indexignore`: patterns of files that do not belong to the catalog.
//!
//! The patterns look like git's, and mean what they mean to upstream. All patterns of the tree are
//! read first, and folders are not pruned. For each file the last matching pattern decides, so a
//! deeper `!pattern` can re-include a file below an ignored folder.
//!
//! A tree may have as many patterns as files, so patterns are not tried one by one. They form one
//! prefix tree of path components, and a path descends in it:
//!
//! ```text
//! d/*.md          ─► d ─► *.md     (literal names are looked up,
//! d/e/            ─► d ─► e         globs are matched character by character)
//! *.txt, **/*.txt ─► ** ─► *.txt
//! ```

mod glob;

use glob::{Glob, Globs};
use std::collections::{HashMap, HashSet};

/// The name of the files with patterns; they are never read as content.
pub(crate) const FILE: &str = ".indexignore";

/// How many bytes of patterns a tree may have: several times the length of all file names that a
/// catalog may have.
pub(crate) const MAX_BYTES: u64 = 4 << 20;

/// How many steps all files of a tree may take together, some seconds of work. Usual patterns take
/// a few steps for each character of a path; only hostile ones need more.
const MAX_STEPS: u64 = 1 << 28;

/// The patterns exceed the limit of steps.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PatternLimitExceeded;

/// All patterns of a tree.
pub(crate) struct IgnorePatterns {
    /// The root nodes by folder. The name of a folder ends with a slash.
    folders: HashMap<String, usize>,
    nodes: Vec<Node>,
    /// How many patterns there are.
    patterns: usize,
    steps: u64,
    /// The limit of steps.
    max_steps: u64,
}

impl Default for IgnorePatterns {
    fn default() -> Self {
        let (folders, nodes) = Default::default();
        Self { folders, nodes, patterns: 0, steps: 0, max_steps: MAX_STEPS }
    }
}

/// A node of the prefix tree.
#[derive(Default)]
struct Node {
    /// Children by literal name.
    names: HashMap<String, usize>,
    /// Children by glob.
    globs: Globs,
    /// The child behind `**`.
    anywhere: Option<usize>,
    /// The last pattern that ends here.
    end: Option<PatternEffect>,
    /// The last pattern that ends here and is for folders only.
    folder: Option<PatternEffect>,
}

/// The effect of a pattern. The later pattern is the greater one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PatternEffect {
    pattern: usize,
    includes: bool,
}

impl IgnorePatterns {
    /// Adds the patterns of one file. Files must be added in the order of a walk through the tree.
    pub(crate) fn add(&mut self, path: &str, text: &str) {
        let folder = path.strip_suffix(FILE).unwrap_or_default();
        let lines = text.split('\n').map(str::trim);
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            self.patterns += 1;
            let Some(pattern) = Pattern::new(line) else { continue };
            self.insert(folder, pattern);
        }
    }

    fn insert(&mut self, folder: &str, pattern: Pattern) {
        let mut at = self.root(folder);
        for part in pattern.parts {
            let (new, node) = (self.nodes.len(), &mut self.nodes[at]);
            at = match part {
                Part::Folders => *node.anywhere.get_or_insert(new),
                Part::Name(glob) => match glob.literal() {
                    Some(name) => *node.names.entry(name).or_insert(new),
                    None => node.globs.insert(glob, new),
                },
            };
            if at == new {
                self.nodes.push(Node::default());
            }
        }
        let number = if mainstay_fault::is_on("the-first-pattern-decides") {
            usize::MAX - self.patterns
        } else {
            self.patterns
        };
        let effect = PatternEffect { pattern: number, includes: pattern.includes };
        let node = &mut self.nodes[at];
        let place = if pattern.folders_only { &mut node.folder } else { &mut node.end };
        *place = Some(effect);
    }

    /// The root node of a folder's patterns.
    fn root(&mut self, folder: &str) -> usize {
        let new = self.nodes.len();
        let root = *self.folders.entry(folder.to_owned()).or_insert(new);
        if root == new {
            self.nodes.push(Node::default());
        }
        root
    }

    /// Whether the file at `path` is ignored.
    ///
    /// # Errors
    /// If all files together have taken too many steps.
    pub(crate) fn ignores(&mut self, path: &str) -> Result<bool, PatternLimitExceeded> {
        let names: Vec<&str> = path.split('/').collect();
        let (mut last, mut length) = (None, 0);
        for (depth, name) in names.iter().enumerate() {
            if let Some(root) = self.folders.get(&path[..length]) {
                last = last.max(self.last_effect(*root, &names[depth..])?);
            }
            length += name.len() + 1;
            self.steps += 1;
        }
        Ok(last.is_some_and(|effect| !effect.includes))
    }

    /// The effect of the last pattern that matches a path of these names.
    fn last_effect(
        &mut self,
        root: usize,
        names: &[&str],
    ) -> Result<Option<PatternEffect>, PatternLimitExceeded> {
        let Self { nodes, steps, max_steps, .. } = self;
        let mut last = None;
        // A pattern begins at one place of the path, and behind `**` it continues at the first
        // place where its next part matches: so each node is visited once at most.
        let (mut queue, mut found, mut visited) = (vec![(root, 0)], Vec::new(), HashSet::new());
        while let Some((at, taken)) = queue.pop() {
            let node = &nodes[at];
            last = last.max(node.end);
            // The rest of the path lies in a folder that matches.
            if taken < names.len() {
                last = last.max(node.folder);
            }
            if let Some(name) = names.get(taken) {
                node.children(name, &mut found, steps);
                queue.extend(found.drain(..).map(|next| (next, taken + 1)));
            }
            let Some(anywhere) = node.anywhere else { continue };
            for (index, name) in names.iter().enumerate().skip(taken) {
                nodes[anywhere].children(name, &mut found, steps);
                let new = found.drain(..).filter(|next| visited.insert(*next));
                queue.extend(new.map(|next| (next, index + 1)));
            }
            if *steps > *max_steps {
                return Err(PatternLimitExceeded);
            }
        }
        if *steps > *max_steps { Err(PatternLimitExceeded) } else { Ok(last) }
    }
}

impl Node {
    /// Adds the children that `name` leads to.
    fn children(&self, name: &str, found: &mut Vec<usize>, steps: &mut u64) {
        *steps += 1;
        found.extend(self.names.get(name));
        self.globs.matching(name, found, steps);
    }
}

/// One line that can match a path.
struct Pattern {
    includes: bool,
    folders_only: bool,
    parts: Vec<Part>,
}

enum Part {
    /// `**`: any number of folders. Always before a name.
    Folders,
    Name(Glob),
}

impl Pattern {
    /// `None` for a line that matches nothing.
    fn new(line: &str) -> Option<Self> {
        let (includes, line) = match line.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let (folders_only, line) = match line.strip_suffix('/') {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let mut parts = Vec::new();
        if line.contains('/') {
            let mut anywhere = false;
            for part in line.split('/') {
                match part {
                    // An empty part cancels a `**` before it.
                    "" => anywhere = false,
                    "**" => anywhere = true,
                    // `**` next to other characters matches nothing.
                    part if part.contains("**") => return None,
                    part => {
                        if std::mem::take(&mut anywhere) {
                            parts.push(Part::Folders);
                        }
                        parts.push(Part::Name(Glob::new(part)?));
                    }
                }
            }
        } else {
            // A pattern without slashes matches any component of the path.
            parts.extend([Part::Folders, Part::Name(Glob::new(line)?)]);
        }
        (!parts.is_empty()).then_some(Self { includes, folders_only, parts })
    }
}

#[cfg(test)]
mod tests;
