//! `mainstay extension rollback`: installs the bundle of an earlier revision again.
//!
//! The version is pinned and the policy `SelfCertified`, as catalogs provide no way back. Nothing else of the
//! spec changes, and the controller checks the older CustomResourceDefinitions as in each upgrade.

use super::install::WaitArguments;
use super::update::{self, Change};
use super::{REQUEST_TIMEOUT, RequestTimeout, find_extension, history, spec, state};
use clap::Args;
use mainstay_command::cluster::{ClusterArguments, ClusterWriter};
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_command::text::{Format, escape_controls};

/// Arguments of `rollback`.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Name of the ClusterExtension.
    #[arg(value_name = "NAME")]
    name: String,
    /// Revision to go back to [default: the last one with another bundle than the installed one].
    #[arg(long, value_name = "REVISION")]
    to_revision: Option<i64>,
    #[command(flatten)]
    waiting: WaitArguments,
    /// Let the cluster check the change, and store nothing.
    #[arg(long)]
    dry_run: bool,
    /// Output format; `json` and `yaml` print the ClusterExtension.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    output: Format,
    /// The cluster.
    #[command(flatten, next_help_heading = "Cluster")]
    cluster: ClusterArguments,
}

pub(super) async fn run<C: ClusterWriter>(
    arguments: &Arguments,
    io: &mut CommandIo<'_>,
    connect: impl AsyncFnOnce(&ClusterArguments, RequestTimeout) -> Result<C, CommandFailure>,
) -> Result<(), CommandFailure> {
    let Arguments { name, output, .. } = arguments;
    let cluster = connect(&arguments.cluster, REQUEST_TIMEOUT).await?;
    let extension = find_extension(&cluster, name).await?;
    let installed = state::installed_bundle(&extension).map(|bundle| bundle.name);
    let found = history::read(&cluster, name).await?;
    for warning in &found.unreadable {
        let _ = writeln!(io.stderr, "warning: {}", escape_controls(warning));
    }
    let target = history::rollback_target(&found, name, installed, arguments.to_revision)?;
    let line = format!(
        "rolling back to revision {}: {} {}",
        target.number,
        escape_controls(&target.bundle),
        escape_controls(&target.version)
    );
    super::say(io, *output, &line);
    let change = Change {
        name,
        doing: ("roll back", "rolling back", "rolled back"),
        waiting: &arguments.waiting,
        dry_run: arguments.dry_run,
        output: *output,
    };
    let pin = |extension: &mut mainstay_object::Object| {
        extension.set(&spec::VERSION, target.version.clone().into());
        extension.set(&spec::POLICY, "SelfCertified".into());
    };
    update::carry_out(&cluster, io, &change, pin).await?;
    if arguments.dry_run {
        return Ok(());
    }
    let follow = format!(
        "its version is pinned; to follow the catalog again: mainstay extension update {name} --version= --upgrade-constraint-policy CatalogProvided"
    );
    super::say(io, *output, &follow);
    Ok(())
}
