//! The treatment of each documented command.

use super::environment::Environment;
use super::page::Statement;
use super::shell;

/// The treatment of a statement.
#[derive(Clone, Copy, Debug)]
pub(super) enum Treatment {
    /// The statement runs and exits with one of these codes and the output on the page.
    Exits(&'static [i32]),
    /// The same, without comparing the output, as the page's cluster or catalog is invented.
    ExitsWithOtherOutput(&'static [i32]),
    /// The statement runs until this output, and is stopped then.
    RunsUntilReady(&'static str),
    /// The statement runs until this output, and is stopped at the end of the page.
    RunsToTheEndOfThePage(&'static str),
    /// The statement is skipped for this reason.
    Skipped(&'static str),
}

use Treatment::{Exits, ExitsWithOtherOutput, RunsToTheEndOfThePage, RunsUntilReady, Skipped};

const NO_PROGRAM: &str = "it needs a program that is not here";
const NETWORK: &str = "it needs a registry on the network";
const READERS_OWN: &str = "it names what the reader has: a port, a disk, an object";
const LONG: &str = "it builds or measures for many minutes";
const ENDS_ON_CTRL_C: &str = "it watches until Ctrl-C";
const DEFAULTS: &str = "it needs default catalogs, which are on the network";
const V1: &str = "it needs a cluster with OLM v1";
const DATA: &str = "it needs the published catalog: MAINSTAY_TESTDATA is not set";

const README: &str = "README.md";
const ADMINISTRATORS: &str = "docs/administrators.md";
const EXTENSIONS: &str = "docs/extensions.md";
const CATALOGS: &str = "docs/catalogs.md";
const PERFORMANCE: &str = "docs/performance.md";
const RESOLVING: &str = "docs/resolving.md";
const SECURITY: &str = "docs/security.md";
const GUIDE: &str = "docs/guide/bundles-and-catalogs.md";

/// Exceptions: a page, the statement's prefix, and its treatment. The longest prefix counts.
const PLAN: &[(&str, &str, Treatment)] = &[
    (README, "cargo", Skipped(LONG)),
    (README, "export KUBECONFIG", Skipped("the path is the one that `demo` prints")),
    (ADMINISTRATORS, "kubectl patch operatorhub", Skipped(DEFAULTS)),
    (ADMINISTRATORS, "opm serve", RunsToTheEndOfThePage("serving registry")),
    (ADMINISTRATORS, "L=", Skipped(READERS_OWN)),
    (ADMINISTRATORS, "skopeo", Skipped(READERS_OWN)),
    (ADMINISTRATORS, "podman", Skipped(READERS_OWN)),
    (ADMINISTRATORS, "REGISTRY_AUTH_FILE", Skipped(READERS_OWN)),
    (ADMINISTRATORS, "docker", Skipped(READERS_OWN)),
    (ADMINISTRATORS, "mainstay image copy oci:layout:v2", Skipped(READERS_OWN)),
    (
        ADMINISTRATORS,
        "kubectl get packagemanifests -n team-a -l catalog=mine -w",
        Skipped(ENDS_ON_CTRL_C),
    ),
    (ADMINISTRATORS, "kubectl patch installplan install-abcde", Skipped(READERS_OWN)),
    (ADMINISTRATORS, "kubectl patch subscription NAME", Skipped(READERS_OWN)),
    // An extension that the reader installed.
    (ADMINISTRATORS, "mainstay why clusterextension/kiwi", Skipped(READERS_OWN)),
    (ADMINISTRATORS, "mainstay why subscription/lighthouse", Exits(&[3])),
    (ADMINISTRATORS, "python3 -m http.server", RunsToTheEndOfThePage("Serving HTTP")),
    (ADMINISTRATORS, "kubectl port-forward", RunsToTheEndOfThePage("Forwarding from")),
    (EXTENSIONS, "mainstay extension migrate", Skipped(READERS_OWN)),
    // The names of extensions that the reader installed from images.
    (EXTENSIONS, "mainstay uninstall clusterextension/NAME", Skipped(READERS_OWN)),
    (EXTENSIONS, "mainstay extension install NAME", Skipped(READERS_OWN)),
    (EXTENSIONS, "BASE=", Skipped(READERS_OWN)),
    (EXTENSIONS, "curl --cacert", Skipped(READERS_OWN)),
    // A catalog from the network may not be served.
    (EXTENSIONS, "mainstay catalog search", Exits(&[0, 1])),
    (CATALOGS, "opm render ./my-catalog ./my-bundle example.com", Skipped(NETWORK)),
    (CATALOGS, "opm alpha bundle validate", Skipped(NETWORK)),
    (CATALOGS, "opm alpha bundle unpack", Skipped(NETWORK)),
    (CATALOGS, "operator-sdk bundle validate example.com", Skipped(NETWORK)),
    (CATALOGS, "mainstay catalog validate ./wrong-catalog", Exits(&[1])),
    (CATALOGS, "mainstay bundle validate ./wrong-bundle", Exits(&[1])),
    (CATALOGS, "opm render quay.io", Skipped(NETWORK)),
    (CATALOGS, "mainstay catalog build community-operators quay.io", Skipped(NETWORK)),
    (PERFORMANCE, "cargo", Skipped(LONG)),
    (RESOLVING, "mainstay resolve", ExitsWithOtherOutput(&[0, 3])),
    (RESOLVING, "mainstay resolve --universe", Exits(&[0])),
    (RESOLVING, "mainstay resolve --catalog community=./community rabbitmq", Exits(&[0])),
    (RESOLVING, "mainstay resolve --catalog community=./community sailoperator", Exits(&[0])),
    (RESOLVING, "mainstay resolve --catalog community=./community alloydb", Exits(&[3])),
    (
        RESOLVING,
        "mainstay resolve --state state.yaml --catalog community",
        ExitsWithOtherOutput(&[0, 3]),
    ),
    (RESOLVING, "mainstay resolve --state state.yaml --catalog shop", Skipped(V1)),
    (RESOLVING, "kubectl get clusterextension", Skipped(V1)),
    (RESOLVING, "mainstay resolve clusterextension/", Skipped(V1)),
    (SECURITY, "cargo install", Skipped(LONG)),
    (SECURITY, "cargo deny", Skipped(NO_PROGRAM)),
    (SECURITY, "cp -r ~/.cargo/advisory-dbs", Skipped(READERS_OWN)),
    (GUIDE, "mainstay up", RunsToTheEndOfThePage("ready")),
];

/// Preparations that a page leaves to the reader: a page, the statement's prefix, and the script before
/// it.
const BEFORE: &[(&str, &str, &str)] = &[
    (ADMINISTRATORS, "mainstay uninstall NAME --namespace NAMESPACE --dry-run", TEAPOT),
    (ADMINISTRATORS, "mainstay why subscription/lighthouse", LIGHTHOUSE),
    (
        RESOLVING,
        "mainstay resolve --state state.yaml --catalog community=./community --what-if",
        QUAY,
    ),
];

/// Waits after a statement, which a reader's typing has anyway.
const AFTER: &[(&str, &str, &str)] = &[
    (README, "kubectl apply", RUNS),
    (ADMINISTRATORS, "kubectl taint node", "kubectl taint node --all myoperator:NoSchedule-"),
];

const RUNS: &str = "kubectl wait -n operators --for=create csv/teapot-operator.v1.2.0 --timeout=60s
kubectl wait -n operators --for=jsonpath='{.status.phase}'=Succeeded csv/teapot-operator.v1.2.0 --timeout=60s
kubectl wait -n operators --for=jsonpath='{.status.state}'=AtLatestKnown subscription/teapot --timeout=60s";

const TEAPOT: &str = "kubectl apply -f - <<'EOF'
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: teapot, namespace: operators}
spec: {name: teapot-operator, channel: stable, source: mine, sourceNamespace: olm}
EOF
kubectl wait -n operators --for=create csv/teapot-operator.v1.2.0 --timeout=60s
kubectl wait -n operators --for=jsonpath='{.status.phase}'=Succeeded csv/teapot-operator.v1.2.0 --timeout=60s";

const LIGHTHOUSE: &str = "kubectl apply -f - <<'EOF'
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: lighthouse, namespace: operators}
spec: {name: lighthouse-operator, channel: stable, source: mine, sourceNamespace: olm}
EOF
kubectl -n operators wait --for=create csv/lighthouse-operator.v1.0.0 --timeout=60s
kubectl -n operators wait --for=jsonpath='{.status.phase}'=Failed csv/lighthouse-operator.v1.0.0 --timeout=60s
kubectl -n operators wait --for=jsonpath='{.status.installedCSV}'=lighthouse-operator.v1.0.0 subscription/lighthouse --timeout=60s";

const QUAY: &str = "cat > state.yaml <<'EOF'
apiVersion: v1
kind: List
items:
- apiVersion: operators.coreos.com/v1
  kind: OperatorGroup
  metadata: {name: all, namespace: operators}
- apiVersion: operators.coreos.com/v1alpha1
  kind: CatalogSource
  metadata: {name: community, namespace: olm}
  spec: {sourceType: grpc, address: 'community.olm.svc:50051'}
- apiVersion: operators.coreos.com/v1alpha1
  kind: Subscription
  metadata: {name: quay, namespace: operators}
  spec: {name: project-quay, channel: stable-3.15, source: community, sourceNamespace: olm, startingCSV: quay-operator.v3.15.0}
EOF";

/// Placeholders: a page, the word, and its value here.
const REPLACED_WORDS: &[(&str, &str, &str)] = &[
    (ADMINISTRATORS, "uninstall NAME", "uninstall teapot"),
    (ADMINISTRATORS, "--namespace NAMESPACE", "--namespace operators"),
    (ADMINISTRATORS, "label namespace NAME", "label namespace team-a"),
    (
        ADMINISTRATORS,
        "node NODE",
        "node \"$(kubectl get node -o jsonpath='{.items[0].metadata.name}')\"",
    ),
    (
        ADMINISTRATORS,
        "--kubeconfig FILE --context NAME",
        "--kubeconfig \"$KUBECONFIG\" --context mainstay",
    ),
    (ADMINISTRATORS, "--listen 0.0.0.0:8080", "--listen 127.0.0.1:0"),
    (ADMINISTRATORS, "18080", "{port}"),
    (ADMINISTRATORS, "19000", "{port+1}"),
    (ADMINISTRATORS, "50051", "{port+2}"),
    (CATALOGS, "registry.example/", "{registry}/"),
    (CATALOGS, "mirror.example:5000/", "{registry}/"),
    (RESOLVING, "--universe FILE", "--universe universe.json"),
];

/// Programs that other statements of a page need.
const NEEDED_PROGRAMS: &[(&str, &str, &str)] = &[
    (ADMINISTRATORS, "kubectl run web", "python3"),
    (ADMINISTRATORS, "kubectl wait --for=condition=Ready pod/web", "python3"),
    (ADMINISTRATORS, "kubectl port-forward", "python3"),
    (ADMINISTRATORS, "curl --retry-connrefused", "python3"),
];

/// The entry of a table for a statement; the longest prefix counts.
fn entry_about<'t, T>(table: &'t [(&str, &str, T)], statement: &Statement) -> Option<&'t T> {
    table
        .iter()
        .filter(|(page, prefix, _)| {
            *page == statement.page && statement.text.trim_start().starts_with(prefix)
        })
        .max_by_key(|(_, prefix, _)| prefix.len())
        .map(|(.., value)| value)
}

/// The treatment of a statement.
pub(super) fn treatment(statement: &Statement, environment: &Environment) -> Treatment {
    let commands = shell::commands(&statement.text);
    let needed = entry_about(NEEDED_PROGRAMS, statement).copied().into_iter();
    let names = commands.iter().map(|words| words[0].as_str());
    let planned = entry_about(PLAN, statement).copied();
    if let Some(treatment @ Skipped(_)) = planned {
        return treatment;
    }
    if !names.chain(needed).all(|name| shell::is_ours(name) || environment.has_program(name)) {
        return Skipped(NO_PROGRAM);
    }
    let needs = |name: &str| statement.text.contains(&format!("./{name}"));
    if ["community", "certified"].iter().any(|name| needs(name) && !environment.has(name)) {
        return Skipped(DATA);
    }
    if let Some(treatment) = planned {
        return treatment;
    }
    let prefix = |words: [&str; 2]| {
        commands.first().is_some_and(|command| {
            command.iter().zip(words).filter(|(argument, word)| *argument == word).count() == 2
        })
    };
    if prefix(["mainstay", "up"]) || prefix(["mainstay", "run"]) {
        return RunsUntilReady("ready");
    }
    if prefix(["opm", "serve"]) {
        return RunsUntilReady("serving registry");
    }
    Exits(&[0])
}

/// The statement with placeholders replaced, and the scripts before and after it.
pub(super) fn adapted_statement(
    statement: &Statement,
    port: u16,
    registry: &str,
) -> (Option<&'static str>, String, Option<&'static str>) {
    let mut text = statement.text.clone();
    for (page, word, here) in REPLACED_WORDS {
        if *page == statement.page {
            let here = here
                .replace("{registry}", registry)
                .replace("{port}", &port.to_string())
                .replace("{port+1}", &(port + 1).to_string())
                .replace("{port+2}", &(port + 2).to_string());
            text = text.replace(word, &here);
        }
    }
    (entry_about(BEFORE, statement).copied(), text, entry_about(AFTER, statement).copied())
}

/// Prefixes and words that match no statement.
pub(super) fn stale_entries(statements: &[Statement]) -> Vec<String> {
    let begun = |page: &str, prefix: &str| {
        statements.iter().any(|statement| {
            !statement.is_mention
                && statement.page == page
                && statement.text.trim_start().starts_with(prefix)
        })
    };
    let said = |page: &str, word: &str| {
        statements.iter().any(|statement| {
            !statement.is_mention && statement.page == page && statement.text.contains(word)
        })
    };
    let beginnings = PLAN.iter().map(|(page, prefix, _)| (page, prefix)).chain(
        [BEFORE, AFTER, NEEDED_PROGRAMS]
            .into_iter()
            .flatten()
            .map(|(page, prefix, _)| (page, prefix)),
    );
    let mut stale_entries: Vec<String> = beginnings
        .filter(|(page, prefix)| !begun(page, prefix))
        .map(|(page, prefix)| format!("{page}: {prefix}"))
        .collect();
    let words = REPLACED_WORDS.iter().filter(|(page, word, _)| !said(page, word));
    stale_entries.extend(words.map(|(page, word, _)| format!("{page}: {word}")));
    stale_entries
}
