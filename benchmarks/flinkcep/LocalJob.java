import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.JobExecutionResult;
import org.apache.flink.api.common.accumulators.LongCounter;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.functions.source.legacy.RichParallelSourceFunction;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.util.Collector;

/**
 * FlinkCEP as a user runs it: a job in a local cluster with two slots, from a source in memory to a sink, with the state
 * backend that Flink has by default.
 */
final class LocalJob {
    private static final int PARALLELISM = 2;
    private static final String MATCHES = "matches";

    private final String workload;

    LocalJob(Event[] events, String workload) {
        Source.events = events;
        this.workload = workload;
    }

    /** The seconds are those that the job ran, without the start of the cluster. */
    @SuppressWarnings("deprecation") // the older kind of source: it says which subtask emits which events
    Measured run(int events) throws Exception {
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(PARALLELISM);
        environment.getConfig().enableObjectReuse();
        DataStream<Event> source = environment.addSource(new Source(events));
        CEP.pattern(source.keyBy(event -> event.key), Workloads.pattern(workload))
                .process(new FirstEvent())
                .map(new Count())
                .sinkTo(new DiscardingSink<>());
        JobExecutionResult result = environment.execute();
        long matches = result.<Long>getAccumulatorResult(MATCHES);
        return new Measured(events, matches, result.getNetRuntime() / 1e3);
    }

    /** Each subtask emits every second event, in the order of time, from memory. */
    @SuppressWarnings("deprecation")
    private static final class Source extends RichParallelSourceFunction<Event> {
        private static final long serialVersionUID = 1;
        private static final int EVENTS_BETWEEN_WATERMARKS = 1000;

        static Event[] events;

        private final int count;
        private volatile boolean running = true;

        Source(int count) {
            this.count = count;
        }

        @Override
        public void run(SourceContext<Event> context) {
            int emitted = 0;
            int subtask = getRuntimeContext().getTaskInfo().getIndexOfThisSubtask();
            for (int i = subtask; i < count && running; i += PARALLELISM) {
                synchronized (context.getCheckpointLock()) {
                    context.collectWithTimestamp(events[i], events[i].time);
                    if (++emitted % EVENTS_BETWEEN_WATERMARKS == 0) {
                        context.emitWatermark(new Watermark(events[i].time - 1));
                    }
                }
            }
        }

        @Override
        public void cancel() {
            running = false;
        }
    }

    /** Sends on the first event of a match. */
    private static final class FirstEvent extends PatternProcessFunction<Event, Event> {
        private static final long serialVersionUID = 1;

        @Override
        public void processMatch(Map<String, List<Event>> match, Context context, Collector<Event> out) {
            out.collect(match.values().iterator().next().get(0));
        }
    }

    /** Counts, as FlinkCEP's function above may not: it has no accumulators. */
    private static final class Count extends RichMapFunction<Event, Event> {
        private static final long serialVersionUID = 1;

        private final LongCounter matches = new LongCounter();

        @Override
        public void open(OpenContext context) {
            getRuntimeContext().addAccumulator(MATCHES, matches);
        }

        @Override
        public Event map(Event first) {
            matches.add(1L);
            return first;
        }
    }
}
