//! `mainstay extension delete`: deletes ClusterExtensions after a preview and a confirmation.

use super::input;
use super::providing_objects::{Dependents, dependents};
use super::removal_preview::RemovalPreview;
use super::{
    REQUEST_TIMEOUT, RequestTimeout, find_extension, report_warnings, say, values, wait,
    write_failure,
};
use clap::Args;
use mainstay_api::resources::CLUSTER_EXTENSION;
use mainstay_cause::Cause;
use mainstay_command::cluster::{ClusterArguments, ClusterWriteError, ClusterWriter, ObjectWrite};
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_command::text::Format;
use mainstay_command::text::format_output;
use mainstay_object::Object;
use serde_json::Value;
use std::time::Duration;

/// Arguments of `delete`.
#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(super) struct Arguments {
    /// Name of the ClusterExtension.
    #[arg(value_name = "NAME", required_unless_present = "all", conflicts_with = "all")]
    name: Option<String>,
    /// Delete all ClusterExtensions of the cluster.
    #[arg(short, long)]
    all: bool,
    /// Delete without a question.
    #[arg(short, long)]
    yes: bool,
    /// Delete without a preview and without a question.
    #[arg(long, conflicts_with = "output")]
    no_preview: bool,
    /// Print the preview and let the cluster check the deletion, and delete nothing.
    #[arg(long)]
    dry_run: bool,
    /// Do not wait until the ClusterExtension is gone.
    #[arg(long)]
    no_wait: bool,
    /// How long to wait for each deletion: seconds, or a duration such as 10m.
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = values::timeout)]
    timeout: Duration,
    /// Format of the preview.
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
    let cluster = connect(&arguments.cluster, REQUEST_TIMEOUT).await?;
    let extensions = match &arguments.name {
        Some(name) => vec![find_extension(&cluster, name).await?],
        None => cluster.list(&CLUSTER_EXTENSION, None, None).await?,
    };
    if !arguments.no_preview {
        print_preview(arguments, &cluster, io, &extensions).await?;
    }
    if extensions.is_empty() {
        let _ = writeln!(io.stderr, "No resources found");
        return Ok(());
    }
    let needs_confirmation = !arguments.yes && !arguments.no_preview && !arguments.dry_run;
    if needs_confirmation && !confirm(io, &extensions)? {
        say(io, arguments.output, "deletion is cancelled");
        return Ok(());
    }
    for extension in &extensions {
        delete(arguments, &cluster, io, extension).await?;
    }
    Ok(())
}

/// Prints what goes, before anything is deleted.
async fn print_preview(
    arguments: &Arguments,
    cluster: &impl ClusterWriter,
    io: &mut CommandIo<'_>,
    extensions: &[Object],
) -> Result<(), CommandFailure> {
    let (mut values, mut texts) = (Vec::new(), String::new());
    for extension in extensions {
        let preview = RemovalPreview::read(cluster, extension).await?;
        let dependents = if arguments.all {
            Dependents::none()
        } else {
            dependents(cluster, extension.name(), false).await?
        };
        let mut value = preview.value();
        dependents.add_to(&mut value);
        values.push(value);
        texts.push_str(&preview.text(arguments.dry_run));
        texts.push_str(&dependents.text());
    }
    let text = format_output(arguments.output, &Value::Array(values), || texts);
    // Nothing is deleted before its preview is written.
    let written = io.stdout.write_all(text.as_bytes()).and_then(|()| io.stdout.flush());
    written.map_err(|error| {
        Cause::new("the preview cannot be written").because(Cause::new(error.to_string())).into()
    })
}

/// Asks whether to delete.
///
/// # Errors
/// Nobody can answer.
fn confirm(io: &mut CommandIo<'_>, extensions: &[Object]) -> Result<bool, CommandFailure> {
    let names: Vec<String> =
        extensions.iter().map(|extension| format!("{:?}", extension.name())).collect();
    let names = names.join(", ");
    if !io.interactive {
        let cause = Cause::new(format!("the deletion of extension {names} is not confirmed"));
        return Err(CommandFailure::usage(cause.remedy("confirm it with --yes")));
    }
    Ok(input::confirm(io, &format!("delete extension {names}?")))
}

/// Deletes a ClusterExtension, and waits until it is gone.
async fn delete(
    arguments: &Arguments,
    cluster: &impl ClusterWriter,
    io: &mut CommandIo<'_>,
    extension: &Object,
) -> Result<(), CommandFailure> {
    let name = extension.name();
    let write = ObjectWrite::Delete(extension);
    match cluster.write(&CLUSTER_EXTENSION, write, arguments.dry_run).await {
        Ok(accepted) => drop(report_warnings(io, accepted)),
        // Somebody else deleted it meanwhile.
        Err(ClusterWriteError::NotFound(_)) => {}
        Err(error) => {
            let what = format!("failed to delete extension {name:?}");
            return Err(write_failure(what, error));
        }
    }
    if arguments.dry_run {
        say(io, arguments.output, &format!("extension {name:?} deleted (dry run)"));
        return Ok(());
    }
    if !arguments.no_wait {
        let deleted = wait::wait_until_gone(cluster, extension, arguments.timeout).await;
        deleted.map_err(|failure| {
            Cause::new(format!("failed to delete extension {name:?}")).because(failure.cause)
        })?;
    }
    say(io, arguments.output, &format!("extension {name:?} deleted"));
    Ok(())
}
