"""Write indexes and statistics of an Iceberg table, and append rows to it."""
