"""Storage options: the many spellings of those of S3, and secrets, which are never shown.

| here | other spellings |
|---|---|
| `access_key`, `secret_key`, `session_token` | `key`, `secret`, `token`, `aws_access_key_id`, ... |
| `endpoint_override` | `endpoint_url`, `endpoint` |
| `region` | `region_name`, `aws_default_region` |
| `anonymous` | `anon` |
| `connect_timeout`, `request_timeout` | `read_timeout` |

Before it is looked up, a name is put in lower case, loses a prefix such as `s3.`, `fs.s3a.` or
`aws_`, and gets `_` for `-` and `.`: `s3.access-key-id` and `fs.s3a.access.key` are known so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from alcid.errors import OptionError

CONNECT_TIMEOUT, REQUEST_TIMEOUT = 5.0, 20.0
"""Seconds. The SDK's own second and three are too few for a busy network."""

_SPELLINGS = {
    "access_key": ("key", "access_key_id"),
    "secret_key": ("secret", "secret_access_key"),
    "session_token": ("token",),
    "endpoint_override": ("endpoint", "endpoint_url"),
    "region": ("region_name", "default_region"),
    "anonymous": ("anon",),
    "connect_timeout": (),
    "request_timeout": ("read_timeout",),
    "scheme": (),
    "role_arn": (),
    "session_name": ("role_session_name",),
    "external_id": (),
    "proxy_options": ("proxy_uri",),
    "force_virtual_addressing": (),
    "tls_ca_file_path": (),
}
_KNOWN = {other: name for name, others in _SPELLINGS.items() for other in (name, *others)}
_PREFIXES = ("s3.", "fs.s3a.", "client.", "aws_")
_FLAGS = {"anonymous", "force_virtual_addressing"}
_SECONDS = {"connect_timeout", "request_timeout"}


class SecretOptions:
    """Options whose values are never shown.

    >>> options = SecretOptions({"secret": "s3cr3t-key", "client_kwargs": {"region": "eu-west-1"}})
    >>> options, options.redact("403 for s3cr3t-key in eu-west-1")
    (SecretOptions(), '403 for *** in ***')
    """

    __slots__ = ("_texts", "options")

    def __init__(self, options: Mapping[str, Any]) -> None:
        """Take all values of `options` for secrets, nested ones too."""
        self.options = dict(options)
        # The longest first: a value may be a part of another. Short ones such as "1" say nothing.
        texts = {text for text in _texts(self.options) if len(text) > 3}
        self._texts = sorted(texts - {"http", "https", "true", "True", "false", "False"}, key=len)

    def redact(self, text: str) -> str:
        """`text`, with `***` for each value."""
        for secret in reversed(self._texts):
            text = text.replace(secret, "***")
        return text

    def __repr__(self) -> str:
        return "SecretOptions()"


def arrow_s3_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as `pyarrow.fs.S3FileSystem` takes them.

    >>> arrow_s3_options({"key": "a", "secret": "b", "s3.endpoint": "http://localhost:9000"})
    {'access_key': 'a', 'secret_key': 'b', 'endpoint_override': 'localhost:9000', 'scheme': 'http',
     'region': 'us-east-1', 'connect_timeout': 5.0, 'request_timeout': 20.0}

    Raises:
        OptionError: A name that is not known, or two spellings of one that disagree.
    """
    known, unknown = _sorted_out(options)
    if unknown:
        raise OptionError(
            f"unknown storage options for s3: {', '.join(sorted(unknown))};"
            f" known are {', '.join(_SPELLINGS)}, or library=fsspec for those of s3fs"
        )
    endpoint = known.get("endpoint_override")
    if endpoint:
        scheme, separator, host = endpoint.rpartition("://")
        known["endpoint_override"] = host.rstrip("/")
        if separator:
            known["scheme"] = scheme
        # Without one, the SDK asks a service that only machines of Amazon can reach.
        known.setdefault("region", "us-east-1")
    return _with_timeouts(known)


def s3fs_options(options: Mapping[str, Any], attempts: int) -> dict[str, Any]:
    """Options as `s3fs.S3FileSystem` takes them; those that are not known are handed on."""
    known, others = _sorted_out(options)
    known = _with_timeouts(known)
    names = {
        "access_key": "key",
        "secret_key": "secret",
        "session_token": "token",
        "anonymous": "anon",
    }
    result = {names[name]: value for name, value in known.items() if name in names}
    if endpoint := known.get("endpoint_override"):
        scheme = known.get("scheme", "https")
        result["endpoint_url"] = endpoint if "://" in endpoint else f"{scheme}://{endpoint}"
    client = dict(others.pop("client_kwargs", {}))
    if region := known.get("region"):
        client["region_name"] = region
    config = {
        "connect_timeout": known["connect_timeout"],
        "read_timeout": known["request_timeout"],
        "retries": {"total_max_attempts": attempts},
    } | others.pop("config_kwargs", {})
    return others | result | {"client_kwargs": client, "config_kwargs": config}


def _sorted_out(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """FileStat options under their names here, and the others as they were given."""
    known: dict[str, Any] = {}
    others: dict[str, Any] = {}
    client = dict(options.get("client_kwargs", {}))
    for spelling, value in (*options.items(), *client.items()):
        name = _KNOWN.get(_plain(spelling))
        if spelling == "client_kwargs":
            rest = {key: inner for key, inner in client.items() if _plain(key) not in _KNOWN}
            if rest:
                others[spelling] = rest
        elif name is None:
            if spelling not in client:
                others[spelling] = value
        elif known.setdefault(name, _value(name, value)) != _value(name, value):
            raise OptionError(f"storage option {name} is given twice, with different values")
    return known, others


def _plain(name: str) -> str:
    name = name.lower()
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name.replace("-", "_").replace(".", "_")


def _value(name: str, value: Any) -> Any:
    try:
        if name in _SECONDS:
            return float(value)
        if name in _FLAGS and isinstance(value, str):
            return {"true": True, "false": False}[value.lower()]
    except (KeyError, TypeError, ValueError):
        raise OptionError(f"storage option {name} has a bad value") from None
    return value


def _with_timeouts(known: dict[str, Any]) -> dict[str, Any]:
    known.setdefault("connect_timeout", CONNECT_TIMEOUT)
    known.setdefault("request_timeout", REQUEST_TIMEOUT)
    return known


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif value is not None:
        yield str(value)
