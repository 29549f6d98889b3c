"""JupyterHub with the model service: each user gets a key of the service that ends with the notebook server.

The hub has a key with the scope admin in MODEL_API_ADMIN_KEY. It makes one key for each user over HTTP, with the name
of the user, and lends it to no one else: the notebook gets a new value at each start, and the old one ends.
"""

import json
import os
import re
import urllib.error
import urllib.request

RELAY = os.environ.get("MODEL_API_URL", "http://127.0.0.1:5051")


def call(method, path, body=None):
    """Returns the JSON answer of the service to an administrator."""
    request = urllib.request.Request(
        RELAY + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"X-API-Key": os.environ["MODEL_API_ADMIN_KEY"], "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def key_of(user):
    """Returns a new key value for a user of the hub."""
    name = "hub-" + re.sub(r"[^A-Za-z0-9._-]", "-", user)[:60]
    if name != "hub-" + user:
        raise ValueError("the name of this user cannot be the name of a key")
    try:
        return call("POST", "/keys", {"name": name, "scopes": ["ask", "chat"]})["key"]
    except urllib.error.HTTPError as error:
        if error.code != 400:
            raise
    return call("POST", "/keys/" + name + "/rotate", {})["key"]  # the key exists


def pre_spawn(spawner):
    """Gives the notebook server the names that jupyter-ai and SDKs of OpenAI read."""
    key = key_of(spawner.user.name)
    spawner.environment.update(
        {"MODEL_API_URL": RELAY, "MODEL_API_KEY": key, "OPENAI_API_KEY": key, "OPENAI_BASE_URL": RELAY + "/v1"}
    )


if "get_config" in globals():
    c = get_config()  # noqa: F821
    c.Spawner.pre_spawn_hook = pre_spawn
    # The default model of jupyter-ai 2; the key and the base URL come from the environment.
    c.Spawner.args = ["--AiExtension.default_language_model=openai-chat-custom:sonnet"]
