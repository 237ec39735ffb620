//! `mainstay extension list`: a table of the ClusterExtensions of a cluster.

use super::state;
use super::{RequestTimeout, find_extension, values};
use clap::Args;
use jiff::Timestamp;
use mainstay_api::resources::CLUSTER_EXTENSION;
use mainstay_clock::{Clock, format_age};
use mainstay_command::cluster::{ClusterArguments, ClusterHandle, ConnectionArguments};
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_command::text::columns;
use mainstay_command::text::format_output;
use mainstay_command::text::{Format, escape_controls};
use mainstay_object::Object;
use serde_json::Value;

/// The header of the table, as upstream's.
const HEADER: [&str; 7] =
    ["NAME", "INSTALLED BUNDLE", "VERSION", "SOURCE TYPE", "INSTALLED", "PROGRESSING", "AGE"];

/// Arguments of `list`.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Name of a ClusterExtension [default: all].
    #[arg(value_name = "NAME", conflicts_with = "selector")]
    name: Option<String>,
    /// Only those with labels that match this selector.
    #[arg(short = 'l', long, value_name = "SELECTOR", value_parser = values::query_selector)]
    selector: Option<String>,
    /// Output format.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    output: Format,
    /// The cluster.
    #[command(flatten, next_help_heading = "Cluster")]
    connection: ConnectionArguments,
}

pub(super) async fn run<C: ClusterHandle>(
    arguments: &Arguments,
    io: &mut CommandIo<'_>,
    connect: impl AsyncFnOnce(&ClusterArguments, RequestTimeout) -> Result<C, CommandFailure>,
) -> Result<(), CommandFailure> {
    let connection = &arguments.connection;
    let cluster = connect(&connection.cluster, RequestTimeout::Flag(connection.timeout())).await?;
    let mut extensions = match &arguments.name {
        Some(name) => vec![find_extension(&cluster, name).await?],
        None => cluster.list(&CLUSTER_EXTENSION, None, arguments.selector.as_deref()).await?,
    };
    extensions.sort_by(|one, other| one.name().cmp(other.name()));
    if extensions.is_empty() && arguments.output == Format::Text {
        let _ = writeln!(io.stderr, "No resources found");
        return Ok(());
    }
    let value = Value::Array(extensions.iter().map(state::summary).collect());
    let now = Clock::system().now();
    io.print(&format_output(arguments.output, &value, || table(&extensions, now)));
    Ok(())
}

fn table(extensions: &[Object], now: Timestamp) -> String {
    let rows: Vec<Vec<String>> = extensions.iter().map(|extension| row(extension, now)).collect();
    columns(&HEADER, &rows)
}

fn row(extension: &Object, now: Timestamp) -> Vec<String> {
    let bundle = state::installed_bundle(extension);
    let source = extension.str(&["spec", "source", "sourceType"]).unwrap_or_default();
    let condition = |kind| extension.condition(kind).unwrap_or_default();
    let cells = [
        extension.name().to_owned(),
        bundle.map_or_else(String::new, |bundle| bundle.name.to_owned()),
        bundle.map_or_else(String::new, |bundle| bundle.version_text()),
        source.to_owned(),
        condition("Installed").to_owned(),
        condition("Progressing").to_owned(),
        age(extension, now),
    ];
    cells.iter().map(|cell| escape_controls(cell)).collect()
}

/// The age of an object, as kubectl prints it.
pub(super) fn age(object: &Object, now: Timestamp) -> String {
    object
        .creation_timestamp()
        .map_or_else(|| "<unknown>".to_owned(), |created| format_age(now.duration_since(created)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn table_has_upstreams_columns() {
        let tea = json!({
            "metadata": {"name": "tea", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"source": {"sourceType": "Catalog"}},
            "status": {
                "install": {"bundle": {"name": "tea.v1", "version": "1.0.0", "release": "2"}},
                "conditions": [
                    {"type": "Installed", "status": "True"},
                    {"type": "Progressing", "status": "True"},
                ],
            },
        });
        let new =
            json!({"metadata": {"name": "new"}, "spec": {"source": {"sourceType": "Catalog"}}});
        let objects = [tea, new].map(|value| Object::from_value(value).unwrap());
        let now = "2026-01-01T01:00:00Z".parse().unwrap();
        insta::assert_snapshot!(table(&objects, now), @"
        NAME   INSTALLED BUNDLE   VERSION   SOURCE TYPE   INSTALLED   PROGRESSING   AGE
        tea    tea.v1             1.0.0-2   Catalog       True        True          60m
        new                                 Catalog                                 <unknown>
        ");
    }
}
