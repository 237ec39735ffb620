//! A failure and its repairs: two Subscriptions that contradict each other, and one that is
//! resolved. The input is plain data. Run it with `cargo run -p mainstay-resolver --example
//! explain`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use mainstay_resolver::fixture::Fixture;
use mainstay_resolver::resolve;
use std::collections::HashMap;

const KITCHEN: &str = r#"{
  "namespace": "tea", "globalNamespace": "olm", "operatorGroups": [{"name": "tea"}],
  "catalogs": [{
    "name": "kitchen", "namespace": "olm",
    "packages": [
      {"name": "teapot", "defaultChannel": "stable", "channels": [
        {"name": "stable", "entries": [{"name": "teapot.v1.0.0"}]},
        {"name": "fast", "entries": [{"name": "teapot.v2.0.0"}]}]},
      {"name": "samovar", "defaultChannel": "stable", "channels": [
        {"name": "stable", "entries": [{"name": "samovar.v1.0.0"}]}]},
      {"name": "cup", "defaultChannel": "stable", "channels": [
        {"name": "stable", "entries": [{"name": "cup.v1.0.0"}]}]}],
    "bundles": [
      {"name": "teapot.v1.0.0", "package": "teapot", "version": "1.0.0", "properties": [
        {"type": "olm.gvk", "value": {"group": "tea.example.com", "version": "v1", "kind": "Tea"}}]},
      {"name": "teapot.v2.0.0", "package": "teapot", "version": "2.0.0"},
      {"name": "samovar.v1.0.0", "package": "samovar", "version": "1.0.0", "properties": [
        {"type": "olm.gvk", "value": {"group": "tea.example.com", "version": "v1", "kind": "Tea"}}]},
      {"name": "cup.v1.0.0", "package": "cup", "version": "1.0.0"}]}],
  "subscriptions": [
    {"name": "teapot", "package": "teapot", "channel": "stable", "source": "kitchen", "sourceNamespace": "olm"},
    {"name": "samovar", "package": "samovar", "source": "kitchen", "sourceNamespace": "olm"},
    {"name": "cup", "package": "cup", "source": "kitchen", "sourceNamespace": "olm"}]
}"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let fixture: Fixture = serde_json::from_str(KITCHEN)?;
    let snapshots = fixture.snapshots();
    let published = HashMap::new();
    let input = fixture.input(&snapshots, &published)?;

    let outcome = resolve(&input);
    for chosen in &outcome.resolved {
        println!("install {}\n", chosen.name);
    }
    for failure in &outcome.failures {
        println!("blocked: {}", failure.subscriptions.join(", "));
        print!("{}", failure.cause.render());
        for repair in &failure.repairs {
            // Repairs are data: each can be applied to a copy of the input.
            let mut mended = input.clone();
            if repair.is_certain() && repair.apply(&mut mended) {
                let left = resolve(&mended).failures.len();
                println!("{left} failures are left when you {repair}");
            }
        }
        println!("\nthe condition says:\n{}: {}", failure.kind.reason(), failure.message);
    }
    Ok(())
}
