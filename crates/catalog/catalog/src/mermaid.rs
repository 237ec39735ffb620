//! Mermaid diagrams of channels, byte for byte as upstream writes them.
//!
//! Names are not escaped. `mainstay catalog graph` draws diagrams for people.

use crate::{
    Rendition,
    decode::{self, BundleVersionError, ChannelFacts, EntryFacts, Facts, ShapeError},
    write::{Class, WriteError},
};
use mainstay_gocompat::quote;
use mainstay_gocompat::sort_slice;
use mainstay_version::{Range, Version};
use serde_json::Map;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt::Write,
};

/// The content and style of a diagram.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiagramOptions<'o> {
    /// Draw only updates to bundles at or above the version of this bundle.
    pub minimum: Option<&'o str>,
    /// Draw only this package.
    pub package: Option<&'o str>,
    /// Mark bundles that are skipped, and updates from them that OLM would not follow.
    pub semantics: bool,
}

/// Why a diagram cannot be drawn.
#[derive(Debug, thiserror::Error)]
pub enum DiagramError {
    /// A document cannot be read back.
    #[error(transparent)]
    Content(#[from] WriteError),
    /// A document does not have the shape of its schema.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// A bundle does not have one version.
    #[error(transparent)]
    Version(#[from] BundleVersionError),
    /// The catalog has no bundle of the minimum's name.
    #[error("unknown minimum edge name: {}", quote(name))]
    UnknownMinimum {
        /// The requested name.
        name: String,
    },
}

/// A diagram.
#[derive(Clone, Debug, Default)]
pub struct Diagram {
    /// The diagram in Mermaid's language.
    pub text: String,
    /// Warnings about what was left out.
    pub warnings: Vec<String>,
}

impl Rendition {
    /// Draws the channels and their updates as a Mermaid diagram, in upstream's bytes.
    ///
    /// # Errors
    /// A bundle without a single version, an unknown minimum, or an unreadable document.
    pub fn diagram(&self, options: &DiagramOptions<'_>) -> Result<Diagram, DiagramError> {
        let source = DiagramInput::of(self)?;
        let mut builder = DiagramBuilder::new(&source, options)?;
        for channel in &source.channels {
            builder.channel(channel);
        }
        Ok(builder.finish())
    }
}

struct Channel {
    package: String,
    name: String,
    entries: Vec<EntryFacts>,
}

/// The catalog content that a diagram shows.
#[derive(Default)]
struct DiagramInput {
    /// By name, in upstream's order.
    channels: Vec<Channel>,
    versions: HashMap<String, Version>,
    /// Names of deprecated packages, channels and bundles, of any package.
    deprecated: [BTreeSet<String>; 3],
}

impl DiagramInput {
    fn of(rendition: &Rendition) -> Result<Self, DiagramError> {
        let mut source = Self::default();
        for item in rendition.items() {
            let schema = match item.class {
                Class::Channel => "olm.channel",
                Class::Bundle if source.versions.contains_key(&*item.name) => continue,
                Class::Bundle => "olm.bundle",
                Class::Deprecations => "olm.deprecations",
                Class::Package | Class::Other => continue,
            };
            let value = item.value()?;
            let empty = Map::new();
            let fields = value.as_object().unwrap_or(&empty);
            match decode::facts(schema, fields)? {
                Facts::Channel(ChannelFacts { entries }) => {
                    let (package, name) = (item.package.to_string(), item.name.to_string());
                    source.channels.push(Channel { package, name, entries });
                }
                Facts::Bundle(facts) => {
                    let name = item.name.to_string();
                    let (_, version) = facts.version(&name)?;
                    source.versions.insert(name, version);
                }
                Facts::Deprecations(entries) => {
                    for entry in entries {
                        let [packages, channels, bundles] = &mut source.deprecated;
                        match entry.schema.as_str() {
                            "olm.package" => packages.insert(item.package.to_string()),
                            "olm.channel" => channels.insert(entry.name),
                            "olm.bundle" => bundles.insert(entry.name),
                            _ => false,
                        };
                    }
                }
                Facts::Package(_) | Facts::Other => {}
            }
        }
        let mut order: Vec<usize> = (0..source.channels.len()).collect();
        sort_slice(&mut order, |a, b| source.channels[*a].name < source.channels[*b].name);
        let mut channels: Vec<Option<Channel>> =
            std::mem::take(&mut source.channels).into_iter().map(Some).collect();
        source.channels = order.into_iter().filter_map(|at| channels[at].take()).collect();
        Ok(source)
    }

    /// The version of a bundle; 0.0.0 for an unknown one.
    fn version(&self, name: &str) -> Version {
        self.versions.get(name).cloned().unwrap_or_else(|| Version::new(0, 0, 0))
    }
}

/// A diagram under construction.
struct DiagramBuilder<'d> {
    source: &'d DiagramInput,
    options: &'d DiagramOptions<'d>,
    /// The minimum bundle, its version and its package.
    floor: Option<(&'d str, Version, &'d str)>,
    packages: BTreeMap<&'d str, String>,
    deprecated_package: Option<&'d str>,
    deprecated_channels: Vec<String>,
    /// Bundles by style class.
    classes: BTreeMap<&'static str, Vec<String>>,
    links: usize,
    /// The numbers of updates that OLM would not follow.
    ignored_links: Vec<String>,
    warnings: Vec<String>,
}

impl<'d> DiagramBuilder<'d> {
    fn new(
        source: &'d DiagramInput,
        options: &'d DiagramOptions<'d>,
    ) -> Result<Self, DiagramError> {
        let floor = match options.minimum {
            None => None,
            Some(name) => {
                let version = source
                    .versions
                    .get(name)
                    .ok_or_else(|| DiagramError::UnknownMinimum { name: name.to_owned() })?;
                let contains =
                    |channel: &&Channel| channel.entries.iter().any(|entry| entry.name == name);
                let package =
                    source.channels.iter().find(contains).map_or("", |channel| &*channel.package);
                Some((name, version.clone(), package))
            }
        };
        Ok(Self {
            source,
            options,
            floor,
            packages: BTreeMap::new(),
            deprecated_package: None,
            deprecated_channels: Vec::new(),
            classes: BTreeMap::new(),
            links: 0,
            ignored_links: Vec::new(),
            warnings: Vec::new(),
        })
    }

    /// The entries of a channel that are drawn; none if the channel is not drawn.
    fn entries(&self, channel: &Channel) -> Option<Vec<EntryFacts>> {
        let copy = |entry: &EntryFacts| EntryFacts {
            name: entry.name.clone(),
            replaces: entry.replaces.clone(),
            skips: entry.skips.clone(),
            skip_range: entry.skip_range.clone(),
        };
        if self.floor.is_none() && self.options.package.is_none() {
            return Some(channel.entries.iter().map(copy).collect());
        }
        if self.options.package.is_some_and(|package| package != channel.package) {
            return None;
        }
        let Some((name, floor, package)) = &self.floor else {
            return Some(channel.entries.iter().map(copy).collect())
                .filter(|entries: &Vec<_>| !entries.is_empty());
        };
        if !package.is_empty() && *package != channel.package {
            return None;
        }
        let leads_nowhere = |entry: &EntryFacts| {
            entry.replaces.is_empty() && entry.skips.is_empty() && entry.skip_range.is_empty()
        };
        let is_above = |name: &String| self.source.version(name) >= *floor;
        let mut stored = Vec::new();
        for entry in &channel.entries {
            if entry.name == *name {
                stored.push(EntryFacts { name: entry.name.clone(), ..EntryFacts::default() });
                continue;
            }
            let mut visible = copy(entry);
            if !visible.replaces.is_empty() && !is_above(&visible.replaces) {
                visible.replaces.clear();
            }
            visible.skips.retain(is_above);
            let holds_floor =
                |range: &str| Range::parse(range).is_ok_and(|range| range.contains(floor));
            if !holds_floor(&visible.skip_range) {
                visible.skip_range.clear();
            }
            if !leads_nowhere(&visible) || (leads_nowhere(entry) && is_above(&entry.name)) {
                stored.push(visible);
            }
        }
        (!stored.is_empty()).then_some(stored)
    }

    fn channel(&mut self, channel: &'d Channel) {
        let Some(entries) = self.entries(channel) else { return };
        let Channel { package, name, .. } = channel;
        let source = self.source;
        let [packages, channels, bundles] = &source.deprecated;
        let id = format!("{package}-{name}");
        let quoted = quote(name);
        let mut out = format!("    %% channel {quoted}\n    subgraph {id}[{quoted}]\n");
        if packages.contains(package) {
            self.deprecated_package = Some(package);
        }
        if channels.contains(name) {
            self.deprecated_channels.push(id.clone());
        }
        let versions: Vec<Version> =
            entries.iter().map(|entry| source.version(&entry.name)).collect();
        let mut order: Vec<usize> = (0..entries.len()).collect();
        sort_slice(&mut order, |a, b| versions[*a] > versions[*b]);
        let mut skipped: BTreeSet<&str> = BTreeSet::new();
        let node = |name: &str| format!("{id}-{name}[{}]", quote(name));
        for at in order {
            let entry = &entries[at];
            let target = node(&entry.name);
            let _ = writeln!(out, "      {target}");
            let class = match (bundles.contains(&entry.name), skipped.contains(&*entry.name)) {
                (true, true) => Some("deprecatedskipped"),
                (true, false) => Some("deprecated"),
                (false, true) => Some("skipped"),
                (false, false) => None,
            };
            if let Some(class) = class {
                self.classes.entry(class).or_default().push(format!("{id}-{}", entry.name));
            }
            for skip in &entry.skips {
                let _ = writeln!(out, "      {}-- skip --> {target}", node(skip));
                let is_new = !self.options.semantics || skipped.insert(skip);
                self.link(!is_new);
            }
            if !entry.skip_range.is_empty() {
                match Range::parse(&entry.skip_range) {
                    Ok(range) => {
                        for (other, version) in entries.iter().zip(&versions) {
                            if range.contains(version) {
                                let (other, range) = (node(&other.name), &entry.skip_range);
                                let _ = writeln!(
                                    out,
                                    "      {other}-- \"skipRange({range})\" --> {target}"
                                );
                                self.link(skipped.contains(&*entry.name));
                            }
                        }
                    }
                    Err(why) => self.warnings.push(format!(
                        "warning: ignoring invalid SkipRange for package/edge {}/{}: {why}",
                        quote(package),
                        quote(&entry.name)
                    )),
                }
            }
            if !entry.replaces.is_empty() {
                let _ = writeln!(out, "      {}-- replace --> {target}", node(&entry.replaces));
                self.link(skipped.contains(&*entry.name));
            }
        }
        out.push_str("    end\n");
        self.packages.entry(package).or_default().push_str(&out);
    }

    /// Counts an update; `ignored_links` marks it as one that OLM would not follow.
    fn link(&mut self, ignored_links: bool) {
        if ignored_links {
            self.ignored_links.push(self.links.to_string());
        }
        self.links += 1;
    }

    fn finish(self) -> Diagram {
        let mut out = "graph LR\n  \
                       classDef deprecated fill:#E8960F\n  \
                       classDef skipped stroke:#FF0000,stroke-width:4px\n  \
                       classDef deprecatedskipped fill:#E8960F,stroke:#FF0000,stroke-width:4px\n"
            .to_owned();
        for (package, text) in &self.packages {
            let package = quote(package);
            let _ = write!(out, "  %% package {package}\n  subgraph {package}\n{text}  end\n");
        }
        if let Some(package) = self.deprecated_package {
            let _ = writeln!(out, "style {package} fill:#989695");
        }
        for channel in &self.deprecated_channels {
            let _ = writeln!(out, "style {channel} fill:#DCD0FF");
        }
        for (class, mut nodes) in self.classes {
            nodes.sort_unstable();
            let _ = writeln!(out, "class {} {class}", nodes.join(","));
        }
        if !self.ignored_links.is_empty() {
            let _ = writeln!(
                out,
                "linkStyle {} stroke:#FF0000,stroke-width:3px,stroke-dasharray:5;",
                self.ignored_links.join(",")
            );
        }
        Diagram { text: out, warnings: self.warnings }
    }
}
