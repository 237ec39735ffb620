//! Update paths along any edge: all paths to the head of a view, and the shortest one.

use crate::graph::GraphBundle;
use crate::ranges::Versions;
use crate::view::{Candidate, GraphView, InstalledBundle, Origin, Semantics, UpdateStep};
use mainstay_version::{BundleRelease, Version};
use std::collections::HashMap;

/// How many edges a search for all paths examines at most.
const MAX_LOOKS: usize = 2_000_000;

/// The distance of each bundle of a graph from the nearest target, and the next step towards it.
struct Distances {
    distance: Vec<Option<u32>>,
    next_rank: Vec<Option<u32>>,
}

impl<'g> GraphView<'g> {
    /// A path to the head with the fewest steps, along any edge, also along edges that OLM would
    /// not choose by itself. Of several such paths it is the one with the better ranks. None if
    /// there is no path; no steps if the head is installed.
    pub fn shortest(&self, installed: &InstalledBundle<'_>) -> Option<Vec<UpdateStep<'g>>> {
        let head = self.ranks.first()?.place();
        self.shortest_from(installed, &[head])
    }

    /// As [`GraphView::shortest`], but to the nearest bundle for which `is_target` holds: one bundle, a
    /// range of versions, an older version. No steps if it holds for the installed bundle, and that
    /// is in the graph.
    pub fn shortest_to(
        &self,
        installed: &InstalledBundle<'_>,
        is_target: impl Fn(&GraphBundle) -> bool,
    ) -> Option<Vec<UpdateStep<'g>>> {
        let bundles = self.graph.bundles.iter().enumerate();
        let targets = bundles.filter(|(_, bundle)| is_target(bundle)).map(|(place, _)| place);
        self.shortest_from(installed, &targets.collect::<Vec<_>>())
    }

    fn shortest_from(
        &self,
        installed: &InstalledBundle<'_>,
        targets: &[usize],
    ) -> Option<Vec<UpdateStep<'g>>> {
        let mut steps = Vec::new();
        let here = self.graph.place_of(installed.name);
        if here.is_some_and(|here| targets.contains(&here)) {
            return Some(steps);
        }
        let distances = self.distances(targets);
        let from = self.origin(installed);
        let (mut after, mut best) = (None, None);
        while let Some(rank) = self.covering(from, after, &mut 0) {
            after = Some(rank);
            let distance = distances.distance[self.ranks[rank as usize].place()];
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
            // Every bundle that has a distance and is no target has a rank that leads nearer.
            let Some(rank) = distances.next_rank[place] else { return Some(steps) };
            step = self.step(rank, &InstalledBundle::from(step.bundle))?;
        }
    }

    /// All paths to the head that visit no bundle twice, best ranks first: if [`GraphView::path`] leads
    /// to the head, that path is the first one. There can be very many paths: take only as many as
    /// you need. No path if the head itself is installed. The search examines two million edges at
    /// most; [`Paths::is_cut`] says whether it stopped there.
    pub fn all_paths<'v>(&'v self, installed: &InstalledBundle<'v>) -> Paths<'v, 'g> {
        let mut on_path = vec![false; self.graph.bundles.len()];
        if let Some(place) = self.graph.place_of(installed.name) {
            on_path[place] = true;
        }
        let head = self.ranks.first().map(Candidate::place);
        let can_reach_head = head.map_or_else(Vec::new, |head| {
            self.distances(&[head])
                .distance
                .into_iter()
                .map(|distance| distance.is_some())
                .collect()
        });
        let stack = match head {
            Some(head) if !on_path[head] => {
                vec![Frame { from: self.origin(installed), at: installed.clone(), after: None }]
            }
            _ => Vec::new(),
        };
        Paths { view: self, head, can_reach_head, on_path, stack, looks: 0, is_cut: false }
    }

    /// Walks from the targets against the edges; visits each bundle once.
    fn distances(&self, targets: &[usize]) -> Distances {
        let bundles = &self.graph.bundles;
        let mut distances =
            Distances { distance: vec![None; bundles.len()], next_rank: vec![None; bundles.len()] };
        let mut level: Vec<u32> = Vec::new();
        for &place in targets {
            distances.distance[place] = Some(0);
            level.extend_from_slice(&self.ranks_of[place]);
        }
        level.sort_unstable();
        let mut unvisited = Versions::of(bundles);
        let mut same: HashMap<(&Version, Option<&BundleRelease>), Vec<usize>> = HashMap::new();
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
                let mut visit = |place: usize| {
                    if distances.distance[place].is_none() {
                        distances.distance[place] = Some(distance);
                        distances.next_rank[place] = Some(rank);
                        next.extend_from_slice(&self.ranks_of[place]);
                    }
                };
                let named = entry.replaces.iter().chain(&entry.skips);
                named.filter_map(|name| self.graph.place_of(name)).for_each(&mut visit);
                unvisited.take(entry, &mut visit);
                if let Some(version) = &entry.bundle.version {
                    let twins = same.remove(&(version, entry.bundle.release.as_ref()));
                    twins.into_iter().flatten().for_each(visit);
                }
            }
            // Where several ranks lead nearer to the target, the best one counts.
            next.sort_unstable();
            level = next;
        }
        distances
    }
}

/// The paths from the installed bundle to the head; see [`GraphView::all_paths`].
#[derive(Debug)]
pub struct Paths<'v, 'g> {
    view: &'v GraphView<'g>,
    head: Option<usize>,
    /// For each bundle, whether a path leads from it to the head.
    can_reach_head: Vec<bool>,
    on_path: Vec<bool>,
    stack: Vec<Frame<'v>>,
    looks: usize,
    is_cut: bool,
}

/// A bundle on the current path, and which of its successors the search has tried.
#[derive(Debug)]
struct Frame<'v> {
    from: Origin<'v, 'v>,
    at: InstalledBundle<'v>,
    /// The rank that the search tried last: the step to the next frame.
    after: Option<u32>,
}

impl Paths<'_, '_> {
    /// Whether the search stopped because it had examined too many edges: there may be more paths.
    pub const fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Whether no better rank of the same bundle covers the bundle of the frame.
    fn is_first(view: &GraphView<'_>, frame: &Frame<'_>, rank: u32) -> bool {
        let ranks = &view.ranks_of[view.ranks[rank as usize].place()];
        let before = ranks.iter().take_while(|&&other| other < rank);
        !before.into_iter().any(|&rank| view.is_covered(frame.from, rank))
    }
}

impl<'g> Iterator for Paths<'_, 'g> {
    type Item = Vec<UpdateStep<'g>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let frame = self.stack.last_mut()?;
            if self.looks > MAX_LOOKS {
                self.is_cut = true;
                self.stack.clear();
                return None;
            }
            let view = self.view;
            let Some(rank) = view.covering(frame.from, frame.after, &mut self.looks) else {
                let frame = self.stack.pop();
                if let Some(place) = frame.and_then(|frame| view.graph.place_of(frame.at.name)) {
                    self.on_path[place] = false;
                }
                continue;
            };
            frame.after = Some(rank);
            let place = view.ranks[rank as usize].place();
            if self.on_path[place]
                || !self.can_reach_head[place]
                || !Self::is_first(view, frame, rank)
            {
                continue;
            }
            if Some(place) == self.head {
                let steps = self.stack.iter();
                return Some(
                    steps.filter_map(|frame| view.step(frame.after?, &frame.at)).collect(),
                );
            }
            self.on_path[place] = true;
            let at = InstalledBundle::from(&*view.graph.bundles[place]);
            self.stack.push(Frame { from: view.origin(&at), at, after: None });
        }
    }
}
