//! Update graphs and their answers as short texts.

use mainstay_updates::{
    EntryEdges, Graph, GraphBuilder, GraphView, InstalledBundle, Semantics, UpdateStep,
};
use mainstay_version::{Version, parse_tolerant};

/// The graph of package `p` with default channel `stable`, from lines such as
///
/// ```text
/// stable: p.v2 2.0.0 replaces p.v1 skips p.v1a p.v1b range >=1.0.0 <2.0.0
/// ```
///
/// A line without channel continues the channel of the line before. A `!` behind the version
/// deprecates the bundle, `x` withdraws it.
pub(crate) fn graph(text: &str) -> Graph {
    let mut builder = Graph::builder("p").default_channel("stable");
    let mut channel = "stable";
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let line = match line.split_once(": ") {
            Some((name, rest)) => {
                channel = name;
                rest
            }
            None => line,
        };
        builder = entry(builder, channel, line);
    }
    builder.finish()
}

fn entry(mut builder: GraphBuilder, channel: &str, line: &str) -> GraphBuilder {
    let (line, range) = line.split_once(" range ").map_or((line, None), |(a, b)| (a, Some(b)));
    let mut words = line.split_whitespace();
    let (name, version) = (words.next().unwrap(), words.next().unwrap());
    let mut edges = EntryEdges { skip_range: range, ..EntryEdges::default() };
    let (mut skips, mut field) = (Vec::new(), "");
    for word in words {
        match (word, field) {
            ("replaces" | "skips", _) => field = word,
            (_, "replaces") => edges.replaces = Some(word),
            (_, "skips") => skips.push(word),
            _ => panic!("{line}: {word}"),
        }
    }
    edges.skips = &skips;
    let plain = version.trim_end_matches(['!', 'x']);
    if !plain.is_empty() && plain != "-" {
        builder = builder.bundle(name, plain);
    }
    if version.contains('!') {
        builder = builder.deprecate_bundle(name, "use another one");
    }
    if version.contains('x') {
        builder = builder.withdraw(name);
    }
    builder.entry(channel, name, edges)
}

/// The view of a Subscription to channel `stable`.
pub(crate) fn classic(graph: &Graph) -> GraphView<'_> {
    graph.view(Semantics::Classic, &["stable"]).unwrap()
}

/// The view of an extension without channels.
pub(crate) fn extension(graph: &Graph) -> GraphView<'_> {
    graph.view(Semantics::Extension, &[]).unwrap()
}

/// The installed bundle, as the `name` of a bundle of the graph or as `name version`.
pub(crate) struct Here {
    name: String,
    version: Option<Version>,
}

impl Here {
    pub(crate) fn new(graph: &Graph, text: &str) -> Self {
        let (name, version) = text.split_once(' ').unwrap_or((text, ""));
        let known = graph.bundle(name).and_then(|bundle| bundle.version.clone());
        Self { name: name.to_owned(), version: parse_tolerant(version).ok().or(known) }
    }

    pub(crate) fn installed(&self) -> InstalledBundle<'_> {
        InstalledBundle::new(&self.name, self.version.as_ref())
    }
}

/// Names of the bundles that steps lead to.
pub(crate) fn names(steps: &[UpdateStep<'_>]) -> String {
    steps.iter().map(|step| &*step.bundle.name).collect::<Vec<_>>().join(" ")
}

pub(crate) fn next(view: &GraphView<'_>, here: &Here) -> String {
    view.next(&here.installed()).map(|step| step.bundle.name.to_string()).unwrap_or_default()
}

/// The path of automatic updates, and the reason if it does not end at the head.
pub(crate) fn path(view: &GraphView<'_>, here: &Here) -> String {
    let route = view.path(&here.installed());
    let end = route.end.to_string();
    let steps = names(&route.steps);
    let text = if end == "it is the head" { steps } else { format!("{steps} | {end}") };
    text.trim().to_owned()
}

/// `bundle@place: reason` of each stranded bundle.
pub(crate) fn stranded(view: &GraphView<'_>) -> Vec<String> {
    let stranded = view.stranded();
    let one = stranded
        .iter()
        .map(|place| format!("{} at {}: {}", place.bundle.name, place.at.name, place.end));
    one.collect()
}
