import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletionService;
import java.util.concurrent.ExecutorCompletionService;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.paimon.CoreOptions;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.data.serializer.InternalRowSerializer;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.format.FileFormat;
import org.apache.paimon.format.FormatReaderContext;
import org.apache.paimon.fs.FileIO;
import org.apache.paimon.fs.Path;
import org.apache.paimon.fs.local.LocalFileIO;
import org.apache.paimon.index.BucketAssigner;
import org.apache.paimon.index.HashBucketAssigner;
import org.apache.paimon.manifest.BucketEntry;
import org.apache.paimon.options.Options;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.FileStoreTableFactory;
import org.apache.paimon.table.sink.BatchTableCommit;
import org.apache.paimon.table.sink.BatchTableWrite;
import org.apache.paimon.table.sink.BatchWriteBuilder;
import org.apache.paimon.table.sink.CommitMessage;
import org.apache.paimon.table.sink.RowPartitionKeyExtractor;
import org.apache.paimon.types.RowType;

/**
 * A table with a primary key and dynamic buckets, changed by the released Java without an engine:
 * one channel for each core, and of each a thread that reads files and one that writes.
 *
 * <p>A reader gives every row to the channel of its key, in memory. The channel assigns buckets
 * that it owns, so it also writes them: connectors shuffle twice, and over the network. Nothing is
 * serialized but rows, as the reader's are views that do not last.
 */
public final class KeyedTables {

    private static final int ROWS = 1024; // of a message to a channel
    private static final int MESSAGES = 64; // that wait for a channel
    private static final Message LAST = new Message();

    private final FileIO files = LocalFileIO.create();
    private final int channels = Runtime.getRuntime().availableProcessors();
    private final String scratch;

    public KeyedTables(String scratch) {
        this.scratch = scratch;
    }

    /** Rows on their way to a channel, with the hashes of their keys. */
    private static final class Message {
        final InternalRow[] rows = new InternalRow[ROWS];
        final int[] hashes = new int[ROWS];
        int count;
    }

    /** Upsert the rows of Parquet files in one commit: that of Java, which is two snapshots. */
    public void upsert(String path, List<String> sources) throws Exception {
        FileStoreTable table = FileStoreTableFactory.create(files, new Path(path));
        BatchWriteBuilder builder = table.newBatchWriteBuilder();
        List<BlockingQueue<Message>> queues = new ArrayList<>();
        List<Callable<List<CommitMessage>>> work = new ArrayList<>();
        AtomicInteger next = new AtomicInteger();
        AtomicInteger reading = new AtomicInteger(channels);
        for (int number = 0; number < channels; number++) {
            int channel = number;
            queues.add(new ArrayBlockingQueue<>(MESSAGES));
            work.add(() -> write(table, builder, queues.get(channel), channel));
            work.add(
                    () -> {
                        int place;
                        while ((place = next.getAndIncrement()) < sources.size()) {
                            read(table, sources.get(place), queues);
                        }
                        if (reading.decrementAndGet() == 0) {
                            for (BlockingQueue<Message> queue : queues) {
                                queue.put(LAST);
                            }
                        }
                        return List.of();
                    });
        }
        commit(builder, runAll(work, work.size()));
    }

    private void read(FileStoreTable table, String source, List<BlockingQueue<Message>> queues)
            throws Exception {
        RowType type = table.rowType();
        Path path = new Path(source);
        RowPartitionKeyExtractor keys = new RowPartitionKeyExtractor(table.schema());
        InternalRowSerializer serializer = new InternalRowSerializer(type);
        Message[] messages = new Message[channels];
        try (RecordReader<InternalRow> reader =
                FileFormat.fromIdentifier("parquet", new Options())
                        .createReaderFactory(type, type, List.of())
                        .createReader(
                                new FormatReaderContext(files, path, files.getFileSize(path)))) {
            RecordReader.RecordIterator<InternalRow> batch;
            while ((batch = reader.readBatch()) != null) {
                InternalRow row;
                while ((row = batch.next()) != null) {
                    int hash = keys.trimmedPrimaryKey(row).hashCode();
                    int partition = keys.partition(row).hashCode();
                    int channel =
                            BucketAssigner.computeAssigner(partition, hash, channels, channels);
                    Message message = messages[channel];
                    if (message == null) {
                        message = messages[channel] = new Message();
                    }
                    message.rows[message.count] = serializer.toBinaryRow(row).copy();
                    message.hashes[message.count++] = hash;
                    if (message.count == ROWS) {
                        queues.get(channel).put(message);
                        messages[channel] = null;
                    }
                }
                batch.releaseBatch();
            }
        }
        for (int channel = 0; channel < channels; channel++) {
            if (messages[channel] != null) {
                queues.get(channel).put(messages[channel]);
            }
        }
    }

    private List<CommitMessage> write(
            FileStoreTable table,
            BatchWriteBuilder builder,
            BlockingQueue<Message> queue,
            int channel)
            throws Exception {
        CoreOptions options = table.coreOptions();
        RowPartitionKeyExtractor keys = new RowPartitionKeyExtractor(table.schema());
        HashBucketAssigner assigner =
                new HashBucketAssigner(
                        table.snapshotManager(),
                        "benchmark",
                        table.store().newIndexFileHandler(),
                        channels,
                        channels,
                        channel,
                        options.dynamicBucketTargetRowNum(),
                        options.dynamicBucketMaxBuckets());
        try (IOManager disk = IOManager.create(scratch);
                BatchTableWrite writer = builder.newWrite()) {
            writer.withIOManager(disk);
            for (Message message = queue.take(); message != LAST; message = queue.take()) {
                for (int place = 0; place < message.count; place++) {
                    InternalRow row = message.rows[place];
                    int bucket = assigner.assign(keys.partition(row), message.hashes[place]);
                    if (!BucketAssigner.isMyBucket(bucket, channels, channel)) {
                        throw new IllegalStateException(
                                "bucket " + bucket + " was made with other channels");
                    }
                    writer.write(row, bucket);
                }
            }
            return writer.prepareCommit();
        }
    }

    /** Compact every bucket into one run. */
    public void compact(String path) throws Exception {
        FileStoreTable table = FileStoreTableFactory.create(files, new Path(path));
        BatchWriteBuilder builder = table.newBatchWriteBuilder();
        List<BucketEntry> buckets = table.newSnapshotReader().bucketEntries();
        List<Callable<List<CommitMessage>>> work = new ArrayList<>();
        for (BucketEntry each : buckets) {
            work.add(
                    () -> {
                        try (IOManager disk = IOManager.create(scratch);
                                BatchTableWrite writer = builder.newWrite()) {
                            writer.withIOManager(disk);
                            writer.compact(each.partition(), each.bucket(), true);
                            return writer.prepareCommit();
                        }
                    });
        }
        commit(builder, runAll(work, channels));
    }

    /** All that is returned; the first error ends the others, which may wait for each other. */
    private static List<CommitMessage> runAll(
            List<Callable<List<CommitMessage>>> work, int threads) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        try {
            CompletionService<List<CommitMessage>> running =
                    new ExecutorCompletionService<>(pool);
            work.forEach(running::submit);
            List<CommitMessage> messages = new ArrayList<>();
            for (int done = 0; done < work.size(); done++) {
                messages.addAll(running.take().get());
            }
            return messages;
        } finally {
            pool.shutdownNow();
        }
    }

    private static void commit(BatchWriteBuilder builder, List<CommitMessage> messages)
            throws Exception {
        try (BatchTableCommit commit = builder.newCommit()) {
            commit.commit(messages);
        }
    }
}
