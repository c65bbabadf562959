//! Rotation tables of both kinds of layers, made as far as rows have been long and kept.

use std::sync::{Arc, Mutex, PoisonError};

use crate::kernels::Rope;

/// Positions of the first table.
const FIRST: usize = 512;

/// The tables of one encoder.
pub(crate) struct Ropes {
    head_dim: usize,
    thetas: [f64; 2],
    tables: Mutex<[Option<Arc<Rope>>; 2]>,
}

impl Ropes {
    pub(crate) fn new(head_dim: usize, global_theta: f64, local_theta: f64) -> Self {
        Self {
            head_dim,
            thetas: [global_theta, local_theta],
            tables: Mutex::new([None, None]),
        }
    }

    /// Tables of global and local layers for rows of up to `len` tokens.
    pub(crate) fn for_rows(&self, len: usize) -> [Arc<Rope>; 2] {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let fits =
            |table: &Option<Arc<Rope>>| table.as_ref().filter(|t| t.positions() >= len).cloned();
        let make = |theta| {
            Arc::new(Rope::new(
                theta,
                self.head_dim,
                len.next_power_of_two().max(FIRST),
            ))
        };
        let global = fits(&tables[0]).unwrap_or_else(|| make(self.thetas[0]));
        let same = self.thetas[0] == self.thetas[1];
        let local = if same {
            Arc::clone(&global)
        } else {
            fits(&tables[1]).unwrap_or_else(|| make(self.thetas[1]))
        };
        *tables = [Some(Arc::clone(&global)), Some(Arc::clone(&local))];
        [global, local]
    }
}
