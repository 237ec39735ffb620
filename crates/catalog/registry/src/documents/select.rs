//! Selection of documents by schema, package and name.

use super::DocumentName;
use std::sync::Arc;

/// The selected documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    /// All of them.
    All,
    /// These, in ascending order.
    These(Box<[u32]>),
}

/// For each field, the documents that have it, sorted by its value. A query then reads the rarest
/// of its values only.
#[derive(Debug)]
pub(super) struct Order([Box<[u32]>; 3]);

impl Order {
    pub(super) fn of(names: &[DocumentName]) -> Self {
        Self(FIELDS.map(|field| {
            // More than four billion documents do not fit into memory.
            let documents = (0..).zip(names).filter(|(_, document)| !field(document).is_empty());
            let mut sorted: Vec<u32> = documents.map(|(at, _)| at).collect();
            // The sort is stable: documents with one value stay in their order.
            sorted.sort_by_key(|&at| field(&names[at as usize]));
            sorted.into()
        }))
    }

    pub(super) fn select(&self, names: &[DocumentName], wanted: [&str; 3]) -> Selection {
        let candidates = (0..3).filter(|&field| !wanted[field].is_empty()).map(|field| {
            let (sorted, value) = (&self.0[field], wanted[field]);
            let has = |at: &u32| &**FIELDS[field](&names[*at as usize]);
            let start = sorted.partition_point(|at| has(at) < value);
            let count = sorted[start..].partition_point(|at| has(at) == value);
            &sorted[start..start + count]
        });
        let Some(rarest) = candidates.min_by_key(|candidates| candidates.len()) else {
            return Selection::All;
        };
        let matches = |at: &&u32| {
            let document = &names[**at as usize];
            (0..3).all(|field| {
                wanted[field].is_empty() || &**FIELDS[field](document) == wanted[field]
            })
        };
        Selection::These(rarest.iter().filter(matches).copied().collect())
    }
}

const FIELDS: [fn(&DocumentName) -> &Arc<str>; 3] =
    [|document| &document.schema, |document| &document.package, |document| &document.name];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_selects_the_documents_that_have_every_given_value() {
        let names: Vec<DocumentName> =
            ["s p n", "t p n", "s q n", "s p m", " p n", "s  n", "s p n"]
                .iter()
                .map(|text| {
                    let mut words = text.split(' ').map(Arc::from);
                    let mut word = || words.next().unwrap();
                    DocumentName { schema: word(), package: word(), name: word() }
                })
                .collect();
        let order = Order::of(&names);
        for (wanted, found) in [
            (["s", "", ""], &[0, 2, 3, 5, 6][..]),
            (["", "p", ""], &[0, 1, 3, 4, 6]),
            (["", "", "n"], &[0, 1, 2, 4, 5, 6]),
            (["s", "p", ""], &[0, 3, 6]),
            (["s", "p", "n"], &[0, 6]),
            (["t", "q", ""], &[]),
            (["S", "", ""], &[]),
            (["", "", "o"], &[]),
        ] {
            assert_eq!(order.select(&names, wanted), Selection::These(found.into()), "{wanted:?}");
        }
        assert_eq!(order.select(&names, [""; 3]), Selection::All);
    }
}
