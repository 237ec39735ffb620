//! Names of variables in explanations, alone and in groups.

use super::conflict::Conflict;
use super::names::{self, NounPhrase};
use crate::problem::{Subject, Var};
use std::collections::{BTreeSet, HashSet};

impl Conflict<'_> {
    /// Whether a variable is an existing operator.
    pub(super) fn exists(&self, var: Var) -> bool {
        matches!(self.subject(var), Subject::Bundle(at) if at.source == 0)
    }

    /// The name of a variable.
    pub(super) fn label(&self, var: Var) -> String {
        match self.subject(var) {
            Subject::Subscription(at) => {
                format!("Subscription `{}`", self.candidates.subscriptions[at].name)
            }
            Subject::Demand(at) => {
                format!("the demand for {}", names::demand(self.candidates.demands[at]))
            }
            Subject::Bundle(at) => {
                let name = &self.candidates.entry(at).0.name;
                match (at.source, self.is_root(var)) {
                    (0, true) => format!("ClusterServiceVersion `{name}`"),
                    (0, false) => format!("the installed `{name}`"),
                    _ => format!("`{name}`"),
                }
            }
        }
    }

    /// The name of a variable with channel and catalog, for variables that share a name.
    pub(super) fn full_label(&self, var: Var) -> String {
        let label = self.label(var);
        let Subject::Bundle(at) = self.subject(var) else { return label };
        let channel = &self.candidates.entry(at).0.channel;
        let catalog = names::catalog(self.input, self.candidates.catalog(at));
        format!("{label} (channel `{channel}`, catalog {catalog})")
    }

    /// Several variables as the subject of a sentence.
    pub(super) fn phrase(
        &self,
        vars: &[Var],
        requirements: &[usize],
        all: bool,
        last: &str,
    ) -> NounPhrase {
        let mut labels: Vec<String> = Vec::new();
        let mut seen = HashSet::new();
        let mut versions = BTreeSet::new();
        for &var in vars {
            let label = self.label(var);
            if !seen.insert(label.clone()) {
                continue;
            }
            labels.push(label);
            if let Subject::Bundle(at) = self.subject(var) {
                versions.extend(self.candidates.entry(at).0.version.clone());
            }
        }
        let from = self.catalog_if_needed(vars, requirements);
        let plural = labels.len() > 1;
        if labels.len() <= 3 {
            return NounPhrase { text: format!("{}{from}", names::list(&labels, last)), plural };
        }
        let count = labels.len();
        let visible: Vec<String> = versions.iter().map(ToString::to_string).collect();
        let range = match visible.as_slice() {
            [first, .., end] if visible.len() == count && (all || count > 6) => {
                format!(" ({first} to {end})")
            }
            some if some.len() == count => format!(" ({})", names::list(some, "and")),
            _ => String::new(),
        };
        let packages = names::quoted(self.packages(vars));
        let siblings: Vec<Var> =
            requirements.iter().flat_map(|at| self.members(*at)).copied().collect();
        let alone = vars.iter().all(|var| siblings.contains(var));
        let text = match packages.as_slice() {
            [_] if all => format!("all {count} versions{range}"),
            [_] if alone && self.packages(&siblings).len() == 1 => {
                format!("{count} versions{range}")
            }
            [one] => format!("{count} versions of package {one}{range}"),
            some => format!("{count} bundles of packages {}", names::some(some, "and")),
        };
        let one_of = if last == "or" { "one of " } else { "" };
        NounPhrase { text: format!("{one_of}{text}{from}"), plural }
    }

    fn packages(&self, vars: &[Var]) -> BTreeSet<&str> {
        vars.iter()
            .filter_map(|var| match self.subject(*var) {
                Subject::Bundle(at) => Some(&*self.candidates.entry(at).0.package),
                Subject::Subscription(_) | Subject::Demand(_) => None,
            })
            .collect()
    }

    /// The common catalog of some candidates, if the requirements `of` have candidates of several
    /// catalogs.
    fn catalog_if_needed(&self, vars: &[Var], requirements: &[usize]) -> String {
        let catalog = |var: &Var| match self.subject(*var) {
            Subject::Bundle(at) if at.source != 0 => Some(self.candidates.catalog(at)),
            _ => None,
        };
        let mut all = requirements.iter().flat_map(|at| self.members(*at)).filter_map(catalog);
        let mut these = vars.iter().filter_map(catalog);
        let (Some(any), Some(one)) = (all.next(), these.next()) else { return String::new() };
        if all.any(|other| other != any) && these.all(|other| other == one) {
            return format!(" in catalog {}", names::catalog(self.input, one));
        }
        String::new()
    }
}
