//! What a catalog says and other tools lose, and what is allowed and rarely meant.
//!
//! Loading finds everything for which a catalog is refused. That leaves out what a maintainer
//! would like to know all the same: a misspelled field that rendering drops, a document that only
//! some tools read, a range that holds nothing. [`inspect`] finds both, in one pass: documents are
//! looked at while they are in the hands of the reader, graphs when all is put together.

mod document;
mod graph;
mod halves;
mod near;
mod range;

pub(crate) use document::{HIDING_BLANKS, Looker};

use crate::{LoadOptions, Source, declared::place, load, model::Catalog, problem::Problem};
use std::sync::Arc;

/// What there is to say about a catalog.
#[derive(Debug)]
pub struct Inspection {
    /// All problems, errors and warnings, in the order of files and lines.
    pub problems: Vec<Problem>,
    /// The catalog, if it can be used; there may be problems all the same.
    pub catalog: Option<Arc<Catalog>>,
    /// Every document was read. Otherwise what seems to be missing is not named: it may be in those
    /// that were not.
    pub complete: bool,
}

/// Reads a tree of files as [`Catalog::load_from`] does, and says also what is lost or suspicious.
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

/// By place, then by what is wrong.
fn order(problem: &Problem) -> impl Ord {
    let Problem { file, line, column, rule, message, .. } = problem;
    (file.clone(), *line, *column, *rule, message.clone())
}
