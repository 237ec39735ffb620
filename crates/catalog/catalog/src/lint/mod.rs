//! Catalog lint: content that other tools lose, and content that is allowed but rarely intended.
//!
//! Loading reports everything for which a catalog is refused. A maintainer wants to know more: a
//! misspelled field that rendering drops, a document that only some tools read, an empty version
//! range. [`lint_catalog`] reports both in one pass: it checks documents while they are read, and graphs
//! when the catalog is built.

mod document;
mod graph;
mod range;
mod similar_names;
mod surrogates;

pub(crate) use document::{DocumentLinter, HIDING_BLANKS};

use crate::{
    FileSource, LoadOptions, declared::locate_findings, load, model::Catalog,
    problem::CatalogProblem,
};
use std::sync::Arc;

/// The result of a lint.
#[derive(Debug)]
pub struct LintReport {
    /// All problems, errors and warnings, in the order of files and lines.
    pub problems: Vec<CatalogProblem>,
    /// The catalog, if it can be used; it may have problems nevertheless.
    pub catalog: Option<Arc<Catalog>>,
    /// Whether every document was read. Otherwise missing objects are not reported, because they
    /// may be in a document that was not read.
    pub complete: bool,
}

/// Reads a tree of files as [`Catalog::load_from`] does, and also reports lost or suspicious
/// content.
pub fn lint_catalog(source: &dyn FileSource, options: &LoadOptions) -> LintReport {
    let read = match load::read(source, options, true) {
        Ok(read) => read,
        Err(error) => {
            return LintReport { problems: error.problems, catalog: None, complete: false };
        }
    };
    let (mut problems, complete) = (read.lint_problems, read.complete);
    let misspelled = graph::find_misspelled_edges(&read.declared);
    problems.extend(locate_findings(Some((source, options)), misspelled.into_iter()));
    let documents = graph::channel_documents(&read.declared);
    let location = Some((source, options));
    let catalog = match read.declared.into_catalog(location, read.problems, complete, read.upstream)
    {
        Ok(catalog) => {
            let cut_off = graph::find_cut_off_entries(&catalog, &documents);
            problems.extend(locate_findings(location, cut_off.into_iter()));
            Some(catalog)
        }
        Err(error) => {
            problems.extend(error.problems);
            None
        }
    };
    problems.sort_by(|a, b| sort_key(a).cmp(&sort_key(b)));
    problems.dedup();
    LintReport { problems, catalog, complete }
}

/// Orders problems by place, then by rule and message.
fn sort_key(problem: &CatalogProblem) -> impl Ord {
    let CatalogProblem { file, line, column, rule, message, .. } = problem;
    (file.clone(), *line, *column, *rule, message.clone())
}
