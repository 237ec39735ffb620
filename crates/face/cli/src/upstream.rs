//! The flags of Operator Lifecycle Manager's own programs: its two operators and its package server.
//!
//! Deployments and charts that name them go on to work with `run` in their place. A flag does what it
//! does there, or says why there is nothing for it to do; none is refused, and none is silent.

use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};
use std::collections::BTreeMap;

/// Where these flags stand in the help.
const HEADING: &str = "Flags of Operator Lifecycle Manager";

/// What a flag is followed by.
#[derive(Clone, Copy, PartialEq)]
enum Takes {
    /// Nothing, or `=true`, or `=false`.
    Switch,
    /// A value of this name.
    Value(&'static str),
}

/// What comes of a flag.
#[derive(Clone, Copy)]
enum Effect {
    /// What it says.
    Does(&'static str),
    /// Nothing, and why.
    None(&'static str),
}

use Effect::{Does, None as Not};
use Takes::{Switch, Value};

const POLLED: &str = "nothing is polled, every change is followed";
const STATUS: &str = "no ClusterOperator is written; /readyz tells how it stands";
const PORT: &str = "the port for packages makes its certificate itself, and makes it anew in time";
const HEADERS: &str =
    "kube-system/extension-apiserver-authentication says whom the port for packages believes";
const ASKED: &str = "the cluster is asked with the account that everything is done with";
const OWN: &str = "limits of the port for packages are its own";
const AUDIT: &str = "the API server writes down who asks for packages";

/// Every flag that `run` does not have for itself.
const FLAGS: &[(&str, Takes, Effect)] = &[
    // Both operators, and some of the package server.
    ("debug", Switch, Does("Log what is looked at, too: `--log debug`")),
    ("profiling", Switch, Not("it is deprecated there, and nothing is profiled over the network")),
    ("interval", Value("DURATION"), Not(POLLED)),
    ("wakeup-interval", Value("DURATION"), Not(POLLED)),
    ("writeStatusName", Value("NAME"), Not(STATUS)),
    ("writePackageServerStatusName", Value("NAME"), Not(STATUS)),
    (
        "tls-cert",
        Value("FILE"),
        Does(
            "Serve /healthz, /readyz and /metrics over TLS with this certificate (needs --tls-key); counts are then for who may `get` the path /metrics",
        ),
    ),
    ("tls-key", Value("FILE"), Does("The key of --tls-cert")),
    (
        "client-ca",
        Value("FILE"),
        Not("it opens profiles there, and there are none here; counts are for tokens"),
    ),
    // The operator that keeps versions installed.
    (
        "watchedNamespaces",
        Value("LIST"),
        Not("all namespaces are watched; OperatorGroups say where operators work"),
    ),
    ("feature-gates", Value("LIST"), Not("there are no feature gates")),
    // The operator that works with catalogs.
    (
        "configmapServerImage",
        Value("IMAGE"),
        Does("With --catalog-mode pods, the image that serves catalogs in ConfigMaps"),
    ),
    (
        "opmImage",
        Value("IMAGE"),
        Does("With --catalog-mode pods, the image that serves and unpacks content"),
    ),
    (
        "util-image",
        Value("IMAGE"),
        Does("With --catalog-mode pods, the image with the program that copies content"),
    ),
    (
        "set-workload-user-id",
        Switch,
        Does("With --catalog-mode pods, whether restricted pods run as user 1001 [default: true]"),
    ),
    // The package server.
    (
        "watched-namespaces",
        Value("LIST"),
        Not("catalogs of all namespaces are shown, each in the namespaces that see it"),
    ),
    (
        "secure-port",
        Value("PORT"),
        Does("The port at which packages are served, if --packages-listen does not say"),
    ),
    (
        "bind-address",
        Value("IP"),
        Does("The address at which packages are served, if --packages-listen does not say"),
    ),
    ("tls-cert-file", Value("FILE"), Not(PORT)),
    ("tls-private-key-file", Value("FILE"), Not(PORT)),
    ("tls-sni-cert-key", Value("FILES"), Not(PORT)),
    ("cert-dir", Value("DIR"), Not(PORT)),
    (
        "tls-min-version",
        Value("VERSION"),
        Not("TLS 1.2 and 1.3 are spoken, with the suites that are safe"),
    ),
    (
        "tls-cipher-suites",
        Value("LIST"),
        Not("TLS 1.2 and 1.3 are spoken, with the suites that are safe"),
    ),
    ("disable-http2-serving", Switch, Not("the port for packages is defended on HTTP/2, too")),
    ("http2-max-streams-per-connection", Value("N"), Not(OWN)),
    ("permit-address-sharing", Switch, Not(OWN)),
    ("permit-port-sharing", Switch, Not(OWN)),
    ("authentication-kubeconfig", Value("FILE"), Not(ASKED)),
    ("authentication-skip-lookup", Switch, Not(HEADERS)),
    (
        "authentication-token-webhook-cache-ttl",
        Value("DURATION"),
        Not("answers of the cluster are believed for 10 s"),
    ),
    ("authentication-tolerate-lookup-failure", Switch, Not(HEADERS)),
    ("authorization-kubeconfig", Value("FILE"), Not(ASKED)),
    (
        "authorization-always-allow-paths",
        Value("LIST"),
        Not("/healthz, /livez and /readyz are open, everything else is asked for"),
    ),
    (
        "authorization-webhook-cache-authorized-ttl",
        Value("DURATION"),
        Not("answers of the cluster are believed for 10 s"),
    ),
    (
        "authorization-webhook-cache-unauthorized-ttl",
        Value("DURATION"),
        Not("answers of the cluster are believed for 10 s"),
    ),
    ("client-ca-file", Value("FILE"), Not(HEADERS)),
    ("requestheader-client-ca-file", Value("FILE"), Not(HEADERS)),
    ("requestheader-allowed-names", Value("LIST"), Not(HEADERS)),
    ("requestheader-username-headers", Value("LIST"), Not(HEADERS)),
    ("requestheader-uid-headers", Value("LIST"), Not(HEADERS)),
    ("requestheader-group-headers", Value("LIST"), Not(HEADERS)),
    ("requestheader-extra-headers-prefix", Value("LIST"), Not(HEADERS)),
    ("audit-log-path", Value("FILE"), Not(AUDIT)),
    ("audit-policy-file", Value("FILE"), Not(AUDIT)),
    ("contention-profiling", Switch, Not("nothing is profiled over the network")),
    ("enable-priority-and-fairness", Switch, Not(OWN)),
];

/// The flags that are accepted and do nothing here, each with why; `docs/command-line.md` lists them.
pub fn without_effect() -> impl Iterator<Item = (&'static str, &'static str)> {
    FLAGS.iter().filter_map(|(name, _, effect)| match effect {
        Not(why) => Some((*name, *why)),
        Does(_) => None,
    })
}

/// The flags that were given, with their values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpstreamArguments(BTreeMap<&'static str, String>);

impl UpstreamArguments {
    /// The value of a flag.
    pub(crate) fn value(&self, flag: &str) -> Option<&str> {
        self.0.get(flag).map(String::as_str)
    }

    /// Whether a switch was set, or else what it is without a word.
    pub(crate) fn is_on(&self, flag: &str, default: bool) -> bool {
        self.value(flag).map_or(default, |value| value == "true")
    }

    /// Whether details are to be logged.
    pub fn debug(&self) -> bool {
        self.is_on("debug", false)
    }

    /// A line for each flag that does nothing here.
    pub(crate) fn notes(&self) -> Vec<String> {
        let given = FLAGS.iter().filter(|(name, ..)| self.0.contains_key(name));
        given
            .filter_map(|(name, _, effect)| match effect {
                Not(why) => Some(format!("--{name} has no effect: {why}")),
                Does(_) => None,
            })
            .collect()
    }
}

impl Args for UpstreamArguments {
    fn augment_args(command: Command) -> Command {
        FLAGS.iter().fold(command, |command, (name, takes, effect)| {
            let help = match effect {
                Does(what) => (*what).to_owned(),
                Not(why) => format!("No effect: {why}"),
            };
            let arg = Arg::new(*name).long(*name).help(help).help_heading(HEADING);
            // What does nothing is in nobody's way: docs/command-line.md has the list.
            let arg = arg.hide(matches!(effect, Not(_)));
            command.arg(match takes {
                Value(value) => arg.value_name(*value),
                Switch => arg
                    .value_name("BOOL")
                    .value_parser(["true", "false"])
                    .num_args(0..=1)
                    .require_equals(true)
                    .default_missing_value("true"),
            })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for UpstreamArguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = FLAGS.iter().filter_map(|(name, ..)| {
            let value = matches.get_one::<String>(name)?;
            Some((*name, value.clone()))
        });
        Ok(Self(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.extend(Self::from_arg_matches(matches)?.0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::args::{Arguments, Command, RunArguments};
    use clap::{CommandFactory as _, Parser as _};

    fn run(words: &[&str]) -> RunArguments {
        let words = ["mainstay", "run"].iter().chain(words);
        match Arguments::try_parse_from(words).unwrap().command {
            Command::Run(arguments) => *arguments,
            _ => unreachable!("`run` was typed"),
        }
    }

    /// The flags of the two operators and the package server.
    const THEIRS: &str = "interval watchedNamespaces writeStatusName writePackageServerStatusName \
        debug version profiling namespace tls-cert tls-key client-ca protectedCopiedCSVNamespaces \
        kubeconfig feature-gates configmapServerImage opmImage util-image set-workload-user-id \
        bundle-unpack-timeout install-plan-retry-timeout global-namespace secure-port \
        tls-cert-file tls-private-key-file";

    #[test]
    fn every_flag_of_the_original_is_known() {
        let mut command = Arguments::command();
        command.build();
        let run = command.find_subcommand("run").expect("there is `run`");
        let known = |flag: &str| {
            run.get_arguments().any(|argument| {
                let also = argument.get_all_aliases().unwrap_or_default();
                argument.get_long() == Some(flag) || also.contains(&flag)
            })
        };
        let unknown: Vec<&str> = THEIRS.split_whitespace().filter(|flag| !known(flag)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    #[test]
    fn a_flag_without_effect_says_why_and_switches_are_those_of_go() {
        let given = run(&["--interval", "15m", "--debug=true", "--profiling"]).upstream;
        assert!(given.debug());
        assert_eq!(
            given.notes(),
            [
                "--profiling has no effect: it is deprecated there, and nothing is profiled over the network",
                "--interval has no effect: nothing is polled, every change is followed",
            ]
        );
        let given =
            run(&["--set-workload-user-id=false", "--opmImage", "example.com/opm"]).upstream;
        assert!(!given.is_on("set-workload-user-id", true));
        assert_eq!(given.value("opmImage"), Some("example.com/opm"));
        assert_eq!(given.notes(), Vec::<String>::new());
        assert!(run(&[]).upstream.is_on("set-workload-user-id", true));
    }

    #[test]
    fn namespaces_go_by_the_names_of_all_programs() {
        for flag in [
            "--namespace",
            "--global-namespace",
            "--global-catalog-namespace",
            "--catalogNamespace",
        ] {
            assert_eq!(run(&[flag, "catalogs"]).namespace.as_deref(), Some("catalogs"), "{flag}");
        }
    }
}
