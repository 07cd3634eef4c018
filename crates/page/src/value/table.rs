//! Tables: rows and columns of text with names of columns.

use super::text::Text;

/// How large a table may become; `None` is as large as the limits of the run allow.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TableShape {
    /// Most rows.
    pub rows_max: Option<usize>,
    /// Most columns.
    pub columns_max: Option<usize>,
}

/// A table. Every row has as many cells as there are columns.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Table {
    /// Names of columns.
    pub columns: Vec<Text>,
    /// Cells, row by row.
    pub rows: Vec<Vec<Text>>,
    /// How large it may become.
    pub shape: TableShape,
}

impl Table {
    /// An empty table that may become so large.
    pub fn new(shape: TableShape) -> Self {
        Self {
            columns: Vec::new(),
            rows: Vec::new(),
            shape,
        }
    }

    /// Forgets rows and columns.
    pub fn clear(&mut self) {
        self.columns.clear();
        self.rows.clear();
    }

    /// Whether one more row has room.
    pub fn has_room(&self) -> bool {
        self.shape.rows_max.is_none_or(|max| self.rows.len() < max)
    }

    /// A cell, both counted from one.
    pub fn cell(&self, row: usize, column: usize) -> Option<&Text> {
        self.rows
            .get(row.checked_sub(1)?)?
            .get(column.checked_sub(1)?)
    }

    /// A cell to be changed, both counted from one.
    pub fn cell_mut(&mut self, row: usize, column: usize) -> Option<&mut Text> {
        self.rows
            .get_mut(row.checked_sub(1)?)?
            .get_mut(column.checked_sub(1)?)
    }

    /// The number of the column with this name, whatever its case; counted from one.
    pub fn column(&self, name: &[u8]) -> Option<usize> {
        let mut names = self.columns.iter();
        names
            .position(|column| column.bytes().eq_ignore_ascii_case(name))
            .map(|at| at + 1)
    }

    /// Cells in all.
    pub fn cell_count(&self) -> usize {
        self.rows.len() * self.columns.len()
    }
}
