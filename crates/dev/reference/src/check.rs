//! Whether an outcome is right, without looking how it was found.

use crate::answer;
use crate::rules::{Broken, Constraint, Rule, Rules, Thing, rules};
use crate::search::{TooLong, components, possible};
use mainstay_resolver::{Chosen, Failure, FailureKind, Outcome, World};

/// How many things one question about possibility may try.
const LIMIT: u64 = 200_000;

/// Everything that is wrong with an outcome; empty if it is right.
///
/// Right means:
///
/// * What was chosen, together with some of what exists, meets every constraint of every part of
///   the world that does not fail; Subscriptions of these parts are all met.
/// * Everything chosen is asked for, directly or through what was chosen.
/// * In a part that fails nothing is chosen, its Subscriptions are the ones that the failure names,
///   and the reasons that it gives contradict each other, none of them in vain.
/// * Installations, new and updated Subscriptions are those that follow.
pub fn check(world: &World<'_>, outcome: &Outcome) -> Vec<String> {
    match rules(world) {
        Ok(rules) => {
            let mut checker = Checker { rules: &rules, wrong: Vec::new() };
            checker.check(world, outcome);
            checker.wrong
        }
        Err(Broken(what)) => {
            let said = outcome.failures.iter().any(|it| it.kind == FailureKind::Error);
            if said && outcome.resolved.is_empty() {
                Vec::new()
            } else {
                vec![format!("the namespace has an error ({what}), which the outcome ignores")]
            }
        }
    }
}

struct Checker<'r, 'a> {
    rules: &'r Rules<'a>,
    wrong: Vec<String>,
}

impl Checker<'_, '_> {
    fn wrong(&mut self, what: String) {
        self.wrong.push(what);
    }

    fn check(&mut self, world: &World<'_>, outcome: &Outcome) {
        let rules = self.rules;
        let mut chosen = vec![false; rules.things.len()];
        for it in &outcome.resolved {
            match self.find(it) {
                Some(thing) if chosen[thing] => self.wrong(format!("{} comes twice", it.name)),
                Some(thing) => chosen[thing] = true,
                None => self.wrong(format!("{} from {} is no candidate", it.name, it.catalog)),
            }
        }
        let parts = components(rules);
        let part_of = |thing: usize| parts.iter().position(|part| part.contains(&thing));
        let mut fails = vec![false; parts.len()];
        for failure in &outcome.failures {
            if failure.kind == FailureKind::Error {
                // What is wrong with the world in another way than by a contradiction.
                continue;
            }
            if let Some(part) = self.contradiction(failure).and_then(part_of) {
                if fails[part] {
                    self.wrong(format!("two failures in one part: {}", failure.message));
                }
                fails[part] = true;
                let expected = rules.subscriptions_of(&parts[part]);
                if failure.subscriptions != expected {
                    self.wrong(format!(
                        "{:?} are blocked, not {:?}: {}",
                        expected, failure.subscriptions, failure.message
                    ));
                }
            }
        }
        for (part, fails) in parts.iter().zip(&fails) {
            if *fails {
                for thing in part.iter().filter(|thing| chosen[**thing]) {
                    self.wrong(format!("{} is in a part that fails", rules.identifier(*thing)));
                }
            } else {
                self.part(part, &chosen);
            }
        }
        let told = answer::outcome(world, rules, &chosen);
        for (what, fine) in [
            ("what is resolved", told.resolved == outcome.resolved),
            ("installations", told.installs == outcome.installs),
            ("new Subscriptions", told.new_subscriptions == outcome.new_subscriptions),
            ("updated Subscriptions", told.updated_subscriptions == outcome.updated_subscriptions),
        ] {
            if !fine {
                self.wrong(format!("{what}: expected {told:?}"));
            }
        }
    }

    /// The thing that was chosen.
    fn find(&self, chosen: &Chosen) -> Option<usize> {
        let rules = self.rules;
        rules.things.iter().position(|thing| {
            let Thing::Entry(entry) = *thing else { return false };
            let entry = &rules.entries[entry];
            entry.source != 0
                && rules.sources[entry.source].key == chosen.catalog
                && (&entry.package, &entry.channel, &entry.name)
                    == (&chosen.package, &chosen.channel, &chosen.name)
        })
    }

    fn constraints_of(&self, part: &[usize]) -> Vec<&Constraint> {
        let of_part = |it: &&Constraint| it.things().iter().any(|thing| part.contains(thing));
        self.rules.constraints.iter().filter(of_part).collect()
    }

    /// A part that does not fail: every constraint can hold with exactly these catalog entries.
    fn part(&mut self, part: &[usize], chosen: &[bool]) {
        let rules = self.rules;
        let constraints = self.constraints_of(part);
        let known: Vec<Option<bool>> = rules
            .things
            .iter()
            .enumerate()
            .map(|(at, thing)| match thing {
                Thing::Subscription(_) => Some(true),
                Thing::Entry(entry) if rules.entries[*entry].source == 0 => None,
                Thing::Entry(_) => Some(chosen[at]),
            })
            .collect();
        let set = match possible(&known, &constraints, &mut LIMIT.clone()) {
            Ok(Some(set)) => set,
            Ok(None) => {
                let chosen: Vec<String> = part
                    .iter()
                    .filter(|thing| chosen[**thing])
                    .map(|thing| rules.identifier(*thing))
                    .collect();
                // Whether anything at all would do says which fault it is.
                let open = vec![None; rules.things.len()];
                let what = match possible(&open, &constraints, &mut LIMIT.clone()) {
                    Ok(Some(_)) => "is no answer",
                    Ok(None) => "is no answer, there is none",
                    Err(TooLong) => "is no answer, perhaps there is none",
                };
                self.wrong(format!("{chosen:?} {what}"));
                return;
            }
            Err(TooLong) => {
                self.wrong("it takes too long to tell what of the existing stays".to_owned());
                return;
            }
        };
        // From what must be there along requirements to what is there.
        let mut asked: Vec<usize> = constraints
            .iter()
            .filter(|it| it.rule == Rule::Must)
            .filter_map(|it| it.about)
            .collect();
        let mut at = 0;
        while at < asked.len() {
            let thing = asked[at];
            for constraint in constraints.iter().filter(|it| it.about == Some(thing)) {
                let Rule::OneOf(list) = &constraint.rule else { continue };
                for thing in list.iter().filter(|thing| set[**thing]) {
                    if !asked.contains(thing) {
                        asked.push(*thing);
                    }
                }
            }
            at += 1;
        }
        for &thing in part.iter().filter(|thing| chosen[**thing] && !asked.contains(thing)) {
            self.wrong(format!("nobody asks for {}", rules.identifier(thing)));
        }
    }

    /// Checks the reasons of a contradiction and gives one of the things that they are about.
    fn contradiction(&mut self, failure: &Failure) -> Option<usize> {
        let message = &failure.message;
        let Some(list) = message.strip_prefix("constraints not satisfiable: ") else {
            self.wrong(format!("no list of reasons: {message}"));
            return None;
        };
        let Some(texts) = self.split(list) else {
            self.wrong(format!("something is no reason: {message}"));
            return None;
        };
        if !texts.is_sorted() {
            self.wrong(format!("reasons are not sorted: {message}"));
        }
        // Several constraints can share a text: any choice among them will do.
        let mut choices: Vec<Vec<&Constraint>> = vec![Vec::new()];
        for text in &texts {
            let same = self.rules.constraints.iter().filter(|it| it.text == *text);
            let same: Vec<&Constraint> = same.collect();
            choices = choices
                .iter()
                .flat_map(|before| {
                    let new = same
                        .iter()
                        .filter(|it| !before.iter().any(|other| std::ptr::eq(*other, **it)));
                    new.map(|it| [before.as_slice(), &[*it]].concat())
                })
                .take(1_000)
                .collect();
        }
        let open = vec![None; self.rules.things.len()];
        let contradicts =
            |list: &[&Constraint]| matches!(possible(&open, list, &mut LIMIT.clone()), Ok(None));
        let Some(core) = choices.iter().find(|list| contradicts(list)) else {
            self.wrong(format!("the reasons do not contradict each other: {message}"));
            return None;
        };
        let in_vain = |list: &Vec<&Constraint>| {
            (0..list.len()).find(|at| {
                let mut fewer = list.clone();
                fewer.remove(*at);
                contradicts(&fewer)
            })
        };
        if !choices.iter().any(|list| contradicts(list) && in_vain(list).is_none()) {
            let text = in_vain(core).map(|at| core[at].text.as_str()).unwrap_or_default();
            self.wrong(format!("the reason {text:?} is not needed: {message}"));
        }
        core.iter().flat_map(|it| it.things()).next()
    }

    /// Takes a list of reasons apart; reasons have commas of their own.
    fn split<'t>(&self, list: &'t str) -> Option<Vec<&'t str>> {
        let texts = self.rules.constraints.iter().map(|it| it.text.as_str());
        let mut starts: Vec<&str> = texts.filter(|text| list.contains(text)).collect();
        starts.sort_unstable();
        starts.dedup();
        parse(list, &starts)
    }
}

/// A list as a sequence of known texts, if it is one.
fn parse<'t>(list: &'t str, known: &[&str]) -> Option<Vec<&'t str>> {
    for text in known.iter().rev().filter(|text| list.starts_with(**text)) {
        let (this, rest) = list.split_at(text.len());
        if rest.is_empty() {
            return Some(vec![this]);
        }
        if let Some(mut others) = rest.strip_prefix(", ").and_then(|rest| parse(rest, known)) {
            others.insert(0, this);
            return Some(others);
        }
    }
    None
}
