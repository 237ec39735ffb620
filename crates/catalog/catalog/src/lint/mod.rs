//! Catalog lint: content that other tools lose, and content that is allowed but rarely intended.
//!
//! Loading reports everything for which a catalog is refused. A maintainer wants to know more: a
//! misspelled field that rendering drops, a document that only some tools read, an empty version
//! range. [`inspect`] reports both in one pass: it checks documents while they are read, and graphs
//! when the catalog is built.

mod document;
mod graph;
mod halves;
mod near;
mod range;

pub(crate) use document::{HIDING_BLANKS, Looker};

use crate::{LoadOptions, Source, declared::place, load, model::Catalog, problem::Problem};
use std::sync::Arc;

/// The result of a lint.
#[derive(Debug)]
pub struct Inspection {
    /// All problems, errors and warnings, in the order of files and lines.
    pub problems: Vec<Problem>,
    /// The catalog, if it can be used; it may have problems nevertheless.
    pub catalog: Option<Arc<Catalog>>,
    /// Whether every document was read. Otherwise missing objects are not reported, because they
    /// may be in a document that was not read.
    pub complete: bool,
}

/// Reads a tree of files as [`Catalog::load_from`] does, and also reports lost or suspicious
/// content.
pub fn inspect(source: &dyn Source, options: &LoadOptions) -> Inspection {
    let read = match load::read(source, options, true) {
        Ok(read) => read,
        Err(error) => {
            return Inspection { problems: error.problems, catalog: None, complete: false };
        }
    };
    let (mut problems, complete) = (read.noted, read.complete);
    let typos = graph::typos(&read.declared);
    problems.extend(place(Some((source, options)), typos.into_iter()));
    let places = graph::places(&read.declared);
    let from = Some((source, options));
    let catalog = match read.declared.judge(from, read.problems, complete, read.upstream) {
        Ok(catalog) => {
            let cut_off = graph::cut_off(&catalog, &places);
            problems.extend(place(from, cut_off.into_iter()));
            Some(catalog)
        }
        Err(error) => {
            problems.extend(error.problems);
            None
        }
    };
    problems.sort_by(|a, b| order(a).cmp(&order(b)));
    problems.dedup();
    Inspection { problems, catalog, complete }
}

/// Orders problems by place, then by rule and message.
fn order(problem: &Problem) -> impl Ord {
    let Problem { file, line, column, rule, message, .. } = problem;
    (file.clone(), *line, *column, *rule, message.clone())
}
