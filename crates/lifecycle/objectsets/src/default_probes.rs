//! Default probes: what the kinds of a bundle must show before the next phase begins.
//!
//! StatefulSets have no condition `Available`, so a bundle with one would wait forever. Upstream has that
//! fault, too; bundles in the format registry+v1 contain no StatefulSets.

use mainstay_api::{
    ConditionEqualProbe, FieldValueProbe, FieldsEqualProbe, ProbeAssertion, ProbeAssertionType,
    ProbeGroupKind, ProbeSelector, ProbeSelectorType, ProgressionProbe,
};

/// The probes of each ClusterObjectSet that is made from a bundle.
pub fn default_progression_probes() -> Vec<ProgressionProbe> {
    let workload = || {
        vec![
            fields_equal("status.updatedReplicas", "status.replicas"),
            condition_equal("Available"),
        ]
    };
    vec![
        probe(
            "apiextensions.k8s.io",
            "CustomResourceDefinition",
            vec![condition_equal("Established")],
        ),
        probe("cert-manager.io", "Certificate", vec![condition_equal("Ready")]),
        probe("cert-manager.io", "Issuer", vec![condition_equal("Ready")]),
        probe("", "Namespace", vec![field_value("status.phase", "Active")]),
        probe("", "PersistentVolumeClaim", vec![field_value("status.phase", "Bound")]),
        probe("apps", "StatefulSet", workload()),
        probe("apps", "Deployment", workload()),
    ]
}

fn probe(group: &str, kind: &str, assertions: Vec<ProbeAssertion>) -> ProgressionProbe {
    let group_kind = ProbeGroupKind { group: group.to_owned(), kind: kind.to_owned() };
    let selector = ProbeSelector {
        kind: ProbeSelectorType::GroupKind,
        group_kind: Some(group_kind),
        ..ProbeSelector::default()
    };
    ProgressionProbe { selector, assertions }
}

fn condition_equal(kind: &str) -> ProbeAssertion {
    ProbeAssertion {
        kind: ProbeAssertionType::ConditionEqual,
        condition_equal: Some(ConditionEqualProbe {
            kind: kind.to_owned(),
            status: "True".to_owned(),
        }),
        ..ProbeAssertion::default()
    }
}

fn fields_equal(first: &str, second: &str) -> ProbeAssertion {
    let fields = FieldsEqualProbe { field_a: first.to_owned(), field_b: second.to_owned() };
    ProbeAssertion {
        kind: ProbeAssertionType::FieldsEqual,
        fields_equal: Some(fields),
        ..ProbeAssertion::default()
    }
}

fn field_value(path: &str, value: &str) -> ProbeAssertion {
    let field = FieldValueProbe { field_path: path.to_owned(), value: value.to_owned() };
    ProbeAssertion {
        kind: ProbeAssertionType::FieldValue,
        field_value: Some(field),
        ..ProbeAssertion::default()
    }
}
