//! Objects and field owners after writes of several managers.

use super::kind::{TestKind, parse_yaml};
use super::scenario::Scenario;
use mainstay_patch::apply::{FieldFilter, FieldSet, PathElement, PathPattern, VersionedSet};

/// Runs scenarios with the test kind.
fn run(scenarios: &[&str]) {
    for scenario in scenarios {
        Scenario::of(TestKind::new()).run(scenario);
    }
}

#[test]
fn applier_owns_its_fields_and_updater_owns_changed_fields() {
    run(&[
        "apply one: {text: a, number: 1}
         = {text: a, number: 1}
         one: .spec.text .spec.number",
        "update one: {text: a, number: 1}
         update two: {text: a, number: 2}
         = {text: a, number: 2}
         one: .spec .spec.text
         two: .spec.number",
        // An update without a change owns nothing.
        "update one: {text: a}
         update two: {text: a}
         one: .spec .spec.text",
        // Removed fields have no owner.
        "update one: {text: a, number: 1}
         update two: {text: a}
         = {text: a}
         one: .spec .spec.text",
        "apply one: {text: a}
         update two: {}
         = {}",
        "apply one: {struct: {deep: {x: a}}}
         one: .spec.struct.deep.x",
        // Empty objects and nulls are fields.
        "apply one: {struct: {}, labels: {}, text: null}
         = {struct: {}, labels: {}, text: null}
         one: .spec.struct .spec.labels .spec.text",
    ]);
}

#[test]
fn repeated_apply_changes_nothing() {
    run(&[
        "apply one: {text: a, items: [{name: a, tags: [x]}], labels: {k: v}, whole: {a: x}}
         same one: {text: a, items: [{name: a, tags: [x]}], labels: {k: v}, whole: {a: x}}",
        "apply one: {text: a, number: 1}
         same two: {text: a}
         one: .spec.text .spec.number
         two: .spec.text",
        "update one: {set: [a, b], items: [{name: a, value: 1}, {name: b}]}
         same two: {set: [b], items: [{name: a, value: 1}]}
         = {set: [a, b], items: [{name: a, value: 1}, {name: b}]}",
    ]);
}

#[test]
fn changed_value_conflicts_with_all_owners_and_force_takes_it() {
    run(&[
        "apply one: {text: a, number: 1}
         same two: {text: a}
         apply three: {text: b, number: 2} ! one .spec.number, one .spec.text, two .spec.text
         = {text: a, number: 1}
         one: .spec.text .spec.number
         two: .spec.text",
        "apply one: {text: a, number: 1}
         force two: {text: b}
         = {text: b, number: 1}
         one: .spec.number
         two: .spec.text",
        // Updaters are owners too, and their updates do not conflict.
        "update one: {text: a}
         apply two: {text: b} ! one .spec.text
         force two: {text: b}
         update one: {text: c}
         apply two: {text: b} ! one .spec.text",
        // A manager without fields is dropped.
        "apply one: {text: a}
         force two: {text: b}
         two: .spec.text",
        "apply one: {items: [{name: a, value: 1}]}
         apply two: {items: [{name: a, value: 2}]} ! one .spec.items[name=\"a\"].value",
        "apply one: {whole: {a: x}}
         apply two: {whole: {b: w}} ! one .spec.whole",
        "apply one: {atomic: [a]}
         apply two: {atomic: [a, b]} ! one .spec.atomic",
        "apply one: {either: 1}
         apply two: {either: x} ! one .spec.either",
    ]);
}

#[test]
fn omitted_field_is_removed_unless_others_own_it() {
    run(&[
        "apply one: {text: a, number: 1}
         apply one: {text: a}
         = {text: a}
         one: .spec.text",
        "apply one: {text: a, number: 1}
         same two: {number: 1}
         apply one: {text: a}
         = {text: a, number: 1}
         one: .spec.text
         two: .spec.number",
        "update one: {text: a, number: 1}
         same two: {text: a, number: 1}
         same two: {text: a}
         = {text: a, number: 1}
         one: .spec .spec.text .spec.number
         two: .spec.text",
        // A manager that lost a field by force does not remove it.
        "apply one: {text: a, number: 1}
         force two: {text: b}
         apply one: {number: 1}
         = {text: b, number: 1}
         one: .spec.number
         two: .spec.text",
        // A struct is removed with its last applied field, but not the fields of other managers.
        "apply one: {text: a, struct: {a: x, deep: {x: w}}}
         apply one: {text: a}
         = {text: a}",
        "apply one: {text: a, struct: {a: x}}
         update two: {text: a, struct: {a: x, b: w}}
         apply one: {text: a}
         = {text: a, struct: {b: w}}
         one: .spec.text
         two: .spec.struct.b",
        // An applier without fields is dropped.
        "apply one: {text: a}
         force two: {text: b}
         two: .spec.text",
    ]);
}

#[test]
fn list_map_elements_have_their_own_owners() {
    run(&[
        "apply one: {items: [{name: a}, {name: b}]}
         apply two: {items: [{name: c}]}
         apply one: {items: [{name: a}]}
         = {items: [{name: a}, {name: c}]}
         one: .spec.items[name=\"a\"] .spec.items[name=\"a\"].name
         two: .spec.items[name=\"c\"] .spec.items[name=\"c\"].name",
        "apply one: {items: [{name: a}, {name: b}, {name: c}]}
         apply two: {items: [{name: c}, {name: d}]}
         apply one: {items: [{name: a}]}
         = {items: [{name: a}, {name: c}, {name: d}]}
         one: .spec.items[name=\"a\"] .spec.items[name=\"a\"].name
         two: .spec.items[name=\"c\"] .spec.items[name=\"c\"].name .spec.items[name=\"d\"] .spec.items[name=\"d\"].name",
        // Of an element with two appliers, an omission removes only the own part.
        "apply one: {items: [{name: a}, {name: b, tags: [x]}]}
         apply two: {items: [{name: b, tags: [w]}]}
         apply one: {items: [{name: a}]}
         = {items: [{name: a}, {name: b, tags: [w]}]}
         one: .spec.items[name=\"a\"] .spec.items[name=\"a\"].name
         two: .spec.items[name=\"b\"] .spec.items[name=\"b\"].name .spec.items[name=\"b\"].tags[=\"w\"]",
        // A field that an updater added to an element is removed with the element.
        "apply one: {items: [{name: a}, {name: b}]}
         update two: {items: [{name: a}, {name: b, value: 1}]}
         apply one: {items: [{name: a}]}
         = {items: [{name: a}]}
         one: .spec.items[name=\"a\"] .spec.items[name=\"a\"].name",
        // An element that the manager did not add stays when its fields are removed.
        "update one: {items: [{name: a, value: 1}]}
         apply two: {items: [{name: a, sub: {a: x}}]}
         apply two: {items: [{name: a}]}
         = {items: [{name: a, value: 1}]}
         one: .spec .spec.items .spec.items[name=\"a\"] .spec.items[name=\"a\"].name .spec.items[name=\"a\"].value
         two: .spec.items[name=\"a\"] .spec.items[name=\"a\"].name",
        // An element with another key is another element.
        "apply one: {items: [{name: a, value: 1}]}
         apply one: {items: [{name: b, value: 1}]}
         = {items: [{name: b, value: 1}]}
         one: .spec.items[name=\"b\"] .spec.items[name=\"b\"].name .spec.items[name=\"b\"].value",
    ]);
}

#[test]
fn omitted_keys_have_their_default() {
    run(&[
        "apply one: {ports: [{port: 80}]}
         same two: {ports: [{port: 80}]}
         = {ports: [{port: 80}]}
         one: .spec.ports[port=80,protocol=\"TCP\"] .spec.ports[port=80,protocol=\"TCP\"].port
         two: .spec.ports[port=80,protocol=\"TCP\"] .spec.ports[port=80,protocol=\"TCP\"].port",
        "apply one: {ports: [{port: 80, protocol: TCP, name: a}]}
         apply two: {ports: [{port: 80, name: b}]} ! one .spec.ports[port=80,protocol=\"TCP\"].name",
        "apply one: {ports: [{port: 80}, {port: 80, protocol: UDP}]}
         apply one: {ports: [{port: 80, protocol: UDP}]}
         = {ports: [{port: 80, protocol: UDP}]}",
        // A key without a default may be omitted; it is then omitted in the path element too.
        "apply one: {ports: [{protocol: UDP}, {port: 1, protocol: UDP}]}
         apply one: {ports: [{protocol: UDP}]}
         = {ports: [{protocol: UDP}]}
         one: .spec.ports[protocol=\"UDP\"] .spec.ports[protocol=\"UDP\"].protocol",
    ]);
}

#[test]
fn merged_lists_have_the_order_of_the_configuration() {
    run(&[
        "apply one: {set: [a, b]}
         apply two: {set: [c]}
         = {set: [a, b, c]}",
        "update one: {set: [a, b, c, d]}
         same two: {set: [a, c]}
         apply two: {set: [c, a]}
         = {set: [b, c, d, a]}",
        "update one: {set: [a, c, e]}
         apply two: {set: [b, c, d]}
         = {set: [a, b, c, e, d]}",
        "update one: {set: [a, b]}
         apply two: {set: [x, b, w, a, z]}
         = {set: [x, b, w, a, z]}",
        "apply one: {set: [a, b, c]}
         apply one: {set: [c, b]}
         = {set: [c, b]}",
        "update one: {items: [{name: a}, {name: b, value: 1}, {name: c}]}
         apply two: {items: [{name: c, value: 2}, {name: b}]}
         = {items: [{name: a}, {name: c, value: 2}, {name: b, value: 1}]}",
    ]);
}

#[test]
fn sets_and_maps_are_owned_by_element() {
    run(&[
        "apply one: {set: [a, b], labels: {a: x, b: w}}
         apply two: {set: [b, c], labels: {b: w, c: z}}
         apply one: {set: [a]}
         = {set: [a, b, c], labels: {b: w, c: z}}
         one: .spec.set[=\"a\"]
         two: .spec.set[=\"b\"] .spec.set[=\"c\"] .spec.labels.b .spec.labels.c",
        "apply one: {maps: {a: {x: w}}}
         apply two: {maps: {a: {z: w}}}
         apply one: {}
         = {maps: {a: {z: w}}}
         one: .spec
         two: .spec.maps.a .spec.maps.a.z",
        // An empty set is no owned field.
        "apply one: {set: []}
         = {set: []}",
    ]);
}

#[test]
fn duplicate_elements_are_owned_as_one() {
    run(&[
        "update one: {set: [a, b, a]}
         one: .spec .spec.set .spec.set[=\"a\"] .spec.set[=\"b\"]",
        "update one: {items: [{name: a, value: 1}, {name: a, value: 2}]}
         one: .spec .spec.items .spec.items[name=\"a\"]",
        // A change of one of them changes both.
        "update one: {items: [{name: a, value: 1}, {name: a, value: 2}]}
         update two: {items: [{name: a, value: 1}, {name: a, value: 3}]}
         one: .spec .spec.items
         two: .spec.items[name=\"a\"]",
        // One more duplicate is a change; the owner of the first one loses it.
        "update one: {items: [{name: a, value: 1}]}
         update two: {items: [{name: a, value: 1}, {name: a, value: 1}]}
         one: .spec .spec.items
         two: .spec.items[name=\"a\"]",
        "update one: {items: [{name: a, value: 1}, {name: a, value: 2}]}
         update two: {items: [{name: a, value: 1}]}
         one: .spec .spec.items
         two: .spec.items[name=\"a\"] .spec.items[name=\"a\"].name .spec.items[name=\"a\"].value",
        // Other elements can be applied; an apply of a duplicate replaces all of them.
        "update one: {items: [{name: a, value: 1}, {name: a, value: 2}]}
         apply two: {items: [{name: b}]}
         = {items: [{name: a, value: 1}, {name: a, value: 2}, {name: b}]}",
        "update one: {items: [{name: a, value: 1}, {name: a, value: 2}]}
         force two: {items: [{name: a, sub: {a: x}}]}
         = {items: [{name: a, sub: {a: x}}]}
         one: .spec .spec.items
         two: .spec.items[name=\"a\"] .spec.items[name=\"a\"].name .spec.items[name=\"a\"].sub.a",
        "update one: {set: [a, a, b]}
         same two: {set: [b]}
         same two: {set: [b]}
         = {set: [a, a, b]}",
    ]);
}

#[test]
fn free_values_are_granular_objects_and_atomic_lists() {
    run(&[
        "apply one: {free: {a: {b: 1, c: [1, 2]}}}
         one: .spec.free.a .spec.free.a.b .spec.free.a.c
         apply two: {free: {a: {d: true}}}
         = {free: {a: {b: 1, c: [1, 2], d: true}}}
         one: .spec.free.a .spec.free.a.b .spec.free.a.c
         two: .spec.free.a .spec.free.a.d",
        "apply one: {free: {c: [1, 2]}}
         apply two: {free: {c: [3]}} ! one .spec.free.c",
        // A value of another kind replaces the value and all fields below it.
        "apply one: {free: {a: {b: 1}}}
         apply two: {free: {a: [x]}} ! one .spec.free.a
         force two: {free: {a: [x]}}
         = {free: {a: [x]}}",
        "apply one: {inner: {apiVersion: v1, kind: A, metadata: {finalizers: [a]}, x: {w: z}}}
         apply two: {inner: {metadata: {finalizers: [b]}}}
         = {inner: {apiVersion: v1, kind: A, metadata: {finalizers: [a, b]}, x: {w: z}}}",
    ]);
    Scenario::of(TestKind::deduced())
        .run("apply one: {a: {b: [1]}, c: 1}\n one: .spec .spec.a .spec.a.b .spec.c");
}

#[test]
fn null_does_not_replace_an_object_that_is_not_empty() {
    run(&[
        "update one: {struct: {a: x}, items: [{name: a}], text: a}
         force two: {struct: null, items: null, text: null}
         = {struct: {a: x}, items: [{name: a}], text: null}
         one: .spec .spec.struct .spec.struct.a .spec.items .spec.items[name=\"a\"] .spec.items[name=\"a\"].name
         two: .spec.struct .spec.items .spec.text",
    ][..]);
}

#[test]
fn managers_own_fields_in_their_own_version() {
    run(&[
        "apply one@v1: {text_v1: a, number: 1}
         apply two@v2: {text_v2: b} ! one .spec.text_v1
         force two@v2: {text_v2: b}
         = {text_v2: b, number: 1}
         one: .spec.number
         two: .spec.text_v2",
        "apply one@v1: {text_v1: a, number: 1}
         apply one@v2: {number: 1}
         = {number: 1}
         one: .spec.number",
        "apply one@v1: {text_v1: a, number: 1}
         same two@v2: {text_v2: a}
         same one@v2: {number: 1}
         = {text_v2: a, number: 1}
         one: .spec.number
         two: .spec.text_v2",
        "apply one@v1: {text_v1: a}
         update two@v2: {text_v2: b}
         two: .spec.text_v2",
    ]);
}

#[test]
fn managers_of_versions_that_are_not_served_are_dropped() {
    let mut scenario = Scenario::of(TestKind::new());
    scenario.run("apply one: {text: a}");
    let mut owned: VersionedSet = scenario.managers["one"].clone();
    owned.api_version = "gone".into();
    scenario.managers.insert("old".to_owned(), owned.clone());
    scenario.run("apply two: {number: 1}\n one: .spec.text\n two: .spec.number");
    // Fields that such a manager applied stay when it applies others.
    scenario.managers.insert("old".to_owned(), owned);
    scenario.managers.remove("one");
    scenario.run(
        "apply old: {number: 1}
         = {text: a, number: 1}
         old: .spec.number
         two: .spec.number",
    );
}

#[test]
fn filtered_fields_have_no_owner() {
    let reset = FieldSet::from_fields_v1(&parse_yaml("{'f:spec': {'f:struct': {}, 'f:text': {}}}"))
        .unwrap();
    let mut scenario = Scenario::of(TestKind::new());
    scenario.filters.insert("v1".to_owned(), FieldFilter::Exclude(reset));
    scenario.run(
        "apply one: {struct: {a: x}, text: a, number: 1}
         update two: {struct: {a: w, b: z}, text: b, number: 2}
         two: .spec.number",
    );
    // The owners of a field keep it when it is filtered later.
    let mut scenario = Scenario::of(TestKind::new());
    scenario.run("apply one: {text: a}");
    let text = FieldSet::from_fields_v1(&parse_yaml("{'f:spec': {'f:text': {}}}")).unwrap();
    scenario.filters.insert("v1".to_owned(), FieldFilter::Exclude(text));
    scenario.run("apply two: {text: b, number: 1}\n one: .spec.text\n two: .spec.number");
}

#[test]
fn include_patterns_keep_only_matching_fields() {
    let pattern = |names: &[&str]| -> Vec<PathPattern> {
        (names.iter())
            .map(|name| match *name {
                "*" => PathPattern::Any,
                name => PathPattern::Exact(PathElement::field(name)),
            })
            .collect()
    };
    let mut scenario = Scenario::of(TestKind::new());
    let patterns = vec![pattern(&["spec", "items", "*", "sub"]), pattern(&["spec", "number"])];
    scenario.filters.insert("v1".to_owned(), FieldFilter::Include(patterns));
    scenario.run(
        "update one: {text: a, number: 1, items: [{name: a, value: 1, sub: {a: x}}]}
         one: .spec .spec.number .spec.items .spec.items[name=\"a\"] .spec.items[name=\"a\"].sub .spec.items[name=\"a\"].sub.a",
    );
}

#[test]
fn owner_of_a_part_owns_the_whole_when_a_type_becomes_atomic() {
    let changes = "{
        struct: {type: object, x-kubernetes-map-type: atomic, properties: {a: {type: string}, b: {type: string}, deep: {type: object, properties: {x: {type: string}}}}},
        set: {type: array, items: {type: string}},
        items: {type: array, items: {type: object, properties: {name: {type: string}, value: {type: integer}}}},
        maps: {type: object, x-kubernetes-map-type: atomic, additionalProperties: {type: object, additionalProperties: {type: string}}},
    }";
    let mut scenario = Scenario::of(TestKind::new());
    scenario.run(
        "apply one: {struct: {a: x, deep: {x: z}}, set: [a], items: [{name: a, value: 1}], maps: {a: {b: c}}}
         apply two: {struct: {b: w}, set: [b]}",
    );
    scenario.kind = TestKind::with_fields(&parse_yaml(changes));
    scenario.run(
        "apply three: {text: a}
         one: .spec.struct .spec.set .spec.items .spec.maps
         two: .spec.struct .spec.set
         three: .spec.text
         apply two: {struct: {b: z}, set: [b]} ! one .spec.set, one .spec.struct",
    );
    // The reverse change does not adapt sets: the whole value keeps its owner.
    scenario.kind = TestKind::new();
    scenario.run(
        "force three: {text: a, struct: {b: z}}
         one: .spec.struct .spec.set .spec.items .spec.maps
         two: .spec.struct .spec.set
         three: .spec.text .spec.struct.b",
    );
}

#[test]
fn maps_of_free_values_are_not_rewritten() {
    let mut scenario = Scenario::of(TestKind::new());
    scenario.run("apply one: {free: {a: {b: 1}}}");
    scenario.kind = TestKind::with_fields(&parse_yaml(
        "{free: {type: object, x-kubernetes-map-type: atomic, x-kubernetes-preserve-unknown-fields: true}}",
    ));
    scenario.run("apply two: {text: a}\n one: .spec.free.a .spec.free.a.b\n two: .spec.text");
}
