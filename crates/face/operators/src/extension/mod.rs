//! `mainstay extension`: works with ClusterExtensions of OLM v1 on a cluster, as `kubectl operator olmv1`
//! does.
//!
//! ```text
//! flags ─► SpecArguments ─► ClusterExtension ─► create, replace ─► conditions, polled ─┬─► text
//! cluster ─► ClusterExtension ─► list, describe, wait ─────────────────────────────────┼─► JSON, YAML
//! bundle (folder, image) ─► manifest ─► installer roles, difference, approval ─────────┘
//! ```
//!
//! The texts of successful commands are upstream's. Faults of upstream are mended: errors go to standard
//! error with their remedy, version ranges are those of the API, a failed installation with `--cleanup` is
//! deleted, and the deprecated ServiceAccount is only set on request.
//!
//! What these commands do not do: choose bundles. The controller does; `mainstay resolve` shows its choice.

mod approve;
mod bundle_source;
mod config;
mod delete;
mod describe;
mod history;
mod input;
mod install;
mod list;
mod migrate;
mod owned;
mod providing_objects;
mod rbac;
mod removal_preview;
mod rollback;
pub mod settings;
mod spec;
mod state;
mod update;
mod values;
mod wait;
mod watch;
mod with_dependencies;

pub(crate) use owned::{
    account_objects, hidden_note, object_text, owned_objects, owned_resource, owner_selector,
};
pub(crate) use providing_objects::dependents;
pub(crate) use watch::wait_until_controller_ends;

use crate::examples;
use clap::{Args, Subcommand};
use mainstay_api::resources::CLUSTER_EXTENSION;
use mainstay_cause::Cause;
use mainstay_command::cluster::{
    AcceptedWrite, ClusterArguments, ClusterHandle, ClusterWriteError, ClusterWriter, find_named,
};
use mainstay_command::exit::{CommandFailure, ExitStatus};
use mainstay_command::io::CommandIo;
use mainstay_command::io::finish;
use mainstay_command::text::Format;
use mainstay_command::text::escape_controls;
use mainstay_command::text::format_output;
use mainstay_object::Object;
use std::time::Duration;

/// The limit of a request of commands whose `--timeout` limits their wait.
const REQUEST_TIMEOUT: RequestTimeout = RequestTimeout::Fixed(Duration::from_secs(30));

/// How long a cluster may take to respond to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestTimeout {
    /// The duration of the flag `--timeout`.
    Flag(Duration),
    /// A duration that no flag changes.
    Fixed(Duration),
}

impl RequestTimeout {
    /// The duration.
    pub const fn duration(self) -> Duration {
        let (Self::Flag(duration) | Self::Fixed(duration)) = self;
        duration
    }
}

/// Arguments of `extension`.
#[derive(Args, Debug)]
pub struct ExtensionArguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Create a ClusterExtension, and wait until its bundle is installed.
    ///
    /// The namespace must exist. Without --no-wait the command ends when the bundle is installed, when the
    /// controller gives up, or after --timeout; then it says why.
    #[command(disable_version_flag = true, after_help = examples::EXTENSION_INSTALL)]
    Install(Box<install::Arguments>),
    /// Change a ClusterExtension, and wait until the change is carried out.
    ///
    /// Fields without a flag stay as they are. An empty `--channel=`, `--version=`, `--catalog-selector=` or
    /// `--service-account=` removes its field, and so does an empty --config file. With
    /// `--ignore-unset=false`, all fields without a flag get their defaults.
    #[command(disable_version_flag = true, after_help = examples::EXTENSION_UPDATE)]
    Update(Box<update::Arguments>),
    /// Delete a ClusterExtension or all of them, with all their objects.
    ///
    /// Warning: the CustomResourceDefinitions of the extension go, and with them all objects of their kinds
    /// in all namespaces. A preview counts them before the deletion is confirmed.
    #[command(after_help = examples::EXTENSION_DELETE)]
    Delete(delete::Arguments),
    /// List ClusterExtensions.
    #[command(visible_alias = "get", after_help = examples::EXTENSION_LIST)]
    List(list::Arguments),
    /// Describe a ClusterExtension: what is installed, its conditions in plain words, its objects.
    #[command(after_help = examples::EXTENSION_DESCRIBE)]
    Describe(describe::Arguments),
    /// Wait until a ClusterExtension is installed, has a version, or is deleted.
    #[command(after_help = examples::EXTENSION_WAIT)]
    Wait(wait::Arguments),
    /// List the revisions of a ClusterExtension: what was installed, and when.
    ///
    /// Revisions are ClusterObjectSets, or Helm releases in Secrets. Controllers keep the latest ones only.
    #[command(after_help = examples::EXTENSION_HISTORY)]
    History(history::Arguments),
    /// Install the bundle of an earlier revision again, and wait until it is installed.
    ///
    /// The version is pinned, and any version may follow the installed one (policy `SelfCertified`). A catalog
    /// must still have the bundle. Where older CustomResourceDefinitions would lose stored data, the
    /// controller refuses, as in each upgrade.
    #[command(after_help = examples::EXTENSION_ROLLBACK)]
    Rollback(rollback::Arguments),
    /// Print the ServiceAccount and the roles that install a bundle, or roles for its users.
    ///
    /// The roles grant exactly what the bundle needs. Without --bundle, the bundle is the one that the
    /// cluster has installed for NAME.
    #[command(after_help = examples::EXTENSION_RBAC)]
    Rbac(Box<rbac::Arguments>),
    /// Approve the permissions that a bundle needs, for clusters with `--extension-trust approved`.
    ///
    /// Shows the permissions that the bundle of NAME needs, and how they differ from what is approved. After a
    /// confirmation, writes them into the ClusterRole NAME-approved-permissions, and into Roles of this name for
    /// namespaces. They are bound to nobody. You can only approve permissions that you have yourself.
    #[command(after_help = examples::EXTENSION_APPROVE)]
    Approve(Box<approve::Arguments>),
    /// Move operators and catalogs from OLM classic to OLM v1, without a restart of their pods.
    #[command(after_help = examples::EXTENSION_MIGRATE)]
    Migrate(migrate::Arguments),
}

/// Runs the command. It connects to a cluster only if it needs one.
pub async fn run<C: ClusterWriter>(
    arguments: &ExtensionArguments,
    io: &mut CommandIo<'_>,
    connect: impl AsyncFnOnce(&ClusterArguments, RequestTimeout) -> Result<C, CommandFailure>,
) -> ExitStatus {
    finish(io, async |io| run_command(arguments, io, connect).await).await
}

// Futures of the longer commands are large: each is boxed, so that the others do not carry its size.
async fn run_command<C: ClusterWriter>(
    arguments: &ExtensionArguments,
    io: &mut CommandIo<'_>,
    connect: impl AsyncFnOnce(&ClusterArguments, RequestTimeout) -> Result<C, CommandFailure>,
) -> Result<ExitStatus, CommandFailure> {
    match &arguments.command {
        Command::Install(arguments) => {
            Box::pin(install::run(arguments, io, connect)).await?;
        }
        Command::Update(arguments) => Box::pin(update::run(arguments, io, connect)).await?,
        Command::Delete(arguments) => Box::pin(delete::run(arguments, io, connect)).await?,
        Command::List(arguments) => list::run(arguments, io, connect).await?,
        Command::Describe(arguments) => describe::run(arguments, io, connect).await?,
        Command::Wait(arguments) => wait::run(arguments, io, connect).await?,
        Command::History(arguments) => history::run(arguments, io, connect).await?,
        Command::Rollback(arguments) => {
            Box::pin(rollback::run(arguments, io, connect)).await?;
        }
        Command::Rbac(arguments) => Box::pin(rbac::run(arguments, io, connect)).await?,
        Command::Approve(arguments) => {
            Box::pin(approve::run(arguments, io, connect)).await?;
        }
        Command::Migrate(arguments) => {
            return Box::pin(migrate::run(arguments, io, connect)).await;
        }
    }
    Ok(ExitStatus::Done)
}

/// Finds a ClusterExtension by name.
///
/// # Errors
/// The cluster has no such ClusterExtension, does not serve the kind, or does not respond.
async fn find_extension(
    cluster: &impl ClusterHandle,
    name: &str,
) -> Result<Object, CommandFailure> {
    find_named(cluster, &CLUSTER_EXTENSION, name, "mainstay extension list").await
}

/// Prints the warnings of the API server, and returns the object.
fn report_warnings(io: &mut CommandIo<'_>, accepted: AcceptedWrite) -> Object {
    for warning in accepted.warnings {
        let _ = writeln!(io.stderr, "warning: {}", escape_controls(&warning));
    }
    accepted.object
}

/// The failure of a write, with remedies for what people meet.
fn write_failure(what: String, error: ClusterWriteError) -> CommandFailure {
    let (ClusterWriteError::Invalid(cause) | ClusterWriteError::Failed(cause)) = &error else {
        return Cause::new(what).because(error.into()).into();
    };
    let text = cause.to_string();
    let missing_field = |field: &str| text.contains(&format!("unknown field \"spec.{field}"));
    let remedy = if missing_field("config") || missing_field("progressDeadlineMinutes") {
        Some(
            "leave out --config and --progress-deadline-minutes, or install the experimental CustomResourceDefinitions: mainstay run --crd-channel experimental",
        )
    } else if text.contains("spec.serviceAccount: Required") {
        Some(
            "this version of OLM v1 needs --service-account NAME; `mainstay extension rbac` prints one with its roles",
        )
    } else if text.contains("spec.serviceAccount.name") && text.contains("is immutable") {
        Some(
            "an extension keeps its ServiceAccount: give that one the permissions that `mainstay extension rbac` prints",
        )
    } else if text.contains("invalid version expression") {
        Some("write a range without `==`, `&&` and hyphens, such as '>=1.2 <2 || 2.1.x'")
    } else {
        None
    };
    let failure = Cause::new(what).because(error.into());
    match remedy {
        Some(remedy) => failure.remedy(remedy).into(),
        None => failure.into(),
    }
}

/// Prints a line for people, at once; other formats print only their value.
fn say(io: &mut CommandIo<'_>, format: Format, line: &str) {
    if format == Format::Text {
        io.print(&format!("{line}\n"));
        // The command may wait next. The sink keeps an error.
        let _ = io.stdout.flush();
    }
}

/// Prints an object unless the format is text.
fn print_object(io: &mut CommandIo<'_>, format: Format, object: &Object) {
    if format != Format::Text {
        io.print(&format_output(format, &object.to_value(), String::new));
    }
}
