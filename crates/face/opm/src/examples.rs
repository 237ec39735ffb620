//! Examples in the help of each command.

/// Each command with its examples, by full name.
const EXAMPLES: &[(&str, &[&str])] = &[
    ("opm", &["opm validate ./catalog", "opm render ./catalog -o yaml"]),
    ("opm alpha", &["opm alpha list packages ./catalog"]),
    ("opm alpha bundle", &["opm alpha bundle generate -d kiwi/manifests -p kiwi -c stable"]),
    (
        "opm alpha bundle build",
        &["opm alpha bundle build -d kiwi/manifests -t registry.example/kiwi:v1 -p kiwi -c stable"],
    ),
    (
        "opm alpha bundle generate",
        &["opm alpha bundle generate -d kiwi/manifests -p kiwi -c stable -e stable"],
    ),
    ("opm alpha bundle unpack", &["opm alpha bundle unpack registry.example/kiwi:v1 -o kiwi"]),
    (
        "opm alpha bundle validate",
        &["opm alpha bundle validate -t registry.example/kiwi:v1 -b none"],
    ),
    ("opm alpha convert-template", &["opm alpha convert-template basic catalog.yaml"]),
    (
        "opm alpha convert-template basic",
        &["opm alpha convert-template basic catalog.yaml -o yaml"],
    ),
    (
        "opm alpha convert-template substitutes",
        &["opm alpha convert-template substitutes catalog.yaml -o yaml"],
    ),
    ("opm alpha list", &["opm alpha list packages ./catalog"]),
    ("opm alpha list bundles", &["opm alpha list bundles ./catalog kiwi"]),
    ("opm alpha list channels", &["opm alpha list channels ./catalog kiwi"]),
    ("opm alpha list packages", &["opm alpha list packages ./catalog"]),
    ("opm alpha render-graph", &["opm alpha render-graph ./catalog -p kiwi"]),
    ("opm alpha render-template", &["opm alpha render-template semver template.yaml -o yaml"]),
    ("opm completion", &["opm completion bash"]),
    ("opm completion bash", &["opm completion bash"]),
    ("opm completion fish", &["opm completion fish"]),
    ("opm completion powershell", &["opm completion powershell"]),
    ("opm completion zsh", &["opm completion zsh"]),
    ("opm generate", &["opm generate dockerfile ./catalog"]),
    ("opm generate dockerfile", &["opm generate dockerfile ./catalog"]),
    ("opm help", &["opm help alpha list"]),
    ("opm index", &["opm index export -i registry.example/index:v1 -p kiwi"]),
    ("opm index add", &["opm index add -b registry.example/kiwi:v1 -t registry.example/index:v1"]),
    (
        "opm index deprecatetruncate",
        &["opm index deprecatetruncate -f registry.example/index:v1 -b registry.example/kiwi:v1"],
    ),
    ("opm index export", &["opm index export -i registry.example/index:v1 -p kiwi"]),
    ("opm index prune", &["opm index prune -f registry.example/index:v1 -p kiwi"]),
    ("opm index prune-stranded", &["opm index prune-stranded -f registry.example/index:v1"]),
    ("opm index rm", &["opm index rm -f registry.example/index:v1 -o kiwi"]),
    ("opm init", &["opm init kiwi -c stable -d README.md -o yaml"]),
    ("opm migrate", &["opm migrate ./catalog ./migrated -o yaml"]),
    ("opm registry", &["opm registry serve -d bundles.db"]),
    ("opm registry add", &["opm registry add -b registry.example/kiwi:v1 -d bundles.db"]),
    (
        "opm registry deprecatetruncate",
        &["opm registry deprecatetruncate -b registry.example/kiwi:v1 -d bundles.db"],
    ),
    ("opm registry prune", &["opm registry prune -p kiwi -d bundles.db"]),
    ("opm registry prune-stranded", &["opm registry prune-stranded -d bundles.db"]),
    ("opm registry rm", &["opm registry rm -o kiwi -d bundles.db"]),
    ("opm registry serve", &["opm registry serve -d bundles.db -p 50051"]),
    ("opm render", &["opm render ./catalog -o yaml", "opm render registry.example/kiwi:v1"]),
    ("opm serve", &["opm serve ./catalog -p 50051"]),
    ("opm validate", &["opm validate ./catalog"]),
    ("opm version", &["opm version"]),
    ("operator-sdk", &["operator-sdk bundle validate ./kiwi"]),
    ("operator-sdk bundle", &["operator-sdk bundle validate ./kiwi"]),
    (
        "operator-sdk bundle validate",
        &[
            "operator-sdk bundle validate ./kiwi",
            "operator-sdk bundle validate ./kiwi --select-optional suite=operatorframework -o json-alpha1",
        ],
    ),
];

/// The examples of a command.
pub(super) fn examples_of(command: &str) -> &'static [&'static str] {
    EXAMPLES.iter().find(|(name, _)| *name == command).map_or(&[], |(_, examples)| examples)
}

#[cfg(test)]
mod tests {
    use super::super::command::Command;
    use super::super::{check, commands, sdk};
    use super::*;
    use std::collections::BTreeSet;

    /// Collects the full names of all commands.
    fn collect_names(command: &Command, above: &str, all: &mut BTreeSet<String>) {
        let name = format!("{above} {}", command.name()).trim_start().to_owned();
        if command.name() != "__complete" {
            for child in &command.children {
                collect_names(child, &name, all);
            }
            all.insert(name);
        }
    }

    #[test]
    fn every_command_has_examples_that_parse_without_an_error() {
        let mut all = BTreeSet::new();
        collect_names(&commands::root(true), "", &mut all);
        collect_names(&sdk::root(), "", &mut all);
        for name in &all {
            assert!(!examples_of(name).is_empty(), "{name} has no example");
            for example in examples_of(name) {
                assert!(example.starts_with(name), "{example} is no example of {name}");
                let words: Vec<String> = example.split(' ').map(str::to_owned).collect();
                let checked =
                    if words[0] == "opm" { check(&words[1..]) } else { sdk::check(&words[1..]) };
                assert_eq!(checked, Ok(()), "{example}");
            }
        }
        let stale = EXAMPLES.iter().filter(|(name, _)| !all.contains(*name));
        assert_eq!(stale.count(), 0, "examples of unknown commands");
    }

    #[test]
    fn an_invalid_command_line_is_a_usage_error() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for (text, expected) in [
            ("nosuch", "unknown command \"nosuch\" for \"opm\""),
            ("generate nosuch", "unknown command \"nosuch\" for \"opm generate\""),
            ("validate", "accepts 1 arg(s), received 0"),
            ("validate --nosuch x", "unknown flag: --nosuch"),
        ] {
            assert_eq!(check(&words(text)).unwrap_err().to_string(), expected, "{text}");
        }
        assert_eq!(check(&words("alpha list packages ./catalog --help")), Ok(()));
    }
}
