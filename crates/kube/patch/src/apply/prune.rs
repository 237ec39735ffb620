//! Pruning: the removal of fields that a manager applied before and omits now.
//!
//! A field is removed if the manager applied it before and no manager owns it now. The last applied
//! fields are removed with all fields below them. Then those come back that others own, that the
//! manager applies now, and that it never owned; each in the version of its owner.

use super::fieldset::field_set;
use super::remove::remove;
use super::set::FieldSet;
use super::types::TypeRef;
use super::updater::{ApplyError, Managers, VersionConverter, VersionedSet, convert};
use serde_json::Value;
use std::collections::BTreeMap;

const PRUNE: &str = "failed to prune fields: ";

/// Removes the fields that a manager applied before, `last`, and that no manager owns now.
/// `managers` has the fields that the manager applies now.
pub(super) fn prune(
    versions: &dyn VersionConverter,
    merged: Value,
    version: &str,
    managers: &Managers,
    manager: &str,
    last: &VersionedSet,
) -> Result<Value, ApplyError> {
    let Some(ty) = versions.type_of(&last.api_version) else { return Ok(merged) };
    if *last.api_version == *version
        && managers.get(manager).is_some_and(|now| last.set.is_closed_subset(&now.set, ty))
    {
        // All removed fields would come back.
        return Ok(merged);
    }
    let merged = VersionedObject { object: merged, version: version.into() };
    let merged = merged.convert_to(versions, &last.api_version, || {
        format!("{PRUNE}failed to convert merged object to last applied version: ")
    })?;
    let applied = last.set.clone().with_declared_fields(ty);
    let mut pruned = merged.clone();
    remove(&mut pruned.object, &applied, ty);

    let mut owned: BTreeMap<&str, Vec<FieldSet>> = BTreeMap::new();
    for other in managers.values() {
        owned.entry(&other.api_version).or_default().push(other.set.clone());
    }
    // The version of the removed fields comes first: conversion may need fields of other owners.
    let first = owned.remove_entry(&*last.api_version);
    for (version, owned) in first.into_iter().chain(owned) {
        pruned = add_owned(versions, &merged, pruned, version, FieldSet::union_of(owned))?;
    }

    let context = |what: &str| {
        format!("{PRUNE}failed add back dangling items: failed to {what} last applied version: ")
    };
    let pruned =
        pruned.convert_to(versions, &last.api_version, || context("convert pruned object to"))?;
    let remaining = pruned.set(ty, || context("create field set from pruned object in"))?;
    let all = merged.set(ty, || context("create field set from merged object in"))?;
    let removed = all.difference(&remaining).intersection(&applied);
    let mut object = merged;
    remove(&mut object.object, &removed, ty);
    Ok(object.convert_to(versions, version, || PRUNE.to_owned())?.object)
}

/// Adds the fields back to a pruned object that managers of a version own.
fn add_owned(
    versions: &dyn VersionConverter,
    merged: &VersionedObject,
    pruned: VersionedObject,
    version: &str,
    owned: FieldSet,
) -> Result<VersionedObject, ApplyError> {
    let Some(ty) = versions.type_of(version) else { return Ok(pruned) };
    let context = |what: &str| {
        format!(
            "{PRUNE}failed add back owned items: failed to {what} object at version {version}: "
        )
    };
    let mut merged = merged.clone().convert_to(versions, version, || context("convert merged"))?;
    let pruned = pruned.convert_to(versions, version, || context("convert pruned"))?;
    let all = merged.set(ty, || context("create field set from merged"))?;
    let remaining = pruned.set(ty, || context("create field set from pruned"))?;
    let removed = all.difference(&remaining.union(owned.with_declared_fields(ty)));
    remove(&mut merged.object, &removed, ty);
    Ok(merged)
}

/// An object in a version.
#[derive(Clone, Debug)]
struct VersionedObject {
    object: Value,
    version: Box<str>,
}

impl VersionedObject {
    fn convert_to(
        self,
        versions: &dyn VersionConverter,
        version: &str,
        context: impl Fn() -> String,
    ) -> Result<Self, ApplyError> {
        if *self.version == *version {
            return Ok(self);
        }
        let object = convert(versions, &self.object, version, context)?;
        Ok(Self { object, version: version.into() })
    }

    /// The field set of the object, with the declared fields above its members.
    fn set(&self, ty: TypeRef<'_>, context: impl Fn() -> String) -> Result<FieldSet, ApplyError> {
        match field_set(&self.object, ty) {
            Ok(set) => Ok(set.with_declared_fields(ty)),
            Err(problems) => Err(ApplyError::Invalid { context: context(), problems }),
        }
    }
}
