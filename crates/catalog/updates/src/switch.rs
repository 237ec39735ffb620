//! What another channel would mean.

use crate::graph::{Channel, Graph};
use crate::route::{End, Route};
use crate::view::{Installed, NoOrder, Semantics, Step};

/// What happens to an installed bundle in a channel.
#[derive(Debug)]
pub struct Switch<'g> {
    /// The channel.
    pub channel: &'g Channel,
    /// Whether the bundle is an entry of it.
    pub is_member: bool,
    /// Where updates then lead; or why nothing of the channel can be chosen.
    pub route: Result<Route<'g>, NoOrder>,
}

impl<'g> Switch<'g> {
    /// The update that the channel begins with.
    pub fn first(&self) -> Option<&Step<'g>> {
        self.route.as_ref().ok()?.steps.first()
    }

    /// Whether the channel takes care of the bundle: it has an update for it, or it is its head.
    pub fn is_way(&self) -> bool {
        self.route.as_ref().is_ok_and(|route| {
            !route.steps.is_empty() || (self.is_member && matches!(route.end, End::Head))
        })
    }
}

impl Graph {
    /// To which channels what is installed can move, and what comes first there: all channels, the
    /// default one first, then by name.
    ///
    /// Moving to a channel that has nothing for the bundle changes nothing: it stays as it is until
    /// some entry covers it.
    pub fn switches(&self, semantics: Semantics, installed: &Installed<'_>) -> Vec<Switch<'_>> {
        let mut channels: Vec<&Channel> = self.channels.iter().collect();
        channels.sort_by_key(|channel| channel.name != self.default_channel);
        let switch = |channel: &'_ Channel| {
            self.view(semantics, &[&channel.name]).map(|view| view.path(installed))
        };
        channels
            .into_iter()
            .map(|channel| Switch {
                channel,
                is_member: channel.entry(installed.name).is_some(),
                route: switch(channel),
            })
            .collect()
    }
}
