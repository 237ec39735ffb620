//! Rows of tables, printed as text, JSON or YAML.

use mainstay_command::io::CommandIo;
use mainstay_command::text::Format;
use mainstay_command::text::columns;
use serde_json::Value;

/// One line: the cells of the table, and the JSON value.
pub(super) struct Row {
    pub(super) cells: Vec<String>,
    pub(super) value: Value,
}

/// Prints rows.
pub(super) fn print(io: &mut CommandIo<'_>, format: Format, header: &[&str], rows: Vec<Row>) {
    let text = match format {
        Format::Text => {
            let cells: Vec<Vec<String>> = rows.into_iter().map(|row| row.cells).collect();
            columns(header, &cells)
        }
        Format::Json => format!("{:#}\n", values(rows)),
        Format::Yaml => mainstay_yaml::to_string(&values(rows)),
    };
    io.print(&text);
}

fn values(rows: Vec<Row>) -> Value {
    Value::Array(rows.into_iter().map(|row| row.value).collect())
}
