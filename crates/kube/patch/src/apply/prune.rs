//! What goes from an object when a manager applies less than before.
//!
//! Everything goes that the manager applied before and nobody owns now. What it applied before is
//! taken out with all that is below, and then comes back what others own, what the manager applies
//! now, and what the manager never owned; each in the versions of those who own it.

use super::fieldset::set_of;
use super::remove::remove;
use super::set::Set;
use super::types::TypeRef;
use super::updater::{ApplyError, Managers, Owned, Versions, convert};
use serde_json::Value;
use std::collections::BTreeMap;

const PRUNE: &str = "failed to prune fields: ";

/// Takes out of a merged object what a manager applied before, `last`, and nobody owns now.
/// `managers` has what the manager applies now.
pub(super) fn prune(
    versions: &dyn Versions,
    merged: Value,
    version: &str,
    managers: &Managers,
    manager: &str,
    last: &Owned,
) -> Result<Value, ApplyError> {
    let Some(ty) = versions.type_of(&last.api_version) else { return Ok(merged) };
    if *last.api_version == *version
        && managers.get(manager).is_some_and(|now| last.set.is_closed_subset(&now.set, ty))
    {
        // Everything that would go comes back.
        return Ok(merged);
    }
    let merged = Versioned { object: merged, version: version.into() };
    let merged = merged.to(versions, &last.api_version, || {
        format!("{PRUNE}failed to convert merged object to last applied version: ")
    })?;
    let applied = last.set.clone().with_named_fields(ty);
    let mut pruned = merged.clone();
    remove(&mut pruned.object, &applied, ty);

    let mut owned: BTreeMap<&str, Vec<Set>> = BTreeMap::new();
    for other in managers.values() {
        owned.entry(&other.api_version).or_default().push(other.set.clone());
    }
    // The version of what was taken out comes first: conversion may need what others own.
    let first = owned.remove_entry(&*last.api_version);
    for (version, owned) in first.into_iter().chain(owned) {
        pruned = add_owned(versions, &merged, pruned, version, Set::union_of(owned))?;
    }

    let context = |what: &str| {
        format!("{PRUNE}failed add back dangling items: failed to {what} last applied version: ")
    };
    let pruned = pruned.to(versions, &last.api_version, || context("convert pruned object to"))?;
    let left = pruned.set(ty, || context("create field set from pruned object in"))?;
    let all = merged.set(ty, || context("create field set from merged object in"))?;
    let gone = all.difference(&left).intersection(&applied);
    let mut object = merged;
    remove(&mut object.object, &gone, ty);
    Ok(object.to(versions, version, || PRUNE.to_owned())?.object)
}

/// What is left of an object after what managers of a version own came back to it.
fn add_owned(
    versions: &dyn Versions,
    merged: &Versioned,
    pruned: Versioned,
    version: &str,
    owned: Set,
) -> Result<Versioned, ApplyError> {
    let Some(ty) = versions.type_of(version) else { return Ok(pruned) };
    let context = |what: &str| {
        format!(
            "{PRUNE}failed add back owned items: failed to {what} object at version {version}: "
        )
    };
    let mut merged = merged.clone().to(versions, version, || context("convert merged"))?;
    let pruned = pruned.to(versions, version, || context("convert pruned"))?;
    let all = merged.set(ty, || context("create field set from merged"))?;
    let left = pruned.set(ty, || context("create field set from pruned"))?;
    let gone = all.difference(&left.union(owned.with_named_fields(ty)));
    remove(&mut merged.object, &gone, ty);
    Ok(merged)
}

/// An object and its version.
#[derive(Clone, Debug)]
struct Versioned {
    object: Value,
    version: Box<str>,
}

impl Versioned {
    fn to(
        self,
        versions: &dyn Versions,
        version: &str,
        context: impl Fn() -> String,
    ) -> Result<Self, ApplyError> {
        if *self.version == *version {
            return Ok(self);
        }
        let object = convert(versions, &self.object, version, context)?;
        Ok(Self { object, version: version.into() })
    }

    /// Everything that the object says, and the named fields above it.
    fn set(&self, ty: TypeRef<'_>, context: impl Fn() -> String) -> Result<Set, ApplyError> {
        match set_of(&self.object, ty) {
            Ok(set) => Ok(set.with_named_fields(ty)),
            Err(problems) => Err(ApplyError::Invalid { context: context(), problems }),
        }
    }
}
