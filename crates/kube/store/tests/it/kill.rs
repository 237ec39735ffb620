//! Kill tests: a killed store has every acknowledged change, at whatever moment.
//!
//! The victim is this test binary itself, started again to run one ignored test in a folder of its
//! own: 32 tasks write and report each acknowledged change on standard output. The parent kills it
//! and compares the reports with the folder.

use crate::support::*;
use mainstay_store::{CommitError, Options, Precondition, Store};
use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

const ROUNDS: u64 = 20;
const WRITERS: u64 = 32;
/// Each round counts from a multiple of this.
const STRIDE: u64 = 1_000_000;

fn options() -> Options {
    // Several snapshots per round, so that some kills fall into one.
    Options { snapshot_after: 64 << 10, ..Options::default() }
}

/// The result of a writer's `step`: a text, or nothing.
fn outcome(step: u64) -> Option<String> {
    (step % 7 != 6).then(|| step.to_string())
}

async fn act(store: &Store, writer: u64, step: u64) {
    let name = format!("w{writer}");
    let result = match outcome(step) {
        Some(text) => put(store, ("a", &name), &text, Precondition::Any).await,
        None => delete(store, ("a", &name), Precondition::Any).await,
    };
    match result {
        Ok(_) | Err(CommitError::Missing(_)) => {}
        Err(error) => panic!("{error}"),
    }
}

#[test]
#[ignore = "the victim of the test below; does nothing anywhere else"]
fn victim() {
    let Ok(first) = fs::read_to_string("first-step") else { return };
    let first: u64 = first.parse().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = Store::open(Path::new("data"), options()).unwrap().0;
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let store = store.clone();
                tokio::spawn(async move {
                    for step in first.. {
                        act(&store, writer, step).await;
                        writeln!(std::io::stdout(), "done {writer} {step}").unwrap();
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.await.unwrap();
        }
    });
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_when_the_process_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    for round in 1..=ROUNDS {
        fs::write(folder.path().join("first-step"), (round * STRIDE).to_string()).unwrap();
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::victim", "--ignored", "--nocapture", "--quiet"])
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // A different moment each round.
        let enough = 500 + 37 * round;
        let mut acknowledged = HashMap::new();
        let mut count = 0;
        for line in BufReader::new(victim.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            let mut words = line.split(' ').skip_while(|word| *word != "done").skip(1);
            // A line that the kill truncated is unreliable.
            let (Some(writer), Some(step)) = (words.next(), words.next()) else { continue };
            let (Ok(writer), Ok(step)) = (writer.parse::<u64>(), step.parse::<u64>()) else {
                continue;
            };
            if step / STRIDE == round {
                acknowledged.insert(writer, step);
            }
            count += 1;
            if count == enough {
                victim.kill().unwrap();
            }
        }
        victim.wait().unwrap();
        assert!(count >= enough, "the victim ended by itself");
        let store = Store::open(&folder.path().join("data"), options()).unwrap().0;
        for (writer, step) in acknowledged {
            let found = store.find(MAPS, "a", &format!("w{writer}"));
            let found = found.map(|stored| stored.label("text").unwrap_or_default().to_owned());
            // The next step may have become durable without a report.
            assert!(
                found == outcome(step) || found == outcome(step + 1),
                "round {round}, writer {writer}: {step} was acknowledged, {found:?} is there"
            );
        }
        store.close().await.unwrap();
    }
}
