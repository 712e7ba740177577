//! The number of a call, which encodes its caller and its round.

pub(crate) fn number(caller: usize, round: usize) -> u64 {
    (round as u64) << 32 | caller as u64
}

pub(crate) fn caller(number: u64) -> u64 {
    number & 0xffff_ffff
}

pub(crate) fn round(number: u64) -> u64 {
    number >> 32
}
