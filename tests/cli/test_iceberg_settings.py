"""Spark is not started only to say that it has no Iceberg."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from alcid.cli.tables import could_have_iceberg

PROGRAM = """
import sys
from alcid.cli import main
status = main(sys.argv[1:])
print(status, "pyspark" in sys.modules)
"""
PROBLEM = (
    "alcid: lake.shop.orders: no such folder, and as the name of an Iceberg table it needs"
    " --conf spark.jars.packages=org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
    " --conf spark.sql.catalog.lake=org.apache.iceberg.spark.SparkCatalog"
    " and the settings spark.sql.catalog.lake.* of that catalog\n"
)


def test_name_without_settings_is_refused_at_once(tmp_path: Path) -> None:
    kept = {key: value for key, value in os.environ.items() if "SPARK" not in key}
    command = [sys.executable, "-c", PROGRAM, "query", "lake.shop.orders"]
    catalog = ["--conf", "spark.sql.catalog.lake=org.apache.iceberg.spark.SparkCatalog"]
    for more in ([], catalog):
        run = subprocess.run(
            command + more, cwd=tmp_path, env=kept, capture_output=True, text=True, check=True
        )
        assert (run.stdout, run.stderr) == ("1 False\n", PROBLEM)


@pytest.mark.parametrize(
    ("settings", "environment"),
    [
        (["spark.jars"], {}),
        (["spark.jars.packages"], {}),
        (["spark.driver.extraClassPath"], {}),
        ([], {"SPARK_HOME": "/opt/spark"}),
        ([], {"SPARK_CONF_DIR": "/etc/spark"}),
        ([], {"PYSPARK_SUBMIT_ARGS": "--packages x pyspark-shell"}),
    ],
)
def test_what_may_bring_iceberg_lets_spark_start(
    settings: list[str], environment: dict[str, str]
) -> None:
    assert could_have_iceberg(settings, environment)


def test_defaults_and_jars_of_pyspark_let_spark_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Spec:
        origin = str(tmp_path / "__init__.py")

    monkeypatch.setattr("alcid.cli.tables.find_spec", lambda _name: Spec)
    monkeypatch.setattr("alcid.cli.tables._is_running", lambda: False)
    assert not could_have_iceberg(["spark.master"], {"SPARK_HOME": ""})
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "iceberg-spark-runtime-4.1_2.13-1.12.0.jar").touch()
    assert could_have_iceberg([], {})
    (tmp_path / "jars" / "iceberg-spark-runtime-4.1_2.13-1.12.0.jar").unlink()
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").touch()
    assert could_have_iceberg([], {})
