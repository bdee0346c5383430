import java.util.function.Function;
import java.util.OptionalLong;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.queue.EventQueue;
import org.apache.kafka.queue.KafkaEventQueue;

/**
 * Kafka's own queue under the same loads as the classic one. Compiled against Kafka's classes, which are not part of this
 * project: `kafka-server-common` with `kafka-clients` and `slf4j-api`, or the classes of the package
 * `org.apache.kafka.queue` compiled by hand.
 *
 *   java KafkaQueue burst|steady P N | latency RATE N      by ClassicQueue.Harness, one JSON object a run
 *   java KafkaQueue timers SIZE distinct|equal             ns to schedule, to schedule again and to cancel, random order
 */
public class KafkaQueue {
    private static EventQueue queue() { return new KafkaEventQueue(Time.SYSTEM, new LogContext(""), ""); }

    private interface Step { void of(long key); }

    private static double each(long size, Step step) {
        long begun = System.nanoTime();
        // The order of the Rust side: a fixed step through all numbers.
        for (long n = 0; n < size; n++) step.of(Long.remainderUnsigned(n * 0x9e3779b1L, size));
        return (System.nanoTime() - begun) / (double) size;
    }

    private static void timers(long size, boolean equal) throws Exception {
        try (EventQueue queue = queue()) {
            String[] tags = new String[(int) size];
            for (int n = 0; n < size; n++) tags[n] = "t" + n;
            long hour = System.nanoTime() + 3_600_000_000_000L, spread = equal ? 0 : 1_000_003;
            double schedule = 0, again = 0, cancel = 0;
            for (int round = 0; round < 3; round++) { // the last one counts: the others are for the compiler
                long more = round * 14L;
                schedule = each(size, key -> put(queue, tags[(int) key], hour + key * spread + more));
                again = each(size, key -> put(queue, tags[(int) key], hour + key * spread + more + 7));
                cancel = each(size, key -> queue.cancelDeferred(tags[(int) key]));
            }
            System.out.printf(java.util.Locale.ROOT, "{\"schedule\":%.1f,\"schedule-again\":%.1f,\"cancel\":%.1f}%n", schedule, again, cancel);
        }
    }

    private static void put(EventQueue queue, String tag, long at) {
        Function<OptionalLong, OptionalLong> deadline = new EventQueue.DeadlineFunction(at);
        queue.scheduleDeferred(tag, deadline, () -> { });
    }

    public static void main(String[] a) throws Exception {
        if (a[0].equals("timers")) { timers(Long.parseLong(a[1]), a[2].equals("equal")); return; }
        try (EventQueue queue = queue()) {
            new ClassicQueue.Harness("kafka", run -> queue.append(run::run), Integer.parseInt(System.getenv().getOrDefault("REPS", "5")))
                .main(a[0], Long.parseLong(a[1]), Long.parseLong(a[2]));
        }
    }
}
