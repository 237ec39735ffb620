//! The store: what durability costs, and how long a restart takes.

use crate::redb_engine::Redb;
use crate::table::{Table, megabytes, millis, per_second, percentile};
use anyhow::{Context, Result};
use mainstay_clock::Clock;
use mainstay_object::Object;
use mainstay_store::{Change, Expect, Key, Options, Store};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How much of everything, unless said otherwise.
const SINGLE: usize = 5_000;
const TOGETHER: usize = 50_000;
const OBJECTS: usize = 20_000;

/// What to measure, and where.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A folder on the disk to measure; a temporary one by default.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// How many objects are created by one client, one after the other.
    #[arg(long, default_value_t = SINGLE)]
    single: usize,
    /// How many objects are created by several clients together.
    #[arg(long, default_value_t = TOGETHER)]
    together: usize,
    /// How many objects a store holds when it is opened again.
    #[arg(long, default_value_t = OBJECTS)]
    objects: usize,
}

impl Arguments {
    /// The usual amounts, on the disk of this folder.
    pub(crate) const fn at(dir: Option<PathBuf>) -> Self {
        Self { dir, single: SINGLE, together: TOGETHER, objects: OBJECTS }
    }
}

/// The engines that are compared.
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
            Self::Redb => "redb, quick repair",
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

pub(crate) async fn run(arguments: &Arguments) -> Result<()> {
    let temporary = tempfile::tempdir()?;
    let folder = arguments.dir.as_deref().unwrap_or(temporary.path());
    let mut table = Table::new(&[
        "engine",
        "1 client, writes/s",
        "p50",
        "p99",
        "32 clients, writes/s",
        "64 clients, writes/s",
        "open",
        "on disk",
        "raw",
    ]);
    for kind in [Kind::Memory, Kind::Journal, Kind::Redb] {
        table.row(measure(kind, folder, arguments).await?);
    }
    println!("Objects of {} bytes; `open` with {} of them.\n", size_of_one()?, arguments.objects);
    println!("{table}");
    Ok(())
}

async fn measure(kind: Kind, folder: &Path, arguments: &Arguments) -> Result<Vec<String>> {
    let clock = Clock::system();
    let mut cells = vec![kind.name().to_owned()];
    let at = |name: &str| folder.join(format!("{}-{name}", kind.name().replace([',', ' '], "")));

    let store = kind.open(&at("single"))?;
    let mut samples = Vec::with_capacity(arguments.single);
    let start = clock.elapsed();
    for index in 0..arguments.single {
        let before = clock.elapsed();
        create(&store, index).await?;
        samples.push(clock.elapsed().saturating_sub(before));
    }
    cells.push(per_second(arguments.single, clock.elapsed().saturating_sub(start)));
    samples.sort_unstable();
    cells.push(millis(percentile(&samples, 50)));
    cells.push(millis(percentile(&samples, 99)));
    close(store, &at("single")).await?;

    for clients in [32, 64] {
        let store = kind.open(&at("together"))?;
        let elapsed = fill(&clock, &store, clients, arguments.together).await?;
        cells.push(per_second(arguments.together, elapsed));
        close(store, &at("together")).await?;
    }

    let folder = at("open");
    let store = kind.open(&folder)?;
    fill(&clock, &store, 64, arguments.objects).await?;
    let raw: usize = store.list("configmaps", None).iter().map(|it| it.size()).sum();
    store.close().await?;
    if matches!(kind, Kind::Memory) {
        cells.extend(["–".to_owned(), "–".to_owned()]);
    } else {
        let mut times = Vec::new();
        for _ in 0..7 {
            let start = clock.elapsed();
            let store = kind.open(&folder)?;
            times.push(clock.elapsed().saturating_sub(start));
            anyhow::ensure!(store.list("configmaps", None).len() == arguments.objects);
            store.close().await?;
        }
        times.sort_unstable();
        cells.push(millis(percentile(&times, 50)));
        cells.push(megabytes(size_on_disk(&folder)?));
    }
    cells.push(megabytes(raw as u64));
    fs::remove_dir_all(&folder).context("removing what was measured")?;
    Ok(cells)
}

/// Creates objects from several clients at once.
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
    let change = Change::Put { key, object: &object, expect: Expect::Absent, guard: None };
    store.commit(change).await?;
    Ok(())
}

async fn close(store: Store, folder: &Path) -> Result<()> {
    store.close().await?;
    fs::remove_dir_all(folder).context("removing what was measured")
}

/// A config map of about 1.5 kB whose text no two share.
pub(crate) fn config_map(index: usize) -> Object {
    let line = format!("{index:08}").repeat(16);
    let text: Vec<_> = (0..10).map(|it| format!("{it}: {line}")).collect();
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

/// Bytes of one of them as a client sends it.
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
