//! Which way a package is to go.

use mainstay_updates::{Bundle, Channel, End, Graph, Installed, Route, Semantics};
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

/// A part of a way, in one channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leg {
    /// The channel.
    pub channel: String,
    /// The versions that are installed in it one after the other, by name, the first one without the
    /// one that is there already.
    pub hops: Vec<String>,
}

/// A way from one version to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The version that is installed first, by name.
    pub start: String,
    /// Where it goes from there, channel by channel; never empty.
    pub legs: Vec<Leg>,
    /// The newest version of the package that can be asked for, by name.
    pub newest: String,
    /// Older versions than the first from which no way leads to where this one leads, by name.
    pub stranded: Vec<String>,
    /// Older versions than the first that cannot be installed, by name.
    pub barred: Vec<String>,
}

impl Plan {
    /// The version to which the way leads, by name.
    pub fn end(&self) -> &str {
        let last = self.legs.iter().rev().find_map(|leg| leg.hops.last());
        last.unwrap_or(&self.start)
    }

    /// How many updates there are.
    pub fn hops(&self) -> usize {
        self.legs.iter().map(|leg| leg.hops.len()).sum()
    }

    /// The way from the oldest version that leads to the newest that can be reached from any, of those that
    /// can be installed; none for a package of which nothing can be asked for.
    pub fn of(graph: &Graph, can: impl Fn(&str) -> bool) -> Option<Self> {
        let mut all: Vec<&Bundle> =
            graph.bundles().filter(|bundle| !channels(graph, bundle).is_empty()).collect();
        all.sort_by(|a, b| (&a.version, &a.name).cmp(&(&b.version, &b.name)));
        let newest = *all.last()?;
        // If none can be installed, the cluster says why.
        let none = !all.iter().any(|bundle| can(&bundle.name));
        let can = |name: &str| none || can(name);
        let mut plans: Vec<(usize, Vec<Leg>)> = Vec::new();
        for (at, start) in all.iter().enumerate().filter(|(_, bundle)| can(&bundle.name)) {
            plans.extend(furthest(graph, start).map(|legs| (at, legs)));
        }
        let moves = |legs: &[Leg]| legs.iter().any(|leg| !leg.hops.is_empty());
        let (at, legs) = if plans.iter().any(|(_, legs)| moves(legs)) {
            plans.retain(|(_, legs)| moves(legs));
            let end = |legs: &[Leg]| {
                let name = legs.iter().rev().find_map(|leg| leg.hops.last())?;
                graph.bundle(name)?.version.clone()
            };
            plans.into_iter().max_by_key(|(at, legs)| (end(legs), Reverse(*at)))?
        } else {
            // Nothing leads anywhere: the newest version is installed.
            plans.into_iter().next_back()?
        };
        let older = |barred: bool| {
            let of = all[..at].iter().filter(|bundle| can(&bundle.name) != barred);
            of.map(|bundle| bundle.name.to_string()).collect()
        };
        Some(Self {
            start: all[at].name.to_string(),
            legs,
            newest: newest.name.to_string(),
            stranded: older(false),
            barred: older(true),
        })
    }
}

/// The channels in which a Subscription may ask for a bundle to start with, the default one first.
fn channels(graph: &Graph, bundle: &Bundle) -> Vec<String> {
    if bundle.withdrawn {
        return Vec::new();
    }
    let mut names: Vec<(bool, String)> = Vec::new();
    for channel in graph.channels() {
        let Ok(mut chain) = channel.chain() else { continue };
        let offered = chain.any(|entry| entry.name == bundle.name)
            || channel.skipped().iter().any(|entry| entry.name == bundle.name);
        if offered {
            names.push((channel.name != graph.default_channel, channel.name.to_string()));
        }
    }
    names.sort();
    names.into_iter().map(|(_, name)| name).collect()
}

/// The way from a version to the newest that can be reached, over as few channels as possible.
fn furthest(graph: &Graph, start: &Bundle) -> Option<Vec<Leg>> {
    let mut ways: BTreeMap<&str, Vec<Leg>> = BTreeMap::new();
    let mut open: VecDeque<&Bundle> = VecDeque::new();
    let leg = |channel: &Channel, route: &Route<'_>| Leg {
        channel: channel.name.to_string(),
        hops: route.steps.iter().map(|step| step.bundle.name.to_string()).collect(),
    };
    // It has to be asked for in the first channel; in others a successor has to be there.
    let asked = channels(graph, start);
    for switch in graph.switches(Semantics::Classic, &Installed::from(start)) {
        let Some(route) = rests(switch.route.ok()) else { continue };
        let end = route.steps.last().map_or(start, |step| step.bundle);
        let channel = switch.channel;
        if asked.iter().any(|name| **name == *channel.name) && !ways.contains_key(&*end.name) {
            ways.insert(&end.name, vec![leg(channel, &route)]);
            open.push_back(end);
        }
    }
    while let Some(from) = open.pop_front() {
        let way = ways.get(&*from.name).cloned().unwrap_or_default();
        for switch in graph.switches(Semantics::Classic, &Installed::from(from)) {
            let Some(route) = rests(switch.route.ok()) else { continue };
            let Some(end) = route.steps.last().map(|step| step.bundle) else { continue };
            if !ways.contains_key(&*end.name) {
                let mut way = way.clone();
                way.push(leg(switch.channel, &route));
                ways.insert(&end.name, way);
                open.push_back(end);
            }
        }
    }
    let version = |name: &str| graph.bundle(name).and_then(|bundle| bundle.version.clone());
    ways.into_iter()
        .max_by_key(|(name, legs)| (version(name), Reverse(legs.len())))
        .map(|(_, legs)| legs)
}

/// A route that comes to an end.
fn rests(route: Option<Route<'_>>) -> Option<Route<'_>> {
    route.filter(|route| !matches!(route.end, End::Circle { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_updates::Edges;

    fn follows(name: &str) -> Edges<'_> {
        Edges { replaces: Some(name), ..Edges::default() }
    }

    fn leg(channel: &str, hops: &[&str]) -> Leg {
        Leg {
            channel: channel.to_owned(),
            hops: hops.iter().map(|hop| (*hop).to_owned()).collect(),
        }
    }

    #[test]
    fn a_way_goes_on_in_the_channel_that_has_a_successor() {
        let graph = Graph::builder("p")
            .default_channel("new")
            .bundle("p1", "1.0.0")
            .bundle("p2", "2.0.0")
            .bundle("p3", "3.0.0")
            .bundle("p4", "4.0.0")
            .entry("old", "p1", Edges::default())
            .entry("old", "p2", follows("p1"))
            .entry("new", "p3", follows("p2"))
            .entry("new", "p4", follows("p3"))
            .finish();
        let plan = Plan::of(&graph, |_| true).unwrap();
        assert_eq!(plan.legs, [leg("old", &["p2"]), leg("new", &["p3", "p4"])]);
        assert_eq!((plan.start.as_str(), plan.end(), plan.stranded.len()), ("p1", "p4", 0));
    }

    #[test]
    fn a_first_channel_without_successors_is_left_at_once() {
        let graph = Graph::builder("p")
            .default_channel("new")
            .bundle("p1", "1.0.0")
            .bundle("p2", "2.0.0")
            .entry("old", "p1", Edges::default())
            .entry("new", "p2", follows("p1"))
            .finish();
        let plan = Plan::of(&graph, |_| true).unwrap();
        assert_eq!(plan.legs, [leg("old", &[]), leg("new", &["p2"])]);
    }

    #[test]
    fn who_cannot_get_to_the_newest_is_left_behind() {
        let graph = Graph::builder("p")
            .default_channel("c")
            .bundle("p1", "1.0.0")
            .bundle("p2", "2.0.0")
            .bundle("p3", "3.0.0")
            .entry("b", "p1", Edges::default())
            .entry("c", "p2", Edges::default())
            .entry("c", "p3", follows("p2"))
            .finish();
        let plan = Plan::of(&graph, |_| true).unwrap();
        assert_eq!(plan.legs, [leg("c", &["p3"])]);
        assert_eq!(plan.stranded, ["p1"]);
        assert_eq!(plan.start, "p2");
    }

    #[test]
    fn the_start_is_a_version_that_can_be_installed() {
        let graph = Graph::builder("p")
            .bundle("p1", "1.0.0")
            .bundle("p2", "2.0.0")
            .bundle("p3", "3.0.0")
            .entry("c", "p1", Edges::default())
            .entry("c", "p2", follows("p1"))
            .entry("c", "p3", follows("p2"))
            .finish();
        let plan = Plan::of(&graph, |name| name != "p1").unwrap();
        assert_eq!((plan.start.as_str(), plan.end()), ("p2", "p3"));
        assert_eq!(plan.barred, ["p1"]);
    }

    #[test]
    fn what_others_skip_may_be_the_start_and_one_version_is_a_way() {
        let skips = Edges { skips: &["p1"], ..Edges::default() };
        let graph = Graph::builder("p")
            .default_channel("c")
            .bundle("p1", "1.0.0")
            .bundle("p2", "2.0.0")
            .entry("c", "p1", Edges::default())
            .entry("c", "p2", skips)
            .finish();
        let plan = Plan::of(&graph, |_| true).unwrap();
        assert_eq!((plan.start.as_str(), plan.end(), plan.hops()), ("p1", "p2", 1));

        let graph = Graph::builder("q").bundle("q1", "1.0.0").entry("c", "q1", Edges::default());
        let plan = Plan::of(&graph.finish(), |_| true).unwrap();
        assert_eq!((plan.start.as_str(), plan.end(), plan.hops()), ("q1", "q1", 0));
    }
}
