//! Both wheels against a sorted map, after every operation.
//!
//! Guards, among others: deadlines on the boundaries of levels and rounds, uptimes just below each
//! power of two, jumps of any length, overdue insertions, keys of values that are gone.
//!
//! The fuzz targets `wheel_hashed` and `wheel_hierarchical` make their cases of bytes instead; see
//! `bytes`. They take this module, without what needs proptest.

pub(crate) mod bytes;
#[cfg(test)]
mod cases;
mod model;
mod ops;
#[cfg(test)]
mod strategies;
