//! `--universe`: resolves a recorded world, and prints the outcome in the recorded format.

use super::argument::unusable;
use super::remedies::Remedies;
use super::{Io, ResolveArguments, answer, contradictions, failure, input, stopwatch};
use crate::catalog::Format;
use crate::config::published_catalogs;
use crate::exit::{Exit, Failure};
use mainstay_cause::{Cause, FileLocation};
use mainstay_resolver::CatalogKey;
use mainstay_resolver::universe::{self, CatalogData, RealCatalog, Universe, UniverseError};
use mainstay_whatif::{
    Change, NamespaceAnswer, NamespaceWalk, check_published_name, fails, install_all,
    load_published, suppose,
};
use serde_json::json;
use std::collections::HashMap;
use std::path::Path;

pub(super) fn run(
    arguments: &ResolveArguments,
    argument: &str,
    io: &mut Io<'_>,
) -> Result<Exit, Failure> {
    let text = input::read_text(io, argument)?;
    let invalid = |error| Failure::usage(refusal(argument, &text, error));
    let universe = universe::parse(&text).map_err(invalid)?;
    let root =
        arguments.published.clone().or_else(published_catalogs).map(|root| io.folder.join(root));
    let mut real_catalogs: HashMap<String, RealCatalog> = HashMap::new();
    for name in universe.real_data() {
        let loaded = load_published_catalog(root.as_deref(), name)
            .map_err(|why| failure::missing_published_catalog(argument, name, why))?;
        real_catalogs.insert(name.to_owned(), loaded);
    }
    let snapshots = universe.snapshots();
    let world = universe.world(&snapshots, &real_catalogs).map_err(invalid)?;
    let mut changed_world = world.clone();
    contradictions::check(arguments)?;
    install_all(&mut changed_world, &arguments.installed)
        .map_err(|error| Failure::usage(failure::change(&error)))?;
    if let Some(version) = &arguments.kube_version {
        changed_world.kube_version = Some(version.clone());
    }
    let unchanged_world = changed_world.clone();
    let replaces = |change: &Change| matches!(change, Change::ReplaceContent(_));
    if arguments.changes.iter().any(|argument| replaces(&argument.change)) {
        let why = "the catalogs of a universe are in its file";
        return Err(Failure::usage(unusable("--what-if catalog=…", why)));
    }
    suppose(
        &mut changed_world,
        arguments.changes.iter().map(|argument| &argument.change).enumerate(),
    )
    .map_err(|error| Failure::usage(failure::question(&error, &arguments.changes)))?;
    let manual = universe.manual();
    let save = |io: &Io<'_>| match &arguments.save {
        Some(file) => {
            let data = |key: &CatalogKey| content(&universe, &real_catalogs, key);
            answer::write_universe(
                io,
                file,
                &Universe::of(&changed_world, data).with_manual(&manual),
            )
        }
        None => Ok(()),
    };
    if arguments.output != Format::Text {
        let (outcome, ms) = stopwatch::resolve_timed(&changed_world);
        let exit = if fails(&outcome) { Exit::Unresolved } else { Exit::Done };
        let value = json!({"outcome": universe::report(&outcome), "ms": ms});
        // One line, so that the answers of several runs form a stream.
        let text = match arguments.output {
            Format::Yaml => mainstay_yaml::to_string(&value),
            _ => format!("{value}\n"),
        };
        io.print(&text);
        save(io)?;
        return Ok(exit);
    }
    let after = (!arguments.changes.is_empty()).then(|| NamespaceWalk::of(&changed_world));
    let answer = NamespaceAnswer {
        before: NamespaceWalk::of(&unchanged_world),
        after,
        manual: manual.clone(),
        changes: (0..arguments.changes.len()).collect(),
        disagreements: Vec::new(),
        recorded: None,
    };
    let text = answer::answer_text(&answer, &arguments.changes, io.colour, &Remedies::default());
    io.print(&text);
    save(io)?;
    Ok(answer::exit(arguments, std::iter::once(answer.final_walk())))
}

/// Loads a published catalog that the universe names.
fn load_published_catalog(root: Option<&Path>, name: &str) -> Result<RealCatalog, Cause> {
    check_published_name(name).map_err(|error| failure::published(&error))?;
    let root = root.ok_or_else(|| {
        Cause::new("it is not said where the published catalogs are")
            .remedy("name their folder with --published DIR, or in MAINSTAY_PUBLISHED")
    })?;
    load_published(root, name).map_err(|error| failure::published(&error))
}

/// The content of a universe's catalog as plain data.
fn content(
    universe: &Universe,
    real_catalogs: &HashMap<String, RealCatalog>,
    key: &CatalogKey,
) -> Option<CatalogData> {
    let is_named = |data: &&CatalogData| data.name == key.name && data.namespace == key.namespace;
    let given = universe.catalogs.iter().find(is_named)?;
    let published = real_catalogs
        .get(&given.real_data)
        .map(|real_catalog| CatalogData::of(&real_catalog.catalog));
    published.or_else(|| Some(given.clone()))
}

/// The cause of an error in a universe, with its place in the file.
fn refusal(argument: &str, text: &str, error: UniverseError) -> Cause {
    let mut place: FileLocation = input::place_of(argument);
    let known = (error.line > 0).then_some((error.line, error.column));
    if let Some((line, column)) = known.or_else(|| universe::locate(text, &error.field)) {
        (place.line, place.column) = (line, column);
    }
    let field = match &*error.field {
        "" => String::new(),
        field => format!("field `{field}`: "),
    };
    let why = Cause::new(crate::catalog::escape_controls(&format!("{field}{}", error.message)));
    Cause::new("the universe cannot be read").because(why.at(place).remedy(error.remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_catalog_needs_a_folder_from_an_option_or_its_variable() {
        let Err(cause) = load_published_catalog(None, "x") else { panic!("no folder is named") };
        assert_eq!(
            cause.remedies(),
            ["name their folder with --published DIR, or in MAINSTAY_PUBLISHED"]
        );
    }
}
