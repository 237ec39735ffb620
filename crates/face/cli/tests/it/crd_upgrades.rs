//! `mainstay resolve`: warnings of CRD changes that upstream's CRD upgrade safety check refuses.

use super::resolve::ResolveFolder as _;
use super::resolve::exit_code_and_output;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_clitest::{CommandOutput, TestFolder};
use serde_json::{Value, json};

/// The property with the CRD of anvils, whose objects have these properties.
fn anvil_crd(properties: &Value) -> Value {
    let schema = json!({"type": "object", "properties": properties});
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "anvils.forge.example.com"},
        "spec": {
            "group": "forge.example.com",
            "names": {"kind": "Anvil", "plural": "anvils"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    json!({"type": "olm.bundle.object", "value": {"data": STANDARD.encode(crd.to_string())}})
}

/// A catalog of bundles that replace each other, named by their number; each with its manifests.
fn catalog(bundles: &[(usize, Option<Value>)]) -> String {
    let entries: Vec<Value> = bundles
        .iter()
        .map(|(number, _)| {
            let name = format!("anvil.v{number}");
            json!({"name": name, "replaces": format!("anvil.v{}", number - 1)})
        })
        .collect();
    let mut documents = vec![
        json!({"schema": "olm.package", "name": "anvil", "defaultChannel": "stable"}),
        json!({"schema": "olm.channel", "package": "anvil", "name": "stable", "entries": entries}),
    ];
    for (number, manifest) in bundles {
        let package = json!({"packageName": "anvil", "version": format!("{number}.0.0")});
        let mut properties = vec![json!({"type": "olm.package", "value": package})];
        properties.extend(manifest.clone());
        documents.push(json!({
            "schema": "olm.bundle", "package": "anvil", "name": format!("anvil.v{number}"),
            "image": format!("x.io/anvil:{number}"), "properties": properties,
        }));
    }
    let documents: Vec<String> = documents.iter().map(Value::to_string).collect();
    documents.join("\n---\n")
}

/// The first version, and next to it the content that replaces the catalog: it has the second
/// version, whose CRD changes the type of `size`, the third, which allows any `colour`, and the
/// fourth without manifests.
fn forge() -> TestFolder {
    let colour = json!({"type": "string", "pattern": "^[a-z]+$"});
    let old = json!({"size": {"type": "string"}, "colour": colour});
    let new = json!({"size": {"type": "integer", "maximum": 9}, "colour": colour});
    let free = json!({"size": {"type": "integer", "maximum": 9}, "colour": {"type": "string"}});
    let next = [(2, Some(anvil_crd(&new))), (3, Some(anvil_crd(&free))), (4, None)];
    TestFolder::new()
        .file("now/catalog.yaml", catalog(&[(1, Some(anvil_crd(&old)))]))
        .file("next/catalog.yaml", catalog(&next))
}

fn resolve_next(options: &str) -> CommandOutput {
    let installed = "--catalog shop=now anvil --installed anvil.v1";
    forge().resolve(&format!("{installed} --what-if catalog=shop=next {options}"))
}

#[test]
fn upgrade_warns_of_crd_changes_and_does_not_fail() {
    insta::assert_snapshot!(exit_code_and_output(&resolve_next("")), @r#"
    0
    namespace operators: 1 to upgrade
      upgrade anvil from olm/shop, channel stable (Subscription anvil)
        installed  anvil.v1
        now        anvil.v2
        then       anvil.v3 → anvil.v4
        warning    OLM v1 would refuse the CRDs of anvil.v2: 2 breaking changes
                   breaking: anvils.forge.example.com: v1 ^.size: maximum: maximum constraint added when there was none previously : 9
                   breaking: anvils.forge.example.com: v1 ^.size: type: type changed : "string" -> "integer"
        warning    OLM v1 would refuse the CRDs of anvil.v3: 1 safe change
                   safe: anvils.forge.example.com: v1 ^.colour: pattern: pattern removed : "^[a-z]+$" -> ""
        end        head of channel stable
      changes with catalog=shop=next
        OPERATOR   AS IT IS         WHAT IF
        anvil      anvil.v1 stays   anvil.v1 → … → anvil.v4 (3 hops)
    "#);
}

#[test]
fn json_has_the_crd_changes_of_each_hop() {
    let answer = resolve_next("-o json");
    let value: Value = serde_json::from_str(&answer.out).unwrap();
    let namespace = &value["namespaces"][0];
    assert_eq!(namespace["operators"][0]["hops"], json!([]), "{answer:?}");
    let hops = namespace["whatIf"]["operators"][0]["hops"].as_array().unwrap();
    let hops: Vec<String> = hops.iter().map(Value::to_string).collect();
    insta::assert_snapshot!(hops.join("\n"), @r#"
    {"bundle":"anvil.v2","channel":"stable","crdChanges":[{"check":"maximum","crd":"anvils.forge.example.com","impact":"breaking","path":"^.size","remedy":"keep the bound, or make the new one part of a new version only","scope":"sameVersion","severity":"error","summary":"maximum constraint added when there was none previously : 9","text":"maximum constraint added when there was none previously : 9","version":"v1","why":"values above the new bound are refused"},{"check":"type","crd":"anvils.forge.example.com","impact":"breaking","path":"^.size","remedy":"add a field with the new type, and keep the old one","scope":"sameVersion","severity":"error","summary":"type changed : \"string\" -> \"integer\"","text":"type changed : \"string\" -> \"integer\"","version":"v1","why":"values of the old type are refused, and clients cannot read values of the new type"}],"step":1,"version":"2.0.0"}
    {"bundle":"anvil.v3","channel":"stable","crdChanges":[{"check":"pattern","crd":"anvils.forge.example.com","impact":"safe","path":"^.colour","remedy":"","scope":"sameVersion","severity":"error","summary":"pattern removed : \"^[a-z]+$\" -> \"\"","text":"pattern removed : \"^[a-z]+$\" -> \"\"","version":"v1","why":"any string is allowed now"}],"step":2,"version":"3.0.0"}
    {"bundle":"anvil.v4","channel":"stable","step":3,"version":"4.0.0"}
    "#);
}

#[test]
fn text_lists_the_first_changes_of_many() {
    let properties = |kind: &str| -> Value {
        let properties = (0..8).map(|at| (format!("field{at}"), json!({"type": kind})));
        Value::Object(properties.collect())
    };
    let bundles =
        [(1, Some(anvil_crd(&properties("string")))), (2, Some(anvil_crd(&properties("integer"))))];
    let folder = TestFolder::new().file("shop/catalog.yaml", catalog(&bundles));
    let answer = folder.resolve("--catalog shop=shop anvil:stable@1.0.0");
    insta::assert_snapshot!(exit_code_and_output(&answer), @r#"
    0
    namespace operators: 1 to install
      install anvil from olm/shop, channel stable (Subscription anvil)
        now        anvil.v1
        then       anvil.v2
        warning    OLM v1 would refuse the CRDs of anvil.v2: 8 breaking changes
                   breaking: anvils.forge.example.com: v1 ^.field0: type: type changed : "string" -> "integer"
                   breaking: anvils.forge.example.com: v1 ^.field1: type: type changed : "string" -> "integer"
                   breaking: anvils.forge.example.com: v1 ^.field2: type: type changed : "string" -> "integer"
                   breaking: anvils.forge.example.com: v1 ^.field3: type: type changed : "string" -> "integer"
                   breaking: anvils.forge.example.com: v1 ^.field4: type: type changed : "string" -> "integer"
                   and 3 more (-o json shows all)
        end        head of channel stable
    "#);
}
