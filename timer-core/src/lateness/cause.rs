//! Sets of causes.

use std::fmt::{Debug, Display};

/// A set of causes of lateness. Implemented by [`late_causes!`](crate::late_causes).
pub trait Cause: Copy + Eq + Debug + Display + 'static {
    /// One number for each cause.
    type Parts: AsRef<[u64]> + AsMut<[u64]> + Copy + Default + Eq;

    /// All causes, each at its index.
    const CAUSES: &'static [Self];

    /// Returns the index of the cause in [`CAUSES`](Self::CAUSES).
    fn index(self) -> usize;
}

/// Defines a set of causes of lateness from a list of the causes with their names in metrics.
///
/// The list is the only place that names all causes. Their indices, the constant `ALL` and the
/// function `as_str` follow from it. See [`lateness`](crate::lateness) for an example.
#[macro_export]
macro_rules! late_causes {
    ($(#[$attribute:meta])* pub enum $name:ident { $($(#[$of_cause:meta])* $cause:ident = $text:literal,)+ }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$of_cause])* $cause,)+
        }

        impl $name {
            /// All causes, about in the order in which they come up.
            pub const ALL: [Self; [$($text),+].len()] = [$(Self::$cause),+];

            /// Returns the name of the cause in metrics, such as `"system"`.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$cause => $text,)+
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl $crate::lateness::Cause for $name {
            type Parts = [u64; Self::ALL.len()];

            const CAUSES: &'static [Self] = &Self::ALL;

            fn index(self) -> usize {
                self as usize
            }
        }
    };
}
