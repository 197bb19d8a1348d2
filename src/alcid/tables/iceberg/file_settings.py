"""Keys, endpoint and region of S3, from what an Iceberg catalog has set up its own reads with.

| here                | `S3FileIO`             | Hadoop's s3a, also `fs.s3a.bucket.<bucket>.*` |
|---------------------|------------------------|-----------------------------------------------|
| `access_key`        | `s3.access-key-id`     | `fs.s3a.access.key`                           |
| `secret_key`        | `s3.secret-access-key` | `fs.s3a.secret.key`                           |
| `session_token`     | `s3.session-token`     | `fs.s3a.session.token`                        |
| `endpoint_override` | `s3.endpoint`          | `fs.s3a.endpoint`                             |
| `region`            | `client.region`        | `fs.s3a.endpoint.region`                      |

What neither has, the usual chain of AWS finds, as it does for the catalog: environment, profile,
role of the machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import urlsplit

__all__ = ["advice", "s3_options"]

_EXAMPLE: Final = '{"access_key": ..., "secret_key": ..., "endpoint_override": ..., "region": ...}'
_OF_FILE_IO: Final = {
    "s3.access-key-id": "access_key",
    "s3.secret-access-key": "secret_key",
    "s3.session-token": "session_token",
    "s3.endpoint": "endpoint_override",
    "client.region": "region",
}
_OF_HADOOP: Final = {
    "access.key": "access_key",
    "secret.key": "secret_key",
    "session.token": "session_token",
    "endpoint": "endpoint_override",
    "endpoint.region": "region",
}
_KEYS: Final = ("access_key", "secret_key", "session_token")
_HADOOP: Final = "fs.s3a."
_SSL: Final = "connection.ssl.enabled"
_USUAL_ENDPOINT: Final = "s3.amazonaws.com"


def s3_options(
    location: str,
    settings: Mapping[str, str],
    credentials: Iterable[tuple[str, Mapping[str, str]]] = (),
) -> dict[str, str]:
    """Storage options for files below a location.

    Args:
        location: In S3.
        settings: Properties of the `FileIO`, and Hadoop's `fs.s3a.*`.
        credentials: Properties that the catalog has given for prefixes; the last that fits wins.

    >>> s3_options("s3://b/t", {"s3.endpoint": "http://store:9000", "client.region": "eu-west-1"})
    {'endpoint_override': 'http://store:9000', 'region': 'eu-west-1'}
    """
    found = _of_hadoop(settings, urlsplit(location).netloc)
    for prefix, given in (("", settings), *credentials):
        own = {name: given[key] for key, name in _OF_FILE_IO.items() if given.get(key)}
        if location.startswith(prefix) and own:
            if "access_key" in own:  # keys are of one kind: no token of others beside them
                found = {name: value for name, value in found.items() if name not in _KEYS}
            found |= own
    return found


def advice(options: Iterable[str]) -> str:
    """What to do where files cannot be read with the options that were found.

    >>> advice(["access_key", "region"])[:66]
    'read with access_key, region of the catalog: give storage_options '
    """
    names = ", ".join(options)
    if names:
        return f"read with {names} of the catalog: give storage_options for others, as {_EXAMPLE}"
    found = "neither the catalog nor Hadoop's settings have keys or an endpoint"
    return f"{found}: give storage_options, as {_EXAMPLE}"


def _of_hadoop(settings: Mapping[str, str], bucket: str) -> dict[str, str]:
    known: dict[str, str] = {}
    for prefix in (_HADOOP, f"{_HADOOP}bucket.{bucket}."):  # of a bucket, they win
        names = {prefix + key: key for key in (*_OF_HADOOP, _SSL)}
        known |= {key: settings[name] for name, key in names.items() if settings.get(name)}
    found = {name: known[key] for key, name in _OF_HADOOP.items() if key in known}
    endpoint = found.pop("endpoint_override", _USUAL_ENDPOINT)
    if endpoint != _USUAL_ENDPOINT:
        scheme = "http" if known.get(_SSL, "true").lower() == "false" else "https"
        found["endpoint_override"] = endpoint if "://" in endpoint else f"{scheme}://{endpoint}"
    return found
