//! `--universe`: resolves a universe (a resolution input in one JSON file), and prints the outcome in
//! the format of recorded outcomes.

use super::argument::unusable;
use super::remedies::Remedies;
use super::{ResolveArguments, contradictions, failure, preview, stopwatch};
use mainstay_cause::{Cause, FileLocation};
use mainstay_command::environment::published_catalogs;
use mainstay_command::exit::{CommandFailure, ExitStatus};
use mainstay_command::io::CommandIo;
use mainstay_command::io::{place_of, read_text};
use mainstay_command::text::Format;
use mainstay_resolver::CatalogKey;
use mainstay_resolver::fixture::{self, CatalogData, Fixture, FixtureError, RealCatalog};
use mainstay_whatif::{
    NamespaceWalk, NamespaceWhatIf, WhatIfChange, check_published_name, fails, install_all,
    load_published, suppose,
};
use serde_json::json;
use std::collections::HashMap;
use std::path::Path;

pub(super) fn run(
    arguments: &ResolveArguments,
    argument: &str,
    io: &mut CommandIo<'_>,
) -> Result<ExitStatus, CommandFailure> {
    let text = read_text(io, argument)?;
    let invalid = |error| CommandFailure::usage(refusal(argument, &text, error));
    let fixture = fixture::parse(&text).map_err(invalid)?;
    let root =
        arguments.published.clone().or_else(published_catalogs).map(|root| io.folder.join(root));
    let mut real_catalogs: HashMap<String, RealCatalog> = HashMap::new();
    for name in fixture.real_data() {
        let loaded = load_published_catalog(root.as_deref(), name)
            .map_err(|why| failure::missing_published_catalog(argument, name, why))?;
        real_catalogs.insert(name.to_owned(), loaded);
    }
    let snapshots = fixture.snapshots();
    let input = fixture.input(&snapshots, &real_catalogs).map_err(invalid)?;
    let mut changed_input = input.clone();
    contradictions::check(arguments)?;
    install_all(&mut changed_input, &arguments.installed)
        .map_err(|error| CommandFailure::usage(failure::change(&error)))?;
    if let Some(version) = &arguments.kube_version {
        changed_input.kube_version = Some(version.clone());
    }
    let unchanged_input = changed_input.clone();
    let replaces = |change: &WhatIfChange| matches!(change, WhatIfChange::ReplaceContent(_));
    if arguments.changes.iter().any(|argument| replaces(&argument.change)) {
        let why = "the catalogs of a universe are in its file";
        return Err(CommandFailure::usage(unusable("--what-if catalog=…", why)));
    }
    suppose(
        &mut changed_input,
        arguments.changes.iter().map(|argument| &argument.change).enumerate(),
    )
    .map_err(|error| CommandFailure::usage(failure::what_if(&error, &arguments.changes)))?;
    let manual = fixture.manual();
    let save = |io: &CommandIo<'_>| match &arguments.save {
        Some(file) => {
            let data = |key: &CatalogKey| content(&fixture, &real_catalogs, key);
            preview::write_universe(
                io,
                file,
                &Fixture::of(&changed_input, data).with_manual(&manual),
            )
        }
        None => Ok(()),
    };
    if arguments.output != Format::Text {
        let (outcome, ms) = stopwatch::resolve_timed(&changed_input);
        let exit = if fails(&outcome) { ExitStatus::Unresolved } else { ExitStatus::Done };
        let value = json!({"outcome": fixture::report(&outcome), "ms": ms});
        // One line, so that the results of several runs form a stream.
        let text = match arguments.output {
            Format::Yaml => mainstay_yaml::to_string(&value),
            _ => format!("{value}\n"),
        };
        io.print(&text);
        save(io)?;
        return Ok(exit);
    }
    let after = (!arguments.changes.is_empty()).then(|| NamespaceWalk::of(&changed_input));
    let namespace_preview = NamespaceWhatIf {
        before: NamespaceWalk::of(&unchanged_input),
        after,
        manual: manual.clone(),
        changes: (0..arguments.changes.len()).collect(),
        disagreements: Vec::new(),
        recorded: None,
    };
    let text = preview::namespace_text(
        &namespace_preview,
        &arguments.changes,
        io.colour,
        &Remedies::default(),
    );
    io.print(&text);
    save(io)?;
    Ok(preview::exit(arguments, std::iter::once(namespace_preview.final_walk())))
}

/// Loads a published catalog that the universe names.
fn load_published_catalog(root: Option<&Path>, name: &str) -> Result<RealCatalog, Cause> {
    check_published_name(name).map_err(|error| failure::published(&error))?;
    let root = root.ok_or_else(|| {
        Cause::new("the folder of published catalogs is not named")
            .remedy("name their folder with --published DIR, or in MAINSTAY_PUBLISHED")
    })?;
    load_published(root, name).map_err(|error| failure::published(&error))
}

/// The content of a universe's catalog as plain data.
fn content(
    fixture: &Fixture,
    real_catalogs: &HashMap<String, RealCatalog>,
    key: &CatalogKey,
) -> Option<CatalogData> {
    let is_named = |data: &&CatalogData| data.name == key.name && data.namespace == key.namespace;
    let given = fixture.catalogs.iter().find(is_named)?;
    let published = real_catalogs
        .get(&given.real_data)
        .map(|real_catalog| CatalogData::of(&real_catalog.catalog));
    published.or_else(|| Some(given.clone()))
}

/// The cause of an error in a universe, with its place in the file.
fn refusal(argument: &str, text: &str, error: FixtureError) -> Cause {
    let mut place: FileLocation = place_of(argument);
    let known = (error.line > 0).then_some((error.line, error.column));
    if let Some((line, column)) = known.or_else(|| fixture::locate(text, &error.field)) {
        (place.line, place.column) = (line, column);
    }
    let field = match &*error.field {
        "" => String::new(),
        field => format!("field `{field}`: "),
    };
    let why =
        Cause::new(mainstay_command::text::escape_controls(&format!("{field}{}", error.message)));
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
