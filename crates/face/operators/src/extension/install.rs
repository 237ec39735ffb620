//! `mainstay extension install`: creates a ClusterExtension and waits until its bundle is installed.

use super::spec::{DependencyArgument, SpecArguments};
use super::state::{self, InstallStage};
use super::watch;
use super::with_dependencies;
use super::{
    REQUEST_TIMEOUT, RequestTimeout, print_object, report_warnings, say, values, wait,
    write_failure,
};
use clap::Args;
use mainstay_api::resources::CLUSTER_EXTENSION;
use mainstay_cause::Cause;
use mainstay_command::cluster::{
    ClusterArguments, ClusterHandle, ClusterReadError, ClusterWriteError, ClusterWriter,
    ObjectWrite,
};
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_command::text::Format;
use mainstay_object::{Object, builtin};
use std::time::Duration;

/// Arguments of `install`.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Name of the new ClusterExtension.
    #[arg(value_name = "NAME")]
    name: String,
    /// Package to install.
    #[arg(short, long, alias = "package-name", value_name = "NAME")]
    package: String,
    /// Existing namespace for the objects of the bundle [default: that of the kubeconfig's context].
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    #[command(flatten)]
    pub(super) spec: SpecArguments,
    #[command(flatten)]
    pub(super) waiting: WaitArguments,
    /// Also create the ClusterExtensions that the bundle needs, and those that they need.
    ///
    /// All get the annotation mainstay.dev/dependencies, which the controller of Mainstay knows. A preview says
    /// why each is needed. Dependencies get the same namespace and ServiceAccount.
    #[arg(long)]
    with_dependencies: bool,
    /// Package to prefer where several packages provide what a bundle needs (repeatable).
    #[arg(long = "dependency", value_name = "PACKAGE", requires = "with_dependencies")]
    pub(super) preferred: Vec<String>,
    /// Existing namespace for the objects of dependencies [default: that of --namespace].
    #[arg(long, value_name = "NAME", requires = "with_dependencies")]
    pub(super) dependency_namespace: Option<String>,
    /// Delete the ClusterExtension again if it is not installed in the end.
    #[arg(long, conflicts_with_all = ["no_wait", "dry_run"])]
    pub(super) cleanup: bool,
    /// Let the cluster check the ClusterExtension, and create nothing.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Output format; `json` and `yaml` print the ClusterExtension, with --with-dependencies a list.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    pub(super) output: Format,
    /// The cluster.
    #[command(flatten, next_help_heading = "Cluster")]
    cluster: ClusterArguments,
}

/// Whether and how long a command waits for the controller.
#[derive(Args, Debug)]
pub(super) struct WaitArguments {
    /// Wait until the bundle is installed (default).
    #[arg(long, overrides_with = "no_wait")]
    wait: bool,
    /// Do not wait.
    #[arg(long, overrides_with = "wait")]
    no_wait: bool,
    /// How long to wait: seconds, or a duration such as 10m.
    #[arg(
        long,
        alias = "cleanup-timeout",
        value_name = "DURATION",
        default_value = "5m",
        value_parser = values::timeout
    )]
    pub(super) timeout: Duration,
}

impl WaitArguments {
    /// Whether to wait.
    pub(super) const fn waits(&self) -> bool {
        self.wait || !self.no_wait
    }
}

pub(super) async fn run<C: ClusterWriter>(
    arguments: &Arguments,
    io: &mut CommandIo<'_>,
    connect: impl AsyncFnOnce(&ClusterArguments, RequestTimeout) -> Result<C, CommandFailure>,
) -> Result<(), CommandFailure> {
    let Arguments { name, output, .. } = arguments;
    if arguments.with_dependencies
        && arguments.spec.dependencies() == Some(DependencyArgument::Refuse)
    {
        let cause = Cause::new("--dependencies Refuse contradicts --with-dependencies");
        return Err(CommandFailure::usage(cause.remedy("leave out one of them")));
    }
    let config = arguments.spec.read_config(io)?;
    let cluster = connect(&arguments.cluster, REQUEST_TIMEOUT).await?;
    let namespace = arguments.namespace.as_deref().unwrap_or_else(|| cluster.default_namespace());
    require_namespace(&cluster, namespace, "--namespace").await?;
    let mut extension = Object::new(&CLUSTER_EXTENSION.gvk(), name);
    extension.set(&["spec", "namespace"], namespace.into());
    extension.set(&["spec", "source", "sourceType"], "Catalog".into());
    let package = arguments.package.as_str();
    extension.set(&["spec", "source", "catalog", "packageName"], package.into());
    arguments.spec.apply(&mut extension, config.as_ref());
    if arguments.with_dependencies {
        return Box::pin(with_dependencies::install(arguments, &cluster, io, &extension)).await;
    }

    let write = ObjectWrite::Create(&extension);
    let created = match cluster.write(&CLUSTER_EXTENSION, write, arguments.dry_run).await {
        Ok(accepted) => report_warnings(io, accepted),
        Err(error) => return Err(install_failure(name, error)),
    };
    let waits = arguments.waiting.waits() && !arguments.dry_run;
    report_write(io, *output, &created, "created", arguments.dry_run);
    if !waits {
        print_object(io, *output, &created);
        return Ok(());
    }
    let timeout = arguments.waiting.timeout;
    let end = watch::wait(&cluster, io, (name, created.uid()), timeout, |found| {
        state::install_stage(found) == InstallStage::Installed
    })
    .await;
    let failure = match end {
        Ok(Ok(extension)) => {
            report_installed(io, *output, &extension);
            return Ok(());
        }
        Ok(Err(unfinished)) => unfinished.cause(name, "installing", timeout),
        Err(failure) => failure.cause,
    };
    let failure = Cause::new(format!("failed to install extension {name:?}")).because(failure);
    if !arguments.cleanup {
        return Err(failure
            .remedy(format!(
                "the extension stays; see more with: mainstay extension describe {name}"
            ))
            .remedy(format!("or remove it with: mainstay extension delete {name}"))
            .into());
    }
    clean_up(&cluster, io, arguments, &created).await.map_or_else(
        |cleanup| Err(failure.clone().because(cleanup.cause).into()),
        |()| Err(failure.clone().into()),
    )
}

/// Deletes the ClusterExtension again, and waits until it is gone.
pub(super) async fn clean_up(
    cluster: &impl ClusterWriter,
    io: &mut CommandIo<'_>,
    arguments: &Arguments,
    extension: &Object,
) -> Result<(), CommandFailure> {
    let name = extension.name();
    match cluster.write(&CLUSTER_EXTENSION, ObjectWrite::Delete(extension), false).await {
        Ok(_) | Err(ClusterWriteError::NotFound(_)) => {}
        Err(error) => {
            let what = format!("extension {name:?} cannot be deleted again");
            return Err(write_failure(what, error));
        }
    }
    wait::wait_until_gone(cluster, extension, arguments.waiting.timeout).await?;
    say(io, arguments.output, &format!("extension {name:?} deleted"));
    Ok(())
}

/// Checks that the namespace of a flag exists, as nothing creates it.
pub(super) async fn require_namespace(
    cluster: &impl ClusterHandle,
    namespace: &str,
    flag: &str,
) -> Result<(), CommandFailure> {
    match cluster.get(&builtin::NAMESPACE, None, namespace).await {
        // Whoever may not read namespaces learns from the conditions whether it exists.
        Ok(Some(_)) | Err(ClusterReadError::Forbidden(_)) => Ok(()),
        Ok(None) => {
            let cause = Cause::new(format!("the cluster has no namespace {namespace:?}"));
            Err(CommandFailure::usage(
                cause
                    .remedy(format!("create it with: kubectl create namespace {namespace}"))
                    .remedy(format!("or name another one with {flag} NAME")),
            ))
        }
        Err(error) => Err(error.into()),
    }
}

/// The failure of the creation.
pub(super) fn install_failure(name: &str, error: ClusterWriteError) -> CommandFailure {
    let what = format!("failed to install extension {name:?}");
    match error {
        ClusterWriteError::AlreadyExists(cause) => CommandFailure::usage(
            Cause::new(what)
                .because(cause)
                .remedy(format!("change it with: mainstay extension update {name}"))
                .remedy("or choose another name"),
        ),
        error => write_failure(what, error),
    }
}

/// Says that a write was accepted, such as `created`.
pub(super) fn report_write(
    io: &mut CommandIo<'_>,
    output: Format,
    extension: &Object,
    done: &str,
    dry_run: bool,
) {
    let dry_run = if dry_run { " (dry run)" } else { "" };
    say(io, output, &format!("extension {:?} {done}{dry_run}", extension.name()));
}

/// Prints what is installed in the end.
pub(super) fn report_installed(io: &mut CommandIo<'_>, output: Format, extension: &Object) {
    say(io, output, &installed_line(extension));
    print_object(io, output, extension);
}

/// What is installed, in a line.
fn installed_line(extension: &Object) -> String {
    let Some(bundle) = state::installed_bundle(extension) else {
        return format!("extension {:?} installed", extension.name());
    };
    let namespace = extension.str(&["spec", "namespace"]).unwrap_or_default();
    let version = bundle.version_text();
    format!("installed {} version {version} in namespace {namespace}", bundle.name)
}
