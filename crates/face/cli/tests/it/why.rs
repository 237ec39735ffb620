//! `mainstay why`: what is in the way, for people and programs, and the exit code.

use super::{Answer, Place, answer};
use clap::Parser;
use mainstay_cause::Cause;
use mainstay_cli::args::{Arguments, Command};
use mainstay_cli::exit::Failure;
use mainstay_cli::resolve::{self, Io};
use mainstay_cli::why::{self, Remote};
use mainstay_object::{Object, Resource};
use mainstay_resolver::universe::CatalogData;
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

/// A cluster with these objects.
struct Fake(Vec<Object>);

impl resolve::Remote for Fake {
    fn objects(&mut self) -> Result<Vec<Object>, Cause> {
        Ok(self.0.clone())
    }

    fn kube_version(&mut self) -> Option<String> {
        None
    }

    fn namespaces(&mut self) -> Option<Vec<String>> {
        None
    }

    fn catalog(&mut self, address: &str) -> Result<CatalogData, Cause> {
        let text = r#"{"name": "shop", "namespace": "olm",
            "packages": [{"name": "tea", "defaultChannel": "stable", "channels": [
                {"name": "stable", "entries": [{"name": "tea.v1"}]}]}],
            "bundles": [{"name": "tea.v1", "package": "tea", "version": "1.0.0"}]}"#;
        serde_json::from_str(text).map_err(|error| Cause::new(format!("{address}: {error}")))
    }
}

impl Remote for Fake {
    fn of_kind(
        &mut self,
        kind: &Resource,
        namespace: Option<&str>,
        _: Option<&str>,
    ) -> Result<Vec<Object>, Cause> {
        let here = |it: &&Object| {
            it.kind() == kind.kind && namespace.is_none_or(|namespace| it.namespace() == namespace)
        };
        Ok(self.0.iter().filter(here).cloned().collect())
    }

    fn namespace(&self) -> String {
        "east".to_owned()
    }

    fn resolving(&mut self) -> &mut dyn resolve::Remote {
        self
    }
}

fn why(place: &Place, arguments: &str, cluster: Option<&str>) -> Answer {
    let words = ["mainstay", "why"].into_iter().chain(arguments.split(' '));
    let parsed = match Arguments::try_parse_from(words) {
        Ok(parsed) => parsed,
        Err(error) => {
            let code = u8::try_from(error.exit_code()).unwrap();
            return Answer { code, out: String::new(), err: error.to_string() };
        }
    };
    let Command::Why(arguments) = parsed.command else { unreachable!("it was typed") };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut io = Io {
        stdin: &mut STATE.as_bytes(),
        stdout: &mut out,
        stderr: &mut err,
        folder: place.path().to_owned(),
        colour: false,
    };
    let exit = why::run(&arguments, &mut io, &mut || {
        let Some(text) = cluster else {
            return Err(Failure::usage(Cause::new("the cluster cannot be looked at")));
        };
        let all = mainstay_yaml::documents(text.as_bytes(), &mainstay_yaml::Options::default())
            .flat_map(|it| it.unwrap().value["items"].as_array().unwrap().clone())
            .map(|it| Object::from_value(it).unwrap())
            .collect();
        Ok(Box::new(Fake(all)))
    });
    answer(exit as u8, out, err)
}

fn told(all: &[(&str, Answer)]) -> String {
    let mut out = String::new();
    for (what, answer) in all {
        write!(out, "# {what}\n{}\n{}{}", answer.code, answer.out, answer.err).unwrap();
    }
    out
}

#[test]
fn what_is_in_the_way_ends_with_one_and_what_cannot_be_looked_at_with_two() {
    let place = Place::new().file("s.yaml", STATE).file("bad.yaml", "kind: [");
    let ask = |arguments: &'static str| (arguments, why(&place, arguments, None));
    insta::assert_snapshot!(told(&[
        ask("subscription/tea -n east --state s.yaml"),
        ask("ip/install-abcde -n east --state -"),
        ask("catalogsource/shop -n olm --state s.yaml"),
        ask("subscription/tea -n east --state s.yaml -o json"),
        ask("catalogsource/shop -n olm --state s.yaml -o json"),
        ask("subscription/coffee -n east --state s.yaml"),
        ask("subscription/tea -n east --state bad.yaml"),
        ask("subscription/tea -n east --state none.yaml"),
        ask("subscription/tea -n east"),
    ]));
}

#[test]
fn what_cannot_be_explained_is_refused_at_once() {
    let place = Place::new();
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
fn on_a_cluster_the_resolver_is_asked_what_its_condition_leaves_out() {
    let failed = STATE
        .replace("channel: stable", "channel: stabel")
        .replace("currentCSV: tea.v1, installPlanRef: {name: install-abcde}", "conditions: [{type: ResolutionFailed, status: 'True', reason: ConstraintsNotSatisfiable, message: long words}]");
    let place = Place::new();
    let ask = |arguments: &'static str| (arguments, why(&place, arguments, Some(&failed)));
    insta::assert_snapshot!(told(&[ask("subscription/tea"), ask("sub/tea -n west")]));
}
