//! Whether an object fits its schema, rules apart.

mod correlation;
mod junctors;
mod lists;
mod outcome;
mod values;

pub(super) use correlation::{Pair, counterpart};
pub(super) use lists::check as check_lists;
pub(super) use values::{check, check_update};
