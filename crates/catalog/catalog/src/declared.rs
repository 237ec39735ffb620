//! Declared documents: the documents of a catalog in order, before an index is built from them.

use crate::{
    check::{self, Item},
    content::{Area, Blob, BlobOrigin, Slot},
    decode::Facts,
    load::{self, LoadOptions},
    model::Catalog,
    problem::{CatalogProblem, Finding, LoadError, PathPart},
    read::{self, DecodedBlob, LineCounter, decode_value},
    rule::CatalogRule,
    source::FileSource,
};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::{collections::BTreeSet, sync::Arc};

/// The documents of a catalog in the order of files and lines. Each has the shape of its schema.
/// [`CatalogDocuments::check`] finds out whether they make a catalog.
#[derive(Debug, Default)]
pub struct CatalogDocuments {
    area: Arc<Area>,
    items: Vec<Item>,
    /// Interned schemas, packages and file names.
    names: BTreeSet<Arc<str>>,
}

impl CatalogDocuments {
    /// Reads all documents of a tree of files.
    ///
    /// # Errors
    /// All documents that cannot be read, or do not have the shape of their schema.
    pub fn read(source: &dyn FileSource, options: &LoadOptions) -> Result<Self, LoadError> {
        let read = load::read(source, options, false)?;
        if read.problems.is_empty() {
            return Ok(read.declared);
        }
        Err(LoadError::new(read.problems, read.upstream))
    }

    /// Takes documents that were built in memory.
    ///
    /// # Errors
    /// All documents that do not have the shape of their schema.
    pub fn of(documents: impl IntoIterator<Item = (BlobOrigin, Value)>) -> Result<Self, LoadError> {
        let mut declared = Self::default();
        let (mut problems, mut upstream) = (Vec::new(), None);
        for (origin, value) in documents {
            let read = decode_value(value, &origin);
            problems.extend(read.problems);
            upstream = upstream.or(read.stop);
            read.blobs.into_iter().for_each(|blob| declared.add(blob));
        }
        if problems.is_empty() { Ok(declared) } else { Err(LoadError::new(problems, upstream)) }
    }

    /// All documents, in order.
    pub fn blobs(&self) -> impl ExactSizeIterator<Item = Blob> {
        (0..self.items.len()).map(|slot| self.area.blob(slot))
    }

    /// All documents in order, each with its facts.
    pub(crate) fn documents(&self) -> impl ExactSizeIterator<Item = (Blob, &Facts)> {
        self.items.iter().map(|item| (self.area.blob(item.slot), &item.facts))
    }

    /// Builds the catalog of the documents.
    ///
    /// # Errors
    /// All findings of the checks, each with the line on which its document begins.
    pub fn check(self) -> Result<Arc<Catalog>, LoadError> {
        self.into_catalog(None, Vec::new(), true, None)
    }

    /// Builds a catalog of the sound packages, and returns the problems of the others.
    ///
    /// This is for content of SQLite catalogs, whose registry server was less strict: package names
    /// may be any text, and bundles of a package may share a version.
    pub fn check_permissive(self) -> (Arc<Catalog>, Vec<CatalogProblem>) {
        let (mut catalog, mut findings, _) = self.build();
        findings.retain(|finding| {
            !matches!(finding.rule, CatalogRule::PackageName | CatalogRule::DuplicateVersion)
        });
        for Finding { blob, .. } in &findings {
            let package = if blob.package.is_empty() { &blob.name } else { &blob.package };
            catalog.packages.remove(package);
        }
        (Arc::new(catalog), locate_findings(None, findings.into_iter()))
    }

    /// As [`CatalogDocuments::check`], for documents that were read from `source`: problems have exact
    /// lines and columns, at the cost of reading the files with problems again.
    ///
    /// # Errors
    /// As [`CatalogDocuments::check`].
    pub fn check_in(
        self,
        source: &dyn FileSource,
        options: &LoadOptions,
    ) -> Result<Arc<Catalog>, LoadError> {
        self.into_catalog(Some((source, options)), Vec::new(), true, None)
    }

    /// The tree of upstream's findings about the index that these documents make, if there are any.
    /// `more` adds lines that only the reader of the documents knows, each with its parent nodes.
    /// Unlike [`CatalogDocuments::check`], this leaves out rules that apply to file-based catalogs only.
    pub fn index_fault(
        &self,
        more: impl IntoIterator<Item = (Vec<String>, String)>,
    ) -> Option<String> {
        let mut upstream = check::build(&self.items, &self.area).upstream;
        for (below, text) in more {
            let below: Vec<&str> = below.iter().map(String::as_str).collect();
            upstream.add_line(&below, &text);
        }
        upstream.into_tree()
    }

    /// Appends the documents of another catalog: several references are written together.
    pub fn append(&mut self, other: Self) {
        let slots = Arc::try_unwrap(other.area).unwrap_or_else(|shared| Area::clone(&shared)).slots;
        for (slot, item) in slots.into_iter().zip(other.items) {
            self.add(DecodedBlob { slot, bytes: item.bytes, facts: item.facts });
        }
    }

    /// The blobs with their facts.
    pub(crate) fn items(&self) -> impl Iterator<Item = &Item> {
        self.items.iter()
    }

    /// The table row of an item.
    pub(crate) fn slot(&self, item: &Item) -> &Slot {
        &self.area.slots[item.slot]
    }

    pub(crate) fn add(&mut self, blob: DecodedBlob) {
        let DecodedBlob { mut slot, bytes, facts } = blob;
        for name in [&mut slot.schema, &mut slot.package, &mut slot.name] {
            match self.names.get(&**name) {
                Some(interned) => *name = interned.clone(),
                None => {
                    self.names.insert(name.clone());
                }
            }
        }
        // A caller may hold blobs of the area.
        let area = Arc::make_mut(&mut self.area);
        self.items.push(Item { slot: area.slots.len(), bytes, facts });
        area.slots.push(slot);
    }

    /// The catalog of all blobs, the findings, and upstream's report. The catalog is usable only if
    /// there are no findings.
    pub(crate) fn build(self) -> (Catalog, Vec<Finding>, Option<String>) {
        let digest = digest(&self.area.slots);
        let area = self.area;
        let checked = check::build(&self.items, &area);
        let others = checked.others.iter().map(|&slot| area.blob(slot)).collect();
        let catalog = Catalog { digest, packages: checked.packages, others, area };
        (catalog, checked.findings, checked.upstream.into_message())
    }

    /// Why upstream rejects the catalog, if it does.
    pub(crate) fn fault(self) -> Option<LoadError> {
        let (_, findings, upstream) = self.build();
        upstream.map(|upstream| {
            LoadError::new(locate_findings(None, findings.into_iter()), Some(upstream))
        })
    }

    /// Whether a manifest in a bundle cannot be read.
    pub(crate) fn has_object_faults(&self) -> bool {
        self.items.iter().any(|item| match &item.facts {
            Facts::Bundle(bundle) => !bundle.object_faults.is_empty(),
            _ => false,
        })
    }

    /// Returns the catalog, or all problems of reading and of the checks.
    pub(crate) fn into_catalog(
        self,
        source: Option<(&dyn FileSource, &LoadOptions)>,
        mut problems: Vec<CatalogProblem>,
        complete: bool,
        stopped: Option<String>,
    ) -> Result<Arc<Catalog>, LoadError> {
        let readable = problems.is_empty();
        let (catalog, findings, upstream) = self.build();
        let findings =
            findings.into_iter().filter(|finding| complete || !finding.follows_from_gaps);
        problems.extend(locate_findings(source, findings));
        if problems.is_empty() {
            return Ok(Arc::new(catalog));
        }
        problems.sort_by(|a, b| (&a.file, a.line, a.column).cmp(&(&b.file, b.line, b.column)));
        problems.dedup();
        // Upstream's report on the rest is unknown for a file that only Mainstay refuses.
        Err(LoadError::new(problems, stopped.or(upstream.filter(|_| readable))))
    }
}

/// Turns findings into problems with exact places, by reading the files once more.
pub(crate) fn locate_findings(
    source: Option<(&dyn FileSource, &LoadOptions)>,
    findings: impl Iterator<Item = Finding>,
) -> Vec<CatalogProblem> {
    let findings: Vec<Finding> = findings.collect();
    // Each file is read once, and each document parsed once.
    let place = |at: &usize| (&findings[*at].origin, findings[*at].bytes.start);
    let mut order: Vec<usize> = (0..findings.len()).collect();
    order.sort_by(|a, b| place(a).cmp(&place(b)));
    let mut locations = vec![(0, None); findings.len()];
    for file in order.chunk_by(|a, b| findings[*a].origin.file == findings[*b].origin.file) {
        let read = |(source, options): (&dyn FileSource, &LoadOptions)| {
            let path = &findings[file[0]].origin.file;
            let bytes = source.read(path, options.limits.file_bytes).unwrap_or_default();
            read::replace_invalid_utf8(bytes)
        };
        let text = source.map(read).unwrap_or_default();
        let mut lines = LineCounter::default();
        for document in file.chunk_by(|a, b| place(a) == place(b)) {
            let Finding { origin, bytes, .. } = &findings[document[0]];
            let paths: Vec<&[PathPart]> =
                document.iter().map(|&at| findings[at].path.as_slice()).collect();
            let found = read::locate_parts(&text, &mut lines, bytes, origin.line, &paths);
            for (&at, spot) in document.iter().zip(found) {
                locations[at] = spot;
            }
        }
    }
    let problem = |(finding, (line, column)): (Finding, _)| {
        let Finding { rule, blob, origin, message, remedy, .. } = finding;
        let (file, line) = (origin.file, Some(line));
        CatalogProblem { rule, blob: Some(blob), file, line, column, message, remedy }
    };
    findings.into_iter().zip(locations).map(problem).collect()
}

/// The hash over the sorted hashes of all blobs; empty if a blob has no hash.
fn digest(slots: &[Slot]) -> String {
    let hashes: Option<Vec<&[u8; 32]>> = slots.iter().map(|slot| slot.hash.as_ref()).collect();
    let Some(mut hashes) = hashes else { return String::new() };
    if !mainstay_fault::is_on("digests-follow-the-order-of-files") {
        hashes.sort_unstable();
    }
    let mut all = Sha256::new();
    for hash in hashes {
        all.update(hash);
    }
    let mut text = "sha256:".to_owned();
    for byte in all.finalize() {
        text.extend(
            [byte >> 4, byte & 15].map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)])),
        );
    }
    text
}
