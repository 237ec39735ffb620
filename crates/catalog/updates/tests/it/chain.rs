//! Channel order: tables of examples.

use mainstay_updates::{ChannelEntry, chain};

/// An entry: its name, what it replaces (empty: nothing), what it skips.
#[derive(Clone, Copy, Debug)]
struct Entry<'a>(&'a str, &'a str, &'a [&'a str]);

impl ChannelEntry for Entry<'_> {
    fn name(&self) -> &str {
        self.0
    }
    fn replaces(&self) -> Option<&str> {
        (!self.1.is_empty()).then_some(self.1)
    }
    fn skips(&self) -> impl Iterator<Item = &str> {
        self.2.iter().copied()
    }
}

/// Names in their order, or the text.
fn sorted(entries: &[Entry<'_>]) -> String {
    match chain(entries) {
        Ok(order) => order.iter().map(|&at| entries[at].0).collect::<Vec<_>>().join(" "),
        Err(why) => why.text("package", "channel"),
    }
}

#[test]
fn entries_are_ordered_from_the_head_down_the_chain_of_replaces() {
    let none = "no channel heads (entries not replaced by another entry) found in channel \
                \"channel\" of package \"package\"";
    let cycle = "a cycle exists in the chain of replacement beginning with \"a\" in channel \
                 \"channel\" of package \"package\"";
    let several = |chains: &str| {
        format!(
            "a unique replacement chain within a channel is required to determine the relative \
             order between channel entries, but {} replacement chains were found in channel \
             \"channel\" of package \"package\": {chains}",
            chains.split(", ").count()
        )
    };
    let table: &[(&str, &[Entry<'_>], &str)] = &[
        // R076, row by row.
        ("ordered", &[Entry("b", "", &[]), Entry("a", "b", &[])], "a b"),
        ("empty", &[], ""),
        ("pure cycle", &[Entry("a", "b", &[]), Entry("b", "a", &[])], none),
        (
            "a cycle at the tail",
            &[Entry("a", "b", &[]), Entry("b", "c", &[]), Entry("c", "b", &[])],
            cycle,
        ),
        ("skipped and replaced", &[Entry("a", "b", &["b"]), Entry("b", "", &[])], "a"),
        (
            "skipped is left out, and is still a link",
            &[
                Entry("a", "b", &[]),
                Entry("b", "c", &[]),
                Entry("c", "", &[]),
                Entry("d", "a", &["b"]),
            ],
            "d a c",
        ),
        (
            "two chains",
            &[Entry("a", "", &[]), Entry("b", "c", &[]), Entry("c", "", &[])],
            &several("a, b...c"),
        ),
        // Consequences of R076.
        ("alone", &[Entry("a", "", &[])], "a"),
        ("what is not there is no edge", &[Entry("a", "x", &["y"])], "a"),
        (
            "skipping needs no chain",
            &[Entry("a", "", &["b", "c"]), Entry("b", "c", &[]), Entry("c", "", &[])],
            "a",
        ),
        (
            "a circle beside the chain is not reached",
            &[Entry("a", "", &[]), Entry("b", "c", &[]), Entry("c", "b", &[])],
            "a",
        ),
        (
            "who is skipped, unchained, is in no order",
            &[Entry("a", "b", &["c"]), Entry("b", "", &[]), Entry("c", "", &[])],
            "a b",
        ),
        ("an entry that replaces itself is no head", &[Entry("a", "a", &[])], none),
        ("an entry that skips itself is no head", &[Entry("a", "", &["a"])], none),
        (
            "chains can share their tails",
            &[
                Entry("a", "c", &[]),
                Entry("b", "c", &[]),
                Entry("c", "d", &[]),
                Entry("d", "", &[]),
            ],
            &several("a...d, b...d"),
        ),
        (
            "ends of chains are never skipped entries",
            &[
                Entry("a", "c", &[]),
                Entry("b", "", &["c", "d"]),
                Entry("c", "d", &[]),
                Entry("d", "", &[]),
            ],
            &several("a, b"),
        ),
        (
            "the first head whose chain is a cycle is named",
            &[
                Entry("z", "", &[]),
                Entry("a", "b", &[]),
                Entry("b", "c", &[]),
                Entry("c", "b", &[]),
            ],
            cycle,
        ),
        (
            "of one name the last is the target of edges",
            &[Entry("b", "", &[]), Entry("b", "", &[]), Entry("a", "b", &[])],
            &several("b, a...b"),
        ),
        (
            "a name that is skipped is skipped in all its entries",
            &[Entry("b", "", &[]), Entry("b", "", &[]), Entry("a", "", &["b"])],
            &several("[], a"),
        ),
    ];
    for (rule, entries, expected) in table {
        assert_eq!(sorted(entries), *expected, "{rule}: {entries:?}");
    }
}

#[test]
fn long_chains_and_many_heads_take_linear_time() {
    let names: Vec<String> = (0..100_000).map(|at| format!("e{at:06}")).collect();
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for (at, name) in names.iter().enumerate() {
        entries.push(Entry(name, if at > 0 { &names[at - 1] } else { "" }, &[]));
    }
    assert_eq!(chain(&entries).map(|order| order.len()), Ok(100_000));
    // Half of them are heads over one chain of the other half.
    for entry in &mut entries[50_000..] {
        entry.1 = &names[49_999];
    }
    let text = sorted(&entries);
    assert!(text.contains("but 50000 replacement chains"), "{}", &text[..200]);
    assert!(text.contains(": e050000...e000000, e050001...e000000, "), "{}", &text[..300]);
    // And a cycle.
    for (at, entry) in entries.iter_mut().enumerate() {
        entry.1 = &names[if at == 0 { 50_000 } else { at - 1 }];
    }
    assert!(sorted(&entries).starts_with("a cycle exists in the chain"));
}
