//! The replay of one case: carries out its steps and takes down what became of them.

use super::case::{Case, RecordedStep};
use super::compare::{self, Difference};
use super::condition::WaitCondition;
use super::facts::Facts;
use super::images::CaseImage;
use super::network::CaseNetwork;
use super::normalize::{self, Digests};
use super::placeholders::Placeholders;
use super::secrets;
use super::system::{CaseClusters, CaseSystem};
use super::webhook;
use anyhow::{Context, bail};
use mainstay_conformance_harness::kubectl::{self, CommandLine, CommandResult};
use serde_json::Value;
use std::time::Duration;

/// The interval between two polls for changes.
const POLL_INTERVAL: Duration = Duration::from_millis(40);
/// How long a cluster may keep changing, as in the recordings.
const MAX_CHANGES: Duration = Duration::from_secs(30);

/// How often a time is polled. Polls are counted instead of time, because on a busy machine they come
/// later, as everything else does.
fn polls(time: Duration) -> usize {
    usize::try_from(time.as_millis() / POLL_INTERVAL.as_millis()).unwrap_or(usize::MAX)
}

/// The differences of a step.
#[derive(Debug, Default)]
pub(super) struct StepDifferences {
    pub(super) found: Vec<Difference>,
    /// The number of outcomes that differ because the original has a webhook.
    pub(super) by_rule: usize,
    /// The line of the fact that the step was compared with instead.
    pub(super) fact: Option<usize>,
}

/// A running case.
pub(super) struct CaseReplay<'a> {
    case: &'a Case,
    system: Box<dyn CaseSystem>,
    network: CaseNetwork,
    placeholders: Placeholders,
    digests: Digests,
    /// The images of each step.
    images: Vec<Vec<CaseImage>>,
    /// Objects that the recording lacks because the webhook was unreachable.
    unreachable: Vec<String>,
}

impl<'a> CaseReplay<'a> {
    /// Builds the images of a case, and starts its cluster and controllers.
    pub(super) async fn start(case: &'a Case, clusters: &CaseClusters) -> anyhow::Result<Self> {
        let mut placeholders = Placeholders::default();
        let mut images = Vec::new();
        for step in &case.steps {
            let mut built = Vec::new();
            for entry in &step.images {
                let image = CaseImage::build(entry, &placeholders)?;
                if let Some(digest) = image.digest() {
                    placeholders.add_image(&image.reference, digest);
                }
                built.push(image);
            }
            images.push(built);
        }
        let network = CaseNetwork::start().await?;
        let mut system = clusters.system(case, &network).await?;
        system.controllers().start().await?;
        let digests = Digests::of(case, &placeholders);
        let unreachable = Vec::new();
        Ok(Self { case, system, network, placeholders, digests, images, unreachable })
    }

    /// Stops everything.
    pub(super) async fn shutdown(self) {
        self.system.shutdown().await;
    }

    /// Carries out a step, and compares what became of it.
    pub(super) async fn run_step(
        &mut self,
        at: usize,
        facts: &Facts,
    ) -> anyhow::Result<StepDifferences> {
        let case = self.case;
        let step = case.steps.get(at).context("a step")?;
        self.prepare(at, step).await?;
        let command = self.run_command(step).await?;
        tokio::time::sleep(step.sleep).await;
        let reached = self.wait(step).await?;
        let settled = self.wait_until_quiet(step.quiet).await?;
        let mut differences = StepDifferences::default();
        let found = &mut differences.found;
        if step.until.is_some() {
            found.extend(compare::step("until", step.reached, reached));
        }
        if step.settled {
            found.extend(compare::step("settled", true, settled));
        }
        if let (Some(ours), Some(recorded)) = (command, &step.output) {
            let mut recorded = self.recorded_output(recorded);
            let rule = webhook::apply_rule(&mut recorded, &ours, &step.input);
            differences.by_rule += rule.documents;
            self.unreachable.extend(rule.unreachable);
            let is_table = step.command.iter().flatten().any(|word| word == "get");
            found.extend(compare::output(&recorded, &ours, is_table));
        }
        let mut recorded = step.objects.clone();
        for object in &mut recorded {
            self.placeholders.fill_value(object);
            self.digests.mask_messages(object);
            normalize::sort_random_orders(object);
        }
        secrets::collapse_failures(&mut recorded);
        let mut ours = self.objects().await?;
        let before = ours.len();
        ours.retain(|object| !webhook::is_unreachable(object, &self.unreachable));
        differences.by_rule += before - ours.len();
        found.extend(compare::objects(&recorded, &ours));
        differences.fact = facts.apply(case, step.number(), &ours, found);
        for recorded in &step.http {
            let word = |at: usize| recorded["request"][at].as_str().unwrap_or_default();
            let response = self.system.controllers().request(word(0), word(1)).await?;
            let mut recorded = recorded.clone();
            self.placeholders.fill_value(&mut recorded);
            found.extend(compare::response(&recorded, response.as_ref()));
        }
        found.retain(|one| !step.varies.iter().any(|place| one.is_within(place)));
        found.sort_by_key(|difference| difference.part);
        Ok(differences)
    }

    /// Changes the registry and the processes.
    async fn prepare(&mut self, at: usize, step: &RecordedStep) -> anyhow::Result<()> {
        let registry = &self.network.registry;
        for image in self.images.get(at).into_iter().flatten() {
            registry.push(image);
        }
        for reference in &step.forget {
            registry.forget(reference);
        }
        for (repository, fault) in &step.faults {
            registry.set_fault(repository, *fault);
        }
        if let Some(control) = &step.control {
            self.system.controllers().control(&control.process, control.runs).await?;
        }
        Ok(())
    }

    /// Runs the command of a step.
    async fn run_command(&self, step: &RecordedStep) -> anyhow::Result<Option<CommandResult>> {
        let Some(words) = &step.command else { return Ok(None) };
        let words: Vec<String> = words.iter().map(|word| self.placeholders.fill(word)).collect();
        let input = self.placeholders.fill(&step.input);
        let texts = words.iter().chain([&input]);
        if let Some(text) = texts.into_iter().find(|text| text.contains("sha256:{")) {
            bail!("the digest of an image is not known: {text}");
        }
        let context = || format!("kubectl {}", words.join(" "));
        let line = CommandLine::of_words(words.clone()).with_context(context)?;
        let cluster = self.system.cluster();
        let result = kubectl::run(cluster, &line, &input).await.with_context(context)?;
        let CommandResult { exit, output, error } = match result {
            Some(result) => result,
            None => kubectl::read(cluster, &line).await.with_context(context)?,
        };
        let output = normalize::output(&output);
        Ok(Some(CommandResult { exit, output, error: normalize::output(&error) }))
    }

    fn recorded_output(&self, output: &CommandResult) -> CommandResult {
        CommandResult {
            exit: output.exit,
            output: self.placeholders.fill(&output.output),
            error: self.placeholders.fill(&output.error),
        }
    }

    /// Waits for the condition of a step, and says whether it came true.
    async fn wait(&self, step: &RecordedStep) -> anyhow::Result<bool> {
        let Some(condition) = &step.until else { return Ok(true) };
        if !step.reached {
            // It did not come true in the recording: it must be false in the quiet cluster, too.
            self.wait_until_quiet(step.quiet).await?;
            return condition.holds(self.system.cluster()).await;
        }
        self.wait_for(condition, step.timeout).await
    }

    async fn wait_for(&self, condition: &WaitCondition, time: Duration) -> anyhow::Result<bool> {
        let mut last = None;
        for _ in 0..polls(time) {
            let revision = self.system.revision().await?;
            if last != Some(revision) {
                last = Some(revision);
                if condition.holds(self.system.cluster()).await? {
                    return Ok(true);
                }
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(false)
    }

    /// Waits until no object of the case changed for so long; false if they keep changing. Other
    /// writes do not count: nodes renew their leases.
    async fn wait_until_quiet(&self, quiet: Duration) -> anyhow::Result<bool> {
        let mut last = self.system.revision().await?;
        let mut objects = self.objects().await?;
        let mut unchanged = 0;
        for _ in 0..polls(MAX_CHANGES + quiet) {
            if unchanged >= polls(quiet) {
                return Ok(true);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
            unchanged += 1;
            let revision = self.system.revision().await?;
            if revision != last {
                last = revision;
                let now = self.objects().await?;
                if now != objects {
                    (objects, unchanged) = (now, 0);
                }
            }
        }
        Ok(false)
    }

    /// The objects of the case, normalized.
    async fn objects(&self) -> anyhow::Result<Vec<Value>> {
        normalize::objects(self.system.cluster(), self.case, &self.digests).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_polled_every_interval() {
        assert_eq!(polls(Duration::from_secs(3)), 75);
        assert_eq!(polls(Duration::ZERO), 0);
    }
}
