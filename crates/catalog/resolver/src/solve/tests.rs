use super::*;
use crate::problem::{Problem, Reason, Rule, Subject};
use proptest::prelude::*;

/// A problem in words: `a! b- a>b,c a#b b|c` for mandatory, prohibited, dependency, conflict
/// and at most one.
fn problem(text: &str) -> Problem {
    let mut problem = Problem::default();
    for at in 0..26 {
        problem.variable(Subject::Subscription(at));
    }
    let var = |name: &str| Var(u32::from(name.as_bytes()[0] - b'a'));
    let vars = |names: &str, by| names.split(by).filter(|name| !name.is_empty()).map(var).collect();
    for part in text.split_whitespace() {
        let subject = Some(var(part));
        let (subject, rule) = if part.contains('|') {
            (None, Rule::AtMostOne(vars(part, '|')))
        } else {
            match part.split_at(1).1.split_at(1) {
                ("!", _) => (subject, Rule::Mandatory),
                ("-", _) => (subject, Rule::Prohibited),
                (">", names) => (subject, Rule::Dependency(vars(names, ',').into())),
                ("#", name) => (subject, Rule::Conflict(var(name))),
                other => panic!("{other:?}"),
            }
        };
        problem.constrain(subject, rule, Reason::Exists);
    }
    problem
}

/// The variables of the preferred answer of the whole problem, in order.
fn solve(problem: &Problem, budget: &mut u64) -> Result<Option<Vec<Var>>, Exhausted> {
    let index = Index::new(problem);
    let mut solver = Solver::new(&index);
    let mut all = Vec::new();
    for part in index.parts() {
        let Some(choices) = solver.solve(part, budget)? else { return Ok(None) };
        all.extend(choices.into_iter().map(|choice| choice.chosen));
    }
    all.sort_unstable();
    Ok(Some(all))
}

/// The unsatisfiable core of the first part without answer.
fn core(problem: &Problem, budget: &mut u64) -> Result<Vec<usize>, Exhausted> {
    let index = Index::new(problem);
    for part in index.parts() {
        if Solver::new(&index).solve(part, budget)?.is_none() {
            let (core, coarse) = Solver::new(&index).core(part, budget);
            assert!(!coarse);
            return Ok(core.into_iter().map(|at| at as usize).collect());
        }
    }
    Ok(Vec::new())
}

fn answer(text: &str) -> Option<String> {
    let answer = solve(&problem(text), &mut 1_000_000).unwrap()?;
    Some(answer.iter().map(|var| char::from(b'a' + u8::try_from(var.0).unwrap())).collect())
}

fn reasons(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let core = core(&problem(text), &mut 1_000_000).unwrap();
    core.iter().map(|at| words[*at]).collect::<Vec<_>>().join(" ")
}

#[test]
fn answers_follow_preference() {
    for (question, expected) in [
        ("", ""),
        ("a>b", ""),
        ("a!", "a"),
        ("c! c>b b>a", "abc"),
        ("c! c>a c>b", "abc"),
        ("c! c>a,b b#a", "ac"),
        ("c! c>b,a b#a", "bc"),
        ("a>x,y b! b>y,x", "by"),
        ("a! b! a>x,y b>y x|y", "aby"),
        ("a! b! a>x,y b>y", "abxy"),
        ("a! a>x,y b! b>y,x", "abx"),
        ("a! b! a>x,y,z,w b>x,y", "abx"),
        ("a! b! c! a>p,q b>r,s c>t,u p- r- t-", "abcqsu"),
        ("a! a>b,c b>d d- ", "ac"),
        ("a! a>b,c b>d,e d>f e>f f-", "ac"),
    ] {
        assert_eq!(answer(question).as_deref(), Some(expected), "{question}");
    }
}

#[test]
fn unsat_core_has_no_redundant_constraint() {
    for (question, expected) in [
        ("a! a-", "a! a-"),
        ("a! b! c! a#b", "a! b! a#b"),
        ("a! b! a>x b>y x|y z!", "a! b! a>x b>y x|y"),
        ("a! a>", "a! a>"),
        ("a! a>b b>c,d c- d- e! e>f", "a! a>b b>c,d c- d-"),
        ("a! a>b b|b", "a! a>b b|b"),
    ] {
        assert_eq!(answer(question), None, "{question}");
        assert_eq!(reasons(question), expected);
    }
}

#[test]
fn search_ends_when_the_step_budget_is_exhausted() {
    let hard = problem("a! b! c! a>x,y,z b>x,y,z c>x,y,z x|y|z");
    assert_eq!(solve(&hard, &mut 2), Err(Exhausted::Steps));
}

/// Whether a set of variables, as bits, meets all constraints but `without`.
fn meets(problem: &Problem, set: u32, without: Option<usize>) -> bool {
    let has = |var: Var| set >> var.0 & 1 == 1;
    problem.constraints.iter().enumerate().filter(|(at, _)| Some(*at) != without).all(
        |(_, constraint)| {
            let subject = constraint.subject.is_some_and(has);
            match &constraint.rule {
                Rule::Mandatory => subject,
                Rule::Prohibited => !subject,
                Rule::Dependency(vars) => !subject || vars.iter().any(|var| has(*var)),
                Rule::Conflict(var) => !subject || !has(*var),
                Rule::AtMostOne(vars) => vars.iter().filter(|var| has(**var)).count() <= 1,
            }
        },
    )
}

fn possible(problem: &Problem, without: Option<usize>) -> bool {
    (0..1 << SMALL).any(|set| meets(problem, set, without))
}

const SMALL: u8 = 7;

fn small_problem() -> impl Strategy<Value = String> {
    let var = || (b'a'..b'a' + SMALL).prop_map(char::from);
    let rule = prop_oneof![
        2 => var().prop_map(|a| format!("{a}!")),
        1 => var().prop_map(|a| format!("{a}-")),
        5 => (var(), prop::collection::vec(var(), 0..4)).prop_map(|(a, list)| {
            let list: Vec<String> = list.iter().map(char::to_string).collect();
            format!("{a}>{}", list.join(","))
        }),
        2 => (var(), var()).prop_map(|(a, b)| format!("{a}#{b}")),
        3 => prop::collection::vec(var(), 2..4).prop_map(|mut list| {
            list.sort_unstable();
            let list: Vec<String> = list.iter().map(char::to_string).collect();
            list.join("|")
        }),
    ];
    prop::collection::vec(rule, 1..14).prop_map(|rules| rules.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn solver_finds_an_answer_exactly_if_one_exists(text in small_problem()) {
        let problem = problem(&text);
        match solve(&problem, &mut 1_000_000).unwrap() {
            Some(answer) => {
                let set = answer.iter().fold(0, |set, var| set | 1 << var.0);
                prop_assert!(meets(&problem, set, None), "{}: {:?}", text, answer);
            }
            None => prop_assert!(!possible(&problem, None), "{}", text),
        }
    }

    #[test]
    fn unsat_core_is_contradictory_and_irreducible(text in small_problem()) {
        let mut problem = problem(&text);
        if possible(&problem, None) {
            return Ok(());
        }
        let core = core(&problem, &mut 1_000_000).unwrap();
        let all = std::mem::take(&mut problem.constraints);
        problem.constraints = core.iter().map(|at| all[*at].clone()).collect();
        prop_assert!(!possible(&problem, None), "{}: {:?}", text, core);
        for at in 0..core.len() {
            prop_assert!(possible(&problem, Some(at)), "{}: {:?} without {}", text, core, at);
        }
    }
}

/// One question of `scenarios/solver.yaml`, which says what the keys mean.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    name: String,
    #[serde(rename = "ids")]
    _ids: Vec<String>,
    #[serde(default, rename = "why")]
    _why: String,
    #[serde(default)]
    problem: String,
    chosen: Option<String>,
    reasons: Option<String>,
    texts: Option<Vec<String>>,
    message: Option<String>,
}

#[test]
fn solver_questions_have_the_answers_of_the_specification() {
    let text = include_str!("../../scenarios/solver.yaml");
    let document = mainstay_yaml::one(text.as_bytes(), &mainstay_yaml::Options::default()).unwrap();
    let questions: Vec<Question> = serde_json::from_value(document).unwrap();
    let mut wrong = Vec::new();
    for Question { name, problem, chosen, reasons: contradiction, texts, message, .. } in questions
    {
        let got = match (&chosen, &contradiction, &texts) {
            (Some(_), None, None) => answer(&problem),
            (None, Some(_), None) => answer(&problem).is_none().then(|| reasons(&problem)),
            (None, None, Some(texts)) => Some(crate::texts::unsatisfiable(texts)),
            _ => panic!("{name}: one of chosen, reasons, texts"),
        };
        let expected = chosen.or(contradiction).or(message);
        if got != expected {
            wrong.push(format!("{name}: expected {expected:?}, got {got:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
