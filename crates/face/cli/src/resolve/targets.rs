//! Which namespaces are resolved, and which of them a change is about.

use super::ResolveArguments;
use super::near::did_you_mean;
use super::state::State;
use super::wish::{CatalogFolder, Change, What, unusable};
use crate::exit::Failure;
use mainstay_cause::Cause;
use mainstay_version::quote;
use std::collections::BTreeSet;

/// Where operators are installed if nobody says it.
const USUAL_NAMESPACE: &str = "operators";

/// The namespaces that are resolved, and for each change what it is about.
pub(super) struct Targets {
    pub(super) namespaces: Vec<String>,
    of: Vec<About>,
}

/// What a change is about.
enum About {
    /// Every namespace.
    All,
    /// One of them.
    One(String),
    /// Extensions only.
    Extensions,
}

impl Targets {
    /// # Errors
    /// If a namespace does not exist, or if it is open which one something is about.
    pub(super) fn of(
        arguments: &ResolveArguments,
        state: &State,
        existing: Option<&[String]>,
    ) -> Result<Self, Failure> {
        let namespaces = match &arguments.namespace {
            Some(namespace) => {
                exists(arguments, state, existing, namespace)?;
                vec![namespace.clone()]
            }
            None => namespaces(arguments, state),
        };
        if namespaces.len() > 1 {
            let package = arguments.packages.first().map(ToString::to_string);
            let installed = arguments.installed.first().map(|it| format!("--installed {it}"));
            let save = arguments.save.as_ref().map(|it| format!("--save {}", it.display()));
            if let Some(typed) = package.or(installed).or(save) {
                return Err(open(&typed, &namespaces));
            }
        }
        let mut of = Vec::new();
        for change in &arguments.changes {
            of.push(target(change, state, &namespaces, !arguments.packages.is_empty())?);
        }
        Ok(Self { namespaces, of })
    }

    /// The changes that are about a namespace.
    pub(super) fn changes(&self, changes: &[Change], namespace: &str) -> Vec<Change> {
        let ours = changes.iter().zip(&self.of).filter(|(_, about)| match about {
            About::All => true,
            About::One(of) => of == namespace,
            About::Extensions => false,
        });
        ours.map(|(change, _)| change.clone()).collect()
    }
}

/// Whether something is known about a namespace that was named.
fn exists(
    arguments: &ResolveArguments,
    state: &State,
    existing: Option<&[String]>,
    namespace: &str,
) -> Result<(), Failure> {
    let cluster = arguments.needs_cluster();
    // Without a state and a cluster there is nothing that could be missed.
    if !cluster && arguments.states.is_empty() {
        return Ok(());
    }
    let mut known: BTreeSet<&str> = state.known_namespaces();
    known.extend(existing.into_iter().flatten().map(String::as_str));
    if known.contains(namespace) {
        return Ok(());
    }
    let whose = if cluster { "cluster" } else { "state" };
    let why = format!("the {whose} has nothing in namespace {}", quote(namespace));
    let cause = unusable(&format!("-n {namespace}"), why);
    let remedy = did_you_mean(namespace, known);
    Err(Failure::usage(remedy.into_iter().fold(cause, Cause::remedy)))
}

/// The namespaces that are resolved where none is named.
fn namespaces(arguments: &ResolveArguments, state: &State) -> Vec<String> {
    let mut subscribed = state.subscribed();
    let catalogs_only = |it: &Change| matches!(it.what, What::Catalog(_) | What::Outage(_));
    let only_extensions = !state.extensions.is_empty()
        && arguments.packages.is_empty()
        && arguments.installed.is_empty()
        && arguments.changes.iter().all(catalogs_only)
        && arguments.save.is_none();
    if subscribed.is_empty() && !only_extensions {
        // A namespace with an OperatorGroup is one that is meant for operators.
        let mut grouped = state.namespaces.iter().filter(|(_, it)| !it.groups.is_empty());
        let has_usual = grouped.clone().any(|(name, _)| name == USUAL_NAMESPACE);
        subscribed.push(match grouped.next() {
            Some((name, _)) if !has_usual => name.clone(),
            _ => USUAL_NAMESPACE.to_owned(),
        });
    }
    subscribed
}

/// The namespace that a change is about.
fn target(
    change: &Change,
    state: &State,
    namespaces: &[String],
    asked: bool,
) -> Result<About, Failure> {
    let has = |namespace: &&String, is: &dyn Fn(&mainstay_resolver::Subscription) -> bool| {
        state.namespaces.get(*namespace).is_some_and(|it| it.subscriptions.iter().any(is))
    };
    let typed = format!("--what-if {}", change.typed);
    let found: Vec<&String> = match &change.what {
        What::Unsubscribe(Some(named), _) => {
            if !namespaces.contains(named) {
                let why =
                    format!("namespace {} is not among those that are looked at", quote(named));
                let cause = unusable(&typed, why);
                let remedy = did_you_mean(named, namespaces.iter().map(String::as_str));
                return Err(Failure::usage(remedy.into_iter().fold(cause, Cause::remedy)));
            }
            return Ok(About::One(named.clone()));
        }
        What::Unsubscribe(None, name) => {
            namespaces.iter().filter(|it| has(it, &|it| it.name == *name)).collect()
        }
        What::Subscribe(wish) => {
            namespaces.iter().filter(|it| has(it, &|it| it.package == wish.package)).collect()
        }
        What::Installed(bundle) => {
            let older = |it: &mainstay_resolver::Subscription| it.installed_csv == *bundle;
            namespaces.iter().filter(|it| has(it, &older)).collect()
        }
        What::Catalog(CatalogFolder { name, .. }) | What::Outage(name)
            if state.is_for_extensions_only(name, asked) =>
        {
            return Ok(About::Extensions);
        }
        What::Catalog(_) | What::Outage(_) | What::Prohibit(_) | What::KubeVersion(_) => {
            return Ok(About::All);
        }
    };
    match (found.as_slice(), namespaces) {
        ([one], _) => Ok(About::One((*one).clone())),
        ([], [one]) => Ok(About::One(one.clone())),
        ([], several) => match &change.what {
            What::Unsubscribe(_, name) => {
                let all = state.namespaces.values().flat_map(|it| &it.subscriptions);
                let cause = unusable(&typed, format!("there is no Subscription {}", quote(name)));
                let remedy = did_you_mean(name, all.map(|it| &*it.name));
                Err(Failure::usage(remedy.into_iter().fold(cause, Cause::remedy)))
            }
            _ => Err(open(&typed, several)),
        },
        (several, _) => {
            let several: Vec<String> = several.iter().map(|it| (*it).clone()).collect();
            Err(open(&typed, &several))
        }
    }
}

/// It is open which of some namespaces something is about.
fn open(typed: &str, namespaces: &[String]) -> Failure {
    let why = format!("it is about one namespace, and may be meant for {}", namespaces.join(", "));
    Failure::usage(unusable(typed, why).remedy("say which one is meant with -n NAMESPACE"))
}

/// Whether something is said twice, and differently.
///
/// # Errors
/// If it is.
pub(super) fn contradictions(arguments: &ResolveArguments) -> Result<(), Failure> {
    /// What something is about, how it was typed, and how it can be told from others.
    type Said = (String, String, String);
    let mut said: Vec<Said> = Vec::new();
    for wish in &arguments.packages {
        said.push((format!("package {}", wish.package), wish.to_string(), wish.to_string()));
    }
    for given in &arguments.catalogs {
        let typed = format!("--catalog {}={}", given.name, given.folder);
        said.push((format!("the content of catalog {}", given.name), typed, given.folder.clone()));
    }
    for given in &arguments.priorities {
        let typed = format!("--priority {}={}", given.name, given.priority);
        let value = given.priority.to_string();
        said.push((format!("the priority of catalog {}", given.name), typed, value));
    }
    for Change { typed, what } in &arguments.changes {
        let about = match what {
            What::Subscribe(wish) => format!("package {}, supposed", wish.package),
            What::Catalog(folder) => format!("the content of catalog {}, supposed", folder.name),
            What::KubeVersion(_) => "the version of Kubernetes".to_owned(),
            _ => continue,
        };
        said.push((about, format!("--what-if {typed}"), typed.clone()));
    }
    for (at, (about, typed, value)) in said.iter().enumerate() {
        let other = said[..at].iter().find(|(it, _, before)| it == about && before != value);
        if let Some((_, other, _)) = other {
            let why = format!("`{other}` says something else about the same");
            return Err(Failure::usage(unusable(typed, why).remedy("leave out one of the two")));
        }
    }
    Ok(())
}
