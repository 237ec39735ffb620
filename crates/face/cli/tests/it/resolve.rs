//! `mainstay resolve`: what would be installed, each upgrade, and why not.

use super::recorded_cluster::RecordedCluster;
use clap::Parser;
use mainstay_cause::Cause;
use mainstay_cli::args::{Arguments, Command};
use mainstay_clitest::{CommandOutput, TestFolder, block_on};
use mainstay_command::io::CommandIo;
use mainstay_content::resolve;
use mainstay_resolver::fixture::parse;
use serde_json::{Value, json};
use std::fmt::Write;

/// Tea in four versions, of which the third needs a kettle; cups that cannot be installed; spoons in
/// two channels without an update between them.
const SHOP: &str = r#"
{schema: olm.package, name: tea, defaultChannel: stable}
---
schema: olm.channel
package: tea
name: stable
entries:
- {name: tea.v1}
- {name: tea.v2, replaces: tea.v1}
- {name: tea.v3, replaces: tea.v2}
- {name: tea.v4, replaces: tea.v3}
---
{schema: olm.bundle, package: tea, name: tea.v1, image: "x.io/tea:1", properties: [{type: olm.package, value: {packageName: tea, version: 1.0.0}}]}
---
{schema: olm.bundle, package: tea, name: tea.v2, image: "x.io/tea:2", properties: [{type: olm.package, value: {packageName: tea, version: 2.0.0}}]}
---
{schema: olm.bundle, package: tea, name: tea.v3, image: "x.io/tea:3", properties: [{type: olm.package, value: {packageName: tea, version: 3.0.0}}, {type: olm.package.required, value: {packageName: kettle, versionRange: ">=2.0.0"}}]}
---
{schema: olm.bundle, package: tea, name: tea.v4, image: "x.io/tea:4", properties: [{type: olm.package, value: {packageName: tea, version: 4.0.0}}, {type: olm.package.required, value: {packageName: kettle, versionRange: ">=2.0.0"}}]}
---
{schema: olm.package, name: kettle, defaultChannel: new}
---
{schema: olm.channel, package: kettle, name: old, entries: [{name: kettle.v1}]}
---
{schema: olm.channel, package: kettle, name: new, entries: [{name: kettle.v2}]}
---
{schema: olm.bundle, package: kettle, name: kettle.v1, image: "x.io/kettle:1", properties: [{type: olm.package, value: {packageName: kettle, version: 1.0.0}}]}
---
{schema: olm.bundle, package: kettle, name: kettle.v2, image: "x.io/kettle:2", properties: [{type: olm.package, value: {packageName: kettle, version: 2.0.0}}]}
---
{schema: olm.package, name: cup, defaultChannel: stable}
---
{schema: olm.channel, package: cup, name: stable, entries: [{name: cup.v1}]}
---
{schema: olm.bundle, package: cup, name: cup.v1, image: "x.io/cup:1", properties: [{type: olm.package, value: {packageName: cup, version: 1.0.0}}, {type: olm.gvk.required, value: {group: shop.io, version: v1, kind: Saucer}}]}
---
{schema: olm.package, name: spoon, defaultChannel: gold}
---
{schema: olm.channel, package: spoon, name: tin, entries: [{name: spoon.v1}]}
---
{schema: olm.channel, package: spoon, name: gold, entries: [{name: spoon.v2}]}
---
{schema: olm.bundle, package: spoon, name: spoon.v1, image: "x.io/spoon:1", properties: [{type: olm.package, value: {packageName: spoon, version: 1.0.0}}]}
---
{schema: olm.bundle, package: spoon, name: spoon.v2, image: "x.io/spoon:2", properties: [{type: olm.package, value: {packageName: spoon, version: 2.0.0}}]}
"#;

/// What `kubectl get sub,csv,og,catalogsource -A -o yaml` prints, shortened.
const STATE: &str = "
apiVersion: v1
kind: List
items:
- apiVersion: operators.coreos.com/v1alpha1
  kind: CatalogSource
  metadata: {name: shop, namespace: olm}
  spec: {sourceType: grpc, address: 'shop.olm.svc:50051', priority: 7}
  status: {connectionState: {lastObservedState: READY}}
- apiVersion: operators.coreos.com/v1
  kind: OperatorGroup
  metadata: {name: all, namespace: kitchen}
- apiVersion: operators.coreos.com/v1alpha1
  kind: Subscription
  metadata: {name: my-tea, namespace: kitchen}
  spec: {name: tea, channel: stable, source: shop, sourceNamespace: olm, installPlanApproval: Manual}
  status:
    installedCSV: tea.v1
    currentCSV: tea.v1
    conditions: [{type: ResolutionFailed, status: 'True', reason: ErrorPreventedResolution, message: no kettle}]
- apiVersion: operators.coreos.com/v1alpha1
  kind: Subscription
  metadata: {name: my-spoon, namespace: kitchen}
  spec: {name: spoon, channel: gold, source: shop, sourceNamespace: olm}
  status: {installedCSV: spoon.v1, currentCSV: spoon.v1}
- apiVersion: operators.coreos.com/v1alpha1
  kind: ClusterServiceVersion
  metadata:
    name: tea.v1
    namespace: kitchen
    annotations: {operatorframework.io/properties: '{\"properties\":[{\"type\":\"olm.package\",\"value\":{\"packageName\":\"tea\",\"version\":\"1.0.0\"}}]}'}
  spec: {version: 1.0.0}
  status: {phase: Succeeded}
- apiVersion: operators.coreos.com/v1alpha1
  kind: ClusterServiceVersion
  metadata:
    name: spoon.v1
    namespace: kitchen
    annotations: {operatorframework.io/properties: '{\"properties\":[{\"type\":\"olm.package\",\"value\":{\"packageName\":\"spoon\",\"version\":\"1.0.0\"}}]}'}
  spec: {version: 1.0.0}
  status: {phase: Succeeded}
- {apiVersion: v1, kind: Secret, metadata: {name: not-looked-at, namespace: kitchen}}
";

const WITH_STATE: &str = "--state state.yaml --catalog shop=shop";

/// A cluster of [`STATE`] with a registry, for an account that may read everything, or that has the
/// role `view` in the namespace `kitchen` only.
fn cluster(viewer: bool) -> RecordedCluster {
    RecordedCluster {
        forbids: if viewer { |_, namespace| namespace != Some("kitchen") } else { |_, _| false },
        unknown_group: Some("olm.operatorframework.io"),
        kube_version: Some("v1.35.0+k0s"),
        namespaces: (!viewer).then_some(&["kitchen", "cellar"]),
        catalog: |address| match address {
            "shop.olm.svc:50051" => Ok(parse(UNIVERSE).unwrap().catalogs.remove(0)),
            _ => Err(Cause::new("there is nothing")),
        },
        ..RecordedCluster::new("default", STATE)
    }
}

const UNIVERSE: &str = r#"{"namespace": "kitchen", "globalNamespace": "olm",
 "operatorGroups": [{"name": "all"}],
 "catalogs": [{"name": "shop", "namespace": "olm",
   "packages": [{"name": "tea", "defaultChannel": "stable", "channels": [
     {"name": "stable", "entries": [{"name": "tea.v1"}, {"name": "tea.v2", "replaces": "tea.v1"}]}]}],
   "bundles": [{"name": "tea.v1", "package": "tea", "version": "1.0.0"},
               {"name": "tea.v2", "package": "tea", "version": "2.0.0"}]}],
 "subscriptions": [{"name": "my-tea", "package": "tea", "source": "shop", "sourceNamespace": "olm"}]}"#;

pub(super) fn kitchen() -> TestFolder {
    TestFolder::new()
        .file("shop/catalog.yaml", SHOP)
        .file("state.yaml", STATE)
        .file("universe.json", UNIVERSE)
        .file("broken/catalog.yaml", "{schema: olm.package")
}

/// `mainstay resolve` in a folder of tests.
pub(super) trait ResolveFolder {
    /// `mainstay resolve …`; the arguments are separated by blanks.
    fn resolve(&self, arguments: &str) -> CommandOutput {
        self.resolve_with(arguments, "")
    }

    /// The same with text on standard input.
    fn resolve_with(&self, arguments: &str, stdin: &str) -> CommandOutput {
        self.resolve_on(false, arguments, stdin)
    }

    /// The same, for an account that may read the namespace `kitchen` only, or everything.
    fn resolve_on(&self, viewer: bool, arguments: &str, stdin: &str) -> CommandOutput;
}

impl ResolveFolder for TestFolder {
    fn resolve_on(&self, viewer: bool, arguments: &str, stdin: &str) -> CommandOutput {
        let words = ["mainstay", "resolve"].into_iter();
        let words = words.chain(arguments.split(' ').filter(|word| !word.is_empty()));
        let parsed = match Arguments::try_parse_from(words) {
            Ok(parsed) => parsed,
            Err(error) => return CommandOutput::refused(&error),
        };
        let Command::Resolve(arguments) = parsed.command else { unreachable!("it was typed") };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let stdin = &mut stdin.as_bytes();
        let mut io = CommandIo::unattended(stdin, &mut out, &mut err, self.path());
        let exit = block_on(resolve::run(&arguments, &mut io, async || Ok(cluster(viewer))));
        CommandOutput::of(exit as u8, out, err)
    }
}

/// The exit code, and below it the output and the error output.
pub(super) fn exit_code_and_output(answer: &CommandOutput) -> String {
    format!("{}\n{}{}", answer.code, answer.out, answer.err)
}

#[test]
fn packages_resolve_without_a_cluster() {
    insta::assert_snapshot!(exit_code_and_output(&kitchen().resolve("--catalog shop=shop tea spoon:tin")), @r"
    0
    namespace operators: 3 to install
      install kettle from olm/shop, channel new
        now        kettle.v2
        needed by  tea.v4, which requires package kettle >=2.0.0
        end        head of channel new
      install spoon from olm/shop, channel tin (Subscription spoon)
        now        spoon.v1
        end        head of channel tin
      install tea from olm/shop, channel stable (Subscription tea)
        now        tea.v4
        end        head of channel stable
    ");
}

#[test]
fn every_upgrade_to_the_head_is_printed_with_its_dependencies() {
    insta::assert_snapshot!(exit_code_and_output(&kitchen().resolve("--catalog shop=shop tea@1.0.0")), @r"
    0
    namespace operators: 1 to install
      install tea from olm/shop, channel stable (Subscription tea)
        now        tea.v1
        then       tea.v2 → tea.v3 → tea.v4
        end        head of channel stable
      install later kettle from olm/shop, channel new
        then       kettle.v2
        needed by  tea.v3, which requires package kettle >=2.0.0
        end        head of channel new
    ");
}

#[test]
fn failure_is_explained_beside_successful_operators() {
    insta::assert_snapshot!(exit_code_and_output(&kitchen().resolve("--catalog shop=shop cup tea")), @r"
    3
    namespace operators: 2 to install, 1 failure
      install kettle from olm/shop, channel new
        now        kettle.v2
        needed by  tea.v4, which requires package kettle >=2.0.0
        end        head of channel new
      install tea from olm/shop, channel stable (Subscription tea)
        now        tea.v4
        end        head of channel stable
      fails Subscription cup
        Subscription `cup` cannot be met
          because nothing in package `cup` in catalog `shop` of namespace `olm` can be installed
            because `cup.v1` needs the API `Saucer` (shop.io/v1), which nothing offers
          → add a catalog that offers the API `Saucer` (shop.io/v1)
    ");
}

#[test]
fn saved_state_has_installed_csvs_and_approval_modes() {
    insta::assert_snapshot!(exit_code_and_output(&kitchen().resolve(WITH_STATE)), @r"
    0
    namespace kitchen: 1 to upgrade, 1 to keep
      upgrade tea from olm/shop, channel stable (Subscription my-tea), each step waits for approval
        installed  tea.v1
        now        tea.v2
        then       tea.v3 → tea.v4
        end        head of channel stable
      install later kettle from olm/shop, channel new
        then       kettle.v2
        needed by  tea.v3, which requires package kettle >=2.0.0
        end        head of channel new
      keep spoon.v1 (Subscription my-spoon)
        end        stranded: channel gold has neither spoon.v1 nor an update from it
    ");
}

#[test]
fn what_if_prints_the_difference() {
    let changes = "--what-if subscribe=kettle:old --what-if prohibit=spoon --what-if subscribe=cup";
    insta::assert_snapshot!(exit_code_and_output(&kitchen().resolve(&format!("{WITH_STATE} {changes}"))), @r"
    3
    namespace kitchen: 1 to install, 1 to upgrade, 1 to keep, 1 failure
      install kettle from olm/shop, channel old (Subscription kettle)
        now        kettle.v1
        end        head of channel old
      upgrade tea from olm/shop, channel stable (Subscription my-tea), each step waits for approval
        installed  tea.v1
        now        tea.v2
        end        held at tea.v2: tea.v3 cannot be installed
                   `tea.v3` needs version `>=2.0.0` of package `kettle`, but nothing that meets this can be installed
                     because `kettle.v2` is not possible beside the installed `kettle.v1`: a namespace has only one operator of package `kettle`
                       because Subscription `kettle` has `kettle.v1` installed
      keep spoon.v1 (Subscription my-spoon)
        end        stranded: channel gold has neither spoon.v1 nor an update from it
      fails Subscription cup
        Subscription `cup` cannot be met
          because nothing in package `cup` in catalog `shop` of namespace `olm` can be installed
            because `cup.v1` needs the API `Saucer` (shop.io/v1), which nothing offers
          → add a catalog that offers the API `Saucer` (shop.io/v1)
      changes with subscribe=kettle:old, prohibit=spoon, subscribe=cup
        OPERATOR           AS IT IS                       WHAT IF
        Subscription cup   –                              fails
        kettle             kettle.v2                      kettle.v1
        tea                tea.v1 → … → tea.v4 (3 hops)   tea.v1 → tea.v2, held there
        and 1 unchanged
    ");
}

#[test]
fn each_kind_of_what_if_change_is_applied() {
    for (change, expected) in [
        ("subscribe=tea@4.0.0", "tea.v1"),
        ("unsubscribe=my-spoon", "Subscription"),
        ("installed=tea.v3", "tea.v3 → tea.v4"),
        ("outage=shop", "a supposed change makes the catalog unavailable"),
        ("outage=olm/shop", "a supposed change makes the catalog unavailable"),
        ("prohibit=tea.v3", "held at tea.v2"),
        ("kube-version=1.20", "nothing"),
        ("catalog=shop=broken", "cannot be used"),
        ("catalog=new=shop", "nothing"),
    ] {
        let answer = kitchen().resolve(&format!("{WITH_STATE} --what-if {change}"));
        assert!(answer.out.contains(expected), "{change}: {answer:?}");
    }
}

#[test]
fn state_is_read_from_a_cluster() {
    let answer = kitchen().resolve("");
    insta::assert_snapshot!(exit_code_and_output(&answer), @r"
    3
    namespace kitchen: 1 to upgrade, 1 to keep, 1 failure
      upgrade tea from olm/shop, channel stable (Subscription my-tea), each step waits for approval
        installed  tea.v1
        now        tea.v2
        end        head of channel stable
      keep spoon.v1 (Subscription my-spoon)
        end        part of the failure, see below
      fails Subscription my-spoon
        Subscription `my-spoon` cannot be met
          because catalog `shop` of namespace `olm` has no package `spoon`
          → add a catalog that offers package `spoon`
      the cluster reports another result for Subscription my-tea: ErrorPreventedResolution: no kettle
        its controller may not have resolved again yet, may read other catalog content, or may fail the whole namespace
    ");
    // A folder's content has precedence over that of the registry.
    let folder = kitchen().resolve("--cluster --catalog shop=shop");
    assert!(folder.out.contains("tea.v4"), "{folder:?}");
}

#[test]
fn catalogs_without_content_and_broken_catalogs_are_reported() {
    insta::assert_snapshot!(exit_code_and_output(&kitchen().resolve("--state state.yaml --catalog bad=broken")), @r"
    3
    catalog olm/bad cannot be used
      broken: catalog.yaml:2:1: did not find expected ',' or '}' (correct the syntax, or list the file in .indexignore if it is no part of the catalog)
        → see all problems with: mainstay catalog validate broken
    catalog olm/shop has no content here
      its content is not available
        → supply its content with --catalog olm/shop=DIR

    namespace kitchen: 2 to keep, 1 failure
      keep spoon.v1 (Subscription my-spoon)
        end        part of the failure, see below
      keep tea.v1 (Subscription my-tea)
        end        part of the failure, see below
      fails Subscriptions my-spoon, my-tea
        Subscriptions `my-spoon` and `my-tea` cannot be resolved
          because catalog `shop` of namespace `olm` cannot be read: its content is not available here
          → supply its content with --catalog olm/shop=DIR
      note: no Subscription depends on it
        catalog `bad` of namespace `olm` cannot be read: the folder broken cannot be used
          → correct the folder broken
    ");
}

#[test]
fn json_output_has_the_content_of_the_text() {
    let answer = kitchen().resolve(&format!("{WITH_STATE} -o json --what-if unsubscribe=my-spoon"));
    assert_eq!(answer.code, 0, "{answer:?}");
    let value: Value = serde_json::from_str(&answer.out).unwrap();
    let namespace = &value["namespaces"][0];
    let mut lines = vec![&value["catalogs"], &value["whatIf"], &namespace["difference"]];
    lines.extend(namespace["operators"].as_array().unwrap());
    lines.extend([&namespace["outcome"], &namespace["whatIf"]["operators"][2]]);
    let lines: Vec<String> = lines.into_iter().map(Value::to_string).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    [{"from":"shop","name":"shop","namespace":"olm","priority":7,"state":"ready"}]
    ["unsubscribe=my-spoon"]
    [{"asItIs":"spoon.v1 stays, stranded there","operator":"spoon","whatIf":"spoon.v1 stays, without a Subscription"}]
    {"approval":"Manual","catalog":"shop","catalogNamespace":"olm","channel":"stable","end":{"bundle":"tea.v4","kind":"head"},"hops":[{"bundle":"tea.v2","channel":"stable","step":1,"version":"2.0.0"},{"bundle":"tea.v3","channel":"stable","step":2,"version":"3.0.0"},{"bundle":"tea.v4","channel":"stable","step":3,"version":"4.0.0"}],"installed":"tea.v1","neededBy":[],"package":"tea","subscriptions":["my-tea"]}
    {"approval":null,"catalog":"shop","catalogNamespace":"olm","channel":"new","end":{"bundle":"kettle.v2","kind":"head"},"hops":[{"bundle":"kettle.v2","channel":"new","step":2,"version":"2.0.0"}],"installed":null,"neededBy":[{"bundle":"tea.v3","requirement":"package kettle >=2.0.0"}],"package":"kettle","subscriptions":[]}
    {"approval":"Automatic","catalog":"shop","catalogNamespace":"olm","channel":"gold","end":{"bundle":"spoon.v1","kind":"outside"},"hops":[],"installed":"spoon.v1","neededBy":[],"package":"spoon","subscriptions":["my-spoon"]}
    {"install":["tea.v2"],"resolved":[{"catalog":"shop","catalogNamespace":"olm","channel":"stable","name":"tea.v2","package":"tea","replaces":"tea.v1","version":"2.0.0"}],"updatedSubscriptions":[{"currentCSV":"tea.v2","name":"my-tea"}]}
    {"approval":null,"catalog":"","catalogNamespace":"","channel":"","end":{"bundle":"spoon.v1","kind":"unsubscribed"},"hops":[],"installed":"spoon.v1","neededBy":[],"package":"spoon","subscriptions":[]}
    "#);
}

#[test]
fn saved_universe_has_the_same_outcome() {
    let place = kitchen();
    let before = place.resolve(&format!("{WITH_STATE} -o json --save world.json"));
    let before: Value = serde_json::from_str(&before.out).unwrap();
    let saved = std::fs::read_to_string(place.path().join("world.json")).unwrap();
    assert!(!saved.contains("not-looked-at"), "{saved}");
    let after = place.resolve("--universe world.json -o json");
    let after: Value = serde_json::from_str(&after.out).unwrap();
    assert_eq!(after["outcome"], before["namespaces"][0]["outcome"]);
    place.resolve("--universe world.json --save again.json");
    let again = std::fs::read_to_string(place.path().join("again.json")).unwrap();
    assert_eq!(again, saved);
}

#[test]
fn universe_outcome_is_one_line_with_its_cpu_time() {
    let answer = kitchen().resolve_with("--universe - -o json", UNIVERSE);
    assert_eq!((answer.code, answer.out.lines().count()), (0, 1), "{answer:?}");
    let value: Value = serde_json::from_str(&answer.out).unwrap();
    assert!(value["ms"].as_f64().unwrap() >= 0.0);
    assert_eq!(
        value["outcome"],
        json!({
            "resolved": [{"name": "tea.v2", "package": "tea", "channel": "stable", "catalog": "shop",
                "catalogNamespace": "olm", "version": "2.0.0", "replaces": "tea.v1"}],
            "install": ["tea.v2"],
            "updatedSubscriptions": [{"name": "my-tea", "currentCSV": "tea.v2"}],
        })
    );
    insta::assert_snapshot!(exit_code_and_output(&kitchen().resolve("--universe universe.json")), @r"
    0
    namespace kitchen: 1 to install
      install tea from olm/shop, channel stable (Subscription my-tea)
        now        tea.v2
        end        head of channel stable
    ");
}

#[test]
fn exit_code_reports_the_outcome() {
    for (arguments, code) in [
        ("--catalog shop=shop tea", 0),
        ("--catalog shop=shop --catalog other=shop other/tea", 0),
        ("--catalog shop=shop --catalog other=shop --priority other=1 tea", 0),
        ("--catalog shop=shop tea --exit-code", 4),
        ("--catalog shop=shop spoon --installed spoon.v2 --exit-code", 0),
        ("--catalog shop=shop cup --exit-code", 3),
        ("--catalog shop=shop tea --catalog bad=broken", 3),
        ("--state state.yaml --catalog shop=shop --what-if catalog=bad=broken", 3),
        ("--universe universe.json", 0),
    ] {
        let answer = kitchen().resolve(arguments);
        assert_eq!(answer.code, code, "{arguments}: {answer:?}");
    }
}

#[test]
fn unusable_arguments_are_refused_with_a_remedy() {
    let mut out = String::new();
    for arguments in [
        "tea",
        "--catalog shop=shop teas",
        "--catalog shop=shop tea:beta",
        "--catalog shop=shop tea@9.9.9",
        "--catalog shop=shop store/tea",
        "--catalog shop=shop --catalog other=shop tea",
        "--catalog shop=shop tea --installed tea.v9",
        "--catalog shop=nowhere tea",
        "--catalog shop=state.yaml tea",
        "--catalog shop=shop --priority ship=1 tea",
        "--state nowhere.yaml",
        "--state shop",
        "--state broken/catalog.yaml",
        "--state shop/catalog.yaml",
        "--state state.yaml --catalog shop=shop --what-if unsubscribe=tea",
        "--state state.yaml --catalog shop=shop --what-if outage=ship",
        "--universe state.yaml",
        "--universe universe.json --what-if catalog=shop=shop",
    ] {
        let answer = kitchen().resolve(arguments);
        assert_eq!((answer.code, &*answer.out), (2, ""), "{arguments}: {answer:?}");
        let _ = write!(out, "$ {arguments}\n{}", answer.err);
    }
    insta::assert_snapshot!(out, @r#"
    $ tea
    error: no catalog is given
      → name one with --catalog NAME=DIR, or read the cluster with --cluster
    $ --catalog shop=shop teas
    error: no catalog has a package "teas"
      → did you mean tea?
    $ --catalog shop=shop tea:beta
    error: package "tea" has no channel "beta"
      → name one of stable
    $ --catalog shop=shop tea@9.9.9
    error: package "tea" has no bundle "9.9.9"
      → list them with: mainstay catalog show DIR PACKAGE
    $ --catalog shop=shop store/tea
    error: `store/tea` cannot be used
      because there is no catalog `store`, only olm/shop
    $ --catalog shop=shop --catalog other=shop tea
    error: several catalogs have package "tea"
      → name one as olm/other/tea or olm/shop/tea, or give one a --priority
    $ --catalog shop=shop tea --installed tea.v9
    error: no catalog has a bundle "tea.v9"
      → did you mean tea.v1, tea.v2, tea.v3, tea.v4?
    $ --catalog shop=nowhere tea
    error: nowhere: no such file or directory
      → name the folder of a file-based catalog
    $ --catalog shop=state.yaml tea
    error: state.yaml: this is a file, not a folder
      → name the folder of a file-based catalog
    $ --catalog shop=shop --priority ship=1 tea
    error: `--priority ship=1` cannot be used
      because there is no catalog `ship`, only olm/shop
    $ --state nowhere.yaml
    error: nowhere.yaml: no such file or directory
      → name a file that can be read
    $ --state shop
    error: shop: this is a folder, not a file
      → name a file that can be read
    $ --state broken/catalog.yaml
    error: the state cannot be read
      because broken/catalog.yaml:2:1: did not find expected ',' or '}': the file seems to be cut off there
        → save it again with: kubectl get sub,csv,og,catalogsource -A -o yaml
    $ --state shop/catalog.yaml
    error: the state cannot be read
      because shop/catalog.yaml:2: this is not a Kubernetes object: it has no `kind`
        → use the output of: kubectl get sub,csv,og,catalogsource -A -o yaml
    $ --state state.yaml --catalog shop=shop --what-if unsubscribe=tea
    error: --what-if unsubscribe=tea cannot be applied
      because namespace kitchen has no Subscription "tea"
        → did you mean my-tea?
    $ --state state.yaml --catalog shop=shop --what-if outage=ship
    error: --what-if outage=ship cannot be applied
      because there is no catalog `ship`, only olm/shop
    $ --universe state.yaml
    error: the universe cannot be read
      because state.yaml:2:1: not JSON: expected value
        → correct the JSON at that place
    $ --universe universe.json --what-if catalog=shop=shop
    error: `--what-if catalog=…` cannot be used
      because the catalogs of a universe are in its file
    "#);
    for arguments in ["tea --universe universe.json", "--catalog shop tea", "--what-if buy=tea"] {
        assert_eq!(kitchen().resolve(arguments).code, 2, "{arguments}");
    }
}

#[test]
fn viewer_of_one_namespace_gets_its_resolution_and_notes_about_hidden_kinds() {
    let place = kitchen();
    let given = place.resolve_on(true, "-n kitchen --catalog olm/shop=shop", "");
    assert_eq!(given.code, 0, "{given:?}");
    // A hidden catalog is no failure: one note names it, and how to see it.
    let without = place.resolve_on(true, "-n kitchen", "");
    assert_eq!(without.code, 0, "{without:?}");
    let outage =
        place.resolve_on(true, "-n kitchen --catalog olm/shop=shop --what-if outage=shop", "");
    assert_eq!(outage.code, 3, "{outage:?}");
    let json = place.resolve_on(true, "-n kitchen -o json", "");
    let json: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["namespaces"][0]["fails"], false, "{json:#}");
    assert_eq!(json["namespaces"][0]["operators"][0]["end"]["kind"], "unknown", "{json:#}");
    let named = place.resolve_on(true, "-n kitchen --cluster tea", "");
    assert_eq!(named.code, 0, "{named:?}");
    let everything = place.resolve_on(true, "", "");
    assert_eq!(everything.code, 1, "{everything:?}");
    let text =
        [&given, &without, &everything].map(|run| format!("{}\n{}{}", run.code, run.out, run.err));
    insta::assert_snapshot!(text.join("\n"));
}
