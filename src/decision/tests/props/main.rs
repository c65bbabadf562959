//! Properties of readers and writers: nothing that comes from outside panics, and independent ways agree.

mod contract;
mod numbers;
mod reader;
