//! Text format of inputs, and outcomes as readable text.
//!
//! ```text
//! group fail-forward exclude-global        (without such a line there is one plain group)
//! no-group
//! kubernetes 1.29.0                        version of the cluster
//! restore                                  deleted ClusterServiceVersions are installed again
//! demand b:>=1.0.0                         a demanded package, all versions without `:`
//! without package b: MESSAGE               a prohibition: of a package, of a bundle,
//! without bundle b.v2: MESSAGE             or of all packages that are not in a list
//! only a,c: MESSAGE
//! catalog cat/tenant 5                     name/namespace, priority
//! catalog cat/tenant 5 not-connected       a catalog without content
//! catalog cat/tenant fails REASON          a catalog that cannot be read
//!   bundle a.v1 1.0.0 provides Apple requires Bread needs b:>=1.0.0 label fast deprecated
//!                                          also wants-label, rule, min-kube, and in the older
//!                                          form: provided-api, required-api
//!   property KIND VALUE                    of the bundle or CSV above; values are YAML
//!   constraint VALUE                       property olm.constraint VALUE
//!   dependency KIND VALUE                  requirement in the older form
//!   literal KIND TEXT                      property with a text that need not be JSON
//!   long-constraint 131072 Bread           olm.constraint of that many bytes for an API
//!   channel a/stable* a.v2>a.v1 a.v1       package/channel, * for the default; per entry
//!                                          NAME[>REPLACES][-SKIP...][@RANGE], _ for a blank
//! sub a a/stable cat/tenant start=a.v1 installed=a.v1 current=a.v1
//! csv a.v1 1.0.0 package=a provides=Apple requires=Bread needs=b:>=1.0.0 phase=Replacing
//!     replaces=a.v0 copied                 (one line) without package= there is no annotation; then
//!                                          crd= and requires-crd= name CRDs
//! csv a.v1 of cat/tenant phase=Failed      with version and properties of the bundle
//! annotation TEXT                          of the CSV above
//! delete sub a                             for inputs that change: also csv, catalog
//! twin sub a …                             a second object of the name: also csv, catalog
//! ```
//!
//! Kinds are `Kind`, `Kind.version` or `Kind.version.group`, several with commas. A bundle without
//! a version, or without a line, has the version in its name: `a.v2` has 2.0.0. A line for an
//! object that exists replaces the object.

mod catalogs;

use catalogs::{CatalogState, Draft, TestCatalog, build_catalog, bundle, catalog};
use mainstay_resolver::{
    CatalogContent, CatalogKey, CatalogView, CrdReference, Demand, ExistingCsv, OperatorApi,
    OperatorGroup, Prohibited, Prohibition, Resolution, ResolutionInput, Subscription, resolve,
};
use mainstay_version::{Range, parse_tolerant};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt::Write as _;

/// The type and the value of a property.
type PropertyText = (String, String);

/// An input that owns the content of its catalogs.
#[derive(Default)]
pub(crate) struct TestWorld {
    catalogs: Vec<TestCatalog>,
    input: ResolutionInput<'static>,
    /// Whether deleted `ClusterServiceVersion`s are installed again.
    restores: bool,
    /// The properties in the annotations of CSVs.
    annotations: HashMap<String, Vec<PropertyText>>,
}

fn key(text: &str) -> CatalogKey {
    let (name, namespace) = text.split_once('/').unwrap_or((text, "tenant"));
    CatalogKey::new(name, namespace)
}

fn api(text: &str) -> OperatorApi {
    let mut parts = text.splitn(3, '.');
    let (kind, version) = (parts.next().unwrap(), parts.next().unwrap_or("v1"));
    OperatorApi::new(parts.next().unwrap_or("example.com"), version, kind)
}

fn apis(text: &str) -> Vec<OperatorApi> {
    text.split(',').map(api).collect()
}

fn gvk(kind: &str, api: &OperatorApi) -> PropertyText {
    let OperatorApi { group, version, kind: name } = api;
    (kind.to_owned(), json!({"group": group, "version": version, "kind": name}).to_string())
}

fn needs(text: &str) -> PropertyText {
    let (package, range) = text.split_once(':').unwrap();
    let range = range.replace('_', " ");
    let value = json!({"packageName": package, "versionRange": range});
    ("olm.package.required".to_owned(), value.to_string())
}

fn identity(package: &str, version: &str) -> PropertyText {
    let value = json!({"packageName": package, "version": version});
    ("olm.package".to_owned(), value.to_string())
}

fn yaml(text: &str) -> String {
    let read = mainstay_yaml::one(text.as_bytes(), &mainstay_yaml::Options::default());
    read.unwrap_or_else(|error| panic!("{text}: {error:?}")).to_string()
}

/// The first word of a text, and the rest.
fn first(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim())
}

/// The object that the next lines about properties belong to.
enum PropertyOwner {
    Nothing,
    Bundle(String),
    Csv(String),
}

impl TestWorld {
    /// Reads an input.
    pub(crate) fn read(text: &str) -> Self {
        let mut test_input = Self::default();
        "tenant".clone_into(&mut test_input.input.namespace);
        "olm".clone_into(&mut test_input.input.global_namespace);
        test_input.input.operator_groups.push(OperatorGroup::default());
        test_input.change(text);
        test_input
    }

    /// Reads changes of the input.
    pub(crate) fn change(&mut self, text: &str) {
        let mut drafts: Vec<Draft> = Vec::new();
        let mut owner = PropertyOwner::Nothing;
        let mut is_first_group = true;
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (mut verb, mut rest) = first(line);
            let is_duplicate = verb == "twin";
            if is_duplicate {
                (verb, rest) = first(rest);
            }
            let words: Vec<&str> = rest.split_whitespace().collect();
            match (verb, words.as_slice()) {
                ("#", _) => {}
                ("group", flags) => {
                    if std::mem::take(&mut is_first_group) {
                        self.input.operator_groups.clear();
                    }
                    self.input.operator_groups.push(OperatorGroup {
                        name: "group".to_owned(),
                        fail_forward: flags.contains(&"fail-forward"),
                        exclude_global: flags.contains(&"exclude-global"),
                    });
                }
                ("no-group", []) => self.input.operator_groups.clear(),
                ("restore", []) => self.restores = true,
                ("catalog", [name, ..]) => {
                    if !is_duplicate {
                        self.delete("catalog", name);
                    }
                    drafts.push(catalog(name, first(rest).1));
                }
                ("bundle", [name, rest @ ..]) => {
                    let bundles = &mut drafts.last_mut().unwrap().bundles;
                    bundles.insert((*name).to_owned(), bundle(name, rest));
                    owner = PropertyOwner::Bundle((*name).to_owned());
                }
                ("channel", _) => {
                    let channel = words.iter().map(|word| (*word).to_owned()).collect();
                    drafts.last_mut().unwrap().channels.push(channel);
                }
                ("sub", [name, of, from, rest @ ..]) => {
                    if !is_duplicate {
                        self.delete("sub", name);
                    }
                    self.input.subscriptions.push(subscription(name, of, from, rest));
                }
                ("csv", [name, rest @ ..]) => {
                    if !is_duplicate {
                        self.delete("csv", name);
                    }
                    self.add_csv(name, rest);
                    owner = PropertyOwner::Csv((*name).to_owned());
                }
                ("property" | "constraint" | "dependency" | "literal" | "long-constraint", _) => {
                    let property = property(verb, rest);
                    match &owner {
                        PropertyOwner::Bundle(name) => {
                            let bundles = &mut drafts.last_mut().unwrap().bundles;
                            let bundle = bundles.get_mut(name).unwrap();
                            let list = match verb {
                                "dependency" => &mut bundle.dependencies,
                                _ => &mut bundle.properties,
                            };
                            list.push(property);
                        }
                        PropertyOwner::Csv(name) => {
                            self.annotations.entry(name.clone()).or_default().push(property);
                            self.annotate(&name.clone());
                        }
                        PropertyOwner::Nothing => panic!("{line}: of what?"),
                    }
                }
                ("annotation", _) => {
                    if let PropertyOwner::Csv(name) = &owner {
                        self.annotations.remove(name);
                    }
                    self.input.csvs.last_mut().unwrap().properties = Some(rest.to_owned());
                }
                ("delete", [what, name]) => self.delete(what, name),
                _ => self.rule(verb, rest),
            }
        }
        self.catalogs.extend(drafts.into_iter().map(build_catalog));
        // A CSV can refer to the bundle of a catalog in a later line.
        let names: Vec<String> = self.input.csvs.iter().map(|csv| csv.name.clone()).collect();
        for name in names {
            self.annotate(&name);
        }
    }

    fn delete(&mut self, what: &str, name: &str) {
        match what {
            "sub" => self.input.subscriptions.retain(|subscription| subscription.name != name),
            "csv" => self.input.csvs.retain(|csv| csv.name != name),
            "catalog" => self.catalogs.retain(|catalog| catalog.key != key(name)),
            other => panic!("delete {other}"),
        }
    }

    /// Reads a line about the whole namespace.
    fn rule(&mut self, verb: &str, rest: &str) {
        let split_message = |text: &str| {
            let (what, message) = text.split_once(':').unwrap();
            (what.trim().to_owned(), message.trim().to_owned())
        };
        let mut prohibit = |what, message| {
            self.input.prohibitions.push(Prohibition { what, message });
        };
        match (verb, first(rest)) {
            ("kubernetes", (version, "")) => {
                self.input.kube_version = Some(parse_tolerant(version).unwrap());
            }
            ("demand", _) => {
                let (package, range) = rest.split_once(':').unwrap_or((rest, ""));
                let range = (!range.is_empty()).then(|| Range::parse(range).unwrap());
                self.input.demands.push(Demand { package: package.to_owned(), range });
            }
            ("only", _) => {
                let (list, message) = split_message(rest);
                let packages = list.split(',').map(str::to_owned).collect();
                prohibit(Prohibited::OutsideOf(packages), message);
            }
            ("without", ("package", rest)) => {
                let (name, message) = split_message(rest);
                prohibit(Prohibited::Package(name), message);
            }
            ("without", ("bundle", rest)) => {
                let (name, message) = split_message(rest);
                prohibit(Prohibited::Bundle(name), message);
            }
            _ => panic!("{verb} {rest}"),
        }
    }

    fn add_csv(&mut self, name: &str, words: &[&str]) {
        let text = |name: &str| value(words, name).unwrap_or_default().to_owned();
        let list = |name: &str| value(words, name).map(apis).unwrap_or_default();
        let mut csv = ExistingCsv {
            name: name.to_owned(),
            replaces: text("replaces"),
            phase: value(words, "phase").unwrap_or("Succeeded").to_owned(),
            copied: words.contains(&"copied"),
            ..ExistingCsv::default()
        };
        self.annotations.remove(name);
        if let ["of", catalog, ..] = words {
            // Resolved when all catalogs are known.
            self.annotations.insert(name.to_owned(), vec![("of".to_owned(), (*catalog).into())]);
        } else if let Some(package) = value(words, "package") {
            csv.version = parse_tolerant(words[0]).ok();
            let mut properties = vec![identity(package, words[0])];
            properties.extend(list("provides").iter().map(|api| gvk("olm.gvk", api)));
            properties.extend(list("requires").iter().map(|api| gvk("olm.gvk.required", api)));
            properties.extend(value(words, "needs").map(needs));
            self.annotations.insert(name.to_owned(), properties);
        } else {
            csv.version = parse_tolerant(words[0]).ok();
            csv.owned_apis = list("provides");
            csv.required_apis = list("requires");
            csv.owned_crds = list("crd").iter().map(crd).collect();
            csv.required_crds = list("requires-crd").iter().map(crd).collect();
        }
        self.input.csvs.push(csv);
    }

    /// Writes the properties of a CSV into its annotation.
    fn annotate(&mut self, name: &str) {
        let Some(properties) = self.annotations.get(name) else { return };
        let (mut all, mut version) = (Vec::new(), None);
        for (kind, text) in properties {
            if kind != "of" {
                all.push((kind.clone(), text.clone()));
                continue;
            }
            let catalog = self.catalogs.iter().find(|catalog| catalog.key == key(text));
            let Some(known) = catalog.and_then(|catalog| catalog.bundles.get(name)) else { return };
            version = parse_tolerant(&known.0).ok();
            all.extend(known.1.iter().cloned());
        }
        if let Some(csv) = self.input.csvs.iter_mut().find(|csv| csv.name == name) {
            csv.properties = Some(annotation(&all));
            csv.version = version.or(csv.version.take());
        }
    }

    /// The resolution input.
    pub(crate) fn input(&self) -> ResolutionInput<'_> {
        let mut input = self.input.clone();
        input.catalogs = self
            .catalogs
            .iter()
            .map(|TestCatalog { key, priority, state, .. }| CatalogView {
                key: key.clone(),
                priority: *priority,
                content: match state {
                    CatalogState::Ready(snapshot) => CatalogContent::Ready(snapshot),
                    CatalogState::NotConnected => CatalogContent::NotConnected,
                    CatalogState::Failed(reason) => CatalogContent::Failed(reason.clone()),
                },
            })
            .collect();
        if self.restores {
            input.restore_deleted();
        }
        input
    }

    /// Applies an outcome, as if all installations succeeded.
    pub(crate) fn follow(&mut self, outcome: &Resolution) {
        for install in &outcome.installs {
            let chosen = &outcome.resolved[install.chosen];
            let catalog =
                self.catalogs.iter().find(|catalog| catalog.key == chosen.catalog).unwrap();
            let known = catalog.bundles.get(&chosen.name).cloned();
            let (version, mut properties) = known.unwrap_or_default();
            if !properties.iter().any(|(kind, _)| kind == "olm.package") {
                properties.push(identity(&chosen.package, &version));
            }
            let replaces = chosen.replaces.clone().unwrap_or_default();
            self.input.csvs.retain(|csv| csv.name != chosen.name && csv.name != replaces);
            self.annotations.insert(chosen.name.clone(), properties);
            self.input.csvs.push(ExistingCsv {
                name: chosen.name.clone(),
                version: parse_tolerant(&version).ok(),
                replaces,
                phase: "Succeeded".to_owned(),
                ..ExistingCsv::default()
            });
            self.annotate(&chosen.name);
        }
        for new in &outcome.new_subscriptions {
            self.input.subscriptions.push(Subscription {
                name: new.name.clone(),
                package: new.package.clone(),
                channel: new.channel.clone(),
                catalog: new.catalog.clone(),
                starting_csv: new.starting_csv.clone(),
                restores: false,
                installed_csv: new.starting_csv.clone(),
                current_csv: new.starting_csv.clone(),
            });
        }
        for updated in &outcome.updated_subscriptions {
            let mut all = self.input.subscriptions.iter_mut();
            let subscription = all.find(|subscription| subscription.name == updated.name).unwrap();
            subscription.installed_csv.clone_from(&updated.current_csv);
            subscription.current_csv.clone_from(&updated.current_csv);
        }
    }
}

fn annotation(properties: &[PropertyText]) -> String {
    let items: Vec<String> = properties
        .iter()
        .map(|(kind, text)| format!("{{\"type\":{},\"value\":{text}}}", json!(kind)))
        .collect();
    format!("{{\"properties\":[{}]}}", items.join(","))
}

fn value<'t>(words: &[&'t str], name: &str) -> Option<&'t str> {
    words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

fn crd(api: &OperatorApi) -> CrdReference {
    let OperatorApi { group, version, kind } = api;
    let name = format!("{}s.{group}", kind.to_lowercase());
    CrdReference { name, version: version.clone(), kind: kind.clone() }
}

/// The property of a `property`, `constraint` or similar line.
fn property(verb: &str, rest: &str) -> PropertyText {
    let (word, value) = first(rest);
    match verb {
        "constraint" => ("olm.constraint".to_owned(), yaml(rest)),
        "literal" => (word.to_owned(), value.to_owned()),
        "long-constraint" => {
            let length: usize = word.parse().unwrap();
            let gvk: Value = serde_json::from_str(&gvk("", &api(value)).1).unwrap();
            let empty = json!({"failureMessage": "", "gvk": gvk}).to_string();
            let message = "x".repeat(length - empty.len());
            let text = json!({"failureMessage": message, "gvk": gvk}).to_string();
            ("olm.constraint".to_owned(), text)
        }
        _ => (word.to_owned(), yaml(value)),
    }
}

fn subscription(name: &str, of: &str, from: &str, rest: &[&str]) -> Subscription {
    let text = |name: &str| value(rest, name).unwrap_or_default().to_owned();
    let (package, channel) = of.split_once('/').unwrap_or((of, ""));
    Subscription {
        name: name.to_owned(),
        package: package.to_owned(),
        channel: channel.to_owned(),
        catalog: if from == "any" { CatalogKey::default() } else { key(from) },
        starting_csv: text("start"),
        restores: false,
        installed_csv: text("installed"),
        current_csv: value(rest, "current").unwrap_or(&text("installed")).to_owned(),
    }
}

/// The outcome of an input in text, as text.
pub(crate) fn outcome(text: &str) -> String {
    render(&resolve(&TestWorld::read(text).input()))
}

/// An outcome as text.
pub(crate) fn render(outcome: &Resolution) -> String {
    let mut out = String::new();
    for (at, chosen) in outcome.resolved.iter().enumerate() {
        let install = outcome.installs.iter().find(|install| install.chosen == at);
        let verb = if install.is_some() { "install" } else { "keep" };
        write!(out, "{verb} {} of {}/{}", chosen.name, chosen.package, chosen.channel).unwrap();
        write!(out, " from {}", chosen.catalog).unwrap();
        if let Some(replaces) = &chosen.replaces {
            write!(out, ", replaces {replaces}").unwrap();
        }
        if let Some(install) = install.filter(|install| !install.subscriptions.is_empty()) {
            write!(out, ", for {}", install.subscriptions.join(" ")).unwrap();
        }
        out.push('\n');
    }
    for subscription in &outcome.new_subscriptions {
        writeln!(out, "subscribe {} to {}", subscription.name, subscription.starting_csv).unwrap();
    }
    for subscription in &outcome.updated_subscriptions {
        writeln!(out, "update {} to {}", subscription.name, subscription.current_csv).unwrap();
    }
    for failure in &outcome.failures {
        writeln!(out, "{} ({:?}): {}", failure.kind.reason(), failure.kind, failure.message)
            .unwrap();
    }
    if out.is_empty() { "nothing to do".to_owned() } else { out }
}
