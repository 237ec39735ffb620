//! Tree of unpacked entries: names and links are checked against it.

use super::{EntryRefusal, Limits};
use std::{collections::BTreeMap, ops::Bound};

/// The type of an unpacked path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryType {
    File,
    Link,
    Folder { mode: u32 },
}

#[derive(Clone, Copy, Debug)]
struct Node {
    entry_type: EntryType,
    /// Whether the current layer made it, or replaced it.
    new: bool,
}

/// All unpacked paths, without a slash at either end.
#[derive(Debug, Default)]
pub(super) struct Tree {
    nodes: BTreeMap<Vec<u8>, Node>,
    /// The number of entries that were read, and the length of their names.
    pub(super) entries: usize,
    pub(super) names: usize,
    /// The uncompressed size of all layers.
    pub(super) volume: u64,
}

impl Tree {
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn count(&mut self, length: usize) {
        self.entries += 1;
        self.names += length;
    }

    pub(super) fn get(&self, path: &[u8]) -> Option<EntryType> {
        self.nodes.get(path).map(|node| node.entry_type)
    }

    /// Whether the current layer made the path.
    pub(super) fn is_new(&self, path: &[u8]) -> bool {
        self.nodes.get(path).is_some_and(|node| node.new)
    }

    /// Whether the current layer made the path as anything but a folder.
    pub(super) fn is_new_non_folder(&self, path: &[u8]) -> bool {
        self.nodes
            .get(path)
            .is_some_and(|node| node.new && !matches!(node.entry_type, EntryType::Folder { .. }))
    }

    /// Records a path. Its parent folders belong to the current layer from now on.
    pub(super) fn make(&mut self, path: Vec<u8>, entry_type: EntryType) {
        let mut above = split(&path).0;
        while !above.is_empty() {
            match self.nodes.get_mut(above) {
                Some(node) if !node.new => node.new = true,
                _ => break,
            }
            above = split(above).0;
        }
        self.nodes.insert(path, Node { entry_type, new: true });
    }

    pub(super) fn remove(&mut self, path: &[u8]) {
        self.nodes.remove(path);
    }

    pub(super) fn end_layer(&mut self) {
        self.nodes.values_mut().for_each(|node| node.new = false);
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&[u8], EntryType)> {
        self.nodes.iter().map(|(path, node)| (path.as_slice(), node.entry_type))
    }

    /// The missing parents of a path in `folder`, the highest first.
    pub(super) fn parents(&self, folder: &[u8]) -> Result<Vec<Vec<u8>>, EntryRefusal> {
        let mut missing = Vec::new();
        let ends = folder.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let ends = ends.map(|(place, _)| place).chain([folder.len()]);
        for end in ends.filter(|end| *end > 0) {
            let above = &folder[..end];
            let text = || String::from_utf8_lossy(above).into_owned();
            match self.get(above) {
                Some(EntryType::Folder { .. }) => {}
                Some(EntryType::Link) => return Err(EntryRefusal::ThroughLink(text())),
                Some(EntryType::File) => return Err(EntryRefusal::NotInFolder(text())),
                None => missing.push(above.to_vec()),
            }
        }
        Ok(missing)
    }

    /// A path and everything below it that earlier layers made, the highest first.
    pub(super) fn below(&self, path: &[u8]) -> Vec<(Vec<u8>, EntryType)> {
        let itself = self.nodes.get_key_value(path).filter(|(_, node)| !node.new);
        let itself = itself.map(|(path, node)| (path.clone(), node.entry_type));
        itself.into_iter().chain(self.children_below(path)).collect()
    }

    /// Everything below a folder that earlier layers made, the highest first.
    pub(super) fn children_below(&self, folder: &[u8]) -> Vec<(Vec<u8>, EntryType)> {
        let range = if folder.is_empty() {
            (Bound::Unbounded, Bound::Unbounded)
        } else {
            let (mut from, mut to) = (folder.to_vec(), folder.to_vec());
            from.push(b'/');
            to.push(b'/' + 1);
            (Bound::Included(from), Bound::Excluded(to))
        };
        let old = self.nodes.range::<Vec<u8>, _>(range).filter(|(_, node)| !node.new);
        old.map(|(path, node)| (path.clone(), node.entry_type)).collect()
    }
}

/// Folder and last component of a path.
pub(super) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(place) => (&path[..place], &path[place + 1..]),
        None => (&[], path),
    }
}

pub(super) fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_vec() } else { [folder, b"/", name].concat() }
}

/// A name of an archive without `.` and repeated slashes.
pub(super) fn clean(name: &[u8], limits: &Limits) -> Result<Vec<u8>, EntryRefusal> {
    if name.len() > limits.path {
        return Err(EntryRefusal::LongName(limits.path));
    }
    if name.contains(&0) {
        return Err(EntryRefusal::Zero);
    }
    if name.is_empty() {
        return Err(EntryRefusal::Nameless);
    }
    if name.starts_with(b"/") {
        return Err(EntryRefusal::Absolute);
    }
    let mut path: Vec<u8> = Vec::with_capacity(name.len());
    let mut depth = 0;
    for part in name.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => continue,
            b".." if mainstay_fault::is_on("names-lead-up") => {}
            b".." => return Err(EntryRefusal::Traversal),
            _ => {}
        }
        if part.len() > limits.component {
            return Err(EntryRefusal::LongName(limits.component));
        }
        depth += 1;
        if depth > limits.depth {
            return Err(EntryRefusal::Deep(limits.depth));
        }
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(part);
    }
    Ok(path)
}

/// Checks that the symbolic link at `path` stays inside the folder.
///
/// No parent of `path` is a link, so each leading `..` of the target leads to a real folder and can
/// be counted. A name after that can only pass links that stay inside. A `..` behind a name would
/// start at the target of such a link and cannot be counted, so it is refused.
pub(super) fn check_link_target(path: &[u8], target: &[u8]) -> Result<(), EntryRefusal> {
    let text = || String::from_utf8_lossy(target).chars().take(200).collect();
    if target.is_empty() || target.contains(&0) || target.len() > 4096 {
        return Err(EntryRefusal::LinkOut(text()));
    }
    if target.starts_with(b"/") {
        return Err(EntryRefusal::LinkOut(text()));
    }
    if mainstay_fault::is_on("links-lead-out") {
        return Ok(());
    }
    let mut levels = path.split(|byte| *byte == b'/').skip(1).count();
    let mut down = false;
    for part in target.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if down => return Err(EntryRefusal::LinkUpAfterDown(text())),
            b".." if levels == 0 => return Err(EntryRefusal::LinkOut(text())),
            b".." => levels -= 1,
            _ => down = true,
        }
    }
    Ok(())
}
