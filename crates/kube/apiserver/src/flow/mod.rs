//! API priority and fairness: flow control of requests.
//!
//! ```text
//! FlowSchema, PriorityLevelConfiguration ─► Plan (read again at each change)
//! FlowSchema, PriorityLevelConfiguration ─► FlowConfig (read again at each change)
//! request ─► FlowConfig: schema, level, flow ─► Seats: a seat, a position in a queue, or 429

mod config;
pub(crate) mod controller;
mod seats;

pub(crate) use config::FlowSchema;
pub(crate) use seats::{LevelUsage, Seat};

use self::config::FlowConfig;
use self::seats::Seats;
use crate::chain::info::RequestSummary;
use arc_swap::ArcSwap;
use mainstay_auth::Identity;
use mainstay_store::Store;
use std::sync::Arc;
use std::time::Duration;

/// API priority and fairness of one server.
#[derive(Debug, Default)]
pub(crate) struct FlowControl {
    config: ArcSwap<FlowConfig>,
    seats: Seats,
}

/// The outcome for a request.
#[derive(Debug)]
pub(crate) enum SeatOutcome {
    /// The request is served now. It holds the seat, if it needs one, until its response is
    /// complete.
    Served(Option<Seat>),
    /// The request is refused with 429.
    Refused,
}

impl FlowControl {
    /// Calls `read` with the flow schema of a request.
    pub(crate) fn classify<T>(
        &self,
        identity: &Identity,
        info: &RequestSummary<'_>,
        read_schema: impl FnOnce(&FlowSchema) -> T,
    ) -> Option<T> {
        self.config.load().classify(identity, info).map(read_schema)
    }

    /// Waits for a seat of a priority level, no longer than `timeout`.
    /// [`FlowSchema::level_and_flow`] computes `flow`.
    pub(crate) async fn take_seat(
        &self,
        level: Option<Arc<str>>,
        flow: u64,
        timeout: Duration,
    ) -> SeatOutcome {
        let Some(level) = level else { return SeatOutcome::Served(None) };
        match self.seats.take(&level, flow, timeout).await {
            Some(seat) => SeatOutcome::Served(Some(seat)),
            None => SeatOutcome::Refused,
        }
    }

    /// The usage of the priority levels.
    pub(crate) fn usage(&self) -> Vec<LevelUsage> {
        self.seats.usage()
    }

    /// Reads the stored flow schemas and priority levels again.
    fn read(&self, store: &Store) {
        let config = FlowConfig::read(store);
        self.seats.configure(&config.levels);
        self.config.store(Arc::new(config));
    }
}

impl FlowSchema {
    /// The priority level in which the requests need a seat, if they need one, and the hash of the
    /// flow.
    pub(crate) fn level_and_flow(
        &self,
        identity: &Identity,
        info: &RequestSummary<'_>,
    ) -> (Option<Arc<str>>, u64) {
        let level = self.level.limits.map(|_| self.level.name.clone());
        let parts = [self.name.as_bytes(), &[0], self.distinguish(identity, info).as_bytes()];
        // FNV-1a: uniform enough, and the same on every machine.
        let hash = parts
            .iter()
            .flat_map(|part| part.iter())
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
            });
        (level, hash)
    }
}
