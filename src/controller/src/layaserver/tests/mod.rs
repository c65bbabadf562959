//! `plan` against a model of the world: rows of the tables, faults, timing, and properties over random histories.

mod faults;
mod history;
mod logs;
mod reasons;
mod rollouts;
mod rows;
mod sim;
mod timing;
