//! What every command line of ours says alike: text from outside with its control characters made visible, and a wrong
//! use as one line with a hint. Which commands there are is the programs' own.

mod escape;
mod usage;

pub use escape::escape;
pub use usage::{WrongUse, wrong_use};
