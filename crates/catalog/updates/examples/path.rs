//! How a version of an operator gets to the head of a channel: by default, in the fewest steps, and
//! under the rules of OLM v1. Run it with `cargo run -p mainstay-updates --example path`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use mainstay_updates::{
    EntryEdges, Graph, InstalledBundle, Semantics, UnorderedChannel, UpdateStep,
};

fn main() -> Result<(), UnorderedChannel> {
    let replaces = |name| EntryEdges { replaces: Some(name), ..EntryEdges::default() };
    let graph = Graph::builder("teapot")
        .default_channel("stable")
        .bundle("teapot.v1.0.0", "1.0.0")
        .bundle("teapot.v1.1.0", "1.1.0")
        .bundle("teapot.v1.1.1", "1.1.1")
        .bundle("teapot.v1.2.0", "1.2.0")
        .bundle("teapot.v2.0.0", "2.0.0")
        .entry("stable", "teapot.v1.0.0", EntryEdges::default())
        .entry("stable", "teapot.v1.1.0", replaces("teapot.v1.0.0"))
        // A bad release: replaced by 1.2.0 and never installed anew.
        .entry("stable", "teapot.v1.1.1", replaces("teapot.v1.1.0"))
        .entry(
            "stable",
            "teapot.v1.2.0",
            EntryEdges { skips: &["teapot.v1.1.1"], ..replaces("teapot.v1.1.0") },
        )
        .entry(
            "fast",
            "teapot.v2.0.0",
            EntryEdges { skip_range: Some(">=1.1.0 <2.0.0"), ..EntryEdges::default() },
        )
        .deprecate_bundle("teapot.v1.1.1", "spills")
        .finish();

    let show = |steps: &[UpdateStep<'_>]| {
        let names: Vec<String> = steps
            .iter()
            .map(|step| format!("{} ({})", step.bundle.name, step.edge.as_str()))
            .collect();
        names.join(" -> ")
    };
    let Some(oldest) = graph.bundle("teapot.v1.0.0") else { return Ok(()) };
    let installed = InstalledBundle::from(oldest);

    let stable = graph.view(Semantics::Classic, &["stable"])?;
    let route = stable.path(&installed);
    println!("a Subscription to stable: {}", show(&route.steps));
    println!("ends there because {}", route.end);
    for never in stable.never_chosen() {
        println!("never installed anew: {}", never.entry.name);
    }

    let all = graph.view(Semantics::Extension, &[])?;
    println!("an extension: {}", show(&all.path(&installed).steps));
    if let Some(shortest) = all.shortest(&installed) {
        println!("in the fewest steps: {}", show(&shortest));
    }
    for stranded in all.stranded() {
        println!("{} is stranded at {}: {}", stranded.bundle.name, stranded.at.name, stranded.end);
    }

    for switch in graph.switches(Semantics::Classic, &installed) {
        let first = switch.first().map_or("nothing yet", |step| &*step.bundle.name);
        println!("channel {} would begin with {first}", switch.channel.name);
    }
    Ok(())
}
