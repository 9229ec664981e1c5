import java.time.Duration;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;

/** The patterns of benchmarks/flinkcep_workloads.py, by the same names, as a user of FlinkCEP writes them. */
final class Workloads {
    private static final int A = 0;
    private static final int B = 1;
    private static final int C = 2;
    private static final Duration WINDOW = Duration.ofSeconds(30);

    private Workloads() {}

    static Pattern<Event, ?> pattern(String name) {
        Pattern<Event, Event> a = Pattern.<Event>begin("a").where(is(A));
        switch (name) {
            case "P1":
                return a.next("b").where(is(B)).next("c").where(is(C)).within(WINDOW);
            case "P2":
                return Pattern.<Event>begin("a", AfterMatchSkipStrategy.skipPastLastEvent()).where(is(A))
                        .followedBy("b").where(is(B)).followedBy("c").where(is(C)).within(WINDOW);
            case "P3":
                return threeOfAny(a).within(WINDOW);
            case "P4":
                return a.followedBy("b").where(is(B)).oneOrMore().followedBy("c").where(is(C)).within(WINDOW);
            case "P5":
                return a.followedBy("b").where(is(B)).oneOrMore().allowCombinations()
                        .followedBy("c").where(is(C)).within(Duration.ofMinutes(2));
            case "P6":
                return a.followedBy("b").where(is(B)).where(new DearerThanA()).oneOrMore()
                        .followedBy("c").where(is(C)).where(new CheaperThanAverage()).within(WINDOW);
            case "P7":
                return a.notFollowedBy("b").where(is(B)).followedBy("c").where(is(C)).within(WINDOW);
            case "P8":
                return Pattern.<Event>begin("run").where(new Rises()).oneOrMore().consecutive().greedy().within(WINDOW);
            case "W1":
                return threeOfAny(a).within(Duration.ofSeconds(100));
            case "W2":
                return Pattern.<Event>begin("a").where(isLow(A)).followedByAny("b").where(isLow(B))
                        .followedByAny("c").where(isLow(C)).within(Duration.ofSeconds(1000));
            case "W3, 100":
                return neverD(a).within(Duration.ofSeconds(100));
            case "W3, 1,000":
                return neverD(a).within(Duration.ofSeconds(1000));
            case "W3, 10,000":
                return neverD(a).within(Duration.ofSeconds(10000));
            case "W4":
                return a.followedByAny("b").where(is(B)).oneOrMore().allowCombinations()
                        .followedByAny("c").where(is(C)).within(Duration.ofSeconds(30));
            default:
                throw new IllegalArgumentException("there is no workload " + name);
        }
    }

    private static Pattern<Event, Event> threeOfAny(Pattern<Event, Event> a) {
        return a.followedByAny("b").where(is(B)).followedByAny("c").where(is(C));
    }

    private static Pattern<Event, Event> neverD(Pattern<Event, Event> a) {
        return threeOfAny(a).followedByAny("d").where(is(10));
    }

    private static SimpleCondition<Event> is(int kind) {
        return SimpleCondition.of(event -> event.kind == kind);
    }

    private static SimpleCondition<Event> isLow(int kind) {
        return SimpleCondition.of(event -> event.kind == kind && event.v < 5);
    }

    private static final class DearerThanA extends IterativeCondition<Event> {
        private static final long serialVersionUID = 1;

        @Override
        public boolean filter(Event event, Context<Event> context) throws Exception {
            return event.price > context.getEventsForPattern("a").iterator().next().price * 1.1;
        }
    }

    private static final class CheaperThanAverage extends IterativeCondition<Event> {
        private static final long serialVersionUID = 1;

        @Override
        public boolean filter(Event event, Context<Event> context) throws Exception {
            double sum = 0;
            int count = 0;
            for (Event b : context.getEventsForPattern("b")) {
                sum += b.price;
                count++;
            }
            return event.price < sum / count;
        }
    }

    private static final class Rises extends IterativeCondition<Event> {
        private static final long serialVersionUID = 1;

        @Override
        public boolean filter(Event event, Context<Event> context) throws Exception {
            Event last = null;
            for (Event earlier : context.getEventsForPattern("run")) {
                last = earlier;
            }
            return last == null || event.price > last.price;
        }
    }
}
