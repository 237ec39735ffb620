use super::super::compare::Compared;
use super::super::run::JudgedStep;
use super::*;
use serde_json::json;

fn finding(path: &str) -> Finding {
    Finding {
        kind: "Subscription".to_owned(),
        object: "c001/anvil-c001".to_owned(),
        path: path.to_owned(),
        fields: 1,
        recorded: Some(json!(1)),
        ours: None,
    }
}

fn judged(rule: &str, compared: usize, wanted: &[&str], open: &[&str]) -> Judged {
    let findings = |paths: &[&str]| paths.iter().map(|path| finding(path)).collect::<Vec<_>>();
    let step = JudgedStep {
        name: "01-x".to_owned(),
        wanted: findings(wanted),
        open: findings(open),
        compared: Compared([("Subscription".to_owned(), compared)].into()),
        ..JudgedStep::default()
    };
    let (id, rule) = ("c001".to_owned(), rule.to_owned());
    Judged { id, rule, steps: vec![step], ..Judged::default() }
}

fn open(list: &str, step: &str, path: &str) -> usize {
    let lists = Lists::parse(list, "").unwrap();
    lists.divide("a", "c001", step, vec![finding(path)]).open.len()
}

#[test]
fn a_difference_is_explained_by_case_step_object_and_field() {
    let list = "why [x]\n  a 01,03-04 Subscription {case}/{name}-{case}: status/state status/conditions/*\n";
    assert_eq!(open(list, "01", "status/state"), 0);
    assert_eq!(open(list, "04", "status/conditions/type=A"), 0);
    assert_eq!(open(list, "02", "status/state"), 1, "another step");
    assert_eq!(open(list, "01", "status/currentCSV"), 1, "another field");
    assert_eq!(open(list, "01", ""), 1, "the object as a whole");
    let gone = "why [x]\n  a 01 -Subscription {case}/anvil-{case}\n";
    assert_eq!(open(gone, "01", ""), 0);
    assert_eq!(open(gone, "01", "status/state"), 1, "a field of an object that both have");
    assert_eq!(open(&gone.replace('-', "+"), "01", ""), 1, "the other side has it");
    assert_eq!(open("why\n  b 01 -Subscription {case}/anvil-{case}\n", "01", ""), 1);
}

#[test]
fn lines_that_excuse_too_much_are_refused() {
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
        assert!(Lists::parse(&format!("why\n  {line}\n"), "").is_err(), "{line}");
    }
    assert!(Lists::parse("  a 01 Role x: rules\n", "").is_err(), "no reason");
}

#[test]
fn what_nothing_needs_is_a_fault() {
    let list = "why [x]\n  a,b 01 Subscription {case}/{name}-{case} other: status/state rules\n";
    let lists = Lists::parse(list, "Subscription *\n").unwrap();
    lists.divide("a", "c001", "01", vec![finding("status/state")]);
    let faults = lists.faults(&[], true);
    assert_eq!(faults, ["olm/differences.txt:2: nothing needs rule b, object other, path rules"]);
}

#[test]
fn citations_are_looked_up() {
    let notes = "# x\n\n| Rule | Fact |\n|---|---|\n| `a-*`, `b` | this |\n\n| Rule | no |\n|--|--|\n| `c` | - |\n";
    let differences =
        "| Area | Upstream | Mainstay | Why |\n|---|---|---|---|\n| Retries | x | y | z |\n";
    let mut lists =
        Lists::parse("w [a-*]\nw [b]\nw [c]\nw [differences: Retries]\nw [differences: x]\n", "")
            .unwrap();
    lists.sources = Sources::of(Some(notes), differences);
    assert_eq!(
        lists.faults(&[], true),
        [
            "olm/differences.txt:3: the notes on the recordings state nothing about `c`",
            "olm/differences.txt:5: docs/differences.md has no row \"x\"",
        ]
    );
}

#[test]
fn a_case_may_be_excused_a_fifth_of_what_it_is_about() {
    let lists = Lists::parse("", "Subscription a\nRole b\n").unwrap();
    assert_eq!(lists.fault(&judged("a", 10, &["x", "y"], &[])), None);
    let fault = |case: Judged| lists.fault(&case).unwrap();
    assert!(fault(judged("a", 9, &["x", "y"], &[])).contains("2 are excused"));
    assert!(fault(judged("a", 10, &[], &["x"])).contains("1 differences are not wanted"));
    assert!(fault(judged("b", 10, &[], &[])).contains("there is no Role in it"));
    assert!(fault(judged("c", 10, &[], &[])).contains("what is the rule c about?"));
}

#[test]
fn an_exception_is_one_and_there_are_few() {
    let mut lists = Lists::parse("", "Subscription *\nexcept a: all of it [x]\n").unwrap();
    let much = judged("a", 9, &["x", "y"], &[]);
    assert_eq!(lists.fault(&much), None);
    assert!(lists.fault(&judged("a", 10, &["x"], &[])).unwrap().contains("no exception"));
    lists.sources.facts = Some(["x".to_owned()].into());
    let few = lists.faults(std::slice::from_ref(&much), true);
    assert_eq!(few, ["olm/subjects.txt: 1 exceptions among 1 cases"]);
    assert!(Lists::parse("", "except a: no citation\n").is_err());
}

#[test]
fn a_proposal_explains_what_is_open() {
    let case = judged("a", 10, &[], &["status/state", "spec"]);
    let text = proposal(std::slice::from_ref(&case));
    assert_eq!(text, "  a 01 Subscription {case}/anvil-{case}: spec status/state\n");
    let lists = Lists::parse(&format!("why\n{text}"), "").unwrap();
    let divided = lists.divide("a", "c001", "01", case.steps[0].open.clone());
    assert_eq!((divided.open.len(), divided.uncited), (0, 2));
}

#[test]
fn what_comes_in_some_runs_only_need_not_be_used() {
    let list = "Sometimes it is late.\n  a 01 Subscription {case}/{name}-{case}: status/state\n";
    let lists = Lists::parse(list, "Subscription *\n").unwrap();
    assert_eq!(lists.faults(&[], true), Vec::<String>::new());
    assert_eq!(lists.divide("a", "c001", "01", vec![finding("status/state")]).open, []);
    let always = Lists::parse(&list.replace("Sometimes", "Always"), "Subscription *\n").unwrap();
    assert_eq!(always.faults(&[], true).len(), 1);
}
