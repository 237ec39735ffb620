//! Priority and fairness: which requests wait for which others.
//!
//! ```text
//! FlowSchema, PriorityLevelConfiguration ─► Plan (read again at each change)
//! request ─► Plan: schema, level, flow ─► Seats: a seat at once, a place in a queue, or 429
//! ```

pub(crate) mod controller;
mod plan;
mod seats;

pub(crate) use plan::Schema;
pub(crate) use seats::{Seat, Usage};

use self::plan::Plan;
use self::seats::Seats;
use crate::chain::info::Info;
use arc_swap::ArcSwap;
use mainstay_auth::Identity;
use mainstay_store::Store;
use std::sync::Arc;
use std::time::Duration;

/// Priority and fairness of one server.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    plan: ArcSwap<Plan>,
    seats: Seats,
}

/// What is decided of a request.
#[derive(Debug)]
pub(crate) enum Turn {
    /// It is served now; the seat, if it needs one, is kept until it is answered.
    Served(Option<Seat>),
    /// It is refused: come back later.
    Refused,
}

impl Flow {
    /// Looks at a request: calls `found` with its schema.
    pub(crate) fn classify<T>(
        &self,
        identity: &Identity,
        info: &Info<'_>,
        found: impl FnOnce(&Schema) -> T,
    ) -> Option<T> {
        self.plan.load().classify(identity, info).map(found)
    }

    /// Waits for the turn of a request of a level, no longer than `patience`. `flow` is what
    /// [`flow`] makes of it.
    pub(crate) async fn turn(
        &self,
        level: Option<Arc<str>>,
        flow: u64,
        patience: Duration,
    ) -> Turn {
        let Some(level) = level else { return Turn::Served(None) };
        match self.seats.take(&level, flow, patience).await {
            Some(seat) => Turn::Served(Some(seat)),
            None => Turn::Refused,
        }
    }

    /// What the levels do now.
    pub(crate) fn usage(&self) -> Vec<Usage> {
        self.seats.usage()
    }

    /// Reads the flow schemas and priority levels that are stored.
    fn read(&self, store: &Store) {
        let plan = Plan::read(store);
        self.seats.set(&plan.levels);
        self.plan.store(Arc::new(plan));
    }
}

impl Schema {
    /// The level that the requests need a seat of, if they need one, and the number of the flow.
    pub(crate) fn place(&self, identity: &Identity, info: &Info<'_>) -> (Option<Arc<str>>, u64) {
        let level = self.level.bounds.map(|_| self.level.name.clone());
        let parts = [self.name.as_bytes(), &[0], self.flow(identity, info).as_bytes()];
        // FNV-1a: spread well enough, and the same on every machine.
        let hash = parts
            .iter()
            .flat_map(|part| part.iter())
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
            });
        (level, hash)
    }
}
