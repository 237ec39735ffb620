//! Answers as people read them.

use super::shelf::Remedies;
use super::walk::{Cut, End, Journey, Operator, blocks};
use crate::catalog::{count, plain};
use mainstay_cause::Cause;
use mainstay_resolver::{CatalogKey, Failure};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Where lines of names are broken.
const WIDTH: usize = 100;

/// Writes for terminals.
#[derive(Clone, Copy)]
pub(super) struct Text<'a> {
    pub(super) colour: bool,
    /// Subscriptions whose install plans wait for somebody's approval.
    pub(super) manual: &'a BTreeSet<String>,
    /// What to say instead of what the resolver says.
    pub(super) remedies: &'a Remedies,
}

impl Text<'_> {
    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// A namespace: what is installed and upgraded, hop by hop, what stays, and what fails.
    pub(super) fn journey(self, journey: &Journey) -> String {
        let title = format!("namespace {}", plain(&journey.namespace));
        let mut out = format!("{}: {}\n", self.paint("1", &title), summary(journey));
        let (moving, staying): (Vec<&Operator>, Vec<&Operator>) =
            journey.operators.iter().partition(|it| !it.hops.is_empty());
        for operator in moving {
            self.moving(&mut out, operator);
        }
        for operator in staying {
            self.staying(&mut out, operator);
        }
        for failure in &journey.outcome.failures {
            self.failure(&mut out, failure, None);
        }
        for (step, failure) in &journey.later {
            self.failure(&mut out, failure, Some(*step));
        }
        if journey.unexplained > 0 {
            let number = journey.unexplained;
            let _ = writeln!(out, "  what holds {number} more of them was not looked into");
        }
        match journey.cut {
            None => {}
            Some(Cut::Circle { after, back_to }) => {
                let _ = writeln!(
                    out,
                    "  from here it goes round and round: after step {after} everything is as after step {back_to}"
                );
            }
            Some(Cut::Effort { after }) => {
                let _ = writeln!(
                    out,
                    "  not followed any further than step {after}, which took long enough"
                );
            }
        }
        out
    }

    fn moving(self, out: &mut String, operator: &Operator) {
        let first = operator.hops.first().map_or(1, |hop| hop.step);
        let word = match (&operator.installed, first) {
            (None, 1) => "install",
            (Some(_), 1) => "upgrade",
            (None, _) => "install later",
            (Some(_), _) => "upgrade later",
        };
        let _ = write!(out, "  {} {}", self.paint("32", word), plain(&operator.package));
        let channel = operator.hops.first().map_or(&operator.channel, |hop| &hop.channel);
        let _ = write!(out, " from {}, channel {}", catalog(&operator.catalog), plain(channel));
        self.asked_by(out, operator);
        if let Some(installed) = &operator.installed {
            line(out, "installed", &plain(installed));
        }
        let before = std::iter::once(channel).chain(operator.hops.iter().map(|hop| &hop.channel));
        let hops: Vec<(bool, String)> = before
            .zip(&operator.hops)
            .map(|(before, hop)| {
                let other = *before != hop.channel;
                let channel =
                    if other { format!(" (channel {})", hop.channel) } else { String::new() };
                (hop.step == 1, plain(&format!("{}{channel}", hop.bundle)))
            })
            .collect();
        let names = |now: bool| -> Vec<String> {
            hops.iter().filter(|(first, _)| *first == now).map(|(_, name)| name.clone()).collect()
        };
        let (now, then) = (names(true), names(false));
        line(out, "now", &now.join(" → "));
        chain(out, "then", &then);
        for (who, what) in &operator.needed_by {
            line(out, "needed by", &plain(&format!("{who}, which asks for {what}")));
        }
        if operator.needed_by.is_empty()
            && operator.subscriptions.is_empty()
            && operator.installed.is_none()
        {
            line(out, "needed by", "a requirement of another operator");
        }
        self.end(out, operator);
    }

    fn staying(self, out: &mut String, operator: &Operator) {
        let name = operator.installed.as_deref().unwrap_or_default();
        let _ = write!(out, "  {} {}", self.paint("2", "stays"), plain(name));
        self.asked_by(out, operator);
        self.end(out, operator);
    }

    fn asked_by(self, out: &mut String, operator: &Operator) {
        let names: Vec<String> = operator.subscriptions.iter().map(|name| plain(name)).collect();
        match names.as_slice() {
            [] => {}
            [one] => {
                let _ = write!(out, " (Subscription {one})");
            }
            several => {
                let _ = write!(out, " (Subscriptions {})", several.join(", "));
            }
        }
        if !operator.hops.is_empty()
            && operator.subscriptions.iter().any(|it| self.manual.contains(it))
        {
            let _ = write!(out, ", {}", self.paint("33", "each step waits for approval"));
        }
        out.push('\n');
    }

    fn end(self, out: &mut String, operator: &Operator) {
        let last = plain(operator.last().unwrap_or_default());
        let channel = plain(&operator.channel);
        let channel = if channel.is_empty() {
            "the channel".to_owned()
        } else {
            format!("channel {channel}")
        };
        match &operator.end {
            End::Head => line(out, "end", &format!("head of {channel}")),
            End::Stranded { head, why } => {
                let head =
                    if head.is_empty() { String::new() } else { format!(" {}", plain(head)) };
                let why = if why.is_empty() { String::new() } else { format!("; {}", plain(why)) };
                let words = format!(
                    "stranded: nothing in {channel} updates {last}, the head{head} is not reached{why}"
                );
                line(out, "end", &self.paint("33", &words));
            }
            End::Outside => {
                let words = format!("stranded: {channel} neither has {last} nor an update for it");
                line(out, "end", &self.paint("33", &words));
            }
            End::Held { next, why } => {
                let words = format!("held at {last}: {} cannot be taken", plain(next));
                line(out, "end", &self.paint("33", &words));
                if let Some(cause) = why {
                    tree(out, &self.remedies.cause(cause), "               ");
                }
            }
            End::Cut { next } => {
                let words = format!("not followed further than {last}: next is {}", plain(next));
                line(out, "end", &self.paint("33", &words));
            }
            End::Failed => line(out, "end", &self.paint("31", "part of what fails, see below")),
            End::Unsubscribed => line(out, "end", "no Subscription asks for upgrades of it"),
            End::Unknown => {}
        }
    }

    fn failure(self, out: &mut String, failure: &Failure, step: Option<usize>) {
        let after = step.map(|step| format!(" after step {step}")).unwrap_or_default();
        let names: Vec<String> = failure.subscriptions.iter().map(|name| plain(name)).collect();
        let word = if blocks(failure) {
            self.paint("31", &format!("fails{after}"))
        } else {
            self.paint("33", &format!("note{after}"))
        };
        let whom = match names.as_slice() {
            [] if blocks(failure) => " what is installed",
            [] => ", nothing that is asked for depends on it",
            [_] => " Subscription ",
            _ => " Subscriptions ",
        };
        let _ = writeln!(out, "  {word}{whom}{}", names.join(", "));
        tree(out, &self.remedies.cause(&failure.cause), "    ");
    }
}

/// A tree of causes below a line.
pub(super) fn tree(out: &mut String, cause: &Cause, indent: &str) {
    for words in cause.render().lines() {
        let _ = writeln!(out, "{indent}{}", plain(words));
    }
}

pub(super) fn line(out: &mut String, title: &str, words: &str) {
    if !words.is_empty() {
        let _ = writeln!(out, "    {title:<10} {words}");
    }
}

/// Names one after the other, broken into lines.
pub(super) fn chain(out: &mut String, title: &str, names: &[String]) {
    let mut lines: Vec<String> = Vec::new();
    for name in names {
        match lines.last_mut() {
            Some(words) if words.chars().count() + name.chars().count() + 3 <= WIDTH - 15 => {
                let _ = write!(words, " → {name}");
            }
            Some(_) => lines.push(format!("→ {name}")),
            None => lines.push(name.clone()),
        }
    }
    for (at, words) in lines.iter().enumerate() {
        line(out, if at == 0 { title } else { "" }, words);
    }
}

fn catalog(key: &CatalogKey) -> String {
    plain(&format!("{}/{}", key.namespace, key.name))
}

/// How much of what, in a line.
fn summary(journey: &Journey) -> String {
    let number =
        |is: &dyn Fn(&Operator) -> bool| journey.operators.iter().filter(|it| is(it)).count();
    let starts = |it: &Operator| it.now().is_some();
    let mut parts = Vec::new();
    for (number, words) in [
        (number(&|it| starts(it) && it.installed.is_none()), "to install"),
        (number(&|it| starts(it) && it.installed.is_some()), "to upgrade"),
        (number(&|it| it.hops.is_empty()), "to stay"),
    ] {
        if number > 0 {
            parts.push(format!("{number} {words}"));
        }
    }
    let failures = journey.outcome.failures.iter().filter(|it| blocks(it)).count();
    if failures > 0 {
        parts.push(count(failures, "failure"));
    }
    if parts.is_empty() { "nothing to do".to_owned() } else { parts.join(", ") }
}

/// What becomes of an operator, in a few words.
fn fate(operator: &Operator) -> String {
    let names: Vec<&str> = operator
        .installed
        .as_deref()
        .into_iter()
        .chain(operator.hops.iter().map(|hop| &*hop.bundle))
        .collect();
    let way = match names.as_slice() {
        [] => "nothing".to_owned(),
        [one] if operator.hops.is_empty() => format!("{one} stays"),
        [one] => (*one).to_owned(),
        [first, second] => format!("{first} → {second}"),
        [first, .., last] => format!("{first} → … → {last} ({} hops)", names.len() - 1),
    };
    let end = match &operator.end {
        End::Failed => ", fails",
        End::Held { .. } => ", held there",
        End::Cut { .. } => ", not followed further",
        End::Stranded { .. } | End::Outside => ", stranded there",
        End::Unsubscribed => ", without a Subscription",
        End::Head | End::Unknown => "",
    };
    plain(&format!("{way}{end}"))
}

/// What differs between two journeys, as rows of package, before, after; and how many operators are
/// the same.
pub(super) fn differences(before: &Journey, after: &Journey) -> (Vec<[String; 3]>, usize) {
    let all = |journey: &Journey| {
        let mut rows: Vec<(String, String)> =
            journey.operators.iter().map(|it| (plain(&it.package), fate(it))).collect();
        for failure in &journey.outcome.failures {
            for name in &failure.subscriptions {
                let shown = |it: &Operator| it.subscriptions.contains(name);
                if !journey.operators.iter().any(shown) {
                    rows.push((format!("Subscription {}", plain(name)), "fails".to_owned()));
                }
            }
        }
        rows
    };
    let (mut old, new) = (all(before), all(after));
    let mut rows = Vec::new();
    let mut same = 0;
    for (package, fate) in new {
        match old.iter().position(|(name, _)| *name == package) {
            Some(at) => {
                let (_, was) = old.remove(at);
                if was == fate {
                    same += 1;
                } else {
                    rows.push([package, was, fate]);
                }
            }
            None => rows.push([package, "–".to_owned(), fate]),
        }
    }
    rows.extend(old.into_iter().map(|(package, was)| [package, was, "–".to_owned()]));
    rows.sort();
    (rows, same)
}
