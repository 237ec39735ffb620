//! `--universe`: a recorded world, and its outcome in the recorded shape.

use super::answer::{self, Answer};
use super::shelf::Remedies;
use super::targets::contradictions;
use super::walk::Journey;
use super::wish::{What, unusable};
use super::{Io, ResolveArguments, input, published, stopwatch, walk};
use crate::catalog::Format;
use crate::config::published_catalogs;
use crate::exit::{Exit, Failure};
use mainstay_cause::{Cause, Place};
use mainstay_resolver::CatalogKey;
use mainstay_resolver::universe::{self, CatalogData, RealCatalog, Universe, UniverseError};
use serde_json::json;
use std::collections::HashMap;

pub(super) fn run(
    arguments: &ResolveArguments,
    typed: &str,
    io: &mut Io<'_>,
) -> Result<Exit, Failure> {
    let text = input::text(io, typed)?;
    let wrong = |error| Failure::usage(refusal(typed, &text, error));
    let universe = universe::parse(&text).map_err(wrong)?;
    let root =
        arguments.published.clone().or_else(published_catalogs).map(|root| io.folder.join(root));
    let mut real: HashMap<String, RealCatalog> = HashMap::new();
    for name in universe.real_data() {
        let loaded = published::load(root.as_deref(), name).map_err(|why| {
            let message =
                format!("the published catalog {} is not at hand", mainstay_version::quote(name));
            Failure::usage(Cause::new(message).at(input::called(typed)).because(why))
        })?;
        real.insert(name.to_owned(), loaded);
    }
    let snapshots = universe.snapshots();
    let world = universe.world(&snapshots, &real).map_err(wrong)?;
    let mut supposed = world.clone();
    contradictions(arguments)?;
    answer::install(&mut supposed, &arguments.installed).map_err(Failure::usage)?;
    if let Some(version) = &arguments.kube_version {
        supposed.kube_version = Some(version.clone());
    }
    let as_it_is = supposed.clone();
    if arguments.changes.iter().any(|it| matches!(it.what, What::Catalog(_))) {
        let why = "the catalogs of a universe are in its file";
        return Err(Failure::usage(unusable("--what-if catalog=…", why)));
    }
    answer::suppose(&mut supposed, &arguments.changes).map_err(Failure::usage)?;
    let manual = universe.manual();
    let save = |io: &Io<'_>| match &arguments.save {
        Some(file) => {
            let data = |key: &CatalogKey| content(&universe, &real, key);
            answer::write_universe(io, file, &Universe::of(&supposed, data).with_manual(&manual))
        }
        None => Ok(()),
    };
    if arguments.output != Format::Text {
        let (outcome, ms) = stopwatch::timed(&supposed);
        let exit = if walk::fails(&outcome) { Exit::Unresolved } else { Exit::Done };
        let value = json!({"outcome": universe::report(&outcome), "ms": ms});
        // One line, so that many answers make a stream.
        let text = match arguments.output {
            Format::Yaml => mainstay_yaml::to_string(&value),
            _ => format!("{value}\n"),
        };
        io.print(&text);
        save(io)?;
        return Ok(exit);
    }
    let after = (!arguments.changes.is_empty()).then(|| Journey::of(&supposed));
    let answer = Answer {
        before: Journey::of(&as_it_is),
        after,
        manual: manual.clone(),
        changes: arguments.changes.clone(),
        said: Vec::new(),
    };
    io.print(&answer.text(io.colour, &Remedies::default()));
    save(io)?;
    Ok(answer::exit(arguments, std::iter::once(answer.counts())))
}

/// What a catalog of a universe holds, in plain data.
fn content(
    universe: &Universe,
    real: &HashMap<String, RealCatalog>,
    key: &CatalogKey,
) -> Option<CatalogData> {
    let is_it = |it: &&CatalogData| it.name == key.name && it.namespace == key.namespace;
    let given = universe.catalogs.iter().find(is_it)?;
    let published = real.get(&given.real_data).map(|it| CatalogData::of(&it.catalog));
    published.or_else(|| Some(given.clone()))
}

/// What is wrong with a universe, with its place in the file.
fn refusal(typed: &str, text: &str, error: UniverseError) -> Cause {
    let mut place: Place = input::called(typed);
    let known = (error.line > 0).then_some((error.line, error.column));
    if let Some((line, column)) = known.or_else(|| universe::locate(text, &error.field)) {
        (place.line, place.column) = (line, column);
    }
    let field = match &*error.field {
        "" => String::new(),
        field => format!("field `{field}`: "),
    };
    let why = Cause::new(crate::catalog::plain(&format!("{field}{}", error.message)));
    Cause::new("the universe cannot be read").because(why.at(place).remedy(error.remedy))
}
