//! Why what the search found is no answer.

use crate::candidates::CatalogError;
use crate::texts::aggregate;

/// Why what the search found for a part is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum AnswerError {
    /// A catalog that would have come before the chosen ones cannot be asked.
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
    /// Chosen entries are not there once: how often each of them is.
    #[error("{}", several(.0))]
    NotOnce(Vec<u32>),
}

fn several(counts: &[u32]) -> String {
    let one = |count: &u32| format!("expected exactly one operator, got {count}");
    aggregate(&counts.iter().map(one).collect::<Vec<_>>())
}
