//! Rules that cover others, and how rules are compacted.

use mainstay_permissions::{
    RbacRule, TooManyPermissions, compact_rules, missing_rules, report_line,
};

/// A rule as text: groups; resources; verbs; names; paths. `-` is the core group.
fn rule(text: &str) -> RbacRule {
    let mut columns = text.split(';').map(|column| {
        let words = column.split_whitespace();
        words.map(|word| if word == "-" { String::new() } else { word.to_owned() }).collect()
    });
    let mut next = || columns.next().unwrap_or_default();
    RbacRule {
        api_groups: next(),
        resources: next(),
        verbs: next(),
        resource_names: next(),
        non_resource_urls: next(),
    }
}

#[test]
fn rules_cover_as_in_the_escalation_check() {
    // Held rules, wanted rule, what is missing.
    let table: [(&[&str], &str, &[&str]); 16] = [
        (&["-;pods;get"], "-;pods;get", &[]),
        (&["*;*;*"], "apps;deployments/scale;get patch", &[]),
        (&["*;*;*"], ";;get;;/metrics", &["Verbs:[get] NonResourceURLs:[/metrics]"]),
        (
            &["-;pods;get"],
            "-;pods services;get list",
            &[
                "APIGroups:[] Resources:[pods] Verbs:[list]",
                "APIGroups:[] Resources:[services] Verbs:[get]",
                "APIGroups:[] Resources:[services] Verbs:[list]",
            ],
        ),
        // A wildcard is covered by a wildcard only.
        (&["-;pods;get list"], "-;pods;*", &["APIGroups:[] Resources:[pods] Verbs:[*]"]),
        (&["-;pods;get"], "-;*;get", &["APIGroups:[] Resources:[*] Verbs:[get]"]),
        (&["apps;*;get"], "*;*;get", &["APIGroups:[*] Resources:[*] Verbs:[get]"]),
        // Subresources have permissions of their own.
        (&["apps;*/scale;get"], "apps;deployments/scale;get", &[]),
        (
            &["apps;*/scale;get"],
            "apps;deployments deployments/status;get",
            &[
                "APIGroups:[apps] Resources:[deployments] Verbs:[get]",
                "APIGroups:[apps] Resources:[deployments/status] Verbs:[get]",
            ],
        ),
        // Names limit a rule; several rules add up.
        (&["-;pods;get;a"], "-;pods;get", &["APIGroups:[] Resources:[pods] Verbs:[get]"]),
        (&["-;pods;get"], "-;pods;get;a", &[]),
        (&["-;pods;get;a", "-;pods;get;b"], "-;pods;get;a b", &[]),
        (
            &["-;pods;get;*"],
            "-;pods;get;a",
            &["APIGroups:[] Resources:[pods] ResourceNames:[a] Verbs:[get]"],
        ),
        (&[";;get;;/healthz/*"], ";;get;;/healthz/etcd", &[]),
        (&[";;get;;*"], ";;get;;/healthz /metrics", &[]),
        (&["-;pods;get", "-;services;list"], "-;pods;get", &[]),
    ];
    for (held, wanted, expected) in table {
        let held: Vec<RbacRule> = held.iter().map(|text| rule(text)).collect();
        let missing = missing_rules(&held.iter().collect::<Vec<_>>(), &[rule(wanted)]).unwrap();
        let lines: Vec<String> = missing.iter().map(|rule| report_line("", rule)).collect();
        let expected: Vec<String> =
            expected.iter().map(|line| format!("Namespace:\"\" {line}")).collect();
        assert_eq!(lines, expected, "{held:?} {wanted}");
    }
}

#[test]
fn rules_about_one_resource_are_compacted() {
    let rules = [
        "-;pods;watch get",
        "-;pods;get list",
        "-;pods;get;b",
        "-;pods;delete;b",
        "apps;deployments;get",
        "apps;deployments;*",
        "-;pods services;get",
        "-;pods services;get",
        ";;get;;/metrics",
    ];
    let compacted = compact_rules(rules.map(rule));
    let lines: Vec<String> = compacted.iter().map(|rule| report_line("n", rule)).collect();
    assert_eq!(
        lines,
        [
            "Namespace:\"n\" APIGroups:[apps] Resources:[deployments] Verbs:[*]",
            "Namespace:\"n\" APIGroups:[] Resources:[pods] ResourceNames:[b] Verbs:[delete,get]",
            "Namespace:\"n\" APIGroups:[] Resources:[pods] Verbs:[get,list,watch]",
            "Namespace:\"n\" Verbs:[get] NonResourceURLs:[/metrics]",
            "Namespace:\"n\" APIGroups:[] Resources:[pods,services] Verbs:[get]",
        ]
    );
}

#[test]
fn rules_with_too_many_parts_are_refused() {
    let words = |count: usize| (0..count).map(|at| at.to_string()).collect::<Vec<_>>();
    let rule = RbacRule {
        api_groups: words(100),
        resources: words(100),
        verbs: words(100),
        ..RbacRule::default()
    };
    assert_eq!(missing_rules(&[], [&rule]), Err(TooManyPermissions(1_000_000)));
    // Rules that one rule covers as a whole are not split.
    let all = RbacRule::of_resource("*", "*", &["*"]);
    assert_eq!(missing_rules(&[&all], [&rule]), Ok(Vec::new()));
}
