//! The object store: the cost of durability, and the duration of a restart.

use crate::figure::{Figure, median};
use crate::redb_engine::Redb;
use crate::table::{Cell, Report, Table, percentile};
use anyhow::{Context, Result};
use mainstay_clock::Clock;
use mainstay_object::Object;
use mainstay_store::{Change, Key, Options, Precondition, Store};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Options of `store`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A folder on the disk to measure; a temporary one by default.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// The number of objects that one client creates sequentially.
    #[arg(long, default_value_t = 5_000)]
    single: usize,
    /// The number of objects that several clients create concurrently.
    #[arg(long, default_value_t = 50_000)]
    together: usize,
    /// The number of objects in a store that is reopened.
    #[arg(long, default_value_t = 20_000)]
    objects: usize,
}

/// The compared engines.
#[derive(Clone, Copy)]
enum Kind {
    Memory,
    Journal,
    Redb,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Journal => "journal",
            Self::Redb => "redb",
        }
    }

    fn open(self, folder: &Path) -> Result<Store> {
        fs::create_dir_all(folder)?;
        let options = Options::default();
        let store = match self {
            Self::Memory => Store::in_memory(options),
            Self::Journal => Store::open(folder, options)?.0,
            Self::Redb => Store::with_engine(Box::new(Redb::open(folder)?), options)?.0,
        };
        Ok(store)
    }
}

/// The number of times a store is reopened.
const REOPEN_COUNT: usize = 7;

pub(crate) async fn run(arguments: &Arguments) -> Result<Report> {
    let temporary = tempfile::tempdir()?;
    let folder = arguments.dir.as_deref().unwrap_or(temporary.path());
    let (memory, raw) = measure(Kind::Memory, folder, arguments).await?;
    let (journal, _) = measure(Kind::Journal, folder, arguments).await?;
    let (redb, _) = measure(Kind::Redb, folder, arguments).await?;
    let columns = [
        ("memory", "memory"),
        ("journal", "journal"),
        ("redb", "redb"),
        ("ratio", "journal : redb"),
    ];
    let mut table = Table::new("engines", "work", &columns);
    for (((key, title), memory), (journal, redb)) in
        MEASUREMENTS.iter().zip(memory).zip(journal.into_iter().zip(redb))
    {
        let ratio = journal.zip(redb).and_then(|(journal, redb)| journal.ratio_to(redb));
        table.row(*key, *title, [memory, journal, redb, ratio].map(Cell::from));
    }
    let mut report = Report::default();
    report.fact("object", Figure::number(size_of_one()?));
    report.fact("raw", Figure::size(raw));
    report.fact("openings", Figure::number(REOPEN_COUNT));
    report.table(table)?;
    Ok(report)
}

/// The measurements of each engine.
const MEASUREMENTS: [(&str, &str); 7] = [
    ("writes-1", "writes/s, 1 client"),
    ("writes-1-p50", "– p50"),
    ("writes-1-p99", "– p99"),
    ("writes-32", "writes/s, 32 clients"),
    ("writes-64", "writes/s, 64 clients"),
    ("open", "open"),
    ("disk", "on disk"),
];

/// The figures of [`MEASUREMENTS`], and the size of the reopened objects in bytes.
async fn measure(
    kind: Kind,
    folder: &Path,
    arguments: &Arguments,
) -> Result<([Option<Figure>; 7], u64)> {
    let clock = Clock::system();
    let at = |name: &str| folder.join(format!("{}-{name}", kind.name()));

    let store = kind.open(&at("single"))?;
    let mut samples = Vec::with_capacity(arguments.single);
    let start = clock.elapsed();
    for index in 0..arguments.single {
        let before = clock.elapsed();
        create(&store, index).await?;
        samples.push(clock.elapsed().saturating_sub(before));
    }
    let single = Figure::rate(arguments.single, clock.elapsed().saturating_sub(start));
    samples.sort_unstable();
    let [middle, slow] = [50, 99].map(|percent| Figure::time(percentile(&samples, percent)));
    close(store, &at("single")).await?;

    let mut together = Vec::new();
    for clients in [32, 64] {
        let store = kind.open(&at("together"))?;
        let elapsed = fill(&clock, &store, clients, arguments.together).await?;
        together.push(Figure::rate(arguments.together, elapsed));
        close(store, &at("together")).await?;
    }

    let folder = at("open");
    let store = kind.open(&folder)?;
    fill(&clock, &store, 64, arguments.objects).await?;
    let raw: usize = store.list("configmaps", None).iter().map(|object| object.size()).sum();
    store.close().await?;
    let (mut opened, mut on_disk) = (None, None);
    if !matches!(kind, Kind::Memory) {
        let mut times = Vec::new();
        for _ in 0..REOPEN_COUNT {
            let start = clock.elapsed();
            let store = kind.open(&folder)?;
            times.push(Figure::time(clock.elapsed().saturating_sub(start)));
            anyhow::ensure!(store.list("configmaps", None).len() == arguments.objects);
            store.close().await?;
        }
        opened = median(&times);
        on_disk = Some(Figure::size(size_on_disk(&folder)?));
    }
    fs::remove_dir_all(&folder).context("removing what was measured")?;
    let (many, most) = (together.first().copied(), together.get(1).copied());
    Ok(([Some(single), Some(middle), Some(slow), many, most, opened, on_disk], raw as u64))
}

/// Creates objects from several clients concurrently.
async fn fill(clock: &Clock, store: &Store, clients: usize, objects: usize) -> Result<Duration> {
    let start = clock.elapsed();
    let tasks: Vec<_> = (0..clients)
        .map(|client| {
            let store = store.clone();
            tokio::spawn(async move {
                for index in (client..objects).step_by(clients) {
                    create(&store, index).await?;
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    Ok(clock.elapsed().saturating_sub(start))
}

async fn create(store: &Store, index: usize) -> Result<()> {
    let object = config_map(index);
    let key = Key::new("configmaps", object.namespace(), object.name());
    let change = Change::Put { key, object: &object, expect: Precondition::Absent, guard: None };
    store.commit(change).await?;
    Ok(())
}

async fn close(store: Store, folder: &Path) -> Result<()> {
    store.close().await?;
    fs::remove_dir_all(folder).context("removing what was measured")
}

/// A ConfigMap of about 1.5 kB with a unique text.
pub(crate) fn config_map(index: usize) -> Object {
    let line = format!("{index:08}").repeat(16);
    let text: Vec<_> = (0..10).map(|line_number| format!("{line_number}: {line}")).collect();
    let mut object = Object::default();
    object.set(&["apiVersion"], "v1".into());
    object.set(&["kind"], "ConfigMap".into());
    object.set(
        &["metadata"],
        json!({
            "name": format!("object-{index:06}"),
            "namespace": format!("namespace-{}", index % 10),
            "labels": {"app": "bench", "part": format!("{}", index % 100)},
        }),
    );
    object.set(&["data", "text"], text.join("\n").into());
    object
}

/// The size of one such object as a client sends it, in bytes.
pub(crate) fn size_of_one() -> Result<usize> {
    Ok(serde_json::to_vec(&config_map(0))?.len())
}

fn size_on_disk(folder: &Path) -> Result<u64> {
    let mut total = 0;
    for entry in fs::read_dir(folder)? {
        total += entry?.metadata()?.len();
    }
    Ok(total)
}
