//! Install modes: whether an operator may watch the target namespaces of its OperatorGroup.

use mainstay_api::{InstallMode, InstallModeType};
use std::collections::BTreeMap;

/// Why an operator cannot watch the namespaces of its OperatorGroup; the messages are those of the
/// original.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InstallModeError {
    /// A mode is listed twice.
    #[error("InstallMode list contains duplicates, cannot make set: [{list}]")]
    Duplicate {
        /// The whole list.
        list: String,
    },
    /// The CSV does not support a mode that the namespaces need.
    #[error("{mode} InstallModeType not supported, cannot configure to watch {namespaces}")]
    Unsupported {
        /// The mode.
        mode: InstallModeType,
        /// The namespaces to watch.
        namespaces: String,
    },
    /// There are no namespaces.
    #[error(
        "operatorgroup has invalid selected namespaces, cannot configure to watch zero namespaces"
    )]
    NoNamespaces,
    /// All namespaces are listed beside others.
    #[error(
        "operatorgroup has invalid selected namespaces, NamespaceAll found when |selected namespaces| > 1"
    )]
    AllAmongOthers,
}

/// The install modes of a CSV, and whether each is supported.
pub(crate) struct InstallModes(BTreeMap<InstallModeType, bool>);

impl InstallModes {
    /// Parses the list; each mode must be unique.
    pub(crate) fn parse(list: &[InstallMode]) -> Result<Self, InstallModeError> {
        let mut modes = BTreeMap::new();
        for mode in list {
            if modes.insert(mode.kind.clone(), mode.supported).is_some() {
                let text = |mode: &InstallMode| format!("{{{} {}}}", mode.kind, mode.supported);
                let all: Vec<String> = list.iter().map(text).collect();
                return Err(InstallModeError::Duplicate { list: all.join(" ") });
            }
        }
        Ok(Self(modes))
    }

    fn supports(&self, mode: &InstallModeType) -> bool {
        self.0.get(mode).copied().unwrap_or_default()
    }

    /// Checks whether an operator in `own` may watch `targets`; one empty text stands for all
    /// namespaces.
    pub(crate) fn check(&self, own: &str, targets: &[&str]) -> Result<(), InstallModeError> {
        let need = |mode: InstallModeType, namespaces: &str| {
            if self.supports(&mode) || mainstay_fault::is_on("install-modes-are-not-checked") {
                Ok(())
            } else {
                Err(InstallModeError::Unsupported { mode, namespaces: namespaces.to_owned() })
            }
        };
        match targets {
            [] => Err(InstallModeError::NoNamespaces),
            [one] if *one == own => need(InstallModeType::OwnNamespace, "own namespace"),
            [""] => need(InstallModeType::AllNamespaces, "all namespaces"),
            [_] => need(InstallModeType::SingleNamespace, "one namespace"),
            many => {
                need(InstallModeType::MultiNamespace, &format!("{} namespaces", many.len()))?;
                if many.contains(&own) {
                    need(InstallModeType::OwnNamespace, "own namespace")?;
                }
                if many.contains(&"") {
                    return Err(InstallModeError::AllAmongOthers);
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_api::InstallModeType as Mode;

    fn modes(list: &[(Mode, bool)]) -> Vec<InstallMode> {
        list.iter()
            .map(|(kind, supported)| InstallMode { kind: kind.clone(), supported: *supported })
            .collect()
    }

    #[test]
    fn each_form_of_target_namespaces_needs_its_install_mode() {
        let all =
            [Mode::OwnNamespace, Mode::SingleNamespace, Mode::MultiNamespace, Mode::AllNamespaces];
        let no = |mode: &str, what: &str| {
            Err(format!("{mode} InstallModeType not supported, cannot configure to watch {what}"))
        };
        let table: [(&[&str], usize, Result<(), String>); 5] = [
            (&["ns"], 0, no("OwnNamespace", "own namespace")),
            (&["other"], 1, no("SingleNamespace", "one namespace")),
            (&["b", "c"], 2, no("MultiNamespace", "2 namespaces")),
            (&[""], 3, no("AllNamespaces", "all namespaces")),
            (&["b", "ns"], 0, no("OwnNamespace", "own namespace")),
        ];
        for (targets, missing, refusal) in table {
            let with = |without: Option<usize>| {
                let list: Vec<(Mode, bool)> = all
                    .iter()
                    .enumerate()
                    .map(|(at, mode)| (mode.clone(), Some(at) != without))
                    .collect();
                InstallModes::parse(&modes(&list)).unwrap().check("ns", targets)
            };
            assert_eq!(with(None), Ok(()), "{targets:?}");
            let found = with(Some(missing)).map_err(|error| error.to_string());
            assert_eq!(found, refusal, "{targets:?}");
        }
    }

    #[test]
    fn a_mode_that_is_listed_twice_is_refused_with_the_whole_list() {
        let list = modes(&[
            (Mode::OwnNamespace, true),
            (Mode::SingleNamespace, false),
            (Mode::OwnNamespace, false),
        ]);
        assert_eq!(
            InstallModes::parse(&list).err().unwrap().to_string(),
            "InstallMode list contains duplicates, cannot make set: [{OwnNamespace true} {SingleNamespace false} {OwnNamespace false}]"
        );
    }
}
