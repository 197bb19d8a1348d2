"""The metadata of a Paimon table: what its JSON and Avro files say, and how a commit adds to them.

| module             | file of the table                                                        |
|--------------------|--------------------------------------------------------------------------|
| `schema`           | `schema/schema-<n>`: columns, keys and options                           |
| `table_options`    | what the options mean, and which are refused                             |
| `snapshot`         | `snapshot/snapshot-<n>`, `tag/tag-<name>`: the table at one moment       |
| `manifest_list`    | `manifest/manifest-list-*`: the manifests of a snapshot                  |
| `manifest`         | `manifest/manifest-*`: data files that came and went                     |
| `index_manifest`   | `manifest/index-manifest-*`: deletion vectors and hash indexes           |
| `avro`             | the container of the last three                                          |
| `row_bytes`        | partitions, keys and bounds within them                                  |
| `statistics`       | the bounds of the columns of a data file                                 |
| `paths`            | where data files lie                                                     |
| `table_state`      | all of it at one snapshot                                                |
| `change`           | what a commit does, and whether it goes with a state                     |
| `commit`           | a new snapshot, or none                                                  |
| `snapshot_making`  | the moment at which it is there                                          |
| `manifest_merging` | few manifests in place of many                                           |
"""
