"""What is played once for each wire format."""

from ..formats import FORMATS, call, reasoning, say, text, use, Answer
from ..scenario import Scenario, Write, ask, jp
from ..server import Reply
from .content import PDF, PNG, lines

SCHEMA = (
    '{"type":"object","properties":{"title":{"type":"string"},"n":{"type":"integer"}},'
    '"required":["title"]}'
)
# How each provider refuses a request. The words are the providers' own.
REFUSALS = {
    "anthropic": '{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 191989 tokens > 180000 maximum"}}',
    "openai": '{"error":{"message":"The requested model does not exist.","type":"invalid_request_error","param":"model","code":"model_not_found"}}',
    "google": '{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}',
    "openrouter": '{"error":{"message":"This endpoint\'s maximum context length is 32768 tokens. However, you requested about 42832 tokens (42832 of text input).","code":400}}',
    "llamacpp": '{"error":{"code":400,"message":"model not found","type":"invalid_request_error"}}',
    "ollama": '{"error":"model \'m\' not found"}',
}


# Models that jp knows by name: their limits, their reasoning, their marks for the provider's cache.
KNOWN = {
    "anthropic": "claude-sonnet-4-5",
    "openai": "gpt-5.6",
    "google": "gemini-3-pro",
    "openrouter": "anthropic/claude-sonnet-4.5",
    "ollama": "qwen3",
}


def with_known_model(provider, model):
    """Returns a scenario with a model that jp knows by name, of which the server says nothing."""
    return Scenario(
        f"{provider}-known-model",
        [
            ask("--new", "-m", f"{provider}/{model}", "-a", "a.rs", "-a", "a.pdf", "one"),
            ask("two"),
            ask("-s", SCHEMA, "three"),
            ask("--explain", "four"),
        ],
        [
            say("One."),
            Answer([reasoning("First."), call("read_file", path="a.rs")]),
            say("Two."),
            say('{"title": "x"}'),
        ],
        provider,
        knows_model=False,
        files={"a.rs": lines("line", 60), "a.pdf": PDF},
    )


def of_format(provider):
    """Returns the scenarios of one format."""

    def scenario(name, steps, answers, **more):
        return Scenario(f"{provider}-{name}", steps, answers, provider, **more)

    whole, part = call("read_file", path="a.rs"), call(
        "read_file", path="a.rs", first_line=5, last_line=20
    )
    return [
        scenario(
            "question-with-text",
            [
                ask("--new", "-a", "a.txt", "What is it?"),
                ask("And now?"),
                jp("conversation", "print"),
            ],
            [say("It is a file."), say("Still a file.")],
            files={"a.txt": "attached text without an end of line"},
        ),
        scenario(
            "tool-round",
            [ask("--new", "Read it."), ask("Again."), jp("conversation", "print", "--as-sent")],
            [
                Answer([text("Let me see."), whole]),
                use(part, call("list_files")),
                say("Read."),
                use(whole, call("read_file", path="missing.rs")),
                say("Again."),
            ],
            files={"a.rs": lines("line", 60)},
        ),
        scenario(
            "binary-attachments",
            [
                ask("--new", "-a", "a.png", "-a", "a.pdf", "What is shown?"),
                ask("-a", "a.png", "The same?"),
                jp("conversation", "print", "--as-sent"),
            ],
            [say("Something."), say("Yes.")],
            files={"a.png": PNG, "a.pdf": PDF},
        ),
        scenario(
            "changed-file",
            [
                ask("--new", "-a", "a.rs", "-a", "b.rs", "one"),
                Write("a.rs", lines("line", 60, changed=30)),
                ask("-a", "a.rs", "two"),
                ask("-a", "b.rs", "three"),
                ask("--explain", "four"),
                ask("four"),
            ],
            [
                say("One."),
                say("Two."),
                use(call("read_file", path="a.rs", first_line=20, last_line=40)),
                say("Three."),
                say("Four."),
            ],
            files={"a.rs": lines("line", 60), "b.rs": lines("other", 30)},
        ),
        scenario(
            "answer-in-json",
            [
                ask("--new", "-s", SCHEMA, "what?"),
                ask("-s", "@schema.json", "-F", "json", "and?"),
                ask("in words"),
            ],
            [say('{"title": "x"}'), say('{"title": "x", "n": "three"}'), say("Words.")],
            files={"schema.json": SCHEMA},
        ),
        scenario(
            "refusal",
            [ask("--new", "-a", "a.txt", "what?"), jp("conversation", "show"), ask(), ask("and?")],
            [Reply(REFUSALS[provider].encode(), "application/json", 400), say("Now."), say("Yes.")],
            files={"a.txt": "a\n"},
        ),
        scenario(
            "reasoning",
            [
                ask("--new", "Think."),
                ask("On."),
                ask("-m", f"{provider}/n", "--explain", "And you?"),
                jp("c", "print"),
            ],
            [
                Answer([reasoning("The file first."), text("I read it."), whole]),
                Answer([reasoning("Done, then."), text("Thought.")]),
                say("On."),
            ],
            files={"a.rs": "fn a() {}\n"},
            config="assistant.system_prompt = 'Be brief.'",
        ),
        scenario(
            "half-an-answer",
            [ask("--new", "what?"), ask("go on"), ask("and?"), jp("c", "print")],
            [
                say("A part of the answer.", then="cut"),
                say("The limit came.", stop="length"),
                say("All."),
            ],
        ),
    ]


SCENARIOS = [
    *(scenario for name in FORMATS for scenario in of_format(name)),
    *(with_known_model(provider, model) for provider, model in KNOWN.items()),
]
