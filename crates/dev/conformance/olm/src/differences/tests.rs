use super::super::compare::FieldCounts;
use super::super::run::StepResult;
use super::*;
use serde_json::json;

fn finding(path: &str) -> FieldDifference {
    FieldDifference {
        kind: "Subscription".to_owned(),
        object: "c001/anvil-c001".to_owned(),
        path: path.to_owned(),
        fields: 1,
        recorded: Some(json!(1)),
        ours: None,
    }
}

fn results(rule: &str, compared: usize, expected: &[&str], unexpected: &[&str]) -> CaseResult {
    let findings = |paths: &[&str]| paths.iter().map(|path| finding(path)).collect::<Vec<_>>();
    let step = StepResult {
        name: "01-x".to_owned(),
        expected: findings(expected),
        unexpected: findings(unexpected),
        compared: FieldCounts([("Subscription".to_owned(), compared)].into()),
        ..StepResult::default()
    };
    let (id, rule) = ("c001".to_owned(), rule.to_owned());
    CaseResult { id, rule, steps: vec![step], ..CaseResult::default() }
}

fn unexpected(list: &str, step: &str, path: &str) -> usize {
    let lists = ExpectedDifferences::parse(list, "").unwrap();
    lists.split("a", "c001", step, vec![finding(path)]).unexpected.len()
}

#[test]
fn entry_matches_rule_step_object_and_field() {
    let list = "why [x]\n  a 01,03-04 Subscription {case}/{name}-{case}: status/state status/conditions/*\n";
    assert_eq!(unexpected(list, "01", "status/state"), 0);
    assert_eq!(unexpected(list, "04", "status/conditions/type=A"), 0);
    assert_eq!(unexpected(list, "02", "status/state"), 1, "another step");
    assert_eq!(unexpected(list, "01", "status/currentCSV"), 1, "another field");
    assert_eq!(unexpected(list, "01", ""), 1, "the object as a whole");
    let gone = "why [x]\n  a 01 -Subscription {case}/anvil-{case}\n";
    assert_eq!(unexpected(gone, "01", ""), 0);
    assert_eq!(unexpected(gone, "01", "status/state"), 1, "a field of an object that both have");
    assert_eq!(unexpected(&gone.replace('-', "+"), "01", ""), 1, "the other side has it");
    assert_eq!(unexpected("why\n  b 01 -Subscription {case}/anvil-{case}\n", "01", ""), 1);
}

#[test]
fn overly_broad_entries_are_rejected() {
    for line in [
        "a 01 * x: y",
        "a 01 Role x: *",
        "a 01 Role x: status/*",
        "a 01 Role *: rules",
        "a* 01 Role x: rules",
        "a 1 Role x: rules",
        "a 01 Role x",
        "a 01 +Role x: rules",
        "a 01 Role",
    ] {
        assert!(ExpectedDifferences::parse(&format!("why\n  {line}\n"), "").is_err(), "{line}");
    }
    assert!(ExpectedDifferences::parse("  a 01 Role x: rules\n", "").is_err(), "no reason");
}

#[test]
fn unused_entry_is_a_problem() {
    let list = "why [x]\n  a,b 01 Subscription {case}/{name}-{case} other: status/state rules\n";
    let lists = ExpectedDifferences::parse(list, "Subscription *\n").unwrap();
    lists.split("a", "c001", "01", vec![finding("status/state")]);
    let problems = lists.problems(&[], true);
    assert_eq!(problems, ["olm/differences.txt:2: nothing needs rule b, object other, path rules"]);
}

#[test]
fn citations_are_checked() {
    let notes = "# x\n\n| Rule | Fact |\n|---|---|\n| `a-*`, `b` | this |\n\n| Rule | no |\n|--|--|\n| `c` | - |\n";
    let differences =
        "| Area | Upstream | Mainstay | Why |\n|---|---|---|---|\n| Retries | x | y | z |\n";
    let mut lists = ExpectedDifferences::parse(
        "w [a-*]\nw [b]\nw [c]\nw [differences: Retries]\nw [differences: x]\n",
        "",
    )
    .unwrap();
    lists.sources = CitationSources::of(Some(notes), differences);
    assert_eq!(
        lists.problems(&[], true),
        [
            "olm/differences.txt:3: the notes on the recordings state nothing about `c`",
            "olm/differences.txt:5: docs/differences.md has no row \"x\"",
        ]
    );
}

#[test]
fn at_most_a_fifth_of_a_cases_subject_may_be_excused() {
    let lists = ExpectedDifferences::parse("", "Subscription a\nRole b\n").unwrap();
    assert_eq!(lists.problem(&results("a", 10, &["x", "y"], &[])), None);
    let problem = |case: CaseResult| lists.problem(&case).unwrap();
    assert!(problem(results("a", 9, &["x", "y"], &[])).contains("2 are excused"));
    assert!(problem(results("a", 10, &[], &["x"])).contains("1 differences are not wanted"));
    assert!(problem(results("b", 10, &[], &[])).contains("there is no Role in it"));
    assert!(problem(results("c", 10, &[], &[])).contains("what is the rule c about?"));
}

#[test]
fn exception_must_be_needed_and_exceptions_are_limited() {
    let mut lists =
        ExpectedDifferences::parse("", "Subscription *\nexcept a: all of it [x]\n").unwrap();
    let much = results("a", 9, &["x", "y"], &[]);
    assert_eq!(lists.problem(&much), None);
    assert!(lists.problem(&results("a", 10, &["x"], &[])).unwrap().contains("no exception"));
    lists.sources.facts = Some(["x".to_owned()].into());
    let few = lists.problems(std::slice::from_ref(&much), true);
    assert_eq!(few, ["olm/subjects.txt: 1 exceptions among 1 cases"]);
    assert!(ExpectedDifferences::parse("", "except a: no citation\n").is_err());
}

#[test]
fn proposal_lists_unexpected_differences() {
    let case = results("a", 10, &[], &["status/state", "spec"]);
    let text = proposal(std::slice::from_ref(&case));
    assert_eq!(text, "  a 01 Subscription {case}/anvil-{case}: spec status/state\n");
    let lists = ExpectedDifferences::parse(&format!("why\n{text}"), "").unwrap();
    let divided = lists.split("a", "c001", "01", case.steps[0].unexpected.clone());
    assert_eq!((divided.unexpected.len(), divided.uncited), (0, 2));
}

#[test]
fn sometimes_entry_may_be_unused() {
    let list = "Sometimes it is late.\n  a 01 Subscription {case}/{name}-{case}: status/state\n";
    let lists = ExpectedDifferences::parse(list, "Subscription *\n").unwrap();
    assert_eq!(lists.problems(&[], true), Vec::<String>::new());
    assert_eq!(lists.split("a", "c001", "01", vec![finding("status/state")]).unexpected, []);
    let is_always_needed =
        ExpectedDifferences::parse(&list.replace("Sometimes", "Always"), "Subscription *\n")
            .unwrap();
    assert_eq!(is_always_needed.problems(&[], true).len(), 1);
}
