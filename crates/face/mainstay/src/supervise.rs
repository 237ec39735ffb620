//! A start that hangs ends when it is asked to.
//!
//! Between its tasks a start listens for signals and ends in order. What it asks of the file system
//! cannot be interrupted: a disk that does not answer, a folder of a server that is gone, a FIFO that
//! nobody writes. So the work has a thread of its own, and the first thread of the program waits for
//! whatever comes first: the end of the work, or the end of its time to stop. After that the process
//! ends as it was asked to, and what still waits ends with it.
//!
//! What has started is not hurried: closing a store may take as long as it takes.

use crate::stop::Stop;
use mainstay_cause::Cause;
use mainstay_cli::exit::Failure;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// How long a start may take to end once it is asked to.
pub(crate) const GRACE: Duration = Duration::from_secs(2);
/// The stack of a program's first thread, which the work would have had otherwise.
const STACK: usize = 8 << 20;

/// Whether a sub-command has started; clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Started(Arc<AtomicBool>);

impl Started {
    /// It has: from now on it ends in order however long that takes.
    pub(crate) fn done(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn is_done(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// What the first thread is told.
pub(crate) enum News {
    Ended(Result<(), Failure>),
    /// Somebody asks for the end.
    Asked,
}

/// Does the work on a thread of its own, which is left behind if it has not started and does not end
/// within `grace` after the end was asked for.
pub(crate) fn run(
    started: &Started,
    grace: Duration,
    work: impl FnOnce(Sender<News>) -> Result<(), Failure> + Send + 'static,
) -> Result<(), Failure> {
    let (tell, news) = channel();
    let asks = tell.clone();
    let thread = std::thread::Builder::new().name("work".to_owned()).stack_size(STACK);
    let spawned = thread.spawn(move || {
        let result = work(asks);
        // The first thread is gone if it waited for too long.
        let _ = tell.send(News::Ended(result));
    });
    match spawned {
        Ok(thread) => wait(started, grace, &news).unwrap_or_else(|| {
            // Only a panic ends it without a word; it was reported where it happened.
            let _ = thread.join();
            Err(Cause::new("the program ended unexpectedly").into())
        }),
        Err(error) => {
            Err(Cause::new("a thread cannot start").because(Cause::new(error.to_string())).into())
        }
    }
}

/// What becomes of the work; none if it ended without saying.
fn wait(started: &Started, grace: Duration, news: &Receiver<News>) -> Option<Result<(), Failure>> {
    let mut asked = false;
    loop {
        let next = if asked && !started.is_done() {
            news.recv_timeout(grace)
        } else {
            news.recv().map_err(|_| RecvTimeoutError::Disconnected)
        };
        match next {
            Ok(News::Ended(result)) => return Some(result),
            Ok(News::Asked) => asked = true,
            Err(RecvTimeoutError::Disconnected) => return None,
            // It started meanwhile, and ends in order.
            Err(RecvTimeoutError::Timeout) if started.is_done() => {}
            Err(RecvTimeoutError::Timeout) => {
                tracing::warn!(
                    "the start ends as it was asked to, although something that it reads or writes \
                     did not answer within {} s",
                    grace.as_secs()
                );
                return Some(Ok(()));
            }
        }
    }
}

/// Tells the first thread when somebody asks for the end.
pub(crate) async fn watch(tell: Sender<News>) {
    // Who does the work listens as well, and says why it cannot.
    let Ok(mut stop) = Stop::listen() else { return };
    stop.asked().await;
    let _ = tell.send(News::Asked);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Work that says nothing until it is told to.
    fn hanging(
        asked: bool,
    ) -> (impl FnOnce(Sender<News>) -> Result<(), Failure> + Send, Sender<()>) {
        let (release, released) = channel::<()>();
        let work = move |tell: Sender<News>| {
            if asked {
                tell.send(News::Asked).unwrap();
            }
            // As a FIFO that nobody writes.
            let _ = released.recv();
            Ok(())
        };
        (work, release)
    }

    #[test]
    fn start_that_hangs_is_left_behind_when_it_is_asked_to_end() {
        let (work, release) = hanging(true);
        assert_eq!(run(&Started::default(), Duration::ZERO, work), Ok(()));
        drop(release);
    }

    #[test]
    fn what_has_started_ends_in_order_however_long_that_takes() {
        let started = Started::default();
        started.done();
        let (work, release) = hanging(true);
        let running = std::thread::spawn(move || run(&started, Duration::ZERO, work));
        release.send(()).unwrap();
        assert_eq!(running.join().unwrap(), Ok(()));
    }

    #[test]
    fn start_that_is_not_asked_to_end_takes_its_time() {
        let (work, release) = hanging(false);
        let running = std::thread::spawn(|| run(&Started::default(), Duration::ZERO, work));
        release.send(()).unwrap();
        assert_eq!(running.join().unwrap(), Ok(()));
    }

    #[test]
    fn work_that_panics_is_a_failure() {
        let failed = run(&Started::default(), Duration::ZERO, |_| panic!("it broke"));
        assert!(failed.unwrap_err().cause.to_string().contains("unexpectedly"));
    }
}
