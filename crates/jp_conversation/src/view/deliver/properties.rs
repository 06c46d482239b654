//! What holds for every history: nothing dangles, everything can be rebuilt, and what was sent stays as it was.

use std::collections::HashMap;

use jp_resource::{Annotations, Resource, ResourceContent, Role, uri};
use jp_tool::{ContentBlock, StoredBlock};
use proptest::prelude::*;
use serde_json::Map;

use super::{tests::As, *};
use crate::{
    ChatRequest, ChatResponse, Compaction, Event, EventKind, Stream, Strip, Superseded,
    ToolCallRequest, ToolCallResponse,
    view::{
        Hidden, NoTexts, SERVER_MARK, Span, SupersededPolicy, Thread, deliver, diff,
        find_superseded, lines, thread,
    },
};

/// What happens in a conversation.
#[derive(Debug, Clone)]
enum Step {
    Edit {
        file: usize,
        line: usize,
        how: Edit,
    },
    Ask {
        attached: Vec<usize>,
    },
    Answer,
    Read {
        what: Vec<Part>,
        how: Call,
    },
    Print {
        file: usize,
    },
    Supersede,
    Compact {
        keep_last: usize,
        strip: bool,
        summarise: bool,
    },
    Reset,
    Trim {
        turns: usize,
    },
}

/// What a call returns of a file: all of it, or lines of it.
#[derive(Debug, Clone)]
struct Part {
    file: usize,
    lines: Option<(usize, usize)>,
    shown: As,
}

/// A call of a tool.
#[derive(Debug, Clone, Copy)]
struct Call {
    /// Whether the tool is an MCP server's.
    server: bool,
    /// Whether its results but the first and the last are hidden.
    hides: bool,
    /// Calls of one number have the same arguments.
    number: usize,
}

#[derive(Debug, Clone, Copy)]
enum Edit {
    Replace,
    Insert,
    Delete,
    Undo,
    Rewrite,
    /// An empty line.
    Blank,
    /// The last line is not ended.
    Unend,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let how = prop_oneof![
        4 => Just(Edit::Replace),
        3 => Just(Edit::Insert),
        2 => Just(Edit::Delete),
        2 => Just(Edit::Undo),
        1 => Just(Edit::Rewrite),
        1 => Just(Edit::Blank),
        1 => Just(Edit::Unend),
    ];
    let file = 0..2usize;
    let range = proptest::option::of((0..60usize, 5..60usize));
    let shown = prop_oneof![
        12 => Just(As::Text),
        3 => Just(As::Cut),
        1 => Just(As::Formatted),
        1 => Just(As::Binary),
        1 => Just(As::ForPerson),
    ];
    let part =
        (file.clone(), range, shown).prop_map(|(file, lines, shown)| Part { file, lines, shown });
    let call = (
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.2),
        0..3usize,
    );
    let call = call.prop_map(|(server, hides, number)| Call {
        server,
        hides,
        number,
    });
    let step = prop_oneof![
        4 => (file.clone(), 0..80usize, how).prop_map(|(file, line, how)| Step::Edit { file, line, how }),
        3 => prop::collection::vec(file.clone(), 0..3).prop_map(|attached| Step::Ask { attached }),
        3 => Just(Step::Answer),
        6 => (prop::collection::vec(part, 1..4), call).prop_map(|(what, how)| Step::Read { what, how }),
        1 => file.prop_map(|file| Step::Print { file }),
        1 => Just(Step::Supersede),
        1 => (0..3usize, any::<bool>(), any::<bool>())
            .prop_map(|(keep_last, strip, summarise)| Step::Compact { keep_last, strip, summarise }),
        1 => Just(Step::Reset),
        1 => (1..4usize).prop_map(|turns| Step::Trim { turns }),
    ];
    prop::collection::vec(step, 1..40)
}

/// A conversation that is being made, with the files that it is about.
struct World {
    files: Vec<Vec<Vec<String>>>,
    events: Vec<EventKind>,
    calls: usize,
    /// How many events there were each time a request could be sent.
    requests: Vec<usize>,
}

impl World {
    fn new() -> Self {
        let lines = |file| {
            (0..70)
                .map(|line| format!("line {line} of the file {file}\n"))
                .collect()
        };
        Self {
            files: (0..2).map(|file| vec![lines(file)]).collect(),
            events: vec![EventKind::ChatRequest(ChatRequest::new("?"))],
            calls: 0,
            requests: Vec::new(),
        }
    }

    fn of(steps: &[Step]) -> Self {
        let mut world = Self::new();
        steps.iter().for_each(|step| world.step(step));
        world
    }

    fn step(&mut self, step: &Step) {
        // A person compacts between turns: what comes next is their message.
        let speaks = matches!(step, Step::Answer | Step::Read { .. } | Step::Print { .. });
        if speaks
            && matches!(
                self.events.last(),
                Some(EventKind::Compaction(_) | EventKind::Superseded(_))
            )
        {
            self.step(&Step::Ask {
                attached: Vec::new(),
            });
        }
        match step {
            Step::Edit { file, line, how } => self.edit(*file, *line, *how),
            Step::Ask { attached } => {
                let resources = attached
                    .iter()
                    .map(|file| self.resource(*file, None).into())
                    .collect();
                self.events.push(EventKind::ChatRequest(ChatRequest {
                    resources,
                    ..ChatRequest::new("?")
                }));
                self.requests.push(self.events.len());
            }
            Step::Answer => self
                .events
                .push(EventKind::ChatResponse(ChatResponse::message("!"))),
            Step::Read { what, how } => {
                let blocks = what.iter().map(|part| self.block(part)).collect();
                self.call(blocks, *how);
            }
            Step::Print { file } => {
                let text = self.files[*file].last().unwrap().concat();
                let how = Call {
                    server: false,
                    hides: false,
                    number: 0,
                };
                self.call(vec![ContentBlock::text(text).into()], how);
            }
            Step::Supersede => {
                let stream = self.stream();
                let dropped = find_superseded(&stream, &policy(), &mut NoTexts);
                self.events
                    .push(EventKind::Superseded(Superseded { dropped }));
            }
            Step::Compact {
                keep_last,
                strip,
                summarise,
            } => {
                let strip = if *strip {
                    vec![Strip::Reasoning, Strip::Tools]
                } else {
                    Vec::new()
                };
                let summary = summarise.then(|| "They spoke.".to_owned());
                self.events.push(EventKind::Compaction(Compaction {
                    reset: false,
                    keep_last: *keep_last,
                    strip,
                    summary,
                }));
            }
            Step::Reset => self.events.push(EventKind::Compaction(Compaction {
                reset: true,
                ..Compaction::default()
            })),
            Step::Trim { turns } => {
                let stream = self.stream();
                self.events = stream
                    .kept_by_fork(*turns)
                    .into_iter()
                    .map(|index| self.events[index].clone())
                    .collect();
                self.requests.clear();
            }
        }
    }

    fn edit(&mut self, file: usize, line: usize, how: Edit) {
        let versions = &mut self.files[file];
        let mut lines = versions.last().unwrap().clone();
        let line = line.min(lines.len());
        if let Some(last) = lines
            .last_mut()
            .filter(|last| !last.ends_with('\n') && !matches!(how, Edit::Undo))
        {
            last.push('\n');
        }
        let new = format!("edit {} at {line}\n", versions.len());
        match how {
            Edit::Insert => lines.insert(line, new),
            Edit::Delete if line < lines.len() && lines.len() > 20 => _ = lines.remove(line),
            Edit::Replace if line < lines.len() => lines[line] = new,
            Edit::Rewrite => lines
                .iter_mut()
                .for_each(|line| line.insert_str(0, &new[..6])),
            Edit::Undo => lines.clone_from(versions.iter().nth_back(1).unwrap_or(&versions[0])),
            Edit::Blank => lines.insert(line, "\n".to_owned()),
            Edit::Unend => lines
                .iter_mut()
                .next_back()
                .into_iter()
                .for_each(|last| last.truncate(last.trim_end().len())),
            Edit::Delete | Edit::Replace => lines.push(new),
        }
        versions.push(lines);
    }

    fn resource(&self, file: usize, lines: Option<(usize, usize)>) -> Resource {
        let content = self.files[file].last().unwrap();
        let uri = format!("file:///w/{file}.rs");
        match lines.filter(|(first, _)| *first < content.len()) {
            None => Resource::new(uri, ResourceContent::Text(content.concat())),
            Some((first, count)) => {
                let last = (first + count).min(content.len());
                let uri = format!("{uri}#L{}-{last}", first + 1);
                Resource::new(uri, ResourceContent::Text(content[first..last].concat()))
            }
        }
    }

    fn block(&self, part: &Part) -> StoredBlock {
        let mut resource = self.resource(part.file, part.lines);
        let text = resource.content.as_text().unwrap().to_owned();
        match part.shown {
            As::Text | As::Cut => {}
            As::Formatted => {
                resource.content = ResourceContent::Text(format!("raw\n{text}"));
                resource.formatted = Some(format!("<{text}>"));
            }
            As::Binary => {
                resource.content = ResourceContent::Blob([&[0xff], text.as_bytes()].concat());
            }
            As::ForPerson => {
                let audience = Some(vec![Role::User]);
                resource.annotations = Some(Annotations {
                    audience,
                    ..Annotations::default()
                });
            }
        }
        let mut block = ContentBlock::resource(resource).into();
        if part.shown == As::Cut {
            Shown::mark(Shown::within(&text, 400), &mut block);
        }
        block
    }

    fn call(&mut self, blocks: Vec<StoredBlock>, how: Call) {
        self.calls += 1;
        let (id, name) = (format!("c{}", self.calls), "read".to_owned());
        self.events
            .push(EventKind::ToolCallRequest(ToolCallRequest {
                id: id.clone(),
                name,
                arguments: Map::from_iter([("number".to_owned(), how.number.into())]),
                metadata: Map::new(),
            }));
        let hidden = Some(Hidden(1..blocks.len() - 1)).filter(|_| how.hides && blocks.len() > 2);
        let mut response = ToolCallResponse {
            id,
            content: blocks,
            is_error: false,
            structured_content: None,
            meta: how
                .server
                .then(|| (SERVER_MARK.to_owned(), "docs".into()))
                .into_iter()
                .collect(),
        };
        Hidden::mark(hidden, &mut response);
        self.events.push(EventKind::ToolCallResponse(response));
        self.requests.push(self.events.len());
    }

    fn stream(&self) -> Stream {
        self.up_to(self.events.len())
    }

    fn up_to(&self, count: usize) -> Stream {
        let event =
            |kind: &EventKind| Event::new("2026-11-21T12:00:00Z".parse().unwrap(), kind.clone());
        Stream::from_events(self.events[..count].iter().map(event).collect())
    }
}

fn policy() -> Policy {
    Policy {
        superseded_min_tokens: 100,
        lookback_turns: 5,
        ..Policy::default()
    }
}

/// Returns lines of a text whose first line is `first`.
fn lines_of(text: &str, first: usize, lines: Span) -> String {
    let lines: Vec<_> = text
        .split_inclusive('\n')
        .skip(lines.first - first)
        .take(lines.last + 1 - lines.first)
        .collect();
    lines.concat()
}

/// What is known of a resource or block once it was read.
#[derive(Debug, Clone)]
struct Known {
    content: String,
    /// The number of its first line.
    first: usize,
    /// Whether all of it is visible, and how.
    whole: Option<As>,
}

/// Rebuilds from what is visible what each resource is, and compares that with its content.
///
/// What is cut can be referred to where as much of it would be shown, and nothing can be built on it. What is left out
/// has given way to a version that can be rebuilt.
fn rebuild(thread: &Thread<'_>, is_compacted: bool) -> Result<(), TestCaseError> {
    let mut known: HashMap<(usize, usize), Known> = HashMap::new();
    let mut left_out = Vec::new();
    for (index, message) in thread.messages.iter().enumerate() {
        for (block, delivery) in message.deliveries().iter().enumerate() {
            let Some(snapshot) = message.resource(block) else {
                continue;
            };
            if snapshot.annotations.is_some() {
                prop_assert_eq!(delivery, &Delivery::default());
                continue;
            }
            let content = match &snapshot.content {
                Payload::Inline(ResourceContent::Text(content)) => content,
                Payload::Inline(ResourceContent::Blob(bytes)) => {
                    std::str::from_utf8(&bytes[1..]).unwrap()
                }
                Payload::Stored(_) => panic!("{snapshot:?}"),
            };
            let is_text = matches!(snapshot.content, Payload::Inline(ResourceContent::Text(_)));
            let fragment = uri::split_fragment(&snapshot.uri).1;
            let first = fragment
                .and_then(Span::from_fragment)
                .map_or(1, |span| span.first);
            let formatted = snapshot
                .formatted
                .as_ref()
                .map(|text| text.inline().unwrap().as_str());
            let shown = formatted.unwrap_or(content);
            let at = |place: &Place| {
                let (call, turn) = match &thread.messages[place.message] {
                    Message::Tool { call, turn, .. } => (Some(call.id.as_str()), *turn),
                    other => (None, other.turn()),
                };
                prop_assert_eq!(
                    (place.call.as_ref().map(|call| &*call.id), place.turn),
                    (call, turn)
                );
                prop_assert!(
                    shown.contains(&place.to_string()) && shown.contains(&place.checksum.short())
                );
                let known = known.get(&(place.message, place.block));
                known
                    .cloned()
                    .ok_or_else(|| TestCaseError::fail(format!("{place} is not visible: {shown}")))
            };
            let lines_at = |place: &Place| {
                let known = at(place)?;
                prop_assert_eq!(
                    known.whole,
                    Some(As::Text),
                    "{} is not whole: {}",
                    place,
                    shown
                );
                Ok(known)
            };
            let (rebuilt, whole) = match delivery {
                Delivery::Full(_) => {
                    let is_cut = match message {
                        Message::Tool {
                            response: Some(response),
                            ..
                        } => Shown::read_mark(&response.content[block]).is_some(),
                        _ => false,
                    };
                    let form = match formatted {
                        Some(_) => As::Formatted,
                        None if is_text => As::Text,
                        None => As::Binary,
                    };
                    (content.to_owned(), Some(form).filter(|_| !is_cut))
                }
                Delivery::Reference { at: place } => {
                    let known = at(place)?;
                    (known.content, known.whole)
                }
                Delivery::Lines { known: parts } => {
                    let mut rebuilt = String::new();
                    let mut parts = parts.iter();
                    let mut next = parts.next();
                    let mut new = shown
                        .split(":\n```\n")
                        .skip(1)
                        .map(|rest| rest.split_once("```\n").unwrap().0);
                    let mut line = first;
                    loop {
                        let lines = match next {
                            Some(part) if part.ours.first == line => {
                                let known = lines_at(&part.at)?;
                                next = parts.next();
                                lines_of(&known.content, known.first, part.theirs)
                            }
                            _ => match new.next() {
                                Some(lines) => lines.to_owned(),
                                None => break,
                            },
                        };
                        line += lines::count(&lines);
                        rebuilt += &lines;
                    }
                    // A fence ends the last line. A part of a file doesn't say if it reaches the end.
                    let is_unended = shown.contains(", without a newline at the end:\n");
                    let may_be_unended =
                        fragment.is_some() && rebuilt.strip_suffix('\n') == Some(content);
                    if is_unended || may_be_unended {
                        rebuilt.pop();
                    }
                    prop_assert!(next.is_none());
                    (rebuilt, Some(As::Text))
                }
                Delivery::Diff { base } => {
                    let (_, diff) = shown.split_once("```diff\n").unwrap();
                    let rebuilt = diff::apply(
                        &lines_at(base)?.content,
                        diff.strip_suffix("```\n").unwrap(),
                    );
                    (rebuilt, Some(As::Text))
                }
                Delivery::Tombstone { newer } => {
                    left_out.push((snapshot, newer.as_ref()));
                    continue;
                }
                Delivery::Compacted => continue,
            };
            prop_assert_eq!(&rebuilt, content, "{}", shown);
            known.insert(
                (index, block),
                Known {
                    content: rebuilt,
                    first,
                    whole,
                },
            );
        }
    }
    for (snapshot, newer) in left_out {
        let Some(newer) = newer else {
            prop_assert!(is_compacted, "nothing newer than {:?}", snapshot);
            continue;
        };
        let successor = thread.messages[newer.message]
            .resource(newer.block)
            .unwrap();
        prop_assert_eq!(&successor.uri, &snapshot.uri);
        let whole = known
            .get(&(newer.message, newer.block))
            .and_then(|known| known.whole);
        let own = match &snapshot.content {
            Payload::Inline(ResourceContent::Blob(_)) => As::Binary,
            _ => As::Formatted,
        };
        prop_assert!(
            whole.is_some_and(|form| form == As::Text || form == own),
            "{} {:?}",
            newer,
            whole
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn everything_can_be_rebuilt_from_what_is_visible(steps in steps()) {
        let world = World::of(&steps);
        let stream = world.stream();
        for superseded in [SupersededPolicy::WhenCold, SupersededPolicy::Keep, SupersededPolicy::Always] {
            let is_compacted = world.events.iter().any(|kind| matches!(kind, EventKind::Compaction(_)));
            rebuild(&deliver(&stream, &Policy { superseded, ..policy() }, &mut NoTexts), is_compacted)?;
        }
    }

    #[test]
    fn what_was_sent_stays_as_it_was(steps in steps()) {
        let world = World::of(&steps);
        let whole = world.stream();
        let whole = deliver(&whole, &policy(), &mut NoTexts);
        let is_break = |kind: &EventKind| matches!(kind, EventKind::Superseded(_) | EventKind::Compaction(_));
        let last_break = world.events.iter().rposition(is_break).unwrap_or(0);
        for count in world.requests.iter().filter(|count| **count > last_break) {
            let earlier = world.up_to(*count);
            let earlier = deliver(&earlier, &policy(), &mut NoTexts);
            prop_assert!(whole.messages.len() >= earlier.messages.len());
            for (earlier, now) in earlier.messages.iter().zip(&whole.messages) {
                prop_assert_eq!(earlier, now);
            }
        }
    }

    #[test]
    fn everything_switched_off_is_the_plain_history(steps in steps()) {
        let stream = World::of(&steps).stream();
        let plain = deliver(&stream, &Policy::plain(), &mut NoTexts);
        for (plain, delivered) in thread(&stream).messages.iter().zip(&plain.messages) {
            match (plain, delivered) {
                (Message::User { request: plain, .. }, Message::User { request, .. }) => prop_assert_eq!(plain, request),
                (Message::Tool { response: plain, .. }, Message::Tool { response, .. }) => prop_assert_eq!(plain, response),
                (plain, delivered) => prop_assert_eq!(plain, delivered),
            }
        }
    }

    #[test]
    fn nothing_is_longer_than_plain(steps in steps()) {
        let stream = World::of(&steps).stream();
        let bytes = |thread: &Thread<'_>| thread.cache_hints().iter().map(|hint| hint.bytes).sum::<u64>();
        let plain = bytes(&thread(&stream));
        let exact = Policy { ranges: false, diffs: false, ..policy() };
        let exact = bytes(&deliver(&stream, &exact, &mut NoTexts));
        let all = bytes(&deliver(&stream, &policy(), &mut NoTexts));
        prop_assert!(all <= plain && exact <= plain, "{} {} {}", all, exact, plain);
    }
}
