//! kubectl against a running cluster: its frequent commands.

use crate::harness::{Kubectl, Up};
use mainstay_testdata::ran;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

const NAMESPACE: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: kitchen}
";

const SETTINGS: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: kitchen}
data: {a: one, b: two}
";

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: kitchen}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: 'example.com/web:1', ports: [{containerPort: 8080}]}
      - {name: side, image: 'example.com/side:1'}
";

const SERVICE: &str = "
apiVersion: v1
kind: Service
metadata: {name: web, namespace: kitchen}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
";

const JOB: &str = "
apiVersion: batch/v1
kind: Job
metadata: {name: once, namespace: kitchen}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: once, image: 'example.com/once:1'}]}
";

const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.parts.example.com}
spec:
  group: parts.example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.count, statusReplicasPath: .status.count}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Phase, type: string, jsonPath: .status.phase}
    schema:
      openAPIV3Schema:
        type: object
        description: A part of a machine.
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, minimum: 1, description: How large it is.}
              count: {type: integer, default: 1}
              colour: {type: string, enum: [red, green]}
          status:
            type: object
            properties: {phase: {type: string}, count: {type: integer}}
";

const WIDGET: &str = "
apiVersion: parts.example.com/v1
kind: Widget
metadata: {name: cog, namespace: kitchen}
spec: {size: 3, colour: red}
";

/// Counts calls for the summary.
struct Script {
    kubectl: Kubectl,
    calls: u32,
}

impl Script {
    fn run(&mut self, line: &str, input: &str) -> String {
        self.calls += 1;
        self.kubectl.run(&words(line), input)
    }

    /// A call whose output must contain each of these.
    fn shows(&mut self, line: &str, expected: &[&str]) -> String {
        let output = self.run(line, "");
        for text in expected {
            assert!(output.contains(text), "kubectl {line}: no {text:?} in\n{output}");
        }
        output
    }

    fn run_with_input(&mut self, line: &str, input: &str, expected: &str) {
        let output = self.run(line, input);
        assert!(output.contains(expected), "kubectl {line}: no {expected:?} in\n{output}");
    }

    fn refused(&mut self, line: &str, input: &str, expected: &str) {
        self.calls += 1;
        let output = self.kubectl.refused(&words(line), input);
        assert!(output.contains(expected), "kubectl {line}: no {expected:?} in\n{output}");
    }
}

/// Words of a line; `'` quotes blanks.
fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for (at, part) in line.split('\'').enumerate() {
        if at % 2 == 1 {
            words.push(part);
        } else {
            words.extend(part.split_whitespace());
        }
    }
    words
}

#[test]
fn frequent_kubectl_commands_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let up = Up::start(folder.path(), &["--in-memory"]);
    let Some(kubectl) = Kubectl::find(&up.kubeconfig, "the kubectl script") else { return };
    let mut script = Script { kubectl, calls: 0 };
    discovery(&mut script);
    built_in(&mut script);
    workloads(&mut script);
    custom_resources(&mut script);
    deletions(&mut script);
    assert!(script.calls >= 40, "{} calls", script.calls);
    ran(&format!("the kubectl script, {} calls", script.calls));
}

fn discovery(script: &mut Script) {
    script.shows("version", &["Server Version: v1.35"]);
    script.shows("api-resources", &["deployments", "apps/v1", "clusterserviceversions", "csv"]);
    script.shows(
        "api-resources --api-group=operators.coreos.com -o name",
        &["subscriptions.operators.coreos.com", "olmconfigs.operators.coreos.com"],
    );
    script.shows("api-versions", &["apps/v1", "operators.coreos.com/v1alpha1"]);
    script.shows("cluster-info", &["is running at"]);
    script.shows("get --raw /readyz?verbose", &["readyz check passed"]);
    script.shows("get nodes", &["Ready", "v1.35"]);
    script.shows("explain deployment.spec.replicas", &["FIELD: replicas", "integer"]);
}

fn built_in(script: &mut Script) {
    script.run_with_input("apply -f -", NAMESPACE, "namespace/kitchen created");
    script.shows("get namespace kitchen", &["NAME", "STATUS", "Active"]);
    script.run_with_input("apply -f -", SETTINGS, "configmap/settings created");
    script.run_with_input("apply -f -", SETTINGS, "configmap/settings unchanged");
    let changed = SETTINGS.replace("b: two", "c: three");
    let difference = script.kubectl.output(&["diff", "-f", "-"], &changed);
    let difference = String::from_utf8_lossy(&difference.stdout).into_owned();
    assert!(difference.contains("+  c: three") && difference.contains("-  b: two"), "{difference}");
    script.run_with_input("apply -f -", &changed, "configmap/settings configured");
    script.shows("get cm settings -n kitchen -o jsonpath={.data}", &[r#"{"a":"one","c":"three"}"#]);
    script.shows("get cm settings -n kitchen -o yaml", &["kind: ConfigMap", "  c: three"]);
    script.shows("get cm settings -n kitchen -o json", &["\"c\": \"three\""]);
    script
        .shows("get cm -n kitchen -o name", &["configmap/settings", "configmap/kube-root-ca.crt"]);
    script.shows("get cm settings -n kitchen -o wide", &["NAME", "DATA", "AGE"]);
    script.shows(
        "get cm settings -n kitchen -o custom-columns=N:.metadata.name,A:.data.a",
        &["settings", "one"],
    );
    script.shows("get cm settings -n kitchen -o go-template={{.data.c}}", &["three"]);
    script.shows("get cm -A --sort-by=.metadata.name --no-headers", &["kitchen", "settings"]);
    script.shows("label cm settings -n kitchen tier=front", &["configmap/settings labeled"]);
    script.shows("get cm -n kitchen -l tier=front -L tier", &["TIER", "front"]);
    script.shows("get cm -n kitchen -l tier=back", &[]);
    script.shows("annotate cm settings -n kitchen why=because", &["annotated"]);
    script.shows(
        "get cm -n kitchen --field-selector metadata.name=settings -o name",
        &["configmap/settings"],
    );
    script.shows(
        r#"patch cm settings -n kitchen --type=merge -p {"data":{"c":null,"d":"four"}}"#,
        &["patched"],
    );
    script.shows(
        r#"patch cm settings -n kitchen --type=json -p [{"op":"replace","path":"/data/a","value":"uno"}]"#,
        &["patched"],
    );
    script.shows("get cm settings -n kitchen -o jsonpath={.data}", &[r#"{"a":"uno","d":"four"}"#]);
    script.shows("describe cm settings -n kitchen", &["Name:         settings", "uno"]);
    let replaced = script.run("get cm settings -n kitchen -o json", "").replace("four", "cinq");
    script.run_with_input("replace -f -", &replaced, "configmap/settings replaced");
    script.refused("get cm nothing -n kitchen", "", "configmaps \"nothing\" not found");
    script.refused("apply -f -", &SETTINGS.replace("\ndata:", "\ndada:"), "unknown field \"dada\"");
    script.run_with_input(
        "apply --dry-run=server -f -",
        &SETTINGS.replace("settings", "dry"),
        "created (server dry run)",
    );
    script.refused("get cm dry -n kitchen", "", "not found");
}

fn workloads(script: &mut Script) {
    script.run_with_input("apply -f -", DEPLOYMENT, "deployment.apps/web created");
    script.shows(
        "wait --for=condition=Available deployment/web -n kitchen --timeout=60s",
        &["condition met"],
    );
    script.shows(
        "rollout status deployment/web -n kitchen --timeout=60s",
        &["successfully rolled out"],
    );
    script.shows("get deployment web -n kitchen", &["READY", "2/2"]);
    script.shows("get pods -n kitchen -l app=web -o wide", &["Running", "2/2", "NODE"]);
    script.shows("get deploy,rs -n kitchen", &["deployment.apps/web", "replicaset.apps/web-"]);
    // A strategic patch changes one container of two.
    script.shows(
        r#"patch deployment web -n kitchen -p {"spec":{"template":{"spec":{"containers":[{"name":"side","image":"example.com/side:2"}]}}}}"#,
        &["patched"],
    );
    script.shows(
        "get deployment web -n kitchen -o jsonpath={.spec.template.spec.containers[*].image}",
        &["example.com/web:1 example.com/side:2"],
    );
    script.shows("set image deployment/web web=example.com/web:2 -n kitchen", &["image updated"]);
    script.shows(
        "rollout status deployment/web -n kitchen --timeout=60s",
        &["successfully rolled out"],
    );
    script.shows("scale deployment/web -n kitchen --replicas=3", &["scaled"]);
    script.shows(
        "wait --for=jsonpath={.status.readyReplicas}=3 deployment/web -n kitchen --timeout=60s",
        &["condition met"],
    );
    script.shows(
        "describe deployment web -n kitchen",
        &["Replicas:", "3 desired", "ScalingReplicaSet"],
    );
    script.shows("describe pods -n kitchen -l app=web", &["Status:", "Running", "Ready"]);
    script.shows("get events -n kitchen", &["ScalingReplicaSet"]);
    script.run_with_input("apply -f -", SERVICE, "service/web created");
    script.shows("get svc web -n kitchen", &["ClusterIP", "80/TCP"]);
    script.shows("wait --for=jsonpath={.endpoints[2].conditions.ready}=true endpointslice -n kitchen -l kubernetes.io/service-name=web --timeout=60s", &["condition met"]);
    script.run_with_input("apply -f -", JOB, "job.batch/once created");
    script.shows(
        "wait --for=condition=complete job/once -n kitchen --timeout=60s",
        &["condition met"],
    );
    watches(script);
}

/// `get -w` prints the existing objects, then the changes.
fn watches(script: &mut Script) {
    script.calls += 1;
    let mut watch = script
        .kubectl
        .command(&["get", "cm", "-n", "kitchen", "-w", "--no-headers"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("kubectl starts");
    let mut lines = BufReader::new(watch.stdout.take().expect("piped")).lines();
    let mut until = |name: &str| {
        assert!(
            lines.by_ref().any(|line| line.expect("text").starts_with(name)),
            "no line for {name}"
        );
    };
    until("settings");
    script.run_with_input("apply -f -", &SETTINGS.replace("settings", "watched"), "created");
    until("watched");
    watch.kill().expect("it can be killed");
    watch.wait().expect("it ends");
}

fn custom_resources(script: &mut Script) {
    script.run_with_input("apply -f -", DEFINITION, "created");
    script.shows(
        "wait --for=condition=Established crd/widgets.parts.example.com --timeout=60s",
        &["condition met"],
    );
    script.shows("api-resources --api-group=parts.example.com", &["widgets", "wd", "Widget"]);
    script.shows("explain widget.spec.size", &["How large it is."]);
    script.run_with_input("apply -f -", WIDGET, "widget.parts.example.com/cog created");
    script.shows("get wd -n kitchen", &["SIZE", "PHASE", "3"]);
    script.shows("get widget cog -n kitchen -o jsonpath={.spec.count}", &["1"]);
    script.run_with_input("apply -f -", &WIDGET.replace("size: 3", "size: 4"), "configured");
    script.shows(
        r#"patch widget cog -n kitchen --subresource=status --type=merge -p {"status":{"phase":"Turning"}}"#,
        &["patched"],
    );
    script.shows("get wd cog -n kitchen", &["4", "Turning"]);
    script.shows("scale widget cog -n kitchen --replicas=5", &["scaled"]);
    script.shows("get widget cog -n kitchen -o jsonpath={.spec.count}", &["5"]);
    script.shows("describe widget cog -n kitchen", &["Phase:", "Turning"]);
    script.refused(
        "apply -f -",
        &WIDGET.replace("size: 3", "size: 0"),
        "should be greater than or equal to 1",
    );
    script.refused(
        "apply -f -",
        &WIDGET.replace("red", "blue"),
        "supported values: \"red\", \"green\"",
    );
    script.refused(
        "apply -f -",
        &WIDGET.replace("colour", "color"),
        "unknown field \"spec.color\"",
    );
}

fn deletions(script: &mut Script) {
    script.shows("delete widget cog -n kitchen", &["deleted"]);
    script.shows("delete crd widgets.parts.example.com", &["deleted"]);
    script.refused(
        "get widgets -n kitchen",
        "",
        "the server could not find the requested resource",
    );
    script.shows("delete deployment web -n kitchen", &["deleted"]);
    script.run("wait --for=delete pods -n kitchen -l app=web --timeout=60s", "");
    script.shows("delete cm -n kitchen -l tier=front", &["\"settings\" deleted"]);
    script.shows("delete namespace kitchen --timeout=60s", &["deleted"]);
    script.refused("get ns kitchen", "", "not found");
    script.run_with_input(
        "create -f -",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: made-, namespace: default}",
        "configmap/made-",
    );
}
