//! Optional validators and their labels.

use mainstay_bundle::validate::Validator;
use mainstay_object::selector::LabelSelector;
use std::fmt::Write as _;

/// An optional validator.
pub(super) struct OptionalValidator {
    /// The validator.
    pub(super) validator: Validator,
    /// Its name, which is also a label.
    name: &'static str,
    /// Whether it has the suite label.
    suite: bool,
    about: &'static str,
}

const SUITE: &str = "operatorframework";

/// All optional validators, in upstream's order and with its texts, because scripts read their table.
pub(super) const ALL: [OptionalValidator; 8] = [
    OptionalValidator {
        validator: Validator::OperatorHubV2,
        name: "operatorhubv2",
        suite: true,
        about: "OperatorHub.io metadata validation. ",
    },
    OptionalValidator {
        validator: Validator::Capabilities,
        name: "capabilities",
        suite: true,
        about: "OperatorHub.io capabilities metadata validation. ",
    },
    OptionalValidator {
        validator: Validator::Categories,
        name: "categories",
        suite: true,
        about: "OperatorHub.io categories metadata validation. ",
    },
    OptionalValidator {
        validator: Validator::OperatorHub,
        name: "operatorhub",
        suite: false,
        about: "Deprecated OperatorHub.io metadata validation. ",
    },
    OptionalValidator {
        validator: Validator::Community,
        name: "community",
        suite: false,
        about: "(stage: alpha) Community Operator bundle validation. See https://github.com/operator-framework/community-operators/blob/master/docs/packaging-required-fields.md",
    },
    OptionalValidator {
        validator: Validator::RemovedApis,
        name: "alpha-deprecated-apis",
        suite: true,
        about: "(stage: alpha) Deprecated APIs bundle validation. This validator can help you out verify if your bundle contains manifests which uses deprecated APIs. More info: https://kubernetes.io/docs/reference/using-api/deprecation-guide/",
    },
    OptionalValidator {
        validator: Validator::GoodPractices,
        name: "good-practices",
        suite: true,
        about: "Good Practices bundle validation. This validator validates the bundle against criteria and suggestions defined as good practices for bundles under the operator-framework solutions. More info: https://sdk.operatorframework.io/docs/best-practices/.",
    },
    OptionalValidator {
        validator: Validator::MultiArch,
        name: "multiarch",
        suite: false,
        about: "(Alpha) Multiple Architectures bundle validation. This validator validates the bundle against criteria defined to configure the support for multiple architectures. More info: https://olm.operatorframework.io/docs/advanced-tasks/ship-operator-supporting-multiarch/.",
    },
];

impl OptionalValidator {
    /// Whether a selector selects it.
    pub(super) fn is_selected_by(&self, selector: &LabelSelector) -> bool {
        selector.matches_with(|key| match key {
            "name" => Some(self.name),
            "suite" if self.suite => Some(SUITE),
            _ => None,
        })
    }
}

/// The table of all validators: names, labels and descriptions.
pub(super) fn table() -> String {
    let mut rows = vec![("NAME", "LABELS".to_owned(), "DESCRIPTION")];
    for one in &ALL {
        rows.push((one.name, format!("name={}", one.name), one.about));
        if one.suite {
            rows.push(("", format!("suite={SUITE}"), ""));
        }
    }
    // Four blanks between columns.
    let first = rows.iter().map(|row| row.0.len()).max().unwrap_or(0) + 4;
    let second = rows.iter().map(|row| row.1.len()).max().unwrap_or(0) + 4;
    rows.iter().fold(String::new(), |mut table, (name, label, about)| {
        // Writing to a string cannot fail.
        let _ = writeln!(table, "{name:<first$}{label:<second$}{about}");
        table
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_select_by_label() {
        for (selector, count) in [
            ("suite=operatorframework", 5),
            ("name=multiarch", 1),
            ("!suite", 3),
            ("name in (community,good-practices)", 2),
            ("name=nothing", 0),
        ] {
            let selector = LabelSelector::parse(selector).unwrap();
            let meant = ALL.iter().filter(|one| one.is_selected_by(&selector)).count();
            assert_eq!(meant, count, "{selector}");
        }
    }

    #[test]
    fn the_table_has_a_line_for_each_label() {
        let table = table();
        assert_eq!(table.lines().count(), 14);
        assert!(
            table.starts_with(
                "NAME                     LABELS                        DESCRIPTION\n"
            )
        );
        assert!(table.contains("\n                         suite=operatorframework       \n"));
    }
}
