//! All ways to the head, and the shortest one.

use crate::graph::Bundle;
use crate::ranges::Versions;
use crate::view::{Candidate, Installed, Origin, Semantics, Step, View};
use mainstay_version::{Release, Version};
use std::collections::HashMap;

/// How many edges a search for all ways looks at.
const MOST_LOOKS: usize = 2_000_000;

/// How far each bundle of a graph is from what is wanted, and by which rank one gets nearer.
struct Nearer {
    distance: Vec<Option<u32>>,
    by: Vec<Option<u32>>,
}

impl<'g> View<'g> {
    /// A way to the head with the fewest steps, along any edges, also those that would not be chosen
    /// by themselves. Of several the one that keeps to better ranks. None if there is none; no steps
    /// if the head is installed.
    pub fn shortest(&self, installed: &Installed<'_>) -> Option<Vec<Step<'g>>> {
        let head = self.ranks.first()?.place();
        self.shortest_from(installed, &[head])
    }

    /// As [`View::shortest`], to the nearest bundle that is wanted: a certain one, one of a range of
    /// versions, an older one. No steps if the graph has what is installed and it is wanted.
    pub fn shortest_to(
        &self,
        installed: &Installed<'_>,
        wanted: impl Fn(&Bundle) -> bool,
    ) -> Option<Vec<Step<'g>>> {
        let bundles = self.graph.bundles.iter().enumerate();
        let wanted = bundles.filter(|(_, bundle)| wanted(bundle)).map(|(place, _)| place);
        self.shortest_from(installed, &wanted.collect::<Vec<_>>())
    }

    fn shortest_from(&self, installed: &Installed<'_>, wanted: &[usize]) -> Option<Vec<Step<'g>>> {
        let mut steps = Vec::new();
        let here = self.graph.place_of(installed.name);
        if here.is_some_and(|here| wanted.contains(&here)) {
            return Some(steps);
        }
        let nearer = self.nearer(wanted);
        let from = self.origin(installed);
        let (mut after, mut best) = (None, None);
        while let Some(rank) = self.covering(from, after, &mut 0) {
            after = Some(rank);
            let distance = nearer.distance[self.ranks[rank as usize].place()];
            let is_less = |known: &(u32, u32)| distance.is_some_and(|distance| distance < known.0);
            if let Some(distance) = distance
                && best.as_ref().is_none_or(is_less)
            {
                best = Some((distance, rank));
            }
        }
        let mut step = self.step(best?.1, installed)?;
        loop {
            let place = step.entry.place;
            steps.push(step);
            // Every bundle that has a distance and is not wanted has a rank that leads nearer.
            let Some(rank) = nearer.by[place] else { return Some(steps) };
            step = self.step(rank, &Installed::from(step.bundle))?;
        }
    }

    /// All ways to the head that come by no bundle twice, one after the other, best ranks first: if
    /// [`View::path`] leads to the head, its way is the first. There can be very many: take as many as
    /// are wanted. None if the head itself is installed. Looks at two million edges at most; [`Paths::is_cut`] says whether there was more.
    pub fn all_paths<'v>(&'v self, installed: &Installed<'v>) -> Paths<'v, 'g> {
        let mut on_path = vec![false; self.graph.bundles.len()];
        if let Some(place) = self.graph.place_of(installed.name) {
            on_path[place] = true;
        }
        let head = self.ranks.first().map(Candidate::place);
        let reach = head.map_or_else(Vec::new, |head| {
            self.nearer(&[head]).distance.into_iter().map(|distance| distance.is_some()).collect()
        });
        let stack = match head {
            Some(head) if !on_path[head] => {
                vec![Frame { from: self.origin(installed), at: installed.clone(), after: None }]
            }
            _ => Vec::new(),
        };
        Paths { view: self, head, reach, on_path, stack, looks: 0, is_cut: false }
    }

    /// Walks from what is wanted against the edges, each bundle once.
    fn nearer(&self, wanted: &[usize]) -> Nearer {
        let bundles = &self.graph.bundles;
        let mut found =
            Nearer { distance: vec![None; bundles.len()], by: vec![None; bundles.len()] };
        let mut level: Vec<u32> = Vec::new();
        for &place in wanted {
            found.distance[place] = Some(0);
            level.extend_from_slice(&self.ranks_of[place]);
        }
        level.sort_unstable();
        let mut left = Versions::of(bundles);
        let mut same: HashMap<(&Version, Option<&Release>), Vec<usize>> = HashMap::new();
        if self.semantics == Semantics::Extension {
            for (place, bundle) in bundles.iter().enumerate() {
                if let Some(version) = &bundle.version {
                    same.entry((version, bundle.release.as_ref())).or_default().push(place);
                }
            }
        }
        let mut distance = 0;
        while !level.is_empty() {
            distance += 1;
            let mut next = Vec::new();
            for rank in level {
                let entry = self.ranks[rank as usize].entry;
                let mut reach = |place: usize| {
                    if found.distance[place].is_none() {
                        found.distance[place] = Some(distance);
                        found.by[place] = Some(rank);
                        next.extend_from_slice(&self.ranks_of[place]);
                    }
                };
                let named = entry.replaces.iter().chain(&entry.skips);
                named.filter_map(|name| self.graph.place_of(name)).for_each(&mut reach);
                left.take(entry, &mut reach);
                if let Some(version) = &entry.bundle.version {
                    let twins = same.remove(&(version, entry.bundle.release.as_ref()));
                    twins.into_iter().flatten().for_each(reach);
                }
            }
            // Whom several can bring nearer, the best does.
            next.sort_unstable();
            level = next;
        }
        found
    }
}

/// The ways from what is installed to the head; see [`View::all_paths`].
#[derive(Debug)]
pub struct Paths<'v, 'g> {
    view: &'v View<'g>,
    head: Option<usize>,
    /// Bundles from which there is a way.
    reach: Vec<bool>,
    on_path: Vec<bool>,
    stack: Vec<Frame<'v>>,
    looks: usize,
    is_cut: bool,
}

/// A bundle on the way, and which of its successors were tried.
#[derive(Debug)]
struct Frame<'v> {
    from: Origin<'v, 'v>,
    at: Installed<'v>,
    /// The rank that was tried last: the step to the next frame.
    after: Option<u32>,
}

impl Paths<'_, '_> {
    /// Whether the search ended because it had looked at too many edges, so that there may be more.
    pub const fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Whether this rank is the first of its bundle that covers the frame's.
    fn is_first(view: &View<'_>, frame: &Frame<'_>, rank: u32) -> bool {
        let ranks = &view.ranks_of[view.ranks[rank as usize].place()];
        let before = ranks.iter().take_while(|&&other| other < rank);
        !before.into_iter().any(|&rank| view.is_covered(frame.from, rank))
    }
}

impl<'g> Iterator for Paths<'_, 'g> {
    type Item = Vec<Step<'g>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let frame = self.stack.last_mut()?;
            if self.looks > MOST_LOOKS {
                self.is_cut = true;
                self.stack.clear();
                return None;
            }
            let view = self.view;
            let Some(rank) = view.covering(frame.from, frame.after, &mut self.looks) else {
                let done = self.stack.pop();
                if let Some(place) = done.and_then(|frame| view.graph.place_of(frame.at.name)) {
                    self.on_path[place] = false;
                }
                continue;
            };
            frame.after = Some(rank);
            let place = view.ranks[rank as usize].place();
            if self.on_path[place] || !self.reach[place] || !Self::is_first(view, frame, rank) {
                continue;
            }
            if Some(place) == self.head {
                let steps = self.stack.iter();
                return Some(
                    steps.filter_map(|frame| view.step(frame.after?, &frame.at)).collect(),
                );
            }
            self.on_path[place] = true;
            let at = Installed::from(&*view.graph.bundles[place]);
            self.stack.push(Frame { from: view.origin(&at), at, after: None });
        }
    }
}
