//! Contradictory arguments: two arguments that set one thing to different values.

use super::ResolveArguments;
use super::argument::{ChangeArgument, unusable};
use mainstay_command::exit::CommandFailure;
use mainstay_whatif::WhatIfChange;

/// A value that an argument sets.
struct Setting {
    /// The thing that the argument sets.
    subject: String,
    /// The argument as it is typed.
    argument: String,
    value: String,
}

/// Checks that no two arguments set one thing to different values.
///
/// # Errors
/// Two arguments contradict each other.
pub(super) fn check(arguments: &ResolveArguments) -> Result<(), CommandFailure> {
    let settings = settings(arguments);
    for (at, setting) in settings.iter().enumerate() {
        let contradicts = |earlier: &&Setting| {
            earlier.subject == setting.subject && earlier.value != setting.value
        };
        if let Some(earlier) = settings[..at].iter().find(contradicts) {
            let why = format!("`{}` contradicts it", earlier.argument);
            let cause = unusable(&setting.argument, why);
            return Err(CommandFailure::usage(cause.remedy("omit one of the two")));
        }
    }
    Ok(())
}

fn settings(arguments: &ResolveArguments) -> Vec<Setting> {
    let mut settings = Vec::new();
    for request in arguments.packages() {
        settings.push(Setting {
            subject: format!("package {}", request.package),
            argument: request.to_string(),
            value: request.to_string(),
        });
    }
    for given in &arguments.catalogs {
        settings.push(Setting {
            subject: format!("the content of catalog {}", given.name),
            argument: format!("--catalog {}={}", given.name, given.folder),
            value: given.folder.clone(),
        });
    }
    for given in &arguments.priorities {
        settings.push(Setting {
            subject: format!("the priority of catalog {}", given.name),
            argument: format!("--priority {}={}", given.name, given.priority),
            value: given.priority.to_string(),
        });
    }
    for ChangeArgument { text, change } in &arguments.changes {
        let subject = match change {
            WhatIfChange::Subscribe(request) => format!("package {}, supposed", request.package),
            WhatIfChange::ReplaceContent(folder) => {
                format!("the content of catalog {}, supposed", folder.name)
            }
            WhatIfChange::KubeVersion(_) => "the version of Kubernetes".to_owned(),
            _ => continue,
        };
        settings.push(Setting {
            subject,
            argument: format!("--what-if {text}"),
            value: text.clone(),
        });
    }
    settings
}
