use proptest::prelude::*;

use super::*;
use crate::error_text::error_in;

fn of(status: u16, body: &str) -> Option<Refusal> {
    Refusal::read(Some(status), &error_in(body))
}

fn too_long(tokens: impl Into<Option<u64>>, limit: impl Into<Option<u64>>) -> Refusal {
    Refusal::TooLong {
        tokens: tokens.into(),
        limit: limit.into(),
    }
}

#[test]
fn wrong_key_is_told_by_every_provider() {
    for (status, body) in [
        (
            401,
            r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"},"request_id":"req_1"}"#,
        ),
        (
            401,
            r#"{"error":{"message":"Incorrect API key provided: sk-x.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#,
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}]}}"#,
        ),
        (
            403,
            r#"{"error":{"code":403,"message":"Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API.","status":"PERMISSION_DENIED"}}"#,
        ),
        (
            401,
            r#"{"error":{"message":"No auth credentials found","code":401}}"#,
        ),
        (401, r#"{"error":{"message":"User not found.","code":401}}"#),
        (401, r#"{"error":"unauthorized"}"#),
        (
            401,
            r#"{"error":{"code":401,"message":"Invalid API Key","type":"authentication_error"}}"#,
        ),
    ] {
        assert_eq!(of(status, body), Some(Refusal::Key), "{body}");
    }
}

#[test]
fn model_without_tools_is_told_by_servers() {
    for (status, body) in [
        (
            500,
            r#"{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}"#,
        ),
        (
            500,
            r#"{"code":500,"message":"Unsupported param: tools","type":"server_error"}"#,
        ),
        (
            400,
            r#"{"error":"registry.ollama.ai/library/gemma3:4b does not support tools"}"#,
        ),
        (
            400,
            r#"{"object":"error","message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","param":null,"code":400}"#,
        ),
        (
            404,
            r#"{"error":{"message":"No endpoints found that support tool use. To learn more, read on.","code":404}}"#,
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"Function calling is not enabled for models/gemma-3-27b-it","status":"INVALID_ARGUMENT"}}"#,
        ),
    ] {
        assert_eq!(of(status, body), Some(Refusal::Tools), "{body}");
    }
    assert_eq!(of(503, r#"{"error":"does not support tools"}"#), None);
}

#[test]
fn unknown_model_is_told_by_every_provider() {
    for (status, body) in [
        (
            404,
            r#"{"type":"error","error":{"type":"not_found_error","message":"model: sonnet4"},"request_id":"req_1"}"#,
        ),
        (
            404,
            r#"{"type":"error","error":{"type":"not_found_error","message":"Claude 9 is not available. Please use another."}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"The requested model 'x' does not exist.","type":"invalid_request_error","param":"model","code":"model_not_found"}}"#,
        ),
        (
            404,
            r#"{"error":{"message":"The model `x` does not exist or you do not have access to it.","type":"invalid_request_error","param":null,"code":"model_not_found"}}"#,
        ),
        (
            404,
            r#"{"error":{"code":404,"message":"models/x is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see the list of available models and their supported methods.","status":"NOT_FOUND"}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"a/x is not a valid model ID","code":400},"user_id":"user_1"}"#,
        ),
        (
            404,
            r#"{"error":{"message":"No endpoints found for a/x:free.","code":404}}"#,
        ),
        (404, r#"{"error":"model 'x' not found"}"#),
        (
            404,
            r#"{"error":"model \"x\" not found, try pulling it first"}"#,
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"model not found","type":"invalid_request_error"}}"#,
        ),
        (
            404,
            r#"{"object":"error","message":"The model `x` does not exist.","type":"NotFoundError","code":404}"#,
        ),
    ] {
        assert_eq!(of(status, body), Some(Refusal::Model), "{body}");
    }
}

#[test]
fn too_long_request_is_told_by_every_provider_with_its_figures() {
    for (status, body, expected) in [
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 191989 tokens > 180000 maximum"},"request_id":"req_1"}"#,
            too_long(191_989, 180_000),
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 143653 + 64000 > 200000, decrease input length or `max_tokens` and try again"}}"#,
            too_long(207_653, 200_000),
        ),
        (
            413,
            r#"{"error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
            too_long(None, None),
        ),
        (
            400,
            r#"{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}"#,
            too_long(None, None),
        ),
        (
            429,
            r#"{"error":{"message":"Request too large for gpt-4o-2024-08-06 in organization org-1 on tokens per min (TPM): Limit 30000, Requested 45,000. The input or output tokens must be reduced in order to run successfully.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#,
            too_long(45_000, 30_000),
        ),
        (
            400,
            r#"{"error":{"message":"This model's maximum context length is 4097 tokens. However, you requested 4120 tokens (3120 in the messages, 1000 in the completion). Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
            too_long(4120, 4097),
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
            too_long(1_200_293, 1_048_576),
        ),
        (
            400,
            r#"[{"error":{"code":400,"message":"The input token count exceeds the maximum number of tokens allowed 1048576.","status":"INVALID_ARGUMENT"}}]"#,
            too_long(None, 1_048_576),
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"Request payload size exceeds the limit: 20971520 bytes.","status":"INVALID_ARGUMENT"}}"#,
            too_long(None, None),
        ),
        (
            400,
            r#"{"error":{"message":"This endpoint's maximum context length is 32768 tokens. However, you requested about 42832 tokens (42832 of text input). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically.","code":400}}"#,
            too_long(42_832, 32_768),
        ),
        (
            400,
            r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: 213462 tokens > 200000 maximum\"}}","provider_name":"Anthropic"}}}"#,
            too_long(213_462, 200_000),
        ),
        (
            400,
            r#"{"error":"{\"error\":{\"code\":400,\"message\":\"request (351 tokens) exceeds the available context size (256 tokens), try increasing it\",\"type\":\"exceed_context_size_error\",\"n_prompt_tokens\":351,\"n_ctx\":256}}"}"#,
            too_long(351, 256),
        ),
        (
            400,
            r#"{"error":"the input length exceeds the context length"}"#,
            too_long(None, None),
        ),
        (
            500,
            r#"{"error":{"code":500,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"exceed_context_size_error","n_prompt_tokens":1407,"n_ctx":256}}"#,
            too_long(1407, 256),
        ),
        (
            413,
            "<html>Request Entity Too Large</html>",
            too_long(None, None),
        ),
    ] {
        assert_eq!(of(status, body), Some(expected), "{body}");
    }
}

#[test]
fn what_may_pass_or_is_something_else_is_no_refusal() {
    for (status, body) in [
        (
            429,
            r#"{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 40,000 input tokens per minute"}}"#,
        ),
        (
            404,
            r#"{"error":{"code":404,"message":"File Not Found","type":"not_found_error"}}"#,
        ),
        (404, r#"{"detail":"Not Found"}"#),
        (404, "404 page not found"),
        (
            404,
            r#"{"error":{"message":"No endpoints available matching your guardrail restrictions and data policy.","code":404}}"#,
        ),
        (
            403,
            r#"{"error":{"code":403,"message":"Country, region, or territory not supported"}}"#,
        ),
        (
            503,
            r#"{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}"#,
        ),
        (500, ""),
    ] {
        assert_eq!(of(status, body), None, "{body}");
    }
}

#[test]
fn refusal_in_a_stream_has_no_status() {
    let error = serde_json::json!({
        "code": "context_length_exceeded",
        "message": "Your input exceeds the context window of this model. Please adjust your input and try again.",
    });
    assert_eq!(Refusal::read(None, &error), Some(too_long(None, None)));
    let error = serde_json::json!({"type": "invalid_request_error", "message": "prompt is too long: 3 tokens > 2 maximum"});
    assert_eq!(Refusal::read(None, &error), Some(too_long(3, 2)));
}

proptest! {
    #[test]
    fn no_error_panics(status in any::<u16>(), words in "[ -~]{0,20}", numbers in "[0-9+ ,]{0,60}", field in any::<u64>()) {
        for body in [
            format!("{words} context length {numbers} {words}"),
            serde_json::json!({"error": {"message": numbers, "type": words, "n_ctx": field}}).to_string(),
        ] {
            let _ = of(status, &body);
        }
    }
}

#[test]
fn limit_of_the_answer_is_not_that_of_the_request() {
    for body in [
        r#"{"error":{"message":"'max_tokens' or 'max_completion_tokens' is too large: 40000. This model's maximum context length is 32768 tokens and your request has 20 input tokens (40000 > 32768 - 20).","type":"BadRequestError"}}"#,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens for claude-x"}}"#,
        r#"{"error":{"message":"max_tokens is too large: 5000. This model supports at most 4096 completion tokens, whereas you provided 5000."}}"#,
    ] {
        assert_eq!(of(400, body), Some(Refusal::Output), "{body}");
    }
    let sum = r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 143653 + 64000 > 200000"}}"#;
    assert_eq!(of(400, sum), Some(too_long(207_653, 200_000)));
}

#[test]
fn images_that_a_model_does_not_take_are_told() {
    for (status, body) in [
        (
            500,
            r#"{"error":{"code":500,"message":"image input is not supported - hint: if this is unexpected, you may need to provide the mmproj","type":"server_error"}}"#,
        ),
        (
            404,
            r#"{"error":{"message":"No endpoints found that support image input","code":404}}"#,
        ),
    ] {
        assert_eq!(of(status, body), Some(Refusal::Images), "{body}");
    }
}

#[test]
fn limit_of_bytes_is_none_of_tokens() {
    assert_eq!(
        of(413, "413 Request Entity Too Large"),
        Some(too_long(None, None))
    );
    let size =
        r#"{"error":{"type":"request_too_large","message":"Maximum request size is 32 MB"}}"#;
    assert_eq!(of(400, size), Some(too_long(None, None)));
}
