//! `mainstay extension migrate`: moves operators and catalogs from OLM classic to OLM v1, and back.
//!
//! ```text
//! check ─► convert ─┬─► freeze, record, label, create ─► the controller takes over ─► OLM classic lets go
//!                   └─ killed anywhere ─► convert again │ rollback
//! cleanup ─► InstallPlans, labels, OperatorGroup
//! ```
//!
//! The rules are those of `mainstay_migration`. Verbs, states and flags are those of `library-olm`.

mod backup;
mod catalogs;
mod check;
mod cleanup;
mod convert;
mod operators;
mod rollback;
mod writes;

use super::{REQUEST_TIMEOUT, RequestTimeout, values};
use crate::examples;
use clap::{Args, Subcommand};
use mainstay_command::cluster::{ClusterArguments, ClusterWriter};
use mainstay_command::exit::{CommandFailure, ExitStatus};
use mainstay_command::io::CommandIo;
use mainstay_command::text::Format;
use mainstay_migration::{Acknowledgement, Acknowledgements};
use std::time::Duration;

/// Arguments of `migrate`.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check whether operators of OLM classic can be converted. Changes nothing.
    ///
    /// The exit code is 3 if an operator cannot be converted.
    #[command(after_help = examples::MIGRATE_CHECK)]
    Check(check::Arguments),
    /// Convert a Subscription to a ClusterExtension. The pods of the operator keep running.
    ///
    /// The ClusterExtension is pinned to the installed version until the controller of OLM v1 has taken the
    /// objects over. Then the ClusterServiceVersion and the Subscription are deleted. After an interruption,
    /// the same command continues.
    #[command(after_help = examples::MIGRATE_CONVERT)]
    Convert(Box<convert::Arguments>),
    /// Give an operator back to OLM classic.
    ///
    /// OLM classic takes the objects over again before OLM v1 lets them go. After an interruption, the same
    /// command continues.
    #[command(after_help = examples::MIGRATE_ROLLBACK)]
    Rollback(rollback::Arguments),
    /// Remove what OLM classic left after a conversion, and finish a conversion that was interrupted.
    #[command(after_help = examples::MIGRATE_CLEANUP)]
    Cleanup(cleanup::Arguments),
    /// Create ClusterCatalogs for the CatalogSources of all namespaces.
    #[command(after_help = examples::MIGRATE_CATALOGS)]
    Catalogs(catalogs::Arguments),
}

/// Which checks may fail.
#[derive(Args, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
struct AcknowledgementArguments {
    /// Accept that an operator of some namespaces watches all afterwards; its pods restart once.
    #[arg(long, help_heading = "Accepted findings")]
    acknowledge_watch_scope_change: bool,
    /// Accept that an operator that reports an OperatorCondition cannot delay upgrades afterwards.
    #[arg(long, help_heading = "Accepted findings")]
    acknowledge_operator_condition: bool,
    /// Accept that what an operator does with APIs of OLM classic has no effect afterwards.
    #[arg(long, help_heading = "Accepted findings")]
    acknowledge_olmv0_api_access: bool,
    /// Accept that the ServiceAccount of the OperatorGroup does not limit the installation afterwards.
    #[arg(long, help_heading = "Accepted findings")]
    acknowledge_scoped_serviceaccount: bool,
    /// Accept a Subscription or ClusterServiceVersion that is not in a steady state.
    #[arg(long, help_heading = "Accepted findings")]
    acknowledge_not_steady_state: bool,
}

impl AcknowledgementArguments {
    fn all(&self) -> Acknowledgements {
        let is_set = |flag: &Acknowledgement| match flag {
            Acknowledgement::WatchScopeChange => self.acknowledge_watch_scope_change,
            Acknowledgement::OperatorCondition => self.acknowledge_operator_condition,
            Acknowledgement::Olmv0ApiAccess => self.acknowledge_olmv0_api_access,
            Acknowledgement::ScopedServiceAccount => self.acknowledge_scoped_serviceaccount,
            Acknowledgement::NotSteadyState => self.acknowledge_not_steady_state,
        };
        Acknowledgement::ALL.into_iter().filter(is_set).collect()
    }
}

/// The format of the output, and the cluster.
#[derive(Args, Debug)]
struct CommonArguments {
    /// Output format.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    output: Format,
    /// The cluster.
    #[command(flatten, next_help_heading = "Cluster")]
    cluster: ClusterArguments,
}

/// How long each wait may take.
#[derive(Args, Debug)]
struct TimeoutArguments {
    /// How long to wait for a controller: seconds, or a duration such as 10m.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = values::timeout)]
    timeout: Duration,
}

pub(super) async fn run<C: ClusterWriter>(
    arguments: &Arguments,
    io: &mut CommandIo<'_>,
    connect: impl AsyncFnOnce(&ClusterArguments, RequestTimeout) -> Result<C, CommandFailure>,
) -> Result<ExitStatus, CommandFailure> {
    match &arguments.command {
        Command::Check(arguments) => {
            let cluster = connect(&arguments.common.cluster, REQUEST_TIMEOUT).await?;
            check::run(arguments, io, &cluster).await
        }
        Command::Convert(arguments) => {
            let cluster = connect(&arguments.common.cluster, REQUEST_TIMEOUT).await?;
            Box::pin(convert::run(arguments, io, &cluster)).await
        }
        Command::Rollback(arguments) => {
            let cluster = connect(&arguments.common.cluster, REQUEST_TIMEOUT).await?;
            Box::pin(rollback::run(arguments, io, &cluster)).await
        }
        Command::Cleanup(arguments) => {
            let cluster = connect(&arguments.common.cluster, REQUEST_TIMEOUT).await?;
            Box::pin(cleanup::run(arguments, io, &cluster)).await
        }
        Command::Catalogs(arguments) => {
            let cluster = connect(&arguments.common.cluster, REQUEST_TIMEOUT).await?;
            catalogs::run(arguments, io, &cluster).await
        }
    }
}
