use std::collections::BTreeSet;

use jp_conversation::view::CacheHint;

use super::blocks::WireMessage;

/// Number of blocks that a mark sees, itself included: the API looks for cached prefixes that end in any of them.
const LOOK_BACK: usize = 20;

/// Chooses the blocks that carry a cache mark, at most `most` of them, counted through all messages.
///
/// `ends` are the last blocks of the thread's messages, which `hints` are about.
///
/// A request reads what an earlier one wrote: all up to one of its marks, if a mark of its own sees the
/// block that had it. So these are tail marks, which move as a conversation grows:
///
/// 1. the last block, for the next request to read;
/// 2. one at every [`LOOK_BACK`] blocks before, if they can go on to the beginning;
/// 3. the end of the request before this one, and where much was sent, the newest first: where 2 can't, before
///    2 and as far as no mark sees them, and otherwise with the marks that are left.
///
/// Reasoning is never marked. A mark is no part of what is cached: without marks, the history of a request
/// is a prefix of that of the next.
pub(super) fn places(
    messages: &[WireMessage<'_>],
    ends: &[usize],
    hints: &[CacheHint],
    most: usize,
) -> BTreeSet<usize> {
    let blocks = messages.iter().flat_map(|message| &message.blocks);
    let markable: Vec<bool> = blocks.map(|block| !block.is_thinking()).collect();
    let Some(last) = markable.iter().rposition(|markable| *markable) else {
        return BTreeSet::new();
    };
    let chain = chain(&markable, last);
    let previous = hints
        .iter()
        .map(|hint| ends[hint.message])
        .find(|end| *end != last);
    let large = hints.iter().filter(|hint| hint.is_large());
    let ends = previous
        .into_iter()
        .chain(large.map(|hint| ends[hint.message]));
    // The chain reaches the beginning, so every earlier mark is seen; what is left goes to the
    // ends.
    if chain.len() <= most {
        return first(most, chain.into_iter().chain(ends));
    }
    let mut unseen: Vec<usize> = Vec::new();
    // Ends that a mark already sees need none of their own.
    for end in std::iter::once(last).chain(ends) {
        if unseen.len() < most
            && !unseen
                .iter()
                .any(|mark| (mark.saturating_sub(LOOK_BACK - 1)..=*mark).contains(&end))
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

/// Returns marks from the last block back to the beginning that see every block between them.
fn chain(markable: &[bool], last: usize) -> Vec<usize> {
    std::iter::successors(Some(last), |at| {
        // The farthest block that this mark still sees next to itself; none if it sees the beginning.
        let mut window = at.checked_sub(LOOK_BACK)?..*at;
        window.find(|at| markable[*at])
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        super::blocks::{Block, Role},
        *,
    };

    /// Places marks in messages of letters, from the person and the model in turns: `t` words, `r` reasoning, `L`
    /// something large; `|` ends a message.
    fn placed(outline: &str, most: usize) -> Vec<usize> {
        let block = |letter| match letter {
            'r' => Block::RedactedThinking("x"),
            _ => Block::Text("x".into()),
        };
        let (mut messages, mut ends, mut hints) = (Vec::new(), Vec::new(), Vec::new());
        let mut count = 0;
        for (index, letters) in outline.split('|').enumerate() {
            count += letters.len();
            ends.push(count - 1);
            let role = if index % 2 == 0 {
                Role::User
            } else {
                Role::Assistant
            };
            if role == Role::User {
                let bytes = if letters.contains('L') {
                    CacheHint::LARGE
                } else {
                    0
                };
                hints.insert(
                    0,
                    CacheHint {
                        message: index,
                        bytes,
                    },
                );
            }
            messages.push(WireMessage {
                role,
                blocks: letters.chars().map(block).collect(),
            });
        }
        places(&messages, &ends, &hints, most).into_iter().collect()
    }

    #[test]
    fn ends_of_the_newest_requests_are_marked() {
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
        assert_eq!(
            placed(&format!("t|{}|{}", many(30), many(30)), 3),
            [0, 40, 60]
        );
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
        fn marks_keep_to_the_rules_of_the_api(
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
