//! Why a catalog is refused, in the words of this command line.

use mainstay_catalog::LoadError;

/// What is wrong first.
pub(super) fn text(error: &LoadError) -> String {
    error.problems.first().map(|problem| problem.message.clone()).unwrap_or_default()
}
