"""Every key of Paimon's table options that is not a value here: refused, harmless or renamed.

A key that a release of Paimon has is in exactly one of three lists, and a test compares them with
the keys of the released Java:

| list                | meaning                                                                   |
|---------------------|---------------------------------------------------------------------------|
| `options.HONOURED`  | parsed into a field of `TableOptions`, which some code reads              |
| `REFUSALS`          | asks for something that an operation cannot do, which raises              |
| `HARMLESS`          | changes neither the rows that we read nor what our commits must write     |

Refusals are per operation: a table whose rows we read correctly may still have an option that
forbids an append or a delete. Values that ask for nothing, such as the default, are allowed. Keys
of later releases are listed as far as they are known. A key that is in none of the lists is the
user's own, and allowed in an existing table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from alcid.errors import UnsupportedError

PAIMON_VERSION: Final = "1.4.2"
"""The release whose keys are all listed."""

HARMLESS: Final[dict[str, str]] = {
    # Speed, order and tolerance of reads: a lost or damaged file is always an error here.
    "reading": """
        bucket-append-ordered file-operation.thread-num file-reader-async-threshold read.batch-size
        read.native.enabled read.parallelism scan.ignore-corrupt-files scan.ignore-lost-files
        scan.manifest.parallelism scan.max-splits-per-task scan.native-plan.enabled
        scan.plan-auto-tag-for-read.time-retained scan.plan-sort-partition
        source.split.open-file-cost source.split.target-size
    """,
    # Speed and memory of writers and commits: the table comes out the same.
    "writing": """
        async-file-write cache-page-size commit.discard-duplicate-files
        commit.force-create-snapshot commit.max-retries commit.max-retry-wait commit.min-retry-wait
        commit.native.enabled commit.timeout dynamic-partition-overwrite file.block-size
        file.suffix.include.compression local-merge-buffer-size local-sort.max-num-file-handles
        manifest-sort.enabled manifest-sort.max-rewrite-size manifest-sort.partition-field
        manifest.delete-file-drop-stats manifest.full-compaction-threshold-size
        manifest.merge-optimize.enabled manifest.sidecar.enabled orc.column.encoding.direct
        orc.dictionary.key.threshold page-size parquet.enable.dictionary
        parquet.filter.columnindex.enabled parquet.write-page-index.enabled partition.sink-strategy
        sort-engine sort-spill-buffer-size sort-spill-threshold spill-compression
        spill-compression.zstd-level target-file-row-num write-buffer-for-append write-buffer-size
        write-buffer-spill.max-disk-size write-buffer-spillable write-max-writers-to-spill
        write.batch-memory write.batch-size write.native.enabled
    """,
    # Compaction, clustering and look-ups: when Java rewrites files, never what they mean.
    "compaction": """
        clustering.columns clustering.history-partition.idle-to-full-sort
        clustering.history-partition.limit clustering.incremental clustering.incremental.mode
        clustering.incremental.optimize-write clustering.strategy commit.force-compact
        compaction.delete-ratio-threshold compaction.file-num-limit
        compaction.force-rewrite-all-files compaction.force-up-level-0
        compaction.incremental-size-threshold compaction.max-size-amplification-percent
        compaction.min.file-num compaction.offpeak-ratio compaction.offpeak.end.hour
        compaction.offpeak.start.hour compaction.optimization-interval compaction.size-ratio
        compaction.skip-expired-partitions compaction.small-file-ratio
        compaction.total-size-threshold force-lookup full-compaction.delta-commits
        local-kv-db.block-size lookup-compact lookup-compact.max-interval lookup-wait
        lookup.cache-file-retention lookup.cache-max-disk-size lookup.cache-max-memory-size
        lookup.cache-rows lookup.cache-spill-compression lookup.cache.bloom.filter.enabled
        lookup.cache.bloom.filter.fpp lookup.cache.high-priority-pool-ratio
        lookup.continuous.discovery-interval lookup.hash-load-factor lookup.merge-buffer-size
        lookup.merge-records-threshold lookup.remote-file.enabled
        lookup.remote-file.level-threshold num-sorted-run.stop-trigger overwrite-upgrade
        record-level.expire-time record-level.time-field sort-compaction.local-sample.magnification
        sort-compaction.range-strategy zorder.var-length-contribution
    """,
    # What Java's jobs expire, tag, mark or report: the next one does it.
    "expiry": """
        changelog.num-retained.max changelog.num-retained.min changelog.time-retained
        consumer.changelog-only consumer.expiration-time consumer.ignore-progress consumer.mode
        end-input.check-partition-expire metastore.tag-to-partition partition.expiration-batch-size
        partition.expiration-check-interval partition.expiration-max-num
        partition.expiration-strategy partition.expiration-time
        partition.idle-time-to-report-statistic partition.mark-done-action
        partition.mark-done-action.custom.class partition.mark-done-action.http.params
        partition.mark-done-action.http.url partition.timestamp-formatter
        partition.timestamp-pattern snapshot.clean-empty-directories snapshot.expire.execution-mode
        snapshot.expire.limit snapshot.ignore-empty-commit snapshot.num-retained.max
        snapshot.num-retained.min snapshot.time-retained snapshot.watermark-idle-timeout
        tag.automatic-completion tag.batch.customized-name tag.callback.#.param tag.callbacks
        tag.create-success-file tag.creation-delay tag.creation-period tag.creation-period-duration
        tag.default-time-retained tag.num-retained-max tag.period-formatter tag.time-expire-enabled
    """,
    # Streaming reads, and changelogs, which are files of their own.
    "streaming": """
        changelog-file.compression changelog-file.format changelog-file.prefix
        changelog-file.stats-mode consumer-id continuous.discovery-interval
        key-value.sequence_number.enabled scan.bounded.watermark sink.process-time-zone
        sink.watermark-time-zone stream-scan-mode streaming-read-append-overwrite
        streaming-read-overwrite streaming.read.snapshot.delay table-read.sequence-number.enabled
    """,
    # Options that Flink and Spark read from the table for their own jobs.
    "engines": """
        changelog.precommit-compact.thread-num commit.custom-listeners
        compaction.bucket-distribution-strategy end-input.watermark
        filesystem.job-level-settings.enabled format-table.repair.collect-statistics
        format-table.statistics.parallelism legacy-timestamp-mapping.enabled lookup.async
        lookup.async-thread-number lookup.bootstrap-parallelism lookup.cache
        lookup.dynamic-partition.refresh-interval lookup.dynamic-partition.refresh.async
        lookup.refresh.async lookup.refresh.async.pending-snapshot-count
        lookup.refresh.full-load-threshold lookup.refresh.time-periods-blacklist
        partition.idle-time-to-done partition.mark-done-action.mode
        partition.mark-done.recover-from-state partition.time-interval precommit-compact
        read.allow.fullScan read.changelog read.shuffle-bucket-with-partition
        read.stream.maxBytesPerTrigger read.stream.maxFilesPerTrigger read.stream.maxRowsPerTrigger
        read.stream.maxTriggerDelayMs read.stream.minRowsPerTrigger requiredSparkConfsCheck.enabled
        scan.bounded scan.dedicated-split-generation scan.infer-parallelism
        scan.infer-parallelism.max scan.max-snapshot.count scan.parallelism scan.partitions
        scan.remove-normalize scan.split-enumerator.batch-size scan.split-enumerator.mode
        scan.watermark.alignment.group scan.watermark.alignment.max-drift
        scan.watermark.alignment.update-interval scan.watermark.emit.strategy
        scan.watermark.idle-timeout sink.clustering.sample-factor sink.clustering.sort-in-cluster
        sink.committer-cpu sink.committer-memory sink.committer-operator-chaining
        sink.coordinator-commit.enabled sink.cross-partition.managed-memory
        sink.key-only-deletes.enabled sink.managed.writer-buffer-memory sink.operator-uid.suffix
        sink.parallelism sink.savepoint.auto-tag sink.use-managed-memory-allocator
        sink.writer-coordinator.cache-expire-after-access sink.writer-coordinator.cache-memory
        sink.writer-coordinator.cache-soft-values sink.writer-coordinator.enabled
        sink.writer-coordinator.page-size sink.writer-coordinator.prefetch-manifests
        sink.writer-cpu sink.writer-memory sink.writer-refresh-detectors
        source.checkpoint-align.enabled source.checkpoint-align.timeout source.operator-uid.suffix
        source.split.target-size-with-column-pruning unaware-bucket.compaction.parallelism
        unaware-bucket.no-shuffle vector-search.lateral-join.parallelism
        write.data-evolution.update-conflict-retry.max-attempts
        write.data-evolution.update-conflict-retry.wait-ms
        write.hive-style-dynamic-partition.enabled write.merge-schema
        write.merge-schema.explicit-cast write.merge-schema.type-widening write.use-v2-write
    """,
    # Details of a feature that is itself refused, or that needs one which is.
    "feature": """
        aggregation.remove-record-on-delete bitmap-index.compression bitmap-index.compression-level
        bitmap-index.dictionary-block-size bitmap-index.fallback-scan-max-size blob-as-descriptor
        blob-compaction.enabled blob-descriptor.source-table blob-external-storage-field
        blob-external-storage-path blob-view.resolve.enabled blob-write-null-on-fetch-failure
        blob-write-null-on-missing-file blob.copy-buffer-size blob.split-by-file-size
        blob.target-file-size btree-index.block-size btree-index.bloom-filter.enabled
        btree-index.build.max-parallelism btree-index.cache-size btree-index.compression
        btree-index.compression-level btree-index.fallback-scan-max-size
        btree-index.high-priority-pool-ratio btree-index.records-per-range
        chain-table.chain-partition-keys chain-table.split.key-range-enabled
        chain-table.streaming.merge-snapshot changelog-producer.row-deduplicate
        changelog-producer.row-deduplicate-ignore-fields commit.callback.#.param
        cross-partition-upsert.bootstrap-parallelism cross-partition-upsert.index-ttl
        data-evolution.compaction.rewrite-row-ids data-evolution.merge-into.file-pruning
        data-evolution.merge-into.source-persist data-evolution.reassign.skip-contiguous-row-count
        data-evolution.row-id-conflict-rewrite.max-size data-evolution.row-sidecar.enabled
        data-evolution.row-sidecar.max-selected-rows data-evolution.row-sidecar.max-selection-ratio
        data-evolution.write-cols-optimization.enabled
        data-file.external-paths.specific-fs data-file.external-paths.weights
        fields.default-aggregate-function format-table.commit-hive-sync-url
        format-table.file.compression format-table.implementation
        format-table.partition-path-only-value format-table.scan.list-parallelism
        full-text-index.search-mode global-index.build.max-parallelism global-index.build.max-shard
        global-index.build.parallelism global-index.column-update-action global-index.enabled
        global-index.external-path global-index.filter.refine-from-data
        global-index.row-count-per-shard global-index.search-mode global-index.thread-num
        incremental-between-scan-mode incremental-between-tag-to-snapshot lookup.blob-as-descriptor
        materialized-table.definition-query materialized-table.interval-freshness
        materialized-table.interval-freshness.time-unit materialized-table.logical-refresh-mode
        materialized-table.refresh-handler-bytes materialized-table.refresh-handler-description
        materialized-table.refresh-mode materialized-table.refresh-status
        metadata.iceberg.compaction.max.file-num metadata.iceberg.compaction.min.file-num
        metadata.iceberg.database metadata.iceberg.delete-after-commit.enabled
        metadata.iceberg.format-version metadata.iceberg.glue.skip-archive
        metadata.iceberg.hadoop-conf-dir metadata.iceberg.hive-client-class
        metadata.iceberg.hive-conf-dir metadata.iceberg.hive-skip-update-stats
        metadata.iceberg.manifest-compression metadata.iceberg.manifest-legacy-version
        metadata.iceberg.previous-versions-max metadata.iceberg.storage-location
        metadata.iceberg.table metadata.iceberg.uri mosaic.num-buckets mosaic.stats-columns
        partial-update.remove-record-on-delete partial-update.remove-record-on-sequence-group
        postpone.batch-write-fixed-bucket postpone.batch-write-fixed-bucket.max-parallelism
        postpone.batch-write-fixed-bucket.rescale-load-factor postpone.default-bucket-num
        postpone.merge-on-read postpone.target-row-num-per-bucket postpone.target-size-per-bucket
        row-tracking.partition-group-on-commit scalar-index.search-mode
        scan.fallback-branch.read-fail-fast sorted-index.records-per-file
        variant.inferShreddingSchema variant.shredding.adaptive.maxInferBufferRow
        variant.shredding.adaptive.retentionRatio variant.shredding.inferenceMode
        variant.shredding.maxInferBufferRow variant.shredding.maxSchemaDepth
        variant.shredding.maxSchemaWidth variant.shredding.minFieldCardinalityRatio
        variant.shreddingSchema vector-index.search-mode vector-search.distribute.enabled
        vector-search.lateral-join.batch-size vector.target-file-size
        visibility-callback.check-interval visibility-callback.timeout
    """,
    # Creating tables and changing schemas: the keys are in the schema itself by then.
    "schema": """
        add-column-before-partition alter-column-null-to-not-null.disabled auto-create
        deletion-vectors.modifiable disable-explicit-type-casting partition path primary-key
    """,
}

# Families of keys: with a column in the middle, or of a file format's writer.
_HARMLESS_FORMS: Final = re.compile(
    r"fields\..+\.(aggregate-function|count-limit|distinct|ignore-retract|list-agg-delimiter"
    r"|nested-key|nested-key-null-strategy|nested-sequence-field|sequence-group|ts-field"
    r"|map\.shared-shredding\..+|pk-.+)"
    r"|(commit|tag)\.callback\..+\.param"
    r"|(avro|orc|parquet)\..+"
)

ALIASES: Final[dict[str, str]] = {
    "blob.stored-descriptor-fields": "blob-descriptor-field",
    "changelog-producer.lookup-wait": "lookup-wait",
    "delete-file.thread-num": "file-operation.thread-num",
    "first-row.ignore-delete": "ignore-delete",  # the first of three counts, as in Paimon
    "deduplicate.ignore-delete": "ignore-delete",
    "partial-update.ignore-delete": "ignore-delete",
    "log.scan": "scan.mode",
    "log.scan.timestamp-millis": "scan.timestamp-millis",
    "orc.write.batch-size": "write.batch-size",
    "parquet.variant.shreddingSchema": "variant.shreddingSchema",
    "sink.clustering.by-columns": "clustering.columns",
    "sink.clustering.strategy": "clustering.strategy",
    "snapshot.expire.clean-empty-directories": "snapshot.clean-empty-directories",
    "write.compaction-skip": "write-only",
}
"""Names of older versions, which Paimon reads where the current name is absent."""

_HARMLESS_KEYS: Final = frozenset(key for keys in HARMLESS.values() for key in keys.split())


def is_harmless(key: str) -> bool:
    """Whether Paimon has the key, and neither our rows nor our commits depend on it.

    >>> is_harmless("compaction.size-ratio"), is_harmless("fields.n.aggregate-function")
    (True, True)
    >>> is_harmless("merge-engine"), is_harmless("my-own")
    (False, False)
    """
    return key in _HARMLESS_KEYS or _HARMLESS_FORMS.fullmatch(key) is not None


def resolve_aliases(options: Mapping[str, str]) -> dict[str, str]:
    """The options under their current names, which win over the older ones.

    >>> resolve_aliases({"write.compaction-skip": "true", "bucket": "4"})
    {'bucket': '4', 'write-only': 'true'}
    """
    named = {key: value for key, value in options.items() if key not in ALIASES}
    for alias, key in ALIASES.items():
        if alias in options:
            named.setdefault(key, options[alias])
    return named


Operation: TypeAlias = Literal["read", "build", "append", "delete", "upsert", "compact"]
"""`build` replaces the indexes of data files and `compact` rewrites rows, without changing any;
`append`, `delete` and `upsert` change rows."""

_ALL: Final = frozenset({"read", "build", "append", "delete", "upsert", "compact"})
_COMMITS: Final = _ALL - {"read"}
_ROWS: Final = frozenset({"append", "delete", "upsert"})
_MERGES: Final = _ROWS | {"compact"}
_FILES: Final = frozenset({"append", "upsert", "compact"})
_NEW_ROWS: Final = frozenset({"append", "upsert"})
_APPEND: Final = frozenset({"append"})
_DELETE: Final = frozenset({"delete"})
_NUMBERED: Final = frozenset({"upsert", "delete"})


@dataclass(frozen=True, slots=True)
class Refusal:
    """The operations that cannot follow an option, and why."""

    operations: frozenset[str]
    why: str
    allowed: tuple[str, ...] = ()
    """Values in lower case that ask for nothing."""
    keyed: bool | None = None
    """True: only in a table with a primary key, as Paimon ignores the option in others. False: only
    in a table without one."""


_OFF: Final = ("false",)
_TRAVEL: Final = Refusal(
    _ALL, "it reads another state of the table; remove it, and name a snapshot or tag when opening"
)
_BRANCH: Final = Refusal(
    _ALL, "it reads from several branches, which is not supported; name one when opening"
)
_ROW_IDS: Final = Refusal(_ALL, "tables with row ids are not supported", _OFF)
_APART: Final = Refusal(_ALL, "it keeps columns in files of their own, which is not supported")
_PER_LEVEL: Final = Refusal(_FILES, "files are written the same way on every level", ("",))
_KEY_INDEX: Final = Refusal(
    _COMMITS, "indexes over the primary key would not be kept up; write with Paimon's Java"
)

REFUSALS: Final[dict[str, Refusal]] = {
    # Kinds of tables.
    "type": Refusal(_ALL, "only tables of type table are supported", ("table",)),
    "branch": Refusal(_ALL, "remove it, and name the branch when opening", ("main",)),
    "chain-table.enabled": Refusal(_ALL, "chain tables are not supported", _OFF),
    "row-tracking.enabled": _ROW_IDS,
    "data-evolution.enabled": _ROW_IDS,
    "query-auth.enabled": Refusal(_ALL, "a catalog says who may see which rows", _OFF),
    "primary-key.nullable": Refusal(_ALL, "nulls in keys are not supported", _OFF, keyed=True),
    "sequence.snapshot-ordering": Refusal(
        _ALL, "rows ordered by their snapshot are not supported", _OFF, keyed=True
    ),
    "pk-clustering-override": Refusal(
        _ALL, "files in another order than that of their key are not supported", _OFF, keyed=True
    ),
    "blob-field": _APART,
    "blob-descriptor-field": _APART,
    "blob-view-field": _APART,
    "vector-field": _APART,
    "vector.file.format": _APART,
    "video-frame-field": _APART,
    "fields.<column>.map.storage-layout": Refusal(
        _ALL, "only the plain layout of maps is supported", ("default",)
    ),
    # What a read returns.
    "scan.mode": Refusal(_ALL, _TRAVEL.why, ("default", "latest-full", "full", "latest")),
    "scan.timestamp": _TRAVEL,
    "scan.timestamp-millis": _TRAVEL,
    "scan.watermark": _TRAVEL,
    "scan.file-creation-time-millis": _TRAVEL,
    "scan.creation-time-millis": _TRAVEL,
    "scan.snapshot-id": _TRAVEL,
    "scan.tag-name": _TRAVEL,
    "scan.version": _TRAVEL,
    "incremental-between": _TRAVEL,
    "incremental-between-timestamp": _TRAVEL,
    "incremental-to-auto-tag": _TRAVEL,
    "batch-scan-mode": Refusal(_ALL, _TRAVEL.why, ("none",)),
    "scan.bucket": Refusal(_ALL, "it reads a part of the table; remove it"),
    "scan.fallback-branch": _BRANCH,
    "scan.primary-branch": _BRANCH,
    "scan.fallback-snapshot-branch": _BRANCH,
    "scan.fallback-delta-branch": _BRANCH,
    # What every commit would have to do besides.
    "manifest.format": Refusal(
        _COMMITS, "manifests are written in Avro only; write with Paimon's Java", ("avro",)
    ),
    "metadata.iceberg.storage": Refusal(
        _COMMITS, "no Iceberg metadata would be written; commit with Paimon's Java", ("disabled",)
    ),
    "commit.callbacks": Refusal(
        _COMMITS, "they would not be called; commit with Paimon's Java", ("",)
    ),
    "commit.strict-mode.last-safe-snapshot": Refusal(
        _COMMITS, "snapshots of others would not be checked for; remove it"
    ),
    "pk-bitmap.index.columns": _KEY_INDEX,
    "pk-btree.index.columns": _KEY_INDEX,
    "pk-full-text.index.columns": _KEY_INDEX,
    "pk-multivalue.index.columns": _KEY_INDEX,
    "pk-vector.index.columns": _KEY_INDEX,
    # What a change of rows would have to do besides.
    "changelog-producer": Refusal(
        _MERGES, "no changelog would be written; write with Paimon's Java", ("none",), keyed=True
    ),
    "merge-engine": Refusal(
        _MERGES, "only rows that replace each other can be written", ("deduplicate",), keyed=True
    ),
    "tag.automatic-creation": Refusal(
        _ROWS,
        "no tag would be made; write with Paimon's Java",
        ("none", "process-time", "watermark"),
    ),
    "metastore.tag-to-partition.preview": Refusal(
        _ROWS, "the metastore would not be told; write with Paimon's Java", ("none",)
    ),
    "delete.force-produce-changelog": Refusal(
        _DELETE, "no changelog would be written; delete with Paimon's Java", _OFF, keyed=False
    ),
    "ignore-delete": Refusal(_DELETE, "the table ignores deletes; remove it", _OFF, keyed=True),
    "upsert-key": Refusal(_APPEND, "rows of the same key would not be replaced; remove it"),
    "bucket-function.type": Refusal(
        _NEW_ROWS, "rows would come into other buckets; write with Paimon's Java", ("default",)
    ),
    "write.sequence-number-init-mode": Refusal(
        _NUMBERED, "the next number would not be kept in the snapshot", ("scan",), keyed=True
    ),
    "file.format.per.level": _PER_LEVEL,
    "file.compression.per.level": _PER_LEVEL,
    "metadata.stats-mode.per.level": _PER_LEVEL,
    "data-file.external-paths.strategy": Refusal(
        _FILES, "files are written below the table; write with Paimon's Java", ("none",)
    ),
    "metastore.partitioned-table": Refusal(
        _NEW_ROWS, "the metastore would not be told of a partition; write with Paimon's Java", _OFF
    ),
    "partition.end-input-to-done": Refusal(
        _NEW_ROWS, "no partition would be marked; write with Paimon's Java", _OFF
    ),
    "partition.timestamp-format.strict": Refusal(
        _NEW_ROWS, "values of partitions would not be checked; write with Paimon's Java", _OFF
    ),
    "visibility-callback.enabled": Refusal(
        _NEW_ROWS, "a compaction would not be waited for; write with Paimon's Java", _OFF
    ),
}

_MAP_LAYOUT: Final = re.compile(r"fields\..+\.map\.storage-layout")


def refusal_of(key: str) -> Refusal | None:
    """The refusal of a key, which may have a column in it.

    >>> refusal_of("fields.tags.map.storage-layout").allowed
    ('default',)
    """
    if _MAP_LAYOUT.fullmatch(key):
        key = "fields.<column>.map.storage-layout"
    return REFUSALS.get(key)


def refuse(options: Mapping[str, str], operation: Operation, *, keyed: bool) -> None:
    """Raise for the first option, in the order of the keys, that an operation cannot follow.

    Raises:
        UnsupportedError: There is one.

    >>> refuse({"branch": "main", "scan.tag-name": "may"}, "read", keyed=False)
    Traceback (most recent call last):
    alcid.errors.UnsupportedError: scan.tag-name=may: cannot read the table: it reads another state
    of the table; remove it, and name a snapshot or tag when opening
    """
    for key, value in sorted(options.items()):
        refusal = refusal_of(key)
        if refusal is None or operation not in refusal.operations:
            continue
        if value.lower() not in refusal.allowed and refusal.keyed in (None, keyed):
            raise UnsupportedError(f"{key}={value}: cannot {VERBS[operation]}: {refusal.why}")


VERBS: Final[dict[Operation, str]] = {
    "read": "read the table",
    "build": "build its indexes",
    "append": "append rows",
    "delete": "delete rows",
    "upsert": "upsert rows",
    "compact": "compact the table",
}
"""What error messages call an operation, after `cannot`."""
