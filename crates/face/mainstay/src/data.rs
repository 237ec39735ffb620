//! Data folder: opening its store, and reporting the store's state.

use crate::embedded::{Settings, chain};
use mainstay_cause::{Cause, FileLocation};
use mainstay_cli::config::Data;
use mainstay_clock::Clock;
use mainstay_store::{EngineError, OpenError, Recovery, Repair, Store};
use std::io::ErrorKind;
use std::path::Path;

/// Opens the store; reports its content, and after a repair the losses.
pub(crate) async fn open(
    settings: &Settings,
    clock: Clock,
    say: &dyn Fn(&str),
) -> Result<Store, Cause> {
    let options = mainstay_store::Options {
        max_object_bytes: settings.max_object_bytes,
        ..mainstay_store::Options::new(clock)
    };
    let Data::Folder(data) = &settings.data else { return Ok(Store::in_memory(options)) };
    let folder = data.join("store");
    let repair = settings.repair;
    let opening = {
        let folder = folder.clone();
        let data = data.clone();
        move || -> Result<_, OpenError> {
            let claim = mainstay_files::claim_data_folder(&data);
            let warning =
                claim.map_err(|source| OpenError::Io { attempt: "use", path: data, source })?;
            let lost = if repair { Some(Store::repair(&folder)?) } else { None };
            Ok((Store::open(&folder, options)?, lost, warning))
        }
    };
    let opened = tokio::task::spawn_blocking(opening)
        .await
        .map_err(|error| Cause::new(format!("opening the store ended early: {error}")))?;
    let ((store, recovery), lost, warning) = opened.map_err(|error| {
        let cause = Cause::new("the data folder cannot be used").because(chain(&error));
        match &error {
            OpenError::Damaged(_) => cause.remedy(
                "restore the folder from a backup, or run `mainstay up --repair`, which keeps the original files in a subfolder and starts with the readable data",
            ),
            OpenError::Io { source, .. } => match source.kind() {
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                    cause.remedy("check who owns the folder, or choose another with --data-dir DIR")
                }
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                    cause.remedy("free disk space, or choose another folder with --data-dir DIR")
                }
                _ => cause.remedy("choose another folder with --data-dir DIR"),
            },
            // These errors name their own remedy.
            _ => cause,
        }
    })?;
    if let Some(warning) = warning {
        say(&format!(
            "warning     {warning}: close the folder with chmod, or name another with --data-dir DIR"
        ));
    }
    if let Some(lost) = lost {
        for line in repair_report(&lost) {
            say(&line);
        }
    }
    let Recovery { revision, objects, torn, notes } = recovery;
    say(&format!("store       {}: {objects} objects at revision {revision}", folder.display()));
    if let Some(torn) = torn {
        say(&format!(
            "store       dropped {} bytes at the end of {}: a write that was cut off before it was acknowledged",
            torn.bytes,
            torn.file.display()
        ));
    }
    for note in notes {
        say(&format!("store       {note}"));
    }
    Ok(store)
}

/// The cause that a cluster cannot start in a folder that opened but accepts no writes.
pub(crate) fn unwritable(folder: &Path, error: &EngineError) -> Cause {
    let remedy = if error.is_full() {
        "free disk space, or choose another folder with --data-dir DIR"
    } else {
        "check the disk of the folder, or choose another with --data-dir DIR"
    };
    Cause::new("the data folder cannot be written")
        .at(FileLocation::file(folder))
        .because(chain(error))
        .remedy(remedy)
}

/// What a repair did, a line each.
fn repair_report(repair: &Repair) -> Vec<String> {
    let Some(originals) = &repair.originals else {
        return vec!["repair      the store is sound: nothing was changed".to_owned()];
    };
    let mut lines = vec![format!(
        "repair      {} objects are intact; the original files are in {}",
        repair.objects,
        originals.display()
    )];
    for lost in &repair.lost {
        lines.push(format!(
            "repair      {} at byte {}: {} ({} bytes)",
            lost.file.display(),
            lost.offset,
            lost.damage,
            lost.bytes
        ));
        if let Some((first, last)) = lost.revisions {
            lines.push(format!(
                "repair        changes of revisions {first} to {last} are lost or may be lost"
            ));
        }
        for key in &lost.objects {
            let name = [&*key.resource, &*key.namespace, &*key.name].join("/");
            lines.push(format!("repair        the newest change of {name} may be lost"));
        }
    }
    lines
}
