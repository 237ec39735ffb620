//! The thread that writes the audit log.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};

/// The open file and its size.
pub(super) struct Writer {
    path: PathBuf,
    file: BufWriter<File>,
    size: u64,
    max_size: u64,
    written: Arc<AtomicU64>,
    lost: Arc<AtomicU64>,
    reported_lost: u64,
}

impl Writer {
    pub(super) fn open(
        path: &Path,
        max_size: u64,
        written: Arc<AtomicU64>,
        lost: Arc<AtomicU64>,
    ) -> io::Result<Self> {
        let (file, size) = open_for_append(path)?;
        // A terminal or a pipe cannot be rotated.
        let max_size = if size.is_some() { max_size } else { u64::MAX };
        let (path, size) = (path.to_owned(), size.unwrap_or_default());
        Ok(Self { path, file, size, max_size, written, lost, reported_lost: 0 })
    }

    /// Writes lines until all senders are dropped.
    pub(super) fn run(mut self, lines: &Receiver<String>) {
        while let Ok(line) = lines.recv() {
            self.write_line(&line);
            // Lines that are ready are written before the flush.
            loop {
                match lines.try_recv() {
                    Ok(line) => self.write_line(&line),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => {
                        self.flush();
                        return;
                    }
                }
            }
            self.flush();
        }
    }

    fn flush(&mut self) {
        if let Err(error) = self.file.flush() {
            tracing::warn!(%error, "the audit log cannot be written");
        }
    }

    fn write_line(&mut self, line: &str) {
        let lost = self.lost.load(Ordering::Relaxed);
        if lost > self.reported_lost {
            tracing::warn!(
                lines = lost - self.reported_lost,
                "the audit log fell behind and lost lines"
            );
            self.reported_lost = lost;
        }
        if self.size >= self.max_size
            && let Err(error) = self.rotate()
        {
            tracing::warn!(%error, "cannot rotate the audit log");
        }
        match writeln!(self.file, "{line}") {
            Ok(()) => {
                self.size += line.len() as u64 + 1;
                self.written.fetch_add(1, Ordering::Relaxed);
            }
            Err(_) => {
                self.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Renames the file and begins the next one.
    fn rotate(&mut self) -> io::Result<()> {
        self.file.flush()?;
        let mut old = self.path.clone().into_os_string();
        old.push(".1");
        std::fs::rename(&self.path, old)?;
        let (file, size) = open_for_append(&self.path)?;
        (self.file, self.size) = (file, size.unwrap_or_default());
        Ok(())
    }
}

/// Opens the file with access for its owner only, since it names users and their actions. Returns
/// its length, if it is a regular file.
fn open_for_append(path: &Path) -> io::Result<(BufWriter<File>, Option<u64>)> {
    let (file, is_regular) = mainstay_files::open_log(path)?;
    let size = if is_regular { Some(file.metadata()?.len()) } else { None };
    Ok((BufWriter::new(file), size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::sync_channel;

    #[test]
    fn a_full_audit_log_is_rotated_and_replaces_the_previous_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let (written, lost) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let writer = Writer::open(&path, 10, written.clone(), lost).unwrap();
        let (send, lines) = sync_channel(10);
        for line in ["first line", "second line", "third"] {
            send.send(line.to_owned()).unwrap();
        }
        drop(send);
        writer.run(&lines);
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(
            (read("audit.log").as_str(), read("audit.log.1").as_str()),
            ("third\n", "second line\n")
        );
        assert_eq!(written.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn the_audit_log_neither_waits_for_a_fifo_nor_rotates_a_device() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let open = |path: &Path| Writer::open(path, 10, Arc::default(), Arc::default());
        let error = open(&fifo).err().expect("nobody reads it").to_string();
        assert!(error.contains("nobody reads"), "{error}");
        assert_eq!(open(Path::new("/dev/null")).unwrap().max_size, u64::MAX);
    }
}
