"""The metadata of an Iceberg table: `metadata.json`, manifest lists and manifests.

| module           | contents                                                                   |
|------------------|----------------------------------------------------------------------------|
| `table_metadata` | `metadata.json`: schemas, partition specs, snapshots and statistics files  |
| `schema`         | schemas and partition specs, by field id                                   |
| `manifests`      | the data and delete files of a snapshot, from its manifests                |
| `entries`        | the same as Arrow tables, with the metrics of columns                      |
| `transforms`     | bounds of columns from the partition values that are derived from them     |
"""
