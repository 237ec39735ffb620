//! Catalog folders to serve, and their list in the data folder.
//!
//! After a restart, `mainstay up` serves the previous catalogs: `catalogs.json` has their names and
//! folders. Deleting a CatalogSource removes its catalog from the list. Naming the catalog again with
//! `--catalog` brings it back, or moves it to another folder.

use crate::embedded::{Settings, io};
use mainstay_api::resources::CATALOG_SOURCE;
use mainstay_cause::{Cause, FileLocation};
use mainstay_cli::config::Data;
use mainstay_client::Cluster;
use mainstay_files::Durability;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The largest size of the list, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// Name and folder of each catalog.
pub(crate) type CatalogFolders = BTreeMap<String, PathBuf>;

/// The configured catalogs and those of the previous run.
pub(crate) struct CatalogMemory {
    configured: CatalogFolders,
    previous: CatalogFolders,
    /// The path of the list; `None` for a cluster in memory.
    file: Option<PathBuf>,
}

impl CatalogMemory {
    /// Reads the list from the data folder.
    pub(crate) fn read(settings: &Settings) -> Result<Self, Cause> {
        let configured =
            settings.catalogs.iter().map(|catalog| (catalog.name.clone(), catalog.folder.clone()));
        let file = match &settings.data {
            Data::Folder(folder) => Some(folder.join("catalogs.json")),
            Data::Memory => None,
        };
        let previous = file.as_deref().map_or_else(|| Ok(CatalogFolders::new()), read)?;
        Ok(Self { configured: configured.collect(), previous, file })
    }

    /// The configured catalogs.
    pub(crate) const fn configured(&self) -> &CatalogFolders {
        &self.configured
    }

    /// The catalogs to serve: the configured ones, and previous ones whose CatalogSource still exists.
    pub(crate) async fn catalogs_to_serve(
        self,
        cluster: &Cluster,
        namespace: &str,
    ) -> Result<CatalogFolders, Cause> {
        let mut catalogs = self.configured;
        for (name, folder) in &self.previous {
            if catalogs.contains_key(name) {
                continue;
            }
            let found = cluster.find(&CATALOG_SOURCE, Some(namespace), name).await;
            let found = found.map_err(|error| {
                Cause::new(format!("CatalogSource {namespace}/{name} cannot be read"))
                    .because(Cause::new(error.to_string()))
            })?;
            if found.is_some() {
                catalogs.insert(name.clone(), folder.clone());
            }
        }
        match &self.file {
            Some(file) if catalogs != self.previous => write(file, &catalogs)?,
            _ => {}
        }
        Ok(catalogs)
    }
}

fn read(file: &Path) -> Result<CatalogFolders, Cause> {
    let fail = |why| Err(Cause::new("the list of catalogs cannot be read").at(file).because(why));
    match mainstay_files::read(file, MAX_BYTES) {
        Ok(bytes) => serde_json::from_slice(&bytes).or_else(|error| {
            fail(
                Cause::new(error.to_string())
                    .remedy("delete the file and name the catalogs again with --catalog NAME=DIR"),
            )
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(CatalogFolders::new()),
        Err(error) => fail(io(&error)),
    }
}

/// Writes the list whole or not at all.
fn write(file: &Path, catalogs: &CatalogFolders) -> Result<(), Cause> {
    let result = serde_json::to_vec_pretty(catalogs)
        .map_err(std::io::Error::other)
        .and_then(|text| mainstay_files::replace(file, &text, Durability::Process));
    result.map_err(|error| {
        Cause::new("the list of catalogs cannot be written")
            .at(FileLocation::file(file))
            .because(io(&error))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn catalog_list_reads_back_and_a_damaged_one_has_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("catalogs.json");
        assert_eq!(read(&file).unwrap(), CatalogFolders::new());
        let catalogs = CatalogFolders::from([("a".to_owned(), PathBuf::from("/x"))]);
        write(&file, &catalogs).unwrap();
        assert_eq!(read(&file).unwrap(), catalogs);
        std::fs::write(&file, "{").unwrap();
        let error = read(&file).unwrap_err().to_string();
        assert!(error.contains("catalogs.json") && error.contains("--catalog NAME=DIR"), "{error}");
    }
}
