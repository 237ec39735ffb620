//! What becomes of each documented command.

use super::page::Statement;
use super::shell;
use super::world::World;

/// What becomes of a statement.
#[derive(Clone, Copy, Debug)]
pub(super) enum How {
    /// It runs, and ends with one of these codes, showing what the page shows.
    Ends(&'static [i32]),
    /// The same, of a cluster or catalog that the page has made up: what it shows is not compared.
    EndsUnlike(&'static [i32]),
    /// It runs until it says that it is ready, and is ended then.
    Serves(&'static str),
    /// The same, and it is ended with the page.
    Stays(&'static str),
    /// It is not run, for this reason.
    Not(&'static str),
}

use How::{Ends, EndsUnlike, Not, Serves, Stays};

const FOREIGN: &str = "it needs a program that is not here";
const NETWORK: &str = "it needs a registry on the network";
const OWN: &str = "it names what the reader has: a port, a disk, an object";
const LONG: &str = "it builds or measures for many minutes";
const ENDLESS: &str = "it watches until Ctrl-C";
const DEFAULTS: &str = "it needs default catalogs, which are on the network";
const V1: &str = "it needs a cluster with OLM v1";
const DATA: &str = "it needs the published catalog: MAINSTAY_TESTDATA is not set";

const README: &str = "README.md";
const ADMINISTRATORS: &str = "docs/administrators.md";
const CATALOGS: &str = "docs/catalogs.md";
const PERFORMANCE: &str = "docs/performance.md";
const RESOLVING: &str = "docs/resolving.md";
const SECURITY: &str = "docs/security.md";
const GUIDE: &str = "docs/guide/bundles-and-catalogs.md";

/// What is not as usual: a page, how the statement begins, and what becomes of it. The longest
/// beginning counts.
const PLAN: &[(&str, &str, How)] = &[
    (README, "cargo", Not(LONG)),
    (README, "export KUBECONFIG", Not("the path is the one that `demo` prints")),
    (ADMINISTRATORS, "kubectl patch operatorhub", Not(DEFAULTS)),
    (ADMINISTRATORS, "opm serve", Stays("serving registry")),
    (ADMINISTRATORS, "L=", Not(OWN)),
    (ADMINISTRATORS, "skopeo", Not(OWN)),
    (ADMINISTRATORS, "podman", Not(OWN)),
    (ADMINISTRATORS, "REGISTRY_AUTH_FILE", Not(OWN)),
    (ADMINISTRATORS, "docker", Not(OWN)),
    (ADMINISTRATORS, "mainstay image copy oci:layout:v2", Not(OWN)),
    (ADMINISTRATORS, "kubectl get packagemanifests -n mine -l catalog=mine -w", Not(ENDLESS)),
    (ADMINISTRATORS, "kubectl patch installplan install-abcde", Not(OWN)),
    (ADMINISTRATORS, "kubectl patch subscription NAME", Not(OWN)),
    (ADMINISTRATORS, "mainstay why subscription/lighthouse", Ends(&[3])),
    (ADMINISTRATORS, "python3 -m http.server", Stays("Serving HTTP")),
    (ADMINISTRATORS, "kubectl port-forward", Stays("Forwarding from")),
    (CATALOGS, "opm render ./my-catalog ./my-bundle example.com", Not(NETWORK)),
    (CATALOGS, "opm alpha bundle validate", Not(NETWORK)),
    (CATALOGS, "opm alpha bundle unpack", Not(NETWORK)),
    (CATALOGS, "operator-sdk bundle validate example.com", Not(NETWORK)),
    (CATALOGS, "mainstay catalog validate ./wrong-catalog", Ends(&[1])),
    (CATALOGS, "mainstay bundle validate ./wrong-bundle", Ends(&[1])),
    (CATALOGS, "opm render quay.io", Not(NETWORK)),
    (CATALOGS, "mainstay catalog build community-operators quay.io", Not(NETWORK)),
    (PERFORMANCE, "cargo", Not(LONG)),
    (RESOLVING, "mainstay resolve", EndsUnlike(&[0, 3])),
    (RESOLVING, "mainstay resolve --universe", Ends(&[0])),
    (RESOLVING, "mainstay resolve --catalog community=./community rabbitmq", Ends(&[0])),
    (RESOLVING, "mainstay resolve --catalog community=./community sailoperator", Ends(&[0])),
    (RESOLVING, "mainstay resolve --catalog community=./community alloydb", Ends(&[3])),
    (RESOLVING, "mainstay resolve --state state.yaml --catalog community", EndsUnlike(&[0, 3])),
    (RESOLVING, "mainstay resolve --state state.yaml --catalog shop", Not(V1)),
    (RESOLVING, "kubectl get clusterextension", Not(V1)),
    (SECURITY, "cargo install", Not(LONG)),
    (SECURITY, "cargo deny", Not(FOREIGN)),
    (SECURITY, "cp -r ~/.cargo/advisory-dbs", Not(OWN)),
    (GUIDE, "mainstay up", Stays("ready")),
];

/// What a page speaks of and leaves to the reader: a page, how the statement begins, what is to be there
/// before it.
const BEFORE: &[(&str, &str, &str)] = &[
    (ADMINISTRATORS, "mainstay uninstall NAME --namespace NAMESPACE --dry-run", TEAPOT),
    (ADMINISTRATORS, "mainstay why subscription/lighthouse", LIGHTHOUSE),
    (
        RESOLVING,
        "mainstay resolve --state state.yaml --catalog community=./community --what-if",
        QUAY,
    ),
];

/// What is waited for after a statement, as a reader would who goes on typing.
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

/// Words that stand for something of the reader's: a page, the word, and what it is here.
const WORDS: &[(&str, &str, &str)] = &[
    (ADMINISTRATORS, "uninstall NAME", "uninstall teapot"),
    (ADMINISTRATORS, "--namespace NAMESPACE", "--namespace operators"),
    (ADMINISTRATORS, "label namespace NAME", "label namespace mine"),
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

/// Programs without which other statements of a page are in vain.
const NEEDS: &[(&str, &str, &str)] = &[
    (ADMINISTRATORS, "kubectl run web", "python3"),
    (ADMINISTRATORS, "kubectl wait --for=condition=Ready pod/web", "python3"),
    (ADMINISTRATORS, "kubectl port-forward", "python3"),
    (ADMINISTRATORS, "curl --retry-connrefused", "python3"),
];

/// The entries of a table that are about a statement, the longest beginning last.
fn about<'t, T>(table: &'t [(&str, &str, T)], statement: &Statement) -> Option<&'t T> {
    table
        .iter()
        .filter(|(page, begins, _)| {
            *page == statement.page && statement.text.trim_start().starts_with(begins)
        })
        .max_by_key(|(_, begins, _)| begins.len())
        .map(|(.., value)| value)
}

/// What becomes of a statement.
pub(super) fn how(statement: &Statement, world: &World) -> How {
    let commands = shell::commands(&statement.text);
    let needed = about(NEEDS, statement).copied().into_iter();
    let names = commands.iter().map(|words| words[0].as_str());
    let planned = about(PLAN, statement).copied();
    if let Some(how @ Not(_)) = planned {
        return how;
    }
    if !names.chain(needed).all(|name| shell::is_ours(name) || world.has_program(name)) {
        return Not(FOREIGN);
    }
    if statement.text.contains("./community") && !world.has("community") {
        return Not(DATA);
    }
    if let Some(how) = planned {
        return how;
    }
    let begins = |words: [&str; 2]| {
        commands.first().is_some_and(|command| {
            command.iter().zip(words).filter(|(argument, word)| *argument == word).count() == 2
        })
    };
    if begins(["mainstay", "up"]) || begins(["mainstay", "run"]) {
        return Serves("ready");
    }
    if begins(["opm", "serve"]) {
        return Serves("serving registry");
    }
    Ends(&[0])
}

/// The statement as it is typed here, with what is to be there before it and waited for after it.
pub(super) fn typed(
    statement: &Statement,
    port: u16,
    registry: &str,
) -> (Option<&'static str>, String, Option<&'static str>) {
    let mut text = statement.text.clone();
    for (page, word, here) in WORDS {
        if *page == statement.page {
            let here = here
                .replace("{registry}", registry)
                .replace("{port}", &port.to_string())
                .replace("{port+1}", &(port + 1).to_string())
                .replace("{port+2}", &(port + 2).to_string());
            text = text.replace(word, &here);
        }
    }
    (about(BEFORE, statement).copied(), text, about(AFTER, statement).copied())
}

/// Beginnings and words that no statement has.
pub(super) fn stale(statements: &[Statement]) -> Vec<String> {
    let begun = |page: &str, begins: &str| {
        statements.iter().any(|statement| {
            !statement.is_mention
                && statement.page == page
                && statement.text.trim_start().starts_with(begins)
        })
    };
    let said = |page: &str, word: &str| {
        statements.iter().any(|statement| {
            !statement.is_mention && statement.page == page && statement.text.contains(word)
        })
    };
    let beginnings = PLAN.iter().map(|(page, begins, _)| (page, begins)).chain(
        [BEFORE, AFTER, NEEDS].into_iter().flatten().map(|(page, begins, _)| (page, begins)),
    );
    let mut stale: Vec<String> = beginnings
        .filter(|(page, begins)| !begun(page, begins))
        .map(|(page, begins)| format!("{page}: {begins}"))
        .collect();
    let words = WORDS.iter().filter(|(page, word, _)| !said(page, word));
    stale.extend(words.map(|(page, word, _)| format!("{page}: {word}")));
    stale
}
