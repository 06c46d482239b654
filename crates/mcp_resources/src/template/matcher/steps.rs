//! Counts the bytes that are looked at, so that tests can say what matching costs without a clock.

#[cfg(test)]
pub(in crate::template) use counter::steps_of;

/// Says that so many bytes are looked at.
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

    /// Counts what a call looks at.
    pub(in crate::template) fn steps_of(call: impl FnOnce()) -> usize {
        STEPS.set(0);
        call();
        STEPS.get()
    }
}
