//! Turns what a tool returned into what the conversation keeps.

use jp_conversation::{
    ToolCallResponse,
    view::{Shown, inline_text},
};
use jp_tool::{ContentBlock, StoredBlock, ToolError, ToolResponse};

/// From how many blocks on those of text in a row become one: each that is cut costs a line.
const MANY_BLOCKS: usize = 100;

/// Makes the event of a response.
///
/// Questions are not part of it: whoever records has the answers. What is known of an error is told to the model, too,
/// and so is structured content that comes alone.
pub(crate) fn response(id: &str, response: ToolResponse) -> ToolCallResponse {
    let meta = response.full_meta();
    let ToolResponse { mut content, is_error, structured_content, error, .. } = response;
    content.retain(|block| !matches!(block, ContentBlock::Question { .. }));
    if let (true, Some(structured)) = (content.is_empty(), &structured_content) {
        content.push(ContentBlock::text(structured.to_string()));
    }
    content.extend(error.filter(|_| is_error).and_then(|error| error_block(&error)));
    let content = content.into_iter().map(Into::into).collect();
    ToolCallResponse { id: id.to_owned(), content, is_error, structured_content, meta }
}

fn error_block(error: &ToolError) -> Option<ContentBlock> {
    let causes: String = error.trace.iter().map(|cause| format!("- {cause}\n")).collect();
    let causes = if causes.is_empty() { causes } else { format!("Caused by, outermost first:\n{causes}") };
    let advice = if error.transient { "The error may pass: the same call can succeed later.\n" } else { "" };
    let text = causes + advice;
    (!text.is_empty()).then(|| ContentBlock::text(text))
}

/// Marks how much of a result the model is shown: at most `max_bytes` of its text, shared out among the blocks so that
/// short ones are whole.
pub(crate) fn limited(mut response: ToolCallResponse, max_bytes: usize) -> ToolCallResponse {
    // Only jp says what is shown.
    response.content.iter_mut().for_each(|block| Shown::mark(None, block));
    let length = |block: &StoredBlock| inline_text(block).map_or(0, str::len);
    if response.content.iter().map(length).sum::<usize>() <= max_bytes {
        return response;
    }
    if response.content.len() > MANY_BLOCKS {
        response.content = joined(response.content);
    }
    let share = fair_share(response.content.iter().map(length).collect(), max_bytes);
    for block in &mut response.content {
        let shown = inline_text(block).and_then(|text| Shown::within(text, share));
        Shown::mark(shown, block);
    }
    response
}

/// Returns the length to which lengths are to be cut so that they sum up to at most `total`.
fn fair_share(mut lengths: Vec<usize>, total: usize) -> usize {
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

/// Joins blocks of nothing but text where they follow each other, each on a line of its own.
fn joined(blocks: Vec<StoredBlock>) -> Vec<StoredBlock> {
    let mut joined: Vec<StoredBlock> = Vec::new();
    for block in blocks {
        match (joined.last_mut().and_then(plain_text), plain(&block)) {
            (Some(before), Some(text)) => {
                let newline = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
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
        ContentBlock::Text { annotations: None, meta: None, .. } => inline_text(block),
        _ => None,
    }
}

fn plain_text(block: &mut StoredBlock) -> Option<&mut String> {
    match block {
        ContentBlock::Text { text: jp_resource::Payload::Inline(text), annotations: None, meta: None } => {
            Some(text)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use jp_resource::{Checksum, Payload, Resource, ResourceContent};
    use jp_tool::{AnswerType, InputRequest, Status};
    use proptest::prelude::*;
    use serde_json::{Map, json};

    use super::*;

    fn texts(response: &ToolCallResponse) -> Vec<&str> {
        response.content.iter().filter_map(inline_text).collect()
    }

    fn of_texts(texts: &[String]) -> ToolCallResponse {
        response("1", ToolResponse::new(texts.iter().map(ContentBlock::text)))
    }

    fn shown(response: &ToolCallResponse) -> usize {
        let shown = |block| {
            let whole = inline_text(block).map_or(0, str::len);
            Shown::of(block).map_or(whole, |Shown { head, tail }| head + tail)
        };
        response.content.iter().map(shown).sum()
    }

    #[test]
    fn error_is_told_with_its_causes_and_kept_in_the_event() {
        let failed = ToolResponse {
            error: Some(ToolError { transient: true, trace: vec!["timeout".into(), "no route".into()] }),
            status: Some(Status::Stopped),
            meta: Map::from_iter([("other".to_owned(), 1.into())]),
            ..ToolResponse::error([ContentBlock::text("No answer.")])
        };
        let event = response("1", failed);
        insta::assert_snapshot!(texts(&event).join("\n"), @r"
        No answer.
        Caused by, outermost first:
        - timeout
        - no route
        The error may pass: the same call can succeed later.
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
    fn error_without_details_is_as_it_is() {
        let failed = ToolResponse {
            error: Some(ToolError::default()),
            ..ToolResponse::error([ContentBlock::text("No answer.")])
        };
        assert_eq!(texts(&response("1", failed)), ["No answer."]);
    }

    #[test]
    fn questions_are_not_part_of_a_result() {
        let question = InputRequest::new("q", "Sure?", AnswerType::Boolean);
        let blocks = [ContentBlock::text("a"), ContentBlock::question(question), ContentBlock::text("b")];
        assert_eq!(texts(&response("1", ToolResponse::new(blocks))), ["a", "b"]);
    }

    #[test]
    fn structured_content_that_comes_alone_is_shown() {
        let structured =
            ToolResponse { structured_content: Some(json!({"n": 1})), ..ToolResponse::default() };
        let event = response("1", structured.clone());
        assert_eq!(
            (texts(&event), event.structured_content.clone()),
            (vec![r#"{"n":1}"#], Some(json!({"n": 1})))
        );
        let both = ToolResponse { content: vec![ContentBlock::text("one")], ..structured };
        assert_eq!(texts(&response("1", both)), ["one"]);
    }

    #[test]
    fn checksum_is_of_the_raw_content_whatever_is_shown() {
        let mut resource = Resource::new("a:b", ResourceContent::Text("raw".to_owned()));
        resource.formatted = Some("f".repeat(5000));
        let event = limited(response("1", ToolResponse::new([ContentBlock::resource(resource)])), 1000);
        let ContentBlock::Resource { resource, .. } = &event.content[0] else { panic!("{event:?}") };
        let Payload::Inline(content) = &resource.content else { panic!("{event:?}") };
        assert_eq!(content.blob_ref().checksum, Checksum::of(b"raw"));
        assert_eq!(Shown::of(&event.content[0]), Some(Shown { head: 500, tail: 500 }));
    }

    #[test]
    fn result_within_its_bound_has_no_mark() {
        let texts = ["a".repeat(500), "b".repeat(500)];
        assert_eq!(limited(of_texts(&texts), 1000), of_texts(&texts));
    }

    #[test]
    fn short_blocks_stay_whole_beside_a_long_one() {
        let event = limited(of_texts(&["head".into(), "x".repeat(10_000), "tail".into()]), 1008);
        let marks: Vec<_> = event.content.iter().map(Shown::of).collect();
        assert_eq!(marks, [None, Some(Shown { head: 500, tail: 500 }), None]);
        assert_eq!(texts(&event)[1].len(), 10_000);
    }

    #[test]
    fn mark_of_the_tools_own_does_not_count() {
        let mut block: StoredBlock = ContentBlock::text("all of this").into();
        Shown::mark(Some(Shown { head: 0, tail: 0 }), &mut block);
        let event = ToolCallResponse { content: vec![block], ..of_texts(&[]) };
        assert_eq!(limited(event, 1000), of_texts(&["all of this".to_owned()]));
    }

    #[test]
    fn blocks_without_number_become_one_that_can_be_cut() {
        let lines: Vec<_> = (0..10_000).map(|n| format!("line {n}")).collect();
        let event = limited(of_texts(&lines), 1000);
        assert_eq!(texts(&event), [lines.join("\n")]);
        assert!(shown(&event) <= 1000);
    }

    proptest! {
        #[test]
        fn shown_text_is_within_the_bound_but_for_what_is_too_short_to_cut(
            lengths in prop::collection::vec(0usize..3000, 0..12), max_bytes in 0usize..4000,
        ) {
            let texts: Vec<_> = lengths.iter().map(|length| "x".repeat(*length)).collect();
            let event = limited(of_texts(&texts), max_bytes);
            prop_assert!(shown(&event) <= max_bytes + lengths.len() * 256);
            if lengths.iter().sum::<usize>() <= max_bytes {
                prop_assert!(event.content.iter().all(|block| Shown::of(block).is_none()));
            }
        }
    }
}
