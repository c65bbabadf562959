//! CEL rules (`x-kubernetes-validations`). Nothing outside this folder knows which evaluator is used. `kube-cel` brings
//! the evaluator and the functions of Kubernetes; the walk over object and schema is ours, because its own one correlates
//! lists by index, escapes field names otherwise than the API server, and says nothing of ratcheting.
//!
//! Differences that stay: rules are not type-checked when they are compiled, costs are not counted, and `==` ignores the
//! order of lists with keys and of sets where both sides are fields of `self` or `oldSelf` (`self.files == oldSelf.files`),
//! not where they are variables of a macro.

mod compile;
mod engine;
mod evaluate;
mod fault;
mod value;

pub(super) use compile::{Rule, compile};
pub(super) use engine::Engine;
pub(super) use evaluate::{Ratchet, check};
