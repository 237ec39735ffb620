//! Transfers of images: progress on a terminal, interruption, and a temporary store.

use mainstay_cause::Cause;
use mainstay_command::environment;
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_command::text::count;
use mainstay_image::{
    registry::{Progress, ProgressCount},
    store::ImageStore,
};
use std::{future::Future, path::PathBuf, time::Duration};

/// The interval between progress updates.
const TICK: Duration = Duration::from_millis(100);

/// Waits for a transfer and shows its progress. Ctrl-C ends it, and partial results are removed.
pub(crate) async fn transfer<T>(
    io: &mut CommandIo<'_>,
    progress: Option<&Progress>,
    work: impl Future<Output = Result<T, CommandFailure>>,
) -> Result<T, CommandFailure> {
    let terminal_progress = progress.filter(|_| io.terminal);
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut work = std::pin::pin!(work);
    let mut written = false;
    let result = loop {
        tokio::select! {
            result = &mut work => break result,
            Ok(()) = tokio::signal::ctrl_c() => {
                break Err(Cause::new("it was interrupted").remedy("run it again").into());
            }
            _ = ticks.tick(), if terminal_progress.is_some() => {
                let counted = terminal_progress.map(Progress::counted).unwrap_or_default();
                if counted.blobs > 0 {
                    written = true;
                    let _ = write!(io.stderr, "\r\x1b[K{}", line(counted));
                    let _ = io.stderr.flush();
                }
            }
        }
    };
    if written {
        let _ = write!(io.stderr, "\r\x1b[K");
    }
    result
}

/// The progress line.
fn line(counted: ProgressCount) -> String {
    format!(
        "{} of {} transferred, {} of {}",
        bytes(counted.moved),
        bytes(counted.bytes),
        counted.finished,
        count(usize::try_from(counted.blobs).unwrap_or(usize::MAX), "blob"),
    )
}

/// A size for users: `12 B`, `3.4 kB`, `560 MB`.
pub(crate) fn bytes(number: u64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    let (mut whole, mut rest, mut unit) = (number, 0, 0);
    while whole >= 1000 && unit + 1 < units.len() {
        (whole, rest, unit) = (whole / 1000, whole % 1000, unit + 1);
    }
    match (unit, whole) {
        (1.., 0..=9) => format!("{whole}.{} {}", rest / 100, units[unit]),
        _ => format!("{whole} {}", units[unit]),
    }
}

/// A store in a temporary folder, which is removed with this value.
pub(crate) struct TemporaryStore {
    folder: PathBuf,
    store: ImageStore,
}

impl TemporaryStore {
    /// Creates the folder and the store.
    pub(crate) fn new(io: &CommandIo<'_>) -> Result<Self, CommandFailure> {
        let parent = environment::scratch_folder(io.variable);
        let failed = |why: String| {
            let cause = Cause::new(format!("no folder can be created in {}", parent.display()));
            let remedy = "name another folder for temporary files with TMPDIR";
            CommandFailure::from(cause.because(Cause::new(why)).remedy(remedy))
        };
        let folder = tempfile::Builder::new()
            .prefix("mainstay-images-")
            .tempdir_in(&parent)
            .map_err(|error| failed(mainstay_gocompat::io_error_text(&error)))?
            .keep();
        let store = ImageStore::open(&folder).map_err(|error| failed(error.to_string()))?;
        Ok(Self { folder, store })
    }

    /// The store.
    pub(crate) fn store(&self) -> &ImageStore {
        &self.store
    }
}

impl Drop for TemporaryStore {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_few_digits() {
        for (number, wanted) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (9_960, "9.9 kB"),
            (34_000, "34 kB"),
            (2_500_000, "2.5 MB"),
            (u64::MAX, "18 EB"),
        ] {
            assert_eq!(bytes(number), wanted, "{number}");
        }
    }

    #[test]
    fn progress_is_one_line() {
        let counted = ProgressCount { blobs: 5, finished: 3, bytes: 45_600_000, moved: 12_300_000 };
        assert_eq!(line(counted), "12 MB of 45 MB transferred, 3 of 5 blobs");
    }
}
