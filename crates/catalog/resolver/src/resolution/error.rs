//! Errors of answers: why the answer of a search is not valid.

use crate::candidates::CatalogError;
use crate::texts::aggregate;

/// Why the answer that the search found for a part is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum AnswerError {
    /// A catalog that is preferred to that of a chosen entry cannot be read.
    #[error(transparent)]
    UseCatalog(#[from] CatalogError),
    /// A name of a chosen entry has a slash.
    #[error(
        "error determining origin of operator: unable to parse identifier {identifier} for source \
         info"
    )]
    ParseIdentifier {
        /// Catalog, channel and name of the entry.
        identifier: String,
    },
    /// Chosen entries occur more than once in their channels: how often each of them occurs.
    #[error("{}", several(.0))]
    NotOnce(Vec<u32>),
}

fn several(counts: &[u32]) -> String {
    let one = |count: &u32| format!("expected exactly one operator, got {count}");
    aggregate(&counts.iter().map(one).collect::<Vec<_>>())
}
