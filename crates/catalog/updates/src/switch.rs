//! Channel switches: what happens to an installed bundle in each channel of its package.

use crate::graph::{Graph, GraphChannel};
use crate::route::{PathEnd, UpdatePath};
use crate::view::{InstalledBundle, Semantics, UnorderedChannel, UpdateStep};

/// What happens to an installed bundle in a channel.
#[derive(Debug)]
pub struct ChannelSwitch<'g> {
    /// The channel.
    pub channel: &'g GraphChannel,
    /// Whether the bundle is an entry of it.
    pub is_member: bool,
    /// Where updates lead after the switch; or why OLM can choose no entry of the channel.
    pub route: Result<UpdatePath<'g>, UnorderedChannel>,
}

impl<'g> ChannelSwitch<'g> {
    /// The first update after the switch.
    pub fn first(&self) -> Option<&UpdateStep<'g>> {
        self.route.as_ref().ok()?.steps.first()
    }

    /// Whether the channel supports the bundle: it has an update for the bundle, or the bundle is
    /// its head.
    pub fn reaches_head(&self) -> bool {
        self.route.as_ref().is_ok_and(|route| {
            !route.steps.is_empty() || (self.is_member && matches!(route.end, PathEnd::Head))
        })
    }
}

impl Graph {
    /// What a switch of the installed bundle to each channel means: the default channel comes
    /// first, then the others by name.
    ///
    /// A switch to a channel that has no update for the bundle changes nothing: the bundle stays
    /// installed until an entry of the channel covers it.
    pub fn switches(
        &self,
        semantics: Semantics,
        installed: &InstalledBundle<'_>,
    ) -> Vec<ChannelSwitch<'_>> {
        let mut channels: Vec<&GraphChannel> = self.channels.iter().collect();
        channels.sort_by_key(|channel| channel.name != self.default_channel);
        let switch = |channel: &'_ GraphChannel| {
            self.view(semantics, &[&channel.name]).map(|view| view.path(installed))
        };
        channels
            .into_iter()
            .map(|channel| ChannelSwitch {
                channel,
                is_member: channel.entry(installed.name).is_some(),
                route: switch(channel),
            })
            .collect()
    }
}
