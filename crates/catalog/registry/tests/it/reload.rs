//! Folders that change while they are served.

use crate::catalogs::{SMALL, folder, write};
use mainstay_catalog::LoadOptions;
use mainstay_clock::Clock;
use mainstay_registry::{
    ServedCatalog,
    reload::{ReloadOutcome, WatchedFolder, follow},
};
use std::{path::Path, sync::Arc, time::Duration};
use tokio::sync::mpsc;

fn source(folder: &Path) -> WatchedFolder {
    WatchedFolder {
        folder: folder.into(),
        options: LoadOptions::default(),
        clock: Clock::system(),
        judge: Arc::new(|_| Ok(())),
    }
}

#[tokio::test]
async fn an_invalid_catalog_is_reported_and_the_last_valid_one_served() {
    let folder = folder(SMALL);
    let (served, source) = (ServedCatalog::new("c"), source(folder.path()));
    let ReloadOutcome::New(first) = source.load(&served).await else { panic!("the first is new") };
    assert!(matches!(source.load(&served).await, ReloadOutcome::Same(_)));

    write(folder.path(), &[("a.yaml", "schema: [\n"), ("b.yaml", "schema: olm.package\n")]);
    let ReloadOutcome::Bad(error) = source.load(&served).await else { panic!("that is bad") };
    let files: Vec<&str> = error.problems.iter().map(|problem| &*problem.file).collect();
    assert!(files.contains(&"a.yaml") && files.contains(&"b.yaml"), "{error}");
    let state = served.state();
    assert!(state.index.as_ref().is_some_and(|index| Arc::ptr_eq(index, &first)));
    assert_eq!(state.problem.as_deref(), Some(&*error.headline()));

    // Restored to the earlier content: not new, but valid again.
    for file in ["a.yaml", "b.yaml"] {
        std::fs::remove_file(folder.path().join(file)).unwrap();
    }
    assert!(matches!(source.load(&served).await, ReloadOutcome::Same(_)));
    let state = served.state();
    assert!(state.index.as_ref().is_some_and(|index| Arc::ptr_eq(index, &first)));
    assert_eq!(state.problem, None);

    // Two contents never share a second, or a client that asks by time would miss one.
    std::fs::remove_file(folder.path().join("plum.yaml")).unwrap();
    let ReloadOutcome::New(second) = source.load(&served).await else { panic!("that is new") };
    assert!(second.modified() >= first.modified() + Duration::from_secs(1));
}

#[tokio::test]
async fn a_valid_catalog_may_still_be_refused() {
    let folder = folder(&SMALL[..1]);
    let served = ServedCatalog::new("c");
    let most_one = |catalog: &mainstay_catalog::Catalog| match catalog.packages().len() {
        0 | 1 => Ok(()),
        more => Err(format!("{more} packages").into()),
    };
    let source = WatchedFolder { judge: Arc::new(most_one), ..source(folder.path()) };
    assert!(matches!(source.load(&served).await, ReloadOutcome::New(_)));
    write(folder.path(), &SMALL[1..]);
    let ReloadOutcome::Refused(why) = source.load(&served).await else { panic!("that is refused") };
    assert_eq!(why.to_string(), "2 packages");
    let state = served.state();
    assert_eq!(state.problem.as_deref(), Some("2 packages"));
    assert!(state.index.as_ref().is_some_and(|index| index.catalog().packages().len() == 1));
}

#[tokio::test]
async fn a_missing_folder_is_served_when_it_appears() {
    let around = tempfile::tempdir().unwrap();
    let place = around.path().join("catalog");
    let served = Arc::new(ServedCatalog::new("c"));
    let (outcome_sender, mut outcomes) = mpsc::unbounded_channel();
    let following = tokio::spawn({
        let (served, source, place) = (Arc::clone(&served), source(&place), place.clone());
        async move {
            let load = || async {
                let outcome = source.load(&served).await;
                outcome_sender.send(outcome).unwrap();
            };
            follow(&place, source.clock, |why| panic!("{why}"), load).await;
        }
    });
    // The same change may be reported more than once: as often as the writer has steps.
    let mut until = async |wanted: fn(&ReloadOutcome) -> bool| {
        while !wanted(&outcomes.recv().await.unwrap()) {}
    };
    until(|outcome| matches!(outcome, ReloadOutcome::Bad(_))).await;
    assert!(served.index().is_none());

    write(&place, SMALL);
    until(|outcome| matches!(outcome, ReloadOutcome::New(_))).await;

    // Replaced as a whole, as deployments do it.
    let other = around.path().join("other");
    write(&other, &SMALL[1..]);
    std::fs::rename(&place, around.path().join("old")).unwrap();
    std::fs::rename(&other, &place).unwrap();
    until(|outcome| matches!(outcome, ReloadOutcome::New(_))).await;
    assert_eq!(served.index().unwrap().catalog().packages().len(), 1);

    // The replacement is watched as well.
    write(&place, &SMALL[..1]);
    until(|outcome| matches!(outcome, ReloadOutcome::New(_))).await;
    assert_eq!(served.index().unwrap().catalog().packages().len(), 2);
    following.abort();
}
