"""The metadata of a Paimon table, and the commits that add to it.

| module         | content                                                                       |
|----------------|-------------------------------------------------------------------------------|
| `schema`       | `schema/schema-<n>`: columns, keys and options                                |
| `options`      | the options as typed values, and the checks before a read or a write          |
| `option_keys`  | all other keys: refused, harmless, or renamed                                 |
| `snapshot`     | `snapshot/snapshot-<n>` and `tag/tag-<name>`                                  |
| `manifest`     | `manifest/manifest-*` and `manifest/manifest-list-*`: data files              |
| `table_state`  | `manifest/index-manifest-*`, and everything of one snapshot together          |
| `records`      | the Avro and ORC records of these files                                       |
| `statistics`   | packed rows: partitions, keys, and the bounds of columns                      |
| `table_folder` | schemas, branches, and the paths of data files                                |
| `commit`       | a change, checked against a state and committed as the next snapshot          |
"""
