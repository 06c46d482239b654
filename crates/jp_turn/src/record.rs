//! Turns what a tool returned into what the conversation keeps.

use jp_conversation::{
    ToolCallResponse, is_shallow,
    view::{Hidden, SERVER_MARK, Shown, describe_binary, inline_text},
};
use jp_tool::{ContentBlock, StoredBlock, ToolError, ToolResponse};
use serde_json::{Map, Value};

use crate::Tool;

/// The number of blocks above which adjacent texts are joined, because each block that is cut costs
/// a line. A block is not cut to less than this fraction of the limit. Instead some blocks are
/// hidden.
const MANY_BLOCKS: usize = 100;
/// The bytes by which the shown text may exceed its limit, for the lines that mark cuts and for the
/// names of resources.
const SLACK: usize = 1000;
/// The bytes reserved for the line that marks a cut. A text that exceeds its share by less than
/// that is not cut: the line would be longer than the text that it replaces.
const CUT_LINE: usize = 256;
/// About the number of bytes around a resource, or in place of other content, without the names.
const FRAME: usize = 50;

/// Makes the event of a response.
///
/// The event has no questions, because their answers are events of their own. Details of an error
/// become text for the model, and so does structured content without other blocks.
pub(crate) fn to_event(id: &str, response: ToolResponse) -> ToolCallResponse {
    let mut meta = response.full_meta();
    // A local tool must not pretend to be an MCP server.
    meta.shift_remove(SERVER_MARK);
    let ToolResponse {
        mut content,
        is_error,
        structured_content,
        error,
        ..
    } = response;
    // Questions and answers are recorded as events of their own.
    content.retain(|block| !matches!(block, ContentBlock::Question { .. }));
    if let (true, Some(structured)) = (content.is_empty(), &structured_content) {
        content.push(ContentBlock::text(structured.to_string()));
    }
    let is_deep = structured_content
        .as_ref()
        .is_some_and(|structured| !is_shallow(structured));
    let mut has_cut = retain_shallow(&mut meta);
    for extras in content.iter_mut().flat_map(extras) {
        has_cut |= retain_shallow(extras);
    }
    if is_deep || has_cut {
        let note = "[Structured content and metadata that is nested more than 100 levels deep is left out.]";
        content.push(ContentBlock::text(note));
    }
    let structured_content = structured_content.filter(|_| !is_deep);
    content.extend(
        error
            .filter(|_| is_error)
            .and_then(|error| error_block(&error)),
    );
    let content = content.into_iter().map(Into::into).collect();
    ToolCallResponse {
        id: id.to_owned(),
        content,
        is_error,
        structured_content,
        meta,
    }
}

/// Removes values that are nested too deeply for an event; returns whether there were any.
fn retain_shallow(map: &mut Map<String, Value>) -> bool {
    let had = map.len();
    map.retain(|_, value| is_shallow(value));
    map.len() < had
}

/// Returns the parts of a block that may have any shape: metadata, and annotations that this
/// version does not know.
fn extras(block: &mut ContentBlock) -> impl Iterator<Item = &mut Map<String, Value>> {
    let (metas, annotations) = match block {
        ContentBlock::Text {
            meta, annotations, ..
        } => ([meta.as_mut(), None], annotations.as_mut()),
        ContentBlock::Resource { resource, meta } => (
            [meta.as_mut(), resource.meta.as_mut()],
            resource.annotations.as_mut(),
        ),
        ContentBlock::Image(media) | ContentBlock::Audio(media) => {
            ([media.meta.as_mut(), None], media.annotations.as_mut())
        }
        ContentBlock::Question { .. } => ([None, None], None),
        ContentBlock::Unknown(never) => match *never {},
    };
    metas
        .into_iter()
        .flatten()
        .chain(annotations.map(|annotations| &mut annotations.other))
}

/// Makes the event of what a tool of an MCP server returned: its resources are known by the server,
/// too.
pub(crate) fn to_server_event(server: &str, id: &str, response: ToolResponse) -> ToolCallResponse {
    let mut event = to_event(id, response);
    event.meta.insert(SERVER_MARK.to_owned(), server.into());
    event
}

fn error_block(error: &ToolError) -> Option<ContentBlock> {
    let causes: String = error
        .trace
        .iter()
        .map(|cause| format!("- {cause}\n"))
        .collect();
    let causes = if causes.is_empty() {
        causes
    } else {
        format!("Caused by, outermost first:\n{causes}")
    };
    let advice = if error.transient {
        "The error may be temporary: the same call may succeed later.\n"
    } else {
        ""
    };
    let text = causes + advice;
    (!text.is_empty()).then(|| ContentBlock::text(text))
}

/// Marks how much of a result the model is shown, within the tool's limits.
pub(crate) fn limit(mut response: ToolCallResponse, tool: &Tool) -> ToolCallResponse {
    // A tool's own marks must not decide what the model sees.
    response
        .content
        .iter_mut()
        .for_each(|block| Shown::mark(None, block));
    leave_out_binaries(&mut response.content, tool.max_binary_bytes);
    limit_text(response, tool.max_output_bytes)
}

/// Describes for the user which binaries of a result are left out, and what allows more.
pub(crate) fn describe_left_out(response: &ToolCallResponse, tool: &Tool) -> Vec<String> {
    let for_model = response.content.iter().filter(|block| !block.is_for_user());
    let left_out = for_model.filter(|block| Shown::read_mark(block).is_some());
    let name = &tool.name;
    let describe = |(mime_type, bytes)| {
        format!(
            "`{name}` returned {bytes} bytes of {mime_type}, over the limit for a result: the model gets a note; raise `conversation.tools.{name}.max_output_bytes` to allow more"
        )
    };
    left_out.filter_map(describe_binary).map(describe).collect()
}

/// Marks binaries as left out if together they have more than `max_bytes`.
///
/// A binary can't be cut, so each is shown whole or not at all, in order as long as they fit. Those
/// for the user alone take nothing of what the model may have.
fn leave_out_binaries(blocks: &mut [StoredBlock], max_bytes: usize) {
    let mut left = max_bytes as u64;
    for block in blocks.iter_mut().filter(|block| !block.is_for_user()) {
        let Some((_, bytes)) = describe_binary(block) else {
            continue;
        };
        match left.checked_sub(bytes) {
            Some(rest) => left = rest,
            None => Shown::mark(Some(Shown::NOTHING), block),
        }
    }
}

/// Marks how much of the texts of a result the model is shown: at most about `max_bytes`.
///
/// Each text gets a fair share, so that short ones stay whole. If the blocks are too many
/// for that, the first and the last are shown.
fn limit_text(mut response: ToolCallResponse, max_bytes: usize) -> ToolCallResponse {
    if response.content.iter().map(cost).sum::<usize>() > max_bytes {
        response.content = cut(response.content, max_bytes);
    }
    let hidden = surplus(&response.content, max_bytes);
    Hidden::mark(hidden, &mut response);
    response
}

/// Returns the number of bytes of a block's text that a model may receive.
fn length(block: &StoredBlock) -> usize {
    inline_text(block)
        .filter(|_| !block.is_for_user())
        .map_or(0, str::len)
}

/// Marks how much of each text is shown.
fn cut(mut blocks: Vec<StoredBlock>, max_bytes: usize) -> Vec<StoredBlock> {
    if blocks.len() > MANY_BLOCKS {
        blocks = join_texts(blocks);
    }
    let total = for_texts(&blocks, max_bytes);
    let share = fair_share(blocks.iter().map(length).collect(), total).max(total / MANY_BLOCKS);
    for block in &mut blocks {
        let shown = inline_text(block).map(|text| Shown::within(text, share));
        if let Some(shown) = shown {
            Shown::mark(shown, block);
        }
    }
    blocks
}

/// Returns the bytes that remain for texts if cuts and names have to fit as well; at least half of
/// the limit.
fn for_texts(blocks: &[StoredBlock], max_bytes: usize) -> usize {
    let around: usize = blocks
        .iter()
        .map(|block| {
            // A text below half of an equal share is never cut: other texts are longer.
            let may_be_cut = length(block).saturating_mul(blocks.len() * 2) > max_bytes;
            names(block) + if may_be_cut { CUT_LINE } else { 0 }
        })
        .sum();
    max_bytes
        .saturating_add(SLACK)
        .saturating_sub(around)
        .clamp(max_bytes / 2, max_bytes)
}

/// Returns the blocks in the middle that don't fit. The blocks before and after them have half of
/// the limit each.
fn surplus(blocks: &[StoredBlock], max_bytes: usize) -> Option<Hidden> {
    let costs: Vec<usize> = blocks.iter().map(cost).collect();
    let bytes = max_bytes.saturating_add(SLACK);
    if costs.iter().sum::<usize>() <= bytes {
        return None;
    }
    // Models need the beginning of a result (what it is) and its end (how it went) more than its
    // middle.
    let (head, tail) = (
        count_fitting(costs.iter(), bytes / 2),
        count_fitting(costs.iter().rev(), bytes / 2),
    );
    Some(Hidden(head..costs.len() - tail))
}

/// Returns about how many bytes of a block a model receives. Content that is not text counts as its
/// name.
fn cost(block: &StoredBlock) -> usize {
    let shown = Shown::read_mark(block).map(|Shown { head, tail }| head + tail + CUT_LINE);
    names(block) + shown.unwrap_or_else(|| length(block))
}

fn names(block: &StoredBlock) -> usize {
    match block {
        block if block.is_for_user() => 0,
        ContentBlock::Resource { resource, .. } => {
            FRAME + resource.uri.len() + resource.name.as_ref().map_or(0, String::len)
        }
        ContentBlock::Image(media) | ContentBlock::Audio(media) => FRAME + media.mime_type.len(),
        ContentBlock::Text { .. } | ContentBlock::Question { .. } | ContentBlock::Unknown(_) => 0,
    }
}

/// Returns how many of the first costs fit into `bytes`.
fn count_fitting<'c>(costs: impl Iterator<Item = &'c usize>, bytes: usize) -> usize {
    let sums = costs.scan(0, |sum: &mut usize, cost| {
        *sum += cost;
        Some(*sum)
    });
    sums.take_while(|sum| *sum <= bytes).count()
}

/// Returns the length to which lengths are to be cut so that they sum up to at most `total`.
fn fair_share(mut lengths: Vec<usize>, total: usize) -> usize {
    // Short texts stay whole and leave the rest of their share to longer ones.
    lengths.sort_unstable();
    let mut left = total;
    for (index, length) in lengths.iter().enumerate() {
        let share = left / (lengths.len() - index);
        if *length > share {
            return share;
        }
        left -= length;
    }
    usize::MAX
}

/// Joins adjacent blocks that have only text, each on its own line.
fn join_texts(blocks: Vec<StoredBlock>) -> Vec<StoredBlock> {
    let mut joined: Vec<StoredBlock> = Vec::new();
    for block in blocks {
        match (joined.last_mut().and_then(plain_text), plain(&block)) {
            (Some(before), Some(text)) => {
                let newline = if before.is_empty() || before.ends_with('\n') {
                    ""
                } else {
                    "\n"
                };
                before.push_str(newline);
                before.push_str(text);
            }
            _ => joined.push(block),
        }
    }
    joined
}

fn plain(block: &StoredBlock) -> Option<&str> {
    match block {
        ContentBlock::Text {
            annotations: None,
            meta: None,
            ..
        } => inline_text(block),
        _ => None,
    }
}

fn plain_text(block: &mut StoredBlock) -> Option<&mut String> {
    match block {
        ContentBlock::Text {
            text: jp_resource::Payload::Inline(text),
            annotations: None,
            meta: None,
        } => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use jp_conversation::{
        Event, EventKind, Stream, ToolCallRequest,
        view::{self, resource_block, shown_text},
    };
    use jp_resource::{Annotations, Checksum, Payload, Resource, ResourceContent};
    use jp_tool::{AnswerType, InputRequest, Media, Status};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::builtin::Builtin;

    fn texts(response: &ToolCallResponse) -> Vec<&str> {
        response.content.iter().filter_map(inline_text).collect()
    }

    fn of_texts(texts: &[String]) -> ToolCallResponse {
        to_event("1", ToolResponse::new(texts.iter().map(ContentBlock::text)))
    }

    #[test]
    fn structured_content_nested_too_deeply_is_left_out() {
        let nested = |levels: usize| (1..levels).fold(json!([]), |inner, _| json!([inner]));
        for (levels, is_kept) in [(100, true), (101, false)] {
            let structured_content = Some(nested(levels));
            let response = to_event(
                "1",
                ToolResponse {
                    structured_content,
                    ..ToolResponse::new([])
                },
            );
            assert_eq!(response.structured_content.is_some(), is_kept);
            let has_note = texts(&response)
                .iter()
                .any(|text| text.contains("100 levels deep"));
            assert_eq!(has_note, !is_kept);
            let time = "2026-11-21T12:00:00Z".parse().unwrap();
            let json = Event::new(time, EventKind::ToolCallResponse(response))
                .to_json()
                .unwrap();
            assert!(Event::from_json(&json).is_ok());
        }
    }

    #[test]
    fn metadata_nested_too_deeply_is_left_out() {
        let deep = (0..120).fold(json!([]), |inner, _| json!([inner]));
        let extras = Map::from_iter([("deep".to_owned(), deep), ("flat".to_owned(), json!(1))]);
        let (meta, other) = (Some(extras.clone()), extras);
        let annotations = Some(Annotations {
            other,
            ..Annotations::default()
        });
        let resource = Resource {
            meta: meta.clone(),
            annotations: annotations.clone(),
            ..Resource::new("a:b", ResourceContent::Text("r".to_owned()))
        };
        let image = Media {
            data: vec![1],
            mime_type: "image/png".to_owned(),
            annotations: annotations.clone(),
            meta: meta.clone(),
        };
        for block in [
            ContentBlock::Text {
                text: "t".to_owned(),
                annotations,
                meta: meta.clone(),
            },
            ContentBlock::Resource { resource, meta },
            ContentBlock::Image(image),
        ] {
            let response = to_event("1", ToolResponse::new([block]));
            assert!(texts(&response).last().unwrap().contains("100 levels deep"));
            let json = serde_json::to_string(&response.content).unwrap();
            assert!(
                !json.contains("deep\":") && json.contains(r#""flat":1"#),
                "{json}"
            );
            let time = "2026-11-21T12:00:00Z".parse().unwrap();
            assert!(
                Event::new(time, EventKind::ToolCallResponse(response))
                    .to_json()
                    .is_ok()
            );
        }
    }

    /// Returns the texts that a model is shown of a result, block by block.
    fn shown(response: &ToolCallResponse) -> Vec<String> {
        let (id, name) = (response.id.clone(), "t".to_owned());
        let call = ToolCallRequest {
            id,
            name,
            arguments: Map::new(),
            metadata: Map::new(),
        };
        let now = "2026-11-21T12:00:00Z".parse().unwrap();
        let kinds = [
            EventKind::ToolCallRequest(call),
            EventKind::ToolCallResponse(response.clone()),
        ];
        let stream = Stream::from_events(kinds.map(|kind| Event::new(now, kind)).into());
        let thread = view::thread(&stream);
        let Some(view::Message::Tool {
            response: Some(response),
            ..
        }) = thread.messages.last()
        else {
            panic!("{thread:?}")
        };
        let block = |block: &StoredBlock| {
            let text = shown_text(block, inline_text(block).unwrap().into()).into_owned();
            match block {
                ContentBlock::Resource { resource, .. } => resource_block(resource, &text),
                _ => text,
            }
        };
        response.content.iter().map(block).collect()
    }

    fn shown_bytes(response: &ToolCallResponse) -> usize {
        shown(response).iter().map(String::len).sum()
    }

    #[test]
    fn error_is_recorded_with_its_causes() {
        let failed = ToolResponse {
            error: Some(ToolError {
                transient: true,
                trace: vec!["timeout".into(), "no route".into()],
            }),
            status: Some(Status::Stopped),
            meta: Map::from_iter([("other".to_owned(), 1.into())]),
            ..ToolResponse::from_error("No answer.")
        };
        let event = to_event("1", failed);
        insta::assert_snapshot!(texts(&event).join("\n"), @r"
        No answer.
        Caused by, outermost first:
        - timeout
        - no route
        The error may be temporary: the same call may succeed later.
        ");
        assert_eq!(
            serde_json::to_value(&event.meta).unwrap(),
            json!({
                "other": 1, "computer.jp/error": {"transient": true, "trace": ["timeout", "no route"]},
                "computer.jp/status": "stopped",
            })
        );
    }

    #[test]
    fn tool_can_not_pretend_to_be_a_server() {
        let meta = Map::from_iter([
            (SERVER_MARK.to_owned(), json!("docs")),
            ("other".to_owned(), 1.into()),
        ]);
        let event = to_event(
            "1",
            ToolResponse {
                meta,
                ..ToolResponse::new([])
            },
        );
        assert_eq!(event.meta, Map::from_iter([("other".to_owned(), 1.into())]));
    }

    #[test]
    fn error_without_details_stays_unchanged() {
        let failed = ToolResponse {
            error: Some(ToolError::default()),
            ..ToolResponse::from_error("No answer.")
        };
        assert_eq!(texts(&to_event("1", failed)), ["No answer."]);
    }

    #[test]
    fn questions_are_not_part_of_a_result() {
        let question = InputRequest::new("q", "Sure?", AnswerType::Boolean);
        let blocks = [
            ContentBlock::text("a"),
            ContentBlock::question(question),
            ContentBlock::text("b"),
        ];
        assert_eq!(texts(&to_event("1", ToolResponse::new(blocks))), ["a", "b"]);
    }

    #[test]
    fn structured_content_that_comes_alone_is_shown() {
        let structured = ToolResponse {
            structured_content: Some(json!({"n": 1})),
            ..ToolResponse::default()
        };
        let event = to_event("1", structured.clone());
        assert_eq!(
            (texts(&event), event.structured_content.clone()),
            (vec![r#"{"n":1}"#], Some(json!({"n": 1})))
        );
        let both = ToolResponse {
            content: vec![ContentBlock::text("one")],
            ..structured
        };
        assert_eq!(texts(&to_event("1", both)), ["one"]);
    }

    #[test]
    fn checksum_is_of_the_raw_content_whatever_is_shown() {
        let mut resource = Resource::new("a:b", ResourceContent::Text("raw".to_owned()));
        resource.formatted = Some("f".repeat(5000));
        let event = limit_text(
            to_event("1", ToolResponse::new([ContentBlock::resource(resource)])),
            1000,
        );
        let ContentBlock::Resource { resource, .. } = &event.content[0] else {
            panic!("{event:?}")
        };
        let Payload::Inline(content) = &resource.content else {
            panic!("{event:?}")
        };
        assert_eq!(content.blob_ref().checksum, Checksum::compute(b"raw"));
        assert_eq!(
            Shown::read_mark(&event.content[0]),
            Some(Shown {
                head: 500,
                tail: 500
            })
        );
    }

    #[test]
    fn result_within_its_bound_has_no_mark() {
        let texts = ["a".repeat(500), "b".repeat(500)];
        assert_eq!(limit_text(of_texts(&texts), 1000), of_texts(&texts));
    }

    #[test]
    fn short_blocks_stay_whole_beside_a_long_one() {
        let event = limit_text(
            of_texts(&["head".into(), "x".repeat(10_000), "tail".into()]),
            1008,
        );
        let marks: Vec<_> = event.content.iter().map(Shown::read_mark).collect();
        assert_eq!(
            marks,
            [
                None,
                Some(Shown {
                    head: 500,
                    tail: 500
                }),
                None
            ]
        );
        assert_eq!(texts(&event)[1].len(), 10_000);
    }

    #[test]
    fn shown_mark_of_a_tool_does_not_count() {
        let mut block: StoredBlock = ContentBlock::text("all of this").into();
        Shown::mark(Some(Shown { head: 0, tail: 0 }), &mut block);
        let event = ToolCallResponse {
            content: vec![block],
            ..of_texts(&[])
        };
        let tool = Builtin::ReadFile.tool();
        assert_eq!(limit(event, &tool), of_texts(&["all of this".to_owned()]));
        let mut event = to_event("1", ToolResponse::new([image(10)]));
        Shown::mark(Some(Shown::NOTHING), &mut event.content[0]);
        assert_eq!(limit(event, &tool).content, [image(10).into()]);
    }

    fn image(bytes: usize) -> ContentBlock {
        let data = vec![0; bytes];
        ContentBlock::Image(Media {
            data,
            mime_type: "image/png".to_owned(),
            annotations: None,
            meta: None,
        })
    }

    #[test]
    fn binary_content_is_never_cut() {
        let tool = Tool {
            max_binary_bytes: 100,
            max_output_bytes: 500,
            ..Builtin::ReadFile.tool()
        };
        let file = Resource::new("a:b", ResourceContent::Blob(vec![0xff; 30]));
        let blocks = [
            image(80),
            image(30),
            ContentBlock::resource(file),
            image(20),
            ContentBlock::text("x".repeat(2000)),
        ];
        let event = limit(to_event("1", ToolResponse::new(blocks)), &tool);
        let nothing = Some(Shown::NOTHING);
        let marks: Vec<_> = event.content.iter().map(Shown::read_mark).collect();
        assert_eq!(marks[..4], [None, nothing, nothing, None]);
        assert!(marks[4].is_some_and(|shown| shown.head > 0));
        assert_eq!(limit(event.clone(), &tool), event);
    }

    #[test]
    fn binary_for_the_user_alone_leaves_the_model_its_own() {
        let tool = Tool {
            max_binary_bytes: 100,
            ..Builtin::ReadFile.tool()
        };
        let for_user = |bytes| {
            let data = vec![0; bytes];
            let annotations = serde_json::from_value(json!({"audience": ["user"]})).unwrap();
            ContentBlock::Image(Media {
                data,
                mime_type: "image/png".to_owned(),
                annotations,
                meta: None,
            })
        };
        let event = limit(
            to_event(
                "1",
                ToolResponse::new([for_user(80), image(30), for_user(400)]),
            ),
            &tool,
        );
        assert!(
            event
                .content
                .iter()
                .all(|block| Shown::read_mark(block).is_none()),
            "{event:?}"
        );
        assert_eq!(describe_left_out(&event, &tool), [""; 0]);
    }

    #[test]
    fn blocks_without_number_become_one_that_can_be_cut() {
        let lines: Vec<_> = (0..10_000).map(|n| format!("line {n}")).collect();
        let event = limit_text(of_texts(&lines), 1000);
        assert_eq!(texts(&event), [lines.join("\n")]);
        assert!(shown_bytes(&event) <= 1000 + CUT_LINE);
    }

    /// A result of many files, and how it ended.
    fn of_files(count: usize, bytes: usize) -> ToolCallResponse {
        let file = |n| {
            let content = ResourceContent::Text("x".repeat(bytes));
            ContentBlock::resource(Resource::new(format!("file:///{n}"), content))
        };
        to_event(
            "1",
            ToolResponse::new(
                (0..count)
                    .map(file)
                    .chain([ContentBlock::text("exit status 3")]),
            ),
        )
    }

    #[test]
    fn middle_of_very_many_blocks_is_hidden() {
        let event = limit_text(of_files(20_000, 200), 10_000);
        assert_eq!(event.content.len(), 20_001);
        let shown = shown(&event);
        let line = shown.iter().position(|text| text.starts_with('…')).unwrap();
        insta::assert_snapshot!(shown[line], @"… 19959 blocks are left out here because the result is too long; a call that requests less can show them …");
        assert_eq!((line, shown.len()), (21, 43));
        assert!(
            shown[0].starts_with("```(file:///0, no newline at the end)\nxxx")
                && shown.last().unwrap() == "exit status 3"
        );
        assert!(shown_bytes(&event) <= 10_000 + SLACK + 200);
    }

    #[test]
    fn some_of_each_of_many_large_blocks_is_shown() {
        let event = limit_text(of_files(50, 20_000), 256_000);
        let is_cut = |block: &StoredBlock| {
            Shown::read_mark(block).is_some_and(|Shown { head, .. }| head > 2000)
        };
        assert_eq!(
            event.content.iter().filter(|block| is_cut(block)).count(),
            50
        );
        assert_eq!(Hidden::read_mark(&event), None);
        assert!(shown_bytes(&event) <= 256_000 + SLACK);
    }

    #[test]
    fn blocks_without_content_are_not_endless_either() {
        assert!(shown_bytes(&limit_text(of_files(20_000, 0), 10_000)) <= 10_000 + SLACK + 200);
    }

    #[test]
    fn hidden_mark_of_a_tool_does_not_count() {
        let mut event = of_texts(&["a".to_owned(), "b".to_owned()]);
        Hidden::mark(Some(Hidden(0..1)), &mut event);
        assert_eq!(shown(&limit_text(event, 1000)), ["a", "b"]);
    }

    proptest! {
        #[test]
        fn shown_text_stays_within_the_limit(
            lengths in prop::collection::vec((0usize..2000, any::<bool>()), 0..300), max_bytes in 0usize..100_000,
        ) {
            let block = |(length, is_text): &(usize, bool)| {
                let text = "x".repeat(*length);
                match is_text {
                    true => ContentBlock::text(text),
                    false => ContentBlock::resource(Resource::new("a:b", ResourceContent::Text(text))),
                }
            };
            let event = limit_text(to_event("1", ToolResponse::new(lengths.iter().map(block))), max_bytes);
            prop_assert!(shown_bytes(&event) <= max_bytes + SLACK + 200, "{}", shown_bytes(&event));
            if lengths.iter().map(|(length, _)| length + FRAME).sum::<usize>() <= max_bytes {
                prop_assert!(event.content.iter().all(|block| Shown::read_mark(block).is_none()));
                prop_assert_eq!(Hidden::read_mark(&event), None);
            }
        }
    }
}
