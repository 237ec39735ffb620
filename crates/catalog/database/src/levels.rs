//! What the tables hold at each level of upstream's migrations.
//!
//! | Level | |
//! |---|---|
//! | none, 0 – 3 | cannot be brought up to date unless they are empty |
//! | 4 | bundles have no versions yet, and upstream does not find them out |
//! | 5 | APIs belong to entries of channels |
//! | 6, 7 | APIs belong to bundles |
//! | 8 | dependencies have a table |
//! | 9 | properties have a table |
//! | 10 – 13 | nothing that is read here changes |
//!
//! Levels above 13 are read as 13, as upstream does. The source is `upstream-opm.md` §3.5.

use crate::{
    error::DatabaseError,
    rows::{Cell, Reader},
};
use mainstay_gocompat::json::quoted;
use std::collections::BTreeMap;

/// The columns of a bundle that say what it is.
pub(crate) struct Row {
    /// Where its image is; NULL where its manifests are only in the database.
    pub(crate) image: Option<String>,
    /// Its version.
    pub(crate) version: Option<String>,
    /// Which versions it takes over from.
    pub(crate) skip_range: String,
}

/// Types and values, as texts, by the name of the bundle they belong to.
pub(crate) type Typed = BTreeMap<String, Vec<(String, String)>>;

/// The level of a database, and the tables by it.
pub(crate) struct Tables<'r> {
    reader: &'r Reader,
    level: i64,
}

impl<'r> Tables<'r> {
    /// Finds the level out. `None` for an old database with nothing in it.
    pub(crate) fn of(reader: &'r Reader) -> Result<Option<Self>, DatabaseError> {
        let mut level = -1;
        if reader.has("schema_migrations")? {
            let mut first = None;
            reader.each("SELECT version FROM schema_migrations LIMIT 1", &[], |[version]| {
                first = Some(version);
                Ok(())
            })?;
            let number = |version: Cell| version.and_then(|version| version.parse().ok());
            if let Some(version) = first {
                let wrong = || reader.wrong("schema_migrations: the version is no number");
                level = number(version).ok_or_else(wrong)?;
            }
        }
        if level >= 4 {
            return Ok(Some(Self { reader, level }));
        }
        let mut rows = 0;
        for table in ["package", "channel"] {
            if reader.has(table)? {
                let query = format!("SELECT 1 FROM \"{table}\" LIMIT 1");
                reader.each(&query, &[], |[_]| {
                    rows += 1;
                    Ok(())
                })?;
            }
        }
        if rows == 0 {
            return Ok(None);
        }
        Err(DatabaseError::Outdated { file: reader.file().to_owned(), level })
    }

    /// What the bundles are, by name.
    pub(crate) fn bundles(&self) -> Result<BTreeMap<String, Row>, DatabaseError> {
        let query = if self.level >= 5 {
            "SELECT name, bundlepath, version, skiprange FROM operatorbundle"
        } else {
            "SELECT name, bundlepath, NULL, NULL FROM operatorbundle"
        };
        let mut found = BTreeMap::new();
        self.reader.each(query, &[], |[name, image, version, skip_range]| {
            if let Some(name) = name {
                let skip_range = skip_range.unwrap_or_default();
                found.insert(name, Row { image, version, skip_range });
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// The properties of bundles.
    pub(crate) fn properties(&self) -> Result<Typed, DatabaseError> {
        if self.level >= 9 { self.typed("properties") } else { self.apis("api_provider") }
    }

    /// What bundles depend on.
    pub(crate) fn dependencies(&self) -> Result<Typed, DatabaseError> {
        if self.level >= 8 { self.typed("dependencies") } else { self.apis("api_requirer") }
    }

    /// The images that bundles run, by name of the bundle.
    pub(crate) fn images(&self) -> Result<BTreeMap<String, Vec<String>>, DatabaseError> {
        let query = "SELECT image, operatorbundle_name FROM related_image";
        let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
        self.reader.each(query, &[], |[image, bundle]| {
            if let (Some(image), Some(bundle)) = (image, bundle) {
                found.entry(bundle).or_default().push(image);
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// A table of types and values.
    fn typed(&self, table: &str) -> Result<Typed, DatabaseError> {
        let query = format!("SELECT operatorbundle_name, type, value FROM {table}");
        let mut found = Typed::new();
        self.reader.each(&query, &[], |[bundle, kind, value]| {
            let Some(bundle) = bundle else { return Ok(()) };
            let pair = (kind.unwrap_or_default(), value.unwrap_or_default());
            found.entry(bundle).or_default().push(pair);
            Ok(())
        })?;
        Ok(found)
    }

    /// What later levels make of the tables of APIs.
    fn apis(&self, table: &str) -> Result<Typed, DatabaseError> {
        let query = if self.level >= 6 {
            format!("SELECT operatorbundle_name, group_name, version, kind FROM {table}")
        } else {
            format!(
                "SELECT entry.operatorbundle_name, api.group_name, api.version, api.kind \
                 FROM {table} AS api \
                 JOIN channel_entry AS entry ON entry.entry_id = api.channel_entry_id"
            )
        };
        let mut found = Typed::new();
        self.reader.each(&query, &[], |[bundle, group, version, kind]| {
            let (Some(bundle), Some(group), Some(version), Some(kind)) =
                (bundle, group, version, kind)
            else {
                return Ok(());
            };
            let value = gvk(&group, &kind, &version);
            found.entry(bundle).or_default().push(("olm.gvk".to_owned(), value));
            Ok(())
        })?;
        Ok(found)
    }
}

/// The value of a property that names an API.
pub(crate) fn gvk(group: &str, kind: &str, version: &str) -> String {
    let (group, kind, version) = (quoted(group), quoted(kind), quoted(version));
    format!("{{\"group\":{group},\"kind\":{kind},\"version\":{version}}}")
}
