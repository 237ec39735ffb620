//! The preview as text.

use super::crds;
use super::remedies::Remedies;
use mainstay_cause::Cause;
use mainstay_command::text::{count, escape_controls};
use mainstay_resolver::{CatalogKey, ResolutionFailure};
use mainstay_whatif::{CutShort, NamespaceWalk, OperatorPath, WalkComparison, WalkEnd, blocks};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The width at which lines of names wrap.
const WIDTH: usize = 100;

/// Formats text for terminals.
#[derive(Clone, Copy)]
pub(super) struct Text<'a> {
    pub(super) colour: bool,
    /// The Subscriptions with manual approval.
    pub(super) manual: &'a BTreeSet<String>,
    /// The remedies in place of the resolver's.
    pub(super) remedies: &'a Remedies,
}

impl Text<'_> {
    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// The text of a namespace: each upgrade, what stays, and what fails.
    pub(super) fn walk(self, walk: &NamespaceWalk) -> String {
        let title = format!("namespace {}", escape_controls(&walk.namespace));
        let mut out = format!("{}: {}\n", self.paint("1", &title), summary(walk));
        let (upgraded, unchanged): (Vec<&OperatorPath>, Vec<&OperatorPath>) =
            walk.operators.iter().partition(|path| !path.hops.is_empty());
        for operator in upgraded {
            self.upgraded_operator(&mut out, operator);
        }
        for operator in unchanged {
            self.unchanged_operator(&mut out, walk, operator);
        }
        for failure in &walk.outcome.failures {
            self.failure(&mut out, walk, failure, None);
        }
        for (step, failure) in &walk.later {
            self.failure(&mut out, walk, failure, Some(*step));
        }
        if walk.unexplained > 0 {
            let number = walk.unexplained;
            let _ =
                writeln!(out, "  the reasons of {number} more held operators were not searched");
        }
        match walk.cut {
            None => {}
            Some(CutShort::Cycle { after, back_to }) => {
                let _ = writeln!(
                    out,
                    "  the upgrades form a cycle: the state after step {after} equals the state after step {back_to}"
                );
            }
            Some(CutShort::Budget { after }) => {
                let _ = writeln!(
                    out,
                    "  not followed beyond step {after}: its effort limit is reached"
                );
            }
        }
        out
    }

    fn upgraded_operator(self, out: &mut String, operator: &OperatorPath) {
        let first = operator.hops.first().map_or(1, |hop| hop.step);
        let word = match (&operator.installed, first) {
            (None, 1) => "install",
            (Some(_), 1) => "upgrade",
            (None, _) => "install later",
            (Some(_), _) => "upgrade later",
        };
        let _ = write!(out, "  {} {}", self.paint("32", word), escape_controls(&operator.package));
        let channel = operator.hops.first().map_or(&operator.channel, |hop| &hop.channel);
        let _ = write!(
            out,
            " from {}, channel {}",
            catalog(&operator.catalog),
            escape_controls(channel)
        );
        self.write_subscriptions(out, operator);
        if let Some(installed) = &operator.installed {
            line(out, "installed", &escape_controls(installed));
        }
        let before = std::iter::once(channel).chain(operator.hops.iter().map(|hop| &hop.channel));
        let hops: Vec<(bool, String)> = before
            .zip(&operator.hops)
            .map(|(before, hop)| {
                let other = *before != hop.channel;
                let channel =
                    if other { format!(" (channel {})", hop.channel) } else { String::new() };
                (hop.step == 1, escape_controls(&format!("{}{channel}", hop.bundle)))
            })
            .collect();
        let names = |now: bool| -> Vec<String> {
            hops.iter().filter(|(first, _)| *first == now).map(|(_, name)| name.clone()).collect()
        };
        let (now, then) = (names(true), names(false));
        line(out, "now", &now.join(" → "));
        chain(out, "then", &then);
        for (who, what) in &operator.needed_by {
            line(out, "needed by", &escape_controls(&format!("{who}, which requires {what}")));
        }
        if operator.needed_by.is_empty()
            && operator.subscriptions.is_empty()
            && operator.installed.is_none()
        {
            line(out, "needed by", "a requirement of another operator");
        }
        for hop in &operator.hops {
            crds::write_text(out, hop, |text| self.paint("33", text));
        }
        self.end(out, operator);
    }

    fn unchanged_operator(self, out: &mut String, walk: &NamespaceWalk, operator: &OperatorPath) {
        let name = operator.installed.as_deref().unwrap_or_default();
        let _ = write!(out, "  {} {}", self.paint("2", "keep"), escape_controls(name));
        self.write_subscriptions(out, operator);
        if walk.is_unknown(operator) {
            return line(out, "end", "not known, see below");
        }
        self.end(out, operator);
    }

    fn write_subscriptions(self, out: &mut String, operator: &OperatorPath) {
        let names: Vec<String> =
            operator.subscriptions.iter().map(|name| escape_controls(name)).collect();
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
            && operator.subscriptions.iter().any(|name| self.manual.contains(name))
        {
            let _ = write!(out, ", {}", self.paint("33", "each step waits for approval"));
        }
        out.push('\n');
    }

    fn end(self, out: &mut String, operator: &OperatorPath) {
        let last = escape_controls(operator.last().unwrap_or_default());
        let channel = escape_controls(&operator.channel);
        let channel = if channel.is_empty() {
            "the channel".to_owned()
        } else {
            format!("channel {channel}")
        };
        match &operator.end {
            WalkEnd::Head => line(out, "end", &format!("head of {channel}")),
            WalkEnd::Stranded { head, why } => {
                let head = if head.is_empty() {
                    String::new()
                } else {
                    format!(" {}", escape_controls(head))
                };
                let why = if why.is_empty() {
                    String::new()
                } else {
                    format!("; {}", escape_controls(why))
                };
                let words = format!(
                    "stranded: {channel} has no update from {last}, so the head{head} is not reached{why}"
                );
                line(out, "end", &self.paint("33", &words));
            }
            WalkEnd::Outside => {
                let words = format!("stranded: {channel} has neither {last} nor an update from it");
                line(out, "end", &self.paint("33", &words));
            }
            WalkEnd::Held { next, why } => {
                let words =
                    format!("held at {last}: {} cannot be installed", escape_controls(next));
                line(out, "end", &self.paint("33", &words));
                if let Some(cause) = why {
                    tree(out, &self.remedies.cause(cause), "               ");
                }
            }
            WalkEnd::Cut { next } => {
                let words =
                    format!("not followed beyond {last}: next is {}", escape_controls(next));
                line(out, "end", &self.paint("33", &words));
            }
            WalkEnd::Failed => {
                line(out, "end", &self.paint("31", "part of the failure, see below"));
            }
            WalkEnd::Unsubscribed => line(out, "end", "no Subscription upgrades it"),
            WalkEnd::Unknown => {}
        }
    }

    fn failure(
        self,
        out: &mut String,
        walk: &NamespaceWalk,
        failure: &ResolutionFailure,
        step: Option<usize>,
    ) {
        let after = step.map(|step| format!(" after step {step}")).unwrap_or_default();
        let names: Vec<String> =
            failure.subscriptions.iter().map(|name| escape_controls(name)).collect();
        let hidden = walk.hidden_behind(failure);
        let word = if blocks(failure) && !hidden.is_empty() {
            self.paint("33", &format!("not known{after}"))
        } else if blocks(failure) {
            self.paint("31", &format!("fails{after}"))
        } else {
            self.paint("33", &format!("note{after}"))
        };
        let whom = match names.as_slice() {
            [] if blocks(failure) => " for the installed operators",
            [] => ": no Subscription depends on it",
            [_] => " Subscription ",
            _ => " Subscriptions ",
        };
        let _ = writeln!(out, "  {word}{whom}{}", names.join(", "));
        if !hidden.is_empty() {
            let names: Vec<String> = hidden.into_iter().map(catalog).collect();
            let what = if names.len() == 1 {
                "the content of catalog"
            } else {
                "the contents of catalogs"
            };
            let _ = writeln!(
                out,
                "    {what} {} could not be read, see the note above",
                names.join(", ")
            );
            return;
        }
        tree(out, &self.remedies.cause(&failure.cause), "    ");
    }
}

/// Writes a tree of causes below a line.
pub(super) fn tree(out: &mut String, cause: &Cause, indent: &str) {
    for words in cause.render().lines() {
        let _ = writeln!(out, "{indent}{}", escape_controls(words));
    }
}

pub(super) fn line(out: &mut String, title: &str, words: &str) {
    if !words.is_empty() {
        let _ = writeln!(out, "    {title:<10} {words}");
    }
}

/// Writes names in a row, wrapped.
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
    escape_controls(&format!("{}/{}", key.namespace, key.name))
}

/// The counts of a namespace, in a line.
fn summary(walk: &NamespaceWalk) -> String {
    let number =
        |is: &dyn Fn(&OperatorPath) -> bool| walk.operators.iter().filter(|path| is(path)).count();
    let starts = |path: &OperatorPath| path.now().is_some();
    let mut parts = Vec::new();
    for (number, words) in [
        (number(&|path| starts(path) && path.installed.is_none()), "to install"),
        (number(&|path| starts(path) && path.installed.is_some()), "to upgrade"),
        (number(&|path| path.hops.is_empty() && !walk.is_unknown(path)), "to keep"),
    ] {
        if number > 0 {
            parts.push(format!("{number} {words}"));
        }
    }
    let blocking = walk.outcome.failures.iter().filter(|failure| blocks(failure));
    let (failures, unknown): (Vec<&ResolutionFailure>, Vec<&ResolutionFailure>) =
        blocking.partition(|failure| walk.blocks(failure));
    if !failures.is_empty() {
        parts.push(count(failures.len(), "failure"));
    }
    let unknown: usize = unknown.iter().map(|failure| failure.subscriptions.len().max(1)).sum();
    if unknown > 0 {
        parts.push(format!("{unknown} not known"));
    }
    if parts.is_empty() { "nothing to do".to_owned() } else { parts.join(", ") }
}

/// The rows of a comparison (subject, before, after), and the number of subjects that are the same.
pub(super) fn differences(comparison: &WalkComparison) -> (Vec<[String; 3]>, usize) {
    let path =
        |text: &Option<String>| text.as_deref().map_or_else(|| "–".to_owned(), escape_controls);
    let rows = comparison.differences.iter();
    let mut rows: Vec<[String; 3]> = rows
        .map(|row| [escape_controls(&row.subject), path(&row.before), path(&row.after)])
        .collect();
    rows.sort();
    (rows, comparison.same)
}
