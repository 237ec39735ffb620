//! The answer about a state: one world for each namespace, and another one if something is supposed.

use super::extension::Extensions;
use super::shelf::{Said, Shelf, Stock};
use super::state::State;
use super::text::{Text, differences};
use super::walk::Journey;
use super::wish::{Change, What, unusable};
use super::{Format, Io, Remote, ResolveArguments, scene, value};
use crate::catalog::plain;
use crate::config::reason;
use crate::exit::{Exit, Failure};
use crate::report::columns;
use mainstay_cause::{Cause, Place};
use mainstay_resolver::World;
use mainstay_resolver::universe::{Universe, cause_json};
use mainstay_version::parse_tolerant;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Where operators are installed if nobody says it.
const USUAL_NAMESPACE: &str = "operators";

pub(super) fn run(
    arguments: &ResolveArguments,
    io: &mut Io<'_>,
    connect: &mut dyn FnMut() -> Result<Box<dyn Remote>, Cause>,
) -> Result<Exit, Failure> {
    if !arguments.needs_cluster() && arguments.states.is_empty() && arguments.catalogs.is_empty() {
        let cause = Cause::new("there is no catalog to take packages from");
        return Err(Failure::usage(
            cause.remedy("name one with --catalog NAME=DIR, or look at the cluster with --cluster"),
        ));
    }
    let mut remote = if arguments.needs_cluster() { Some(connect()?) } else { None };
    let mut state = State::read(io, &arguments.states)?;
    if let Some(remote) = &mut remote {
        for object in remote.objects()? {
            state.add(object.into_value());
        }
        state.kube_version = remote.kube_version().and_then(|text| parse_tolerant(&text).ok());
    }
    if let Some(version) = &arguments.kube_version {
        state.kube_version = Some(version.clone());
    }
    let global = arguments.global_namespace.as_deref().unwrap_or_else(|| state.global());
    let namespaces = namespaces(arguments, &state)?;
    let said = Said { folders: &arguments.catalogs, priorities: &arguments.priorities };
    let remote = remote.as_deref_mut().map(|remote| remote as &mut dyn Remote);
    let shelf = Shelf::fill(io, &state, global, &namespaces, &said, remote)?;
    let mut supposed = shelf.clone();
    for change in &arguments.changes {
        if let What::Catalog(folder) = &change.what {
            supposed.put(io, folder, global)?;
        }
    }
    let mut answers = Vec::new();
    for namespace in &namespaces {
        let base = |shelf| -> Result<World<'_>, Failure> {
            let mut world = scene::world(namespace, global, &state, shelf);
            for wish in &arguments.packages {
                scene::change(&mut world, &What::Subscribe(wish.clone()))
                    .map_err(Failure::usage)?;
            }
            for bundle in &arguments.installed {
                scene::change(&mut world, &What::Installed(bundle.clone()))
                    .map_err(Failure::usage)?;
            }
            Ok(world)
        };
        let as_it_is = base(&shelf)?;
        let manual =
            state.namespaces.get(namespace).map(|it| it.manual.clone()).unwrap_or_default();
        let before = Journey::of(&as_it_is);
        if arguments.changes.is_empty() {
            save(arguments, io, &as_it_is, &shelf)?;
            answers.push(Answer { before, after: None, manual });
            continue;
        }
        let mut world = base(&supposed)?;
        suppose(&mut world, &arguments.changes).map_err(Failure::usage)?;
        save(arguments, io, &world, &supposed)?;
        let after = Some(Journey::of(&world));
        answers.push(Answer { before, after, manual });
    }
    // Extensions belong to no namespace.
    let extensions = if arguments.namespace.is_none() {
        Extensions::of(io, &state, &said)?
    } else {
        Extensions::default()
    };
    let shown = if arguments.changes.is_empty() { &shelf } else { &supposed };
    let text = match arguments.output {
        Format::Text => {
            let mut texts = answers_texts(arguments, io, &answers);
            texts.extend((!extensions.is_empty()).then(|| extensions.text(io.colour)));
            format!("{}{}", catalogs_text(shown), texts.join("\n"))
        }
        Format::Json => {
            let mut value = json!({
                "catalogs": catalogs_value(shown),
                "namespaces": answers.iter().map(Answer::value).collect::<Vec<_>>(),
                "whatIf": arguments.changes.iter().map(|it| &*it.typed).collect::<Vec<_>>(),
            });
            if !extensions.is_empty() {
                value["extensions"] = extensions.value();
            }
            format!("{value:#}\n")
        }
    };
    io.print(&text);
    // A broken folder that somebody named is never passed over, even if nothing depends on it.
    let broken = shown.items.values().any(|item| matches!(&*item.stock, Stock::Failed(..)));
    let exit = exit(arguments, answers.iter().map(Answer::counts));
    let exit = extensions.exit(arguments, exit);
    Ok(if broken { Exit::Unresolved } else { exit })
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

/// The namespaces that are resolved.
fn namespaces(arguments: &ResolveArguments, state: &State) -> Result<Vec<String>, Failure> {
    if let Some(namespace) = &arguments.namespace {
        return Ok(vec![namespace.clone()]);
    }
    let mut subscribed = state.subscribed();
    let only_extensions = !state.extensions.is_empty()
        && arguments.packages.is_empty()
        && arguments.installed.is_empty()
        && arguments.changes.is_empty()
        && arguments.save.is_none();
    if subscribed.is_empty() && only_extensions {
        return Ok(subscribed);
    }
    if subscribed.is_empty() {
        // A namespace with an OperatorGroup is one that is meant for operators.
        let mut grouped = state.namespaces.iter().filter(|(_, it)| !it.groups.is_empty());
        let has_usual = grouped.clone().any(|(name, _)| name == USUAL_NAMESPACE);
        subscribed.push(match grouped.next() {
            Some((name, _)) if !has_usual => name.clone(),
            _ => USUAL_NAMESPACE.to_owned(),
        });
    }
    let about_one = !arguments.packages.is_empty()
        || !arguments.installed.is_empty()
        || arguments.save.is_some()
        || arguments.changes.iter().any(|it| {
            matches!(it.what, What::Subscribe(_) | What::Unsubscribe(_) | What::Installed(_))
        });
    if about_one && subscribed.len() > 1 {
        let why = format!("namespaces with Subscriptions are {}", subscribed.join(", "));
        return Err(Failure::usage(
            unusable("what is asked for", why).remedy("say which one is meant with -n NAMESPACE"),
        ));
    }
    Ok(subscribed)
}

/// Writes the world to a file, if that is wanted.
fn save(
    arguments: &ResolveArguments,
    io: &Io<'_>,
    world: &World<'_>,
    shelf: &Shelf,
) -> Result<(), Failure> {
    let Some(file) = &arguments.save else { return Ok(()) };
    let universe = Universe::of(world, |key| shelf.items.get(key)?.data());
    write_universe(io, file, &universe)
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
}

impl Answer {
    /// What decides how the command ends.
    pub(super) fn counts(&self) -> &Journey {
        self.after.as_ref().unwrap_or(&self.before)
    }

    fn value(&self) -> Value {
        let mut value = value::journey(&self.before);
        if let Some(after) = &self.after {
            value["whatIf"] = value::journey(after);
            value["difference"] = value::difference(&self.before, after);
        }
        value
    }

    /// The answer for people. `changes` say what is supposed.
    pub(super) fn text(&self, changes: &[Change], colour: bool) -> String {
        let text = Text { colour, manual: &self.manual };
        let Some(after) = &self.after else { return text.journey(&self.before) };
        let mut out = text.journey(after);
        let (rows, same) = differences(&self.before, after);
        let typed: Vec<String> = changes.iter().map(|it| plain(&it.typed)).collect();
        let _ = writeln!(out, "  what changes with {}", typed.join(", "));
        if rows.is_empty() {
            out.push_str("    nothing\n");
        } else {
            let rows: Vec<Vec<String>> = rows.into_iter().map(Vec::from).collect();
            let table = columns(&["OPERATOR", "AS IT IS", "WHAT IF"], &rows);
            for line in table.lines() {
                let _ = writeln!(out, "    {line}");
            }
            if same > 0 {
                let _ = writeln!(out, "    and {same} as before");
            }
        }
        out
    }
}

fn answers_texts(arguments: &ResolveArguments, io: &Io<'_>, answers: &[Answer]) -> Vec<String> {
    answers.iter().map(|answer| answer.text(&arguments.changes, io.colour)).collect()
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
