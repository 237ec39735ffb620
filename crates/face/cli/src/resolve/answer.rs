//! The answer about a state: one world for each namespace, and another one if something is supposed.

use super::extension::Extensions;
use super::observe::observe;
use super::shelf::{Folders, Remedies, Said, Shelf, Stock};
use super::state::State;
use super::targets::{Targets, contradictions};
use super::text::{Text, differences, tree};
use super::walk::Journey;
use super::wish::{Change, What, unusable};
use super::{Io, Remote, ResolveArguments, read, scene, value, written};
use crate::catalog::plain;
use crate::config::reason;
use crate::exit::{Exit, Failure};
use crate::report::columns;
use mainstay_cause::{Cause, Place};
use mainstay_resolver::universe::{Universe, cause_json};
use mainstay_resolver::{CatalogKey, World};
use mainstay_version::parse_tolerant;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

pub(super) fn run(
    arguments: &ResolveArguments,
    io: &mut Io<'_>,
    connect: &mut dyn FnMut() -> Result<Box<dyn Remote>, Failure>,
) -> Result<Exit, Failure> {
    if !arguments.needs_cluster() && arguments.states.is_empty() && arguments.catalogs.is_empty() {
        let cause = Cause::new("there is no catalog to take packages from");
        return Err(Failure::usage(
            cause.remedy("name one with --catalog NAME=DIR, or look at the cluster with --cluster"),
        ));
    }
    contradictions(arguments)?;
    let mut state = read::files(io, &arguments.states)?;
    let mut remote = if arguments.needs_cluster() { Some(connect()?) } else { None };
    let mut existing = None;
    if let Some(remote) = &mut remote {
        let listing = observe(&mut **remote, arguments.namespace.as_deref())?;
        for object in listing.objects {
            state.add(object);
        }
        if let Some(namespace) = &arguments.namespace {
            state.within(namespace, &listing.hidden);
        }
        state.kube_version = remote.kube_version().and_then(|text| parse_tolerant(&text).ok());
        existing = arguments.namespace.as_ref().and_then(|_| remote.namespaces());
    }
    let whole = remote.is_some() || !arguments.installed.is_empty();
    state.miss(whole).map_err(Failure::usage)?;
    if let Some(version) = &arguments.kube_version {
        state.kube_version = Some(version.clone());
    }
    let targets = Targets::of(arguments, &state, existing.as_deref())?;
    let global = arguments.global_namespace.as_deref().unwrap_or_else(|| state.global());
    let folders = Folders::default();
    let said = Said {
        folders: &arguments.catalogs,
        priorities: &arguments.priorities,
        packages: !arguments.packages.is_empty(),
    };
    let remote = remote.as_deref_mut().map(|remote| remote as &mut dyn Remote);
    let shelf = Shelf::fill(io, &folders, &state, global, &targets.namespaces, &said, remote)?;
    let mut supposed = shelf.clone();
    for change in &arguments.changes {
        if let What::Catalog(folder) = &change.what
            && state.is_for_subscriptions(&folder.name, said.packages)
        {
            supposed.put(io, &folders, folder, global)?;
        }
    }
    let shown = if arguments.changes.is_empty() { &shelf } else { &supposed };
    let question = Question { arguments, state: &state, targets: &targets, global };
    let told = question.answers(&shelf, &supposed);
    let (answers, saved) = match told {
        Ok(told) => told,
        // What cannot be found may be in a folder that holds no sound catalog.
        Err(why) if shown.is_broken() => return Ok(unsound(arguments, io, shown, &why)),
        Err(why) => return Err(Failure::usage(why)),
    };
    // Extensions belong to no namespace.
    let extensions = if arguments.namespace.is_none() {
        Extensions::of(io, &folders, &state, &said, &arguments.changes)?
    } else {
        Extensions::default()
    };
    let mut notes = state.notes.clone();
    if !extensions.is_empty() {
        notes.extend(extensions.notes(arguments));
    }
    let remedies = shown.remedies();
    let mut value = json!({
        "catalogs": catalogs_value(shown),
        "namespaces": answers.iter().map(Answer::value).collect::<Vec<_>>(),
        "whatIf": arguments.changes.iter().map(|it| &*it.typed).collect::<Vec<_>>(),
        "notes": notes,
    });
    if !extensions.is_empty() {
        extensions.add_to(&mut value);
    }
    remedies.value(&mut value);
    let text = written(arguments.output, &value, || {
        let mut texts: Vec<String> =
            answers.iter().map(|answer| answer.text(io.colour, &remedies)).collect();
        texts.extend((!extensions.is_empty()).then(|| extensions.text(io.colour)));
        let notes =
            notes.iter().fold(String::new(), |all, it| format!("{all}note: {}\n", plain(it)));
        format!("{notes}{}{}", catalogs_text(shown), texts.join("\n"))
    });
    io.print(&text);
    if let (Some(file), Some(universe)) = (&arguments.save, &saved) {
        write_universe(io, file, universe)?;
    }
    // A broken folder that somebody named is never passed over, even if nothing depends on it.
    let exit = exit(arguments, answers.iter().map(Answer::counts));
    let exit = extensions.exit(arguments, exit);
    Ok(if shown.is_broken() { Exit::Unresolved } else { exit })
}

/// What is asked about which namespaces.
struct Question<'q> {
    arguments: &'q ResolveArguments,
    state: &'q State,
    targets: &'q Targets,
    global: &'q str,
}

impl Question<'_> {
    /// The answers, and the world that is saved.
    fn answers(
        &self,
        shelf: &Shelf,
        supposed: &Shelf,
    ) -> Result<(Vec<Answer>, Option<Universe>), Cause> {
        let (mut answers, mut saved) = (Vec::new(), None);
        for namespace in &self.targets.namespaces {
            let here = self.state.namespaces.get(namespace);
            let manual = here.map(|it| it.manual.clone()).unwrap_or_default();
            let as_it_is = self.world(namespace, shelf)?;
            let before = Journey::of(&as_it_is);
            let changes = self.targets.changes(&self.arguments.changes, namespace);
            let mut world = as_it_is;
            // What is there stays as it is: a catalog that loses what is asked for is a result.
            world.catalogs = supposed.views();
            suppose(&mut world, &changes)?;
            if self.arguments.save.is_some() {
                let data = |key: &CatalogKey| supposed.items.get(key)?.data();
                saved = Some(Universe::of(&world, data).with_manual(&manual));
            }
            let after = (!changes.is_empty()).then(|| Journey::of(&world));
            let mut answer = Answer { before, after, manual, changes, said: Vec::new() };
            if let Some(here) = here.filter(|_| self.arguments.needs_cluster()) {
                answer.compare(&here.failing);
            }
            answers.push(answer);
        }
        Ok((answers, saved))
    }

    /// A namespace as it is, with what is asked for.
    fn world<'s>(&self, namespace: &str, shelf: &'s Shelf) -> Result<World<'s>, Cause> {
        let mut world = scene::world(namespace, self.global, self.state, shelf);
        for wish in &self.arguments.packages {
            scene::change(&mut world, &What::Subscribe(wish.clone()))?;
        }
        install(&mut world, &self.arguments.installed)?;
        Ok(world)
    }
}

/// Takes bundles for installed, of each package one.
pub(super) fn install(world: &mut World<'_>, bundles: &[String]) -> Result<(), Cause> {
    let mut known: BTreeMap<String, &str> = BTreeMap::new();
    for bundle in bundles {
        scene::change(world, &What::Installed(bundle.clone()))?;
        let package = scene::package_of(world, bundle).unwrap_or_default();
        if let Some(other) = known.insert(package, bundle).filter(|other| other != bundle) {
            let why = format!("`--installed {other}` says something else about the same package");
            let cause = unusable(&format!("--installed {bundle}"), why);
            return Err(cause.remedy("leave out one of the two"));
        }
    }
    Ok(())
}

/// Tells that a folder holds no sound catalog, where nothing can be said without it.
fn unsound(arguments: &ResolveArguments, io: &mut Io<'_>, shelf: &Shelf, why: &Cause) -> Exit {
    let value = json!({
        "catalogs": catalogs_value(shelf),
        "namespaces": [],
        "explanation": cause_json(why),
    });
    let text = written(arguments.output, &value, || {
        let mut out = catalogs_text(shelf);
        tree(&mut out, why, "");
        out
    });
    io.print(&text);
    Exit::Unresolved
}

/// The exit code for what is shown.
pub(super) fn exit<'j>(
    arguments: &ResolveArguments,
    journeys: impl Iterator<Item = &'j Journey>,
) -> Exit {
    let mut exit = Exit::Done;
    for journey in journeys {
        if journey.fails() {
            return Exit::Unresolved;
        }
        if journey.changes() && arguments.exit_code {
            exit = Exit::Changes;
        }
    }
    exit
}

/// Makes a world as it is supposed to be.
///
/// # Errors
/// If a change names something that does not exist.
pub(super) fn suppose(world: &mut World<'_>, changes: &[Change]) -> Result<(), Cause> {
    for change in changes {
        scene::change(world, &change.what).map_err(|why| {
            Cause::new(format!("--what-if {} cannot be supposed", change.typed)).because(why)
        })?;
    }
    Ok(())
}

/// Writes a universe to a file.
pub(super) fn write_universe(
    io: &Io<'_>,
    file: &std::path::Path,
    universe: &Universe,
) -> Result<(), Failure> {
    let refused = |why: String| {
        Failure::from(
            Cause::new("the universe cannot be saved")
                .at(Place::file(file))
                .because(Cause::new(why)),
        )
    };
    let text =
        serde_json::to_string_pretty(universe).map_err(|error| refused(error.to_string()))?;
    std::fs::write(io.folder.join(file), text + "\n").map_err(|error| refused(reason(&error)))
}

/// What is answered about a namespace.
pub(super) struct Answer {
    /// As it is.
    pub(super) before: Journey,
    /// As it is supposed to be.
    pub(super) after: Option<Journey>,
    /// Subscriptions whose install plans wait for approval.
    pub(super) manual: BTreeSet<String>,
    /// What is supposed here.
    pub(super) changes: Vec<Change>,
    /// What the cluster says of Subscriptions, where this answer says something else.
    pub(super) said: Vec<(String, String)>,
}

impl Answer {
    /// What decides how the command ends.
    pub(super) fn counts(&self) -> &Journey {
        self.after.as_ref().unwrap_or(&self.before)
    }

    /// Takes note of what the cluster says fails and does not fail here.
    fn compare(&mut self, failing: &BTreeMap<String, String>) {
        let failures = &self.before.outcome.failures;
        let fails = |name: &String| failures.iter().any(|it| it.subscriptions.contains(name));
        let other = failing.iter().filter(|(name, _)| !fails(name));
        self.said = other.map(|(name, said)| (name.clone(), said.clone())).collect();
    }

    fn value(&self) -> Value {
        let mut value = value::journey(&self.before, &self.manual);
        if let Some(after) = &self.after {
            value["whatIf"] = value::journey(after, &self.manual);
            value["difference"] = value::difference(&self.before, after);
        }
        if !self.said.is_empty() {
            let said = self.said.iter();
            value["clusterSays"] =
                said.map(|(name, said)| json!({"subscription": name, "message": said})).collect();
        }
        value
    }

    /// The answer for people.
    pub(super) fn text(&self, colour: bool, remedies: &Remedies) -> String {
        let text = Text { colour, manual: &self.manual, remedies };
        let mut out = text.journey(self.counts());
        for (name, said) in &self.said {
            let _ = writeln!(
                out,
                "  the cluster says otherwise of Subscription {}: {}",
                plain(name),
                plain(said)
            );
            out.push_str(
                "    it may not have looked again, see another content of a catalog, or fail the namespace as a whole\n",
            );
        }
        let Some(after) = &self.after else { return out };
        let (rows, same) = differences(&self.before, after);
        let typed: Vec<String> = self.changes.iter().map(|it| plain(&it.typed)).collect();
        let _ = writeln!(out, "  what changes with {}", typed.join(", "));
        difference(&mut out, rows, same);
        out
    }
}

/// The rows that differ, as a table.
pub(super) fn difference(out: &mut String, rows: Vec<[String; 3]>, same: usize) {
    if rows.is_empty() {
        out.push_str("    nothing\n");
        return;
    }
    let rows: Vec<Vec<String>> = rows.into_iter().map(Vec::from).collect();
    let table = columns(&["OPERATOR", "AS IT IS", "WHAT IF"], &rows);
    for line in table.lines() {
        let _ = writeln!(out, "    {line}");
    }
    if same > 0 {
        let _ = writeln!(out, "    and {same} as before");
    }
}

/// The catalogs that have no content, with what to do.
fn catalogs_text(shelf: &Shelf) -> String {
    let mut out = String::new();
    for (key, item) in &shelf.items {
        let (word, cause) = match &*item.stock {
            Stock::Ready(..) => continue,
            Stock::Missing(cause) => ("has no content here", cause),
            Stock::Failed(_, cause) => ("cannot be used", cause),
        };
        let _ =
            writeln!(out, "catalog {} {word}", plain(&format!("{}/{}", key.namespace, key.name)));
        for line in cause.render().lines() {
            let _ = writeln!(out, "  {}", plain(line));
        }
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

fn catalogs_value(shelf: &Shelf) -> Value {
    shelf
        .items
        .iter()
        .map(|(key, item)| {
            let (state, why) = match &*item.stock {
                Stock::Ready(..) => ("ready", None),
                Stock::Missing(cause) => ("missing", Some(cause)),
                Stock::Failed(_, cause) => ("failed", Some(cause)),
            };
            let mut value = json!({
                "name": key.name, "namespace": key.namespace, "priority": item.priority,
                "state": state,
            });
            if !item.from.is_empty() {
                value["from"] = json!(item.from);
            }
            if let Some(cause) = why {
                value["explanation"] = cause_json(cause);
            }
            value
        })
        .collect()
}
