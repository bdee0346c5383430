//! Columns of text.

/// On which side of its column a text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A table with a line of headings.
#[derive(Debug)]
pub(crate) struct Table<const N: usize> {
    columns: [(&'static str, Align); N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    pub(crate) const fn new(columns: [(&'static str, Align); N]) -> Self {
        Self { columns, rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: [String; N]) {
        // What others named may hold anything; a row is one line.
        self.rows
            .push(cells.map(|cell| cell.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()));
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The lines, each column as wide as its widest text, two blanks between two columns.
    pub(crate) fn render(&self) -> String {
        let headings = self.columns.map(|(heading, _)| heading.to_owned());
        let all = || std::iter::once(&headings).chain(&self.rows);
        let mut widths = [0; N];
        for row in all() {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        let mut text = String::new();
        for row in all() {
            let cells = row.iter().zip(self.columns.iter().zip(widths));
            let cells = cells.map(|(cell, ((_, align), width))| match align {
                Align::Left => format!("{cell:<width$}"),
                Align::Right => format!("{cell:>width$}"),
            });
            let line = cells.collect::<Vec<_>>().join("  ");
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Names and values below one another, the values in one column.
pub(crate) fn pairs(pairs: &[(&str, String)]) -> String {
    let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines = pairs.iter().map(|(name, value)| format!("{name:<width$}  {}\n", value.replace('\n', " ")));
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_left_and_numbers_right() {
        let mut table = Table::new([("NAME", Align::Left), ("SLOTS", Align::Right), ("STATE", Align::Left)]);
        assert!(table.is_empty());
        table.row(["a".into(), "12".into(), "alive".into()]);
        table.row(["longer".into(), "3".into(), String::new()]);
        assert_eq!(table.render(), "NAME    SLOTS  STATE\na          12  alive\nlonger      3\n");
    }

    #[test]
    fn a_name_with_a_line_end_stays_on_its_line() {
        let mut table = Table::new([("NAME", Align::Left)]);
        table.row(["a\nb".into()]);
        assert_eq!(table.render(), "NAME\na b\n");
        assert_eq!(pairs(&[("name", "a\nb".into()), ("x", "1".into())]), "name  a b\nx     1\n");
    }
}
