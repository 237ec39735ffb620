//! `mainstay why`: causes as text and JSON, and the exit code.

use super::recorded_cluster::{RecordedCluster, SilentCluster};
use clap::Parser;
use mainstay_cause::Cause;
use mainstay_cli::args::{Arguments, Command};
use mainstay_clitest::{CommandOutput, TestFolder, block_on};
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_object::Resource;
use mainstay_operators::why;
use mainstay_resolver::fixture::CatalogData;
use std::fmt::Write as _;

const STATE: &str = "
apiVersion: v1
kind: List
items:
- {apiVersion: operators.coreos.com/v1, kind: OperatorGroup, metadata: {name: og, namespace: east}, spec: {targetNamespaces: [east]}, status: {namespaces: [east], lastUpdated: x}}
- {apiVersion: operators.coreos.com/v1alpha1, kind: CatalogSource, metadata: {name: shop, namespace: olm}, spec: {address: 'shop:1'}, status: {connectionState: {lastObservedState: READY, address: 'shop:1'}}}
- apiVersion: operators.coreos.com/v1alpha1
  kind: Subscription
  metadata: {name: tea, namespace: east}
  spec: {name: tea, channel: stable, source: shop, sourceNamespace: olm}
  status: {state: UpgradePending, lastUpdated: x, currentCSV: tea.v1, installPlanRef: {name: install-abcde}}
- apiVersion: operators.coreos.com/v1alpha1
  kind: InstallPlan
  metadata: {name: install-abcde, namespace: east}
  spec: {approval: Manual, approved: false, clusterServiceVersionNames: [tea.v1]}
  status: {phase: RequiresApproval}
";

/// The catalog of every registry.
fn catalog(address: &str) -> Result<CatalogData, Cause> {
    let text = r#"{"name": "shop", "namespace": "olm",
        "packages": [{"name": "tea", "defaultChannel": "stable", "channels": [
            {"name": "stable", "entries": [{"name": "tea.v1"}]}]}],
        "bundles": [{"name": "tea.v1", "package": "tea", "version": "1.0.0"}]}"#;
    serde_json::from_str(text).map_err(|error| Cause::new(format!("{address}: {error}")))
}

/// Whether an account may not list a kind in a namespace, or everywhere at once.
type Forbids = fn(&Resource, Option<&str>) -> bool;

/// What an account with the role `view` in the namespace `east` may not list.
const VIEWER: Forbids = |kind, namespace| match namespace {
    None => true,
    Some("olm") => kind.kind == "CatalogSource",
    Some("east") => kind.kind == "OperatorCondition",
    Some(_) => false,
};

fn why(place: &TestFolder, arguments: &str, cluster: Option<&str>) -> CommandOutput {
    why_as(|_, _| false, place, arguments, cluster)
}

/// The output for an account that may not list everything.
fn why_as(
    forbids: Forbids,
    place: &TestFolder,
    arguments: &str,
    cluster: Option<&str>,
) -> CommandOutput {
    let words = ["mainstay", "why"].into_iter().chain(arguments.split(' '));
    let parsed = match Arguments::try_parse_from(words) {
        Ok(parsed) => parsed,
        Err(error) => return CommandOutput::refused(&error),
    };
    let Command::Why(arguments) = parsed.command else { unreachable!("it was typed") };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let stdin = &mut STATE.as_bytes();
    let mut io = CommandIo::unattended(stdin, &mut out, &mut err, place.path());
    let exit = block_on(why::run(&arguments, &mut io, async || match cluster {
        None => Err(CommandFailure::usage(Cause::new("the cluster cannot be read"))),
        Some(text) => {
            Ok(RecordedCluster { forbids, catalog, ..RecordedCluster::new("east", text) })
        }
    }));
    CommandOutput::of(exit as u8, out, err)
}

fn exit_codes_and_outputs(all: &[(&str, CommandOutput)]) -> String {
    let mut out = String::new();
    for (what, answer) in all {
        write!(out, "# {what}\n{}\n{}{}", answer.code, answer.out, answer.err).unwrap();
    }
    out
}

#[test]
fn obstacle_exits_with_three_and_an_unusable_target_with_two() {
    let place = TestFolder::new().file("s.yaml", STATE).file("bad.yaml", "kind: [");
    let ask = |arguments: &'static str| (arguments, why(&place, arguments, None));
    insta::assert_snapshot!(exit_codes_and_outputs(&[
        ask("subscription/tea -n east --state s.yaml"),
        ask("ip/install-abcde -n east --state -"),
        ask("catalogsource/shop -n olm --state s.yaml"),
        ask("subscription/tea -n east --state s.yaml -o json"),
        ask("catalogsource/shop -n olm --state s.yaml -o json"),
        ask("catalogsource/shop -n olm --state s.yaml -o yaml"),
        ask("subscription/coffee -n east --state s.yaml"),
        ask("subscription/tea -n east --state bad.yaml"),
        ask("subscription/tea -n east --state none.yaml"),
        ask("subscription/tea -n east"),
    ]));
}

#[test]
fn target_of_an_unknown_kind_is_refused_at_once() {
    let place = TestFolder::new();
    for words in ["tea", "pod/tea", "subscription/", "subscription/a/b"] {
        let answer = why(&place, words, None);
        assert_eq!(answer.code, 2, "{words}");
        assert!(
            answer.err.contains("KIND/NAME") || answer.err.contains("name one of"),
            "{answer:?}"
        );
    }
}

#[test]
fn on_a_cluster_the_resolver_completes_the_condition_of_a_subscription() {
    let failed = STATE
        .replace("channel: stable", "channel: stabel")
        .replace("currentCSV: tea.v1, installPlanRef: {name: install-abcde}", "conditions: [{type: ResolutionFailed, status: 'True', reason: ConstraintsNotSatisfiable, message: long words}]");
    let place = TestFolder::new();
    let ask = |arguments: &'static str| (arguments, why(&place, arguments, Some(&failed)));
    insta::assert_snapshot!(exit_codes_and_outputs(&[
        ask("subscription/tea"),
        ask("sub/tea -n west")
    ]));
}

#[test]
fn viewer_of_one_namespace_gets_visible_causes_and_notes_about_hidden_kinds() {
    let place = TestFolder::new();
    let ask = |arguments: &'static str| (arguments, why_as(VIEWER, &place, arguments, Some(STATE)));
    insta::assert_snapshot!(exit_codes_and_outputs(&[
        ask("subscription/tea"),
        ask("ip/install-abcde -o json"),
        ask("csv/tea.v1"),
        ask("catalogsource/shop -n olm"),
    ]));
}

#[test]
fn silent_cluster_exits_with_one() {
    for words in [&["why", "sub/tea"][..], &["resolve"], &["resolve", "-n", "east"]] {
        let all = std::iter::once("mainstay").chain(words.iter().copied());
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let stdin = &mut std::io::empty();
        let mut io = CommandIo::unattended(stdin, &mut out, &mut err, std::path::Path::new(""));
        let connect = async || Ok(SilentCluster);
        let exit = block_on(async {
            match Arguments::try_parse_from(all).unwrap().command {
                Command::Why(arguments) => why::run(&arguments, &mut io, connect).await,
                Command::Resolve(arguments) => {
                    mainstay_content::resolve::run(&arguments, &mut io, connect).await
                }
                _ => unreachable!("it was typed"),
            }
        });
        assert_eq!(exit as u8, 1, "{words:?}: {}", String::from_utf8(err).unwrap());
    }
}

#[test]
fn kind_and_name_may_be_separate_words_as_for_kubectl() {
    let place = TestFolder::new().file("s.yaml", STATE);
    let [together, apart] =
        ["sub/tea -n east --state s.yaml", "subscription tea -n east --state s.yaml"]
            .map(|arguments| why(&place, arguments, None));
    assert_eq!((apart.code, &apart.out), (together.code, &together.out));
    for (arguments, said) in [
        ("sub -n east --state s.yaml", "a name is missing"),
        ("sub/tea milk", "two names are given"),
    ] {
        let answer = why(&place, arguments, None);
        assert_eq!(answer.code, 2, "{}", answer.err);
        assert!(answer.err.contains(said) && answer.err.contains("KIND/NAME"), "{}", answer.err);
    }
}
