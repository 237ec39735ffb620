//! Hard cases: generated resolutions that are expensive; each is measured in a process of its own.

use crate::figure::Figure;
use crate::process::own_memory;
use crate::table::Table;
use anyhow::{Context, Result, ensure};
use mainstay_clock::processor_time;
use mainstay_reference::hostile::{self, CatalogBuilder, OwnedInput};
use mainstay_resolver::{FailureKind, Resolution, resolve};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::process::Command;
use std::time::Duration;

/// A hard case: its description and its generator.
type Maker = (&'static str, fn() -> OwnedInput);

/// All hard cases.
const WORLDS: [Maker; 11] = [
    ("1,000 Subscriptions, each with a chain of 4 packages of 3 versions", || {
        hostile::subscriptions(1_000, 4)
    }),
    ("20,000 bundles, every one of which is needed", tree),
    ("a channel of 5,000 entries", || hostile::long_channel(5_000)),
    ("a channel of 5,000 entries, none of which can be met", lacking_channel),
    ("100 catalogs with the same 100 packages, in a ring of requirements", || {
        hostile::catalogs(100, 100)
    }),
    ("a ring of 5,000 packages", || hostile::cycle(5_000)),
    ("a ring of 501 rivals, of which every second has to go", || hostile::rivals(501)),
    ("7 pigeons in 6 holes", || hostile::pigeons(6)),
    ("13 pigeons in 12 holes", || hostile::pigeons(12)),
    ("a CEL rule of 6 nested loops, 1,000 bundles of 11 properties", || {
        hostile::costly_rule(6, 1_000)
    }),
    ("20 constraints, nested 36 deep, of 2,000 kinds each, 1,000 bundles", || {
        hostile::nests(1_000, 20)
    }),
];

/// The measurement of one case.
#[derive(Serialize, Deserialize)]
struct Figures {
    creation: Duration,
    first: Duration,
    again: Duration,
    /// Memory before the first resolution.
    before: u64,
    /// Peak memory.
    most: u64,
    result: String,
}

/// Measures all cases.
pub(super) fn measure() -> Result<Table> {
    let own = std::env::current_exe().context("finding out where this program is")?;
    let columns = [
        ("made", "snapshots"),
        ("first", "first"),
        ("again", "again"),
        ("result", "result"),
        ("memory", "memory with the snapshots"),
        ("most", "most"),
    ];
    let mut table = Table::new("hard", "input", &columns);
    for (at, (name, _)) in WORLDS.iter().enumerate() {
        let number = at.to_string();
        let output = Command::new(&own).args(["resolver", "--hard", &number]).output();
        let output = output.context("starting a process of its own")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{name}: {} {errors}", output.status);
        let figures: Figures = serde_json::from_slice(&output.stdout).context(*name)?;
        let Figures { creation, first, again, before, most, result } = figures;
        let [creation, first, again] =
            [creation, first, again].map(|time| Figure::time(time).into());
        let [before, most] = [before, most].map(|bytes| Figure::size(bytes).into());
        table.row(
            format!("hard-{at}"),
            *name,
            [creation, first, again, result.into(), before, most],
        );
    }
    Ok(table)
}

/// Measures one case, and prints the result for [`measure`].
pub(super) fn measure_one(number: usize) -> Result<()> {
    let (_, make) = WORLDS.get(number).context("there is no such input")?;
    let start = processor_time();
    let place = make();
    let creation_end = processor_time();
    let input = place.input();
    let (before, _) = own_memory()?;
    let begin = processor_time();
    let outcome = black_box(resolve(&input));
    let median_time = processor_time();
    black_box(resolve(&input));
    let figures = Figures {
        creation: creation_end.saturating_sub(start),
        first: median_time.saturating_sub(begin),
        again: processor_time().saturating_sub(median_time),
        before,
        most: own_memory()?.1,
        result: result(&outcome),
    };
    println!("{}", serde_json::to_string(&figures)?);
    Ok(())
}

fn result(outcome: &Resolution) -> String {
    let resolved = match outcome.resolved.len() {
        1 => "1 bundle".to_owned(),
        many => format!("{many} bundles"),
    };
    match outcome.failures.as_slice() {
        [] => resolved,
        [first, ..] if first.kind == FailureKind::NotSatisfiable => "not satisfiable".to_owned(),
        // Explanations follow the first comma.
        [first, ..] => first.message.split(", ").next().unwrap_or_default().to_owned(),
    }
}

/// A tree: each bundle provides its own kind and requires the two below it.
fn tree() -> OwnedInput {
    const COUNT: usize = 20_000;
    let mut shelf = CatalogBuilder::default();
    for at in 0..COUNT {
        let below = [2 * at + 1, 2 * at + 2].into_iter().filter(|below| *below < COUNT);
        let mut properties = vec![hostile::provides(&format!("Kind{at}"))];
        properties.extend(below.map(|below| hostile::requires(&format!("Kind{below}"))));
        shelf.one(&format!("b{at:05}"), &properties);
    }
    OwnedInput::new(shelf, ["b00000".to_owned()])
}

fn lacking_channel() -> OwnedInput {
    let mut shelf = CatalogBuilder::default();
    shelf.many("long", &vec![vec![hostile::requires("Nothing")]; 5_000]);
    OwnedInput::new(shelf, ["long".to_owned()])
}
