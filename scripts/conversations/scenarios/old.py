"""Conversations that older versions of jp wrote.

The conversations in `SHAPES` are made up. Real ones are played too if
`../shared/data/jp-conversations` exists, where the project's tests look for them.
"""

import base64
import json

from ..formats import say
from ..scenario import Scenario, ask, jp

OLD = "17600000000"
DIRECTORY = f".jp/conversations/{OLD}-an-old-one"
METADATA = json.dumps({"title": "An old one", "last_activated_at": "2025-12-04 09:24:06.7"})


def encode(text):
    """Returns a text as older versions stored it."""
    return base64.b64encode(text.encode()).decode()


def events(*events, start="2025-12-04 09:28:2"):
    """Returns an events.json whose events are a second apart."""
    return json.dumps(
        [{"timestamp": f"{start}{second}.202081", **event} for second, event in enumerate(events)],
        indent=2,
    )


REQUEST = {"type": "chat_request", "content": "I want to refactor it.\n\nCan you find the bug?"}
ANSWER = {"type": "chat_response", "message": "There it is."}
REASONING = {
    "type": "chat_response",
    "reasoning": "**Inspecting** the cause.",
    "metadata": {"anthropic_thinking_signature": "c2lnbmF0dXJl"},
}
CALL = {
    "type": "tool_call_request",
    "id": "t1",
    "name": "fs_read_file",
    "arguments": {"path": encode("src/lib.rs")},
}
RESULT = {
    "type": "tool_call_response",
    "id": "t1",
    "content": encode("```rs\nfn lib() {}\n```\n" * 20),
    "is_error": False,
}
QUESTION = {
    "type": "inquiry_request",
    "id": "t1.apply",
    "source": {"source": "tool", "name": "fs_modify_file"},
    "question": {"text": "Apply?"},
}
REPLY = {"type": "inquiry_response", "id": "t1.apply", "answer": True}
FLAT = {
    "type": "config_delta",
    "inherit": True,
    "extends": ["config.d/**/*"],
    "assistant": {"model": {"id": {"provider": "llamacpp", "name": "old"}}},
}
NESTED = {
    "type": "config_delta",
    "delta": {
        "assistant": {"system_prompt": {"value": "You are old."}, "model": {"id": "llamacpp/old"}}
    },
}
SHAPES = {
    "without-turns": {
        "events.json": events(FLAT, REQUEST, REASONING, ANSWER),
        "metadata.json": METADATA,
    },
    "with-tools": {
        "events.json": events(NESTED, REQUEST, REASONING, CALL, RESULT, ANSWER),
        "metadata.json": METADATA,
    },
    "with-turns-and-questions": {
        "events.json": events(
            {"type": "turn_start"}, REQUEST, CALL, QUESTION, REPLY, RESULT, ANSWER
        ),
        "metadata.json": METADATA,
        "base_config.json": json.dumps(
            {
                "assistant": {"model": {"id": "mine"}},
                "providers": {
                    "llm": {"aliases": {"mine": {"provider": "llamacpp", "name": "of-alias"}}}
                },
            }
        ),
    },
    "unanswered": {
        "events.json": events({"type": "turn_start"}, {**REQUEST, "mood": "good"}),
        "metadata.json": METADATA,
    },
}


def steps(identity):
    """Returns what is done with each old conversation."""
    model = ("-m", "llamacpp/m", "--skip-unavailable")
    return [
        jp("c", "ls", "-F", "json"),
        jp("c", "show", identity),
        jp("c", "print", identity),
        jp("c", "print", "--as-sent", identity),
        ask("-i", identity, *model, "--explain", "Summarise."),
        ask("-i", identity, *model, "Summarise."),
        jp("c", "fork", "--turns", "1", identity),
        ask(*model, "On."),
        jp("c", "compact", "--keep-last", "0", identity),
        jp("storage", "check"),
    ]


def read_real(checkout):
    """Returns a scenario for each real conversation that is beside the checkout."""
    directory = checkout.parent / "shared/data/jp-conversations"
    places = sorted(directory.iterdir()) if directory.is_dir() else []
    return [
        Scenario(
            f"old-real-{place.name.split('-')[0]}",
            steps(place.name.split("-")[0]),
            [say("Yes."), say("Again.")],
            files={
                f".jp/conversations/{place.name}/{file.name}": file.read_bytes()
                for file in sorted(place.iterdir())
            },
        )
        for place in places
    ]


SCENARIOS = [
    Scenario(
        f"old-{name}",
        steps(OLD),
        [say("Yes."), say("Again.")],
        files={f"{DIRECTORY}/{file}": content for file, content in files.items()},
    )
    for name, files in SHAPES.items()
]
