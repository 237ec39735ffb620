//! The `mainstay` binary: command-line arguments become a checked configuration, the configuration
//! becomes running components.
//!
//! No rule of the product lives here. Each sub-command is one module, which starts components, waits
//! for its result, and stops the components in the opposite order.

mod catalog_listeners;
mod catalogs;
mod cluster_catalogs;
mod commands;
mod controller_pods;
mod data;
mod demo;
mod embedded;
mod health;
mod images;
mod kubeconfig;
mod layout;
mod log;
mod network;
mod operator_hub;
mod opm;
mod packages;
mod remote;
mod run;
mod sample;
mod stop;
mod subsystems;
mod supervise;
mod up;
mod wait;

use commands::{content, operators};
use mainstay_cause::Cause;
use mainstay_cli::args::{Arguments, Command};
use mainstay_cli::config::{Demo, RunSettings, Up};
use mainstay_command::exit::{CommandFailure, ExitStatus};
use mainstay_command::report::{self, ProgressReport};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::process::ExitCode;
use supervise::Startup;
use tokio::runtime::Runtime;

/// Raises the limit of open files to the hard limit. The usual soft limit of a shell or a service, 1,024,
/// is less than the connections that the listeners accept. Clients that fill it would keep the store's
/// journal from opening its next file.
fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Without the higher limit, the listeners close connections when descriptors run out.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// An allocator that returns unused memory to the system; `.cargo/config.toml` sets how soon.
#[cfg(not(any(feature = "system-allocator", without_jemalloc)))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    raise_file_limit();
    if let Some(command_line) = opm::other_command_line() {
        return block_on(command_line.threads(), command_line.run());
    }
    let arguments = Arguments::read();
    let filter = match (&arguments.command, &*arguments.log) {
        // The output of these commands reports the cluster's errors.
        (
            Command::Catalog(_)
            | Command::Crd(_)
            | Command::Extension(_)
            | Command::Resolve(_)
            | Command::Why(_)
            | Command::Uninstall(_),
            "warn",
        ) => "warn,kube_client=off",
        (Command::Run(arguments), "warn") if arguments.upstream.debug() => "info,mainstay=debug",
        // Administrators read in the log what the controllers decided.
        (Command::Run(_), "warn") => "warn,mainstay::decision=info",
        (_, filter) => filter,
    };
    if let Err(cause) = log::start(filter, arguments.log_format) {
        report::error(&cause);
        return ExitStatus::Usage.into();
    }
    let exit = match arguments.command {
        Command::Up(arguments) => Up::check(*arguments)
            .map(|up| run(|startup| up::run(up, ProgressReport::stdout(), startup))),
        Command::Run(arguments) => RunSettings::check(*arguments)
            .map(|checked| run(|startup| run::run(checked, ProgressReport::stdout(), startup))),
        Command::Demo(arguments) => Demo::check(arguments)
            .map(|demo| run(|startup| demo::run(demo, ProgressReport::stdout(), startup))),
        Command::Catalog(arguments) => Ok(block_on(Threads::One, content::catalog(arguments))),
        Command::Bundle(arguments) => Ok(block_on(Threads::One, content::bundle(arguments))),
        Command::Image(arguments) => Ok(block_on(Threads::All, content::image(*arguments))),
        Command::Crd(arguments) => Ok(block_on(Threads::One, content::crd(&arguments))),
        Command::Resolve(arguments) => Ok(block_on(Threads::One, content::resolve(&arguments))),
        Command::Why(arguments) => Ok(block_on(Threads::One, operators::why(&arguments))),
        Command::Uninstall(arguments) => {
            Ok(block_on(Threads::One, operators::uninstall(&arguments)))
        }
        Command::Extension(arguments) => {
            Ok(block_on(Threads::One, operators::extension(&arguments)))
        }
        Command::Manifests(arguments) => {
            subsystems::manifests(&arguments).map(|text| commands::print(text.as_bytes()))
        }
        Command::Version(arguments) => Ok(commands::print(arguments.text().as_bytes())),
        Command::Completion(arguments) => Ok(commands::print(&arguments.script())),
        Command::Opm(arguments) => {
            let command_line = opm::CommandLine::opm(arguments.arguments);
            return block_on(command_line.threads(), command_line.run());
        }
    };
    exit.unwrap_or_else(|cause| {
        report::error(&cause);
        ExitStatus::Usage
    })
    .into()
}

/// Runs a sub-command to its end, on a thread of its own. The sub-command marks the end of its startup.
/// A startup that does not stop on request is abandoned: a file or folder that it uses blocks.
fn run<F>(work: impl FnOnce(Startup) -> F + Send + 'static) -> ExitStatus
where
    F: Future<Output = Result<(), CommandFailure>>,
{
    let startup = Startup::default();
    let command_startup = startup.clone();
    let outcome = supervise::run(&startup, supervise::GRACE, move |events| {
        let runtime = runtime(Threads::All)?;
        runtime.spawn(supervise::watch_signals(events));
        let result = runtime.block_on(work(command_startup));
        // Nothing needs the result of tasks that still block (a folder watcher, a resolution).
        runtime.shutdown_background();
        result
    });
    exit(outcome.map(|()| ExitStatus::Done))
}

/// Runs a command that may wait for a cluster or a registry. The command is one task on the program's first
/// thread, which is none of the workers of [`Threads::All`]. There it may read files and compute without
/// blocking the connections that the workers drive.
fn block_on<E: From<ExitStatus>>(threads: Threads, command: impl Future<Output = E>) -> E {
    let outcome = runtime(threads).map(|runtime| {
        let exit = runtime.block_on(command);
        // Nothing needs the result of tasks that still block (a DNS lookup, the reading of a folder).
        runtime.shutdown_background();
        exit
    });
    exit(outcome)
}

/// How many threads a runtime has.
#[derive(Clone, Copy, Debug)]
enum Threads {
    /// The program's first thread only: commands that mostly read files start half a millisecond earlier.
    One,
    /// Also a worker for each processor, for commands that serve or transfer much.
    All,
}

/// The asynchronous runtime of this process.
fn runtime(threads: Threads) -> Result<Runtime, CommandFailure> {
    let mut builder = match threads {
        Threads::One => tokio::runtime::Builder::new_current_thread(),
        Threads::All => tokio::runtime::Builder::new_multi_thread(),
    };
    builder.enable_all().build().map_err(|error| {
        let cause = Cause::new("the asynchronous runtime cannot start");
        cause.because(Cause::new(error.to_string())).into()
    })
}

/// Reports a failure, and returns the exit code of an outcome.
fn exit<E: From<ExitStatus>>(outcome: Result<E, CommandFailure>) -> E {
    outcome.unwrap_or_else(|failure| {
        report::error(&failure.cause);
        failure.exit.into()
    })
}
