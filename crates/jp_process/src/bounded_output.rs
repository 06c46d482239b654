use std::collections::VecDeque;

/// What is kept of an output: all of it, or its beginning and its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: u64,
    head_limit: usize,
    tail_limit: usize,
}

impl Kept {
    /// Keeps all that comes.
    #[must_use]
    pub fn everything() -> Self {
        Self::within(usize::MAX, 0)
    }

    /// Keeps at most `bytes`: the first half of that, and the last.
    #[must_use]
    pub fn at_most(bytes: usize) -> Self {
        Self::within(bytes - bytes / 2, bytes / 2)
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

    /// Takes more of the output.
    pub fn push(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(self.head_limit - self.head.len()));
        self.head.extend_from_slice(head);
        let surplus = (self.tail.len() + rest.len()).saturating_sub(self.tail_limit);
        let of_tail = surplus.min(self.tail.len());
        self.tail.drain(..of_tail);
        self.tail.extend(&rest[surplus - of_tail..]);
        self.left_out += surplus as u64;
    }

    /// Returns how many bytes are missing between the beginning and the end.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns how many bytes came.
    #[must_use]
    pub fn printed(&self) -> u64 {
        (self.head.len() + self.tail.len()) as u64 + self.left_out
    }

    /// Returns the beginning, and the end of what did not fit there.
    #[must_use]
    pub fn into_parts(self) -> (Vec<u8>, Vec<u8>) {
        (self.head, self.tail.into())
    }

    /// Returns what is kept, in one piece.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        let mut bytes = self.head;
        bytes.extend(self.tail);
        bytes
    }
}

impl<T: AsRef<[u8]>> From<T> for Kept {
    fn from(bytes: T) -> Self {
        let mut kept = Self::everything();
        kept.push(bytes.as_ref());
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginning_and_end_are_kept_and_the_rest_is_counted_however_it_comes() {
        let bytes: Vec<u8> = (0..100).collect();
        for chunk in [1, 3, 7, 50, 100] {
            for limit in [0, 1, 2, 9, 10, 64, 99, 100, 101] {
                let mut kept = Kept::at_most(limit);
                bytes.chunks(chunk).for_each(|chunk| kept.push(chunk));
                let missing = bytes.len().saturating_sub(limit);
                assert_eq!((kept.left_out(), kept.printed()), (missing as u64, 100));
                let (head, tail) = kept.into_parts();
                let first = bytes.len().min(limit - limit / 2);
                assert_eq!(
                    (&*head, &*tail),
                    (&bytes[..first], &bytes[first + missing..])
                );
            }
        }
    }
}
