//! The catalogs that are looked at, with their content.

use super::state::State;
use super::wish::{CatalogFolder, CatalogName, Priority, unusable};
use super::{Io, Remote};
use crate::catalog::plain;
use crate::config::reason;
use crate::exit::Failure;
use mainstay_catalog::{Catalog, Folder, Keep, LoadOptions};
use mainstay_cause::{Cause, Place};
use mainstay_resolver::universe::CatalogData;
use mainstay_resolver::{CatalogKey, CatalogView, Content, Snapshot};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Catalogs by name. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Shelf {
    pub(super) items: BTreeMap<CatalogKey, Item>,
}

/// A catalog.
#[derive(Clone)]
pub(super) struct Item {
    pub(super) priority: i64,
    /// Where its content comes from; empty if it has none.
    pub(super) from: String,
    pub(super) stock: Arc<Stock>,
}

/// The content of a catalog.
pub(super) enum Stock {
    /// All of it, and what it was made of.
    Ready(Snapshot, Origin),
    /// There is none, for this reason.
    Missing(Cause),
    /// It cannot be used: what the resolver is told, and what people are.
    Failed(String, Cause),
}

/// What a snapshot was made of.
pub(super) enum Origin {
    Catalog(Arc<Catalog>),
    Data(Box<CatalogData>),
}

impl Item {
    /// The catalog as resolution sees it.
    pub(super) fn view(&self, key: &CatalogKey) -> CatalogView<'_> {
        let content = match &*self.stock {
            Stock::Ready(snapshot, _) => Content::Ready(snapshot),
            Stock::Missing(_) => Content::Failed("its content is not at hand here".to_owned()),
            Stock::Failed(message, _) => Content::Failed(message.clone()),
        };
        CatalogView { key: key.clone(), priority: self.priority, content }
    }

    /// Its content in plain data.
    pub(super) fn data(&self) -> Option<CatalogData> {
        match &*self.stock {
            Stock::Ready(_, Origin::Catalog(catalog)) => Some(CatalogData::of(catalog)),
            Stock::Ready(_, Origin::Data(data)) => Some((**data).clone()),
            Stock::Missing(_) | Stock::Failed(..) => None,
        }
    }
}

/// What was said about catalogs on the command line.
pub(super) struct Said<'a> {
    pub(super) folders: &'a [CatalogFolder],
    pub(super) priorities: &'a [Priority],
}

impl Shelf {
    /// The catalogs of a state and those that were named, with their content.
    ///
    /// # Errors
    /// If a folder does not exist, or a name means none or several catalogs.
    pub(super) fn fill(
        io: &Io<'_>,
        state: &State,
        global: &str,
        seen: &[String],
        said: &Said<'_>,
        mut remote: Option<&mut dyn Remote>,
    ) -> Result<Self, Failure> {
        let mut shelf = Self::default();
        for (key, source) in &state.sources {
            if key.namespace != global && !seen.contains(&key.namespace) {
                continue;
            }
            let given = said.folders.iter().find(|it| it.name.is(key));
            let (from, stock) = match (given, &mut remote) {
                (Some(given), _) => (given.folder.clone(), load(io, &given.folder)?),
                (None, Some(remote)) if !source.address.is_empty() => {
                    fetch(&mut **remote, key, &source.address)
                }
                (None, _) => {
                    let connection = match &*source.connection {
                        "" | "READY" => String::new(),
                        state => format!(", and its connection is {state}"),
                    };
                    let why = Cause::new(format!("its content is not at hand{connection}"));
                    (String::new(), Stock::Missing(why.remedy(give(key))))
                }
            };
            let item = Item { priority: source.priority, from, stock: Arc::new(stock) };
            shelf.items.insert(key.clone(), item);
        }
        for folder in said.folders.iter().filter(|it| !state.is_for_extensions(&it.name)) {
            shelf.put(io, folder, global)?;
        }
        for given in said.priorities.iter().filter(|it| !state.is_for_extensions(&it.name)) {
            let key = shelf.find(&given.name).map_err(|why| {
                Failure::usage(unusable(
                    &format!("--priority {}={}", given.name, given.priority),
                    why,
                ))
            })?;
            if let Some(item) = shelf.items.get_mut(&key) {
                item.priority = given.priority;
            }
        }
        Ok(shelf)
    }

    /// Gives a catalog the content of a folder, whether it is there already or new.
    pub(super) fn put(
        &mut self,
        io: &Io<'_>,
        folder: &CatalogFolder,
        global: &str,
    ) -> Result<CatalogKey, Failure> {
        let mut same = self.items.keys().filter(|key| folder.name.is(key));
        let key = match (same.next(), same.next()) {
            (Some(_), Some(_)) => {
                let why = format!("several namespaces have a catalog `{}`", folder.name);
                let cause = unusable(&format!("--catalog {}={}", folder.name, folder.folder), why);
                return Err(Failure::usage(cause.remedy("write it as NAMESPACE/NAME=DIR")));
            }
            (Some(key), None) => key.clone(),
            (None, _) => CatalogKey::new(
                &*folder.name.name,
                folder.name.namespace.as_deref().unwrap_or(global),
            ),
        };
        let known = self.items.get(&key);
        if known.is_some_and(|item| item.from == folder.folder) {
            return Ok(key);
        }
        let priority = known.map_or(0, |item| item.priority);
        let stock = Arc::new(load(io, &folder.folder)?);
        self.items.insert(key.clone(), Item { priority, from: folder.folder.clone(), stock });
        Ok(key)
    }

    /// The one catalog of a name.
    pub(super) fn find(&self, name: &CatalogName) -> Result<CatalogKey, String> {
        let mut same = self.items.keys().filter(|key| name.is(key));
        match (same.next(), same.next()) {
            (Some(key), None) => Ok(key.clone()),
            (None, _) => Err(format!("there is no catalog `{name}`")),
            (Some(_), Some(_)) => Err(format!(
                "several namespaces have a catalog `{name}`: write it as NAMESPACE/NAME"
            )),
        }
    }
}

/// How somebody can bring the content of a catalog along.
fn give(key: &CatalogKey) -> String {
    format!("give it with --catalog {}/{}=DIR", key.namespace, key.name)
}

/// Loads a folder. One that does not hold a sound catalog is a catalog that fails.
pub(super) fn load(io: &Io<'_>, typed: &str) -> Result<Stock, Failure> {
    let path = io.folder.join(typed);
    let refuse = |why: String| {
        let remedy = "name the folder of a file-based catalog";
        Failure::usage(Cause::new(why).at(Place::file(typed)).remedy(remedy))
    };
    match std::fs::metadata(&path) {
        Ok(found) if found.is_dir() => Ok(stock(&path, typed)),
        Ok(_) => Err(refuse("this is a file, not a folder".to_owned())),
        Err(error) => Err(refuse(reason(&error))),
    }
}

fn stock(path: &Path, typed: &str) -> Stock {
    let options = LoadOptions { keep: Keep::Facts, ..LoadOptions::default() };
    match Catalog::load_from(&Folder::new(path), &options) {
        Ok(catalog) => Stock::Ready(Snapshot::of(&catalog), Origin::Catalog(catalog)),
        Err(error) => {
            let cause = Cause::new(plain(&error.headline()))
                .at(Place::file(typed))
                .remedy(format!("see all problems with: mainstay catalog validate {typed}"));
            Stock::Failed(format!("the folder {typed} cannot be used"), cause)
        }
    }
}

/// Asks a registry for all that it has.
fn fetch(remote: &mut dyn Remote, key: &CatalogKey, address: &str) -> (String, Stock) {
    match remote.catalog(address) {
        Ok(data) => {
            (format!("grpc {address}"), Stock::Ready(data.snapshot(), Origin::Data(Box::new(data))))
        }
        Err(why) => {
            let cause = Cause::new(format!("its registry at {address} cannot be asked from here"));
            (String::new(), Stock::Missing(cause.because(why).remedy(give(key))))
        }
    }
}
