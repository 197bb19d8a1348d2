"""Iceberg tables in S3, with a Spark of its own: where Alcid gets the keys and the endpoint from.

Run as a program: `python -m tests.iceberg.s3_catalog` prints as JSON what each catalog gave. Moto
is the S3, behind a check of keys; a REST catalog of Iceberg's own handlers is at the same port. It
is a process of its own, since a Spark gets Iceberg's `S3FileIO` only at its start.
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import alcid
from alcid.errors import AlcidError
from tests.golden.iceberg_jvm import RUNTIME
from tests.golden.jvm import QUICK_JAVA, fetch_jar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["AWS", "REGION", "ROWS"]

AWS = "org.apache.iceberg:iceberg-aws-bundle:1.12.0"
REGION = "eu-west-3"
ROWS = 1000
_VENDED = {
    "s3.access-key-id": "ASIAVENDED",
    "s3.secret-access-key": "secret-of-an-hour",
    "s3.session-token": "token-of-an-hour",
}
_KEPT = {"s3.access-key-id": "AKIAKEPT", "s3.secret-access-key": "secret-for-long"}
_ALLOWED = {("AKIAKEPT", None), ("ASIAVENDED", "token-of-an-hour")}
_DENIED = b"<Error><Code>InvalidAccessKeyId</Code><Message>no such key</Message></Error>"
_BUCKET = (
    f"<CreateBucketConfiguration><LocationConstraint>{REGION}</LocationConstraint>"
    "</CreateBucketConfiguration>"
).encode()
_SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "required": False, "type": "long"},
        {"id": 2, "name": "name", "required": False, "type": "string"},
    ],
}
_Answer = Callable[[str, list[tuple[str, str]]], object]


class Server:
    """S3 for those who have the keys, and below `/catalog/<name>` a REST catalog."""

    def __init__(self) -> None:
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

        self._s3 = DomainDispatcherApplication(create_backend_app)
        self.catalog: Any = None
        self.endpoint = ""

    def __call__(self, environ: dict[str, Any], start: _Answer) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path.startswith("/catalog/"):
            body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            status, document = self._answer(path.split("/")[2:], body.decode())
            start(status, [("Content-Type", "application/json")])
            return [json.dumps(document).encode()]
        _, _, credential = environ.get("HTTP_AUTHORIZATION", "").partition("Credential=")
        key, _, scope = credential.partition("/")
        token = environ.get("HTTP_X_AMZ_SECURITY_TOKEN")
        if (key, token) not in _ALLOWED or f"/{REGION}/s3/" not in scope:
            start("403 Forbidden", [("Content-Type", "application/xml")])
            return [_DENIED]
        answer: Iterable[bytes] = self._s3(environ, start)
        return answer

    def _answer(self, path: list[str], body: str) -> tuple[str, object]:
        match path:
            case [_, "v1", "config"]:
                return "200 OK", {"defaults": {}, "overrides": {}}
            case [_, "v1", "namespaces", "db"]:
                return "200 OK", {"namespace": ["db"], "properties": {}}
            case [name, "v1", "namespaces", "db", "tables", "t"]:
                answer = json.loads(self.catalog.update(body) if body else self.catalog.load())
                if name == "vended":
                    config = {"s3.endpoint": self.endpoint, "s3.path-style-access": "true"}
                    answer["config"] = config | {"client.region": REGION}
                    answer["storage-credentials"] = [{"prefix": "s3://lake/", "config": _VENDED}]
                return "200 OK", answer
            case [*_, "metrics"]:
                return "200 OK", {}
        error = {"message": "/".join(path), "type": "NoSuchTableException", "code": 404}
        return "404 Not Found", {"error": error}


class Tables:
    """The tables of a REST catalog, which Iceberg's Java keeps in memory; it has the table db.t."""

    def __init__(self, spark: SparkSession) -> None:
        iceberg = spark._jvm.org.apache.iceberg
        self._rest = iceberg.rest
        self._catalog = iceberg.inmemory.InMemoryCatalog()
        self._catalog.initialize("all", {})
        self._name = iceberg.catalog.TableIdentifier.parse("db.t")
        self._catalog.createNamespace(self._name.namespace())
        schema = iceberg.SchemaParser.fromJson(json.dumps(_SCHEMA))
        built = self._catalog.buildTable(self._name, schema).withLocation("s3://lake/db/t")
        built.withProperty("format-version", "3").create()

    def load(self) -> str:
        everything = self._rest.RESTCatalogProperties.SnapshotMode.ALL
        return self._text(
            self._rest.CatalogHandlers.loadTable(self._catalog, self._name, everything)
        )

    def update(self, body: str) -> str:
        request = self._rest.requests.UpdateTableRequestParser.fromJson(body)
        return self._text(
            self._rest.CatalogHandlers.updateTable(self._catalog, self._name, request)
        )

    def _text(self, response: Any) -> str:
        return str(self._rest.responses.LoadTableResponseParser.toJson(response))


@contextmanager
def served() -> Iterator[Server]:
    """The server, with the bucket `lake`."""
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        def log_request(self, code: object = "-", size: object = "-") -> None:
            """Nothing."""

    app = Server()
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
    app.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    request = urllib.request.Request(f"{app.endpoint}/lake", _BUCKET, method="PUT")
    scope = f"Credential={_KEPT['s3.access-key-id']}/20250101/{REGION}/s3/aws4_request"
    request.add_header("Authorization", f"AWS4-HMAC-SHA256 {scope}")  # Moto checks no signature
    request.add_header("Content-Type", "application/xml")
    urllib.request.urlopen(request).close()
    try:
        yield app
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def catalogs(endpoint: str, closed: str) -> dict[str, dict[str, str]]:
    """The S3 settings of each catalog of the session."""
    config = {
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "s3.endpoint": endpoint,
        "s3.path-style-access": "true",
        "client.region": REGION,
    }
    return {
        "vended": {},
        "kept": config | _KEPT,
        "wrong": config | _KEPT | {"s3.access-key-id": "AKIAWRONG"},
        "keyless": config,
        "closed": config | _KEPT | {"s3.endpoint": closed},
    }


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def started(app: Server, folder: str) -> Iterator[SparkSession]:
    """A Spark with all catalogs."""
    settings = {
        "spark.jars": ",".join(str(fetch_jar(jar)) for jar in (RUNTIME, AWS)),
        "spark.driver.extraJavaOptions": " ".join(QUICK_JAVA),
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.sql.warehouse.dir": folder,
    }
    for name, options in catalogs(app.endpoint, f"http://127.0.0.1:{closed_port()}").items():
        catalog = f"spark.sql.catalog.{name}"
        settings[catalog] = "org.apache.iceberg.spark.SparkCatalog"
        rest = {"type": "rest", "uri": f"{app.endpoint}/catalog/{name}", "cache-enabled": "false"}
        settings |= {f"{catalog}.{key}": value for key, value in (rest | options).items()}
    session = alcid.session(master="local[2]", config=settings)
    try:
        app.catalog = Tables(session)
        yield session
    finally:
        session.stop()


def use(session: SparkSession, name: str, first: int) -> dict[str, object]:
    """Do everything with a table by the settings of a catalog, after an append by Iceberg."""
    rows = session.range(first, first + ROWS, 1, 1).selectExpr("id", "concat('n', id % 10) name")
    rows.writeTo(name).append()
    table = alcid.iceberg(name, session)
    results: dict[str, object] = {"scan": table.scan(f"id = {first + 7}").to_arrow().to_pylist()}
    table.build_indexes({"file-index.bloom-filter.columns": "id,name"})
    table = alcid.iceberg(name, session)
    results["indexes"] = [[index.column, index.fresh, index.absent] for index in table.indexes()]
    results["count"] = table.count(f"name = 'n3' AND id >= {first}")
    results["deleted"] = table.delete(f"id >= {first} AND id < {first + 10}").rows
    results["left"] = [table.count(), session.table(name).count()]
    results["problems"] = [str(problem) for problem in table.verify().problems]
    return results


def fail(session: SparkSession, name: str) -> dict[str, object]:
    """The error for a table that cannot be read, and how long it took."""
    begin = time.monotonic()
    try:
        alcid.iceberg(name, session).build_indexes({"file-index.bloom-filter.columns": "id"})
    except AlcidError as error:
        return {"error": str(error), "seconds": time.monotonic() - begin}
    return {}


def main() -> None:
    """Try all catalogs."""
    os.environ["AWS_EC2_METADATA_DISABLED"] = "true"  # keys of this machine are none of ours
    with tempfile.TemporaryDirectory() as folder, served() as app, started(app, folder) as session:
        results = {
            "vended": use(session, "vended.db.t", 0),
            "kept": use(session, "kept.db.t", ROWS),
            **{name: fail(session, f"{name}.db.t") for name in ("wrong", "keyless", "closed")},
        }
    print(json.dumps(results))


if __name__ == "__main__":
    main()
