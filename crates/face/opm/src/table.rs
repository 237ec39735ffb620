//! Text tables with the layout of Go's `tabwriter`.

use std::iter;

/// Blanks between two columns.
const GAP: usize = 2;

/// The maximum number of cells in a line; hostile names may have any number of tabs.
const MAX_CELLS: usize = 256;

/// Formats lines of cells that end at tabs. A column is a run of lines with a cell there; the text after
/// the last tab of a line belongs to no column. A vertical tab ends a cell like a tab; a form feed ends a
/// line and all columns.
pub(super) fn format_table(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for section in text.split_inclusive('\x0c') {
        let section = section.strip_suffix(['\n', '\x0c']).unwrap_or(section);
        let lines: Vec<Vec<&str>> = section
            .split('\n')
            .map(|line| line.splitn(MAX_CELLS, ['\t', '\x0b']).collect())
            .collect();
        format_block(&lines, &mut Vec::new(), &mut out);
    }
    out
}

/// Formats lines that share the columns in `widths`.
fn format_block(lines: &[Vec<&str>], widths: &mut Vec<usize>, out: &mut String) {
    let column = widths.len();
    let in_column = |line: &&Vec<&str>| line.len() > column + 1;
    let mut at = 0;
    while at < lines.len() {
        let run = lines[at..].iter().take_while(in_column).count();
        if run == 0 {
            write_line(&lines[at], widths, out);
            at += 1;
            continue;
        }
        let block = &lines[at..at + run];
        let widest = block.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        widths.push(widest + GAP);
        format_block(block, widths, out);
        widths.pop();
        at += run;
    }
}

fn write_line(cells: &[&str], widths: &[usize], out: &mut String) {
    for (index, cell) in cells.iter().enumerate() {
        out.push_str(cell);
        if let Some(width) = widths.get(index).filter(|_| index + 1 < cells.len()) {
            let blanks = width.saturating_sub(cell.chars().count());
            out.extend(iter::repeat_n(' ', blanks));
        }
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::format_table;

    #[test]
    fn columns_end_where_a_line_has_no_cell() {
        for (text, table) in [
            ("", ""),
            ("A\tB\n", "A  B\n"),
            ("A\tB\tC\nlong\t\tx\n", "A     B  C\nlong     x\n"),
            ("A\tB\nno cells\nlonger\tB\n", "A  B\nno cells\nlonger  B\n"),
            ("é\tx\nab\ty\n", "é   x\nab  y\n"),
            ("A\tB\x0clonger\tB\n", "A  B\nlonger  B\n"),
            ("a\tbb\tc\nd\te\nf\tg\th\n", "a  bb  c\nd  e\nf  g  h\n"),
        ] {
            assert_eq!(format_table(text), table, "{text:?}");
        }
    }
}
