//! `resolve`, `why` and `uninstall`: hand this process's outside to the commands: files, a cluster, registries.

use crate::live::{Live, Reach};
use mainstay_cli::exit::Exit;
use mainstay_cli::report;
use mainstay_cli::resolve::{self, Io, ResolveArguments};
use mainstay_cli::uninstall::{self, UninstallArguments};
use mainstay_cli::why::{self, WhyArguments};
use std::io::{self, BufWriter};
use std::time::Duration;

/// How long a cluster may take to answer who removes something.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs `resolve`.
pub(crate) fn run(arguments: &ResolveArguments) -> Exit {
    with(|io| {
        resolve::run(arguments, io, &mut || {
            let live = Live::connect(&Reach {
                cluster: &arguments.asked.cluster,
                patience: arguments.asked.timeout(),
                name: "mainstay-resolve",
                otherwise: "name its kubeconfig with --kubeconfig FILE, give a saved state with --state FILE, or name \
                            packages and a --catalog to do without a cluster",
            })?;
            Ok(Box::new(live))
        })
    })
}

/// Runs `why`.
pub(crate) fn why(arguments: &WhyArguments) -> Exit {
    with(|io| {
        why::run(arguments, io, &mut || {
            let live = Live::connect(&Reach {
                cluster: &arguments.asked.cluster,
                patience: arguments.asked.timeout(),
                name: "mainstay-why",
                otherwise: "name its kubeconfig with --kubeconfig FILE, or give a saved state with --state FILE",
            })?;
            Ok(Box::new(live))
        })
    })
}

/// Runs `uninstall`.
pub(crate) fn uninstall(arguments: &UninstallArguments) -> Exit {
    with(|io| {
        uninstall::run(arguments, io, &mut || {
            let live = Live::connect(&Reach {
                cluster: &arguments.cluster,
                patience: PATIENCE,
                name: "mainstay-uninstall",
                otherwise: "name its kubeconfig with --kubeconfig FILE",
            })?;
            Ok(Box::new(live))
        })
    })
}

fn with(run: impl FnOnce(&mut Io<'_>) -> Exit) -> Exit {
    let mut stdout = BufWriter::new(io::stdout().lock());
    let mut io = Io {
        stdin: &mut io::stdin().lock(),
        stdout: &mut stdout,
        stderr: &mut io::stderr(),
        folder: std::env::current_dir().unwrap_or_default(),
        colour: report::colours_on_stdout(),
    };
    run(&mut io)
}
