"""What the metadata of an Iceberg table says: schemas, snapshots, files, statistics.

| module                | what it reads                                                         |
|-----------------------|-----------------------------------------------------------------------|
| `table_metadata`      | `metadata.json`: schemas, partition specs, snapshots                  |
| `schema`              | columns, by field id                                                  |
| `partition_spec`      | how rows are parted                                                   |
| `snapshots`           | snapshots, and the statistics files that they list                    |
| `metadata_json`       | the JSON of all of them, checked                                      |
| `entries`             | the data and delete files of a snapshot                               |
| `manifests`           | the same, of the manifests of a snapshot                              |
| `map_values`          | what they know of a column, by its id                                 |
| `single_value_bounds` | bounds of a column, as bytes                                          |
| `transforms`          | what the value of a partition says about the column it is made of     |
| `time_bounds`         | of these, year to hour                                                |
| `truncated_bounds`    | of these, truncate                                                    |
| `bucket_hash`         | of these, bucket                                                      |
"""
