//! Command-line arguments, as typed.

mod controllers;
mod values;

pub use controllers::{ControllersArguments, CrdChannelArgument};

use crate::examples;
use crate::upstream::UpstreamArguments;
use clap::builder::{RangedU64ValueParser, StyledStr};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use mainstay_command::cluster::ClusterArguments;
use mainstay_command::profile::Profile;
use mainstay_command::text::Format;
use mainstay_command::text::format_output;
use mainstay_content::bundle::BundleArguments;
use mainstay_content::catalog::CatalogArguments;
use mainstay_content::crd::CrdArguments;
use mainstay_content::image::ImageArguments;
use mainstay_content::resolve::ResolveArguments;
use mainstay_formats::edit_distance;
use mainstay_object::size::{DEFAULT_OBJECT_BYTES, MAX_OBJECT_BYTES, MIN_OBJECT_BYTES};
use mainstay_operators::extension::ExtensionArguments;
use mainstay_operators::uninstall::UninstallArguments;
use mainstay_operators::why::WhyArguments;
use serde_json::{Value, json};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use values::{address, duration};

/// Installs and runs operators on a Kubernetes cluster, or on a cluster of its own.
#[derive(Debug, Parser)]
#[command(name = "mainstay", version, about, propagate_version = true, after_help = examples::ALL)]
pub struct Arguments {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
    /// Log filter, such as `info` or `mainstay_classic=debug`. The log goes to standard error. The
    /// default of `run` includes the decisions of its controllers (`mainstay::decision=info`).
    #[arg(
        long,
        global = true,
        value_name = "FILTER",
        env = "MAINSTAY_LOG",
        default_value = "warn"
    )]
    pub log: String,
    /// Format of the log.
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "FORMAT",
        env = "MAINSTAY_LOG_FORMAT",
        default_value_t = LogFormat::Text
    )]
    pub log_format: LogFormat,
}

/// Format of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Text for people.
    Text,
    /// One JSON object per line.
    Json,
    /// `key=value` pairs.
    Logfmt,
}

impl Arguments {
    /// Parses the command line of this process. Prints help or an error, and ends the process, if there
    /// is no command to run.
    pub fn read() -> Self {
        Self::try_parse().unwrap_or_else(|error| harmless(error).exit())
    }
}

/// Commands in place of those that other tools have and users look for.
const ELSEWHERE: [(&[&str], &str); 3] = [
    (
        &["install", "add", "subscribe", "create", "apply"],
        "a Subscription installs an operator: `mainstay resolve PACKAGE` shows what would be installed, `kubectl apply -f SUBSCRIPTION` installs it; with OLM v1, `mainstay extension install` installs it",
    ),
    (
        &["upgrade", "update"],
        "a Subscription upgrades its operator: `mainstay resolve` shows the next upgrades, `kubectl` approves an InstallPlan that waits for approval; with OLM v1, `mainstay extension update` upgrades it",
    ),
    (
        // The last one is a command of ours, for mistyped names.
        &["remove", "delete", "uninstall"],
        "`mainstay uninstall NAME --dry-run` shows what would be deleted with an operator; with OLM v1, `mainstay extension delete NAME --dry-run` does",
    ),
];

/// Removes suggestions of commands that change or remove something: mistyping `install` must not
/// suggest `uninstall`.
fn harmless(mut error: clap::Error) -> clap::Error {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return error;
    }
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    let argument = argument.to_lowercase();
    let words = ELSEWHERE.iter().flat_map(|(words, _)| words.iter().copied());
    let meant = edit_distance::nearest(&argument, words, 1);
    let known = meant.and_then(|word| ELSEWHERE.iter().find(|(words, _)| words.contains(&word)));
    let known = known.map(|(_, tip)| *tip);
    let is_safe = |name: &String| !matches!(name.as_str(), "uninstall" | "up" | "run");
    let safe = match error.remove(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(names)) if known.is_none() => {
            names.into_iter().filter(is_safe).collect()
        }
        Some(ContextValue::String(name)) if known.is_none() => {
            [name].into_iter().filter(is_safe).collect()
        }
        _ => Vec::new(),
    };
    if !safe.is_empty() {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(safe));
    }
    if let Some(tip) = known {
        let tips = vec![StyledStr::from(tip)];
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}

/// The sub-commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start a cluster in memory, install an operator from a sample catalog and upgrade it.
    #[command(after_help = examples::DEMO)]
    Demo(DemoArguments),
    /// Start a cluster that keeps its data, and serve it until interrupted.
    #[command(after_help = examples::UP)]
    Up(Box<UpArguments>),
    /// Run operators on an existing cluster, until interrupted.
    #[command(after_help = examples::RUN)]
    Run(Box<RunArguments>),
    /// Validate, list and show file-based catalogs, and build images of them.
    #[command(after_help = examples::CATALOG)]
    Catalog(CatalogArguments),
    /// Validate bundle folders, render them to manifests, and build images of them.
    #[command(after_help = examples::BUNDLE)]
    Bundle(BundleArguments),
    /// Copy, inspect and unpack images in registries, in files and in the local image store.
    #[command(after_help = examples::IMAGE)]
    Image(Box<ImageArguments>),
    /// Compare CustomResourceDefinitions: which changes break stored objects or clients, and why.
    #[command(after_help = examples::CRD)]
    Crd(CrdArguments),
    /// Show the next installations and upgrades of operators, or why they fail.
    #[command(after_help = examples::RESOLVE)]
    Resolve(Box<ResolveArguments>),
    /// Explain why a Subscription, InstallPlan, ClusterServiceVersion or CatalogSource is not healthy.
    #[command(after_help = examples::WHY)]
    Why(Box<WhyArguments>),
    /// Uninstall an operator, after a preview of what is deleted, what is kept and which deletion never
    /// finishes.
    #[command(after_help = examples::UNINSTALL)]
    Uninstall(Box<UninstallArguments>),
    /// Install, update, inspect and delete ClusterExtensions of OLM v1, and derive their permissions.
    #[command(after_help = examples::EXTENSION)]
    Extension(Box<ExtensionArguments>),
    /// Print the manifests that a cluster needs for `mainstay run`: CRDs, ServiceAccount and RBAC.
    #[command(after_help = examples::MANIFESTS)]
    Manifests(ManifestsArguments),
    /// Print the version.
    #[command(after_help = examples::VERSION)]
    Version(VersionArguments),
    /// Print a completion script for a shell.
    #[command(after_help = examples::COMPLETION)]
    Completion(CompletionArguments),
    /// Run a command of `opm`; a binary with the name `opm` does the same.
    #[command(disable_help_flag = true, after_help = examples::OPM)]
    Opm(OpmArguments),
}

/// Arguments of `manifests`.
#[derive(Args, Debug)]
pub struct ManifestsArguments {
    /// Output format: YAML documents (also for `text`), or one JSON List.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Yaml)]
    output: Format,
    /// The subsystems to run.
    #[command(flatten)]
    pub controllers: ControllersArguments,
    /// Names of the standard namespaces.
    #[arg(long, value_enum, default_value_t = Profile::Standard)]
    pub profile: Profile,
}

impl ManifestsArguments {
    /// The manifests as printed.
    pub fn text(&self, manifests: &[Value]) -> String {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": manifests});
        match self.output {
            Format::Json => format_output(Format::Json, &list, String::new),
            Format::Yaml | Format::Text => {
                let documents: Vec<_> = manifests.iter().map(mainstay_yaml::to_string).collect();
                documents.join("---\n")
            }
        }
    }
}

/// Arguments of `version`.
#[derive(Args, Debug)]
pub struct VersionArguments {
    /// Output format.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    output: Format,
}

impl VersionArguments {
    /// The version of this program.
    pub fn text(&self) -> String {
        let version = env!("CARGO_PKG_VERSION");
        let value = json!({"name": "mainstay", "version": version});
        format_output(self.output, &value, || format!("mainstay {version}\n"))
    }
}

/// Arguments of `completion`.
#[derive(Args, Debug)]
pub struct CompletionArguments {
    /// The shell.
    #[arg(value_enum, value_name = "SHELL")]
    shell: clap_complete::Shell,
}

impl CompletionArguments {
    /// The script.
    pub fn script(&self) -> Vec<u8> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Arguments::command(), "mainstay", &mut script);
        script
    }
}

/// Arguments of `opm`, which reads them itself.
#[derive(Args, Debug)]
pub struct OpmArguments {
    /// Arguments of `opm`, such as `validate DIR`; `help` lists its commands.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<String>,
}

/// Arguments of `demo`.
#[derive(Args, Debug)]
pub struct DemoArguments {
    /// Exit at the end of the demo, instead of serving until Ctrl-C.
    #[arg(long)]
    pub exit: bool,
    /// Folder of a file-based catalog to use instead of the sample catalog.
    #[arg(long, value_name = "DIR")]
    pub catalog: Option<PathBuf>,
    /// Package to install [default: the first one that can be installed and has two upgrades].
    #[arg(long, value_name = "NAME")]
    pub package: Option<String>,
    /// Listen address of the API; port 0 selects a free port.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:0", value_parser = address)]
    pub listen: SocketAddr,
    /// File to write the kubeconfig to [default: a file in the folder for temporary files].
    #[arg(long, value_name = "PATH")]
    pub kubeconfig: Option<PathBuf>,
}

/// Arguments of `up`.
#[derive(Args, Debug)]
pub struct UpArguments {
    /// Folder for the data of the cluster [default: `mainstay` in the user's data folder].
    #[arg(long, value_name = "DIR", conflicts_with = "in_memory")]
    pub data_dir: Option<PathBuf>,
    /// Keep the data in memory only: it is lost when the program ends.
    #[arg(long)]
    pub in_memory: bool,
    /// Listen address of the API; port 0 selects a free port.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:6443", value_parser = address)]
    pub listen: SocketAddr,
    /// File to write the kubeconfig to [default: `kubeconfig` in the data folder].
    #[arg(long, value_name = "PATH")]
    pub kubeconfig: Option<PathBuf>,
    /// Serve the file-based catalog in a folder, or in the SQLite database of an index image, as a
    /// CatalogSource (repeatable).
    #[arg(long = "catalog", value_name = "NAME=DIR|DATABASE")]
    pub catalogs: Vec<String>,
    /// Add an image to the registry of the cluster under a reference: a bundle folder, a catalog folder
    /// or database, an OCI layout or an image archive (repeatable).
    #[arg(long = "image", value_name = "REF=DIR|DATABASE|LAYOUT|ARCHIVE")]
    pub images: Vec<String>,
    /// Loopback address of the image registry, for push and pull without TLS; port 0 selects a free port
    /// [default: the previous address, or a free port].
    #[arg(long, value_name = "ADDR:PORT", value_parser = address)]
    pub registry: Option<SocketAddr>,
    /// Number of simulated nodes.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub nodes: u32,
    /// Names of the standard namespaces.
    #[arg(long, value_enum, default_value_t = Profile::Standard)]
    pub profile: Profile,
    /// Default catalogs of the cluster, which its OperatorHub `cluster` enables: `none`, `profile` for
    /// the catalogs of the distribution, or a folder with manifests of `CatalogSources` [default:
    /// `profile` with --profile openshift, else `none`].
    #[arg(long, value_name = "none|profile|DIR")]
    pub default_sources: Option<String>,
    /// Where the registry servers of catalogs by image and by ConfigMap run.
    #[arg(long, value_enum, default_value_t = CatalogModeArgument::InProcess, value_name = "MODE")]
    pub catalog_mode: CatalogModeArgument,
    /// The subsystems to run.
    #[command(flatten)]
    pub controllers: ControllersArguments,
    /// Serve only the Kubernetes API and its workloads; `mainstay run` can run operators on the cluster.
    #[arg(long, conflicts_with_all = ["controllers", "catalogs", "catalog_mode", "default_sources"])]
    pub bare: bool,
    /// Move the files of a damaged store into a subfolder, list the lost data, and start with the rest.
    #[arg(long, conflicts_with = "in_memory")]
    pub repair: bool,
    /// Maximum size of a stored object, in bytes of JSON; the API rejects a longer one with 413. The
    /// default is the limit of etcd.
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = DEFAULT_OBJECT_BYTES,
        value_parser = RangedU64ValueParser::<usize>::new()
            .range(MIN_OBJECT_BYTES as u64..=MAX_OBJECT_BYTES as u64)
    )]
    pub max_object_bytes: usize,
    /// Write an audit log to this file, with one line of JSON for each stage of a request.
    #[arg(long, value_name = "FILE")]
    pub audit_log: Option<PathBuf>,
    /// Namespaces that get copied CSVs even if copied CSVs are disabled.
    #[arg(
        long,
        alias = "protectedCopiedCSVNamespaces",
        value_name = "NAME,…",
        value_delimiter = ','
    )]
    pub protected_copied_csv_namespaces: Vec<String>,
    /// Network settings of operators.
    #[command(flatten)]
    pub network: NetworkArguments,
}

/// Arguments of `run`.
#[derive(Args, Debug)]
pub struct RunArguments {
    /// The cluster to work on.
    #[command(flatten)]
    pub cluster: ClusterArguments,
    /// Folder for pulled images and copies of catalogs [default: `mainstay/run` in the user's data
    /// folder].
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Add the file-based catalog in a folder, or in the SQLite database of an index image, as a
    /// CatalogSource in the global catalog namespace (repeatable).
    #[arg(long = "catalog", value_name = "NAME=DIR|DATABASE")]
    pub catalogs: Vec<String>,
    /// Names of the standard namespaces.
    #[arg(long, value_enum, default_value_t = Profile::Standard)]
    pub profile: Profile,
    /// Default catalogs of the cluster, which its OperatorHub `cluster` enables: `none`, `profile` for
    /// the catalogs of the distribution, or a folder with manifests of `CatalogSources` [default:
    /// `profile` with --profile openshift, else `none`].
    #[arg(long, value_name = "none|profile|DIR")]
    pub default_sources: Option<String>,
    /// Global catalog namespace, whose catalogs are available in all namespaces [default: that of the
    /// profile].
    #[arg(
        long,
        value_name = "NAME",
        env = "GLOBAL_CATALOG_NAMESPACE",
        aliases = ["global-namespace", "global-catalog-namespace", "catalogNamespace"]
    )]
    pub namespace: Option<String>,
    /// Where the registry servers of catalogs by image and by ConfigMap run.
    #[arg(long, value_enum, default_value_t = CatalogModeArgument::InProcess, value_name = "MODE")]
    pub catalog_mode: CatalogModeArgument,
    /// The subsystems to run.
    #[command(flatten)]
    pub controllers: ControllersArguments,
    /// Listen address of `/healthz`, `/readyz` and `/metrics`; port 0 selects a free port.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8080", value_parser = address)]
    pub listen: SocketAddr,
    /// Address of this process for the cluster, which requests `PackageManifests` there [default: in a
    /// pod, the address of the pod; elsewhere none, and `PackageManifests` are not served].
    #[arg(long, value_name = "IP")]
    pub packages_address: Option<IpAddr>,
    /// Listen address of the package server, over TLS; port 0 selects a free port [default: all
    /// addresses, port 5443].
    #[arg(long, value_name = "ADDR:PORT", value_parser = address)]
    pub packages_listen: Option<SocketAddr>,
    /// Listen address of ClusterCatalogs over HTTPS; port 0 selects a free port [default: with
    /// `--packages-address` or in a pod all addresses, port 8443; elsewhere a free port of 127.0.0.1].
    #[arg(long, value_name = "ADDR:PORT", value_parser = address)]
    pub catalogs_listen: Option<SocketAddr>,
    /// Timeout for unpacking a bundle, unless its OperatorGroup sets one; 0 means no timeout.
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration)]
    pub bundle_unpack_timeout: Duration,
    /// How long failing steps of an InstallPlan are retried before the InstallPlan fails.
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration)]
    pub install_plan_retry_timeout: Duration,
    /// Namespaces that get copied CSVs even if copied CSVs are disabled.
    #[arg(
        long,
        alias = "protectedCopiedCSVNamespaces",
        value_name = "NAME,…",
        value_delimiter = ','
    )]
    pub protected_copied_csv_namespaces: Vec<String>,
    /// Network settings of operators.
    #[command(flatten)]
    pub network: NetworkArguments,
    /// The flags of Operator Lifecycle Manager's programs.
    #[command(flatten)]
    pub upstream: UpstreamArguments,
}

/// Network settings of operators.
#[derive(Args, Debug)]
pub struct NetworkArguments {
    /// Proxy for HTTP; Deployments of operators get it as `HTTP_PROXY`.
    #[arg(long, value_name = "URL", default_value = "", hide_default_value = true)]
    pub http_proxy: String,
    /// Proxy for HTTPS; Deployments of operators get it as `HTTPS_PROXY`.
    #[arg(long, value_name = "URL", default_value = "", hide_default_value = true)]
    pub https_proxy: String,
    /// Hosts that operators reach without a proxy; Deployments of operators get the list as `NO_PROXY`.
    #[arg(long, value_name = "LIST", default_value = "", hide_default_value = true)]
    pub no_proxy: String,
    /// PEM file with certificates that operators trust in addition to those of the system. Each
    /// `ConfigMap` with the label `config.openshift.io/inject-trusted-cabundle` gets them.
    #[arg(long, value_name = "FILE")]
    pub trusted_ca: Option<PathBuf>,
}

/// Where the registry servers of catalogs by image and by ConfigMap run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CatalogModeArgument {
    /// In this process.
    InProcess,
    /// In pods, as OLM does. Pods on simulated nodes serve nothing.
    Pods,
    /// In this process, or in a pod if this process cannot read the catalog.
    Auto,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_definition_passes_claps_assertions() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn mistyped_command_never_suggests_one_that_removes_or_starts_something() {
        let said = |word: &str| {
            let error = Arguments::try_parse_from(["mainstay", word]).unwrap_err();
            harmless(error).to_string()
        };
        for (word, tip) in [
            ("install", "a Subscription installs an operator"),
            ("upgrade", "a Subscription upgrades its operator"),
            ("delete", "mainstay uninstall NAME --dry-run"),
        ] {
            let text = said(word);
            assert!(text.contains(tip), "{text}");
            assert!(!text.contains("similar"), "{text}");
        }
        for (word, tip) in [
            ("instal", "a Subscription installs an operator"),
            ("upgarde", "a Subscription upgrades its operator"),
            ("uninstal", "mainstay uninstall NAME --dry-run"),
            ("unistall", "mainstay uninstall NAME --dry-run"),
        ] {
            assert!(said(word).contains(tip), "{}", said(word));
            assert!(!said(word).contains("similar"), "{}", said(word));
        }
        for word in ["upp", "rnu"] {
            assert!(!said(word).contains("similar"), "{}", said(word));
        }
        assert!(said("resolv").contains("'resolve'"), "{}", said("resolv"));
    }

    #[test]
    fn help_and_version_are_commands_too() {
        for words in [&["mainstay", "help"][..], &["mainstay", "help", "up"]] {
            let error = Arguments::try_parse_from(words).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::DisplayHelp);
        }
        let read = Arguments::try_parse_from(["mainstay", "version"]).unwrap();
        assert!(matches!(read.command, Command::Version(_)));
    }

    #[test]
    fn every_shell_gets_a_script_that_knows_the_commands() {
        for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
            let words = ["mainstay", "completion", shell];
            let Command::Completion(completion) = Arguments::try_parse_from(words).unwrap().command
            else {
                panic!("it was typed")
            };
            let script = String::from_utf8(completion.script()).unwrap();
            for word in ["bundle", "image", "cosign-key", "registries-conf"] {
                assert!(script.contains(word), "{shell}: {word}");
            }
        }
    }

    #[test]
    fn memory_and_folder_exclude_each_other() {
        let both = ["mainstay", "up", "--in-memory", "--data-dir", "x"];
        assert!(Arguments::try_parse_from(both).is_err());
    }
}
