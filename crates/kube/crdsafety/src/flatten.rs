//! Properties of a schema by their paths: `^.spec.list.items.x`.
//!
//! Upstream compares schemas property by property. A path names the way through `properties`, `items`,
//! `additionalProperties` and the branches of `allOf`, `anyOf`, `oneOf` and `not`; branches count by
//! their position. Each property is compared without its `properties` and `items`, which are compared
//! at their own paths. The other schemas inside are compared at both places.

use crate::go::{Schema, View, field};
use std::collections::BTreeMap;

/// The root of all paths.
pub(crate) const ROOT: &str = "^";

/// A step from a schema to one inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A property.
    Property(String),
    /// The items of a list.
    Items,
    /// An item of a list by its position.
    Item(usize),
    /// The values of a map.
    Values,
    /// A branch of `allOf`, `anyOf`, `oneOf` or `not`: it constrains the same value.
    Branch,
    /// `patternProperties`, `dependencies`, `definitions` and `additionalItems`, which no structural
    /// schema has.
    Other,
}

/// A property of a schema.
#[derive(Clone, Debug)]
pub(crate) struct Property<'s> {
    pub(crate) view: View<'s>,
    pub(crate) steps: Vec<Step>,
    /// The path of the schema around this one.
    pub(crate) parent: Option<String>,
    /// The path of the outermost schema with a branch that leads here, and its field.
    pub(crate) branch: Option<(String, usize)>,
}

/// The properties of a schema by their paths, in the order of these.
pub(crate) fn flatten(schema: &Schema) -> BTreeMap<String, Property<'_>> {
    let mut found = BTreeMap::new();
    let root = Property { view: schema.view(), steps: Vec::new(), parent: None, branch: None };
    add(ROOT.to_owned(), root, &mut found);
    found
}

fn add<'s>(path: String, property: Property<'s>, found: &mut BTreeMap<String, Property<'s>>) {
    let view = property.view;
    let child = |view: View<'s>, step: Step, branch: Option<usize>| {
        let mut steps = property.steps.clone();
        steps.push(step);
        let own = branch.map(|index| (path.clone(), index));
        Property {
            view,
            steps,
            parent: Some(path.clone()),
            branch: property.branch.clone().or(own),
        }
    };
    let mut children = Vec::new();
    if let Some(items) = view.item_schema() {
        children.push((format!("{path}.items"), child(items, Step::Items, None)));
    }
    for (at, items) in view.item_schemas().enumerate() {
        children.push((format!("{path}.items[{at}]"), child(items, Step::Item(at), None)));
    }
    let branches = [("allOf", field::ALL_OF), ("anyOf", field::ANY_OF), ("oneOf", field::ONE_OF)];
    for (name, index) in branches {
        for (at, branch) in view.schemas(index).enumerate() {
            children
                .push((format!("{path}.{name}[{at}]"), child(branch, Step::Branch, Some(index))));
        }
    }
    if let Some(negated) = view.negated() {
        children.push((format!("{path}.not"), child(negated, Step::Branch, Some(field::NOT))));
    }
    for (name, schema) in view.entries(field::PROPERTIES) {
        let step = Step::Property(name.to_owned());
        children.push((format!("{path}.{name}"), child(schema, step, None)));
    }
    if let Some(values) = view.additional(field::ADDITIONAL_PROPERTIES) {
        children.push((format!("{path}.additionalProperties"), child(values, Step::Values, None)));
    }
    for (name, schema) in view.entries(field::PATTERN_PROPERTIES) {
        children
            .push((format!("{path}.patternProperties[{name}]"), child(schema, Step::Other, None)));
    }
    if let Some(items) = view.additional(field::ADDITIONAL_ITEMS) {
        children.push((format!("{path}.additionalItems"), child(items, Step::Other, None)));
    }
    for (name, schema) in view.entries(field::DEFINITIONS) {
        children.push((format!("{path}.definitions[{name}]"), child(schema, Step::Other, None)));
    }
    for (name, dependency) in view.entries(field::DEPENDENCIES) {
        if let Some(schema) = dependency.dependency() {
            let path = format!("{path}.dependencies[{name}]");
            children.push((path, child(schema, Step::Other, None)));
        }
    }
    found.insert(path, property);
    for (path, property) in children {
        add(path, property, found);
    }
}

/// The schema of a property that is compared at its own path.
pub(crate) fn own_schema(view: View<'_>) -> Schema {
    view.copy_without(&[field::PROPERTIES, field::ITEMS])
}
