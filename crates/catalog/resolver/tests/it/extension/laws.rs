//! Properties of extension resolution, on small random scenarios.

use super::scenario::{
    Channel, Deprecations, Entry, EntryFields, Expected, InstalledBundle, Package, RequestData,
    Scenario, Source,
};
use mainstay_resolver::extension::{self, ExtensionChange, ExtensionFailureKind, ExtensionFix};
use mainstay_version::{Range, VersionConstraint, VersionRelease, parse_strict};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const VERSIONS: [&str; 10] = [
    "0.9.0",
    "1.0.0-rc.1",
    "1.0.0",
    "1.0.0+1",
    "1.0.0+2",
    "1.1.0",
    "1.2.0",
    "2.0.0",
    "2.1.0",
    "3.0.0",
];
const RANGES: [&str; 9] =
    ["", "", "", "1.0.0", ">=1.1.0", "<2.0.0", "1.x || 3.x", ">=1.0.0-0 <1.0.0", "9.x"];
const SKIP_RANGES: [&str; 6] = ["", "", "<1.0.0", ">=1.0.0 <2.0.0", "<3.0.0", "^1"];
const CHANNELS: [&str; 3] = ["alpha", "beta", "stable"];
const CATALOGS: [&str; 4] = ["a", "b", "c", "d"];

fn name(version: &str) -> String {
    format!("p.v{version}")
}

fn fields() -> impl Strategy<Value = EntryFields> {
    let dependency = prop_oneof![
        9 => Just(vec![]),
        1 => Just(vec!["olm.constraint".to_owned()]),
    ];
    let edges = (
        prop::option::of(select(&VERSIONS[..])),
        vec(select(&VERSIONS[..]), 0..2),
        select(&SKIP_RANGES[..]),
    );
    (dependency, edges).prop_map(|(properties, (replaces, skips, range))| EntryFields {
        properties,
        replaces: replaces.map(name).unwrap_or_default(),
        skips: skips.into_iter().map(name).collect(),
        skip_range: range.to_owned(),
        ..EntryFields::default()
    })
}

fn package() -> impl Strategy<Value = Package> {
    let versions = subsequence(&VERSIONS[..], 1..=5);
    let entries = vec(vec((any::<bool>(), fields()), 5), CHANNELS.len());
    let old = prop_oneof![Just(vec![false; 5]), vec(any::<bool>(), 5)];
    let properties = vec(fields(), 5);
    (versions, entries, old, properties).prop_map(|(versions, channels, old, properties)| {
        let bundle = |(version, fields): (&&str, EntryFields)| {
            let name = name(version);
            let (version, properties) = ((*version).to_owned(), fields.properties);
            Entry::EntryFields(EntryFields { name, version, properties, ..EntryFields::default() })
        };
        let channel = |(channel, entries): (&str, Vec<(bool, EntryFields)>)| Channel {
            name: channel.to_owned(),
            entries: versions
                .iter()
                .zip(entries)
                .filter(|(_, (there, _))| *there)
                .map(|(version, (_, fields))| {
                    Entry::EntryFields(EntryFields { name: name(version), ..fields })
                })
                .collect(),
        };
        let old = versions.iter().zip(old).filter(|(_, old)| *old);
        Package {
            channels: CHANNELS.into_iter().zip(channels).map(channel).collect(),
            deprecations: Some(Deprecations {
                bundles: old.map(|(version, _)| (name(version), "old".to_owned())).collect(),
                ..Deprecations::default()
            }),
            bundles: versions.iter().zip(properties).map(bundle).collect(),
        }
    })
}

fn source() -> impl Strategy<Value = Source> {
    let state = prop_oneof![8 => Just(0), 1 => Just(1), 1 => Just(2)];
    let labels =
        btree_map(Just("tier".to_owned()), select(vec!["gold".to_owned(), "x".to_owned()]), 0..2);
    (prop::option::weighted(0.9, package()), -1..2, state, labels).prop_map(
        |(package, priority, state, labels)| Source {
            package,
            priority,
            labels,
            unavailable: state == 1,
            not_served: state == 2,
            ..Source::default()
        },
    )
}

fn selector() -> impl Strategy<Value = Option<Value>> {
    prop_oneof![
        3 => Just(None),
        1 => Just(Some(json!({"matchLabels": {"tier": "gold"}}))),
        1 => Just(Some(json!({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}))),
    ]
}

/// A random scenario without expected result.
fn scenes() -> impl Strategy<Value = Scenario> {
    let installed = prop::option::of(select(&VERSIONS[..]));
    let channels = prop_oneof![Just(BTreeSet::default()), btree_set(select(&CHANNELS[..]), 1..3)];
    let request = (channels, select(&RANGES[..]), prop::bool::weighted(0.2), selector());
    (vec(source(), 0..4), installed, request).prop_map(|(mut catalogs, installed, request)| {
        let (channels, version, any_edge, selector) = request;
        for (source, name) in catalogs.iter_mut().zip(CATALOGS) {
            name.clone_into(&mut source.name);
        }
        Scenario {
            name: "made at random".to_owned(),
            ids: Value::Null,
            request: RequestData {
                package: "p".to_owned(),
                channels: channels.into_iter().map(str::to_owned).collect(),
                version: version.to_owned(),
                policy: if any_edge { "SelfCertified" } else { "" }.to_owned(),
                selector,
            },
            installed: installed.map(|version| InstalledBundle {
                name: name(version),
                version: version.to_owned(),
                release: None,
            }),
            explicit_releases: false,
            catalogs,
            expect: Expected::default(),
        }
    })
}

/// The expected result, by a direct implementation of the rules.
#[derive(Debug, PartialEq)]
enum Plain {
    Bundle(String, String),
    Nothing(ExtensionFailureKind),
}

fn plain(scenario: &Scenario) -> Plain {
    let request = &scenario.request;
    let mut broken: Vec<&Source> = Vec::new();
    let mut actual: Vec<(&Source, EntryFields, bool)> = Vec::new();
    for source in
        scenario.catalogs.iter().filter(|source| !source.unavailable && selected(request, source))
    {
        if source.is_broken() {
            broken.push(source);
            continue;
        }
        let Some(package) = &source.package else { continue };
        let old = |bundle: &EntryFields| {
            package
                .deprecations
                .as_ref()
                .is_some_and(|deprecations| deprecations.bundles.contains_key(&bundle.name))
        };
        let mut fits: Vec<EntryFields> =
            package.bundles.iter().map(|bundle| bundle.fields("p")).collect();
        fits.retain(|bundle| fits_in(scenario, package, bundle));
        let parsed = |bundle: &EntryFields| VersionRelease::parse_legacy(&bundle.version).unwrap();
        let best = fits.into_iter().max_by_key(|bundle| (!old(bundle), parsed(bundle)));
        actual.extend(best.map(|bundle| (source, bundle.clone(), old(&bundle))));
    }
    if actual.iter().any(|(_, _, old)| !old) {
        actual.retain(|(_, _, old)| !old);
    }
    let top = actual.iter().map(|(source, _, _)| source.priority).max();
    let tops: Vec<_> =
        actual.iter().filter(|(source, _, _)| Some(source.priority) == top).collect();
    let blocked = |source: &&&Source| match tops.as_slice() {
        [(winner, _, old)] => *old || source.priority >= winner.priority,
        _ => true,
    };
    if broken.iter().any(|source| blocked(&source)) {
        return Plain::Nothing(ExtensionFailureKind::Unreadable);
    }
    match tops.as_slice() {
        [] => Plain::Nothing(ExtensionFailureKind::NotFound),
        [(_, bundle, _)] if !bundle.properties.is_empty() => {
            Plain::Nothing(ExtensionFailureKind::Dependency)
        }
        [(source, bundle, _)] => Plain::Bundle(source.name.clone(), bundle.name.clone()),
        _ => Plain::Nothing(ExtensionFailureKind::Ambiguous),
    }
}

fn selected(request: &RequestData, source: &Source) -> bool {
    let tier = source.labels.get("tier").map(String::as_str);
    match &request.selector {
        None => true,
        Some(selector) if selector.get("matchLabels").is_some() => tier == Some("gold"),
        Some(_) => tier.is_none(),
    }
}

fn fits_in(scenario: &Scenario, package: &Package, bundle: &EntryFields) -> bool {
    let request = &scenario.request;
    let entries = || {
        let is_requested = |channel: &&Channel| {
            request.channels.is_empty() || request.channels.contains(&channel.name)
        };
        let channels = package.channels.iter().filter(is_requested);
        channels
            .flat_map(|channel| &channel.entries)
            .map(|entry| entry.fields("p"))
            .filter(|fields| fields.name == bundle.name)
    };
    let version = VersionRelease::parse_legacy(&bundle.version).unwrap();
    let in_range = request.version.is_empty()
        || VersionConstraint::parse(&request.version).unwrap().contains(version.version());
    let follows = match &scenario.installed {
        Some(installed) if request.policy != "SelfCertified" => {
            let at = parse_strict(&installed.version).unwrap();
            let holds = |range: &str| Range::parse(range).is_ok_and(|range| range.contains(&at));
            version == VersionRelease::parse_legacy(&installed.version).unwrap()
                || entries().any(|entry| {
                    entry.replaces == installed.name
                        || entry.skips.contains(&installed.name)
                        || !entry.skip_range.is_empty() && holds(&entry.skip_range)
                })
        }
        _ => true,
    };
    in_range && follows && (request.channels.is_empty() || entries().count() > 0)
}

/// The scenario with all lists in another order.
fn shuffled(scenario: &Scenario, order: &[Index]) -> Scenario {
    let mut scenario = scenario.clone();
    let mut order = order.iter().cycle();
    let mut next = |length: usize| order.next().map_or(0, |index| index.index(length.max(1)));
    for source in &mut scenario.catalogs {
        let Some(package) = &mut source.package else { continue };
        turn(&mut package.bundles, &mut next);
        turn(&mut package.channels, &mut next);
        for channel in &mut package.channels {
            turn(&mut channel.entries, &mut next);
            for entry in &mut channel.entries {
                if let Entry::EntryFields(entry) = entry {
                    turn(&mut entry.skips, &mut next);
                }
            }
        }
    }
    turn(&mut scenario.catalogs, &mut next);
    scenario
}

fn turn<T>(list: &mut [T], next: &mut impl FnMut(usize) -> usize) {
    for at in 0..list.len() {
        let other = next(list.len());
        list.swap(at, other);
    }
}

/// The result after a repair.
fn mended(scenario: &Scenario, repair: &ExtensionFix) -> Option<(String, String)> {
    let contents = scenario.package_contents();
    let mut catalogs = scenario.catalogs(&contents);
    let mut request = scenario.request();
    repair.apply(&mut request, &mut catalogs);
    let choice = extension::resolve(&request, scenario.installed().as_ref(), &catalogs).ok()?;
    Some((choice.catalog, choice.bundle.to_string()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// The result equals that of the direct implementation of the rules.
    #[test]
    fn extension_choice_equals_that_of_exhaustive_search(scenario in scenes()) {
        let answer = match scenario.answer() {
            Ok(choice) => Plain::Bundle(choice.catalog, choice.bundle.to_string()),
            Err(failure) => Plain::Nothing(failure.kind),
        };
        prop_assert_eq!(answer, plain(&scenario));
    }

    /// The order of lists does not change a byte of the result or its explanation.
    #[test]
    fn order_of_content_does_not_change_the_choice(scenario in scenes(), order in vec(any::<Index>(), 1..40)) {
        let other = shuffled(&scenario, &order);
        prop_assert_eq!(format!("{:?}", scenario.answer()), format!("{:?}", other.answer()));
    }

    /// Each repair leads to the bundle that it names.
    #[test]
    fn each_repair_leads_to_a_bundle(scenario in scenes()) {
        if let Err(failure) = scenario.answer() {
            for repair in &failure.repairs {
                let named = (repair.catalog.clone(), repair.bundle.to_string());
                prop_assert_eq!(mended(&scenario, repair), Some(named), "{}", repair);
            }
        }
    }

    /// The onward steps of a repair lead into the range, one update after the other.
    #[test]
    fn onward_steps_lead_into_the_requested_range(scenario in scenes()) {
        let Err(failure) = scenario.answer() else { return Ok(()) };
        for repair in failure.repairs.iter().filter(|repair| !repair.onward.is_empty()) {
            let mut walk = scenario.clone();
            for change in &repair.changes {
                if let ExtensionChange::Channel(name) = change {
                    walk.request.channels.push(name.clone());
                }
            }
            let mut at = repair.bundle.to_string();
            for version in &repair.onward {
                let installed = at.strip_prefix("p.v").unwrap().to_owned();
                walk.installed = Some(InstalledBundle { name: at, version: installed, release: None });
                walk.request.version.clone_from(version);
                let follow = fitting(&walk);
                prop_assert!(!follow.is_empty(), "{} leads nowhere at {}", repair, version);
                at = follow[0].clone();
            }
            let last = at.strip_prefix("p.v").unwrap();
            let range = VersionConstraint::parse(&scenario.request.version).unwrap();
            let last = VersionRelease::parse_legacy(last).unwrap();
            prop_assert!(range.contains(last.version()), "{}", repair);
        }
    }
}

/// The bundles of all catalogs that fit.
fn fitting(scenario: &Scenario) -> Vec<String> {
    let packages = scenario.catalogs.iter().filter_map(|source| source.package.as_ref());
    packages
        .flat_map(|package| package.bundles.iter().map(move |bundle| (package, bundle.fields("p"))))
        .filter(|(package, bundle)| fits_in(scenario, package, bundle))
        .map(|(_, bundle)| bundle.name)
        .collect()
}

/// The random scenarios cover all kinds of results.
#[test]
fn random_scenes_cover_all_failure_kinds() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut kinds: BTreeMap<String, u32> = BTreeMap::new();
    let mut led = 0;
    for _ in 0..1500 {
        let scenario = scenes().new_tree(&mut runner).unwrap().current();
        let kind = match scenario.answer() {
            Ok(_) => "found".to_owned(),
            Err(failure) => {
                led += usize::from(failure.repairs.iter().any(|repair| !repair.onward.is_empty()));
                format!("{:?}", failure.kind)
            }
        };
        *kinds.entry(kind).or_default() += 1;
    }
    for kind in ["found", "NotFound", "Ambiguous", "Unreadable", "Dependency"] {
        assert!(kinds.get(kind).is_some_and(|count| *count > 20), "{kind}: {kinds:?}");
    }
    assert!(led > 2, "{led} of {kinds:?}");
}
