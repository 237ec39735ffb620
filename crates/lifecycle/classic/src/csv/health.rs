//! Deployment health: compares the Deployments of a CSV with the desired ones.

use crate::fields;
use std::collections::BTreeMap;

/// The fields of a desired Deployment that the check compares.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ExpectedDeployment {
    pub(crate) name: String,
    pub(crate) spec_hash: String,
}

/// The first problem with the Deployments of a CSV.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unhealthy {
    /// It does not exist.
    Missing(String),
    /// A rollout runs while the Deployment is available; a new install would not help.
    Progressing(String),
    /// The Deployment is not available yet.
    Waiting(String),
    /// The Deployment differs from the desired one; a new install helps.
    Outdated(String),
    /// The Deployment exceeded its progress deadline; only a change of its spec helps.
    Stuck(String),
    /// The Deployments are healthy, but an APIService of theirs is not available.
    Away(String),
}

impl Unhealthy {
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Missing(text)
            | Self::Progressing(text)
            | Self::Waiting(text)
            | Self::Outdated(text)
            | Self::Stuck(text)
            | Self::Away(text) => text,
        }
    }

    /// The message of the CSV status.
    pub(crate) fn status_message(&self) -> String {
        match self {
            Self::Away(text) => text.clone(),
            other => format!("installing: {}", other.message()),
        }
    }
}

/// Checks the Deployments in the order of the list in the CSV. `annotations` are those of the CSV,
/// which every pod must carry.
///
/// An outdated Deployment is reported before one that is not ready, because a new install may make
/// it ready.
pub(crate) fn check<'a>(
    expected: &[ExpectedDeployment],
    annotations: &BTreeMap<String, String>,
    find: impl Fn(&str) -> Option<&'a fields::Deployment>,
) -> Result<(), Unhealthy> {
    for wanted in expected {
        find(&wanted.name).map_or(Ok(()), |found| check_spec(wanted, annotations, found))?;
    }
    for wanted in expected {
        let name = &wanted.name;
        let Some(found) = find(name) else {
            return Err(Unhealthy::Missing(format!("missing deployment with name={name}")));
        };
        check_ready(name, found)?;
    }
    Ok(())
}

/// Whether a Deployment is up to date with its CSV.
fn check_spec(
    wanted: &ExpectedDeployment,
    annotations: &BTreeMap<String, String>,
    found: &fields::Deployment,
) -> Result<(), Unhealthy> {
    let name = &wanted.name;
    if !annotations.is_empty() && found.template_annotations.is_empty() {
        return Err(Unhealthy::Outdated("no annotations found on deployment".to_owned()));
    }
    for (key, value) in annotations {
        match found.template_annotations.get(key) {
            None => {
                return Err(Unhealthy::Outdated(format!(
                    "annotations on deployment does not contain expected key: {key}"
                )));
            }
            Some(actual) if actual != value => {
                return Err(Unhealthy::Outdated(format!(
                    "unexpected annotation on deployment. Expected {key}:{value}, found {key}:{actual}"
                )));
            }
            Some(_) => {}
        }
    }
    match &found.spec_hash {
        None => Err(Unhealthy::Outdated(format!(
            "deployment {name} doesn't have a spec hash, update it"
        ))),
        Some(hash) if *hash != wanted.spec_hash => Err(Unhealthy::Outdated(format!(
            "deployment changed old hash={hash}, new hash={}",
            wanted.spec_hash
        ))),
        Some(_) => Ok(()),
    }
}

fn check_ready(name: &str, found: &fields::Deployment) -> Result<(), Unhealthy> {
    let available = found.available.as_ref().is_some_and(|(status, _)| status == "True");
    let waiting = |why: String| {
        let text = format!("waiting for deployment {name} to become ready: {why}");
        Err(if available { Unhealthy::Progressing(text) } else { Unhealthy::Waiting(text) })
    };
    if !found.observed {
        return waiting(format!(
            "waiting for spec update of deployment \"{name}\" to be observed..."
        ));
    }
    if found.progressing.as_deref() == Some("ProgressDeadlineExceeded") {
        return Err(Unhealthy::Stuck(format!(
            "deployment {name} not ready before timeout: deployment \"{name}\" exceeded its progress deadline"
        )));
    }
    let (replicas, updated) = found.replicas;
    if replicas > updated {
        return waiting(format!(
            "deployment \"{name}\" waiting for {} outdated replica(s) to be terminated",
            replicas - updated
        ));
    }
    match &found.available {
        _ if available => Ok(()),
        Some((_, message)) => waiting(format!("deployment \"{name}\" not available: {message}")),
        None => {
            waiting(format!("deployment \"{name}\" not available: missing condition \"Available\""))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn healthy_deployment() -> fields::Deployment {
        fields::Deployment {
            spec_hash: Some("h".into()),
            observed: true,
            replicas: (1, 1),
            available: Some(("True".into(), String::new())),
            template_annotations: [("k".to_owned(), "v".to_owned())].into(),
            ..fields::Deployment::default()
        }
    }

    #[test]
    fn the_first_deployment_problem_is_reported_with_the_message_of_the_original() {
        let with = |change: &dyn Fn(&mut fields::Deployment)| {
            let mut deployment = healthy_deployment();
            change(&mut deployment);
            Some(deployment)
        };
        let waiting_text = |text: &str| format!("waiting for deployment d to become ready: {text}");
        let wait = |text: &str| Err(Unhealthy::Waiting(waiting_text(text)));
        let roll = |text: &str| Err(Unhealthy::Progressing(waiting_text(text)));
        for (found, wanted) in [
            (Some(healthy_deployment()), Ok(())),
            (None, Err(Unhealthy::Missing("missing deployment with name=d".into()))),
            (
                with(&|deployment| deployment.observed = false),
                roll("waiting for spec update of deployment \"d\" to be observed..."),
            ),
            (
                with(&|deployment| deployment.progressing = Some("ProgressDeadlineExceeded".into())),
                Err(Unhealthy::Stuck(
                    "deployment d not ready before timeout: deployment \"d\" exceeded its progress deadline".into(),
                )),
            ),
            (
                with(&|deployment| deployment.replicas = (3, 1)),
                roll("deployment \"d\" waiting for 2 outdated replica(s) to be terminated"),
            ),
            (
                with(&|deployment| deployment.available = Some(("False".into(), "no".into()))),
                wait("deployment \"d\" not available: no"),
            ),
            (
                with(&|deployment| deployment.available = None),
                wait("deployment \"d\" not available: missing condition \"Available\""),
            ),
            (
                with(&|deployment| deployment.template_annotations.clear()),
                Err(Unhealthy::Outdated("no annotations found on deployment".into())),
            ),
            (
                with(&|deployment| {
                    deployment.template_annotations.insert("k".into(), "w".into());
                }),
                Err(Unhealthy::Outdated(
                    "unexpected annotation on deployment. Expected k:v, found k:w".into(),
                )),
            ),
            (
                with(&|deployment| deployment.spec_hash = Some("other".into())),
                Err(Unhealthy::Outdated("deployment changed old hash=other, new hash=h".into())),
            ),
            (
                with(&|deployment| {
                    deployment.spec_hash = Some("other".into());
                    deployment.progressing = Some("ProgressDeadlineExceeded".into());
                }),
                Err(Unhealthy::Outdated("deployment changed old hash=other, new hash=h".into())),
            ),
            (
                with(&|deployment| deployment.spec_hash = None),
                Err(Unhealthy::Outdated("deployment d doesn't have a spec hash, update it".into())),
            ),
        ] {
            let expected = [ExpectedDeployment { name: "d".into(), spec_hash: "h".into() }];
            let annotations = [("k".to_owned(), "v".to_owned())].into();
            assert_eq!(check(&expected, &annotations, |_| found.as_ref()), wanted);
        }
    }
}
