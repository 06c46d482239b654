use std::collections::VecDeque;

/// An output in bounded memory: all of it, or its beginning and its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundedOutput {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: u64,
    head_limit: usize,
    tail_limit: usize,
}

impl BoundedOutput {
    /// Keeps everything.
    #[must_use]
    pub fn everything() -> Self {
        Self::within(usize::MAX, 0)
    }

    /// Keeps at most `bytes`: the first half and the last half of that.
    #[must_use]
    pub fn at_most(bytes: usize) -> Self {
        Self::within(bytes - bytes / 2, bytes / 2)
    }

    /// Keeps the last `bytes`.
    #[must_use]
    pub fn last(bytes: usize) -> Self {
        Self::within(0, bytes)
    }

    fn within(head_limit: usize, tail_limit: usize) -> Self {
        Self {
            head: Vec::new(),
            tail: VecDeque::new(),
            left_out: 0,
            head_limit,
            tail_limit,
        }
    }

    /// Adds bytes at the end of the output.
    pub fn push(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(self.head_limit - self.head.len()));
        self.head.extend_from_slice(head);
        // `rest` alone may be longer than the tail, so its own beginning can be surplus too.
        let surplus = (self.tail.len() + rest.len()).saturating_sub(self.tail_limit);
        let from_tail = surplus.min(self.tail.len());
        self.tail.drain(..from_tail);
        self.tail.extend(&rest[surplus - from_tail..]);
        self.left_out += surplus as u64;
    }

    /// Returns the number of bytes missing between the beginning and the end.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns the length of the whole output in bytes.
    #[must_use]
    pub fn total_len(&self) -> u64 {
        (self.head.len() + self.tail.len()) as u64 + self.left_out
    }

    /// Returns the beginning, and the end if the output did not fit there.
    #[must_use]
    pub fn into_parts(self) -> (Vec<u8>, Vec<u8>) {
        (self.head, self.tail.into())
    }

    /// Returns the beginning and the end in one piece.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        let mut bytes = self.head;
        bytes.extend(self.tail);
        bytes
    }
}

impl<T: AsRef<[u8]>> From<T> for BoundedOutput {
    fn from(bytes: T) -> Self {
        let mut output = Self::everything();
        output.push(bytes.as_ref());
        output
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_parts_don_t_depend_on_the_chunks() {
        let bytes: Vec<u8> = (0..100).collect();
        for chunk in [1, 3, 7, 50, 100] {
            for limit in [0, 1, 2, 9, 10, 64, 99, 100, 101] {
                let mut output = BoundedOutput::at_most(limit);
                bytes.chunks(chunk).for_each(|chunk| output.push(chunk));
                let missing = bytes.len().saturating_sub(limit);
                assert_eq!(
                    (output.left_out(), output.total_len()),
                    (missing as u64, 100)
                );
                let (head, tail) = output.into_parts();
                let first = bytes.len().min(limit - limit / 2);
                assert_eq!(
                    (&*head, &*tail),
                    (&bytes[..first], &bytes[first + missing..])
                );
            }
        }
    }
}
