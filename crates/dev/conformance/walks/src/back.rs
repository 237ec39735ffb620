//! There and back, twice: once as an administrator uninstalls who knows nothing of what else there is,
//! once as one who wants nothing to stay.
//!
//! ```text
//! dump ─► there ─► objects of its kinds ─► uninstall ─► dump ─► what stays, by hand ─┐
//!   ▲ the same, but for what may stay ────────────────────┘                          │
//!   └ the very same ◄── dump ◄── uninstall --operands --definitions ◄── there ◄──────┘
//! ```
//!
//! Each uninstallation says beforehand what goes and what stays; it is held to that.

use super::dump::Dump;
use super::ground::{Ground, NAME, PLACE};
use super::stock::Item;
use super::way_out::{self, Preview};
use super::{Back, End, Plan, Walk, place, stays};
use anyhow::{Context, bail};
use mainstay_api::resources::{CLUSTER_SERVICE_VERSION, SUBSCRIPTION};
use mainstay_client::{DeleteOptions, Patch};
use mainstay_object::Object;
use serde_json::{Value, json};

/// How many operators may have come along, at most.
const COMPANY: usize = 50;

/// How often it is looked whether what is wrong comes right. Each look waits until nothing changes.
const TRIES: usize = 4;

/// A package on its way.
pub(super) struct Way<'a> {
    pub(super) ground: &'a Ground,
    pub(super) item: &'a Item,
    pub(super) plan: &'a Plan,
}

impl Way<'_> {
    /// Goes there and back, twice.
    pub(super) async fn there_and_back(&self, walked: &mut Walk) -> anyhow::Result<()> {
        let before = self.ground.settled().await?;
        place::once(self.ground, self.item, self.plan, walked).await?;
        let mut back = Back::default();
        self.use_it(&mut back).await?;
        let previews = self.out(false, &mut back).await?;
        let after = self
            .settles(&mut back, |after, back| {
                stays::judge(&before, after, back);
                back.wrong.extend(way_out::untold(&previews, &before, after));
            })
            .await?;

        // What lists other things comes again as long as these are there.
        let mut left = after;
        for _ in 0..TRIES {
            if left.beyond(&before).next().is_none() {
                break;
            }
            self.sweep(&before, &left).await?;
            left = self.ground.settled().await?;
        }
        let now =
            self.settles(&mut back, |after, back| stays::nothing(&before, after, back)).await?;
        let before = now;
        let mut again = Walk { seen: Vec::new(), company: Vec::new(), ..walked.clone() };
        place::once(self.ground, self.item, self.plan, &mut again).await?;
        if matches!(walked.end, End::There)
            && (&again.end, &again.seen) != (&walked.end, &walked.seen)
        {
            back.wrong.push(format!("the second time it ends in {:?}", again.end));
        }
        self.use_it(&mut Back::default()).await?;
        self.out(true, &mut back).await?;
        self.settles(&mut back, |after, back| stays::nothing(&before, after, back)).await?;
        back.wrong.sort();
        back.wrong.dedup();
        walked.back = Some(back);
        Ok(())
    }

    /// What is there once nothing changes, judged: what is wrong may come right for a while.
    async fn settles(
        &self,
        back: &mut Back,
        judge: impl Fn(&Dump, &mut Back),
    ) -> anyhow::Result<Dump> {
        let mut tries = 0;
        loop {
            let after = self.ground.settled().await?;
            let mut judged = back.clone();
            judge(&after, &mut judged);
            tries += 1;
            if judged.wrong.len() == back.wrong.len() || tries == TRIES {
                *back = judged;
                return Ok(after);
            }
        }
    }

    /// Uninstalls the package, and then what has come along, as long as there is something.
    async fn out(&self, all: bool, back: &mut Back) -> anyhow::Result<Vec<Preview>> {
        let mut previews = Vec::new();
        let mut next = NAME.to_owned();
        for _ in 0..COMPANY {
            let before = self.ground.settled().await?;
            match self.ground.way.out(PLACE, &next, all).await? {
                Ok(preview) => {
                    self.settles(back, |after, back| {
                        back.wrong.extend(way_out::broken(&preview, &before, after));
                    })
                    .await?;
                    previews.push(preview);
                }
                Err(error) => {
                    back.wrong.push(format!("{next} cannot be uninstalled: {error}"));
                    return Ok(previews);
                }
            }
            let subscriptions = self.ground.list(&SUBSCRIPTION).await?;
            let versions = self.ground.list(&CLUSTER_SERVICE_VERSION).await?;
            match way_out::first(&subscriptions, &versions) {
                Some(other) => other.name().clone_into(&mut next),
                None => return Ok(previews),
            }
        }
        bail!("operators come again and again")
    }

    /// Makes the objects that the version shows as examples, as people would. What the cluster refuses
    /// nobody has.
    async fn use_it(&self, back: &mut Back) -> anyhow::Result<()> {
        let cluster = &self.ground.cluster;
        let installed = cluster.find(&SUBSCRIPTION, Some(PLACE), NAME).await?;
        let name = installed
            .as_ref()
            .and_then(|subscription| subscription.str(&["status", "installedCSV"]));
        let Some(name) = name else { return Ok(()) };
        let Some(version) = cluster.find(&CLUSTER_SERVICE_VERSION, Some(PLACE), name).await? else {
            return Ok(());
        };
        let examples = version.annotation("alm-examples").unwrap_or_default();
        let examples: Vec<Value> = serde_json::from_str(examples).unwrap_or_default();
        let owned = version.array(&["spec", "customresourcedefinitions", "owned"]);
        for example in examples {
            let Ok(mut object) = Object::from_value(example) else { continue };
            if !owned.iter().any(|crd| crd["kind"] == *object.kind()) {
                continue;
            }
            let Some(resource) = cluster.resource_of(&object.gvk()).await? else { continue };
            object.remove(&["status"]);
            // Whoever would act on them is simulated.
            object.remove(&["metadata", "finalizers"]);
            if resource.is_namespaced() {
                object.set(&["metadata", "namespace"], PLACE.into());
            } else {
                object.remove(&["metadata", "namespace"]);
            }
            if cluster.create(&resource, &object).await.is_ok() {
                back.objects += 1;
            }
        }
        Ok(())
    }

    /// Takes away by hand whatever was not there before.
    async fn sweep(&self, before: &Dump, after: &Dump) -> anyhow::Result<()> {
        let cluster = &self.ground.cluster;
        for (id, resource, object) in after.beyond(before) {
            let namespace = resource.is_namespaced().then(|| object.namespace());
            if object.finalizers().next().is_some() {
                let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
                match cluster.patch(resource, namespace, object.name(), &free).await {
                    Err(error) if !error.is_not_found() => {
                        return Err(error).with_context(|| format!("free {id}"));
                    }
                    _ => {}
                }
            }
            let options = DeleteOptions::default();
            let gone = cluster.ensure_deleted(resource, namespace, object.name(), &options).await;
            gone.with_context(|| format!("delete {id}"))?;
        }
        Ok(())
    }
}
