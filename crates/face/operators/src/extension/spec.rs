//! Fields of a ClusterExtension that `install` sets and `update` changes.

use super::config;
use super::input;
use super::values::{LabelChange, SelectorValue, label_change, selector, version_range};
use clap::{Args, ValueEnum};
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_object::Object;
use mainstay_resolver::extension::DEPENDENCIES_ANNOTATION;
use serde_json::{Map, Value};

/// Flags for the mutable fields.
#[derive(Args, Debug)]
pub(super) struct SpecArguments {
    /// Channel of the package (repeatable) [default: all channels].
    #[arg(
        short,
        long = "channel",
        alias = "channels",
        value_name = "CHANNEL",
        value_delimiter = ','
    )]
    channels: Option<Vec<String>>,
    /// Version or range of versions, such as 1.2.3, 1.2.x, ^1.2 or '>=1.2 <2' [default: any version].
    #[arg(short, long, value_name = "RANGE", value_parser = version_range)]
    version: Option<String>,
    /// Label selector of the ClusterCatalogs to install from [default: all catalogs].
    #[arg(short = 'l', long, value_name = "SELECTOR", value_parser = selector)]
    catalog_selector: Option<SelectorValue>,
    /// Which versions may follow the installed one: those that the catalog provides, or any.
    #[arg(long, value_enum, value_name = "POLICY", ignore_case = true)]
    upgrade_constraint_policy: Option<UpgradePolicyArgument>,
    /// Whether upgrades that break stored custom resources are refused.
    #[arg(
        long,
        alias = "crd-upgrade-safety-enforcement",
        value_enum,
        value_name = "ENFORCEMENT",
        ignore_case = true
    )]
    crd_upgrade_safety: Option<CrdSafetyArgument>,
    /// What happens to a bundle with dependencies; Require and Ignore need the controller of Mainstay.
    #[arg(long, value_enum, value_name = "POLICY", ignore_case = true)]
    dependencies: Option<DependencyArgument>,
    /// ServiceAccount that installs the bundle, where the cluster wants one; OLM v1.11 and newer ignore it.
    #[arg(short, long, value_name = "NAME")]
    service_account: Option<String>,
    /// File with the configuration of the bundle, such as `watchNamespace`; `-` reads standard input.
    #[arg(long, value_name = "FILE")]
    config: Option<String>,
    /// Minutes that a rollout may take [default: no limit].
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u32).range(10..=720))]
    progress_deadline_minutes: Option<u32>,
    /// Labels of the ClusterExtension: KEY=VALUE, or KEY- to remove one (repeatable).
    #[arg(long, value_name = "LABEL,…", value_delimiter = ',', value_parser = label_change)]
    labels: Vec<LabelChange>,
}

/// Which versions may follow the installed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum UpgradePolicyArgument {
    /// Those that the channels of the catalog allow.
    #[value(name = "CatalogProvided")]
    CatalogProvided,
    /// All that the other flags allow, older ones too.
    #[value(name = "SelfCertified")]
    SelfCertified,
}

/// What happens to a bundle with dependencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum DependencyArgument {
    /// It is refused, as OLM v1 does.
    #[value(name = "Refuse")]
    Refuse,
    /// It is installed once its dependencies are satisfied.
    #[value(name = "Require")]
    Require,
    /// It is installed in any case.
    #[value(name = "Ignore")]
    Ignore,
}

/// Whether changes of CustomResourceDefinitions are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CrdSafetyArgument {
    /// Nothing is checked.
    #[value(name = "None")]
    None,
    /// Unsafe upgrades are refused.
    #[value(name = "Strict")]
    Strict,
}

/// The fields that flags can set, below `spec`.
pub(super) const VERSION: [&str; 4] = ["spec", "source", "catalog", "version"];
pub(super) const CHANNELS: [&str; 4] = ["spec", "source", "catalog", "channels"];
pub(super) const SELECTOR: [&str; 4] = ["spec", "source", "catalog", "selector"];
pub(super) const POLICY: [&str; 4] = ["spec", "source", "catalog", "upgradeConstraintPolicy"];
const INSTALL: [&str; 2] = ["spec", "install"];
const ENFORCEMENT: [&str; 5] = ["spec", "install", "preflight", "crdUpgradeSafety", "enforcement"];
pub(super) const SERVICE_ACCOUNT: [&str; 2] = ["spec", "serviceAccount"];
pub(super) const DEPENDENCIES: [&str; 3] = ["metadata", "annotations", DEPENDENCIES_ANNOTATION];
const CONFIG: [&str; 2] = ["spec", "config"];
const DEADLINE: [&str; 2] = ["spec", "progressDeadlineMinutes"];

impl SpecArguments {
    /// Whether no flag is given.
    pub(super) fn is_empty(&self) -> bool {
        let Self {
            channels,
            version,
            catalog_selector,
            upgrade_constraint_policy,
            crd_upgrade_safety,
            dependencies,
            service_account,
            config,
            progress_deadline_minutes,
            labels,
        } = self;
        channels.is_none()
            && version.is_none()
            && catalog_selector.is_none()
            && upgrade_constraint_policy.is_none()
            && crd_upgrade_safety.is_none()
            && dependencies.is_none()
            && service_account.is_none()
            && config.is_none()
            && progress_deadline_minutes.is_none()
            && labels.is_empty()
    }

    /// What happens to a bundle with dependencies, if a flag says so.
    pub(super) const fn dependencies(&self) -> Option<DependencyArgument> {
        self.dependencies
    }

    /// Reads the file of `--config`.
    ///
    /// # Errors
    /// The file cannot be read, or holds no mapping.
    pub(super) fn read_config(
        &self,
        io: &mut CommandIo<'_>,
    ) -> Result<Option<Map<String, Value>>, CommandFailure> {
        let Some(file) = &self.config else { return Ok(None) };
        config::read(file, &input::read_file(io, file)?).map(Some)
    }

    /// Sets the fields whose flags are given. Empty values remove their fields.
    pub(super) fn apply(&self, object: &mut Object, config: Option<&Map<String, Value>>) {
        if let Some(channels) = &self.channels {
            let channels: Vec<&str> =
                channels.iter().map(String::as_str).filter(|channel| !channel.is_empty()).collect();
            set_or_remove(object, &CHANNELS, !channels.is_empty(), || channels.into());
        }
        if let Some(version) = &self.version {
            set_or_remove(object, &VERSION, !version.is_empty(), || version.clone().into());
        }
        if let Some(SelectorValue(selector)) = &self.catalog_selector {
            set_or_remove(object, &SELECTOR, selector.is_some(), || {
                selector.clone().unwrap_or_default()
            });
        }
        if let Some(name) = self.upgrade_constraint_policy.and_then(|policy| value_name(&policy)) {
            object.set(&POLICY, name.into());
        }
        if let Some(name) = self.crd_upgrade_safety.and_then(|safety| value_name(&safety)) {
            object.set(&ENFORCEMENT, name.into());
        }
        match self.dependencies {
            None => {}
            Some(DependencyArgument::Refuse) => drop(object.remove(&DEPENDENCIES)),
            Some(policy @ (DependencyArgument::Require | DependencyArgument::Ignore)) => {
                object.set(&DEPENDENCIES, value_name(&policy).into());
            }
        }
        if let Some(account) = &self.service_account {
            let value = || serde_json::json!({"name": account});
            set_or_remove(object, &SERVICE_ACCOUNT, !account.is_empty(), value);
        }
        if let Some(config) = config {
            let value = || serde_json::json!({"configType": "Inline", "inline": config});
            set_or_remove(object, &CONFIG, !config.is_empty(), value);
        }
        if let Some(minutes) = self.progress_deadline_minutes {
            object.set(&DEADLINE, minutes.into());
        }
        for LabelChange { key, value } in &self.labels {
            match value {
                Some(value) => object.set_label(key, value),
                None => drop(object.remove(&["metadata", "labels", key])),
            }
        }
    }
}

/// Removes all optional fields that flags can set; labels stay.
pub(super) fn reset(object: &mut Object) {
    for path in [&VERSION[..], &CHANNELS, &SELECTOR, &POLICY, &DEPENDENCIES] {
        object.remove(path);
    }
    for path in [&INSTALL, &SERVICE_ACCOUNT, &CONFIG, &DEADLINE] {
        object.remove(path);
    }
}

fn set_or_remove(object: &mut Object, path: &[&str], is_set: bool, value: impl FnOnce() -> Value) {
    if is_set {
        object.set(path, value());
    } else {
        object.remove(path);
    }
}

/// The name of a value, as typed.
fn value_name(value: &impl ValueEnum) -> Option<String> {
    value.to_possible_value().map(|value| value.get_name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use serde_json::json;

    #[derive(Parser)]
    #[command(disable_version_flag = true)]
    struct Flags {
        #[command(flatten)]
        spec: SpecArguments,
    }

    fn changed(before: Value, words: &[&str]) -> Value {
        let flags = Flags::try_parse_from(["update"].iter().chain(words)).unwrap();
        let mut object = Object::from_value(before).unwrap();
        flags.spec.apply(&mut object, None);
        object.into_value()
    }

    #[test]
    fn flags_set_fields_whose_parents_are_missing() {
        let words = [
            "--channel=a,b",
            "--version=~1.2",
            "--upgrade-constraint-policy=selfcertified",
            "--crd-upgrade-safety=None",
            "--service-account=me",
            "--labels=team=tea",
            "--catalog-selector=a=b",
        ];
        assert_eq!(
            changed(json!({}), &words),
            json!({
                "metadata": {"labels": {"team": "tea"}},
                "spec": {
                    "serviceAccount": {"name": "me"},
                    "install": {"preflight": {"crdUpgradeSafety": {"enforcement": "None"}}},
                    "source": {"catalog": {
                        "channels": ["a", "b"], "version": "~1.2",
                        "selector": {"matchLabels": {"a": "b"}},
                        "upgradeConstraintPolicy": "SelfCertified",
                    }},
                },
            })
        );
    }

    #[test]
    fn empty_values_remove_fields_and_absent_flags_change_nothing() {
        let before = json!({
            "metadata": {"labels": {"a": "b", "c": "d"}},
            "spec": {
                "serviceAccount": {"name": "me"},
                "source": {"catalog": {"packageName": "tea", "channels": ["a"], "version": "1"}},
            },
        });
        assert_eq!(changed(before.clone(), &[]), before);
        let words = ["--channel=", "--version=", "--service-account=", "--labels=a-"];
        assert_eq!(
            changed(before, &words),
            json!({
                "metadata": {"labels": {"c": "d"}},
                "spec": {"source": {"catalog": {"packageName": "tea"}}},
            })
        );
    }
}
