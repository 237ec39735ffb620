//! When to stop: SIGINT and SIGTERM, seen from the first moment on.

use mainstay_cause::Cause;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that end the program.
pub(crate) struct Stop {
    interrupt: Signal,
    terminate: Signal,
}

impl Stop {
    /// Begins to listen. Signals that arrive from now on are not lost.
    pub(crate) fn listen() -> Result<Self, Cause> {
        let open = |kind| {
            signal(kind).map_err(|error| {
                Cause::new("signals cannot be listened for").because(Cause::new(error.to_string()))
            })
        };
        Ok(Self {
            interrupt: open(SignalKind::interrupt())?,
            terminate: open(SignalKind::terminate())?,
        })
    }

    /// Waits for either signal.
    pub(crate) async fn asked(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
