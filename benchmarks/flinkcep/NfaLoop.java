import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.cep.nfa.NFA;
import org.apache.flink.cep.nfa.NFAState;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.nfa.compiler.NFACompiler;
import org.apache.flink.cep.nfa.sharedbuffer.SharedBuffer;
import org.apache.flink.cep.nfa.sharedbuffer.SharedBufferAccessor;
import org.apache.flink.cep.pattern.Pattern;

/**
 * FlinkCEP without Flink around it: what its operator does for each event of an ordered input, on one thread, with a
 * state for each key in memory.
 *
 * What is measured is this thread's time on the processor, so that what else the machine does does not count; nor does
 * the work of Java's collector, which has threads of its own.
 */
final class NfaLoop {
    private static final ThreadMXBean CLOCK = ManagementFactory.getThreadMXBean();

    private final Event[] events;
    private final String workload;
    private final int keys;

    NfaLoop(Event[] events, String workload) {
        this.events = events;
        this.workload = workload;
        int last = 0;
        for (Event event : events) {
            last = Math.max(last, event.key);
        }
        this.keys = last + 1;
    }

    /** Processes the first `most` events, or those that it gets to in `seconds`; then time passes all windows. */
    Measured run(int most, double seconds) throws Exception {
        Pattern<Event, ?> pattern = Workloads.pattern(workload);
        AfterMatchSkipStrategy skip = pattern.getAfterMatchSkipStrategy();
        NFA<Event> nfa = NFACompiler.compileFactory(pattern, false).createNFA(); // not opened: no condition is a rich one
        KeyedMemory memory = new KeyedMemory(keys);
        SharedBuffer<Event> buffer = new SharedBuffer<>(
                memory, TypeInformation.of(Event.class).createSerializer(new SerializerConfigImpl()));
        NFAState[] states = new NFAState[keys];
        long matches = 0;
        int done = 0;
        long start = CLOCK.getCurrentThreadCpuTime();
        long allowed = (long) (seconds * 1e9);
        long look = System.nanoTime() + allowed; // when this thread may have used it up: its own clock is slow to read
        for (; done < most; done++) {
            if (System.nanoTime() > look) {
                long left = start + allowed - CLOCK.getCurrentThreadCpuTime();
                if (left <= 0) {
                    break;
                }
                look = System.nanoTime() + left;
            }
            Event event = events[done];
            NFAState state = states[event.key];
            if (state == null) {
                state = nfa.createInitialNFAState();
                states[event.key] = state;
            }
            memory.key = event.key;
            try (SharedBufferAccessor<Event> accessor = buffer.getAccessor()) {
                matches += nfa.advanceTime(accessor, state, event.time, skip).f0.size();
                matches += nfa.process(accessor, state, event, event.time, skip, () -> 0L).size();
            }
        }
        for (int key = 0; key < keys; key++) {
            if (states[key] != null) {
                memory.key = key;
                try (SharedBufferAccessor<Event> accessor = buffer.getAccessor()) {
                    matches += nfa.advanceTime(accessor, states[key], Long.MAX_VALUE, skip).f0.size();
                }
            }
        }
        double taken = (CLOCK.getCurrentThreadCpuTime() - start) / 1e9;
        buffer.releaseCacheStatisticsTimer();
        return new Measured(done, matches, taken);
    }
}
