"""Configuration in layers, models, and workspaces."""

from ..formats import say
from ..scenario import Scenario, ask, jp
from ..server import Reply

PROPERTIES = (
    b'{"modalities":{"vision":true},"chat_template_caps":{"supports_tools":false},'
    b'"default_generation_settings":{"n_ctx":4096}}'
)
MODELS = b'{"data":[{"id":"m","meta":{"n_ctx_train":8192}}]}'
CLAUDE = (
    b'{"data":[{"id":"m","max_input_tokens":200000,"max_tokens":64000,'
    b'"capabilities":{"image_input":{"supported":true},'
    b'"pdf_input":{"supported":true},"structured_outputs":{"supported":true}}}]}'
)


def json_page(body, status=200):
    """Returns a page of JSON."""
    return Reply(body, "application/json", status)


SCENARIOS = [
    Scenario(
        "layers",
        [
            ask("--new", "one"),
            ask("-c", "assistant.system_prompt=From the flag.", "two"),
            ask("three", environment={"JP_CFG_ASSISTANT__SYSTEM_PROMPT": "From a variable."}),
            ask("-c", "extra.toml", "four"),
            jp("config", "show"),
            jp("config", "show", "assistant", "-F", "json"),
        ],
        [say("One."), say("Two."), say("Three."), say("Four.")],
        config="assistant.system_prompt = 'From the user.'\n",
        workspace_config="assistant.system_prompt = 'From the workspace.'\n"
        "[conversation.deduplication]\n"
        "min_bytes = 100\n",
        files={"extra.toml": "assistant.system_prompt = 'From a file.'\n"},
    ),
    Scenario(
        "aliases",
        [
            ask("--new", "-m", "fast", "one"),
            ask("two"),
            ask("-m", "slow", "three"),
            ask("-m", "unknown", "four"),
            jp("config", "show", "providers.aliases"),
        ],
        [say("One."), say("Two."), say("Three.")],
        config="[providers.aliases]\nfast = 'llamacpp/m'\n",
        workspace_config="[providers.aliases]\nfast = 'llamacpp/other'\nslow = 'llamacpp/slow'\n",
    ),
    Scenario(
        "model-of-a-conversation",
        [
            ask("--new", "-m", "llamacpp/n", "one"),
            ask("two"),
            ask("--new", "three"),
            jp("c", "show"),
            ask("-m", "nobody/x", "four"),
        ],
        [say("One."), say("Two."), say("Three.")],
    ),
    Scenario(
        "provider-of-the-workspace",
        [
            ask("--new", "-m", "work/m", "one"),
            ask("--new", "two"),
            ask("--new", "-m", "open/m", "three"),
            jp("config", "show", "providers"),
        ],
        [say("Two."), say("Three.")],
        workspace_config="[providers.llm.work]\n"
        "base_url = '@URL@'\n"
        "api_key_env = 'WORK_API_KEY'\n"
        "[providers.llm.open]\n"
        "base_url = '@URL@'\n"
        "models.m.tools = true\n"
        "[providers.llm.llamacpp]\n"
        "base_url = 'http://127.0.0.1:1'\n",
        environment={"WORK_API_KEY": "sk-work"},
    ),
    Scenario(
        "key-command",
        [ask("--new", "one"), ask("-c", "providers.llm.work.api_key_command=false", "two")],
        [say("One.")],
        config="[providers.llm.work]\n"
        "base_url = '@URL@'\n"
        "api_key_command = 'printf sk-from-command'\n"
        "[providers.aliases]\n"
        "w = 'work/m'\n",
        environment={"JP_CFG_ASSISTANT__MODEL__ID": "work/m"},
    ),
    Scenario(
        "missing-key",
        [ask("--new", "-m", "openai/m", "one"), jp("c", "ls")],
    ),
    Scenario(
        "what-a-server-says-of-its-model",
        [
            ask("--new", "-a", "a.png", "one"),
            ask("-t", "read_file", "two"),
            jp("model", "ls"),
            jp("model", "ls", "-F", "json"),
        ],
        [say("One."), say("Two.")],
        knows_model=False,
        files={"a.png": b"\x89PNG\r\n\x1a\n"},
        pages={"/v1/models": json_page(MODELS), "/props": json_page(PROPERTIES)},
    ),
    Scenario(
        "what-anthropic-says-of-its-model",
        [ask("--new", "one"), jp("model", "ls")],
        [say("One.")],
        provider="anthropic",
        knows_model=False,
        pages={"/v1/models?limit=1000": json_page(CLAUDE)},
    ),
    Scenario(
        "mistakes-in-configuration",
        [
            ask("--new", "one"),
            ask("-c", "no-such.toml", "two"),
            ask("-c", "assistant.model.id:=3", "three"),
            jp("config", "show", "nothing"),
            ask("-c", "assistant.unknown=1", "four"),
        ],
        [say("One.")],
        workspace_config="assistant = 'x'\n",
    ),
    Scenario(
        "init", [jp("init"), jp("init"), ask("--new", "one")], [say("One.")], has_workspace=False
    ),
    Scenario(
        "no-workspace",
        [ask("--new", "one"), jp("c", "ls"), jp("config", "show", "assistant")],
        has_workspace=False,
    ),
    # Without `--help`: its texts may change at any time.
    Scenario(
        "wrong-commands",
        [
            jp("no-such-command"),
            ask("--no-such-flag"),
            jp("--version"),
        ],
    ),
]
