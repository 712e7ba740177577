//! The program `bench-report`, behind `cargo xtask bench`. `plan` has the processes of a run,
//! `process` starts them, `host` runs them again if the host disturbed them, `results` collects
//! their rows, `summary` and `bounds` make the two tables, and `plots` and
//! `growth` the pictures.

mod bounds;
mod growth;
mod host;
mod machine;
mod plan;
mod plots;
mod process;
mod program;
mod results;
mod summary;

pub use program::main;
