"""What models stream, in each of the six wire formats.

An answer is a list of parts: `text("…")`, `reasoning("…")`, `call("tool", name="…")`.
`Answer.encode` writes them in the format of a provider.
"""

import dataclasses
import json

from .server import Reply

INPUT_TOKENS, CACHED_TOKENS, OUTPUT_TOKENS = 50, 40, 7


@dataclasses.dataclass
class Answer:
    """What the model says in answer to one request."""

    parts: list
    # `end`, or `length` where the limit of tokens cut the answer off.
    stop: str = "end"
    # As in `Reply`; with `cut` and `hang` the end of the stream is missing.
    then: str = "close"

    def encode(self, provider):
        """Returns the reply in the format of `provider`."""
        pieces, content_type = ENCODERS[provider](self)
        if self.then != "close":
            # In each format the last pieces say that the answer is complete.
            pieces = pieces[: max(1, len(pieces) // 2)]
        return Reply("".join(pieces).encode(), content_type, then=self.then)


def text(words):
    """Returns a part: words."""
    return {"kind": "text", "text": words}


def reasoning(words):
    """Returns a part: reasoning, with a signature where the format has one."""
    return {"kind": "reasoning", "text": words}


def call(name, /, **arguments):
    """Returns a part: a call of a tool."""
    return {"kind": "call", "name": name, "arguments": arguments}


def say(words, **options):
    """Returns an answer in words."""
    return Answer([text(words)], **options)


def use(*calls):
    """Returns an answer that calls tools."""
    return Answer(list(calls))


def has_calls(answer):
    """Returns whether an answer calls tools."""
    return any(part["kind"] == "call" for part in answer.parts)


def halves(words):
    """Returns words in two pieces, as deltas bring them."""
    middle = len(words) // 2
    return [piece for piece in (words[:middle], words[middle:]) if piece]


def dump(value):
    """Returns compact JSON."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def typed(kind, **fields):
    """Returns an event of a stream whose events have a type."""
    return f"event: {kind}\ndata: {dump({'type': kind, **fields})}\n\n"


def encode_anthropic(answer):
    """Messages: blocks with a start, deltas and a stop."""
    usage = {
        "input_tokens": INPUT_TOKENS - CACHED_TOKENS,
        "cache_read_input_tokens": CACHED_TOKENS,
        "output_tokens": 1,
    }
    pieces = [typed("message_start", message={"id": "msg_1", "role": "assistant", "usage": usage})]
    for index, part in enumerate(answer.parts):
        if part["kind"] == "text":
            start = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in halves(part["text"])]
        elif part["kind"] == "reasoning":
            start = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [
                {"type": "thinking_delta", "thinking": piece} for piece in halves(part["text"])
            ]
            deltas.append({"type": "signature_delta", "signature": "c2lnbmF0dXJl"})
        else:
            start = {"type": "tool_use", "id": f"toolu_{index}", "name": part["name"], "input": {}}
            pieces_of_input = halves(dump(part["arguments"]))
            deltas = [
                {"type": "input_json_delta", "partial_json": piece} for piece in pieces_of_input
            ]
        pieces.append(typed("content_block_start", index=index, content_block=start))
        pieces += [typed("content_block_delta", index=index, delta=delta) for delta in deltas]
        pieces.append(typed("content_block_stop", index=index))
    reason = (
        "max_tokens" if answer.stop == "length" else "tool_use" if has_calls(answer) else "end_turn"
    )
    pieces.append(
        typed(
            "message_delta", delta={"stop_reason": reason}, usage={"output_tokens": OUTPUT_TOKENS}
        )
    )
    return [*pieces, typed("message_stop")], "text/event-stream"


def encode_openai(answer):
    """Responses: items that are added, grow by deltas, and are done."""
    pieces = [typed("response.created", response={"id": "resp_1"})]
    for index, part in enumerate(answer.parts):
        place = {"output_index": index}
        if part["kind"] == "text":
            item = {"type": "message", "id": f"msg_{index}", "role": "assistant"}
            added, done = {"content": []}, {
                "content": [{"type": "output_text", "text": part["text"]}]
            }
            kind, deltas = "response.output_text.delta", halves(part["text"])
            place["content_index"] = 0
        elif part["kind"] == "reasoning":
            item = {"type": "reasoning", "id": f"rs_{index}"}
            summary = [{"type": "summary_text", "text": part["text"]}]
            added, done = {"summary": []}, {"summary": summary, "encrypted_content": "ZW5jcnlwdGVk"}
            kind, deltas = "response.reasoning_summary_text.delta", halves(part["text"])
            place["summary_index"] = 0
        else:
            item = {
                "type": "function_call",
                "id": f"fc_{index}",
                "call_id": f"call_{index}",
                "name": part["name"],
            }
            arguments = dump(part["arguments"])
            added, done = {"arguments": ""}, {"arguments": arguments}
            kind, deltas = "response.function_call_arguments.delta", halves(arguments)
        pieces.append(
            typed("response.output_item.added", output_index=index, item={**item, **added})
        )
        pieces += [typed(kind, item_id=item["id"], **place, delta=delta) for delta in deltas]
        pieces.append(typed("response.output_item.done", output_index=index, item={**item, **done}))
    usage = {
        "input_tokens": INPUT_TOKENS,
        "input_tokens_details": {"cached_tokens": CACHED_TOKENS},
        "output_tokens": OUTPUT_TOKENS,
    }
    if answer.stop == "length":
        details = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
        end = typed("response.incomplete", response={"id": "resp_1", **details, "usage": usage})
    else:
        end = typed(
            "response.completed", response={"id": "resp_1", "status": "completed", "usage": usage}
        )
    return [*pieces, end], "text/event-stream"


def encode_google(answer):
    """Gemini: chunks of parts; a call comes whole."""
    parts = []
    for part in answer.parts:
        if part["kind"] == "text":
            parts += [{"text": piece} for piece in halves(part["text"])]
        elif part["kind"] == "reasoning":
            parts += [{"text": piece, "thought": True} for piece in halves(part["text"])]
        else:
            function = {"name": part["name"], "args": part["arguments"]}
            parts.append({"functionCall": function, "thoughtSignature": "c2lnbmF0dXJl"})

    def chunk(part):
        return {"content": {"role": "model", "parts": [part]}}

    pieces = [f"data: {dump({'candidates': [chunk(part)]})}\n\n" for part in parts]
    usage = {
        "promptTokenCount": INPUT_TOKENS,
        "cachedContentTokenCount": CACHED_TOKENS,
        "candidatesTokenCount": OUTPUT_TOKENS,
    }
    reason = "MAX_TOKENS" if answer.stop == "length" else "STOP"
    last = {
        "candidates": [{"content": {"role": "model", "parts": []}, "finishReason": reason}],
        "usageMetadata": usage,
    }
    return [*pieces, f"data: {dump(last)}\n\n"], "text/event-stream"


def encode_chat(answer):
    """Chat Completions, as llama.cpp and most others speak it."""
    return encode_deltas(answer, lambda words: {"reasoning_content": words}), "text/event-stream"


def encode_openrouter(answer):
    """Chat Completions with OpenRouter's details of reasoning."""

    def detail(words):
        return {
            "type": "reasoning.text",
            "text": words,
            "index": 0,
            "format": "anthropic-claude-v1",
        }

    return (
        encode_deltas(
            answer, lambda words: {"reasoning": words, "reasoning_details": [detail(words)]}
        ),
        "text/event-stream",
    )


def encode_deltas(answer, think):
    """Returns the chunks of Chat Completions; `think` makes the delta of some reasoning."""
    deltas, calls = [], 0
    for part in answer.parts:
        if part["kind"] == "text":
            deltas += [{"content": piece} for piece in halves(part["text"])]
        elif part["kind"] == "reasoning":
            deltas += [think(piece) for piece in halves(part["text"])]
        else:
            first, *rest = halves(dump(part["arguments"]))
            function = {"name": part["name"], "arguments": first}
            deltas.append(
                {
                    "tool_calls": [
                        {
                            "index": calls,
                            "id": f"call_{calls}",
                            "type": "function",
                            "function": function,
                        }
                    ]
                }
            )
            deltas += [
                {"tool_calls": [{"index": calls, "function": {"arguments": piece}}]}
                for piece in rest
            ]
            calls += 1

    def chunk(delta, **more):
        return f"data: {dump({'choices': [{'index': 0, 'delta': delta, **more}]})}\n\n"

    reason = "length" if answer.stop == "length" else "tool_calls" if calls else "stop"
    usage = {
        "prompt_tokens": INPUT_TOKENS,
        "completion_tokens": OUTPUT_TOKENS,
        "prompt_tokens_details": {"cached_tokens": CACHED_TOKENS},
    }
    pieces = [chunk(delta) for delta in deltas]
    return [
        *pieces,
        chunk({}, finish_reason=reason),
        f"data: {dump({'choices': [], 'usage': usage})}\n\n",
        "data: [DONE]\n\n",
    ]


def encode_ollama(answer):
    """Ollama: a JSON document a line."""
    messages = []
    for part in answer.parts:
        if part["kind"] == "text":
            messages += [{"content": piece} for piece in halves(part["text"])]
        elif part["kind"] == "reasoning":
            messages += [{"content": "", "thinking": piece} for piece in halves(part["text"])]
        else:
            function = {"name": part["name"], "arguments": part["arguments"]}
            messages.append({"content": "", "tool_calls": [{"function": function}]})

    def line(message, **more):
        return dump({"message": {"role": "assistant", **message}, **more}) + "\n"

    reason = "length" if answer.stop == "length" else "stop"
    last = line(
        {"content": ""},
        done=True,
        done_reason=reason,
        prompt_eval_count=INPUT_TOKENS,
        eval_count=OUTPUT_TOKENS,
    )
    return [*(line(message, done=False) for message in messages), last], "application/x-ndjson"


ENCODERS = {
    "anthropic": encode_anthropic,
    "openai": encode_openai,
    "google": encode_google,
    "openrouter": encode_openrouter,
    "llamacpp": encode_chat,
    "ollama": encode_ollama,
}
FORMATS = list(ENCODERS)
KEYS = {
    "anthropic": "ANTHROPIC_API_KEY",
    "openai": "OPENAI_API_KEY",
    "google": "GEMINI_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
}
