//! Command-line arguments, as typed.

mod values;

use crate::bundle::BundleArguments;
use crate::catalog::{CatalogArguments, Format};
use crate::cluster::ClusterArguments;
use crate::examples;
use crate::image::ImageArguments;
use crate::resolve::{ResolveArguments, format_output};
use crate::uninstall::UninstallArguments;
use crate::upstream::UpstreamArguments;
use crate::why::WhyArguments;
use clap::builder::{RangedU64ValueParser, StyledStr};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use mainstay_formats::edit_distance;
use mainstay_object::size::{DEFAULT_OBJECT_BYTES, MAX_OBJECT_BYTES, MIN_OBJECT_BYTES};
use serde_json::{Value, json};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use values::{address, duration};

/// Runs operators on Kubernetes; brings the Kubernetes API along where there is none.
#[derive(Debug, Parser)]
#[command(name = "mainstay", version, about, propagate_version = true, after_help = examples::ALL)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Log filter, such as `info` or `mainstay_classic=debug`; logs go to standard error. `run` logs
    /// what it decides, too (`mainstay::decision=info`), unless this says otherwise.
    #[arg(
        long,
        global = true,
        value_name = "FILTER",
        env = "MAINSTAY_LOG",
        default_value = "warn"
    )]
    pub log: String,
    /// How log lines are written.
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

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// An object of JSON in each line.
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
        "operators are installed by Subscriptions: `mainstay resolve PACKAGE` says what would come, \
         `kubectl apply -f SUBSCRIPTION` installs it",
    ),
    (
        &["upgrade", "update"],
        "operators are upgraded by their Subscriptions: `mainstay resolve` says what would come, and \
         `kubectl` approves an InstallPlan that waits",
    ),
    (
        // The last one is a command of ours, for mistyped names.
        &["remove", "delete", "uninstall"],
        "`mainstay uninstall NAME --dry-run` says what would go with an operator",
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
    /// Bring up a cluster in memory, install an operator from a sample catalog and upgrade it.
    #[command(after_help = examples::DEMO)]
    Demo(DemoArguments),
    /// Bring up a cluster to keep, and serve it until interrupted.
    #[command(after_help = examples::UP)]
    Up(Box<UpArguments>),
    /// Run operators on a cluster that is there, until interrupted.
    #[command(after_help = examples::RUN)]
    Run(Box<RunArguments>),
    /// Judge, list and show file-based catalogs, build images of them.
    #[command(after_help = examples::CATALOG)]
    Catalog(CatalogArguments),
    /// Judge bundle folders, render them to manifests, build images of them.
    #[command(after_help = examples::BUNDLE)]
    Bundle(BundleArguments),
    /// Move, look at and unpack images, between registries, files and a store of this machine.
    #[command(after_help = examples::IMAGE)]
    Image(Box<ImageArguments>),
    /// Tell what would be installed or upgraded, hop by hop, or why it cannot be.
    #[command(after_help = examples::RESOLVE)]
    Resolve(Box<ResolveArguments>),
    /// Explain why a Subscription, InstallPlan, version or catalog is not where it should be.
    #[command(after_help = examples::WHY)]
    Why(Box<WhyArguments>),
    /// Remove an operator; say first what goes with it, what stays, and what would hang.
    #[command(after_help = examples::UNINSTALL)]
    Uninstall(Box<UninstallArguments>),
    /// Print the manifests that a cluster needs for `mainstay run`: CRDs, ServiceAccount and RBAC.
    #[command(after_help = examples::MANIFESTS)]
    Manifests(ManifestsArguments),
    /// Print the version.
    #[command(after_help = examples::VERSION)]
    Version(VersionArguments),
    /// Print a script that completes command lines in a shell.
    #[command(after_help = examples::COMPLETION)]
    Completion(CompletionArguments),
    /// Work on file-based catalogs as `opm` does; also when started under that name.
    #[command(disable_help_flag = true, after_help = examples::OPM)]
    Opm(OpmArguments),
}

/// Which subsystems are meant.
#[derive(Args, Debug)]
pub struct ControllersArguments {
    /// The subsystems to run: names, `*` for all, `-NAME` to leave one out. There is `classic`,
    /// Operator Lifecycle Manager.
    #[arg(
        long = "controllers",
        id = "controllers",
        value_name = "NAME,…",
        value_delimiter = ',',
        default_value = "*",
        allow_hyphen_values = true
    )]
    pub list: Vec<String>,
}

/// Arguments of `manifests`.
#[derive(Args, Debug)]
pub struct ManifestsArguments {
    /// How they are written: documents of YAML, also as `text`, or one JSON List.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Yaml)]
    output: Format,
    /// The subsystems that are meant.
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
    /// How it is written.
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
    /// What `opm` is given, such as `validate DIR`; `help` lists the commands.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<String>,
}

/// Arguments of `demo`.
#[derive(Args, Debug)]
pub struct DemoArguments {
    /// End when the story is told instead of serving until Ctrl-C.
    #[arg(long)]
    pub exit: bool,
    /// Folder with a file-based catalog to tell the story with, instead of the sample.
    #[arg(long, value_name = "DIR")]
    pub catalog: Option<PathBuf>,
    /// Package to install [default: the first one with two upgrades that can be installed].
    #[arg(long, value_name = "NAME")]
    pub package: Option<String>,
    /// Address to serve the API at; port 0 picks a free one.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:0", value_parser = address)]
    pub listen: SocketAddr,
    /// Where to write the kubeconfig [default: a file in the folder for temporary files].
    #[arg(long, value_name = "PATH")]
    pub kubeconfig: Option<PathBuf>,
}

/// Arguments of `up`.
#[derive(Args, Debug)]
pub struct UpArguments {
    /// Folder that keeps the cluster [default: `mainstay` in the user's data folder].
    #[arg(long, value_name = "DIR", conflicts_with = "in_memory")]
    pub data_dir: Option<PathBuf>,
    /// Keep nothing: the cluster is gone when the program ends.
    #[arg(long)]
    pub in_memory: bool,
    /// Address to serve the API at; port 0 picks a free one.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:6443", value_parser = address)]
    pub listen: SocketAddr,
    /// Where to write the kubeconfig [default: `kubeconfig` in the data folder].
    #[arg(long, value_name = "PATH")]
    pub kubeconfig: Option<PathBuf>,
    /// Serve the file-based catalog in this folder, or the one in the SQLite database of an index, as
    /// a CatalogSource (repeatable).
    #[arg(long = "catalog", value_name = "NAME=DIR|DATABASE")]
    pub catalogs: Vec<String>,
    /// Have an image: a bundle folder, a catalog folder or database, an OCI layout or an image
    /// archive, under a reference (repeatable).
    #[arg(long = "image", value_name = "REF=DIR|DATABASE|LAYOUT|ARCHIVE")]
    pub images: Vec<String>,
    /// Loopback address to serve images at, for push and pull without TLS; port 0 picks a free one
    /// [default: where they were served before, or a free port].
    #[arg(long, value_name = "ADDR:PORT", value_parser = address)]
    pub registry: Option<SocketAddr>,
    /// How many simulated nodes the cluster has.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub nodes: u32,
    /// Names of the standard namespaces.
    #[arg(long, value_enum, default_value_t = Profile::Standard)]
    pub profile: Profile,
    /// Catalogs that the cluster has by default, as its OperatorHub `cluster` allows: `none`,
    /// `profile` for those of the distribution, or a folder with manifests of `CatalogSources`
    /// [default: `profile` with --profile openshift, else `none`].
    #[arg(long, value_name = "none|profile|DIR")]
    pub default_sources: Option<String>,
    /// Where catalogs by image and by ConfigMap are served.
    #[arg(long, value_enum, default_value_t = CatalogModeArgument::InProcess, value_name = "MODE")]
    pub catalog_mode: CatalogModeArgument,
    /// The subsystems that are meant.
    #[command(flatten)]
    pub controllers: ControllersArguments,
    /// Serve the Kubernetes API and its workloads only; `mainstay run` runs operators on it.
    #[arg(long, conflicts_with_all = ["controllers", "catalogs", "catalog_mode", "default_sources"])]
    pub bare: bool,
    /// Set damaged parts of the data folder aside, list what they held, and go on with the rest.
    #[arg(long, conflicts_with = "in_memory")]
    pub repair: bool,
    /// How many bytes an object may have in the store, as JSON; the API refuses a longer one with 413.
    /// The default is the limit of etcd.
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = DEFAULT_OBJECT_BYTES,
        value_parser = RangedU64ValueParser::<usize>::new()
            .range(MIN_OBJECT_BYTES as u64..=MAX_OBJECT_BYTES as u64)
    )]
    pub max_object_bytes: usize,
    /// Write who asked the API what into this file, a line of JSON for each stage of a request.
    #[arg(long, value_name = "FILE")]
    pub audit_log: Option<PathBuf>,
    /// Namespaces that see operators for all namespaces by copies of their versions also where such
    /// copies are switched off.
    #[arg(
        long,
        alias = "protectedCopiedCSVNamespaces",
        value_name = "NAME,…",
        value_delimiter = ','
    )]
    pub protected_copied_csv_namespaces: Vec<String>,
    /// What operators are told of the network.
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
    /// Have the file-based catalog in this folder, or the one in the SQLite database of an index, as a
    /// CatalogSource that every namespace sees (repeatable).
    #[arg(long = "catalog", value_name = "NAME=DIR|DATABASE")]
    pub catalogs: Vec<String>,
    /// Names of the standard namespaces.
    #[arg(long, value_enum, default_value_t = Profile::Standard)]
    pub profile: Profile,
    /// Catalogs that the cluster has by default, as its OperatorHub `cluster` allows: `none`,
    /// `profile` for those of the distribution, or a folder with manifests of `CatalogSources`
    /// [default: `profile` with --profile openshift, else `none`].
    #[arg(long, value_name = "none|profile|DIR")]
    pub default_sources: Option<String>,
    /// The namespace of catalogs that every namespace sees [default: that of the profile].
    #[arg(
        long,
        value_name = "NAME",
        env = "GLOBAL_CATALOG_NAMESPACE",
        aliases = ["global-namespace", "global-catalog-namespace", "catalogNamespace"]
    )]
    pub namespace: Option<String>,
    /// Where catalogs by image and by ConfigMap are served.
    #[arg(long, value_enum, default_value_t = CatalogModeArgument::InProcess, value_name = "MODE")]
    pub catalog_mode: CatalogModeArgument,
    /// The subsystems that are meant.
    #[command(flatten)]
    pub controllers: ControllersArguments,
    /// Address of `/healthz`, `/readyz` and `/metrics`; port 0 picks a free one.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8080", value_parser = address)]
    pub listen: SocketAddr,
    /// The address at which the cluster reaches this process, to ask it for `PackageManifests`
    /// [default: in a pod, that of the pod; elsewhere they are not served].
    #[arg(long, value_name = "IP")]
    pub packages_address: Option<IpAddr>,
    /// Where `PackageManifests` are served on this machine, over TLS; port 0 picks a free one
    /// [default: every address, port 5443].
    #[arg(long, value_name = "ADDR:PORT", value_parser = address)]
    pub packages_listen: Option<SocketAddr>,
    /// How long unpacking a bundle may take where its OperatorGroup does not say; 0 is without end.
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration)]
    pub bundle_unpack_timeout: Duration,
    /// How long a plan whose steps fail is tried again before it counts as failed.
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration)]
    pub install_plan_retry_timeout: Duration,
    /// Namespaces that see operators for all namespaces by copies of their versions also where such
    /// copies are switched off.
    #[arg(
        long,
        alias = "protectedCopiedCSVNamespaces",
        value_name = "NAME,…",
        value_delimiter = ','
    )]
    pub protected_copied_csv_namespaces: Vec<String>,
    /// What operators are told of the network.
    #[command(flatten)]
    pub network: NetworkArguments,
    /// The flags of the programs that this one takes the place of.
    #[command(flatten)]
    pub upstream: UpstreamArguments,
}

/// What operators are told of the network.
#[derive(Args, Debug)]
pub struct NetworkArguments {
    /// The proxy for HTTP that Deployments of operators get as `HTTP_PROXY`.
    #[arg(long, value_name = "URL", default_value = "", hide_default_value = true)]
    pub http_proxy: String,
    /// The proxy for HTTPS that Deployments of operators get as `HTTPS_PROXY`.
    #[arg(long, value_name = "URL", default_value = "", hide_default_value = true)]
    pub https_proxy: String,
    /// What operators reach without a proxy, which their Deployments get as `NO_PROXY`.
    #[arg(long, value_name = "LIST", default_value = "", hide_default_value = true)]
    pub no_proxy: String,
    /// File in PEM with certificates that operators shall trust besides the system's, put into each
    /// `ConfigMap` with the label `config.openshift.io/inject-trusted-cabundle`.
    #[arg(long, value_name = "FILE")]
    pub trusted_ca: Option<PathBuf>,
}

/// Where catalogs by image and by ConfigMap are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CatalogModeArgument {
    /// In this process, which reads them.
    InProcess,
    /// In pods, as OLM does; simulated pods serve nothing.
    Pods,
    /// In this process, and in pods what it cannot read.
    Auto,
}

/// Which standard namespaces a new cluster gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    /// Catalogs in `olm`, operators for all namespaces in `operators`.
    Standard,
    /// Catalogs in `openshift-marketplace`, operators in `openshift-operators`.
    Openshift,
}

impl Profile {
    /// The global catalog namespace, whose catalogs every namespace sees.
    pub const fn catalog_namespace(self) -> &'static str {
        match self {
            Self::Standard => "olm",
            Self::Openshift => "openshift-marketplace",
        }
    }

    /// The namespace of operators that watch all namespaces.
    pub const fn operator_namespace(self) -> &'static str {
        match self {
            Self::Standard => "operators",
            Self::Openshift => "openshift-operators",
        }
    }

    /// The namespace of the lifecycle manager.
    pub const fn manager_namespace(self) -> &'static str {
        match self {
            Self::Standard => "olm",
            Self::Openshift => "openshift-operator-lifecycle-manager",
        }
    }
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
            ("install", "operators are installed by Subscriptions"),
            ("upgrade", "operators are upgraded by their Subscriptions"),
            ("delete", "mainstay uninstall NAME --dry-run"),
        ] {
            let text = said(word);
            assert!(text.contains(tip), "{text}");
            assert!(!text.contains("similar"), "{text}");
        }
        for (word, tip) in [
            ("instal", "operators are installed by Subscriptions"),
            ("upgarde", "operators are upgraded by their Subscriptions"),
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
