/** An event as both sides have it; public fields and an empty constructor make it one of Flink's POJOs. */
public class Event {
    public int key;
    /** Milliseconds. */
    public long time;
    public int kind;
    public double price;
    public int v;
}
