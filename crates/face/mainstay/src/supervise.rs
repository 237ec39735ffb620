//! Startup supervision: a startup that blocks still ends on SIGINT or SIGTERM.
//!
//! Between its tasks a startup listens for signals and stops in order. Its file-system calls cannot be
//! interrupted: a disk does not respond, a network folder has lost its server, a FIFO has no writer. So
//! the work has a thread of its own, and the program's first thread waits for the end of the work or for
//! [`GRACE`] after a signal. Then the process exits, and blocked calls end with it.
//!
//! A sub-command that has started has no time limit: closing a store may take long.

use crate::stop::StopSignals;
use mainstay_cause::Cause;
use mainstay_command::exit::CommandFailure;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// How long a startup may take to stop after a signal.
pub(crate) const GRACE: Duration = Duration::from_secs(2);
/// Stack size of the work's thread in bytes, the usual one of a program's first thread.
const STACK: usize = 8 << 20;

/// Whether a sub-command has finished its startup; clones share the state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Startup(Arc<AtomicBool>);

impl Startup {
    /// Marks the startup as finished: from now on, stopping in order may take any time.
    pub(crate) fn done(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn is_done(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// What the first thread waits for.
pub(crate) enum WorkEvent {
    Finished(Result<(), CommandFailure>),
    /// The process received SIGINT or SIGTERM.
    StopRequested,
}

/// Does the work on a thread of its own. Abandons the thread if its startup is unfinished and does not end
/// within `grace` after a stop request.
pub(crate) fn run(
    startup: &Startup,
    grace: Duration,
    work: impl FnOnce(Sender<WorkEvent>) -> Result<(), CommandFailure> + Send + 'static,
) -> Result<(), CommandFailure> {
    let (sender, events) = channel();
    let work_sender = sender.clone();
    let thread = std::thread::Builder::new().name("work".to_owned()).stack_size(STACK);
    let spawned = thread.spawn(move || {
        let result = work(work_sender);
        // Sending fails if the first thread has abandoned this one.
        let _ = sender.send(WorkEvent::Finished(result));
    });
    match spawned {
        Ok(thread) => wait_for_end(startup, grace, &events).unwrap_or_else(|| {
            // Only a panic ends the thread without an event; the panic hook has reported it.
            let _ = thread.join();
            Err(Cause::new("the program ended unexpectedly").into())
        }),
        Err(error) => {
            Err(Cause::new("a thread cannot start").because(Cause::new(error.to_string())).into())
        }
    }
}

/// Waits for the result of the work; `None` if its thread ended without an event.
fn wait_for_end(
    startup: &Startup,
    grace: Duration,
    events: &Receiver<WorkEvent>,
) -> Option<Result<(), CommandFailure>> {
    let mut stop_requested = false;
    loop {
        let next = if stop_requested && !startup.is_done() {
            events.recv_timeout(grace)
        } else {
            events.recv().map_err(|_| RecvTimeoutError::Disconnected)
        };
        match next {
            Ok(WorkEvent::Finished(result)) => return Some(result),
            Ok(WorkEvent::StopRequested) => stop_requested = true,
            Err(RecvTimeoutError::Disconnected) => return None,
            // The startup finished meanwhile, and the command stops in order.
            Err(RecvTimeoutError::Timeout) if startup.is_done() => {}
            Err(RecvTimeoutError::Timeout) => {
                tracing::warn!(
                    "the startup was stopped on request, although a file or folder did not respond within {} s",
                    grace.as_secs()
                );
                return Some(Ok(()));
            }
        }
    }
}

/// Sends an event to the first thread on SIGINT or SIGTERM.
pub(crate) async fn watch_signals(sender: Sender<WorkEvent>) {
    // The work listens for signals as well, and reports why it cannot.
    let Ok(mut signals) = StopSignals::listen() else { return };
    signals.wait().await;
    let _ = sender.send(WorkEvent::StopRequested);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Work that blocks until it is released.
    fn blocked_work(
        stop_requested: bool,
    ) -> (impl FnOnce(Sender<WorkEvent>) -> Result<(), CommandFailure> + Send, Sender<()>) {
        let (release, released) = channel::<()>();
        let work = move |sender: Sender<WorkEvent>| {
            if stop_requested {
                sender.send(WorkEvent::StopRequested).unwrap();
            }
            // Blocks like a FIFO without a writer.
            let _ = released.recv();
            Ok(())
        };
        (work, release)
    }

    #[test]
    fn blocked_startup_is_abandoned_when_a_stop_is_requested() {
        let (work, release) = blocked_work(true);
        assert_eq!(run(&Startup::default(), Duration::ZERO, work), Ok(()));
        drop(release);
    }

    #[test]
    fn started_command_may_take_any_time_to_stop() {
        let startup = Startup::default();
        startup.done();
        let (work, release) = blocked_work(true);
        let running = std::thread::spawn(move || run(&startup, Duration::ZERO, work));
        release.send(()).unwrap();
        assert_eq!(running.join().unwrap(), Ok(()));
    }

    #[test]
    fn startup_without_a_stop_request_may_take_any_time() {
        let (work, release) = blocked_work(false);
        let running = std::thread::spawn(|| run(&Startup::default(), Duration::ZERO, work));
        release.send(()).unwrap();
        assert_eq!(running.join().unwrap(), Ok(()));
    }

    #[test]
    fn panic_in_the_work_is_a_failure() {
        let failed = run(&Startup::default(), Duration::ZERO, |_| panic!("it broke"));
        assert!(failed.unwrap_err().cause.to_string().contains("unexpectedly"));
    }
}
