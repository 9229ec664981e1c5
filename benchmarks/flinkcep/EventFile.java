import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * The file that benchmarks/flinkcep_events.py writes, little endian: the number n of events as a long, then n times of
 * 8 bytes, n prices of 8, n keys of 4, n kinds of 4 and n values v of 4.
 */
final class EventFile {
    private EventFile() {}

    static Event[] read(String path) throws IOException {
        ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(Path.of(path))).order(ByteOrder.LITTLE_ENDIAN);
        Event[] events = new Event[(int) bytes.getLong()];
        for (int i = 0; i < events.length; i++) {
            events[i] = new Event();
            events[i].time = bytes.getLong();
        }
        for (Event event : events) {
            event.price = bytes.getDouble();
        }
        for (Event event : events) {
            event.key = bytes.getInt();
        }
        for (Event event : events) {
            event.kind = bytes.getInt();
        }
        for (Event event : events) {
            event.v = bytes.getInt();
        }
        return events;
    }
}
