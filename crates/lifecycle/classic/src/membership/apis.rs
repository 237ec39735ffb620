//! Provided APIs: the APIs of an OperatorGroup, and conflicts with other OperatorGroups.

use crate::fields::Api;
use mainstay_api::{OperatorGroup, names};
use std::collections::BTreeSet;

/// APIs, in the order of their texts.
pub(crate) type ApiSet = BTreeSet<Api>;

/// The change of an OperatorGroup's provided APIs for the APIs of a CSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProvidedApisChange {
    /// This OperatorGroup and an intersecting one have the APIs: remove them here.
    Remove,
    /// The OperatorGroup does not have the APIs yet.
    Add,
    /// An intersecting OperatorGroup has some of the APIs already.
    Conflict,
    /// No change.
    Unchanged,
}

/// The provided APIs in the annotation of an OperatorGroup; invalid entries are ignored.
pub(crate) fn provided(group: &OperatorGroup) -> ApiSet {
    group
        .metadata
        .annotations
        .get(names::PROVIDED_APIS)
        .into_iter()
        .flat_map(|text| text.split(','))
        .filter_map(Api::parse)
        .collect()
}

/// The text of the annotation, sorted.
pub(crate) fn text(apis: &ApiSet) -> String {
    let mut texts: Vec<String> = apis.iter().map(Api::text).collect();
    texts.sort();
    texts.join(",")
}

/// Whether two OperatorGroups have a namespace in common. The namespace of an OperatorGroup counts
/// as a target unless it targets all.
pub(crate) fn intersect(a: &OperatorGroup, b: &OperatorGroup) -> bool {
    let (x, y) = (targets(a), targets(b));
    if x.is_empty() || y.is_empty() {
        return false;
    }
    x.contains("") || y.contains("") || x.iter().any(|namespace| y.contains(namespace))
}

fn targets(group: &OperatorGroup) -> BTreeSet<&str> {
    let mut all: BTreeSet<&str> = group.status.namespaces.iter().map(String::as_str).collect();
    if !all.is_empty() && !all.contains("") {
        all.insert(&group.metadata.namespace);
    }
    all
}

/// The change for `apis` in `group`, given all other OperatorGroups.
pub(crate) fn reconcile<'a>(
    apis: &ApiSet,
    group: &OperatorGroup,
    others: impl IntoIterator<Item = &'a OperatorGroup>,
) -> ProvidedApisChange {
    let provided_by_others: ApiSet =
        others.into_iter().filter(|other| intersect(group, other)).flat_map(provided).collect();
    let intersecting = !apis.is_disjoint(&provided_by_others);
    let subset = apis.is_subset(&provided(group));
    match (subset, intersecting) {
        (true, true) => ProvidedApisChange::Remove,
        (false, true) if mainstay_fault::is_on("two-groups-provide-one-api") => {
            ProvidedApisChange::Add
        }
        (false, true) => ProvidedApisChange::Conflict,
        (false, false) => ProvidedApisChange::Add,
        (true, false) => ProvidedApisChange::Unchanged,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(namespace: &str, targets: &[&str], apis: &str) -> OperatorGroup {
        let mut group = OperatorGroup::new(namespace, "og");
        group.status.namespaces = targets.iter().map(|namespace| (*namespace).to_owned()).collect();
        group.metadata.annotations.insert(names::PROVIDED_APIS.to_owned(), apis.to_owned());
        group
    }

    #[test]
    fn the_table_of_intersections_is_that_of_the_specification() {
        let apis: ApiSet = Api::parse("A.v1.g").into_iter().collect();
        for (own, other, wanted) in [
            ("A.v1.g", group("b", &["b"], "A.v1.g"), ProvidedApisChange::Unchanged),
            ("", group("b", &["b"], "A.v1.g"), ProvidedApisChange::Add),
            ("", group("b", &["a"], "A.v1.g"), ProvidedApisChange::Conflict),
            ("", group("b", &[""], "A.v1.g"), ProvidedApisChange::Conflict),
            ("A.v1.g", group("b", &[""], "A.v1.g"), ProvidedApisChange::Remove),
            ("B.v1.g", group("b", &[""], "C.v1.g"), ProvidedApisChange::Add),
            ("A.v1.g", group("b", &[], "A.v1.g"), ProvidedApisChange::Unchanged),
        ] {
            let mine = group("a", &["a"], own);
            assert_eq!(reconcile(&apis, &mine, [&other]), wanted, "{own} {other:?}");
        }
    }

    #[test]
    fn groups_intersect_where_they_target_the_same_with_their_own_namespaces() {
        for (a, b, wanted) in vec![
            (group("a", &[], ""), group("b", &[], ""), false),
            (group("a", &[], ""), group("b", &[""], ""), false),
            (group("a", &[], ""), group("b", &["a"], ""), false),
            (group("a", &["a"], ""), group("b", &["b"], ""), false),
            (group("a", &["x"], ""), group("b", &["y"], ""), false),
            (group("a", &["x"], ""), group("b", &["x"], ""), true),
            (group("a", &["x", "y"], ""), group("b", &["y", "z"], ""), true),
            (group("a", &["x", "y"], ""), group("b", &["z", "w"], ""), false),
            (group("a", &["x"], ""), group("b", &["a"], ""), true),
            (group("a", &["b"], ""), group("b", &["y"], ""), true),
            (group("a", &["a"], ""), group("a", &["x"], ""), true),
            (group("a", &[""], ""), group("b", &["b"], ""), true),
            (group("a", &[""], ""), group("b", &["b", "c", "d"], ""), true),
            (group("a", &[""], ""), group("b", &[""], ""), true),
            (group("a", &["x", ""], ""), group("b", &["y"], ""), true),
        ] {
            let case = format!("{:?} {:?}", a.status.namespaces, b.status.namespaces);
            // shows C33 OG-40
            assert_eq!(intersect(&a, &b), wanted, "{case}");
            assert_eq!(intersect(&b, &a), wanted, "{case}, the other way");
        }
    }

    /// The APIs of a CSV, those of its group, the other groups, and the expected change.
    type Row = (&'static str, &'static str, Vec<OperatorGroup>, ProvidedApisChange);

    #[test]
    fn the_change_of_provided_apis_depends_on_all_intersecting_groups() {
        let set = |text: &str| -> ApiSet { provided(&group("x", &["x"], text)) };
        let (near, far) = (|apis| group("b", &["a"], apis), |apis| group("c", &["c"], apis));
        let all = |apis| group("d", &[""], apis);
        let rows: Vec<Row> = vec![
            // No other groups.
            ("", "", vec![], ProvidedApisChange::Unchanged),
            ("", "A.v1.g", vec![], ProvidedApisChange::Unchanged),
            ("A.v1.g", "", vec![], ProvidedApisChange::Add),
            ("A.v1.g", "A.v1.g", vec![], ProvidedApisChange::Unchanged),
            ("A.v1.g", "A.v1.g,B.v1.g", vec![], ProvidedApisChange::Unchanged),
            ("A.v1.g,B.v1.g", "A.v1.g", vec![], ProvidedApisChange::Add),
            // Other groups with other APIs.
            ("A.v1.g", "", vec![near("B.v1.g")], ProvidedApisChange::Add),
            (
                "A.v1.g",
                "A.v1.g",
                vec![near("B.v1.g"), all("C.v1.g")],
                ProvidedApisChange::Unchanged,
            ),
            ("A.v1.g", "", vec![near("A.v2.g")], ProvidedApisChange::Add),
            ("A.v1.g", "", vec![near("A.v1.h")], ProvidedApisChange::Add),
            // Other groups with the same APIs that do not intersect.
            ("A.v1.g", "", vec![far("A.v1.g")], ProvidedApisChange::Add),
            ("A.v1.g", "A.v1.g", vec![far("A.v1.g")], ProvidedApisChange::Unchanged),
            ("A.v1.g", "", vec![group("e", &[], "A.v1.g")], ProvidedApisChange::Add),
            // Other groups with the same APIs that intersect.
            ("A.v1.g", "", vec![near("A.v1.g")], ProvidedApisChange::Conflict),
            ("A.v1.g", "", vec![all("A.v1.g")], ProvidedApisChange::Conflict),
            ("A.v1.g", "B.v1.g", vec![near("A.v1.g")], ProvidedApisChange::Conflict),
            ("A.v1.g,B.v1.g", "A.v1.g", vec![near("B.v1.g")], ProvidedApisChange::Conflict),
            ("A.v1.g,B.v1.g", "A.v1.g", vec![near("A.v1.g")], ProvidedApisChange::Conflict),
            ("A.v1.g", "", vec![far("A.v1.g"), near("A.v1.g")], ProvidedApisChange::Conflict),
            (
                "A.v1.g,B.v1.g",
                "",
                vec![near("C.v1.g"), all("B.v1.g,D.v1.g")],
                ProvidedApisChange::Conflict,
            ),
            ("A.v1.g", "A.v1.g", vec![near("A.v1.g")], ProvidedApisChange::Remove),
            ("A.v1.g", "A.v1.g", vec![all("A.v1.g")], ProvidedApisChange::Remove),
            ("A.v1.g", "A.v1.g,B.v1.g", vec![near("A.v1.g")], ProvidedApisChange::Remove),
            ("A.v1.g,B.v1.g", "A.v1.g,B.v1.g", vec![near("B.v1.g")], ProvidedApisChange::Remove),
            (
                "A.v1.g",
                "A.v1.g",
                vec![far("A.v1.g"), near("B.v1.g")],
                ProvidedApisChange::Unchanged,
            ),
            // A CSV without APIs causes no conflict.
            ("", "", vec![near("A.v1.g")], ProvidedApisChange::Unchanged),
            ("", "A.v1.g", vec![near("A.v1.g")], ProvidedApisChange::Unchanged),
        ];
        for (apis, own, others, wanted) in rows {
            let mine = group("a", &["a"], own);
            let found = reconcile(&set(apis), &mine, &others);
            // shows C33
            assert_eq!(found, wanted, "{apis:?} {own:?} {others:?}");
        }
    }

    #[test]
    fn invalid_entries_of_provided_apis_are_ignored() {
        for (given, wanted) in [
            ("", ""),
            (",", ""),
            ("A", ""),
            ("A.v1", ""),
            ("A.v1.g", "A.v1.g"),
            ("A.v1.g.example.com", "A.v1.g.example.com"),
            ("B.v1.g,A.v1.g", "A.v1.g,B.v1.g"),
            ("A.v1.g,A.v1.g", "A.v1.g"),
            ("A.v1.g,nonsense,B.v1.g", "A.v1.g,B.v1.g"),
        ] {
            // shows C33
            assert_eq!(text(&provided(&group("a", &["a"], given))), wanted, "{given:?}");
        }
    }

    #[test]
    fn the_annotation_is_sorted_and_reads_back() {
        let given = group("a", &["a"], "B.v1.g,A.v1.g,nonsense");
        assert_eq!(text(&provided(&given)), "A.v1.g,B.v1.g");
    }
}
