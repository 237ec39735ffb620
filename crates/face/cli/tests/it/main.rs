//! The command line as people and scripts meet it: arguments in, text and exit code out.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod baselines;
mod builds;
mod bundles;
mod drawn;
mod extensions;
mod findings;
mod help;
mod images;
mod journeys;
mod judged;
mod queries;
mod recorded;
mod rendering;
mod resolve;
mod shown;
mod states;
mod uninstall;
mod universes;
mod unwritten;
mod why;
