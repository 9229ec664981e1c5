import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.flink.api.common.state.AggregatingState;
import org.apache.flink.api.common.state.AggregatingStateDescriptor;
import org.apache.flink.api.common.state.KeyedStateStore;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ReducingState;
import org.apache.flink.api.common.state.ReducingStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;

/** Keyed state as light as it can be: a HashMap for each key, found by the key's number; nothing is serialised. */
final class KeyedMemory implements KeyedStateStore {
    /** The key whose state is seen. */
    int key;

    private final int keys;

    /** For the keys from 0 to `keys` - 1. */
    KeyedMemory(int keys) {
        this.keys = keys;
    }

    @Override
    public <K, V> MapState<K, V> getMapState(MapStateDescriptor<K, V> descriptor) {
        return new Maps<>();
    }

    private final class Maps<K, V> implements MapState<K, V> {
        @SuppressWarnings("unchecked")
        private final HashMap<K, V>[] maps = (HashMap<K, V>[]) new HashMap<?, ?>[keys];

        private Map<K, V> current() {
            HashMap<K, V> map = maps[key];
            return map == null ? Collections.emptyMap() : map;
        }

        private HashMap<K, V> writable() {
            HashMap<K, V> map = maps[key];
            if (map == null) {
                map = new HashMap<>();
                maps[key] = map;
            }
            return map;
        }

        @Override
        public V get(K name) {
            return current().get(name);
        }

        @Override
        public void put(K name, V value) {
            writable().put(name, value);
        }

        @Override
        public void putAll(Map<K, V> values) {
            writable().putAll(values);
        }

        @Override
        public void remove(K name) {
            writable().remove(name);
        }

        @Override
        public boolean contains(K name) {
            return current().containsKey(name);
        }

        @Override
        public Iterable<Map.Entry<K, V>> entries() {
            return current().entrySet();
        }

        @Override
        public Iterable<K> keys() {
            return current().keySet();
        }

        @Override
        public Iterable<V> values() {
            return current().values();
        }

        @Override
        public Iterator<Map.Entry<K, V>> iterator() {
            return current().entrySet().iterator();
        }

        @Override
        public boolean isEmpty() {
            return current().isEmpty();
        }

        @Override
        public void clear() {
            maps[key] = null;
        }
    }

    // FlinkCEP's shared buffer keeps maps alone.

    private static UnsupportedOperationException notKept() {
        return new UnsupportedOperationException("only maps are kept here");
    }

    @Override
    public <T> ValueState<T> getState(ValueStateDescriptor<T> descriptor) {
        throw notKept();
    }

    @Override
    public <T> ListState<T> getListState(ListStateDescriptor<T> descriptor) {
        throw notKept();
    }

    @Override
    public <T> ReducingState<T> getReducingState(ReducingStateDescriptor<T> descriptor) {
        throw notKept();
    }

    @Override
    public <I, A, O> AggregatingState<I, O> getAggregatingState(AggregatingStateDescriptor<I, A, O> descriptor) {
        throw notKept();
    }

    @Override
    public <T> org.apache.flink.api.common.state.v2.ValueState<T> getValueState(
            org.apache.flink.api.common.state.v2.ValueStateDescriptor<T> descriptor) {
        throw notKept();
    }

    @Override
    public <T> org.apache.flink.api.common.state.v2.ListState<T> getListState(
            org.apache.flink.api.common.state.v2.ListStateDescriptor<T> descriptor) {
        throw notKept();
    }

    @Override
    public <K, V> org.apache.flink.api.common.state.v2.MapState<K, V> getMapState(
            org.apache.flink.api.common.state.v2.MapStateDescriptor<K, V> descriptor) {
        throw notKept();
    }

    @Override
    public <T> org.apache.flink.api.common.state.v2.ReducingState<T> getReducingState(
            org.apache.flink.api.common.state.v2.ReducingStateDescriptor<T> descriptor) {
        throw notKept();
    }

    @Override
    public <I, A, O> org.apache.flink.api.common.state.v2.AggregatingState<I, O> getAggregatingState(
            org.apache.flink.api.common.state.v2.AggregatingStateDescriptor<I, A, O> descriptor) {
        throw notKept();
    }

    @Override
    public String getBackendTypeIdentifier() {
        return "memory";
    }
}
