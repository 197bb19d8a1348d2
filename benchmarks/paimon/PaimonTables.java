import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Set;
import java.util.function.Consumer;
import org.apache.paimon.FileStore;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.deletionvectors.BitmapDeletionVector;
import org.apache.paimon.deletionvectors.DeletionVector;
import org.apache.paimon.deletionvectors.append.BaseAppendDeleteFileMaintainer;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.format.FileFormat;
import org.apache.paimon.format.FormatReaderContext;
import org.apache.paimon.fs.FileIO;
import org.apache.paimon.fs.Path;
import org.apache.paimon.fs.local.LocalFileIO;
import org.apache.paimon.index.FileIndexProcessor;
import org.apache.paimon.index.IndexFileMeta;
import org.apache.paimon.io.CompactIncrement;
import org.apache.paimon.io.DataIncrement;
import org.apache.paimon.manifest.FileKind;
import org.apache.paimon.manifest.IndexManifestEntry;
import org.apache.paimon.manifest.ManifestEntry;
import org.apache.paimon.options.Options;
import org.apache.paimon.predicate.FieldRef;
import org.apache.paimon.predicate.Predicate;
import org.apache.paimon.predicate.PredicateBuilder;
import org.apache.paimon.predicate.SortValue;
import org.apache.paimon.predicate.TopN;
import org.apache.paimon.reader.FileRecordIterator;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.FileStoreTableFactory;
import org.apache.paimon.table.sink.BatchTableCommit;
import org.apache.paimon.table.sink.BatchTableWrite;
import org.apache.paimon.table.sink.BatchWriteBuilder;
import org.apache.paimon.table.sink.CommitMessage;
import org.apache.paimon.table.sink.CommitMessageImpl;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.table.source.Split;
import org.apache.paimon.types.DataField;
import org.apache.paimon.types.RowType;

/**
 * A Paimon table in the hands of the released Java: whole questions and whole changes are one call
 * each, so that no row crosses to Python. Work on many splits or files goes to all cores, as the
 * connectors of engines have it.
 *
 * <p>A predicate is a list of alternatives, each a list of {column, comparison, literal}.
 */
public final class PaimonTables {

    private final FileIO files = LocalFileIO.create();
    private final String scratch;
    private FileStoreTable table;

    public PaimonTables(String scratch) {
        this.scratch = scratch;
    }

    public void open(String path) {
        table = FileStoreTableFactory.create(files, new Path(path));
    }

    // -- questions ----------------------------------------------------------------------------

    /** How many rows match, and the sum of the column 0; every column is read. */
    public long[] rows(List<List<List<Object>>> where) {
        ReadBuilder reads = table.newReadBuilder().withFilter(predicate(where));
        return reads.newScan().plan().splits().parallelStream()
                .map(
                        split -> {
                            long[] found = new long[2];
                            forEach(
                                    reads,
                                    split,
                                    row -> {
                                        found[0]++;
                                        found[1] += row.getLong(0);
                                    });
                            return found;
                        })
                .reduce(new long[2], (a, b) -> new long[] {a[0] + b[0], a[1] + b[1]});
    }

    /** How many rows match: of all from the manifests, else from the columns of the predicate. */
    public long count(List<List<List<Object>>> where) {
        if (where.isEmpty()) {
            long rows = 0;
            for (Split split : table.newReadBuilder().newScan().plan().splits()) {
                rows += split.mergedRowCount().getAsLong();
            }
            return rows;
        }
        ReadBuilder reads = narrow(where);
        return reads.newScan().plan().splits().parallelStream()
                .mapToLong(
                        split -> {
                            long[] found = new long[1];
                            forEach(reads, split, row -> found[0]++);
                            return found[0];
                        })
                .sum();
    }

    /** The first column of the rows that are highest in another, highest first. */
    public long[] top(String column, int limit) {
        int place = table.rowType().getFieldIndex(column);
        FieldRef field = new FieldRef(place, column, table.rowType().getTypeAt(place));
        TopN wanted =
                new TopN(
                        field,
                        SortValue.SortDirection.DESCENDING,
                        SortValue.NullOrdering.NULLS_LAST,
                        limit);
        ReadBuilder reads = table.newReadBuilder().withTopN(wanted);
        PriorityQueue<Object[]> best =
                new PriorityQueue<>(Comparator.comparingDouble(row -> (double) row[0]));
        reads.newScan().plan().splits().parallelStream()
                .forEach(
                        split ->
                                forEach(
                                        reads,
                                        split,
                                        row -> {
                                            double value = row.getDouble(place);
                                            synchronized (best) {
                                                if (best.size() == limit) {
                                                    if (value <= (double) best.peek()[0]) {
                                                        return;
                                                    }
                                                    best.poll();
                                                }
                                                best.add(new Object[] {value, row.getLong(0)});
                                            }
                                        }));
        long[] found = new long[best.size()];
        for (int rank = found.length - 1; rank >= 0; rank--) {
            found[rank] = (long) best.poll()[1];
        }
        return found;
    }

    private void forEach(ReadBuilder reads, Split split, Consumer<InternalRow> consumer) {
        try (RecordReader<InternalRow> reader =
                reads.newRead().executeFilter().createReader(split)) {
            reader.forEachRemaining(consumer);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** The rows that match, with the columns of the predicate only. */
    private ReadBuilder narrow(List<List<List<Object>>> where) {
        Set<String> columns = new LinkedHashSet<>();
        where.forEach(leaves -> leaves.forEach(leaf -> columns.add((String) leaf.get(0))));
        RowType type = table.rowType().project(new ArrayList<>(columns));
        return table.newReadBuilder().withFilter(predicate(where)).withReadType(type);
    }

    private Predicate predicate(List<List<List<Object>>> where) {
        PredicateBuilder builder = new PredicateBuilder(table.rowType());
        List<Predicate> alternatives = new ArrayList<>();
        for (List<List<Object>> leaves : where) {
            List<Predicate> all = new ArrayList<>();
            leaves.forEach(leaf -> all.add(leaf(builder, leaf)));
            alternatives.add(PredicateBuilder.and(all));
        }
        return PredicateBuilder.or(alternatives);
    }

    private Predicate leaf(PredicateBuilder builder, List<Object> leaf) {
        int place = builder.indexOf((String) leaf.get(0));
        DataField field = table.rowType().getFields().get(place);
        Number given = (Number) leaf.get(2);
        Object literal;
        switch (field.type().getTypeRoot()) {
            case INTEGER:
                literal = given.intValue();
                break;
            case BIGINT:
                literal = given.longValue();
                break;
            default:
                literal = given.doubleValue();
        }
        switch ((String) leaf.get(1)) {
            case "<":
                return builder.lessThan(place, literal);
            case ">":
                return builder.greaterThan(place, literal);
            default:
                return builder.equal(place, literal);
        }
    }

    // -- changes ------------------------------------------------------------------------------

    /** Delete by deletion vectors. */
    public void delete(List<List<List<Object>>> where) throws Exception {
        ReadBuilder reads = narrow(where);
        FileStore<?> store = table.store();
        Map<String, DeletionVector> vectors = new HashMap<>();
        reads.newScan().plan().splits().parallelStream()
                .forEach(
                        split -> {
                            Map<String, DeletionVector> found = positions(reads, split);
                            synchronized (vectors) {
                                vectors.putAll(found);
                            }
                        });
        BaseAppendDeleteFileMaintainer owner =
                BaseAppendDeleteFileMaintainer.forUnawareAppend(
                        store.newIndexFileHandler(),
                        store.snapshotManager().latestSnapshot(),
                        BinaryRow.EMPTY_ROW);
        vectors.forEach(owner::notifyNewDeletionVector);
        List<IndexFileMeta> added = new ArrayList<>();
        List<IndexFileMeta> removed = new ArrayList<>();
        for (IndexManifestEntry entry : owner.persist()) {
            (entry.kind() == FileKind.ADD ? added : removed).add(entry.indexFile());
        }
        DataIncrement increment =
                new DataIncrement(List.of(), List.of(), List.of(), added, removed);
        commit(
                List.of(
                        new CommitMessageImpl(
                                owner.getPartition(),
                                owner.getBucket(),
                                null,
                                increment,
                                CompactIncrement.emptyIncrement())));
    }

    private Map<String, DeletionVector> positions(ReadBuilder reads, Split split) {
        Map<String, DeletionVector> found = new HashMap<>();
        try (RecordReader<InternalRow> reader =
                reads.newRead().executeFilter().createReader(split)) {
            RecordReader.RecordIterator<InternalRow> read;
            while ((read = reader.readBatch()) != null) {
                FileRecordIterator<InternalRow> batch = (FileRecordIterator<InternalRow>) read;
                while (batch.next() != null) {
                    found.computeIfAbsent(
                                    batch.filePath().getName(), name -> new BitmapDeletionVector())
                            .delete(batch.returnedPosition());
                }
                batch.releaseBatch();
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        return found;
    }

    /** Build the indexes that the options of the table name, as rewrite_file_index does. */
    public void buildIndexes() throws Exception {
        List<ManifestEntry> entries = table.store().newScan().plan().files();
        List<CommitMessage> messages =
                entries.parallelStream()
                        .map(this::indexed)
                        .collect(ArrayList::new, List::add, List::addAll);
        commit(messages);
    }

    private CommitMessage indexed(ManifestEntry entry) {
        try {
            CompactIncrement swap =
                    new CompactIncrement(
                            List.of(entry.file()),
                            List.of(
                                    new FileIndexProcessor(table)
                                            .process(entry.partition(), entry.bucket(), entry)),
                            List.of());
            return new CommitMessageImpl(
                    entry.partition(),
                    entry.bucket(),
                    entry.totalBuckets(),
                    DataIncrement.emptyIncrement(),
                    swap);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private void commit(List<CommitMessage> messages) throws Exception {
        try (BatchTableCommit commit = table.newBatchWriteBuilder().newCommit()) {
            commit.commit(messages);
        }
    }

    /** Append the rows of Parquet files, in one commit. */
    public void append(List<String> sources) throws Exception {
        BatchWriteBuilder builder = table.newBatchWriteBuilder();
        List<CommitMessage> messages =
                sources.parallelStream()
                        .map(source -> written(builder, source))
                        .collect(ArrayList::new, List::addAll, List::addAll);
        try (BatchTableCommit commit = builder.newCommit()) {
            commit.commit(messages);
        }
    }

    private List<CommitMessage> written(BatchWriteBuilder builder, String source) {
        RowType type = table.rowType();
        Path path = new Path(source);
        try (BatchTableWrite writer = builder.newWrite();
                RecordReader<InternalRow> reader =
                        FileFormat.fromIdentifier("parquet", new Options())
                                .createReaderFactory(type, type, List.of())
                                .createReader(
                                        new FormatReaderContext(
                                                files, path, files.getFileSize(path)))) {
            writer.withIOManager(IOManager.create(scratch));
            RecordReader.RecordIterator<InternalRow> batch;
            while ((batch = reader.readBatch()) != null) {
                InternalRow row;
                while ((row = batch.next()) != null) {
                    writer.write(row);
                }
                batch.releaseBatch();
            }
            return writer.prepareCommit();
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }
}
