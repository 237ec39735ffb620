//! The functions of Kubernetes' environments, by version.

use mainstay_cel::Env;
use mainstay_cel::library::Overload;
use std::collections::BTreeSet;

/// Every overload of Kubernetes 1.35: the minor version that added it, its id, its signature.
const SIGNATURES: &str = include_str!("recorded/signatures.txt");

fn signature(overload: &Overload) -> String {
    let Overload { id, function, receiver, params, result, .. } = overload;
    let mut params: Vec<_> = params.iter().map(ToString::to_string).collect();
    let target = if *receiver { params.remove(0) + "." } else { String::new() };
    format!("{id}: {target}{function}({}) -> {result}", params.join(", "))
}

#[test]
fn each_version_has_the_functions_of_kubernetes() {
    for minor in [23, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 99] {
        let expected: BTreeSet<_> = SIGNATURES
            .lines()
            .filter_map(|line| line.split_once(' '))
            .filter(|(since, _)| since.parse::<u32>().unwrap() <= minor)
            .map(|(_, signature)| signature.to_owned())
            .collect();
        let env = Env::kubernetes(minor);
        let found: BTreeSet<_> = env.functions().map(|overload| signature(overload)).collect();
        let missing: Vec<_> = expected.difference(&found).collect();
        let surplus: Vec<_> = found.difference(&expected).collect();
        assert!(
            missing.is_empty() && surplus.is_empty(),
            "1.{minor} lacks {missing:#?}\nand should not have {surplus:#?}"
        );
    }
}
