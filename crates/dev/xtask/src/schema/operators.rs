//! The types of operators, from `operators.txt`, which also describes its format.

use super::shapes::Shape;
use super::{Definition, Field, leaf};
use anyhow::{Context, bail, ensure};
use std::collections::BTreeMap;

const TYPES: &str = include_str!("operators.txt");

/// Adds the types, which no OpenAPI document contains.
pub(super) fn add(definitions: &mut BTreeMap<String, Definition>) -> anyhow::Result<()> {
    let (mut package, mut current) = ("", String::new());
    for (at, line) in TYPES.lines().enumerate() {
        let place = || format!("operators.txt line {}", at + 1);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix("package ") {
            package = name;
        } else if let Some(name) = line.strip_prefix('=') {
            current = format!("{package}.{name}");
            let definition =
                Definition { leaf: leaf(&current), unserved: true, ..Definition::default() };
            let before = definitions.insert(current.clone(), definition);
            ensure!(before.is_none(), "{}: {current} is there already", place());
        } else {
            let definition = definitions.get_mut(&current).with_context(place)?;
            let (name, field) = field(line).with_context(place)?;
            definition.order.push(name.clone());
            let before = definition.fields.insert(name, field);
            ensure!(before.is_none(), "{}: the field is there already", place());
        }
    }
    Ok(())
}

fn field(line: &str) -> anyhow::Result<(String, Field)> {
    let mut words = line.split(' ');
    let name = words.next().context("a field has a name")?.to_owned();
    let kind = words.next().context("a field has a kind")?.to_owned();
    let mut shape = Shape::default();
    for word in words {
        match word.split_once('=') {
            Some(("g", letters)) => shape.set_letters(letters),
            Some(("n", name)) => shape.type_name = Some(name.to_owned()),
            _ => bail!("{word} is no option of a field"),
        }
    }
    Ok((name, Field { kind, shape, ..Field::default() }))
}
