//! Programs that use the timer.
