//! Flags of Operator Lifecycle Manager's own programs: its two operators and its package server.
//!
//! Deployments and charts with these flags keep working with `run` in place of OLM's programs. A flag
//! has its effect in OLM, or `run` reports why it has none. No flag is refused, and none is ignored
//! silently.

use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};
use std::collections::BTreeMap;

/// The heading of these flags in the help.
const HEADING: &str = "Flags of Operator Lifecycle Manager";

/// The value of a flag.
#[derive(Clone, Copy, PartialEq)]
enum FlagValue {
    /// A switch: no value, `=true` or `=false`.
    Switch,
    /// A value with this name in the help.
    Value(&'static str),
}

/// The effect of a flag.
#[derive(Clone, Copy)]
enum Effect {
    /// The flag has this effect.
    Applied(&'static str),
    /// The flag has no effect, for this reason.
    None(&'static str),
}

use Effect::{Applied, None as Ignored};
use FlagValue::{Switch, Value};

const NO_POLLING: &str = "Mainstay watches for changes and does not poll";
const STATUS: &str = "Mainstay writes no ClusterOperator; /readyz reports its state";
const CERTIFICATE: &str = "the package server issues and renews its own certificate";
const HEADERS: &str = "the package server takes this setting from ConfigMap kube-system/extension-apiserver-authentication";
const CREDENTIALS: &str =
    "the package server sends its requests with the credentials of the controllers";
const LIMITS: &str = "the package server has fixed limits";
const SOCKET: &str = "the socket options of the package server are fixed";
const AUDIT: &str = "the audit log of the API server has the requests for packages";

/// The TLS profile whose versions, cipher suites and curves flags name.
pub(crate) const CUSTOM_PROFILE: &str = "custom";
/// The flags of that profile.
pub(crate) const CUSTOM_PROFILE_FLAGS: [&str; 3] =
    ["tls-custom-version", "tls-custom-ciphers", "tls-custom-curves"];

/// Every upstream flag that `run` does not have itself.
const FLAGS: &[(&str, FlagValue, Effect)] = &[
    // Flags of both operators, and some of the package server.
    ("debug", Switch, Applied("Log more details, as `--log debug` does")),
    (
        "profiling",
        Switch,
        Ignored("the flag is deprecated upstream, and Mainstay serves no profiles"),
    ),
    ("interval", Value("DURATION"), Ignored(NO_POLLING)),
    ("wakeup-interval", Value("DURATION"), Ignored(NO_POLLING)),
    ("writeStatusName", Value("NAME"), Ignored(STATUS)),
    ("writePackageServerStatusName", Value("NAME"), Ignored(STATUS)),
    (
        "tls-cert",
        Value("FILE"),
        Applied(
            "Certificate to serve /healthz, /readyz and /metrics over TLS (needs --tls-key); /metrics then requires the permission to `get` this path",
        ),
    ),
    ("tls-key", Value("FILE"), Applied("Private key of the certificate in --tls-cert")),
    (
        "tls-profile",
        Value("PROFILE"),
        Applied(
            "What all TLS servers offer: old, intermediate, modern (TLS 1.3 only) or custom [default: intermediate]",
        ),
    ),
    (
        "tls-custom-version",
        Value("VERSION"),
        Applied("With --tls-profile custom, the lowest version: TLSv1.2 or TLSv1.3"),
    ),
    (
        "tls-custom-ciphers",
        Value("LIST"),
        Applied("With --tls-profile custom, the cipher suites by their names in Go"),
    ),
    (
        "tls-custom-curves",
        Value("LIST"),
        Applied("With --tls-profile custom, the curves: X25519, prime256v1, secp384r1"),
    ),
    (
        "client-ca",
        Value("FILE"),
        Ignored(
            "the flag protects profiles upstream, and Mainstay serves none; /metrics requires a bearer token",
        ),
    ),
    // Flags of the OLM operator.
    (
        "watchedNamespaces",
        Value("LIST"),
        Ignored(
            "Mainstay watches all namespaces; OperatorGroups select the namespaces of operators",
        ),
    ),
    ("feature-gates", Value("LIST"), Ignored("Mainstay has no feature gates")),
    // Flags of the catalog operator.
    (
        "configmapServerImage",
        Value("IMAGE"),
        Applied("With --catalog-mode pods, the image that serves catalogs in ConfigMaps"),
    ),
    (
        "opmImage",
        Value("IMAGE"),
        Applied("With --catalog-mode pods, the image that serves and unpacks content"),
    ),
    (
        "util-image",
        Value("IMAGE"),
        Applied("With --catalog-mode pods, the image with the program that copies content"),
    ),
    (
        "set-workload-user-id",
        Switch,
        Applied(
            "With --catalog-mode pods, whether restricted pods run as user 1001 [default: true]",
        ),
    ),
    // Flags of the package server.
    (
        "watched-namespaces",
        Value("LIST"),
        Ignored("the package server serves the catalogs of all namespaces"),
    ),
    (
        "secure-port",
        Value("PORT"),
        Applied("Port of the package server, unless --packages-listen sets it"),
    ),
    (
        "bind-address",
        Value("IP"),
        Applied("Address of the package server, unless --packages-listen sets it"),
    ),
    ("tls-cert-file", Value("FILE"), Ignored(CERTIFICATE)),
    ("tls-private-key-file", Value("FILE"), Ignored(CERTIFICATE)),
    ("tls-sni-cert-key", Value("FILES"), Ignored(CERTIFICATE)),
    ("cert-dir", Value("DIR"), Ignored(CERTIFICATE)),
    (
        "tls-min-version",
        Value("VERSION"),
        Ignored(
            "the servers support TLS 1.2 and 1.3, with secure cipher suites only; --tls-profile restricts that",
        ),
    ),
    (
        "tls-cipher-suites",
        Value("LIST"),
        Ignored(
            "the servers support TLS 1.2 and 1.3, with secure cipher suites only; --tls-profile restricts that",
        ),
    ),
    (
        "disable-http2-serving",
        Switch,
        Ignored("the package server has its own limits against attacks over HTTP/2"),
    ),
    ("http2-max-streams-per-connection", Value("N"), Ignored(LIMITS)),
    ("permit-address-sharing", Switch, Ignored(SOCKET)),
    ("permit-port-sharing", Switch, Ignored(SOCKET)),
    ("authentication-kubeconfig", Value("FILE"), Ignored(CREDENTIALS)),
    ("authentication-skip-lookup", Switch, Ignored(HEADERS)),
    (
        "authentication-token-webhook-cache-ttl",
        Value("DURATION"),
        Ignored("the package server caches responses of the cluster for 10 s"),
    ),
    ("authentication-tolerate-lookup-failure", Switch, Ignored(HEADERS)),
    ("authorization-kubeconfig", Value("FILE"), Ignored(CREDENTIALS)),
    (
        "authorization-always-allow-paths",
        Value("LIST"),
        Ignored("/healthz, /livez and /readyz are open; all other paths require authorization"),
    ),
    (
        "authorization-webhook-cache-authorized-ttl",
        Value("DURATION"),
        Ignored("the package server caches responses of the cluster for 10 s"),
    ),
    (
        "authorization-webhook-cache-unauthorized-ttl",
        Value("DURATION"),
        Ignored("the package server caches responses of the cluster for 10 s"),
    ),
    ("client-ca-file", Value("FILE"), Ignored(HEADERS)),
    ("requestheader-client-ca-file", Value("FILE"), Ignored(HEADERS)),
    ("requestheader-allowed-names", Value("LIST"), Ignored(HEADERS)),
    ("requestheader-username-headers", Value("LIST"), Ignored(HEADERS)),
    ("requestheader-uid-headers", Value("LIST"), Ignored(HEADERS)),
    ("requestheader-group-headers", Value("LIST"), Ignored(HEADERS)),
    ("requestheader-extra-headers-prefix", Value("LIST"), Ignored(HEADERS)),
    ("audit-log-path", Value("FILE"), Ignored(AUDIT)),
    ("audit-policy-file", Value("FILE"), Ignored(AUDIT)),
    ("contention-profiling", Switch, Ignored("Mainstay serves no profiles")),
    ("enable-priority-and-fairness", Switch, Ignored(LIMITS)),
];

/// The accepted flags without effect, with the reason; `docs/command-line.md` lists them.
pub fn without_effect() -> impl Iterator<Item = (&'static str, &'static str)> {
    FLAGS.iter().filter_map(|(name, _, effect)| match effect {
        Ignored(why) => Some((*name, *why)),
        Applied(_) => None,
    })
}

/// The given flags with their values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpstreamArguments(BTreeMap<&'static str, String>);

impl UpstreamArguments {
    /// The value of a flag.
    pub(crate) fn value(&self, flag: &str) -> Option<&str> {
        self.0.get(flag).map(String::as_str)
    }

    /// The value of a switch, or its default.
    pub(crate) fn is_on(&self, flag: &str, default: bool) -> bool {
        self.value(flag).map_or(default, |value| value == "true")
    }

    /// Whether `--debug` is set.
    pub fn debug(&self) -> bool {
        self.is_on("debug", false)
    }

    /// A note for each given flag without effect.
    pub(crate) fn notes(&self) -> Vec<String> {
        let is_custom = self.value("tls-profile") == Some(CUSTOM_PROFILE);
        let given = FLAGS.iter().filter(|(name, ..)| self.0.contains_key(name));
        given
            .filter_map(|(name, _, effect)| match effect {
                Ignored(why) => Some(format!("--{name} has no effect: {why}")),
                Applied(_) if CUSTOM_PROFILE_FLAGS.contains(name) && !is_custom => {
                    Some(format!("--{name} has no effect without --tls-profile custom"))
                }
                Applied(_) => None,
            })
            .collect()
    }
}

impl Args for UpstreamArguments {
    fn augment_args(command: Command) -> Command {
        FLAGS.iter().fold(command, |command, (name, value, effect)| {
            let help = match effect {
                Applied(what) => (*what).to_owned(),
                Ignored(why) => format!("No effect: {why}"),
            };
            let arg = Arg::new(*name).long(*name).help(help).help_heading(HEADING);
            // Flags without effect are hidden in the help; docs/command-line.md lists them.
            let arg = arg.hide(matches!(effect, Ignored(_)));
            command.arg(match value {
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
    const UPSTREAM_FLAGS: &str = "interval watchedNamespaces writeStatusName writePackageServerStatusName \
        debug version profiling namespace tls-cert tls-key client-ca protectedCopiedCSVNamespaces \
        kubeconfig feature-gates configmapServerImage opmImage util-image set-workload-user-id \
        bundle-unpack-timeout install-plan-retry-timeout global-namespace secure-port \
        tls-cert-file tls-private-key-file";

    #[test]
    fn every_upstream_flag_is_accepted() {
        let mut command = Arguments::command();
        command.build();
        let run = command.find_subcommand("run").expect("there is `run`");
        let is_known = |flag: &str| {
            run.get_arguments().any(|argument| {
                let aliases = argument.get_all_aliases().unwrap_or_default();
                argument.get_long() == Some(flag) || aliases.contains(&flag)
            })
        };
        let unknown: Vec<&str> =
            UPSTREAM_FLAGS.split_whitespace().filter(|flag| !is_known(flag)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    #[test]
    fn ignored_flag_gives_its_reason_and_switches_have_go_syntax() {
        let given = run(&["--interval", "15m", "--debug=true", "--profiling"]).upstream;
        assert!(given.debug());
        assert_eq!(
            given.notes(),
            [
                "--profiling has no effect: the flag is deprecated upstream, and Mainstay serves no profiles",
                "--interval has no effect: Mainstay watches for changes and does not poll",
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
    fn namespace_flag_has_the_names_of_all_upstream_programs() {
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
