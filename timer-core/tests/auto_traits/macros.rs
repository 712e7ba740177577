// The macros of the lists of auto traits, which each crate's tests include.

use std::marker::PhantomData;
use std::panic::UnwindSafe;

/// Evaluates to `true` if the type implements the trait.
macro_rules! implements {
    ($type:ty: $trait:ident) => {{
        #[allow(dead_code, reason = "not used if the type implements the trait")]
        trait Absent {
            const PRESENT: bool = false;
        }
        impl<T: ?Sized> Absent for T {}
        #[allow(dead_code, reason = "the constant of the trait stands in for it")]
        struct Probe<T: ?Sized>(PhantomData<T>);
        #[allow(dead_code, reason = "as above")]
        impl<T: ?Sized + $trait> Probe<T> {
            const PRESENT: bool = true;
        }
        <Probe<$type>>::PRESENT
    }};
}

/// Lists for each type whether it is `Send`, `Sync`, `Unpin` and `UnwindSafe`.
macro_rules! auto_traits {
    ($($type:ty: $send:literal $sync:literal $unpin:literal $unwind_safe:literal,)*) => {
        $(const _: () = {
            assert!(implements!($type: Send) == ($send == 1), concat!(stringify!($type), ": Send"));
            assert!(implements!($type: Sync) == ($sync == 1), concat!(stringify!($type), ": Sync"));
            assert!(implements!($type: Unpin) == ($unpin == 1), concat!(stringify!($type), ": Unpin"));
            assert!(
                implements!($type: UnwindSafe) == ($unwind_safe == 1),
                concat!(stringify!($type), ": UnwindSafe")
            );
        };)*
    };
}

/// A type that is `Send` and `Unpin`, but neither `Sync` nor `UnwindSafe`.
#[allow(dead_code, reason = "not every crate has generic types")]
type Task = std::cell::Cell<Box<dyn Send>>;

/// A type that is not `Unpin`.
#[allow(dead_code, reason = "not every crate has generic types")]
type Pinned = std::marker::PhantomPinned;
