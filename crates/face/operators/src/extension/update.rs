//! `mainstay extension update`: changes a ClusterExtension and waits until the change is carried out.

use super::install::{WaitArguments, report_installed, report_write};
use super::providing_objects::missing_dependencies;
use super::spec::{self, SpecArguments};
use super::state::{self, InstallStage};
use super::watch;
use super::{
    REQUEST_TIMEOUT, RequestTimeout, find_extension, print_object, report_warnings, say,
    write_failure,
};
use clap::{ArgAction, Args};
use mainstay_api::resources::CLUSTER_EXTENSION;
use mainstay_cause::Cause;
use mainstay_command::cluster::{ClusterArguments, ClusterWriteError, ClusterWriter, ObjectWrite};
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_command::text::{Format, escape_controls_in_lines};
use mainstay_object::Object;
use mainstay_resolver::extension::DEPENDENCIES_ANNOTATION;
use std::collections::BTreeMap;

/// How often the change is made again because the object changed meanwhile.
const ATTEMPTS: u32 = 8;

/// Arguments of `update`.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Name of the ClusterExtension.
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    spec: SpecArguments,
    /// Whether fields without a flag stay as they are; with `false` they get their defaults.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    ignore_unset: bool,
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
    if arguments.spec.is_empty() && arguments.ignore_unset {
        let cause = Cause::new("no flag says what to change");
        return Err(CommandFailure::usage(
            cause.remedy("name a field, such as --version RANGE; --help lists them"),
        ));
    }
    let config = arguments.spec.read_config(io)?;
    let cluster = connect(&arguments.cluster, REQUEST_TIMEOUT).await?;
    let change = Change {
        name,
        doing: ("update", "updating", "updated"),
        waiting: &arguments.waiting,
        dry_run: arguments.dry_run,
        output: *output,
    };
    let apply = |extension: &mut Object| {
        if !arguments.ignore_unset {
            spec::reset(extension);
        }
        arguments.spec.apply(extension, config.as_ref());
    };
    carry_out(&cluster, io, &change, apply).await
}

/// A change of a ClusterExtension.
pub(super) struct Change<'a> {
    /// The name of the ClusterExtension.
    pub(super) name: &'a str,
    /// What the command does: its verb, the present and the past participle.
    pub(super) doing: (&'a str, &'a str, &'a str),
    pub(super) waiting: &'a WaitArguments,
    pub(super) dry_run: bool,
    pub(super) output: Format,
}

/// Changes a ClusterExtension, and waits until the change is carried out.
///
/// # Errors
/// The cluster refuses the change or does not respond, or the controller does not carry it out in time.
pub(super) async fn carry_out(
    cluster: &impl ClusterWriter,
    io: &mut CommandIo<'_>,
    change: &Change<'_>,
    apply: impl Fn(&mut Object),
) -> Result<(), CommandFailure> {
    let &Change { name, doing: (verb, present, past), waiting, dry_run, output } = change;
    let Some(updated) = replace(cluster, io, change, apply).await? else {
        say(io, output, "no changes detected - extension already in desired state");
        if output != Format::Text {
            print_object(io, output, &find_extension(cluster, name).await?);
        }
        return Ok(());
    };
    report_write(io, output, &updated, past, dry_run);
    if let Some(missing) = Box::pin(missing_dependencies(cluster, &updated)).await {
        let _ = write!(io.stderr, "note: {}", escape_controls_in_lines(&missing.render()));
    }
    if dry_run || !waiting.waits() {
        print_object(io, output, &updated);
        return Ok(());
    }
    let (timeout, target) = (waiting.timeout, (name, updated.uid()));
    let end = watch::wait(cluster, io, target, timeout, |found| {
        state::install_stage(found) == InstallStage::Installed
    })
    .await?;
    match end {
        Ok(extension) => {
            report_installed(io, output, &extension);
            Ok(())
        }
        Err(unfinished) => Err(Cause::new(format!("failed to {verb} extension {name:?}"))
            .because(unfinished.cause(name, present, timeout))
            .remedy(format!("see more with: mainstay extension describe {name}"))
            .into()),
    }
}

/// Changes the object; none if it has the fields already. Repeats the change if another writer is faster.
pub(super) async fn replace(
    cluster: &impl ClusterWriter,
    io: &mut CommandIo<'_>,
    change: &Change<'_>,
    apply: impl Fn(&mut Object),
) -> Result<Option<Object>, CommandFailure> {
    let mut attempt = 1;
    loop {
        let current = find_extension(cluster, change.name).await?;
        let mut wanted = current.clone();
        apply(&mut wanted);
        if is_same(&current, &wanted) {
            return Ok(None);
        }
        let write = ObjectWrite::Replace(&wanted);
        match cluster.write(&CLUSTER_EXTENSION, write, change.dry_run).await {
            Ok(accepted) => return Ok(Some(report_warnings(io, accepted))),
            Err(ClusterWriteError::Conflict(_)) if attempt < ATTEMPTS => attempt += 1,
            Err(error) => {
                let what = format!("failed to {} extension {:?}", change.doing.0, change.name);
                return Err(write_failure(what, error));
            }
        }
    }
}

/// Whether two objects have the same labels, the same policy for dependencies and the same spec, with the
/// default of the API.
fn is_same(current: &Object, wanted: &Object) -> bool {
    let comparable = |object: &Object| {
        let mut object = object.clone();
        if object.get(&spec::POLICY).is_none() {
            object.set(&spec::POLICY, "CatalogProvided".into());
        }
        let labels: BTreeMap<String, String> =
            object.labels().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        let policy = object.annotation(DEPENDENCIES_ANNOTATION).map(str::to_owned);
        (labels, policy, object.get(&["spec"]).cloned())
    };
    comparable(current) == comparable(wanted)
}
