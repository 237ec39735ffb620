//! Parallel reading of all files: as many threads as there are cores, in bounded memory.
//!
//! One thread at a time splits the next part off the current file, which costs little; the parts
//! are parsed in parallel. An irregular or wrong file is read again as a whole, so that its
//! problems do not depend on the split.

use crate::{
    cut::{Cut, Cutter, Piece},
    load::{Limits, LoadOptions},
    pack::Packer,
    read::{FileRead, ReadBlob, read_file, read_piece, reading},
    source::{Source, SourceFile},
};
use std::{
    num::NonZeroUsize,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

/// Reads all files; results are in the order of the files. `looks` requests a lint: a file with
/// lint problems is read as a whole.
pub(crate) fn read_all(
    source: &dyn Source,
    files: &[SourceFile],
    options: &LoadOptions,
    looks: bool,
) -> Vec<FileRead> {
    let cores = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let threads = options.threads.unwrap_or_else(cores).get();
    let usual = Limits { depth: Limits::default().depth, ..options.limits.clone() };
    let usual = LoadOptions { limits: usual, ..options.clone() };
    let options = if stack(options).is_none_or(can_be_had) { options } else { &usual };
    let queue = Mutex::new(Queue::new(source, files, options.limits.file_bytes));
    let take = || queue.lock().unwrap_or_else(PoisonError::into_inner);
    let mut parts: Vec<Read> = on_threads(threads, stack(options), || work(take, options, looks))
        .into_iter()
        .flatten()
        .collect();
    parts.sort_by_key(|part| (part.file, part.number));
    let mut results: Vec<FileRead> = Vec::new();
    results.resize_with(files.len(), FileRead::default);
    let odd = std::mem::take(&mut take().odd);
    for part in parts.into_iter().filter(|part| !odd[part.file]) {
        results[part.file].blobs.extend(part.blobs);
    }
    let whole: Vec<usize> = (0..files.len()).filter(|&file| odd[file]).collect();
    let next = AtomicUsize::new(0);
    let read = || {
        let mut done = Vec::new();
        while let Some(&file) = whole.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push((file, read_file(source, &files[file], options, looks)));
        }
        done
    };
    for (file, read) in
        on_threads(threads.min(whole.len()), stack(options), read).into_iter().flatten()
    {
        results[file] = read;
    }
    results
}

/// The stack for each level of a value, in bytes: more than a debug build takes.
const PER_LEVEL: usize = 24 << 10;

/// The stack size that documents need, if it exceeds an ordinary one.
fn stack(options: &LoadOptions) -> Option<usize> {
    let depth = options.depth();
    (depth > Limits::default().depth).then(|| depth.saturating_mul(PER_LEVEL))
}

/// Whether threads can have a stack of this size.
fn can_be_had(stack: usize) -> bool {
    let thread = std::thread::Builder::new().stack_size(stack).spawn(|| ());
    thread.is_ok_and(|thread| thread.join().is_ok())
}

/// Runs `work` on several threads. The current thread is one of them, unless they need a larger
/// stack. Stack memory is used only as far as values are nested.
fn on_threads<T: Send>(
    threads: usize,
    stack: Option<usize>,
    work: impl Fn() -> T + Sync,
) -> Vec<T> {
    std::thread::scope(|scope| {
        let mut done = Vec::new();
        let mut others = Vec::new();
        for _ in usize::from(stack.is_none())..threads {
            let builder = std::thread::Builder::new();
            let builder = match stack {
                Some(bytes) => builder.stack_size(bytes),
                None => builder,
            };
            // The other threads do the work of a thread that cannot start.
            others.extend(builder.spawn_scoped(scope, &work));
        }
        if others.is_empty() || stack.is_none() {
            done.push(work());
        }
        for other in others {
            match other.join() {
                Ok(result) => done.push(result),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    })
}

/// The content of one part.
struct Read {
    file: usize,
    number: usize,
    blobs: Vec<ReadBlob>,
}

/// Reads parts until the queue is empty.
fn work<'q, 's: 'q>(
    queue: impl Fn() -> MutexGuard<'q, Queue<'s>>,
    options: &LoadOptions,
    looks: bool,
) -> Vec<Read> {
    let reading = reading(options, looks);
    let mut packer = Packer::new(options.keep);
    let mut done = Vec::new();
    loop {
        let taken = queue().next();
        let Some(Taken { file, path, number, piece }) = taken else { return done };
        match read_piece(&piece, &path, &reading, &mut packer, looks) {
            Some(blobs) => done.push(Read { file, number, blobs }),
            None => queue().give_up(file),
        }
    }
}

/// The parts that no thread has taken.
struct Queue<'s> {
    source: &'s dyn Source,
    files: &'s [SourceFile],
    limit: u64,
    /// The index of the next file.
    next: usize,
    open: Option<Open<'s>>,
    /// Which files must be read as a whole.
    odd: Vec<bool>,
}

/// A file that is being split.
struct Open<'s> {
    cutter: Cutter<'s>,
    file: usize,
    path: Arc<str>,
    parts: usize,
}

/// A part to read.
struct Taken {
    file: usize,
    path: Arc<str>,
    number: usize,
    piece: Piece,
}

impl<'s> Queue<'s> {
    fn new(source: &'s dyn Source, files: &'s [SourceFile], limit: u64) -> Self {
        Self { source, files, limit, next: 0, open: None, odd: vec![false; files.len()] }
    }

    fn next(&mut self) -> Option<Taken> {
        loop {
            let Some(open) = &mut self.open else {
                let file = self.next;
                let found = self.files.get(file)?;
                self.next += 1;
                let input = match &found.fault {
                    None => self.source.open(&found.path, self.limit).ok(),
                    Some(_) => None,
                };
                match input {
                    Some(input) => {
                        let cutter = Cutter::new(input, self.limit);
                        let path = found.path.as_str().into();
                        self.open = Some(Open { cutter, file, path, parts: 0 });
                    }
                    None => self.odd[file] = true,
                }
                continue;
            };
            let (file, number) = (open.file, open.parts);
            match open.cutter.next() {
                Cut::Piece(piece) => {
                    open.parts += 1;
                    return Some(Taken { file, path: open.path.clone(), number, piece });
                }
                Cut::End => self.open = None,
                Cut::Odd => self.give_up(file),
            }
        }
    }

    /// Marks a file as one to read as a whole.
    fn give_up(&mut self, file: usize) {
        self.odd[file] = true;
        if self.open.as_ref().is_some_and(|open| open.file == file) {
            self.open = None;
        }
    }
}
