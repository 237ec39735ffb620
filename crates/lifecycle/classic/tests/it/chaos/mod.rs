//! Controllers that are killed after any write, and connections that lose, refuse, repeat and delay:
//! the end is always the same.
//!
//! ```text
//! people ──────────────── what they do ──► the API ◄── troubled connection ── controllers
//!                                             │          (killed, lost, late, twice …)
//!                                             └─► state ── is that of an undisturbed run?
//! ```
//!
//! Each piece of work ([`Work`]) is done once undisturbed, which gives the state that counts and the
//! number of requests and writes, and then again and again with something going wrong at each of
//! them. `MAINSTAY_DEEP=1` tries all; otherwise some points are tried, the same each time.

mod catalogs;
mod certificates;
mod groups;
mod installs;
mod replicas;
mod rich;
mod state;
mod trouble;
mod uninstall;

use self::state::{State, ends_as, state};
use self::trouble::{Kind, trouble};
use crate::world::World;
use mainstay_client::Cluster;
use mainstay_testkit::{Asked, Fate, exhausted};
use parking_lot::Mutex;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A piece of work that is disturbed.
trait Work: Debug {
    /// A cluster in which the work is to be done, without controllers.
    async fn ready(&self) -> World;

    /// What people do, over a connection without trouble, and what they wait for; it returns when the
    /// work is done.
    async fn done(&self, world: &World);
}

/// How many requests a piece of work takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Requests {
    all: usize,
    writes: usize,
}

/// Counts what is written over a connection.
#[derive(Clone, Default)]
struct Count(Arc<AtomicUsize>);

impl Count {
    /// The cluster over a connection without trouble.
    fn over(&self, world: &World) -> Cluster {
        let count = self.clone();
        world.cluster.troubled(move |asked| {
            count.hear(asked);
            Fate::Pass
        })
    }

    fn hear(&self, asked: &Asked) {
        if asked.is_write() {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// Returns when nothing is written any more.
    async fn calm(&self, how: impl Fn() -> String) {
        let rest = async {
            let mut before = None;
            while before != Some(self.get()) {
                before = Some(self.get());
                tokio::time::sleep(CALM).await;
            }
        };
        tokio::select! {
            () = rest => {}
            () = exhausted() => panic!("{}: it does not stop writing", how()),
        }
    }
}

/// After so long without a write there is none any more: it is longer than the first pauses of whoever
/// tries again.
const CALM: Duration = Duration::from_millis(250);

/// Returns when nothing changes any more in a while that is long enough for whoever is slow.
async fn settled(world: &World, count: &Count) -> State {
    const LOOKS: usize = 5;
    let mut last = (count.get(), state(world).await);
    let mut same = 0;
    while same < LOOKS {
        tokio::time::sleep(CALM).await;
        let now = (count.get(), state(world).await);
        same = if now == last { same + 1 } else { 0 };
        last = now;
    }
    last.1
}

/// The end without any trouble, and how many requests it takes.
async fn plain(work: &impl Work) -> (State, Requests) {
    let world = work.ready().await;
    let (all, count) = (Arc::new(AtomicUsize::new(0)), Count::default());
    let (every, seen) = (Arc::clone(&all), count.clone());
    let cluster = world.cluster.troubled(move |asked| {
        every.fetch_max(asked.number + 1, Ordering::SeqCst);
        seen.hear(asked);
        Fate::Pass
    });
    let classic = world.begin_over(&cluster);
    work.done(&world).await;
    let end = settled(&world, &count).await;
    let requests = Requests { all: all.load(Ordering::SeqCst), writes: count.get() };
    classic.shutdown().await;
    (end, requests)
}

/// Kills the controllers after so many writes, and starts them again.
async fn killed(work: &impl Work, after: usize, ends: &[State]) {
    let how = || format!("{work:?}, killed after {after} writes");
    let world = work.ready().await;
    let dead = CancellationToken::new();
    let dies = dead.clone();
    let doomed = world.cluster.troubled(move |asked| {
        if asked.writes < after && !dies.is_cancelled() {
            return Fate::Pass;
        }
        dies.cancel();
        Fate::Lost
    });
    let count = Count::default();
    let first = world.begin_over(&doomed);
    let finished = CancellationToken::new();
    let controllers = async {
        tokio::select! {
            () = dead.cancelled() => {}
            () = finished.cancelled() => dead.cancel(),
        }
        first.shutdown().await;
        world.begin_over(&count.over(&world))
    };
    let people = async {
        work.done(&world).await;
        finished.cancel();
    };
    let (second, ()) = tokio::join!(controllers, people);
    ends_as(&world, ends, how).await;
    count.calm(how).await;
    second.shutdown().await;
}

/// How many are run at once: most of their time they work, and some of it they wait.
const SIDE_BY_SIDE: usize = 3;

/// Runs some of these at once; says how many there were.
#[expect(clippy::print_stdout, reason = "who runs all of them wants to know what was run")]
async fn side_by_side(what: &str, runs: impl Iterator<Item = impl Future<Output = ()>>) {
    use futures::StreamExt;
    let count = futures::stream::iter(runs).buffer_unordered(SIDE_BY_SIDE).count().await;
    println!("{what}: {count} runs");
}

/// All of so many points in the deep tests; otherwise a few, the first and the last among them.
fn points(all: usize, few: usize) -> Vec<usize> {
    if deep() || all < few {
        return (0..=all).collect();
    }
    (0..few).map(|at| at * all / (few - 1)).collect()
}

async fn killed_after_each_write(work: &impl Work, few: usize) {
    let (end, requests) = plain(work).await;
    assert!(requests.writes > 5, "{requests:?}");
    let ends = [end];
    let points = points(requests.writes, few).into_iter();
    let what = format!("{work:?}: {requests:?}, killed after each write");
    side_by_side(&what, points.map(|after| killed(work, after, &ends))).await;
}

async fn over_a_bad_connection(work: &impl Work, seed: u64, ends: &[State]) {
    let how = format!("{work:?} with seed {seed}");
    disturbed(work, move |asked| trouble(seed, asked), ends, &how).await;
}

/// Does the work over a connection of which `judge` says what goes wrong: the end is that of the
/// undisturbed work, and then nothing is written any more.
async fn disturbed(
    work: &impl Work,
    judge: impl Fn(&Asked) -> Fate + Send + Sync + 'static,
    ends: &[State],
    how: &str,
) {
    let world = work.ready().await;
    let count = Count::default();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (seen, all, clock) = (count.clone(), Arc::clone(&asked), world.cluster.clock());
    let cluster = world.cluster.troubled(move |asked| {
        seen.hear(asked);
        let fate = judge(asked);
        let Asked { number, method, target, .. } = asked;
        all.lock().push(format!("{} {number} {method} {target}: {fate:?}", clock.now()));
        fate
    });
    let classic = world.begin_over(&cluster);
    let last = || {
        let asked = asked.lock();
        let last = asked.iter().rev().take(60).rev().cloned().collect::<Vec<_>>();
        format!("{how}; at {} it had asked for\n{}", clock.now(), last.join("\n"))
    };
    work.done(&world).await;
    ends_as(&world, ends, last).await;
    count.calm(|| how.to_owned()).await;
    classic.shutdown().await;
}

/// Whether everything is tried; it takes minutes.
#[expect(clippy::disallowed_methods, reason = "the depth of a test is not configuration")]
fn deep() -> bool {
    std::env::var_os("MAINSTAY_DEEP").is_some()
}

async fn over_bad_connections(work: &impl Work, quick: u64, all: u64) {
    let (end, _) = plain(work).await;
    let ends = [end];
    let seeds = if deep() { all } else { quick };
    let what = format!("{work:?} over bad connections");
    side_by_side(&what, (0..seeds).map(|seed| over_a_bad_connection(work, seed, &ends))).await;
}

/// Each request meets each fate once, in the company of every so many others, each of which meets another
/// one. Where not all is tried, each fate is met by some requests.
async fn requests_meet_fates(work: &impl Work) {
    const APART: usize = 25;
    const FEW: usize = 4;
    let kinds = 0..Kind::ALL.len();
    let undisturbed = plain(work).await;
    if deep() {
        let runs = kinds.flat_map(|shift| (0..APART).map(move |at| (shift, at)));
        return meet_fates(work, undisturbed, APART, runs).await;
    }
    meet_fates(work, undisturbed, FEW, kinds.map(|shift| (shift, shift % FEW))).await;
}

async fn meet_fates(
    work: &impl Work,
    (end, requests): (State, Requests),
    apart: usize,
    runs: impl Iterator<Item = (usize, usize)>,
) {
    assert!(requests.all > 50, "{requests:?}");
    let ends = [end];
    let what = format!("{work:?}: {requests:?}, each request meets each fate");
    let runs = runs.map(|(shift, at)| {
        let how = format!("{work:?}, request {at} of {apart} is {:?}", Kind::ALL[shift]);
        let (ends, recorded) = (&ends, requests.all);
        async move {
            let judge = move |asked: &Asked| {
                let meant = asked.number < recorded && asked.number % apart == at;
                let kind = Kind::ALL[(asked.number / apart + shift) % Kind::ALL.len()];
                if meant { kind.fate(asked) } else { Fate::Pass }
            };
            disturbed(work, judge, ends, &how).await;
        }
    });
    side_by_side(&what, runs).await;
}
