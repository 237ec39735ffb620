//! Rules of an input: its variables and constraints.

use crate::candidates::is_about;
use crate::entries::{self, Entry, Source};
use crate::requirement::Requirement;
use mainstay_resolver::{
    CatalogKey, Demand, OperatorApi, Prohibited, ResolutionInput, Subscription,
};
use mainstay_version::Range;
use std::collections::{BTreeSet, HashMap};

/// A variable: an entry, demand or Subscription that is in the answer or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variable {
    /// An entry, by its number.
    Entry(usize),
    /// A demand, by its number in order of packages.
    Demand(usize),
    /// A Subscription, by its number in order of names.
    Subscription(usize),
}

/// What a constraint demands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConstraintRule {
    /// The variable is in the answer.
    Must,
    /// The variable is not in the answer.
    MustNot,
    /// With the variable, one of these is in the answer; in order of preference.
    OneOf(Vec<usize>),
    /// The variable and this one are not both in the answer.
    NotWith(usize),
    /// At most one of these is in the answer; a variable that is listed twice excludes itself.
    AtMostOne(Vec<usize>),
}

/// One constraint.
#[derive(Clone, Debug)]
pub struct ReferenceConstraint {
    /// The variable that it is about; none for [`ConstraintRule::AtMostOne`].
    pub about: Option<usize>,
    /// What it demands.
    pub rule: ConstraintRule,
    /// Its text in messages.
    pub text: String,
}

/// The rules of an input.
pub struct InputRules<'a> {
    pub(crate) variables: Vec<Variable>,
    /// All constraints; the mandatory ones and dependencies are in the order in which they are met.
    pub constraints: Vec<ReferenceConstraint>,
    pub(crate) input: &'a ResolutionInput<'a>,
    pub(crate) demands: Vec<&'a Demand>,
    pub(crate) subscriptions: Vec<&'a Subscription>,
    /// The Subscriptions whose catalog or channel is broken; they have no variables.
    pub(crate) blocked: Vec<usize>,
    /// The variables whose requirements cannot be read.
    pub(crate) unreadable: Vec<usize>,
    /// The constraints for which a channel without order might have candidates.
    pub(crate) gaps: Vec<usize>,
    pub(crate) sources: Vec<Source>,
    pub(crate) entries: Vec<Entry<'a>>,
    /// For variables that are upgrades, the name of the installed operator.
    pub(crate) replaces: HashMap<usize, String>,
    places: Vec<Place>,
    /// The variable of each entry.
    variable_of: Vec<usize>,
}

/// The entries with the same catalog, channel and name.
struct Place {
    /// The first of them.
    first: usize,
    /// How many they are.
    count: usize,
}

/// The entry has no variable yet.
const NO_VARIABLE: usize = usize::MAX;

/// The namespace as a whole cannot be resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnresolvableNamespace(pub &'static str);

/// The rules of an input.
///
/// # Errors
///
/// When the whole namespace cannot be resolved: not exactly one OperatorGroup, duplicate names,
/// existing operators that cannot be read.
pub fn rules<'a>(input: &'a ResolutionInput<'a>) -> Result<InputRules<'a>, UnresolvableNamespace> {
    let [group] = input.operator_groups.as_slice() else {
        return Err(UnresolvableNamespace("OperatorGroup"));
    };
    let distinct = |names: BTreeSet<String>, count: usize| names.len() == count;
    if !distinct(input.csvs.iter().map(|csv| csv.name.clone()).collect(), input.csvs.len())
        || !distinct(
            input.subscriptions.iter().map(|subscription| subscription.name.clone()).collect(),
            input.subscriptions.len(),
        )
        || !distinct(
            input.catalogs.iter().map(|catalog| catalog.key.to_string()).collect(),
            input.catalogs.len(),
        )
    {
        return Err(UnresolvableNamespace("a name comes twice"));
    }
    let sources = entries::sources(input, group.exclude_global);
    let entries = entries::entries(input, &sources, group.fail_forward)
        .map_err(|_| UnresolvableNamespace("existing operators"))?;
    let mut subscriptions: Vec<&Subscription> = input.subscriptions.iter().collect();
    subscriptions.sort_by_key(|subscription| &subscription.name);
    let mut demands: Vec<&Demand> = input.demands.iter().collect();
    demands.sort_by_key(|demand| (&demand.package, demand.range.as_ref().map(Range::as_str)));
    let mut found: HashMap<(usize, &str, &str), (usize, usize)> = HashMap::new();
    for (at, entry) in entries.iter().enumerate() {
        found.entry((entry.source, &entry.channel, &entry.name)).or_insert((at, 0)).1 += 1;
    }
    let places = entries
        .iter()
        .map(|entry| {
            let (first, count) =
                found[&(entry.source, entry.channel.as_str(), entry.name.as_str())];
            Place { first, count }
        })
        .collect();
    let variable_of = vec![NO_VARIABLE; entries.len()];
    let mut rules = InputRules {
        places,
        variable_of,
        variables: Vec::new(),
        constraints: Vec::new(),
        input,
        demands,
        subscriptions,
        blocked: Vec::new(),
        unreadable: Vec::new(),
        gaps: Vec::new(),
        sources,
        entries,
        replaces: HashMap::new(),
    };
    rules.add_constraints();
    Ok(rules)
}

impl InputRules<'_> {
    fn add_constraints(&mut self) {
        // All existing operators have variables, also if nothing requires them.
        for at in 0..self.entries.len() {
            let Entry { source, subscribed, name, .. } = &self.entries[at];
            if *source == 0 {
                let text = format!(
                    "clusterserviceversion {name} exists and is not referenced by a subscription"
                );
                let needed = !subscribed;
                let variable = self.variable(at);
                if needed {
                    self.constrain(Some(variable), ConstraintRule::Must, text);
                }
            }
        }
        for at in 0..self.demands.len() {
            self.add_demand(at);
        }
        for at in 0..self.subscriptions.len() {
            self.add_subscription(at);
        }
        self.add_requirements();
        for at in 0..self.variables.len() {
            self.add_prohibitions(at);
        }
        self.keep_installed();
        self.add_uniqueness();
    }

    fn constrain(&mut self, about: Option<usize>, rule: ConstraintRule, text: String) {
        self.constraints.push(ReferenceConstraint { about, rule, text });
    }

    /// The variable of an entry. Entries with the same catalog, channel and name share one.
    fn variable(&mut self, entry: usize) -> usize {
        let first = self.places[entry].first;
        let known = &mut self.variable_of[first];
        if *known == NO_VARIABLE {
            *known = self.variables.len();
            self.variables.push(Variable::Entry(first));
        }
        *known
    }

    /// The identifier of a variable in messages.
    pub(crate) fn identifier(&self, variable: usize) -> String {
        match self.variables[variable] {
            Variable::Entry(entry) => {
                let entry = &self.entries[entry];
                let CatalogKey { name, namespace } = &self.sources[entry.source].key;
                format!("{name}/{namespace}/{}/{}", entry.channel, entry.name)
            }
            Variable::Demand(at) => self.demands[at].package.clone(),
            Variable::Subscription(at) => self.subscriptions[at].name.clone(),
        }
    }

    fn names(&self, variables: &[usize], last: &str) -> String {
        let names: Vec<String> =
            variables.iter().map(|variable| self.identifier(*variable)).collect();
        match names.split_last() {
            Some((end, rest)) if !rest.is_empty() => {
                format!("{} {last} {end}", rest.join(", "))
            }
            _ => names.concat(),
        }
    }

    /// Adds a demand.
    fn add_demand(&mut self, at: usize) {
        let Demand { package, range } = self.demands[at].clone();
        self.variables.push(Variable::Demand(at));
        let variable = self.variables.len() - 1;
        self.constrain(
            Some(variable),
            ConstraintRule::Must,
            format!("package {package} is demanded"),
        );
        let mut parts = vec![Requirement::Package(package.clone())];
        parts.extend(range.map(Requirement::InRange));
        let variables = self.variables_that_meet(0, &Requirement::All(parts));
        let text = if variables.is_empty() {
            format!("no operators found for the demanded package {package}")
        } else {
            let names = self.names(&variables, "or");
            format!("demand for package {package} requires at least one of {names}")
        };
        self.constrain(Some(variable), ConstraintRule::OneOf(variables), text);
    }

    /// Adds a Subscription.
    fn add_subscription(&mut self, at: usize) {
        let subscription = self.subscriptions[at];
        let name = &subscription.name;
        let mut matching = self.sources.iter().filter(|source| is_about(subscription, &source.key));
        if matching.any(|source| !source.ready) {
            self.blocked.push(at);
            return;
        }
        let installed = self.installed(subscription);
        let unsorted = match self.unsorted_candidates(subscription, installed.is_none()) {
            Ok(unsorted) => unsorted,
            Err(text) => {
                let variable = self.subscription_variable(at);
                self.constrain(Some(variable), ConstraintRule::MustNot, text);
                return;
            }
        };
        let Ok(candidates) = self.by_channel(unsorted) else {
            self.blocked.push(at);
            return;
        };
        let variable = self.subscription_variable(at);
        let mut variables = Vec::new();
        for entry in candidates {
            if installed
                .is_some_and(|installed| !self.entries[entry].follows(&self.entries[installed]))
            {
                continue;
            }
            let candidate = self.variable(entry);
            if !variables.contains(&candidate) {
                variables.push(candidate);
            }
        }
        if let Some(installed) = installed {
            let current = self.variable(installed);
            for &candidate in &variables {
                let text = format!(
                    "{} conflicts with {}",
                    self.identifier(candidate),
                    self.identifier(current)
                );
                self.constrain(Some(candidate), ConstraintRule::NotWith(current), text);
                if candidate != current {
                    self.replaces.insert(candidate, self.entries[installed].name.clone());
                }
            }
            if !variables.contains(&current) {
                variables.push(current);
            }
        }
        let text = match variables.as_slice() {
            [] => format!("no operators found matching the criteria of subscription {name}"),
            [_] => format!("subscription {name} requires {}", self.names(&variables, "or")),
            _ => format!(
                "subscription {name} requires at least one of {}",
                self.names(&variables, "or")
            ),
        };
        self.constrain(Some(variable), ConstraintRule::OneOf(variables), text);
    }

    /// The mandatory variable of a Subscription.
    fn subscription_variable(&mut self, at: usize) -> usize {
        self.variables.push(Variable::Subscription(at));
        let variable = self.variables.len() - 1;
        let text = format!("subscription {} exists", self.subscriptions[at].name);
        self.constrain(Some(variable), ConstraintRule::Must, text);
        variable
    }

    /// The existing operator that is the `installedCSV` of a Subscription.
    fn installed(&self, subscription: &Subscription) -> Option<usize> {
        let mut existing = self.entries.iter();
        existing.position(|entry| entry.source == 0 && entry.name == subscription.installed_csv)
    }

    /// Adds the requirements of all variables, also those of their candidates.
    fn add_requirements(&mut self) {
        // Many bundles have the same requirement, whose candidates are cached.
        let mut found: HashMap<(usize, String), (Vec<usize>, bool)> = HashMap::new();
        let mut at = 0;
        while at < self.variables.len() {
            let variable = at;
            at += 1;
            let Variable::Entry(entry) = self.variables[variable] else { continue };
            if self.entries[entry].properties.has_unreadable_requirement {
                self.unreadable.push(variable);
                continue;
            }
            let source = self.entries[entry].source;
            for requirement in self.entries[entry].properties.requirements.clone() {
                let key = (source, requirement.shape());
                if !found.contains_key(&key) {
                    let gaps = self.gaps.len();
                    let variables = self.variables_that_meet(source, &requirement);
                    let gap = self.gaps.len() > gaps;
                    self.gaps.truncate(gaps);
                    found.insert(key.clone(), (variables, gap));
                }
                let (variables, gap) = found[&key].clone();
                if gap {
                    self.gaps.push(self.constraints.len());
                }
                let name = &self.entries[entry].name;
                let text = format!("bundle {name} requires an operator {requirement}");
                self.constrain(Some(variable), ConstraintRule::OneOf(variables), text);
            }
        }
    }

    /// The candidates of a requirement of the source `of`, best first. If a channel has no order,
    /// the next constraint has a gap.
    fn variables_that_meet(&mut self, of: usize, requirement: &Requirement) -> Vec<usize> {
        let (providers, gap) = self.providers(of, requirement);
        if gap {
            self.gaps.push(self.constraints.len());
        }
        let mut variables = Vec::new();
        for provider in providers {
            let variable = self.variable(provider);
            if !variables.contains(&variable) {
                variables.push(variable);
            }
        }
        variables
    }

    /// Adds the constraints that prohibit a variable.
    fn add_prohibitions(&mut self, variable: usize) {
        let Variable::Entry(entry) = self.variables[variable] else { return };
        let entry = &self.entries[entry];
        let mut texts = Vec::new();
        let identifier = self.identifier(variable);
        if entry.properties.deprecated {
            texts.push(format!("bundle {identifier} is deprecated"));
        }
        // Prohibitions of administrators are about catalog entries only.
        if entry.source != 0 {
            let mut messages: Vec<&String> = Vec::new();
            for prohibition in &self.input.prohibitions {
                let forbids = match &prohibition.what {
                    Prohibited::Package(package) => *package == entry.package,
                    Prohibited::Bundle(name) => *name == entry.name,
                    Prohibited::OutsideOf(packages) => !packages.contains(&entry.package),
                };
                if forbids {
                    messages.push(&prohibition.message);
                }
            }
            texts.extend(messages.into_iter().min().cloned());
            if let (Some(least), Some(there)) =
                (&entry.properties.min_kube_version, &self.input.kube_version)
                && there.release() < least.release()
            {
                texts.push(format!(
                    "bundle {identifier} needs Kubernetes {least} or later, the cluster has \
                         {there}"
                ));
            }
        }
        for text in texts {
            self.constrain(Some(variable), ConstraintRule::MustNot, text);
        }
    }

    /// Keeps the installed operators of Subscriptions that cannot be met. Of their requirements,
    /// only those that an existing operator meets remain.
    fn keep_installed(&mut self) {
        let invalid = |constraint: &ReferenceConstraint| match (
            &constraint.rule,
            constraint.about.map(|at| self.variables[at]),
        ) {
            (ConstraintRule::MustNot, Some(Variable::Subscription(at))) => Some(at),
            _ => None,
        };
        let mut unmet: Vec<usize> = self.constraints.iter().filter_map(invalid).collect();
        unmet.extend(&self.blocked);
        unmet.sort_unstable();
        let mut installed_variables = Vec::new();
        for at in unmet {
            let subscription = self.subscriptions[at];
            let Some(installed) = self.installed(subscription) else { continue };
            let variable = self.variable(installed);
            if !installed_variables.contains(&variable) {
                installed_variables.push(variable);
                let text = format!(
                    "clusterserviceversion {} exists and stays because subscription {} cannot be \
                     resolved",
                    self.entries[installed].name, subscription.name
                );
                self.constrain(Some(variable), ConstraintRule::Must, text);
            }
        }
        let (variables, entries) = (&self.variables, &self.entries);
        let exists = |variable: &usize| matches!(variables[*variable], Variable::Entry(at) if entries[at].source == 0);
        for constraint in &mut self.constraints {
            if let (ConstraintRule::OneOf(list), Some(about)) = (&constraint.rule, constraint.about)
                && installed_variables.contains(&about)
                && !list.iter().any(exists)
            {
                constraint.rule = ConstraintRule::OneOf(vec![about]);
            }
        }
    }

    /// Adds the constraints for at most one provider of each API, and one operator of each package.
    fn add_uniqueness(&mut self) {
        let mut apis: Vec<OperatorApi> = Vec::new();
        let mut packages: Vec<String> = Vec::new();
        let mut entries: Vec<(usize, usize)> = Vec::new();
        for (at, variable) in self.variables.iter().enumerate() {
            if let Variable::Entry(entry) = variable
                && self.has_one_place(*entry)
            {
                entries.push((at, *entry));
                apis.extend(self.entries[*entry].properties.apis.iter().cloned());
                packages.extend(
                    self.entries[*entry]
                        .properties
                        .packages
                        .iter()
                        .map(|package| package.0.clone()),
                );
            }
        }
        apis.sort();
        apis.dedup();
        packages.sort();
        packages.dedup();
        let repeated = |rules: &Self, count: &dyn Fn(&Entry<'_>) -> usize| {
            let mut repeated = Vec::new();
            for (variable, entry) in &entries {
                let times = count(&rules.entries[*entry]);
                repeated.extend(std::iter::repeat_n(*variable, times));
            }
            repeated.sort_by_cached_key(|variable| rules.identifier(*variable));
            repeated
        };
        for api in apis {
            let variables = repeated(self, &|entry| {
                entry.properties.apis.iter().filter(|other| **other == api).count()
            });
            if variables.len() > 1 {
                let text = format!("{} provide {api}", self.names(&variables, "and"));
                self.constrain(None, ConstraintRule::AtMostOne(variables), text);
            }
        }
        for package in packages {
            let variables = repeated(self, &|entry| {
                entry.properties.packages.iter().filter(|(name, _)| *name == package).count()
            });
            if variables.len() > 1 {
                let names = self.names(&variables, "and");
                let text = format!("{names} originate from package {package}");
                self.constrain(None, ConstraintRule::AtMostOne(variables), text);
            }
        }
    }

    /// The constraints that name at least one of these variables, in their order.
    pub(crate) fn constraints_of(&self, variables: &[usize]) -> Vec<&ReferenceConstraint> {
        let mut is_member = vec![false; self.variables.len()];
        for variable in variables {
            is_member[*variable] = true;
        }
        let names_member = |constraint: &&ReferenceConstraint| {
            constraint.variables().iter().any(|variable| is_member[*variable])
        };
        self.constraints.iter().filter(names_member).collect()
    }

    /// The sorted names of the Subscriptions among these variables.
    pub(crate) fn subscriptions_of(&self, variables: &[usize]) -> Vec<String> {
        let names = variables.iter().filter_map(|variable| match self.variables[*variable] {
            Variable::Subscription(at) => Some(self.subscriptions[at].name.clone()),
            Variable::Entry(_) | Variable::Demand(_) => None,
        });
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    /// Whether the identifier of an entry is unambiguous.
    pub(crate) fn has_one_place(&self, entry: usize) -> bool {
        let Entry { source, name, channel, .. } = &self.entries[entry];
        let CatalogKey { name: catalog, namespace } = &self.sources[*source].key;
        let plain = [catalog, namespace, channel, name].iter().all(|part| !part.contains('/'));
        plain && self.places[entry].count == 1
    }
}
