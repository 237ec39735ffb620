//! Who owns which fields after a write, and what an applied configuration makes of an object.

use super::compare::{Comparison, compare};
use super::fieldset::set_of;
use super::filter::Filter;
use super::merge::merge;
use super::path::Path;
use super::problems::Problems;
use super::prune::prune;
use super::reconcile::reconcile;
use super::scalar;
use super::set::Set;
use super::types::TypeRef;
use super::validate::{Duplicates, validate};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What a manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    /// The fields.
    pub set: Set,
    /// The version of the API in which the fields are named, such as `apps/v1`.
    pub api_version: Arc<str>,
    /// Whether the manager applies configurations; otherwise it writes objects.
    pub applied: bool,
}

/// What managers own, by their identifiers. What those look like is the caller's business; they
/// are compared and, in conflicts, given back.
pub type Managers = BTreeMap<String, Owned>;

/// Why an object cannot be converted: whoever has the versions says it.
pub type ConversionError = Box<dyn std::error::Error + Send + Sync>;

/// The versions in which a kind is served.
pub trait Versions {
    /// The object in another version. Only asked for versions that have a type.
    ///
    /// # Errors
    /// If that is not possible.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConversionError>;

    /// The type of the kind in a version; none if the version is not served (any more).
    fn type_of(&self, api_version: &str) -> Option<TypeRef<'_>>;
}

/// Works out ownership of one kind of objects.
#[derive(Clone, Copy)]
pub struct Updater<'a> {
    /// The versions of the kind.
    pub versions: &'a dyn Versions,
    /// Which fields of a request in a version count; in a version that is not here, all do.
    pub filters: &'a BTreeMap<String, Filter>,
}

/// What became of an applied configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// The object after it, in the version of the request; none if it is the one before.
    pub object: Option<Value>,
    /// The owners of its fields.
    pub managers: Managers,
}

/// A field that somebody else owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The identifier of the owner.
    pub manager: String,
    /// The field.
    pub path: Path,
}

/// Why ownership could not be worked out.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Others own what the configuration changes. Sorted by managers.
    #[error("{}", Conflicts(.0))]
    Conflicts(Vec<Conflict>),
    /// A value does not have its type. Where it was found, in the words of the original.
    #[error("{context}{problems}")]
    Invalid {
        /// What was being done, with a colon behind it; or nothing.
        context: String,
        /// What is wrong.
        problems: Problems,
    },
    /// An object cannot be converted to the version of a manager. Where, and why.
    #[error("{context}{source}")]
    Conversion {
        /// What was being done, with a colon behind it; or nothing.
        context: String,
        /// Why not.
        source: ConversionError,
    },
    /// The version of the request is not served.
    #[error("no corresponding type for {0}")]
    UnknownVersion(String),
}

struct Conflicts<'a>(&'a [Conflict]);

impl fmt::Display for Conflicts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [conflict] = self.0 {
            return write!(f, "conflict with {:?}: {}", conflict.manager, conflict.path);
        }
        for (at, group) in self.0.chunk_by(|one, two| one.manager == two.manager).enumerate() {
            let line = if at == 0 { "" } else { "\n" };
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
    /// The owners of fields after a manager wrote an object.
    ///
    /// The manager owns what it changed and added; others lose that and what was removed. Who owns
    /// nothing any more is dropped, as are managers of versions that are not served. `live` is what
    /// was there, without fields for a new object; both objects are in `version`.
    ///
    /// # Errors
    /// If an object does not have its type or cannot be converted.
    pub fn update(
        &self,
        live: &Value,
        new: &Value,
        version: &str,
        managers: Managers,
        manager: &str,
    ) -> Result<Managers, ApplyError> {
        let mut lives = Lives { version, live, others: BTreeMap::new() };
        let mut managers = self.reconciled(managers, &mut lives)?;
        let comparison = self.transfer(&lives, new, &mut managers, manager, true)?;
        let own = managers.remove(manager).map(|owned| owned.set).unwrap_or_default();
        let own =
            own.difference(&comparison.removed).union(comparison.modified).union(comparison.added);
        let own = self.counting(own, version);
        if !own.is_empty() {
            let owned = Owned { set: own, api_version: version.into(), applied: false };
            managers.insert(manager.to_owned(), owned);
        }
        Ok(managers)
    }

    /// What a configuration makes of an object, and who owns its fields then.
    ///
    /// The configuration is merged into the object; what the manager applied before and does not any
    /// more goes, unless others own it. The manager then owns what it applied. All objects are in
    /// `version`. The configuration must be [valid](super::validate) without duplicates.
    ///
    /// # Errors
    /// [`ApplyError::Conflicts`] if others own what would change and `force` is not set; others
    /// if an object does not have its type or cannot be converted.
    pub fn apply(
        &self,
        live: &Value,
        config: &Value,
        version: &str,
        managers: Managers,
        manager: &str,
        force: bool,
    ) -> Result<Applied, ApplyError> {
        let ty = self.type_of(version)?;
        let mut lives = Lives { version, live, others: BTreeMap::new() };
        let mut managers = self.reconciled(managers, &mut lives)?;
        let mut new = live.clone();
        merge(&mut new, config, ty).map_err(invalid("failed to merge config: "))?;
        let set = set_of(config, ty).map_err(invalid("failed to get field set: "))?;
        let owned =
            Owned { set: self.counting(set, version), api_version: version.into(), applied: true };
        let last = managers.insert(manager.to_owned(), owned);
        if let Some(last) = last
            .filter(|last| !last.set.is_empty() && !mainstay_fault::is_on("apply-removes-nothing"))
        {
            new = prune(self.versions, new, version, &managers, manager, &last)?;
        }
        self.transfer(&lives, &new, &mut managers, manager, force)?;
        let object = (!scalar::same(live, &new)).then_some(new);
        Ok(Applied { object, managers })
    }

    /// Compares two objects in the versions of all managers, and takes what changed from every
    /// manager but one. Gives back what changed in the version of the request.
    fn transfer(
        &self,
        lives: &Lives<'_>,
        new: &Value,
        managers: &mut Managers,
        manager: &str,
        force: bool,
    ) -> Result<Comparison, ApplyError> {
        let own = self.compared(lives.live, new, lives.version)?;
        let mut others: BTreeMap<Arc<str>, Comparison> = BTreeMap::new();
        let mut conflicts = Vec::new();
        let mut losses = Vec::new();
        for (name, owned) in managers.iter().filter(|(name, _)| *name != manager) {
            if let Some(old) = lives.others.get(&owned.api_version)
                && !others.contains_key(&owned.api_version)
            {
                let version = &owned.api_version;
                let context = || "failed to convert new object: ".to_owned();
                let new = convert(self.versions, new, version, context)?;
                others.insert(version.clone(), self.compared(old, &new, version)?);
            }
            let comparison = others.get(&owned.api_version).unwrap_or(&own);
            let lost = (owned.set.intersection(&comparison.modified))
                .union(owned.set.intersection(&comparison.added));
            if !force {
                conflicts.extend(
                    lost.paths()
                        .into_iter()
                        .skip(usize::from(mainstay_fault::is_on("conflicts-lack-a-field")))
                        .map(|path| Conflict { manager: name.clone(), path }),
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

    fn compared(&self, live: &Value, new: &Value, version: &str) -> Result<Comparison, ApplyError> {
        let comparison = compare(live, new, self.type_of(version)?)
            .map_err(invalid("failed to compare objects: "))?;
        Ok(Comparison {
            removed: self.counting(comparison.removed, version),
            modified: self.counting(comparison.modified, version),
            added: self.counting(comparison.added, version),
        })
    }

    fn counting(&self, set: Set, version: &str) -> Set {
        match self.filters.get(version) {
            Some(filter) => filter.apply(set),
            None => set,
        }
    }

    fn type_of(&self, version: &str) -> Result<TypeRef<'_>, ApplyError> {
        (self.versions.type_of(version))
            .ok_or_else(|| ApplyError::UnknownVersion(version.to_owned()))
    }

    /// Managers of served versions, their sets as the types are now. Converts what was there to the
    /// versions of them all.
    fn reconciled(
        &self,
        mut managers: Managers,
        lives: &mut Lives<'_>,
    ) -> Result<Managers, ApplyError> {
        managers.retain(|_, owned| self.versions.type_of(&owned.api_version).is_some());
        for owned in managers.values_mut() {
            let version = &owned.api_version;
            if **version != *lives.version && !lives.others.contains_key(version) {
                let live = convert(self.versions, lives.live, version, String::new)?;
                lives.others.insert(version.clone(), live);
            }
            if let Some(set) = reconcile(&owned.set, self.type_of(version)?) {
                owned.set = set;
            }
        }
        Ok(managers)
    }
}

/// What was there, in the version of the request and in those of managers.
struct Lives<'a> {
    version: &'a str,
    live: &'a Value,
    others: BTreeMap<Arc<str>, Value>,
}

/// An object in another version that has a type. It must have that type, without elements that are
/// there twice.
pub(super) fn convert(
    versions: &dyn Versions,
    object: &Value,
    version: &str,
    context: impl Fn() -> String,
) -> Result<Value, ApplyError> {
    let converted = versions
        .convert(object, version)
        .map_err(|source| ApplyError::Conversion { context: context(), source })?;
    if let Some(ty) = versions.type_of(version) {
        validate(&converted, ty, Duplicates::Refused)
            .map_err(|problems| ApplyError::Invalid { context: context(), problems })?;
    }
    Ok(converted)
}

fn invalid(context: &str) -> impl Fn(Problems) -> ApplyError {
    move |problems| ApplyError::Invalid { context: context.to_owned(), problems }
}
