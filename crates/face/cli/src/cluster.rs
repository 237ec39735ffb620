//! Which cluster is meant, as all commands ask for it.

use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Which cluster is meant.
#[derive(Args, Clone, Debug, Default)]
pub struct ClusterArguments {
    /// The kubeconfig [default: as kubectl finds it; inside of a cluster, the account of the pod; else
    /// that of `mainstay up`].
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig [default: the current one].
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

impl ClusterArguments {
    /// Whether one was named.
    pub const fn is_named(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some()
    }
}

/// A cluster that is asked, and for how long its answers are waited for.
#[derive(Args, Clone, Debug)]
pub struct AskedArguments {
    /// The cluster.
    #[command(flatten)]
    pub cluster: ClusterArguments,
    /// How many seconds the cluster, or a registry, may take to answer.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
}

impl AskedArguments {
    /// How long a cluster or a registry may take to answer.
    pub const fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }
}
