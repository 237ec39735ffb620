//! `mainstay resolve`: unusable saved states and arguments are refused, and none is ignored silently.

use super::resolve::ResolveFolder as _;
use super::resolve::{exit_code_and_output, kitchen};
use mainstay_clitest::TestFolder;
use std::fmt::Write;

/// A Subscription with more fields after `metadata`.
fn subscription(name: &str, rest: &str) -> String {
    format!(
        "{{apiVersion: operators.coreos.com/v1alpha1, kind: Subscription, metadata: {{name: {name}, namespace: east}}, {rest}}}\n"
    )
}

const SPEC: &str = "spec: {name: tea, source: shop, sourceNamespace: olm}";

/// The error about a state.
fn refusals(files: &[(&str, String)]) -> String {
    let mut out = String::new();
    for (what, content) in files {
        let answer =
            kitchen().file("s.yaml", content).resolve("--state s.yaml --catalog shop=shop");
        let _ = write!(out, "# {what}\n{}", exit_code_and_output(&answer));
    }
    out
}

#[test]
fn state_without_csvs_is_refused_unless_it_was_saved_without() {
    let texts = |files: &[(&'static str, &str)]| -> Vec<(&str, String)> {
        files.iter().map(|(what, content)| (*what, (*content).to_owned())).collect()
    };
    insta::assert_snapshot!(refusals(&texts(&[
        ("nothing", ""),
        ("null", "null\n"),
        ("a list of nothing", "[]\n"),
        ("a number", "5\n"),
        ("others", "{apiVersion: v1, kind: Pod, metadata: {name: a}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: b}}\n"),
        ("another Subscription", "{apiVersion: messaging.knative.dev/v1, kind: Subscription, metadata: {name: a}}"),
        ("no list", "{apiVersion: v1, kind: List, items: 5}"),
        ("no items", "{apiVersion: v1, kind: List}"),
        ("null in it", "{apiVersion: v1, kind: List, items: [null]}"),
        ("cut off", "apiVersion: v1\nitems:\n- apiVersion: operators.coreos.com/v1\n  kind: OperatorGroup\n"),
        ("cut off in JSON", "{\"kind\": \"List\", \"items\": [{\"kind\":"),
        ("an empty cluster", "{apiVersion: v1, kind: List, items: []}"),
    ])), @r"
    # nothing
    2
    error: the state cannot be read
      because s.yaml: the file holds no objects
        → use the output of: kubectl get sub,csv,og,catalogsource -A -o yaml
    # null
    2
    error: the state cannot be read
      because s.yaml: the file holds no objects
        → use the output of: kubectl get sub,csv,og,catalogsource -A -o yaml
    # a list of nothing
    2
    error: the state cannot be read
      because s.yaml:1: this is not a Kubernetes object: it has no fields
        → use the output of: kubectl get sub,csv,og,catalogsource -A -o yaml
    # a number
    2
    error: the state cannot be read
      because s.yaml:1: this is not a Kubernetes object: it has no fields
        → use the output of: kubectl get sub,csv,og,catalogsource -A -o yaml
    # others
    2
    error: the state cannot be read
      because s.yaml: the file holds no objects that resolution reads, only 2 Pods
        → use the output of: kubectl get sub,csv,og,catalogsource -A -o yaml
    # another Subscription
    2
    error: the state cannot be read
      because s.yaml: the file holds no objects that resolution reads, only 1 Subscription
        → use the output of: kubectl get sub,csv,og,catalogsource -A -o yaml
    # no list
    2
    error: the state cannot be read
      because s.yaml:1: List: `items` is a number, not a list
        → correct it, or save the state again with: kubectl get sub,csv,og,catalogsource -A -o yaml
    # no items
    2
    error: the state cannot be read
      because s.yaml:1: List: it has no `items`
        → correct it, or save the state again with: kubectl get sub,csv,og,catalogsource -A -o yaml
    # null in it
    2
    error: the state cannot be read
      because s.yaml:1: items[0]: this is null, not an object
        → correct it, or save the state again with: kubectl get sub,csv,og,catalogsource -A -o yaml
    # cut off
    2
    error: the state cannot be read
      because s.yaml:1: this is not a Kubernetes object: it has `items` and no `kind`: the file seems to be cut off
        → use the output of: kubectl get sub,csv,og,catalogsource -A -o yaml
    # cut off in JSON
    2
    error: the state cannot be read
      because s.yaml:1:35: EOF while parsing a value: the file seems to be cut off there
        → save it again with: kubectl get sub,csv,og,catalogsource -A -o yaml
    # an empty cluster
    0
    note: s.yaml holds an empty List: a cluster without operators
    namespace operators: nothing to do
    ");
}

#[test]
fn objects_of_a_state_are_validated() {
    let version = "apiVersion: operators.coreos.com/v1alpha1, kind: ClusterServiceVersion";
    let extension = "apiVersion: olm.operatorframework.io/v1, kind: ClusterExtension";
    insta::assert_snapshot!(refusals(&[
        ("a number for a name", subscription("a", "spec: {name: 5}")),
        ("a list for a channel", subscription("a", "spec: {name: tea, channel: [x]}")),
        ("no package", subscription("a", "spec: {source: shop}")),
        ("no spec", subscription("a", "status: {}")),
        ("a list for a spec", subscription("a", "spec: [1]")),
        ("no namespace", subscription("a", SPEC).replace(", namespace: east", "")),
        ("no name", subscription("a", SPEC).replace("name: a, ", "")),
        ("no version", format!("{{{version}, metadata: {{name: a, namespace: east}}, spec: {{version: old}}}}")),
        ("no list", format!("{{{version}, metadata: {{name: a, namespace: east}}, spec: {{customresourcedefinitions: {{owned: 5}}}}}}")),
        ("no text", format!("{{{version}, metadata: {{name: a, namespace: east}}, spec: {{customresourcedefinitions: {{owned: [{{name: 5}}]}}}}}}")),
        ("no priority", "{apiVersion: operators.coreos.com/v1alpha1, kind: CatalogSource, metadata: {name: a, namespace: east}, spec: {priority: high}}".to_owned()),
        ("no package of an extension", format!("{{{extension}, metadata: {{name: a}}, spec: {{}}}}")),
        ("in a List", format!("{{apiVersion: v1, kind: List, items: [{}, {{}}]}}", subscription("a", SPEC))),
    ]), @r#"
    # a number for a name
    2
    error: the state cannot be read
      because s.yaml:1: Subscription east/a: `spec.name` is a number, not a text
        → correct it, or save the state again with: kubectl get sub,csv,og,catalogsource -A -o yaml
    # a list for a channel
    2
    error: the state cannot be read
      because s.yaml:1: Subscription east/a: `spec.channel` is a list, not a text
        → correct it, or save the state again with: kubectl get sub,csv,og,catalogsource -A -o yaml
    # no package
    2
    error: the state cannot be read
      because s.yaml:1: Subscription east/a: `spec.name` is missing
        → correct it, or save the state again with: kubectl get sub,csv,og,catalogsource -A -o yaml
    # no spec
    2
    error: the state cannot be read
      because s.yaml:1: Subscription east/a: `spec.name` is missing
        → correct it, or save the state again with: kubectl get sub,csv,og,catalogsource -A -o yaml
    # a list for a spec
    2
    error: the state cannot be read
      because s.yaml:1: Subscription east/a: `spec` is a list, not an object
        → correct it, or save the state again with: kubectl get sub,csv,og,catalogsource -A -o yaml
    # no namespace
    2
    error: the state cannot be read
      because s.yaml:1: Subscription a: `metadata.namespace` is missing
        → correct it, or save the state again with: kubectl get sub,csv,og,catalogsource -A -o yaml
    # no name
    2
    error: the state cannot be read
      because s.yaml:1: Subscription east: `metadata.name` is missing
        → correct it, or save the state again with: kubectl get sub,csv,og,catalogsource -A -o yaml
    # no version
    2
    error: the state cannot be read
      because s.yaml:1: ClusterServiceVersion east/a: `spec.version` is "old", which is not a version: Invalid character(s) found in major number "0old"
        → correct it, or save the state again with: kubectl get sub,csv,og,catalogsource -A -o yaml
    # no list
    2
    error: the state cannot be read
      because s.yaml:1: ClusterServiceVersion east/a: `spec.customresourcedefinitions.owned` is a number, not a list
        → correct it, or save the state again with: kubectl get sub,csv,og,catalogsource -A -o yaml
    # no text
    2
    error: the state cannot be read
      because s.yaml:1: ClusterServiceVersion east/a: `spec.customresourcedefinitions.owned[0].name` is a number, not a text
        → correct it, or save the state again with: kubectl get sub,csv,og,catalogsource -A -o yaml
    # no priority
    2
    error: the state cannot be read
      because s.yaml:1: CatalogSource east/a: `spec.priority` is a text, not a whole number
        → correct it, or save the state again with: kubectl get sub,csv,og,catalogsource -A -o yaml
    # no package of an extension
    2
    error: the state cannot be read
      because s.yaml:1: ClusterExtension a: `spec.source.catalog.packageName` is missing
        → correct it, or save the state again with: kubectl get sub,csv,og,catalogsource -A -o yaml
    # in a List
    2
    error: the state cannot be read
      because s.yaml:1: items[1]: this is not a Kubernetes object: it has no `kind`
        → use the output of: kubectl get sub,csv,og,catalogsource -A -o yaml
    "#);
}

#[test]
fn repeated_objects_of_a_state_must_be_equal() {
    let one = subscription("a", SPEC);
    let again = one.replace("namespace: east", "namespace: east, resourceVersion: '7'");
    let other = one.replace("name: tea", "name: cup");
    insta::assert_snapshot!(refusals(&[
        ("the same", format!("{one}---\n{again}")),
        ("not the same", format!("{one}---\n{other}")),
    ]), @r"
    # the same
    0
    namespace east: 2 to install
      install kettle from olm/shop, channel new
        now        kettle.v2
        needed by  tea.v4, which requires package kettle >=2.0.0
        end        head of channel new
      install tea from olm/shop, channel stable (Subscription a)
        now        tea.v4
        end        head of channel stable
    # not the same
    2
    error: the state cannot be read
      because s.yaml:3: Subscription east/a: it occurs twice with different content: first at s.yaml:1
        → correct it, or save the state again with: kubectl get sub,csv,og,catalogsource -A -o yaml
    ");
}

#[test]
fn installed_csv_must_be_in_the_state() {
    let status = "status: {installedCSV: tea.v1, currentCSV: tea.v1}";
    let alone = subscription("a", &format!("{SPEC}, {status}"));
    let other = "{apiVersion: operators.coreos.com/v1alpha1, kind: ClusterServiceVersion, metadata: {name: cup.v1, namespace: east}, spec: {}}";
    insta::assert_snapshot!(refusals(&[
        ("no versions at all", alone.clone()),
        ("another version", format!("{alone}---\n{other}")),
    ]), @r"
    # no versions at all
    2
    error: Subscription east/a has tea.v1 installed, and the state has no ClusterServiceVersions
      → save them as well: kubectl get sub,csv,og,catalogsource -A -o yaml; or name installed bundles with --installed BUNDLE
    # another version
    0
    note: Subscription east/a has tea.v1 installed, but this ClusterServiceVersion does not exist: it was deleted, and is installed again if its channel has it
    namespace east: 1 to install, 1 to keep
      install tea from olm/shop, channel stable (Subscription a)
        now        tea.v1
        then       tea.v2 → tea.v3 → tea.v4
        end        head of channel stable
      install later kettle from olm/shop, channel new
        then       kettle.v2
        needed by  tea.v3, which requires package kettle >=2.0.0
        end        head of channel new
      keep cup.v1
        end        no Subscription upgrades it
    ");
    let said = kitchen().file("s.yaml", &alone);
    let said = said.resolve("--state s.yaml --catalog shop=shop --installed tea.v1");
    assert!(said.out.contains("now        tea.v2"), "{said:?}");
}

#[test]
fn request_selects_the_catalog_before_the_version() {
    let tea = |version: &str| {
        format!(
            "{{schema: olm.package, name: tea, defaultChannel: s}}\n---\n\
             {{schema: olm.channel, package: tea, name: s, entries: [{{name: tea.{version}}}]}}\n---\n\
             {{schema: olm.bundle, package: tea, name: tea.{version}, image: 'x.io/tea:{version}', properties: [{{type: olm.package, value: {{packageName: tea, version: 1.0.0}}}}]}}\n"
        )
    };
    let place = TestFolder::new().file("a/c.yaml", tea("a")).file("b/c.yaml", tea("b"));
    for (arguments, expected) in [
        ("a/tea@1.0.0", "now        tea.a"),
        ("b/tea@1.0.0", "now        tea.b"),
        ("tea@1.0.0 --priority a=1", "now        tea.a"),
        ("tea@1.0.0 --priority b=1", "now        tea.b"),
        ("b/tea --what-if subscribe=tea@1.0.0", "now        tea.b"),
        ("a/tea --what-if subscribe=b/tea@1.0.0", "now        tea.b"),
        ("b/tea --installed tea.b", "head of channel s"),
    ] {
        let answer = place.resolve(&format!("--catalog a=a --catalog b=b {arguments}"));
        assert_eq!(answer.code, 0, "{arguments}: {answer:?}");
        assert!(answer.out.contains(expected), "{arguments}: {answer:?}");
    }
}

/// Two namespaces with Subscriptions, one of which has the same name in both.
fn two() -> TestFolder {
    let one = subscription("a", SPEC) + "---\n" + &subscription("both", "spec: {name: kettle}");
    let other = one.replace("namespace: east", "namespace: west").replace("name: a,", "name: b,");
    let other = other.replace("name: tea", "name: spoon");
    kitchen().file("two.yaml", format!("{one}---\n{other}"))
}

#[test]
fn change_applies_to_the_namespace_of_its_subscription() {
    for (change, expected) in [
        ("unsubscribe=a", "changes with unsubscribe=a"),
        ("unsubscribe=east/both", "changes with unsubscribe=east/both"),
        ("subscribe=spoon:tin", "install spoon from olm/shop, channel tin"),
    ] {
        let arguments = format!("--state two.yaml --catalog shop=shop --what-if {change}");
        let answer = two().resolve(&arguments);
        assert!(answer.out.contains(expected), "{change}: {answer:?}");
        assert_eq!(answer.out.matches("  changes with").count(), 1, "{change}: {answer:?}");
    }
}

#[test]
fn arguments_without_effect_are_refused() {
    let mut out = String::new();
    for arguments in [
        "--state two.yaml -n nosuch",
        "--state two.yaml -n eest",
        "--cluster -n kitchens",
        "--state two.yaml tea",
        "--state two.yaml --installed tea.v1",
        "--state two.yaml --save w.json",
        "--state two.yaml --what-if subscribe=kettle",
        "--state two.yaml --what-if subscribe=cup",
        "--state two.yaml --what-if unsubscribe=both",
        "--state two.yaml --what-if unsubscribe=c",
        "--state two.yaml --what-if unsubscribe=x/a",
        "--state state.yaml --what-if prohibit=teas",
        "--state state.yaml --what-if prohibit=tea.v9",
        "--state - --state -",
        "tea tea:stable",
        "tea --catalog shop=broken",
        "tea --catalog olm/shop=broken",
        "tea --installed tea.v1 --installed tea.v2",
        "tea --what-if subscribe=tea:a --what-if subscribe=tea:b",
        "spoon:tin@2.0.0",
        "tae",
    ] {
        let answer = two().resolve(&format!("--catalog shop=shop {arguments}"));
        assert_eq!((answer.code, &*answer.out), (2, ""), "{arguments}: {answer:?}");
        let _ = write!(out, "$ {arguments}\n{}", answer.err);
    }
    insta::assert_snapshot!(out, @r#"
    $ --state two.yaml -n nosuch
    error: `-n nosuch` cannot be used
      because the state has no objects in namespace "nosuch"
      → name one of east, west
    $ --state two.yaml -n eest
    error: `-n eest` cannot be used
      because the state has no objects in namespace "eest"
      → did you mean east, west?
    $ --cluster -n kitchens
    error: `-n kitchens` cannot be used
      because the cluster has no objects in namespace "kitchens"
      → did you mean kitchen?
    $ --state two.yaml tea
    error: `tea` cannot be used
      because it applies to one namespace, and several are possible: east, west
      → name the namespace with -n NAMESPACE
    $ --state two.yaml --installed tea.v1
    error: `--installed tea.v1` cannot be used
      because it applies to one namespace, and several are possible: east, west
      → name the namespace with -n NAMESPACE
    $ --state two.yaml --save w.json
    error: `--save w.json` cannot be used
      because it applies to one namespace, and several are possible: east, west
      → name the namespace with -n NAMESPACE
    $ --state two.yaml --what-if subscribe=kettle
    error: `--what-if subscribe=kettle` cannot be used
      because it applies to one namespace, and several are possible: east, west
      → name the namespace with -n NAMESPACE
    $ --state two.yaml --what-if subscribe=cup
    error: `--what-if subscribe=cup` cannot be used
      because it applies to one namespace, and several are possible: east, west
      → name the namespace with -n NAMESPACE
    $ --state two.yaml --what-if unsubscribe=both
    error: `--what-if unsubscribe=both` cannot be used
      because it applies to one namespace, and several are possible: east, west
      → name the namespace with -n NAMESPACE
    $ --state two.yaml --what-if unsubscribe=c
    error: `--what-if unsubscribe=c` cannot be used
      because there is no Subscription "c"
      → did you mean a, b?
    $ --state two.yaml --what-if unsubscribe=x/a
    error: `--what-if unsubscribe=x/a` cannot be used
      because namespace "x" is not among the resolved namespaces
      → name one of east, west
    $ --state state.yaml --what-if prohibit=teas
    error: --what-if prohibit=teas cannot be applied
      because no catalog has a package or a bundle "teas"
        → did you mean tea?
    $ --state state.yaml --what-if prohibit=tea.v9
    error: --what-if prohibit=tea.v9 cannot be applied
      because no catalog has a package or a bundle "tea.v9"
        → did you mean tea.v1, tea.v2, tea.v3, tea.v4, tea?
    $ --state - --state -
    error: the state cannot be read
      because standard input can be read once only
        → name `--state -` once
    $ tea tea:stable
    error: `tea:stable` cannot be used
      because `tea` contradicts it
      → omit one of the two
    $ tea --catalog shop=broken
    error: `--catalog shop=broken` cannot be used
      because `--catalog shop=shop` contradicts it
      → omit one of the two
    $ tea --catalog olm/shop=broken
    error: `--catalog olm/shop=broken` cannot be used
      because the catalog already has the folder shop
      → name one of the two
    $ tea --installed tea.v1 --installed tea.v2
    error: `--installed tea.v2` cannot be used
      because `--installed tea.v1` names another bundle of the same package
      → omit one of the two
    $ tea --what-if subscribe=tea:a --what-if subscribe=tea:b
    error: `--what-if subscribe=tea:b` cannot be used
      because `--what-if subscribe=tea:a` contradicts it
      → omit one of the two
    $ spoon:tin@2.0.0
    error: channel "tin" of package "spoon" has no bundle "2.0.0"
      → it is in gold
    $ tae
    error: no catalog has a package "tae"
      → list them with: mainstay catalog list packages DIR
    "#);
    for arguments in ["--state state.yaml -n Kitchen", "--timeout 0", "--state="] {
        assert_eq!(kitchen().resolve(arguments).code, 2, "{arguments}");
    }
    // A repeated argument counts once.
    let answer = kitchen().resolve("--catalog shop=shop --catalog shop=shop kettle kettle");
    assert_eq!(answer.code, 0, "{answer:?}");
}

#[test]
fn broken_catalog_folder_is_reported_wherever_it_matters() {
    let place = kitchen().file("empty/.indexignore", "nothing").file("gone/c.yaml", r"
{schema: olm.package, name: kettle, defaultChannel: s}
---
{schema: olm.channel, package: kettle, name: s, entries: [{name: kettle.v3}]}
---
{schema: olm.bundle, package: kettle, name: kettle.v3, image: 'x.io/kettle:3', properties: [{type: olm.package, value: {packageName: kettle, version: 3.0.0}}]}
");
    let mut out = String::new();
    for arguments in [
        "--catalog shop=broken tea@1.0.0",
        "--catalog shop=broken tea --installed tea.v1",
        "--catalog shop=empty tea",
        "--catalog shop=shop tea --what-if catalog=shop=gone",
    ] {
        let answer = place.resolve(arguments);
        assert_eq!(answer.code, 3, "{arguments}: {answer:?}");
        let _ = write!(out, "$ {arguments}\n{}", exit_code_and_output(&answer));
    }
    insta::assert_snapshot!(out, @r#"
    $ --catalog shop=broken tea@1.0.0
    3
    catalog olm/shop cannot be used
      broken: catalog.yaml:2:1: did not find expected ',' or '}' (correct the syntax, or list the file in .indexignore if it is no part of the catalog)
        → see all problems with: mainstay catalog validate broken

    `tea@1.0.0` cannot be used
      because no catalog has content to tell which bundle has version "1.0.0"
      → write the name of the bundle after the `@`
    $ --catalog shop=broken tea --installed tea.v1
    3
    catalog olm/shop cannot be used
      broken: catalog.yaml:2:1: did not find expected ',' or '}' (correct the syntax, or list the file in .indexignore if it is no part of the catalog)
        → see all problems with: mainstay catalog validate broken

    no catalog has a bundle "tea.v1"
      because olm/shop could not be read
      → list them with: mainstay catalog list bundles DIR
    $ --catalog shop=empty tea
    3
    catalog olm/shop cannot be used
      empty: the folder holds no package
        → name the folder of a file-based catalog

    namespace operators: 1 failure
      fails Subscription tea
        Subscription `tea` cannot be resolved
          because catalog `shop` of namespace `olm` cannot be read: the folder empty holds no package
          → correct the folder empty
    $ --catalog shop=shop tea --what-if catalog=shop=gone
    3
    namespace operators: 1 failure
      fails Subscription tea
        Subscription `tea` cannot be met
          because catalog `shop` of namespace `olm` has no package `tea`
          → add a catalog that offers package `tea`
      changes with catalog=shop=gone
        OPERATOR           AS IT IS    WHAT IF
        Subscription tea   –           fails
        kettle             kettle.v2   –
        tea                tea.v4      –
    "#);
}

#[test]
fn saved_universe_has_approval_modes_and_follows_the_printed_answer() {
    let place = kitchen();
    let answer = place.resolve("--state state.yaml --catalog shop=shop --save no/where.json");
    assert_eq!(answer.code, 1, "{answer:?}");
    assert!(answer.out.contains("upgrade tea"), "{answer:?}");
    place.resolve("--state state.yaml --catalog shop=shop --save w.json");
    let again = place.resolve("--universe w.json");
    assert!(again.out.contains("(Subscription my-tea), each step waits for approval"), "{again:?}");
}
