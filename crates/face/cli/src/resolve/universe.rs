//! `--universe`: a recorded world, and its outcome in the recorded shape.

use super::{Format, Io, ResolveArguments, input, published, stopwatch};
use crate::exit::{Exit, Failure};
use mainstay_cause::{Cause, Place};
use mainstay_resolver::universe::{self, RealCatalog, UniverseError};
use serde_json::json;
use std::collections::HashMap;

pub(super) fn run(arguments: &ResolveArguments, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let typed = &arguments.universe;
    let text = input::text(io, typed)?;
    let wrong = |error| Failure::usage(refusal(typed, &text, error));
    let universe = universe::parse(&text).map_err(wrong)?;
    let root = arguments.published.as_ref().map(|root| io.folder.join(root));
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
    let (outcome, ms) = stopwatch::timed(&world);
    let exit = if outcome.failures.is_empty() { Exit::Done } else { Exit::Unresolved };
    let value = json!({"outcome": universe::report(&outcome), "ms": ms});
    io.print(&match arguments.output {
        Format::Json => format!("{value}\n"),
        Format::Text => format!("{value:#}\n"),
    });
    Ok(exit)
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
