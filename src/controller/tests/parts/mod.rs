//! What the test programs over servers have in common: objects on the local object API with a controller over them, what a
//! status says, and kills at fault points.

pub(crate) mod objects;
pub(crate) mod points;
pub(crate) mod status;
