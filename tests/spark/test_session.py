"""A session that is started here, and one that is already running."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipimport import zipimporter

import pyarrow as pa
import pytest

import alcid
from alcid.errors import AlcidError, OptionError, UnsupportedError
from alcid.spark.errors import job_errors, spark_error
from alcid.spark.jvm import map_in_arrow
from alcid.spark.jvm.planning import same_session
from alcid.spark.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_public_names() -> None:
    assert (alcid.session, alcid.register) == (session, alcid.spark.session.register)


def test_settings_of_a_local_session(spark: SparkSession) -> None:
    expected = {
        "spark.app.name": "tests",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.master": "local[2]",
        "spark.python.daemon.module": "alcid.spark.daemon",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    assert {key: spark.conf.get(key) for key in expected} == expected


def test_driver_has_a_quarter_of_the_memory(spark: SparkSession) -> None:
    memory = int(spark.conf.get("spark.driver.memory").removesuffix("g"))
    assert 1 <= memory <= 8
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert memory == 1 or memory << 32 <= machine << 2
    assert memory * 0.8 < spark._jvm.Runtime.getRuntime().maxMemory() / (1 << 30) <= memory


def test_workers_run_this_interpreter_and_keep_what_archives_hold(spark: SparkSession) -> None:
    def look(batches: Any) -> Any:
        for _ in batches:
            names = [sys.executable, zipimporter.invalidate_caches.__name__, str("alcid" in loaded)]
            yield pa.RecordBatch.from_arrays([pa.array(names)], ["name"])

    loaded = sys.modules.keys() & {"alcid"}
    names = map_in_arrow(spark.range(0, 1, 1, 1), look, "name string").toArrow()
    assert names.column("name").to_pylist() == [sys.executable, "_keep", "True"]


def test_running_session_is_given_back_as_it_is(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    try:
        assert same_session(session(master="local[7]", app_name="other"), spark)
        assert spark.conf.get("spark.sql.shuffle.partitions") == "3"
        assert spark.conf.get("spark.app.name") == "tests"
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", "2")


def test_running_session_is_found_from_another_thread(spark: SparkSession) -> None:
    with ThreadPoolExecutor(1) as pool:
        assert same_session(pool.submit(session).result(), spark)


def test_running_session_takes_settings_that_can_change(spark: SparkSession) -> None:
    config = {"spark.sql.shuffle.partitions": 5, "spark.sql.ansi.enabled": False}
    try:
        assert same_session(session(config={**config, "spark.master": "local[2]"}), spark)
        assert spark.conf.get("spark.sql.shuffle.partitions") == "5"
        assert spark.conf.get("spark.sql.ansi.enabled") == "false"
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", "2")
        spark.conf.set("spark.sql.ansi.enabled", "true")


def test_running_session_refuses_other_settings(spark: SparkSession) -> None:
    config = {"spark.sql.shuffle.partitions": 5, "spark.ui.enabled": True}
    with pytest.raises(OptionError) as raised:
        session(config=config)
    assert str(raised.value) == (
        "spark.ui.enabled: found false, expected true, which the session that is running cannot "
        "change to: stop() it first"
    )
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"


def test_a_secret_that_differs_is_not_shown(spark: SparkSession) -> None:
    assert not spark.conf.isModifiable("spark.hadoop.fs.s3a.secret.key")
    with pytest.raises(OptionError) as caught:
        session(config={"spark.hadoop.fs.s3a.secret.key": "s3cr3t"})
    assert str(caught.value) == (
        "spark.hadoop.fs.s3a.secret.key: found one, expected another, which the session that is"
        " running cannot change to: stop() it first"
    )


def test_without_pyspark_an_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(UnsupportedError) as raised:
        session()
    assert str(raised.value) == "no PySpark: pip install 'alcid[spark]'"


OWN_SETTINGS = """
    import os
    import alcid

    spark = alcid.session(
        master="local",
        config={
            "spark.driver.memory": "1g",
            "spark.python.daemon.module": "pyspark.daemon",
            "spark.sql.ansi.enabled": False,
            "spark.sql.shuffle.partitions": 7,
        },
    )
    for key in ("python.daemon.module", "sql.ansi.enabled", "driver.memory"):
        print(spark.conf.get(f"spark.{key}"))
    print(spark.conf.get("spark.sql.shuffle.partitions"), spark.range(5).count())
    print(spark.sparkContext.defaultParallelism, os.environ["PYSPARK_PYTHON"] == "python-of-mine")
    spark.stop()
"""


def test_settings_of_the_user_win_and_nothing_is_printed(spark: SparkSession) -> None:
    del spark  # where it cannot be started, another one cannot either
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(OWN_SETTINGS)],
        env=os.environ | {"PYSPARK_PYTHON": "python-of-mine"},
        capture_output=True,
        text=True,
        check=False,
    )
    said = [line for line in ended.stderr.splitlines() if "incubator" not in line]  # Java itself
    assert (ended.returncode, said) == (0, [])
    assert ended.stdout.splitlines() == ["pyspark.daemon", "false", "1g", "7 5", "1 True"]


@pytest.mark.parametrize("version", ["3.5.3", "4.0.1"])
def test_an_older_pyspark_is_refused_by_its_version(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str
) -> None:
    monkeypatch.setattr("pyspark.__version__", version)
    (tmp_path / "a").mkdir()
    for use in (alcid.session, lambda: alcid.parquet(tmp_path / "a", spark)):
        with pytest.raises(UnsupportedError, match=rf"^PySpark {version}: .* Spark 4\.1 or newer"):
            use()


def test_executors_without_the_package_have_an_error_of_their_own() -> None:
    from pyspark.errors import PythonException

    trace = "Traceback (most recent call last):\n ...\nModuleNotFoundError: No module named 'alcid'"
    cure = r"executors has no alcid: .*--py-files alcid\.zip"
    with pytest.raises(UnsupportedError, match=cure), job_errors():
        raise PythonException(trace)
    with pytest.raises(PythonException, match="numpy"), job_errors():
        raise PythonException("ModuleNotFoundError: No module named 'numpy'")
    error = spark_error(PythonException(trace))
    assert isinstance(error, UnsupportedError)
    assert "\n" not in str(error)


TOO_LARGE = (
    "Total size of serialized results of 2 tasks (6.0 MiB) is bigger than "
    "spark.driver.maxResultSize (1024.0 KiB)"
)
CANCELLED = "Job 3 cancelled part of cancelled job group g1"
ENDED = {
    CANCELLED: "An error occurred while calling o75.getResult.\n: org.apache.spark.SparkException: "
    "Exception thrown in awaitResult:\n\tat a.b.c\nCaused by: org.apache.spark.SparkException: "
    f"[SPARK_JOB_CANCELLED] {CANCELLED} SQLSTATE: XXKDA\n\tat d.e.f",
    "Operation has been canceled": "(org.apache.spark.SparkSQLException) [OPERATION_CANCELED] "
    "Operation has been canceled. SQLSTATE: HY008\n\nJVM stacktrace:\n",
    f"{TOO_LARGE}: raise it, or work on fewer files at a time": "Job aborted due to stage failure: "
    f"{TOO_LARGE}\nDriver stacktrace:",
}


@pytest.mark.parametrize("expected", ENDED)
def test_a_job_that_spark_has_ended_is_one_line(expected: str) -> None:
    from pyspark.errors import PySparkException

    raised = PySparkException(ENDED[expected])
    with pytest.raises(AlcidError) as caught, job_errors():
        raise raised
    assert str(caught.value) == str(spark_error(raised)) == f"Spark: {expected}"
