//! Both wheels compared with a sorted map after every operation.
//!
//! The cases include deadlines on the boundaries of levels and rounds, uptimes just below each
//! power of two, jumps of any length, overdue insertions, and keys of values that are gone.
//!
//! Bytes become cases; see `bytes`. Proptest chooses them here. The fuzz targets `wheel_hashed` and
//! `wheel_hierarchical` use this module without the parts that need proptest.

pub(crate) mod bytes;
#[cfg(test)]
mod cases;
mod model;
mod ops;
