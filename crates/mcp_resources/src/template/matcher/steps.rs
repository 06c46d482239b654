//! Counts the bytes that matching looks at, so that tests can check its cost without a clock.

#[cfg(test)]
pub(in crate::template) use counter::steps_of;

/// Counts bytes that are looked at.
#[inline]
pub(in crate::template) fn count(bytes: usize) {
    #[cfg(test)]
    counter::add(bytes);
    #[cfg(not(test))]
    let _ = bytes;
}

#[cfg(test)]
mod counter {
    use std::cell::Cell;

    thread_local! {
        static STEPS: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn add(bytes: usize) {
        STEPS.set(STEPS.get() + bytes);
    }

    /// Returns how many bytes a call looks at.
    pub(in crate::template) fn steps_of(call: impl FnOnce()) -> usize {
        STEPS.set(0);
        call();
        STEPS.get()
    }
}
