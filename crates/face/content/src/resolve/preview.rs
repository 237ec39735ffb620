//! Preview of a cluster state: the upgrade walk of each namespace, and another walk with the
//! supposed changes.

use super::argument::{ChangeArgument, unusable};
use super::extension::Extensions;
use super::observe::observe;
use super::remedies::Remedies;
use super::text::{Text, differences, tree};
use super::{ResolveArguments, contradictions, failure, value};
use mainstay_api::resources::CATALOG_SOURCE;
use mainstay_cause::Cause;
use mainstay_command::cluster::{ClusterHandle, read_registries};
use mainstay_command::exit::{CommandFailure, ExitStatus};
use mainstay_command::io::CommandIo;
use mainstay_command::io::place_of;
use mainstay_command::io::read_text;
use mainstay_command::text::columns;
use mainstay_command::text::escape_controls;
use mainstay_command::text::format_output;
use mainstay_gocompat::io_error_text;
use mainstay_gocompat::quote;
use mainstay_object::Object;
use mainstay_resolver::CatalogKey;
use mainstay_resolver::fixture::{Fixture, cause_json};
use mainstay_version::parse_tolerant;
use mainstay_whatif::{
    CatalogOverrides, CatalogSnapshots, ChangeTargets, ClusterState, FolderCache, NamespaceWalk,
    NamespaceWhatIf, Note, SavedStateReader, SnapshotContent, WhatIfChange, WhatIfQuery,
    check_namespace, compare, namespaces_to_resolve, one_of,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;

pub(super) async fn run<C: ClusterHandle>(
    arguments: &ResolveArguments,
    io: &mut CommandIo<'_>,
    connect: impl AsyncFnOnce() -> Result<C, CommandFailure>,
) -> Result<ExitStatus, CommandFailure> {
    if !arguments.needs_cluster() && arguments.states.is_empty() && arguments.catalogs.is_empty() {
        let cause = Cause::new("no catalog is given");
        return Err(CommandFailure::usage(
            cause.remedy("name one with --catalog NAME=DIR, or read the cluster with --cluster"),
        ));
    }
    contradictions::check(arguments)?;
    let mut state = saved_states(io, &arguments.states)?;
    let cluster = if arguments.needs_cluster() { Some(connect().await?) } else { None };
    let mut existing = None;
    if let Some(cluster) = &cluster {
        let listing = observe(cluster, arguments.namespace.as_deref()).await?;
        for object in listing.objects {
            state.add(object);
        }
        if let Some(namespace) = &arguments.namespace {
            state.restrict_to(namespace, &listing.hidden);
        }
        let kube_version = cluster.kube_version().await;
        state.kube_version = kube_version.and_then(|text| parse_tolerant(&text).ok());
        if arguments.namespace.is_some() {
            existing = cluster.namespaces().await;
        }
    }
    let packages = arguments.packages();
    restrict_to_extensions(arguments, &mut state)?;
    let complete = cluster.is_some() || !arguments.installed.is_empty();
    state.note_deleted_versions(complete).map_err(|error| failure::missing_versions(&error))?;
    if let Some(version) = &arguments.kube_version {
        state.kube_version = Some(version.clone());
    }
    let changes: Vec<WhatIfChange> =
        arguments.changes.iter().map(|argument| argument.change.clone()).collect();
    let namespaces = namespaces(arguments, &state, &changes, existing.as_deref())?;
    let overrides = CatalogOverrides {
        folders: &arguments.catalogs,
        priorities: &arguments.priorities,
        requests_packages: !packages.is_empty(),
    };
    let targets = ChangeTargets::of(&changes, &state, &namespaces, overrides.requests_packages)
        .map_err(|error| failure::target(&error, &arguments.changes))?;
    let global = state.global_namespace();
    let global = arguments.global_namespace.as_deref().unwrap_or(global);
    let folders = FolderCache::new(&io.folder);
    let mut catalogs =
        CatalogSnapshots::assemble(&folders, &state, global, &namespaces, &overrides)
            .map_err(|error| failure::catalogs(&error))?;
    if let Some(cluster) = &cluster {
        read_registries(cluster, &mut catalogs).await;
    }
    let mut changed_catalogs = catalogs.clone();
    for change in &changes {
        if let WhatIfChange::ReplaceContent(folder) = change
            && state.is_for_subscriptions(&folder.name, overrides.requests_packages)
        {
            changed_catalogs
                .put(&folders, folder, global)
                .map_err(|error| failure::catalogs(&error))?;
        }
    }
    let final_catalogs = if changes.is_empty() { &catalogs } else { &changed_catalogs };
    let query = WhatIfQuery {
        state: &state,
        global_namespace: global,
        namespaces: &namespaces,
        requests: &packages,
        installed: &arguments.installed,
        changes: &changes,
        targets: &targets,
        is_live: arguments.needs_cluster(),
        records_input: arguments.save.is_some(),
    };
    let previews = match query.run_what_if(&catalogs, &changed_catalogs) {
        Ok(previews) => previews,
        Err(error) => {
            let why = failure::what_if(&error, &arguments.changes);
            // The missing name may be in a folder without a valid catalog.
            if final_catalogs.has_unusable_folder() {
                return Ok(report_invalid_folder(arguments, io, final_catalogs, &why));
            }
            // It may also be in a catalog that the account may not see.
            let unseen = state.notes.iter().filter(|note| is_about_catalogs(note));
            let unseen = unseen.map(|note| Cause::new(note.to_string()));
            return Err(CommandFailure::usage(why.because_all(unseen)));
        }
    };
    // ClusterExtensions belong to no namespace.
    let extensions = if arguments.namespace.is_none() {
        Extensions::of(&folders, &state, &overrides, &changes, arguments)?
    } else {
        Extensions::default()
    };
    let hidden = final_catalogs.hidden();
    let mut notes: Vec<String> = state.notes.iter().map(|note| note_text(note, &hidden)).collect();
    if !extensions.is_empty() {
        notes.extend(extensions.notes(arguments));
    }
    let remedies = Remedies::of(final_catalogs);
    let change_arguments = &arguments.changes;
    let mut value = json!({
        "catalogs": catalogs_value(final_catalogs),
        "namespaces": previews.iter().map(namespace_value).collect::<Vec<_>>(),
        "whatIf": change_arguments.iter().map(|change| &*change.text).collect::<Vec<_>>(),
        "notes": notes,
    });
    if !extensions.is_empty() {
        extensions.add_to(&mut value);
    }
    remedies.replace_in(&mut value);
    let text = format_output(arguments.output, &value, || {
        let mut texts: Vec<String> = previews
            .iter()
            .map(|preview| namespace_text(preview, change_arguments, io.colour, &remedies))
            .collect();
        texts.extend((!extensions.is_empty()).then(|| extensions.text(io.colour)));
        let notes = notes
            .iter()
            .fold(String::new(), |all, note| format!("{all}note: {}\n", escape_controls(note)));
        format!("{notes}{}{}", catalogs_text(final_catalogs), texts.join("\n"))
    });
    io.print(&text);
    let recorded = previews.iter().rev().find_map(|preview| preview.recorded.as_ref());
    if let (Some(file), Some(universe)) = (&arguments.save, recorded) {
        write_universe(io, file, universe)?;
    }
    // A named folder without a valid catalog is a failure, even if nothing depends on it.
    let exit = exit(arguments, previews.iter().map(NamespaceWhatIf::final_walk));
    let exit = extensions.exit(arguments, exit);
    Ok(if final_catalogs.has_unusable_folder() { ExitStatus::Unresolved } else { exit })
}

/// Restricts a state to the ClusterExtensions that the arguments name. Without requested packages, operators
/// of OLM classic are left out.
///
/// # Errors
/// The state has no ClusterExtension of a name.
fn restrict_to_extensions(
    arguments: &ResolveArguments,
    state: &mut ClusterState,
) -> Result<(), CommandFailure> {
    let names = arguments.extension_names();
    if names.is_empty() {
        return Ok(());
    }
    for name in &names {
        if state.extensions.iter().any(|extension| extension.name() == *name) {
            continue;
        }
        let whose = if arguments.needs_cluster() { "cluster" } else { "state" };
        let cause = Cause::new(format!("the {whose} has no ClusterExtension {}", quote(name)));
        let known: Vec<&str> = state.extensions.iter().map(Object::name).take(5).collect();
        return Err(CommandFailure::usage(match known.as_slice() {
            [] => cause.remedy("give its manifest with --state FILE, or `--state -`"),
            known => cause.remedy(format!("name one of {}", known.join(", "))),
        }));
    }
    let all = std::mem::take(&mut state.extensions);
    (state.extensions, state.other_extensions) =
        all.into_iter().partition(|extension| names.contains(&extension.name()));
    if arguments.packages().is_empty() {
        state.namespaces.clear();
        state.sources.clear();
    }
    Ok(())
}

/// Reads saved states.
fn saved_states(io: &mut CommandIo<'_>, files: &[String]) -> Result<ClusterState, CommandFailure> {
    if files.iter().filter(|argument| *argument == "-").count() > 1 {
        let why = Cause::new("standard input can be read once only");
        return Err(failure::unreadable_state(why.remedy("name `--state -` once")));
    }
    let mut reader = SavedStateReader::default();
    for argument in files {
        let text = read_text(io, argument)?;
        reader.read(&place_of(argument), &text).map_err(|error| failure::saved_state(&error))?;
    }
    Ok(reader.finish())
}

/// The namespaces to resolve.
fn namespaces(
    arguments: &ResolveArguments,
    state: &ClusterState,
    changes: &[WhatIfChange],
    existing: Option<&[String]>,
) -> Result<Vec<String>, CommandFailure> {
    let Some(namespace) = &arguments.namespace else {
        let requests_objects = !arguments.packages().is_empty()
            || !arguments.installed.is_empty()
            || arguments.save.is_some();
        let namespaces = namespaces_to_resolve(state, changes, requests_objects);
        return one_namespace(arguments, &namespaces).map(|()| namespaces);
    };
    // Without a state or a cluster, no namespace can be missing.
    if arguments.needs_cluster() || !arguments.states.is_empty() {
        check_namespace(namespace, state, existing).map_err(|unknown| {
            let whose = if arguments.needs_cluster() { "cluster" } else { "state" };
            let why = format!("the {whose} has no objects in namespace {}", quote(namespace));
            let cause = unusable(&format!("-n {namespace}"), why);
            CommandFailure::usage(failure::suggest(cause, unknown.suggestion.as_ref()))
        })?;
    }
    Ok(vec![namespace.clone()])
}

/// Refuses an argument about one namespace if several are resolved.
fn one_namespace(
    arguments: &ResolveArguments,
    namespaces: &[String],
) -> Result<(), CommandFailure> {
    if namespaces.len() < 2 {
        return Ok(());
    }
    let package = arguments.packages().first().map(ToString::to_string);
    let installed = arguments.installed.first().map(|bundle| format!("--installed {bundle}"));
    let save = arguments.save.as_ref().map(|file| format!("--save {}", file.display()));
    match package.or(installed).or(save) {
        Some(argument) => {
            let cause = unusable(&argument, one_of(namespaces));
            Err(CommandFailure::usage(failure::choose_namespace(cause)))
        }
        None => Ok(()),
    }
}

/// Prints that a folder has no valid catalog, without which there is no preview.
fn report_invalid_folder(
    arguments: &ResolveArguments,
    io: &mut CommandIo<'_>,
    catalogs: &CatalogSnapshots,
    why: &Cause,
) -> ExitStatus {
    let value = json!({
        "catalogs": catalogs_value(catalogs),
        "namespaces": [],
        "explanation": cause_json(why),
    });
    let text = format_output(arguments.output, &value, || {
        let mut out = catalogs_text(catalogs);
        tree(&mut out, why, "");
        out
    });
    io.print(&text);
    ExitStatus::Unresolved
}

/// The exit code for walks.
pub(super) fn exit<'w>(
    arguments: &ResolveArguments,
    walks: impl Iterator<Item = &'w NamespaceWalk>,
) -> ExitStatus {
    let mut exit = ExitStatus::Done;
    for walk in walks {
        if walk.fails() {
            return ExitStatus::Unresolved;
        }
        if walk.changes() && arguments.exit_code {
            exit = ExitStatus::Changes;
        }
    }
    exit
}

/// Writes a universe to a file.
pub(super) fn write_universe(
    io: &CommandIo<'_>,
    file: &std::path::Path,
    universe: &Fixture,
) -> Result<(), CommandFailure> {
    let text = serde_json::to_string_pretty(universe)
        .map_err(|error| failure::universe_not_written(file, error.to_string()))?;
    std::fs::write(io.folder.join(file), text + "\n")
        .map_err(|error| failure::universe_not_written(file, io_error_text(&error)))
}

/// The preview of a namespace as JSON.
fn namespace_value(preview: &NamespaceWhatIf) -> Value {
    let mut value = value::walk(&preview.before, &preview.manual);
    if let Some(after) = &preview.after {
        value["whatIf"] = value::walk(after, &preview.manual);
        value["difference"] = value::difference(&compare(&preview.before, after));
    }
    if !preview.disagreements.is_empty() {
        let reported = preview.disagreements.iter();
        value["clusterSays"] = reported
            .map(|(name, condition)| json!({"subscription": name, "message": condition}))
            .collect();
    }
    value
}

/// The preview of a namespace as text.
pub(super) fn namespace_text(
    preview: &NamespaceWhatIf,
    changes: &[ChangeArgument],
    colour: bool,
    remedies: &Remedies,
) -> String {
    let text = Text { colour, manual: &preview.manual, remedies };
    let mut out = text.walk(preview.final_walk());
    for (name, condition) in &preview.disagreements {
        let _ = writeln!(
            out,
            "  the cluster reports another result for Subscription {}: {}",
            escape_controls(name),
            escape_controls(condition)
        );
        out.push_str(
            "    its controller may not have resolved again yet, may read other catalog content, or may fail the whole namespace\n",
        );
    }
    let Some(after) = &preview.after else { return out };
    let (rows, same) = differences(&compare(&preview.before, after));
    let texts: Vec<String> = preview
        .changes
        .iter()
        .filter_map(|at| changes.get(*at))
        .map(|change| escape_controls(&change.text))
        .collect();
    let _ = writeln!(out, "  changes with {}", texts.join(", "));
    difference(&mut out, rows, same);
    out
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
        let _ = writeln!(out, "    and {same} unchanged");
    }
}

/// Whether a note is about CatalogSources that the account may not see.
fn is_about_catalogs(note: &Note) -> bool {
    matches!(note, Note::Hidden(hidden) if hidden.kind == CATALOG_SOURCE.kind)
}

/// A note as text. The note about hidden CatalogSources names the missing catalogs, and how to see
/// them.
fn note_text(note: &Note, hidden: &BTreeSet<CatalogKey>) -> String {
    if hidden.is_empty() || !is_about_catalogs(note) {
        return note.to_string();
    }
    let names: Vec<String> =
        hidden.iter().map(|key| format!("{}/{}", key.namespace, key.name)).collect();
    let give: Vec<String> = names.iter().map(|name| format!("--catalog {name}=DIR")).collect();
    let namespaces: BTreeSet<&str> = hidden.iter().map(|key| &*key.namespace).collect();
    let grants = namespaces.iter().map(|namespace| {
        format!(
            "kubectl -n {namespace} create rolebinding see-catalogs --clusterrole=view --user=YOU"
        )
    });
    let grants: Vec<String> = grants.collect();
    format!(
        "{note}; to read {}, have an administrator run: {}; or give the content with {}",
        names.join(" and "),
        grants.join("; "),
        give.join(" "),
    )
}

/// The catalogs without content, each with its remedy. A note reports those that the account may not
/// see.
fn catalogs_text(catalogs: &CatalogSnapshots) -> String {
    let mut out = String::new();
    for (key, snapshot) in &catalogs.catalogs {
        let Some(cause) = failure::content(key, &snapshot.content) else { continue };
        if snapshot.content.is_hidden() {
            continue;
        }
        let word = match &*snapshot.content {
            SnapshotContent::Unusable { .. } => "cannot be used",
            _ => "has no content here",
        };
        let _ = writeln!(
            out,
            "catalog {} {word}",
            escape_controls(&format!("{}/{}", key.namespace, key.name))
        );
        for line in cause.render().lines() {
            let _ = writeln!(out, "  {}", escape_controls(line));
        }
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

fn catalogs_value(catalogs: &CatalogSnapshots) -> Value {
    catalogs
        .catalogs
        .iter()
        .map(|(key, snapshot)| {
            let state = match &*snapshot.content {
                SnapshotContent::Ready(..) => "ready",
                SnapshotContent::Missing(_) => "missing",
                SnapshotContent::Unusable { .. } => "failed",
            };
            let mut value = json!({
                "name": key.name, "namespace": key.namespace, "priority": snapshot.priority,
                "state": state,
            });
            if let Some(origin) = &snapshot.origin {
                value["from"] = json!(origin.to_string());
            }
            if let Some(cause) = failure::content(key, &snapshot.content) {
                value["explanation"] = cause_json(&cause);
            }
            value
        })
        .collect()
}
