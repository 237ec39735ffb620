//! Field ownership after a write, and the object after an apply.

use super::compare::{FieldComparison, compare};
use super::fieldset::field_set;
use super::filter::FieldFilter;
use super::merge::merge;
use super::path::ObjectPath;
use super::problems::TypeProblems;
use super::prune::prune;
use super::reconcile::reconcile;
use super::scalar;
use super::set::FieldSet;
use super::types::TypeRef;
use super::validate::{Duplicates, validate};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The fields that a manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionedSet {
    /// The fields.
    pub set: FieldSet,
    /// The API version of the fields, such as `apps/v1`.
    pub api_version: Arc<str>,
    /// Whether the manager applies configurations; otherwise it updates objects.
    pub applied: bool,
}

/// The owned fields by manager identifier. The caller defines the identifiers; this module compares
/// them and returns them in conflicts.
pub type Managers = BTreeMap<String, VersionedSet>;

/// An object cannot be converted; the implementation of [`VersionConverter`] provides the error.
pub type ConversionError = Box<dyn std::error::Error + Send + Sync>;

/// The served versions of a kind.
pub trait VersionConverter {
    /// Converts an object to another version, which has a type.
    ///
    /// # Errors
    /// The conversion failed.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConversionError>;

    /// The type of the kind in a version; none if the version is not served.
    fn type_of(&self, api_version: &str) -> Option<TypeRef<'_>>;
}

/// Computes field ownership for one kind.
#[derive(Clone, Copy)]
pub struct Updater<'a> {
    /// The versions of the kind.
    pub versions: &'a dyn VersionConverter,
    /// The fields of a request that count, by version; without a filter, all fields count.
    pub filters: &'a BTreeMap<String, FieldFilter>,
}

/// The result of an apply.
#[derive(Clone, Debug, PartialEq)]
pub struct ApplyResult {
    /// The object after the apply, in the version of the request; none if it did not change.
    pub object: Option<Value>,
    /// The field owners.
    pub managers: Managers,
}

/// A field of an apply that another manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldConflict {
    /// The identifier of the other manager.
    pub manager: String,
    /// The field.
    pub path: ObjectPath,
}

/// Field ownership cannot be computed.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Other managers own changed fields. Sorted by manager.
    #[error("{}", Conflicts(.0))]
    Conflicts(Vec<FieldConflict>),
    /// A value does not have its type. The context has Kubernetes' text.
    #[error("{context}{problems}")]
    Invalid {
        /// The failed step, with a colon after it; or empty.
        context: String,
        /// The problems of the value.
        problems: TypeProblems,
    },
    /// An object cannot be converted to the version of a manager.
    #[error("{context}{source}")]
    Conversion {
        /// The failed step, with a colon after it; or empty.
        context: String,
        /// The error.
        source: ConversionError,
    },
    /// The version of the request is not served.
    #[error("no corresponding type for {0}")]
    UnknownVersion(String),
}

struct Conflicts<'a>(&'a [FieldConflict]);

impl fmt::Display for Conflicts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [conflict] = self.0 {
            return write!(f, "conflict with {:?}: {}", conflict.manager, conflict.path);
        }
        for (index, group) in self.0.chunk_by(|one, two| one.manager == two.manager).enumerate() {
            let line = if index == 0 { "" } else { "\n" };
            write!(f, "{line}conflicts with {:?}:", group[0].manager)?;
            group.iter().try_for_each(|conflict| write!(f, "\n- {}", conflict.path))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Updater<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Updater").field("filters", &self.filters).finish_non_exhaustive()
    }
}

impl Updater<'_> {
    /// The field owners after a manager wrote an object.
    ///
    /// The manager owns the changed and added fields. Other managers lose those and the removed
    /// ones. A manager without fields is dropped, and so is one of a version that is not served.
    /// `live` is the object before, without fields for a new object; both objects are in `version`.
    ///
    /// # Errors
    /// An object does not have its type or cannot be converted.
    pub fn update(
        &self,
        live: &Value,
        new: &Value,
        version: &str,
        managers: Managers,
        manager: &str,
    ) -> Result<Managers, ApplyError> {
        let mut live_objects = LiveObjects { version, live, others: BTreeMap::new() };
        let mut managers = self.reconcile_managers(managers, &mut live_objects)?;
        let comparison = self.transfer(&live_objects, new, &mut managers, manager, true)?;
        let own = managers.remove(manager).map(|owned| owned.set).unwrap_or_default();
        let own =
            own.difference(&comparison.removed).union(comparison.modified).union(comparison.added);
        let own = self.filter_set(own, version);
        if !own.is_empty() {
            let owned = VersionedSet { set: own, api_version: version.into(), applied: false };
            managers.insert(manager.to_owned(), owned);
        }
        Ok(managers)
    }

    /// Applies a configuration to an object and returns the object and its field owners.
    ///
    /// The configuration is merged into the object. Fields that the manager applied before and
    /// omits now are removed, unless other managers own them. The manager then owns the applied
    /// fields. All objects are in `version`. The configuration must be [valid](super::validate)
    /// without duplicates.
    ///
    /// # Errors
    /// [`ApplyError::Conflicts`] if other managers own changed fields and `force` is not set; other
    /// errors if an object does not have its type or cannot be converted.
    pub fn apply(
        &self,
        live: &Value,
        config: &Value,
        version: &str,
        managers: Managers,
        manager: &str,
        force: bool,
    ) -> Result<ApplyResult, ApplyError> {
        let ty = self.type_of(version)?;
        let mut live_objects = LiveObjects { version, live, others: BTreeMap::new() };
        let mut managers = self.reconcile_managers(managers, &mut live_objects)?;
        let mut new = live.clone();
        merge(&mut new, config, ty).map_err(invalid("failed to merge config: "))?;
        let set = field_set(config, ty).map_err(invalid("failed to get field set: "))?;
        let owned = VersionedSet {
            set: self.filter_set(set, version),
            api_version: version.into(),
            applied: true,
        };
        let last = managers.insert(manager.to_owned(), owned);
        if let Some(last) = last
            .filter(|last| !last.set.is_empty() && !mainstay_fault::is_on("apply-removes-nothing"))
        {
            new = prune(self.versions, new, version, &managers, manager, &last)?;
        }
        self.transfer(&live_objects, &new, &mut managers, manager, force)?;
        let object = (!scalar::is_equal(live, &new)).then_some(new);
        Ok(ApplyResult { object, managers })
    }

    /// Compares two objects in the versions of all managers, and takes the changed fields from all
    /// managers but one. Returns the comparison in the version of the request.
    fn transfer(
        &self,
        live_objects: &LiveObjects<'_>,
        new: &Value,
        managers: &mut Managers,
        manager: &str,
        force: bool,
    ) -> Result<FieldComparison, ApplyError> {
        let own = self.compare_objects(live_objects.live, new, live_objects.version)?;
        let mut others: BTreeMap<Arc<str>, FieldComparison> = BTreeMap::new();
        let mut conflicts = Vec::new();
        let mut losses = Vec::new();
        for (name, owned) in managers.iter().filter(|(name, _)| *name != manager) {
            if let Some(old) = live_objects.others.get(&owned.api_version)
                && !others.contains_key(&owned.api_version)
            {
                let version = &owned.api_version;
                let context = || "failed to convert new object: ".to_owned();
                let new = convert(self.versions, new, version, context)?;
                others.insert(version.clone(), self.compare_objects(old, &new, version)?);
            }
            let comparison = others.get(&owned.api_version).unwrap_or(&own);
            let lost = (owned.set.intersection(&comparison.modified))
                .union(owned.set.intersection(&comparison.added));
            if !force {
                conflicts.extend(
                    lost.paths()
                        .into_iter()
                        .skip(usize::from(mainstay_fault::is_on("conflicts-lack-a-field")))
                        .map(|path| FieldConflict { manager: name.clone(), path }),
                );
            }
            losses.push((name.clone(), lost));
        }
        if !conflicts.is_empty() {
            return Err(ApplyError::Conflicts(conflicts));
        }
        for (name, lost) in losses {
            if mainstay_fault::is_on("writers-take-nothing-away") {
                continue;
            }
            let Some(owned) = managers.get_mut(&name) else { continue };
            let comparison = others.get(&owned.api_version).unwrap_or(&own);
            let set = std::mem::take(&mut owned.set);
            owned.set = set.difference(&lost).difference(&comparison.removed);
        }
        managers.retain(|_, owned| !owned.set.is_empty());
        Ok(own)
    }

    fn compare_objects(
        &self,
        live: &Value,
        new: &Value,
        version: &str,
    ) -> Result<FieldComparison, ApplyError> {
        let comparison = compare(live, new, self.type_of(version)?)
            .map_err(invalid("failed to compare objects: "))?;
        Ok(FieldComparison {
            removed: self.filter_set(comparison.removed, version),
            modified: self.filter_set(comparison.modified, version),
            added: self.filter_set(comparison.added, version),
        })
    }

    fn filter_set(&self, set: FieldSet, version: &str) -> FieldSet {
        match self.filters.get(version) {
            Some(filter) => filter.apply(set),
            None => set,
        }
    }

    fn type_of(&self, version: &str) -> Result<TypeRef<'_>, ApplyError> {
        (self.versions.type_of(version))
            .ok_or_else(|| ApplyError::UnknownVersion(version.to_owned()))
    }

    /// Keeps the managers of served versions and adapts their sets to the current types. Converts
    /// the live object to the versions of all managers.
    fn reconcile_managers(
        &self,
        mut managers: Managers,
        live_objects: &mut LiveObjects<'_>,
    ) -> Result<Managers, ApplyError> {
        managers.retain(|_, owned| self.versions.type_of(&owned.api_version).is_some());
        for owned in managers.values_mut() {
            let version = &owned.api_version;
            if **version != *live_objects.version && !live_objects.others.contains_key(version) {
                let live = convert(self.versions, live_objects.live, version, String::new)?;
                live_objects.others.insert(version.clone(), live);
            }
            if let Some(set) = reconcile(&owned.set, self.type_of(version)?) {
                owned.set = set;
            }
        }
        Ok(managers)
    }
}

/// The live object in the version of the request and in those of managers.
struct LiveObjects<'a> {
    version: &'a str,
    live: &'a Value,
    others: BTreeMap<Arc<str>, Value>,
}

/// Converts an object to another version. The result must have its type, without duplicate list
/// elements.
pub(super) fn convert(
    versions: &dyn VersionConverter,
    object: &Value,
    version: &str,
    context: impl Fn() -> String,
) -> Result<Value, ApplyError> {
    let converted = versions
        .convert(object, version)
        .map_err(|source| ApplyError::Conversion { context: context(), source })?;
    if let Some(ty) = versions.type_of(version) {
        validate(&converted, ty, Duplicates::Rejected)
            .map_err(|problems| ApplyError::Invalid { context: context(), problems })?;
    }
    Ok(converted)
}

fn invalid(context: &str) -> impl Fn(TypeProblems) -> ApplyError {
    move |problems| ApplyError::Invalid { context: context.to_owned(), problems }
}
