//! loom's atomics, which the fault of a model weakens in one line.

use super::{How, Ordering, fault};

/// Defines one of loom's atomics, with the faults of the current model.
macro_rules! atomic {
    ($name:ident, $value:ty $(, $arithmetic:ident)*) => {
        #[derive(Debug, Default)]
        pub(crate) struct $name(loom::sync::atomic::$name);

        #[allow(dead_code, reason = "all atomics have the same methods")]
        impl $name {
            pub(crate) fn new(value: $value) -> Self {
                Self(loom::sync::atomic::$name::new(value))
            }

            #[track_caller]
            pub(crate) fn load(&self, order: Ordering) -> $value {
                self.0.load(fault::order(order))
            }

            #[track_caller]
            pub(crate) fn store(&self, value: $value, order: Ordering) {
                if fault::here() != Some(How::Skip) {
                    self.0.store(value, fault::order(order));
                }
            }

            #[track_caller]
            pub(crate) fn swap(&self, value: $value, order: Ordering) -> $value {
                match fault::here() {
                    Some(How::Split | How::Read) => self.apart(|_| value),
                    _ => self.0.swap(value, fault::order(order)),
                }
            }

            #[track_caller]
            pub(crate) fn compare_exchange(
                &self,
                old: $value,
                new: $value,
                order: Ordering,
                failed: Ordering,
            ) -> Result<$value, $value> {
                match fault::here() {
                    Some(How::Split | How::Read) => {
                        let found = self.0.load(Ordering::Acquire);
                        if found != old {
                            return Err(found);
                        }
                        self.0.store(new, Ordering::Release);
                        Ok(old)
                    }
                    _ => self.0.compare_exchange(old, new, fault::order(order), fault::order(failed)),
                }
            }

            #[track_caller]
            pub(crate) fn compare_exchange_weak(
                &self,
                old: $value,
                new: $value,
                order: Ordering,
                failed: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(old, new, order, failed)
            }

            #[track_caller]
            pub(crate) fn fetch_or(&self, bits: $value, order: Ordering) -> $value {
                match fault::here() {
                    Some(How::Split | How::Read) => self.apart(|value| value | bits),
                    _ => self.0.fetch_or(bits, fault::order(order)),
                }
            }

            #[track_caller]
            pub(crate) fn fetch_and(&self, bits: $value, order: Ordering) -> $value {
                match fault::here() {
                    Some(How::Split | How::Read) => self.apart(|value| value & bits),
                    _ => self.0.fetch_and(bits, fault::order(order)),
                }
            }

            #[track_caller]
            pub(crate) fn fetch_update(
                &self,
                order: Ordering,
                failed: Ordering,
                change: impl Fn($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                match fault::here() {
                    Some(How::Split) => {
                        let found = self.0.load(Ordering::Acquire);
                        let value = change(found).ok_or(found)?;
                        self.0.store(value, Ordering::Release);
                        Ok(found)
                    }
                    // A thread that changes nothing only loads.
                    Some(How::Read) => {
                        let found = self.0.load(Ordering::Acquire);
                        if change(found) == Some(found) {
                            return Ok(found);
                        }
                        self.0.fetch_update(order, failed, change)
                    }
                    Some(How::Skip) => Err(self.0.load(Ordering::Relaxed)),
                    _ => self.0.fetch_update(fault::order(order), fault::order(failed), change),
                }
            }

            /// Makes a read-modify-write in two steps, or only the first of them for a `Read`.
            #[track_caller]
            fn apart(&self, change: impl Fn($value) -> $value) -> $value {
                let found = self.0.load(Ordering::Acquire);
                if fault::here() == Some(How::Split) {
                    self.0.store(change(found), Ordering::Release);
                }
                found
            }

            $(#[track_caller]
            pub(crate) fn $arithmetic(&self, by: $value, order: Ordering) -> $value {
                if fault::here() == Some(How::Split) {
                    let found = self.0.load(Ordering::Acquire);
                    let cell = std::sync::atomic::$name::new(found);
                    cell.$arithmetic(by, Ordering::Relaxed);
                    self.0.store(cell.into_inner(), Ordering::Release);
                    return found;
                }
                self.0.$arithmetic(by, fault::order(order))
            })*
        }
    };
}

atomic!(AtomicBool, bool);
atomic!(AtomicU32, u32, fetch_add, fetch_sub);
atomic!(AtomicU64, u64, fetch_add, fetch_sub, fetch_max);
atomic!(AtomicUsize, usize, fetch_add, fetch_sub);
