//! `mainstay extension wait`: waits until a ClusterExtension is installed or ready, has a version, or is deleted.

use super::state::{self, InstallStage};
use super::watch;
use super::{REQUEST_TIMEOUT, RequestTimeout, find_extension, print_object, say, values};
use clap::Args;
use mainstay_api::resources::CLUSTER_EXTENSION;
use mainstay_cause::Cause;
use mainstay_command::cluster::{ClusterArguments, ClusterHandle, ClusterReadError};
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_command::text::Format;
use mainstay_object::Object;
use mainstay_version::{VersionConstraint, parse_strict};
use std::str::FromStr;
use std::time::Duration;

/// Arguments of `wait`.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Name of the ClusterExtension.
    #[arg(value_name = "NAME")]
    name: String,
    /// What to wait for: `installed`, `ready`, `version=RANGE` or `deleted`.
    #[arg(long = "for", value_name = "GOAL", default_value = "installed")]
    goal: WaitGoal,
    /// How long to wait: seconds, or a duration such as 10m; 0 checks once.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = values::timeout)]
    timeout: Duration,
    /// Output format.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    output: Format,
    /// The cluster.
    #[command(flatten, next_help_heading = "Cluster")]
    cluster: ClusterArguments,
}

/// The state to wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum WaitGoal {
    /// The desired state is reached.
    Installed,
    /// It is reached, and the Deployments are available.
    Ready,
    /// A bundle of a version in the range is installed.
    Version(VersionConstraint),
    /// The ClusterExtension does not exist.
    Deleted,
}

/// A text is no goal.
#[derive(Debug, thiserror::Error)]
enum ParseGoalError {
    #[error("write installed, ready, version=RANGE or deleted")]
    Unknown,
    #[error(transparent)]
    Version(#[from] values::ParseValueError),
    #[error(transparent)]
    Constraint(#[from] mainstay_version::VersionConstraintError),
}

impl FromStr for WaitGoal {
    type Err = ParseGoalError;

    fn from_str(text: &str) -> Result<Self, ParseGoalError> {
        match (text, text.split_once('=')) {
            ("installed", _) => Ok(Self::Installed),
            ("ready", _) => Ok(Self::Ready),
            ("deleted" | "delete", _) => Ok(Self::Deleted),
            (_, Some(("version", range))) if !range.is_empty() => {
                values::version_range(range)?;
                Ok(Self::Version(VersionConstraint::parse(range)?))
            }
            _ => Err(ParseGoalError::Unknown),
        }
    }
}

impl WaitGoal {
    /// What the command waits for, in the words of its messages.
    fn describe(&self) -> String {
        match self {
            Self::Installed => "installing".to_owned(),
            Self::Ready => "becoming ready".to_owned(),
            Self::Version(range) => format!("installing version {range}"),
            Self::Deleted => "its deletion".to_owned(),
        }
    }

    fn is_reached(&self, extension: &Object) -> bool {
        match self {
            Self::Installed => state::install_stage(extension) == InstallStage::Installed,
            Self::Ready => state::is_ready(extension),
            Self::Version(range) => {
                let version = state::installed_bundle(extension)
                    .and_then(|bundle| parse_strict(bundle.version).ok());
                version.is_some_and(|version| range.contains(&version))
            }
            Self::Deleted => false,
        }
    }
}

pub(super) async fn run<C: ClusterHandle>(
    arguments: &Arguments,
    io: &mut CommandIo<'_>,
    connect: impl AsyncFnOnce(&ClusterArguments, RequestTimeout) -> Result<C, CommandFailure>,
) -> Result<(), CommandFailure> {
    let cluster = connect(&arguments.cluster, REQUEST_TIMEOUT).await?;
    let (name, timeout) = (&*arguments.name, arguments.timeout);
    if arguments.goal == WaitGoal::Deleted {
        return wait_for_deletion(&cluster, io, arguments).await;
    }
    let extension = find_extension(&cluster, name).await?;
    let target = (name, extension.uid());
    let goal = &arguments.goal;
    let end = watch::wait(&cluster, io, target, timeout, |found| goal.is_reached(found)).await?;
    match end {
        Ok(extension) => {
            let bundle = state::installed_bundle(&extension);
            let bundle = bundle.map_or_else(String::new, |bundle| {
                format!(": {} version {}", bundle.name, bundle.version_text())
            });
            say(io, arguments.output, &format!("extension {name:?} installed{bundle}"));
            print_object(io, arguments.output, &extension);
            Ok(())
        }
        Err(unfinished) => {
            let cause = unfinished.cause(name, &goal.describe(), timeout);
            Err(cause.remedy(format!("see more with: mainstay extension describe {name}")).into())
        }
    }
}

async fn wait_for_deletion(
    cluster: &impl ClusterHandle,
    io: &mut CommandIo<'_>,
    arguments: &Arguments,
) -> Result<(), CommandFailure> {
    let Arguments { name, timeout, output, .. } = arguments;
    let Some(extension) = cluster.get(&CLUSTER_EXTENSION, None, name).await? else {
        require_kind(cluster).await?;
        say(io, *output, &format!("extension {name:?} deleted"));
        return Ok(());
    };
    wait_until_gone(cluster, &extension, *timeout).await?;
    say(io, *output, &format!("extension {name:?} deleted"));
    print_object(io, *output, &extension);
    Ok(())
}

/// Checks that the cluster serves ClusterExtensions: reading one by name does not tell a missing object
/// from a missing kind.
async fn require_kind(cluster: &impl ClusterHandle) -> Result<(), CommandFailure> {
    match cluster.list_page(&CLUSTER_EXTENSION, 1, "").await {
        // An account that may get the object need not be allowed to list the kind.
        Ok(_) | Err(ClusterReadError::Forbidden(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Waits until a ClusterExtension is gone.
///
/// # Errors
/// It still exists at the end; the error names its finalizers.
pub(super) async fn wait_until_gone(
    cluster: &impl ClusterHandle,
    extension: &Object,
    timeout: Duration,
) -> Result<(), CommandFailure> {
    let Some(remaining) = watch::wait_until_gone(cluster, extension, timeout).await? else {
        return Ok(());
    };
    let (name, seconds) = (extension.name(), timeout.as_secs());
    let what = format!("ClusterExtension {name:?} still exists after {seconds} s");
    let finalizers: Vec<&str> = remaining.finalizers().collect();
    let cause = match (remaining.is_terminating(), finalizers.as_slice()) {
        (false, _) => Cause::new("its deletion was not requested")
            .remedy(format!("request it with: mainstay extension delete {name}")),
        (true, []) => Cause::new("it is being deleted"),
        (true, all) => Cause::new(format!("it waits for its finalizers: {}", all.join(", ")))
            .remedy("check that the controller of OLM v1 runs, or allow more time with --timeout"),
    };
    Err(Cause::new(what).because(cause).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use mainstay_clitest::block_on;
    use mainstay_command::cluster::{CatalogEndpoint, CatalogReadError, ObjectPage};
    use mainstay_object::Resource;
    use mainstay_removal::DeletionStep;
    use mainstay_resolver::fixture::CatalogData;
    use serde_json::json;

    #[test]
    fn goal_is_a_word_or_a_version_range() {
        for (text, parses) in [
            ("installed", true),
            ("deleted", true),
            ("version=1.2.x", true),
            ("version=", false),
            ("version=1.0 - 2.0", false),
            ("ready", true),
            ("healthy", false),
        ] {
            assert_eq!(text.parse::<WaitGoal>().is_ok(), parses, "{text}");
        }
    }

    #[test]
    fn version_goal_compares_the_installed_bundle() {
        let extension =
            json!({"status": {"install": {"bundle": {"name": "a", "version": "1.2.3"}}}});
        let extension = Object::from_value(extension).unwrap();
        for (text, is_reached) in
            [("version=1.2.x", true), ("version=2", false), ("installed", false)]
        {
            let goal: WaitGoal = text.parse().unwrap();
            assert_eq!(goal.is_reached(&extension), is_reached, "{text}");
        }
    }

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        arguments: Arguments,
    }

    /// A cluster that does not serve ClusterExtensions. It responds 404 to a read by name, as if only the
    /// object were missing.
    struct UnservedCluster;

    fn unserved() -> ClusterReadError {
        ClusterReadError::UnknownKind(Cause::new("the kind is not served"))
    }

    impl ClusterHandle for UnservedCluster {
        async fn list(
            &self,
            _: &Resource,
            _: Option<&str>,
            _: Option<&str>,
        ) -> Result<Vec<Object>, ClusterReadError> {
            Err(unserved())
        }

        async fn list_page(
            &self,
            _: &Resource,
            _: u32,
            _: &str,
        ) -> Result<ObjectPage, ClusterReadError> {
            Err(unserved())
        }

        async fn get(
            &self,
            _: &Resource,
            _: Option<&str>,
            _: &str,
        ) -> Result<Option<Object>, ClusterReadError> {
            Ok(None)
        }

        async fn delete(&self, _: &DeletionStep) -> Result<(), Cause> {
            Ok(())
        }

        async fn wait_until_gone(
            &self,
            _: &DeletionStep,
            _: Duration,
        ) -> Result<Option<Object>, Cause> {
            Ok(None)
        }

        fn default_namespace(&self) -> &'static str {
            "default"
        }

        async fn kube_version(&self) -> Option<String> {
            None
        }

        async fn namespaces(&self) -> Option<Vec<String>> {
            None
        }

        async fn read_catalog(&self, _: &str) -> Result<CatalogData, Cause> {
            Ok(CatalogData::default())
        }

        async fn read_cluster_catalog(
            &self,
            _: &CatalogEndpoint,
            _: &str,
        ) -> Result<Vec<u8>, CatalogReadError> {
            Ok(Vec::new())
        }
    }

    #[test]
    fn unserved_kind_is_an_error_of_every_goal() {
        for goal in ["installed", "ready", "version=1.x", "deleted"] {
            let flags = Flags::try_parse_from(["wait", "tea", "--for", goal]).unwrap();
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let stdin = &mut std::io::empty();
            let mut io = CommandIo::unattended(stdin, &mut out, &mut err, std::path::Path::new(""));
            let connect = async |_: &ClusterArguments, _| Ok(UnservedCluster);
            let failure = block_on(run(&flags.arguments, &mut io, connect)).unwrap_err();
            assert_eq!(failure.cause.what(), "the kind is not served", "{goal}");
            assert!(out.is_empty(), "{goal}");
        }
    }
}
