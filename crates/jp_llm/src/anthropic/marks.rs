use std::collections::BTreeSet;

use super::blocks::{Role, WireMessage};

/// How many blocks a mark sees, itself included.
const LOOK_BACK: usize = 20;
/// From how many bytes on a message is large: about the shortest prefix that every model caches.
const LARGE: u64 = 16 << 10;

/// Chooses the blocks that carry a cache mark, at most `most` of them, counted through all messages.
///
/// A request reads what an earlier one wrote: all up to one of its marks, if a mark of its own sees the
/// block that had it. So these are tail marks, which move as a conversation grows:
///
/// 1. the last block, for the next request to read;
/// 2. one at every [`LOOK_BACK`] blocks before, if they can go on to the beginning;
/// 3. the end of the person's message before the last answer (the last block of the request before this
///    one), and the ends of large messages, the newest first: where 2 can't, before 2 and as far as no mark
///    sees them, and otherwise with the marks that are left.
///
/// Reasoning is never marked. A mark is no part of what is cached: without marks, the history of a request
/// is a prefix of that of the next.
pub(super) fn places(messages: &[WireMessage<'_>], most: usize) -> BTreeSet<usize> {
    let layout = Layout::of(messages);
    let Some(last) = layout.markable.iter().rposition(|markable| *markable) else { return BTreeSet::new() };
    let chain = layout.chain(last);
    let ends = layout.ends();
    if chain.len() <= most {
        return first(most, chain.into_iter().chain(ends));
    }
    let mut unseen: Vec<usize> = Vec::new();
    for end in std::iter::once(last).chain(ends) {
        if unseen.len() < most
            && !unseen.iter().any(|mark| (mark.saturating_sub(LOOK_BACK - 1)..=*mark).contains(&end))
        {
            unseen.push(end);
        }
    }
    first(most, unseen.into_iter().chain(chain))
}

/// Takes the first different ones.
fn first(most: usize, places: impl Iterator<Item = usize>) -> BTreeSet<usize> {
    let mut taken = BTreeSet::new();
    for place in places {
        if taken.len() < most {
            taken.insert(place);
        }
    }
    taken
}

struct Layout {
    /// Whether each block may carry a mark.
    markable: Vec<bool>,
    /// The last block of each message of the person, and how much the message carries.
    user_ends: Vec<(usize, u64)>,
    /// The last block before the last answer that is one of the person's.
    previous: Option<usize>,
}

impl Layout {
    fn of(messages: &[WireMessage<'_>]) -> Self {
        let mut layout = Self { markable: Vec::new(), user_ends: Vec::new(), previous: None };
        for message in messages {
            layout.markable.extend(message.blocks.iter().map(|block| !block.is_thinking()));
            match message.role {
                Role::Assistant => layout.previous = layout.user_ends.last().map(|(end, _)| *end),
                Role::User => {
                    let carried = message.blocks.iter().map(|block| block.payload_bytes()).sum();
                    layout.user_ends.push((layout.markable.len() - 1, carried));
                }
            }
        }
        layout
    }

    /// Returns marks from the last block back to the beginning that see every block between them.
    fn chain(&self, last: usize) -> Vec<usize> {
        let before = |at: &usize| {
            let window = at.checked_sub(LOOK_BACK)?..*at;
            window.into_iter().find(|at| self.markable[*at])
        };
        std::iter::successors(Some(last), before).collect()
    }

    /// Returns the ends of messages that are worth a mark, the most important first.
    fn ends(&self) -> Vec<usize> {
        let large = self.user_ends.iter().rev().filter(|(_, carried)| *carried >= LARGE);
        self.previous.into_iter().chain(large.map(|(end, _)| *end)).collect()
    }
}

#[cfg(test)]
mod tests {
    use jp_resource::{Resource, ResourceContent, Snapshot};
    use proptest::prelude::*;

    use super::{super::blocks::Block, *};

    fn large() -> Snapshot {
        Resource::new("a:b", ResourceContent::Text("x".repeat(LARGE as usize))).into()
    }

    /// Makes messages of letters: `t` words, `r` reasoning, `L` a large resource; `|` ends a message.
    fn messages<'a>(outline: &str, large: &'a Snapshot) -> Vec<WireMessage<'a>> {
        let block = |letter| match letter {
            'r' => Block::RedactedThinking("x"),
            'L' => Block::Resource { turn: 1, resource: large },
            _ => Block::Text("x".into()),
        };
        let roles = [Role::User, Role::Assistant].into_iter().cycle();
        let message =
            |(blocks, role): (&str, _)| WireMessage { role, blocks: blocks.chars().map(block).collect() };
        outline.split('|').zip(roles).map(message).collect()
    }

    fn placed(outline: &str, most: usize) -> Vec<usize> {
        places(&messages(outline, &large()), most).into_iter().collect()
    }

    #[test]
    fn last_block_and_the_end_of_the_request_before_are_marked() {
        assert_eq!(placed("t", 3), [0]);
        assert_eq!(placed("tt|rt|t", 3), [1, 4]);
        assert_eq!(placed("t|t|t|t|t", 3), [2, 4]);
        assert_eq!(placed("t|tr", 3), [0, 1]);
        assert_eq!(placed("t|t|t", 1), [2]);
    }

    #[test]
    fn many_blocks_are_chained_as_far_as_marks_go() {
        let many = |count: usize| "t".repeat(count);
        assert_eq!(placed(&many(20), 3), [19]);
        assert_eq!(placed(&many(21), 3), [0, 20]);
        assert_eq!(placed(&many(60), 3), [19, 39, 59]);
        assert_eq!(placed(&many(61), 3), [20, 40, 60]);
        assert_eq!(placed(&format!("t|{}|{}", many(30), many(30)), 3), [0, 40, 60]);
    }

    #[test]
    fn large_messages_are_marked_where_a_chain_would_not_reach_the_beginning() {
        let turns = "|t|t".repeat(40);
        assert_eq!(placed(&format!("tL{turns}"), 3), [1, 61, 81]);
        assert_eq!(placed(&format!("tL|t|LL{turns}"), 3), [4, 64, 84]);
        assert_eq!(placed(&format!("t{turns}"), 3), [40, 60, 80]);
    }

    proptest! {
        #[test]
        fn marks_are_few_never_on_reasoning_and_close_where_they_can_be(
            outline in "[tL]{1,4}(\\|r{0,2}t{1,25}\\|[tL]{1,25}){0,6}",
            most in 1usize..=4,
        ) {
            let places = placed(&outline, most);
            let blocks: Vec<char> = outline.chars().filter(|letter| *letter != '|').collect();
            prop_assert!(!places.is_empty() && places.len() <= most);
            prop_assert_eq!(*places.last().unwrap(), blocks.len() - 1);
            prop_assert!(places.iter().all(|place| blocks[*place] != 'r'));
            // Reasoning can make a step two blocks shorter.
            if blocks.len() <= (LOOK_BACK - 2) * most {
                prop_assert!(places[0] < LOOK_BACK && places.windows(2).all(|pair| pair[1] - pair[0] <= LOOK_BACK));
            }
        }
    }
}
