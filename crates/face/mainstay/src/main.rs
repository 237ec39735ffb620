//! The binary: arguments become a checked configuration, the configuration becomes wiring.
//!
//! No rule of the product lives here. Every sub-command is one module that starts parts, waits for
//! what it was asked for, and stops the parts in the opposite order.

mod catalog;
mod catalogs;
mod controller_pods;
mod credentials;
mod data;
mod demo;
mod embedded;
mod health;
mod hub;
mod images;
mod kubeconfig;
mod layout;
mod live;
mod log;
mod network;
mod opm;
mod packages;
mod ports;
mod resolve;
mod run;
mod sample;
mod stop;
mod subsystems;
mod supervise;
mod up;
mod wait;

use mainstay_cause::Cause;
use mainstay_cli::args::{Arguments, Command};
use mainstay_cli::config::{Demo, Run, Up};
use mainstay_cli::exit::{Exit, Failure};
use mainstay_cli::report::{self, Report};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::process::ExitCode;
use supervise::Started;
use tokio::runtime::Runtime;

/// Lets the process open as many files as it may: the usual limit of a shell or a service, 1,024, is less
/// than what the ports take, and whoever fills them would keep the journal from its next file.
fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Where that is refused, the ports give up connections for descriptors.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Gives back what requests have used; how soon is in `.cargo/config.toml`.
#[cfg(not(feature = "system-allocator"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    raise_file_limit();
    if let Some(command_line) = opm::started() {
        return block_on(command_line.threads(), command_line.run());
    }
    let arguments = Arguments::read();
    let filter = match (&arguments.command, &*arguments.log) {
        // What goes wrong with the cluster is part of the answer.
        (Command::Resolve(_) | Command::Why(_) | Command::Uninstall(_), "warn") => {
            "warn,kube_client=off"
        }
        (Command::Run(arguments), "warn") if arguments.upstream.debug() => "info,mainstay=debug",
        // Whoever looks after a cluster reads afterwards what was decided.
        (Command::Run(_), "warn") => "warn,mainstay::decision=info",
        (_, filter) => filter,
    };
    if let Err(cause) = log::start(filter, arguments.log_format) {
        report::error(&cause);
        return Exit::Usage.into();
    }
    let exit = match arguments.command {
        Command::Up(arguments) => {
            Up::check(*arguments).map(|up| run(|started| up::run(up, Report::stdout(), started)))
        }
        Command::Run(arguments) => Run::check(*arguments)
            .map(|checked| run(|started| run::run(checked, Report::stdout(), started))),
        Command::Demo(arguments) => Demo::check(arguments)
            .map(|demo| run(|started| demo::run(demo, Report::stdout(), started))),
        Command::Catalog(arguments) => Ok(block_on(Threads::One, catalog::run(arguments))),
        Command::Bundle(arguments) => Ok(block_on(Threads::One, catalog::run_bundle(arguments))),
        Command::Image(arguments) => Ok(block_on(Threads::All, catalog::run_image(*arguments))),
        Command::Resolve(arguments) => Ok(block_on(Threads::One, resolve::run(&arguments))),
        Command::Why(arguments) => Ok(block_on(Threads::One, resolve::why(&arguments))),
        Command::Uninstall(arguments) => Ok(block_on(Threads::One, resolve::uninstall(&arguments))),
        Command::Manifests(arguments) => {
            subsystems::manifests(&arguments).map(|text| catalog::print(text.as_bytes()))
        }
        Command::Version(arguments) => Ok(catalog::print(arguments.text().as_bytes())),
        Command::Completion(arguments) => Ok(catalog::print(&arguments.script())),
        Command::Opm(arguments) => {
            let command_line = opm::CommandLine::opm(arguments.arguments);
            return block_on(command_line.threads(), command_line.run());
        }
    };
    exit.unwrap_or_else(|cause| {
        report::error(&cause);
        Exit::Usage
    })
    .into()
}

/// Runs a sub-command to its end, on a thread of its own. It says when it has started:
/// a start that is asked to stop and does not, because something that it reads or writes does not
/// answer, is left behind.
fn run<F>(work: impl FnOnce(Started) -> F + Send + 'static) -> Exit
where
    F: Future<Output = Result<(), Failure>>,
{
    let started = Started::default();
    let starting = started.clone();
    let outcome = supervise::run(&started, supervise::GRACE, move |asked| {
        let runtime = runtime(Threads::All)?;
        runtime.spawn(supervise::watch(asked));
        let result = runtime.block_on(work(starting));
        // Whatever still blocks (a folder watcher, a resolution) is of no use to anybody any more.
        runtime.shutdown_background();
        result
    });
    exit(outcome.map(|()| Exit::Done))
}

/// Runs a command that may wait for a cluster or a registry. It is one task, on the program's first thread,
/// which is none of the workers that [`Threads::All`] has: the command may read files and compute without
/// holding up the connections that the workers drive.
fn block_on<E: From<Exit>>(threads: Threads, command: impl Future<Output = E>) -> E {
    let outcome = runtime(threads).map(|runtime| {
        let exit = runtime.block_on(command);
        // Whatever still blocks (the lookup of a name, the reading of a folder) is of no use to anybody any
        // more.
        runtime.shutdown_background();
        exit
    });
    exit(outcome)
}

/// How many threads a runtime has.
#[derive(Clone, Copy, Debug)]
enum Threads {
    /// The program's first thread. Commands that mostly read files start half a millisecond earlier so.
    One,
    /// A worker for each processor besides, for commands that serve or transfer much.
    All,
}

/// The asynchronous runtime of this process.
fn runtime(threads: Threads) -> Result<Runtime, Failure> {
    let mut builder = match threads {
        Threads::One => tokio::runtime::Builder::new_current_thread(),
        Threads::All => tokio::runtime::Builder::new_multi_thread(),
    };
    builder.enable_all().build().map_err(|error| {
        let cause = Cause::new("the asynchronous runtime cannot start");
        cause.because(Cause::new(error.to_string())).into()
    })
}

/// The exit code of an outcome; a failure is reported.
fn exit<E: From<Exit>>(outcome: Result<E, Failure>) -> E {
    outcome.unwrap_or_else(|failure| {
        report::error(&failure.cause);
        failure.exit.into()
    })
}
