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
use mainstay_resolver::{CatalogKey, CatalogView, Content, Repair, Snapshot};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

/// What the resolver is told about a catalog without content.
const NOT_AT_HAND: &str = "its content is not at hand here";

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
            Stock::Missing(_) => Content::Failed(NOT_AT_HAND.to_owned()),
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
    /// Whether packages are asked for.
    pub(super) packages: bool,
}

/// Folders that were loaded already.
#[derive(Default)]
pub(super) struct Folders(RefCell<HashMap<String, Arc<Stock>>>);

impl Folders {
    /// The content of a folder. One that does not hold a sound catalog is a catalog that fails.
    ///
    /// # Errors
    /// If it is not there, or not a folder.
    pub(super) fn load(&self, io: &Io<'_>, typed: &str) -> Result<Arc<Stock>, Failure> {
        if let Some(known) = self.0.borrow().get(typed) {
            return Ok(known.clone());
        }
        let made = Arc::new(load(io, typed)?);
        self.0.borrow_mut().insert(typed.to_owned(), made.clone());
        Ok(made)
    }
}

impl Shelf {
    /// The catalogs of a state and those that were named, with their content.
    ///
    /// # Errors
    /// If a folder does not exist, or a name means none or several catalogs.
    pub(super) fn fill(
        io: &Io<'_>,
        folders: &Folders,
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
                (Some(given), _) => (given.folder.clone(), folders.load(io, &given.folder)?),
                (None, Some(remote)) if !source.address.is_empty() => {
                    let (from, stock) = fetch(&mut **remote, key, &source.address);
                    (from, Arc::new(stock))
                }
                (None, _) => {
                    let connection = match &*source.connection {
                        _ if source.is_hidden => {
                            format!(
                                ", and your account may not see CatalogSources in namespace {}",
                                key.namespace
                            )
                        }
                        "" | "READY" => String::new(),
                        state => format!(", and its connection is {state}"),
                    };
                    let why = Cause::new(format!("its content is not at hand{connection}"));
                    (String::new(), Arc::new(Stock::Missing(why.remedy(give(key)))))
                }
            };
            let item = Item { priority: source.priority, from, stock };
            shelf.items.insert(key.clone(), item);
        }
        let ours = |name: &CatalogName| state.is_for_subscriptions(name, said.packages);
        let mut given: BTreeMap<CatalogKey, &str> = BTreeMap::new();
        for folder in said.folders.iter().filter(|it| ours(&it.name)) {
            let key = shelf.put(io, folders, folder, global)?;
            if let Some(other) = given.insert(key, &folder.folder).filter(|it| *it != folder.folder)
            {
                let why = format!("the folder of that catalog is {other}, too");
                let what = format!("--catalog {}={}", folder.name, folder.folder);
                return Err(Failure::usage(unusable(&what, why).remedy("name one of the two")));
            }
        }
        for given in said.priorities.iter().filter(|it| ours(&it.name)) {
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
        folders: &Folders,
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
        let stock = folders.load(io, &folder.folder)?;
        self.items.insert(key.clone(), Item { priority, from: folder.folder.clone(), stock });
        Ok(key)
    }

    /// The one catalog of a name.
    pub(super) fn find(&self, name: &CatalogName) -> Result<CatalogKey, String> {
        let mut same = self.items.keys().filter(|key| name.is(key));
        match (same.next(), same.next()) {
            (Some(key), None) => Ok(key.clone()),
            (None, _) => Err(self.no_catalog(name)),
            (Some(_), Some(_)) => Err(format!(
                "several namespaces have a catalog `{name}`: write it as NAMESPACE/NAME"
            )),
        }
    }
}

impl Shelf {
    /// The catalogs as resolution sees them.
    pub(super) fn views(&self) -> Vec<CatalogView<'_>> {
        self.items.iter().map(|(key, item)| item.view(key)).collect()
    }

    /// Says that there is no such catalog, and which ones there are.
    fn no_catalog(&self, name: &CatalogName) -> String {
        no_catalog(name, self.items.keys())
    }

    /// Whether a folder that was named holds no sound catalog.
    pub(super) fn is_broken(&self) -> bool {
        self.items.values().any(|item| matches!(&*item.stock, Stock::Failed(..)))
    }

    /// What people can do about catalogs without content, instead of what the resolver says.
    pub(super) fn remedies(&self) -> Remedies {
        let mut remedies = Remedies::default();
        for (key, item) in &self.items {
            let instead = match &*item.stock {
                Stock::Ready(..) => continue,
                Stock::Missing(_) => give(key),
                Stock::Failed(..) => format!("correct the folder {}", item.from),
            };
            let repair = Repair::RestoreCatalog { catalog: key.clone() };
            remedies.0.insert(repair.to_string(), instead);
        }
        remedies
    }
}

/// Says that there is no such catalog, and which ones there are.
pub(super) fn no_catalog<'k>(
    name: &CatalogName,
    known: impl Iterator<Item = &'k CatalogKey>,
) -> String {
    let known: Vec<String> = known.map(|key| format!("{}/{}", key.namespace, key.name)).collect();
    if known.is_empty() {
        return format!("there is no catalog `{name}`, nor any other");
    }
    format!("there is no catalog `{name}`, only {}", known.join(", "))
}

/// Words that fit better here than those of the resolver, by the latter.
#[derive(Clone, Default)]
pub(super) struct Remedies(HashMap<String, String>);

impl Remedies {
    /// A cause in those words.
    pub(super) fn cause(&self, cause: &Cause) -> Cause {
        if self.0.is_empty() {
            return cause.clone();
        }
        let mut made = Cause::new(cause.what());
        if let Some(place) = cause.place() {
            made = made.at(place.clone());
        }
        for remedy in cause.remedies() {
            made = made.remedy(self.0.get(remedy).unwrap_or(remedy));
        }
        made.because_all(cause.children().iter().map(|child| self.cause(child)))
    }

    /// An answer in those words.
    pub(super) fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(instead) = self.0.get(text) {
                    text.clone_from(instead);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.value(field)),
            _ => {}
        }
    }
}

/// How somebody can bring the content of a catalog along.
fn give(key: &CatalogKey) -> String {
    format!("give it with --catalog {}/{}=DIR", key.namespace, key.name)
}

/// Loads a folder.
fn load(io: &Io<'_>, typed: &str) -> Result<Stock, Failure> {
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
        Ok(catalog) if catalog.packages().next().is_none() => {
            let cause = Cause::new("the folder holds no package")
                .at(Place::file(typed))
                .remedy("name the folder of a file-based catalog");
            Stock::Failed(format!("the folder {typed} holds no package"), cause)
        }
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
