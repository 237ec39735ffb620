//! Parallel reading of all files: as many threads as there are cores, in bounded memory.
//!
//! One thread at a time splits the next part off the current file, which costs little; the parts
//! are parsed in parallel. An irregular or wrong file is read again as a whole, so that its
//! problems do not depend on the split.

use crate::{
    compression::BlobCompressor,
    load::{Limits, LoadOptions},
    read::{DecodedBlob, FileContent, read_file, read_part, yaml_options},
    source::{FileSource, SourceFile},
    splitter::{DocumentSplitter, FilePart, SplitStep},
};
use std::{
    num::NonZeroUsize,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

/// Reads all files; results are in the order of the files. `lint` requests a lint: a file with
/// lint problems is read as a whole.
pub(crate) fn read_files(
    source: &dyn FileSource,
    files: &[SourceFile],
    options: &LoadOptions,
    lint: bool,
) -> Vec<FileContent> {
    let cores = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let threads = options.threads.unwrap_or_else(cores).get();
    let default_options = Limits { depth: Limits::default().depth, ..options.limits.clone() };
    let default_options = LoadOptions { limits: default_options, ..options.clone() };
    let options = if required_stack(options).is_none_or(is_stack_available) {
        options
    } else {
        &default_options
    };
    let queue = Mutex::new(Queue::new(source, files, options.limits.file_bytes));
    let take = || queue.lock().unwrap_or_else(PoisonError::into_inner);
    let mut parts: Vec<PartContent> =
        run_on_threads(threads, required_stack(options), || read_parts(take, options, lint))
            .into_iter()
            .flatten()
            .collect();
    parts.sort_by_key(|part| (part.file, part.number));
    let mut results: Vec<FileContent> = Vec::new();
    results.resize_with(files.len(), FileContent::default);
    let whole_files = std::mem::take(&mut take().whole_files);
    for part in parts.into_iter().filter(|part| !whole_files[part.file]) {
        results[part.file].blobs.extend(part.blobs);
    }
    let whole: Vec<usize> = (0..files.len()).filter(|&file| whole_files[file]).collect();
    let next = AtomicUsize::new(0);
    let read = || {
        let mut done = Vec::new();
        while let Some(&file) = whole.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push((file, read_file(source, &files[file], options, lint)));
        }
        done
    };
    for (file, read) in run_on_threads(threads.min(whole.len()), required_stack(options), read)
        .into_iter()
        .flatten()
    {
        results[file] = read;
    }
    results
}

/// The stack for each level of a value, in bytes: more than a debug build takes.
const STACK_PER_LEVEL: usize = 24 << 10;

/// The stack size that documents need, if it exceeds an ordinary one.
fn required_stack(options: &LoadOptions) -> Option<usize> {
    let depth = options.depth();
    (depth > Limits::default().depth).then(|| depth.saturating_mul(STACK_PER_LEVEL))
}

/// Whether threads can have a stack of this size.
fn is_stack_available(stack: usize) -> bool {
    let thread = std::thread::Builder::new().stack_size(stack).spawn(|| ());
    thread.is_ok_and(|thread| thread.join().is_ok())
}

/// Runs `work` on several threads. The current thread is one of them, unless they need a larger
/// stack. Stack memory is used only as far as values are nested.
fn run_on_threads<T: Send>(
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
struct PartContent {
    file: usize,
    number: usize,
    blobs: Vec<DecodedBlob>,
}

/// Reads parts until the queue is empty.
fn read_parts<'q, 's: 'q>(
    queue: impl Fn() -> MutexGuard<'q, Queue<'s>>,
    options: &LoadOptions,
    lint: bool,
) -> Vec<PartContent> {
    let yaml_options = yaml_options(options, lint);
    let mut compressor = BlobCompressor::new(options.keep);
    let mut done = Vec::new();
    loop {
        let next = queue().next();
        let Some(QueuedPart { file, path, number, part }) = next else { return done };
        match read_part(&part, &path, &yaml_options, options.rules, &mut compressor, lint) {
            Some(blobs) => done.push(PartContent { file, number, blobs }),
            None => queue().read_whole(file),
        }
    }
}

/// The parts that no thread has taken.
struct Queue<'s> {
    source: &'s dyn FileSource,
    files: &'s [SourceFile],
    limit: u64,
    /// The index of the next file.
    next: usize,
    open: Option<Open<'s>>,
    /// Which files must be read as a whole.
    whole_files: Vec<bool>,
}

/// A file that is being split.
struct Open<'s> {
    splitter: DocumentSplitter<'s>,
    file: usize,
    path: Arc<str>,
    parts: usize,
}

/// A part to read.
struct QueuedPart {
    file: usize,
    path: Arc<str>,
    number: usize,
    part: FilePart,
}

impl<'s> Queue<'s> {
    fn new(source: &'s dyn FileSource, files: &'s [SourceFile], limit: u64) -> Self {
        Self { source, files, limit, next: 0, open: None, whole_files: vec![false; files.len()] }
    }

    fn next(&mut self) -> Option<QueuedPart> {
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
                        let splitter = DocumentSplitter::new(input, self.limit);
                        let path = found.path.as_str().into();
                        self.open = Some(Open { splitter, file, path, parts: 0 });
                    }
                    None => self.whole_files[file] = true,
                }
                continue;
            };
            let (file, number) = (open.file, open.parts);
            match open.splitter.next() {
                SplitStep::Part(part) => {
                    open.parts += 1;
                    return Some(QueuedPart { file, path: open.path.clone(), number, part });
                }
                SplitStep::End => self.open = None,
                SplitStep::Irregular => self.read_whole(file),
            }
        }
    }

    /// Marks a file as one to read as a whole.
    fn read_whole(&mut self, file: usize) {
        self.whole_files[file] = true;
        if self.open.as_ref().is_some_and(|open| open.file == file) {
            self.open = None;
        }
    }
}
