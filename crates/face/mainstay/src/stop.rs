//! Stop signals: SIGINT and SIGTERM, received from the first moment on.

use mainstay_cause::Cause;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that end the program.
pub(crate) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    /// Begins to listen. Signals that arrive from now on are not lost.
    pub(crate) fn listen() -> Result<Self, Cause> {
        let open = |kind| {
            signal(kind).map_err(|error| {
                Cause::new("the handler of stop signals cannot be installed")
                    .because(Cause::new(error.to_string()))
            })
        };
        Ok(Self {
            interrupt: open(SignalKind::interrupt())?,
            terminate: open(SignalKind::terminate())?,
        })
    }

    /// Waits for SIGINT or SIGTERM.
    pub(crate) async fn wait(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
