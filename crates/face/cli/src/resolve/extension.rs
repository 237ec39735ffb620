//! Extensions of OLM v1: which bundle each gets, and where updates lead from there.

use super::answer::difference;
use super::shelf::{Folders, Origin, Said, Stock};
use super::state::State;
use super::text::{chain, line, tree};
use super::wish::{CatalogFolder, CatalogName, Change, What};
use super::{Io, ResolveArguments};
use crate::catalog::{count, plain};
use crate::exit::{Exit, Failure};
use mainstay_cause::Cause;
use mainstay_object::Object;
use mainstay_resolver::extension::{
    self, Catalog, Choice, Content, FailureKind, Installed, Offer, Policy, Request, resolve,
};
use mainstay_resolver::universe::cause_json;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

/// Most updates that are followed: more than any package has versions.
const MOST_STEPS: usize = 1000;

/// A ClusterCatalog with what was said about it.
struct Shop {
    object: Object,
    priority: Option<i32>,
    stock: Option<Arc<Stock>>,
    /// The folder of its content.
    folder: String,
    /// Whether it is supposed to be out of reach.
    is_out: bool,
}

/// What becomes of all extensions.
#[derive(Default)]
pub(super) struct Extensions {
    ways: Vec<Way>,
    /// The same with what is supposed.
    after: Option<Vec<Way>>,
    /// Catalogs that were named and cannot be used.
    broken: Vec<(String, Cause)>,
    /// What is supposed of catalogs.
    changes: Vec<String>,
}

/// What becomes of an extension.
struct Way {
    name: String,
    package: String,
    installed: Option<Installed>,
    hops: Vec<Choice>,
    end: End,
}

enum End {
    /// At the best bundle that the request allows.
    Best,
    /// No edge leads on; the best bundle, which is not reached.
    Stranded(String),
    /// What comes next cannot be chosen, and why.
    Fails(Box<extension::Failure>),
}

impl Extensions {
    /// What becomes of the extensions of a state, and with changes of their catalogs.
    ///
    /// # Errors
    /// If a folder does not exist, or a change names a catalog that does not.
    pub(super) fn of(
        io: &Io<'_>,
        folders: &Folders,
        state: &State,
        said: &Said<'_>,
        changes: &[Change],
    ) -> Result<Self, Failure> {
        if state.extensions.is_empty() {
            return Ok(Self::default());
        }
        let mut shops = shops(io, folders, state, said)?;
        let ways = ways(state, &shops);
        let mut supposed = Vec::new();
        for change in changes {
            match &change.what {
                What::Catalog(folder) if state.is_for_extensions(&folder.name) => {
                    put(io, folders, &mut shops, folder)?;
                }
                What::Outage(CatalogName { namespace: None, name }) if shops.contains_key(name) => {
                    if let Some(shop) = shops.get_mut(name) {
                        shop.is_out = true;
                    }
                }
                What::Outage(name) if state.is_for_extensions_only(name, said.packages) => {
                    let known: Vec<String> = shops.keys().cloned().collect();
                    let why = format!("there is no catalog `{name}`, only {}", known.join(", "));
                    let what = format!("--what-if {} cannot be supposed", change.typed);
                    return Err(Failure::usage(Cause::new(what).because(Cause::new(why))));
                }
                _ => continue,
            }
            supposed.push(change.typed.clone());
        }
        let after = (!supposed.is_empty()).then(|| self::ways(state, &shops));
        let broken = shops.into_values().filter_map(|shop| match shop.stock.as_deref() {
            Some(Stock::Failed(_, cause)) => Some((shop.object.name().to_owned(), cause.clone())),
            _ => None,
        });
        Ok(Self { ways, after, broken: broken.collect(), changes: supposed })
    }

    /// Whether there is none.
    pub(super) const fn is_empty(&self) -> bool {
        self.ways.is_empty()
    }

    /// What counts: with what is supposed, if something is.
    fn counts(&self) -> &[Way] {
        self.after.as_ref().unwrap_or(&self.ways)
    }

    /// What of the arguments is not about extensions.
    pub(super) fn notes(&self, arguments: &ResolveArguments) -> Vec<String> {
        let others = arguments.changes.iter().map(|it| &it.typed);
        let others: Vec<&str> =
            others.filter(|it| !self.changes.contains(it)).map(String::as_str).collect();
        let mut notes = Vec::new();
        if !others.is_empty() {
            let others = others.join(", ");
            notes.push(format!(
                "{others}: this is about namespaces, and changes nothing for extensions"
            ));
        }
        if arguments.save.is_some() {
            notes.push("a universe holds one namespace: the extensions are not saved".to_owned());
        }
        notes
    }

    /// Adds the answer to a JSON value.
    pub(super) fn add_to(&self, value: &mut Value) {
        value["extensions"] = self.ways.iter().map(Way::value).collect();
        if let Some(after) = &self.after {
            let rows = differences(&self.ways, after).0.into_iter();
            let rows = rows.map(|[what, before, after]| {
                json!({"operator": what, "asItIs": before, "whatIf": after})
            });
            value["extensionsWhatIf"] = json!({
                "extensions": after.iter().map(Way::value).collect::<Vec<_>>(),
                "difference": rows.collect::<Vec<_>>(),
            });
        }
    }

    /// The answer for people.
    pub(super) fn text(&self, colour: bool) -> String {
        let mut out = String::new();
        for (name, cause) in &self.broken {
            let _ = writeln!(out, "catalog {} cannot be used", plain(name));
            tree(&mut out, cause, "  ");
        }
        let number = |is: &dyn Fn(&Way) -> bool| self.counts().iter().filter(|it| is(it)).count();
        let mut parts = Vec::new();
        for (number, words) in [
            (number(&|it| !it.hops.is_empty() && it.installed.is_none()), "to install"),
            (number(&|it| !it.hops.is_empty() && it.installed.is_some()), "to upgrade"),
            (number(&|it| it.hops.is_empty() && !it.fails()), "to stay"),
        ] {
            if number > 0 {
                parts.push(format!("{number} {words}"));
            }
        }
        let failures = number(&Way::fails);
        if failures > 0 {
            parts.push(count(failures, "failure"));
        }
        let _ = writeln!(out, "extensions: {}", parts.join(", "));
        for way in self.counts() {
            way.text(&mut out, colour);
        }
        if let Some(after) = &self.after {
            let (rows, same) = differences(&self.ways, after);
            let _ = writeln!(out, "  what changes with {}", plain(&self.changes.join(", ")));
            difference(&mut out, rows, same);
        }
        out
    }

    /// The exit code, given that of the namespaces.
    pub(super) fn exit(&self, arguments: &ResolveArguments, exit: Exit) -> Exit {
        if !self.broken.is_empty() || self.counts().iter().any(Way::fails) {
            return Exit::Unresolved;
        }
        let changes = arguments.exit_code && self.counts().iter().any(|way| !way.hops.is_empty());
        if exit == Exit::Done && changes { Exit::Changes } else { exit }
    }
}

/// What becomes of each extension.
fn ways(state: &State, shops: &BTreeMap<String, Shop>) -> Vec<Way> {
    let mut ways: Vec<Way> = state.extensions.iter().map(|it| Way::of(it, shops)).collect();
    ways.sort_by(|a, b| a.name.cmp(&b.name));
    ways
}

/// What differs between ways, as rows of extension, before, after; and how many are the same.
fn differences(before: &[Way], after: &[Way]) -> (Vec<[String; 3]>, usize) {
    let mut rows = Vec::new();
    for (before, after) in before.iter().zip(after) {
        let (was, is) = (before.fate(), after.fate());
        if was != is {
            rows.push([plain(&after.name), was, is]);
        }
    }
    let same = before.len() - rows.len();
    (rows, same)
}

/// Gives a catalog the content of a folder, whether it is there already or new.
fn put(
    io: &Io<'_>,
    folders: &Folders,
    shops: &mut BTreeMap<String, Shop>,
    folder: &CatalogFolder,
) -> Result<(), Failure> {
    let name = &folder.name.name;
    let shop = shops.entry(name.clone()).or_insert_with(|| {
        let gvk = mainstay_object::Gvk::new("olm.operatorframework.io", "v1", "ClusterCatalog");
        Shop::of(Object::new(&gvk, name))
    });
    shop.stock = Some(folders.load(io, &folder.folder)?);
    shop.folder.clone_from(&folder.folder);
    Ok(())
}

/// The catalogs of a state and those that were named, with their content.
fn shops(
    io: &Io<'_>,
    folders: &Folders,
    state: &State,
    said: &Said<'_>,
) -> Result<BTreeMap<String, Shop>, Failure> {
    let mut shops: BTreeMap<String, Shop> = BTreeMap::new();
    for object in &state.cluster_catalogs {
        shops.insert(object.name().to_owned(), Shop::of(object.clone()));
    }
    for folder in said.folders.iter().filter(|it| state.is_for_extensions(&it.name)) {
        put(io, folders, &mut shops, folder)?;
    }
    for given in said.priorities.iter().filter(|it| state.is_for_extensions(&it.name)) {
        let Some(shop) = shops.get_mut(&given.name.name) else {
            let why = Cause::new(format!("there is no catalog `{}`", given.name));
            let what = format!("--priority {}={} cannot be used", given.name, given.priority);
            return Err(Failure::usage(Cause::new(what).because(why)));
        };
        let priority = i32::try_from(given.priority).map_err(|_| {
            let why = "the priority of a ClusterCatalog has 32 bits";
            let what = format!("--priority {}={} cannot be used", given.name, given.priority);
            Failure::usage(Cause::new(what).because(Cause::new(why)))
        })?;
        shop.priority = Some(priority);
    }
    Ok(shops)
}

impl Shop {
    const fn of(object: Object) -> Self {
        Self { object, priority: None, stock: None, folder: String::new(), is_out: false }
    }

    /// What people can do about it if it is in the way.
    fn remedy(&self) -> Option<String> {
        match self.stock.as_deref() {
            _ if self.is_out => None,
            Some(Stock::Ready(..)) => None,
            Some(Stock::Failed(..)) => Some(format!("correct the folder {}", self.folder)),
            Some(Stock::Missing(_)) | None => {
                Some(format!("give its content with --catalog {}=DIR", self.object.name()))
            }
        }
    }

    fn offer(&self, package: &str) -> Option<Offer> {
        match self.stock.as_deref() {
            Some(Stock::Ready(_, Origin::Catalog(catalog))) => {
                catalog.package(package).map(Offer::of)
            }
            _ => None,
        }
    }

    /// The catalog as extensions see it.
    fn view<'a>(&self, offer: Option<&'a Offer>) -> Catalog<'a> {
        let content = match self.stock.as_deref() {
            _ if self.is_out => Content::Failed("an outage is supposed".to_owned()),
            Some(Stock::Ready(..)) => Content::Offer(offer),
            Some(Stock::Failed(message, _)) => Content::Failed(message.clone()),
            Some(Stock::Missing(_)) | None => {
                let serves = self.object.condition("Serving") == Some("True");
                let unknown = self.object.get(&["status", "conditions"]).is_none();
                if serves || unknown {
                    Content::Failed("its content is not at hand here".to_owned())
                } else {
                    Content::NotServed
                }
            }
        };
        let catalog = Catalog::of(&self.object, content);
        Catalog { priority: self.priority.unwrap_or(catalog.priority), ..catalog }
    }
}

impl Way {
    /// Follows an extension to its end.
    fn of(object: &Object, shops: &BTreeMap<String, Shop>) -> Self {
        let request = Request::of(object);
        let offers: Vec<_> = shops.values().map(|shop| shop.offer(&request.package)).collect();
        let catalogs: Vec<Catalog<'_>> =
            shops.values().zip(&offers).map(|(shop, offer)| shop.view(offer.as_ref())).collect();
        let installed = Installed::of(object);
        let mut at = installed.clone();
        let mut hops: Vec<Choice> = Vec::new();
        let mut seen: BTreeSet<String> = BTreeSet::new();
        let end = loop {
            match resolve(&request, at.as_ref(), &catalogs) {
                Err(mut failure) => {
                    if failure.kind == FailureKind::Unreadable {
                        failure.cause = reworded(&failure.cause, shops);
                    }
                    break End::Fails(failure);
                }
                Ok(choice) => {
                    let arrived = at.as_ref().is_some_and(|it| it.name == *choice.bundle);
                    let again = !seen.insert(choice.bundle.to_string());
                    if arrived || again || hops.len() == MOST_STEPS {
                        break rest(&request, &choice, &catalogs);
                    }
                    at = Some(Installed {
                        name: choice.bundle.to_string(),
                        version: choice.version.to_string(),
                        release: None,
                    });
                    hops.push(choice);
                }
            }
        };
        Self { name: object.name().to_owned(), package: request.package, installed, hops, end }
    }

    fn fails(&self) -> bool {
        self.hops.is_empty() && matches!(self.end, End::Fails(_))
    }

    /// What becomes of it, in a few words.
    fn fate(&self) -> String {
        let names: Vec<&str> = self
            .installed
            .iter()
            .map(|it| &*it.name)
            .chain(self.hops.iter().map(|hop| &*hop.bundle))
            .collect();
        let way = match names.as_slice() {
            [] => "nothing".to_owned(),
            [one] if self.hops.is_empty() => format!("{one} stays"),
            [one] => (*one).to_owned(),
            [first, second] => format!("{first} → {second}"),
            [first, .., last] => format!("{first} → … → {last} ({} hops)", self.hops.len()),
        };
        let end = match &self.end {
            End::Best => "",
            End::Stranded(_) => ", stranded there",
            End::Fails(_) if self.hops.is_empty() => ", fails",
            End::Fails(_) => ", held there",
        };
        plain(&format!("{way}{end}"))
    }

    fn text(&self, out: &mut String, colour: bool) {
        let paint = |code: &str, text: &str| {
            if colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
        };
        let word = match (&self.installed, self.hops.is_empty()) {
            (_, true) if self.fails() => paint("31", "fails"),
            (_, true) => paint("2", "stays"),
            (None, false) => paint("32", "install"),
            (Some(_), false) => paint("32", "upgrade"),
        };
        let _ = write!(out, "  {word} {} (package {}", plain(&self.name), plain(&self.package));
        if let Some(first) = self.hops.first() {
            let _ = write!(out, " from {}", plain(&first.catalog));
        }
        out.push_str(")\n");
        if let Some(installed) = &self.installed {
            line(out, "installed", &plain(&installed.name));
        }
        let names: Vec<String> = self.hops.iter().map(|hop| plain(&hop.bundle)).collect();
        if let [now, then @ ..] = names.as_slice() {
            line(out, "now", now);
            chain(out, "then", then);
        }
        match &self.end {
            End::Best => line(out, "end", "the best that it asks for"),
            End::Stranded(best) => {
                let words = format!("stranded: no update leads to {}", plain(best));
                line(out, "end", &paint("33", &words));
            }
            End::Fails(failure) => {
                if !self.hops.is_empty() {
                    line(out, "end", &paint("33", "held: what comes next cannot be chosen"));
                }
                tree(out, &Cause::new(&failure.message), "    ");
                tree(out, &failure.cause, "    ");
            }
        }
    }

    fn value(&self) -> Value {
        let hops = self.hops.iter().zip(1..).map(|(hop, step)| {
            json!({
                "step": step, "catalog": hop.catalog, "bundle": hop.bundle,
                "version": hop.version.to_string(), "image": hop.image,
            })
        });
        let last = self.hops.last().map(|hop| hop.bundle.to_string());
        let last = last.or_else(|| self.installed.as_ref().map(|it| it.name.clone()));
        let (kind, best) = match &self.end {
            End::Best => ("head", None),
            End::Stranded(best) => ("stranded", Some(best)),
            End::Fails(_) if self.hops.is_empty() => ("failed", None),
            End::Fails(_) => ("held", None),
        };
        let mut value = json!({
            "name": self.name,
            "package": self.package,
            "installed": self.installed.as_ref().map(|it| &it.name),
            "hops": hops.collect::<Vec<_>>(),
            "end": {"kind": kind, "bundle": last},
        });
        if let Some(best) = best {
            value["end"]["head"] = json!(best);
        }
        if let End::Fails(failure) = &self.end {
            value["error"] = json!(failure.message);
            value["explanation"] = cause_json(&failure.cause);
            value["repairs"] = failure.repairs.iter().map(ToString::to_string).collect();
        }
        value
    }
}

/// Why catalogs cannot be asked, with what can be done here.
fn reworded(cause: &Cause, shops: &BTreeMap<String, Shop>) -> Cause {
    let made = Cause::new(cause.what()).because_all(cause.children().iter().cloned());
    let remedies: Vec<String> = shops.values().filter_map(Shop::remedy).collect();
    let outage = shops.values().any(|shop| shop.is_out);
    let others = cause.remedies().iter().filter(|_| outage || remedies.is_empty());
    others.chain(&remedies).fold(made, Cause::remedy)
}

/// Whether something better is there that no edge leads to.
fn rest(request: &Request, last: &Choice, catalogs: &[Catalog<'_>]) -> End {
    let free = Request { policy: Policy::SelfCertified, ..request.clone() };
    match resolve(&free, None, catalogs) {
        Ok(best) if best.bundle != last.bundle => End::Stranded(best.bundle.to_string()),
        _ => End::Best,
    }
}
