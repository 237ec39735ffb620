//! `mainstay resolve` with ClusterExtensions of OLM v1.

use super::resolve::ResolveFolder as _;
use super::resolve::exit_code_and_output;
use mainstay_clitest::TestFolder;
use serde_json::{Value, json};
use std::fmt::Write;

/// A package whose versions follow one another, and a newest one without an update to it.
const TEA: &str = r#"
{schema: olm.package, name: tea, defaultChannel: stable}
---
schema: olm.channel
package: tea
name: stable
entries:
- {name: tea.v1}
- {name: tea.v2, replaces: tea.v1}
- {name: tea.v3, skipRange: '>=2.0.0 <3.0.0', skips: [tea.v2]}
- {name: tea.v4, skips: [tea.v1, tea.v3]}
---
{schema: olm.channel, package: tea, name: next, entries: [{name: tea.v5}]}
---
{schema: olm.bundle, package: tea, name: tea.v1, image: "x.io/tea:1", properties: [{type: olm.package, value: {packageName: tea, version: 1.0.0}}]}
---
{schema: olm.bundle, package: tea, name: tea.v2, image: "x.io/tea:2", properties: [{type: olm.package, value: {packageName: tea, version: 2.0.0}}]}
---
{schema: olm.bundle, package: tea, name: tea.v3, image: "x.io/tea:3", properties: [{type: olm.package, value: {packageName: tea, version: 3.0.0}}]}
---
{schema: olm.bundle, package: tea, name: tea.v4, image: "x.io/tea:4", properties: [{type: olm.package, value: {packageName: tea, version: 4.0.0}}]}
---
{schema: olm.bundle, package: tea, name: tea.v5, image: "x.io/tea:5", properties: [{type: olm.package, value: {packageName: tea, version: 5.0.0}}]}
"#;

/// What `kubectl get clusterextension,clustercatalog -o yaml` prints, shortened.
const STATE: &str = "
apiVersion: v1
kind: List
items:
- apiVersion: olm.operatorframework.io/v1
  kind: ClusterCatalog
  metadata: {name: shop}
  spec: {priority: 7}
- apiVersion: olm.operatorframework.io/v1
  kind: ClusterExtension
  metadata: {name: new-tea}
  spec: {source: {sourceType: Catalog, catalog: {packageName: tea, channels: [stable]}}}
- apiVersion: olm.operatorframework.io/v1
  kind: ClusterExtension
  metadata: {name: old-tea}
  spec: {source: {sourceType: Catalog, catalog: {packageName: tea}}}
  status: {install: {bundle: {name: tea.v2, version: 2.0.0}}}
- apiVersion: olm.operatorframework.io/v1
  kind: ClusterExtension
  metadata: {name: still-tea}
  spec: {source: {sourceType: Catalog, catalog: {packageName: tea, version: 4.x}}}
  status: {install: {bundle: {name: tea.v4, version: 4.0.0}}}
";

/// An extension with a version range that no bundle meets.
const GREEDY: &str = "
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: greedy}
spec: {source: {sourceType: Catalog, catalog: {packageName: tea, version: 4.x}}}
status: {install: {bundle: {name: tea.v2, version: 2.0.0}}}
";

fn place() -> TestFolder {
    TestFolder::new()
        .file("shop/catalog.yaml", TEA)
        .file("broken/catalog.yaml", "{schema: olm.package")
        .file("state.yaml", STATE)
        .file("greedy.yaml", GREEDY)
}

#[test]
fn every_extension_resolves_to_the_end_of_its_path() {
    insta::assert_snapshot!(exit_code_and_output(&place().resolve("--state state.yaml --catalog shop=shop")), @r"
    0
    extensions: 1 to install, 1 to upgrade, 1 to keep
      install new-tea (package tea from shop)
        now        tea.v4
        end        the best version that the spec allows
      upgrade old-tea (package tea from shop)
        installed  tea.v2
        now        tea.v3
        then       tea.v4
        end        stranded: no update leads to tea.v5
      keep still-tea (package tea)
        installed  tea.v4
        end        the best version that the spec allows
    ");
}

#[test]
fn extension_without_a_bundle_has_a_reason() {
    let answer = place().resolve("--state greedy.yaml --catalog shop=shop");
    insta::assert_snapshot!(exit_code_and_output(&answer), @r#"
    3
    extensions: 1 failure
      fails greedy (package tea)
        installed  tea.v2
        error upgrading from currently installed version "2.0.0": no bundles found for package "tea" matching version "4.x"
        no bundle of package `tea` fits
          because catalog `shop` has 5 bundles
            because `tea.v4` is no successor of the installed `tea.v2`
            because `tea.v3`, `tea.v2` are outside version `4.x`
            because `tea.v5`, `tea.v1` are outside version `4.x` and no successor of the installed `tea.v2`
          → ask for version `3.0.0`: that gives `tea.v3` of catalog `shop`, from where updates lead to `4.0.0`
          → if the jump is known to be safe, set the policy to `SelfCertified`: that gives `tea.v4` of catalog `shop`
    "#);
}

#[test]
fn catalogs_without_content_and_broken_catalogs_are_reported_for_extensions() {
    insta::assert_snapshot!(exit_code_and_output(&place().resolve("--state state.yaml")), @r#"
    3
    extensions: 3 failures
      fails new-tea (package tea)
        error walking catalogs: error getting package "tea" from catalog "shop": its content is not available here
        a catalog that may have package `tea` cannot be read
          because catalog `shop` cannot be read
            because its content is not available here
          → supply its content with --catalog shop=DIR
      fails old-tea (package tea)
        installed  tea.v2
        error walking catalogs: error getting package "tea" from catalog "shop": its content is not available here
        a catalog that may have package `tea` cannot be read
          because catalog `shop` cannot be read
            because its content is not available here
          → supply its content with --catalog shop=DIR
      fails still-tea (package tea)
        installed  tea.v4
        error walking catalogs: error getting package "tea" from catalog "shop": its content is not available here
        a catalog that may have package `tea` cannot be read
          because catalog `shop` cannot be read
            because its content is not available here
          → supply its content with --catalog shop=DIR
    "#);
    let broken = "--state state.yaml --catalog shop=shop --catalog other=broken";
    insta::assert_snapshot!(exit_code_and_output(&place().resolve(broken)), @r"
    3
    catalog other cannot be used
      broken: catalog.yaml:2:1: did not find expected ',' or '}' (correct the syntax, or list the file in .indexignore if it is no part of the catalog)
        → see all problems with: mainstay catalog validate broken
    extensions: 1 to install, 1 to upgrade, 1 to keep
      install new-tea (package tea from shop)
        now        tea.v4
        end        the best version that the spec allows
      upgrade old-tea (package tea from shop)
        installed  tea.v2
        now        tea.v3
        then       tea.v4
        end        stranded: no update leads to tea.v5
      keep still-tea (package tea)
        installed  tea.v4
        end        the best version that the spec allows
    ");
}

#[test]
fn json_output_has_the_extensions_of_the_text() {
    let answer = place().resolve("--state state.yaml --catalog shop=shop -o json --exit-code");
    assert_eq!(answer.code, 4);
    let value: Value = serde_json::from_str(&answer.out).unwrap();
    assert_eq!(value["namespaces"], json!([]));
    let old = &value["extensions"][1];
    assert_eq!(old["name"], "old-tea");
    assert_eq!(old["installed"], "tea.v2");
    let hops: Vec<&Value> =
        old["hops"].as_array().unwrap().iter().map(|hop| &hop["bundle"]).collect();
    assert_eq!(hops, ["tea.v3", "tea.v4"]);
    assert_eq!(old["end"], json!({"kind": "stranded", "bundle": "tea.v4", "head": "tea.v5"}));

    let answer = place().resolve("--state greedy.yaml --catalog shop=shop -o json");
    assert_eq!(answer.code, 3);
    let value: Value = serde_json::from_str(&answer.out).unwrap();
    let greedy = &value["extensions"][0];
    assert!(greedy["error"].as_str().unwrap().contains("no bundles found"));
    assert!(greedy["repairs"][0].as_str().unwrap().contains("`tea.v3`"));
    assert_eq!(greedy["end"]["kind"], "failed");
}

#[test]
fn what_if_changes_of_catalogs_apply_to_extensions() {
    let place = place();
    let mut out = String::new();
    for change in ["outage=shop", "catalog=shop=broken", "outage=nosuch"] {
        let answer =
            place.resolve(&format!("--state state.yaml --catalog shop=shop --what-if {change}"));
        let lines = answer.out.lines().skip_while(|line| !line.starts_with("  changes with"));
        let lines: String = lines.flat_map(|line| [line, "\n"]).collect();
        let _ = write!(out, "{change}: {}\n{lines}{}", answer.code, answer.err);
    }
    insta::assert_snapshot!(out, @r"
    outage=shop: 3
      changes with outage=shop
        OPERATOR    AS IT IS                                       WHAT IF
        new-tea     tea.v4                                         nothing, fails
        old-tea     tea.v2 → … → tea.v4 (2 hops), stranded there   tea.v2 stays, fails
        still-tea   tea.v4 stays                                   tea.v4 stays, fails
    catalog=shop=broken: 3
      changes with catalog=shop=broken
        OPERATOR    AS IT IS                                       WHAT IF
        new-tea     tea.v4                                         nothing, fails
        old-tea     tea.v2 → … → tea.v4 (2 hops), stranded there   tea.v2 stays, fails
        still-tea   tea.v4 stays                                   tea.v4 stays, fails
    outage=nosuch: 2
    error: --what-if outage=nosuch cannot be applied
      because there is no catalog `nosuch`, only shop
    ");
    let arguments = "--state state.yaml --catalog shop=shop --what-if outage=shop -o json";
    let value: Value = serde_json::from_str(&place.resolve(arguments).out).unwrap();
    assert_eq!(value["extensions"][2]["end"]["kind"], "head");
    assert_eq!(value["extensionsWhatIf"]["extensions"][2]["end"]["kind"], "failed");
    assert_eq!(value["extensionsWhatIf"]["difference"][0]["asItIs"], "tea.v4");
}

/// A CatalogSource and a ClusterCatalog with one name, and their users.
#[test]
fn folder_is_the_content_of_catalogsource_and_clustercatalog_of_its_name() {
    let classic = "
---
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: shop, namespace: olm}
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: my-tea, namespace: kitchen}
spec: {name: tea, channel: next, source: shop, sourceNamespace: olm}
";
    let place = place().file("both.yaml", format!("{STATE}{classic}"));
    let answer = place.resolve("--state both.yaml --catalog shop=shop");
    assert_eq!(answer.code, 0, "{answer:?}");
    assert!(answer.out.contains("extensions: 1 to install, 1 to upgrade"), "{answer:?}");
    assert!(answer.out.contains("now        tea.v5"), "{answer:?}");
    // With a namespace, the folder is for the CatalogSource only.
    let answer = place.resolve("--state both.yaml --catalog olm/shop=shop");
    assert_eq!(answer.code, 3, "{answer:?}");
    assert!(answer.out.contains("now        tea.v5"), "{answer:?}");
    assert!(answer.out.contains("→ supply its content with --catalog shop=DIR"), "{answer:?}");
    // Notes name arguments that only affect namespaces, and what a universe does not hold.
    let answer = place
        .resolve("--state both.yaml --catalog shop=shop --what-if prohibit=tea.v5 --save w.json");
    let notes: Vec<&str> = answer.out.lines().filter(|line| line.starts_with("note: ")).collect();
    insta::assert_snapshot!(notes.join("\n"), @r"
    note: prohibit=tea.v5: applies to Subscriptions only, not to ClusterExtensions
    note: --save writes one namespace; ClusterExtensions are not saved
    ");
}

#[test]
fn named_extension_is_resolved_alone_with_the_counts_of_each_filter() {
    let classic = "
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: my-tea, namespace: kitchen}
spec: {name: tea, channel: next, source: shop, sourceNamespace: olm}
";
    let place = place().file("both.yaml", format!("{STATE}{classic}"));
    let named = "clusterextension/new-tea --state both.yaml --catalog shop=shop";
    insta::assert_snapshot!(exit_code_and_output(&place.resolve(named)), @r"
    0
    extensions: 1 to install
      install new-tea (package tea from shop)
        now        tea.v4
        end        the best version that the spec allows
        1 ClusterCatalog, 1 available, 1 readable, 1 with the package, 1 with a bundle that fits, 1 after deprecations, 1 of the highest priority
        shop (priority 7): 5 bundles, 4 in channel stable, 4 not deprecated; the best is tea.v4
    ");
    // The manifest alone, with a catalog that the cluster does not have.
    let greedy = "clusterextensions.olm.operatorframework.io/greedy --state greedy.yaml --catalog new=shop -o json";
    let answer = place.resolve(greedy);
    assert_eq!(answer.code, 3, "{answer:?}");
    let value: Value = serde_json::from_str(&answer.out).unwrap();
    let extension = &value["extensions"][0];
    assert_eq!(
        extension["error"],
        "error upgrading from currently installed version \"2.0.0\": no bundles found for package \"tea\" matching version \"4.x\""
    );
    assert_eq!(
        extension["resolution"]["catalogs"][0]["counts"],
        json!({"bundles": 5, "inChannels": 5, "inVersion": 1, "successors": 0, "notDeprecated": 0})
    );
    assert_eq!(value["namespaces"], json!([]));
    let unknown = place.resolve("clusterextension/coffee --state greedy.yaml --catalog new=shop");
    assert_eq!(unknown.code, 2, "{unknown:?}");
    assert!(unknown.err.contains("name one of greedy"), "{unknown:?}");
}
